"""What stands in a StableHLO module: parsed by jaxlib, whoever printed it."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

HOLDERS = ("builtin.", "func.func", "func.return", "sdy.", "stablehlo.return")
FORM = {"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"}


class Operation(NamedTuple):
    name: str
    operands: list[str]  # their types
    results: list[str]
    attributes: dict[str, str]  # none of those that only change a value's form


def operations(text: str) -> list[Operation]:
    """All operations but those that only hold others, in the order of the text."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    found = []

    def walk(op: Any) -> None:
        if not op.name.startswith(HOLDERS):
            names = op.attributes if op.name not in FORM else ()
            attributes = {name: str(op.attributes[name]) for name in names}
            found.append(Operation(op.name, [str(x.type) for x in op.operands], [str(x.type) for x in op.results],
                                   attributes))
        for region in op.regions:
            for block in region:
                for inner in block:
                    walk(inner.operation)

    with mlir.make_ir_context():
        module = ir.Module.parse(text)  # nothing of it may be looked at once it is gone
        walk(module.operation)
    return found


def custom_calls(text: str) -> list[tuple[Any, ...]]:
    """Their types, targets, layouts and configurations."""
    names = ("call_target_name", "operand_layouts", "result_layouts", "mhlo.frontend_attributes")
    return [(op.operands, op.results, *(op.attributes.get(name, "") for name in names),
             op.attributes.get("output_operand_aliases", "[]"), op.attributes.get("has_side_effect", "false"),
             op.attributes.get("mhlo.backend_config", op.attributes["backend_config"]))
            for op in operations(text) if op.name == "stablehlo.custom_call"]


def counts(text: str) -> Counter[str]:
    """How often each kind of operation stands there, those aside that only change a value's form."""
    return Counter(op.name for op in operations(text) if op.name not in FORM)
