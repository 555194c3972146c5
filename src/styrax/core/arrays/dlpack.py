"""DLPack: exchange of arrays with other libraries without a copy.

A capsule holds a C structure that describes memory and knows how to let go of it. We fill and read that structure with
ctypes, so that every dtype both sides know can pass, bfloat16 and float8 among them, and NumPy is not needed in
between.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import TYPE_CHECKING, Any, ForwardRef

import numpy as np

from ..tracing.trace import Tracer
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.promotion_lattice import by_name
from ..types.typing import DeviceLike, DTypeLike, SupportsDLPack
from . import backends
from .devices import Device, SingleDeviceSharding

if TYPE_CHECKING:
    from .array import Array
else:  # for `typing.get_type_hints`: the array's module asks this one
    Array = ForwardRef("Array", module="styrax.core.arrays.array")

CPU, CUDA, CUDA_HOST = 1, 2, 3
_PLATFORMS = {CPU: None, CUDA_HOST: None, CUDA: "cuda"}  # where memory of a kind is adopted; None: the default backend
LEGACY = 1  # CUDA's default stream as the protocol and the driver number streams
_VERSION = (1, 1)
_READ_ONLY, _COPIED = 1, 2

# kind codes of DLPack
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_KINDS = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_NAMED = {  # dtypes that NumPy has no kind for: (kind, bits)
    "bfloat16": (_BFLOAT, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("version", _Version), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
        ("tensor", _Tensor)]


_FORMS: dict[bytes, Any] = {b"dltensor": _Managed, b"dltensor_versioned": _ManagedVersioned}

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))

_USED = {name: b"used_" + name for name in _FORMS}  # kept: capsules point at these names

# address of a structure given away -> what must live as long as it
_given: dict[int, tuple] = {}
# capsules that nobody has taken yet, when that was last looked at, with their names and structures' addresses
_offered: list[tuple[Any, bytes, int]] = []


@_Deleter
def _let_go(address: int) -> None:
    _given.pop(address, None)


def _withdraw() -> None:
    """Lets go of what capsules offered that nobody took and nobody holds.

    A capsule's destructor could do so at once, but it runs while a consumer's exception is under way, when no Python
    function can.
    """
    global _offered
    offered, _offered = _offered, []
    while offered:
        item = capsule, name, address = offered.pop()
        if _is_valid(capsule, name):
            if sys.getrefcount(capsule) > 3:  # more than the tuple, the variable and the question
                _offered.append(item)
            else:
                _given.pop(address, None)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be exchanged."""
    return _code(dtypes.dtype(dtype)) is not None


def _code(dtype: Any) -> tuple[int, int] | None:
    if not isinstance(dtype, np.dtype):
        return None
    found = _NAMED.get(dtype.name)
    if found is not None:
        return found
    kind = _KINDS.get(dtype.kind) if dtype.isbuiltin == 1 else None
    return None if kind is None else (kind, 8 * dtype.itemsize)


def _dtype(kind: int, bits: int) -> np.dtype:
    for name, code in _NAMED.items():
        if code == (kind, bits):
            return by_name[name]
    for letter, known in _KINDS.items():
        if known == kind and bits % 8 == 0:
            return np.dtype(f"{letter}{bits // 8}") if kind != _BOOL else np.dtype(bool)
    raise BufferError(f"an array of DLPack's dtype {kind} with {bits} bits has no counterpart here")


def to_capsule(array: Any, *, max_version: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """A DLPack capsule of an array's own memory.

    Args:
      array: an array on one device.
      max_version: the newest version of the protocol that the consumer knows.
      copy: whether it must be, or must not be, a copy.

    Raises:
      BufferError: the dtype is not one of DLPack's.
    """
    if isinstance(array, Tracer):
        raise TypeError("a traced array has no memory to share through DLPack")
    if len(array.devices()) > 1:
        raise BufferError("to_dlpack can only pack a dlpack tensor from an array on a singular device, but an array "
                          f"with a Sharding over {len(array.devices())} devices was provided.")
    code = _code(array.dtype)
    if code is None:
        raise BufferError(f"arrays of dtype {array.dtype} cannot be passed through DLPack")
    if copy:
        array = array.copy()
    versioned = max_version is not None and max_version[0] >= 1
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed = _FORMS[name]()
    ndim = array.ndim
    shape = (ctypes.c_int64 * max(ndim, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(ndim, 1))(*_contiguous(array.shape))
    tensor = managed.tensor
    tensor.data = array.unsafe_buffer_pointer() if array.size else None
    tensor.device = _Device(*array.__dlpack_device__())
    tensor.ndim = ndim
    tensor.dtype = _DType(*code, 1)
    tensor.shape, tensor.strides = shape, strides
    managed.deleter = ctypes.cast(_let_go, ctypes.c_void_p)
    if versioned:
        managed.version = _Version(*_VERSION)
        managed.flags = _COPIED if copy else _READ_ONLY
    address = ctypes.addressof(managed)
    # the view, or another reference, marks the memory as seen from outside: it is not taken over by a donation
    _given[address] = (managed, shape, strides, array._value if tensor.device.kind == CPU else array.buffer)
    _withdraw()
    capsule = _new(address, name, None)
    _offered.append((capsule, name, address))
    return capsule


def _contiguous(shape: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= d
    return strides[::-1]


class _Taken:
    """A structure taken from a capsule; its producer gets it back when this goes."""

    __slots__ = ("address", "deleter", "source")

    def __init__(self, address: int, deleter: int | None, source: Any):
        self.address = address
        self.deleter = _Deleter(deleter) if deleter else None
        self.source = source

    def __del__(self) -> None:
        if self.deleter is not None:
            self.deleter(self.address)


def from_dlpack(external_array: SupportsDLPack, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """An array over the memory of another library's array.

    Args:
      external_array: an object with `__dlpack__` and `__dlpack_device__`.
      device: the device to put it on, None for where it is.
      copy: True for memory of its own, False to refuse where that cannot be avoided, None for whatever is needed.

    Returns:
      An array. It shares the memory where that is contiguous: do not change it afterwards.

    Raises:
      TypeError: the object does not speak DLPack. ValueError: `copy=False` and a copy is needed.
      BufferError: the dtype or the device is not known here.
    """
    if not hasattr(external_array, "__dlpack__") or not hasattr(external_array, "__dlpack_device__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods. Got "
                        f"{type(external_array)}")
    kind, number = external_array.__dlpack_device__()
    if kind not in _PLATFORMS:
        raise BufferError(f"the array is on a device of DLPack's kind {int(kind)}, which cannot be reached from here")
    try:
        client = backends.get(_PLATFORMS[kind])
    except RuntimeError as error:
        raise BufferError(f"the array is on a device that cannot be reached from here: {error}") from None
    give: Any = external_array.__dlpack__
    if kind == CUDA:
        give = functools.partial(give, stream=LEGACY)  # on which the backend waits for what is under way
    try:
        capsule = give(max_version=_VERSION)
    except TypeError:
        capsule = give()
    for name in _FORMS:
        if _is_valid(capsule, name):
            break
    else:
        raise BufferError("what __dlpack__ gave is not a capsule of DLPack that has not been used yet")
    address = _pointer(capsule, name)
    managed = _FORMS[name].from_address(address)
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.dtype.lanes != 1:
        raise BufferError("arrays of vectors cannot be taken from DLPack")
    dtype = _dtype(tensor.dtype.kind, tensor.dtype.bits)
    if dtypes.canonicalize_dtype(dtype) != dtype and copy is False:
        raise ValueError(f"an array of dtype {dtype} must be copied while 64-bit types are disabled")
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else _contiguous(shape)
    _rename(capsule, _USED[name])  # it is ours now
    owner = _Taken(address, managed.deleter, external_array)
    start = (tensor.data or 0) + tensor.offset
    dense = all(s == c or d == 1 for s, c, d in zip(strides, _contiguous(shape), shape, strict=True))
    aligned = start % dtype.itemsize == 0
    narrow = dtypes.canonicalize_dtype(dtype)
    if kind == CUDA:
        if not dense or 0 in shape:
            raise BufferError(f"an array on a GPU with the strides {tuple(strides)} cannot be taken: its rows must "
                              "follow each other")
        there = next((d for d in client.devices() if d.local_hardware_id == number), None)
        array = client.adopt(start, ShapedArray(shape, dtype), owner, there)
        if copy:
            array = array.copy()
        return _committed(array if narrow == dtype else array.astype(narrow), device)
    if dense and aligned and not copy and narrow == dtype and 0 not in shape:
        return _committed(client.adopt(start, ShapedArray(shape, dtype), owner), device)
    if copy is False and 0 not in shape:
        raise ValueError("the array cannot be taken without a copy: its memory is not contiguous or not aligned")
    view = strided_view(start, shape, dtype, strides, owner)
    return _committed(client.put(view, ShapedArray(shape, narrow), None), device)


def _committed(array: Array, device: DeviceLike | None) -> Array:
    """The array on a device, by default the one that it is on. ValueError for several devices."""
    if device is None:
        return array.placed(None)
    sharding = SingleDeviceSharding(device) if isinstance(device, Device) else device
    count = len(sharding.device_set)
    if count > 1:
        raise ValueError("from_dlpack can only unpack a dlpack tensor onto a singular device, but a Sharding with "
                         f"{count} devices was provided.")
    return array.placed(sharding)


class _Interface:
    """NumPy's door to memory."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, interface: dict[str, Any]):
        self.owner = owner
        self.__array_interface__ = interface


def strided_view(start: int, shape: tuple[int, ...], dtype: np.dtype, strides: list[int] | None,
                 owner: Any) -> np.ndarray:
    """Memory of `owner` as a NumPy array, which keeps it. Strides count elements; None for rows without gaps."""
    if 0 in shape:
        return np.empty(shape, dtype)
    order = "|" if dtype.itemsize == 1 else "<"
    kind = dtype.str if dtype.isbuiltin == 1 else f"{order}u{dtype.itemsize}"
    view = np.asarray(_Interface(owner, {
        "version": 3, "data": (start, True), "shape": shape, "typestr": kind,
        "strides": None if strides is None else tuple(s * dtype.itemsize for s in strides)}))
    return view if view.dtype == dtype else view.view(dtype)
