"""Where operations come from, as MLIR writes it: the scopes around an equation and a line of the user's program."""

from __future__ import annotations

import json

from styrax.core.programs.jaxpr import JaxprEqn
from styrax.core.programs.name_stack import NameStack, empty
from styrax.core.tracing.source import SourceInfo

_CALLED = {"remat2": "checkpoint"}  # what compiled programs call it


def _inside(scope: str, names: str) -> str:
    return f"{scope}/{names}" if scope and names else scope or names


def _stack(eqn: JaxprEqn) -> NameStack:
    return empty if eqn.source_info is None else eqn.source_info.name_stack


def around(scope: str, eqn: JaxprEqn) -> str:
    """`jit(f)/outer`: the scopes around an equation that stands in `scope`."""
    return _inside(scope, str(_stack(eqn)))


def path(scope: str, eqn: JaxprEqn) -> str:
    """`jit(f)/outer/sin`: the scopes around an equation that stands in `scope`, and what it is."""
    if eqn.primitive.name == "jit":  # a call is a scope of its own, which transformations around it go through
        return _inside(scope, str(_stack(eqn).extend(f"jit({eqn.params['name']})")))
    return _inside(around(scope, eqn), called(eqn))


def called(eqn: JaxprEqn) -> str:
    """The name of what an equation does: its primitive's."""
    return _CALLED.get(eqn.primitive.name, eqn.primitive.name)


def location(name: str, info: SourceInfo | None) -> str:
    """What follows an operation: ` loc("jit(f)/sin"("file.py":12:8))`."""
    if info is None or info.code is None:
        return f" loc({json.dumps(name)})"
    line, column = info.position
    return f" loc({json.dumps(name)}({json.dumps(info.file_name)}:{line}:{column}))"
