"""PJRT's C API as tables: its functions in their order, and what the argument structures hold.

The function table and the structures only grow at their ends. They are written down as of version 0.106; newer
plugins take such structures as well. https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h
"""

from __future__ import annotations

import ctypes
from functools import cache

OLDEST = (0, 106)  # of the versions that are known to work
FIRST = 40  # where the function table begins in the structure `PJRT_Api`, behind sizes and the version

FUNCTIONS = """
Error_Destroy Error_Message Error_GetCode
Plugin_Initialize Plugin_Attributes
Event_Destroy Event_IsReady Event_Error Event_Await Event_OnReady
Client_Create Client_Destroy Client_PlatformName Client_ProcessIndex Client_PlatformVersion Client_Devices
Client_AddressableDevices Client_LookupDevice Client_LookupAddressableDevice Client_AddressableMemories Client_Compile
Client_DefaultDeviceAssignment Client_BufferFromHostBuffer
DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Attributes DeviceDescription_Kind
DeviceDescription_DebugString DeviceDescription_ToString
Device_GetDescription Device_IsAddressable Device_LocalHardwareId Device_AddressableMemories Device_DefaultMemory
Device_MemoryStats
Memory_Id Memory_Kind Memory_DebugString Memory_ToString Memory_AddressableByDevices
Executable_Destroy Executable_Name Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs
Executable_SizeOfGeneratedCodeInBytes Executable_GetCostAnalysis Executable_OutputMemoryKinds
Executable_OptimizedProgram Executable_Serialize
LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_AddressableDevices LoadedExecutable_Delete
LoadedExecutable_IsDeleted LoadedExecutable_Execute
Executable_DeserializeAndLoad LoadedExecutable_Fingerprint
Buffer_Destroy Buffer_ElementType Buffer_Dimensions Buffer_UnpaddedDimensions Buffer_DynamicDimensionIndices
Buffer_GetMemoryLayout Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory Buffer_Delete Buffer_IsDeleted
Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent Buffer_UnsafePointer
Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount Buffer_OpaqueDeviceMemoryDataPointer
CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk CopyToDeviceStream_TotalBytes CopyToDeviceStream_GranuleSize
CopyToDeviceStream_CurrentBytes
TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions TopologyDescription_Serialize
TopologyDescription_Attributes
Compile Executable_OutputElementTypes Executable_OutputDimensions Buffer_CopyToMemory Client_CreateViewOfDeviceBuffer
Executable_Fingerprint Client_TopologyDescription Executable_GetCompiledMemoryStats
""".split()

# The arguments of functions, behind the size of the structure and the extensions, by name and type:
# a pointer, size_t (#), int64 (!), int (%) or bool (?)
_ARGUMENTS = """
Error_Message error message size#
Error_GetCode error code%
Plugin_Attributes values count#
Event_IsReady event ready?
Event_OnReady event callback argument
Client_Create options count# get get_argument put put_argument client try_get try_get_argument
Client_PlatformName client text size#
Client_PlatformVersion client text size#
Client_ProcessIndex client process%
Client_Devices client items count#
Client_AddressableDevices client items count#
Client_Compile client program options size# executable
Client_BufferFromHostBuffer client data type% dims rank# strides strides_count# semantics% device \
memory layout done buffer
Client_CreateViewOfDeviceBuffer client data dims rank# type% layout device gone argument stream buffer memory
Device_GetDescription device description
Device_LocalHardwareId device id%
Device_MemoryStats device bytes_in_use! peak_bytes_in_use! has_peak_bytes_in_use? num_allocs! has_num_allocs? \
largest_alloc_size! has_largest_alloc_size? bytes_limit! has_bytes_limit? bytes_reserved! has_bytes_reserved? \
peak_bytes_reserved! has_peak_bytes_reserved? bytes_reservable_limit! has_bytes_reservable_limit? \
largest_free_block_bytes! has_largest_free_block_bytes? pool_bytes! has_pool_bytes? peak_pool_bytes! \
has_peak_pool_bytes?
DeviceDescription_Id description id%
DeviceDescription_ProcessIndex description process%
DeviceDescription_Kind description text size#
Executable_NumOutputs executable count#
Executable_GetCompiledMemoryStats executable code! arguments! results! alias! workspace! \
host_code! host_arguments! host_results! host_alias! host_workspace! peak! total! total_allocation! indefinite! \
peak_unpadded!
Executable_Serialize executable text size# owner deleter
Executable_DeserializeAndLoad client data size# executable options options_size#
LoadedExecutable_GetExecutable loaded executable
LoadedExecutable_Execute executable options arguments devices# arguments_count# results events device
TopologyDescription_Create arrangement arrangement_size# options count# topology
TopologyDescription_GetDeviceDescriptions topology items count#
TopologyDescription_PlatformVersion topology text size#
Compile topology program options size# client executable
Buffer_CopyToDevice buffer device copy
Buffer_ToHostBuffer buffer layout target size# event
Buffer_ReadyEvent buffer event
Buffer_UnsafePointer buffer address#
ExecuteOptions send receive send_count# receive_count# launch_id% kept kept_count# context location \
tasks# task_ids incarnations slices
Program code size# format format_size#
KeyValueGet key key_size# milliseconds% error argument value value_size# deleter
KeyValueTryGet key key_size# error argument value value_size# deleter
KeyValuePut key key_size# value value_size# error argument
NamedValue name name_size# type% value! size#
HostLayout tiled_size# tiled_extensions minor_to_major rank# tile_dims tile_sizes tiles# type%
"""

_TYPES = {"#": ctypes.c_size_t, "!": ctypes.c_int64, "%": ctypes.c_int, "?": ctypes.c_bool}
_FIELDS = {words[0]: words[1:] for words in map(str.split, _ARGUMENTS.replace("\\\n", "").strip().splitlines())}
_HANDLED = ("Destroy", "Await", "Initialize")  # functions whose argument is one handle, or nothing


@cache
def structure(name: str) -> type[ctypes.Structure]:
    """The type of a structure, of a function's arguments by the function's name. KeyError for others than the above."""
    fields = _FIELDS.get(name)
    if fields is None:
        if not name.endswith(_HANDLED):
            raise KeyError(name)
        fields = ["handle"]
    header = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
    typed = [(f.rstrip("#!%?"), _TYPES.get(f[-1], ctypes.c_void_p)) for f in fields]
    return type(name, (ctypes.Structure,), {"_fields_": header + typed})


def filled(name: str, **values: object) -> ctypes.Structure:
    """A new structure with its size and these fields."""
    kind = structure(name)
    return kind(ctypes.sizeof(kind), None, **values)


def address_of(data: bytes) -> int:
    """Where bytes lie: good as long as whoever calls keeps them."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


# Types of elements, PJRT_Buffer_Type, by the names of their dtypes
ELEMENTS = {name: number for number, name in enumerate("""
invalid bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128
float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz float8_e5m2fnuz float8_e4m3fnuz int4 uint4 token int2 uint2 float8_e4m3
float8_e3m4 float8_e8m0fnu float4_e2m1fn int1 uint1
""".split())}
PACKED = frozenset(("int4", "uint4", "int2", "uint2", "int1", "uint1", "float4_e2m1fn"))  # on devices

CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
         "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
         "UNAUTHENTICATED").split()

__all__ = ["CODES", "ELEMENTS", "FIRST", "FUNCTIONS", "OLDEST", "PACKED", "address_of", "filled", "structure"]
