"""The file form of exported functions.

    b"\\x93STYRAX", version (u16), digest of what follows (16 bytes), length of the header (u32), header, parts

The header is JSON: names, structures of arguments and results, the constraints of the symbolic sizes, and the parts'
names and sizes. The parts are compressed: the program as text that reads back (`core.programs.serial`), its StableHLO,
and, as a container of its own, the derivative.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ..core.tracing.errors import InconclusiveDimensionOperation
from . import meshes
from .symbolic import SymbolicDim
from .trees import to_data

if TYPE_CHECKING:
    from ..core.programs.jaxpr import ClosedJaxpr
    from .exported import Exported

MAGIC = b"\x93STYRAX"
VERSION = 1
_START = struct.Struct("<H16sI")


def serialize(exported: Exported, vjp_order: int) -> bytearray:
    """See `Exported.serialize`."""
    if vjp_order < 0:
        raise ValueError(f"vjp_order must not be negative: {vjp_order}")
    program = program_text(exported._program, exported.fun_name)
    scopes = {d.scope for a in exported.in_avals for d in a.shape if isinstance(d, SymbolicDim)}
    header = {
        "fun_name": exported.fun_name, "in_tree": to_data(exported.in_tree), "out_tree": to_data(exported.out_tree),
        "platforms": exported.platforms, "nr_devices": exported.nr_devices,
        "checks": [str(c) for c in exported.disabled_safety_checks],
        "calling_convention_version": exported.calling_convention_version,
        "kept": exported.module_kept_var_idx,
        "constraints": [text for scope in scopes for text in scope.texts],
        "in_shardings": [meshes.to_data(s) for s in exported._in_shardings],
        "out_shardings": [meshes.to_data(s) for s in exported._out_shardings],
    }
    parts = {"program": program.encode()}
    with suppress(NotImplementedError, InconclusiveDimensionOperation):  # there is no StableHLO for it
        parts["stablehlo"] = exported.mlir_module_serialized
    if vjp_order:
        parts["vjp"] = bytes(serialize(exported.vjp(), vjp_order - 1))
    return bytearray(pack(header, parts))


def program_text(program: ClosedJaxpr, name: str) -> str:
    """A program as text that every process can read. Raises ValueError where it calls functions of this process."""
    text = program.to_text()
    unknown = re.search(r'\blocal\("([^"]*)"', text)
    if unknown is not None:
        raise ValueError(f"Cannot serialize {name}: it calls {unknown[1]}, a function of this process")
    return text


def pack(header: dict[str, Any], parts: dict[str, bytes]) -> bytes:
    """A container with a header, which JSON can hold, and parts."""
    packed = {name: zlib.compress(part) for name, part in parts.items()}
    text = json.dumps({**header, "parts": {name: len(part) for name, part in packed.items()}}).encode()
    body = struct.pack("<I", len(text)) + text + b"".join(packed.values())
    return MAGIC + struct.pack("<H", VERSION) + blake2b(body, digest_size=16).digest() + body


def unpack(blob: bytes | bytearray | memoryview) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header and the parts of a container.

    Raises:
      ValueError: the bytes are no container, are damaged, or were written by a later version.
    """
    data = bytes(blob)
    start = len(MAGIC)
    if data[:start] != MAGIC or len(data) < start + _START.size:
        raise ValueError("not serialized by this package: it begins otherwise")
    version, digest, length = _START.unpack_from(data, start)
    if version > VERSION:
        raise ValueError(f"serialized by a later release, as version {version} of the format: this one reads {VERSION}")
    body = data[start + _START.size - 4:]
    if blake2b(body, digest_size=16).digest() != digest:
        raise ValueError("what was serialized is damaged")
    header = json.loads(body[4:4 + length])
    parts, at = {}, 4 + length
    for name, size in header["parts"].items():
        parts[name] = zlib.decompress(body[at:at + size])
        at += size
    return header, parts
