"""What programs are compiled with, and what clients are created with, as plugins read it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

from ...core.settings import config
from ...protocol_buffers import encode
from .c_api import address_of, structure

Option = str | bool | int | float


# XLA's options for programs on the host's processors. Without the first, a maximum with a NaN may be the other operand.
ON_HOST: Mapping[str, Option] = {"xla_cpu_enable_fast_min_max": False}
# Of programs on several devices: otherwise newer versions of XLA warn of each that it is in Shardy's dialect.
PARTED: Mapping[str, Option] = {"xla_enable_hlo_sharding_v3": False}
_OF_OPTION = {str: 1, bool: 2, int: 3, float: 4}  # fields of xla.OptionOverrideProto


def compile_options(devices: Sequence[int], overrides: Mapping[str, Option] = {}) -> bytes:
    """An `xla.CompileOptionsProto` for a program on one device, or one that is parted among several.

    It is never empty: a plugin ends the process on options without a device assignment.

    Args:
      devices: their global numbers, in the order of the program's partitions.
      overrides: XLA's debug options by name, `xla_…`.
    """
    count = len(devices)
    # replicas, computations, and for each computation its device
    assignment = encode([(1, 1), (2, count), *((3, encode([(1, device)])) for device in devices)])
    parted = [(6, True), (19, True)] if count > 1 else []  # by the partitioner, told in Shardy's dialect
    build = encode([(1, -1), (4, 1), (5, count), *parted, (9, assignment)])  # no ordinal, replicas, partitions
    overrides = {**overrides, **PARTED} if count > 1 else overrides
    changed = [(7, encode([(1, name), (2, encode([(_OF_OPTION[type(value)], value)]))])) for name, value in
               overrides.items()]
    return encode([(3, build), *changed])


# -- options of clients ------------------------------------------------------------------------------


def named_values(options: Mapping[str, Option]) -> tuple[ctypes.Array, list[bytes]]:
    """Options as an array of `PJRT_NamedValue`s, and the texts that it points to."""
    kind = structure("NamedValue")
    array, kept = (kind * len(options))(), []
    for item, (name, value) in zip(array, options.items(), strict=True):
        kept.append(name.encode())
        item.struct_size, item.name_size, item.size = ctypes.sizeof(kind), len(kept[-1]), 1
        item.name = address_of(kept[-1])
        at = ctypes.addressof(item) + kind.value.offset  # type: ignore[attr-defined]
        if isinstance(value, str):
            kept.append(value.encode())
            item.type, item.size = 0, len(kept[-1])
            item.value = address_of(kept[-1])
        elif isinstance(value, bool):
            item.type, item.value = 4, int(value)
        elif isinstance(value, int):
            item.type, item.value = 1, value
        else:
            item.type = 3
            ctypes.c_float.from_address(at).value = value
    return array, kept


def of_client(platform: str, cpu_devices: int) -> dict[str, Option]:
    """The options with which the client of a platform is created, as the settings and the environment say.

    Raises RuntimeError for a value of the environment that is none.
    """
    told = config.config.jax_pjrt_client_create_options
    found: dict[str, Option] = {}
    if platform.startswith("xla_cpu"):
        found["cpu_device_count"] = cpu_devices
    elif platform in ("cuda", "rocm"):
        found |= _of_gpus()
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
