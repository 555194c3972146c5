"""What programs are compiled with, and what clients are created with, as plugins read it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.arrays import host_devices
from ...core.settings import config
from ...protocol_buffers import encode, varint
from .c_api import address_of, structure

Option = str | bool | int | float
ClientOption = Option | list[int]
NONE: Mapping[str, Option] = {}


# XLA's options for programs on the host's processors. Without the first, a maximum with a NaN may be the other operand.
ON_HOST: Mapping[str, Option] = {"xla_cpu_enable_fast_min_max": False}
# Of programs on several devices: otherwise newer versions of XLA warn of each that it is in Shardy's dialect.
PARTED: Mapping[str, Option] = {"xla_enable_hlo_sharding_v3": False}
_OF_OPTION = {str: 1, bool: 2, int: 3, float: 4}  # fields of xla.OptionOverrideProto
# Fields of xla.ExecutableBuildOptionsProto for what are no debug options, with the types of their values
_OF_BUILD = {"exec_time_optimization_effort": (20, float), "memory_fitting_effort": (21, float),
             "optimization_level": (24, int), "memory_fitting_level": (25, int)}


def compile_options(devices: Sequence[int], given: Mapping[str, Option] = NONE) -> bytes:
    """An `xla.CompileOptionsProto` for a program on one device, or one that is parted among several.

    It is never empty: a plugin ends the process on options without a device assignment.

    Args:
      devices: their global numbers, in the order of the program's partitions.
      given: XLA's options by name. Which debug options there are, `xla_…`, and their types, the plugin knows.
    """
    count = len(devices)
    # replicas, computations, and for each computation its device
    assignment = encode([(1, 1), (2, count), *((3, encode([(1, device)])) for device in devices)])
    parted = [(6, True), (19, True)] if count > 1 else []  # by the partitioner, told in Shardy's dialect
    build = encode([(1, -1), (4, 1), (5, count), *parted, (9, assignment)])  # no ordinal, replicas, partitions
    overrides = []
    for name, value in ({**PARTED, **given} if count > 1 else given).items():
        field, kind = _OF_BUILD.get(name, (0, None))
        if kind is float:
            build += varint(field << 3 | 5) + struct.pack("<f", value)
        elif field:
            build += encode([(field, int(value))])
        else:
            number = next(n for kind, n in _OF_OPTION.items() if isinstance(value, kind))
            overrides.append((7, encode([(1, name), (2, encode([(number, value)]))])))
    return encode([(3, build), *overrides])


# -- options of clients ------------------------------------------------------------------------------


def named_values(options: Mapping[str, ClientOption]) -> tuple[ctypes.Array, list[Any]]:
    """Options as an array of `PJRT_NamedValue`s, and what it points to."""
    kind = structure("NamedValue")
    array, kept = (kind * len(options))(), list[Any]()
    for item, (name, value) in zip(array, options.items(), strict=True):
        kept.append(name.encode())
        item.struct_size, item.name_size, item.size = ctypes.sizeof(kind), len(kept[-1]), 1
        item.name = address_of(kept[-1])
        at = ctypes.addressof(item) + kind.value.offset  # type: ignore[attr-defined]
        if isinstance(value, str):
            kept.append(value.encode())
            item.type, item.size = 0, len(kept[-1])
            item.value = address_of(kept[-1])
        elif isinstance(value, list):
            kept.append((ctypes.c_int64 * len(value))(*value))
            item.type, item.size, item.value = 2, len(value), ctypes.addressof(kept[-1])
        elif isinstance(value, bool):
            item.type, item.value = 4, int(value)
        elif isinstance(value, int):
            item.type, item.value = 1, value
        else:
            item.type = 3
            ctypes.c_float.from_address(at).value = value
    return array, kept


def meets_others(platform: str) -> bool:
    """Whether the clients of a platform in several processes are told of each other. Those for the host's processors
    cannot be, and TPUs find each other by themselves."""
    return not platform.startswith("xla_cpu") and platform != "tpu"


def of_client(platform: str, cpu_devices: int) -> dict[str, ClientOption]:
    """The options with which the client of a platform is created, as the settings, the environment and the number of
    processes say.

    Raises RuntimeError for a value of the environment that is none.
    """
    told = config.config.jax_pjrt_client_create_options
    found: dict[str, ClientOption] = {}
    if platform.startswith("xla_cpu"):
        found["cpu_device_count"] = cpu_devices
    elif platform in ("cuda", "rocm"):
        found |= _of_gpus()
    visible = getattr(config.config, f"jax_{platform}_visible_devices", "all")
    if visible != "all":
        found["visible_devices"] = list(map(int, visible.split(",")))
    cohort = host_devices.cohort
    if cohort is not None and meets_others(platform):
        found |= {"node_id": cohort.number, "num_nodes": cohort.count}
    if isinstance(told, str):
        told = dict(part.split(":", 1) for part in told.split(";") if part)
    return found | (told or {})


_ALLOCATORS = ("default", "platform", "bfc", "cuda_async")


def _of_gpus() -> dict[str, Option]:
    """How much memory is taken, and when, by the variables of the environment that XLA's clients read."""
    read = lambda name: os.environ.get(f"XLA_PYTHON_CLIENT_{name}", "").lower()
    found: dict[str, Option] = {}
    allocator = read("ALLOCATOR")
    if allocator:
        if allocator not in _ALLOCATORS:
            raise RuntimeError(f'XLA_PYTHON_CLIENT_ALLOCATOR env var must be one of {", ".join(_ALLOCATORS)}, '
                               f'got "{allocator}"')
        found["allocator"] = allocator
    fraction = os.environ.get("XLA_CLIENT_MEM_FRACTION") or read("MEM_FRACTION")
    if fraction:
        found["memory_fraction"] = float(fraction)
    preallocate = read("PREALLOCATE")
    if preallocate:
        found["preallocate"] = preallocate not in ("0", "false")
    return found
