"""Exported functions read from bytes."""

from __future__ import annotations

from ..core.programs.serial import parse
from . import meshes
from .checks import DisabledSafetyCheck
from .container import unpack
from .exported import Exported
from .scope import SymbolicScope
from .trees import from_data


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function that `Exported.serialize` wrote.

    Raises:
      ValueError: the bytes are no serialized function, are damaged, come from a later release, or hold a container of
        a type that is not registered here.
    """
    header, parts = unpack(blob)
    program = parse(parts["program"].decode(), dim=SymbolicScope(header["constraints"]).parse)
    vjp = parts.get("vjp")
    return Exported(
        fun_name=header["fun_name"], in_tree=from_data(header["in_tree"]), in_avals=program.in_avals,
        out_tree=from_data(header["out_tree"]), out_avals=program.out_avals,
        in_shardings=[meshes.from_data(s) for s in header["in_shardings"]],
        out_shardings=[meshes.from_data(s) for s in header["out_shardings"]], platforms=header["platforms"],
        disabled_safety_checks=[DisabledSafetyCheck(text) for text in header["checks"]],
        calling_convention_version=header["calling_convention_version"], module_kept_var_idx=header["kept"],
        program=program, vjp=None if vjp is None else lambda _: deserialize(vjp),
        mlir_module_serialized=parts.get("stablehlo"), nr_devices=header["nr_devices"])
