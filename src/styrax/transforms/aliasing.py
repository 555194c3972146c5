"""References at the borders of traced functions: a function gets each of them once, and returns none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.arrays.array import Array
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo
from ..core.tracing import source
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree
from ..core.types.avals import AbstractRef
from .naming import leaf_path
from .references import Ref


def check_returned(closed: ClosedJaxpr, out_tree: tree.PyTreeDef, traced_for: str) -> None:
    """Raises ValueError where a traced function returns a reference. What it captured must still stand as constants."""
    jaxpr = closed.jaxpr
    for i, v in enumerate(jaxpr.outvars):
        if not isinstance(v.aval, AbstractRef):
            continue
        path = leaf_path(out_tree, i)
        raise ValueError(
            f"function {jaxpr.debug_info.func_src_info} traced for {traced_for} returned a mutable array reference of "
            f"type {v.aval.str_short()}{f' at output tree path result{path}' if path else ''}, but mutable array "
            f"references cannot be returned.{_origin(closed, v)}")


def _origin(closed: ClosedJaxpr, v: Any) -> str:
    jaxpr = closed.jaxpr
    names = jaxpr.debug_info.arg_names
    if v in jaxpr.invars and jaxpr.invars.index(v) < len(names):
        return f"\n\nThe returned mutable array was passed in as the argument {names[jaxpr.invars.index(v)]}."
    for eqn in jaxpr.eqns:
        if v in eqn.outvars:
            return f"\n\nThe returned mutable array was created on line {source.summarize(eqn.source_info)}."
    return ""


def _referent(x: Any) -> Any:
    """The reference that a derivative or a batching carries."""
    while isinstance(x, Tracer):
        inner = getattr(x, "primal", None)
        if inner is None:
            return x
        x = inner
    return x


def any_references(leaves: Sequence[Any]) -> bool:
    return any(type(x) is not Array and isinstance(x, Ref) for x in leaves)


def check_arguments(leaves: Sequence[Any], captured: Sequence[Any], traced_for: str, info: DebugInfo) -> None:
    """Raises ValueError where a reference is passed twice, or passed to a function that knows it already."""
    first: dict[int, int] = {}
    known = {id(_referent(x)) for x in captured}
    for i, x in enumerate(leaves):
        if not isinstance(x, Ref):  # but arrays, or the type of a reference in its place
            continue
        aval, names, x = get_aval(x), info.arg_names, _referent(x)
        if id(x) in first:
            raise ValueError(
                f"only one reference to a mutable array may be passed as an argument to a function, but when tracing "
                f"{info.func_src_info} for {traced_for} the mutable array reference of type {aval.str_short()} "
                f"appeared at both {names[first[id(x)]]} and {names[i]}.")
        if id(x) in known:
            raise ValueError(f"when tracing {info.func_src_info} for {traced_for}, a mutable array reference of type "
                             f"{aval.str_short()} was both closed over and passed as the argument {names[i]}")
        first[id(x)] = i


def check_rule_results(outs: Sequence[Any], out_tree: tree.PyTreeDef, what: str) -> None:
    """Raises ValueError where a function with a rule of its own, or the rule, returns a reference."""
    for i, x in enumerate(outs):
        if isinstance(x, Ref):
            raise ValueError(f"{what} returned a mutable array reference of type {get_aval(x).str_short()} at output "
                             f"tree path {leaf_path(out_tree, i)}, but mutable array references cannot be returned "
                             "there.")


def check_residuals(residuals: Sequence[Any], arguments: Sequence[Any], what: str) -> None:
    """Raises ValueError where a forward rule keeps a reference that it was not given."""
    given = {id(_referent(x)) for x in arguments}
    for x in residuals:
        if isinstance(x, Ref) and id(_referent(x)) not in given:
            raise ValueError(f"{what} returned a mutable array reference of type {get_aval(x).str_short()} at output "
                             "tree path [1] that was not an argument.")
