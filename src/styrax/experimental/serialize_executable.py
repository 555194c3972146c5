"""Compiled programs as bytes, which other processes on such machines run without compiling them."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.arrays import backends
from ..core.arrays.backends import Backend
from ..core.arrays.devices import Device
from ..core.programs.serial import parse
from ..core.trees.tree import PyTreeDef
from ..export.container import pack, program_text, unpack
from ..export.refinement import refine
from ..transforms.jit import Specialisation
from ..transforms.stages import Compiled


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """A compiled function as bytes, with the structures of its arguments and results.

    The bytes hold the program and its machine code. A machine of another kind compiles the program anew.

    Raises:
      ValueError: the program calls a Python function of this process.
    """
    program = compiled._program
    assert program.closed is not None
    closed = refine(program.closed, {})
    code = compiled.runtime_executable().machine_code()
    header = {"name": program.name, "donated": compiled.donate_argnums, "keys": [key.hex() for key in code]}
    parts = {"program": program_text(closed, program.name).encode(),
             **{f"code{i}": blob for i, blob in enumerate(code.values())}}
    return pack(header, parts), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef,
                         backend: str | Backend | None = None,
                         execution_devices: Sequence[Device] | None = None) -> Compiled:
    """The compiled function that `serialize` wrote.

    Args:
      serialized, in_tree, out_tree: what `serialize` gave.
      backend: the name of the platform, or its client; by default the one that programs run on.
      execution_devices: the devices to run on: the platform's first.

    Raises:
      ValueError: the bytes are damaged, come from a later release, or are for another number of devices.
    """
    if execution_devices is not None and len(execution_devices) != 1:
        raise ValueError(f"the program was compiled for one device, and {len(execution_devices)} are given")
    header, parts = unpack(serialized)
    platform = backends.get(backend) if backend is None or isinstance(backend, str) else backend
    platform.accept({bytes.fromhex(key): parts[f"code{i}"] for i, key in enumerate(header["keys"])})
    closed = parse(parts["program"].decode())
    donated = tuple(i in header["donated"] for i in range(len(closed.in_avals)))
    return Compiled(Specialisation.of_program(closed, header["name"], in_tree, out_tree, donated))


__all__ = ["deserialize_and_load", "serialize"]
