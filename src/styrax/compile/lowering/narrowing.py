"""Narrowing: what is asked of indices that were integers of fewer bits is asked of these, of which vectors have more
lanes."""

from __future__ import annotations

from ...core.types.index_type import INDEX
from ..ir.expr import Expr
from .intervals import of_type
from .number_types import NARROW_INTS, is_integer


def narrowed(x: Expr, y: Expr) -> tuple[Expr, Expr] | None:
    """Two indices as integers of the type that one of them was converted from, where the other is one, too, or a
    constant of that type."""
    if x.dtype is not INDEX:
        return None
    source = next((e.args[0].dtype for e in (x, y) if e.op == "cast"), None)
    if source is None or not is_integer(source) or source in NARROW_INTS or source.itemsize > 4:
        return None
    low, high = of_type(source)
    found = []
    for e in (x, y):
        if e.op == "const" and low <= e.attr <= high:
            found.append(e.arena.const(e.attr, source))
        elif e.op == "cast" and e.args[0].dtype == source:
            found.append(e.args[0])
        else:
            return None
    return found[0], found[1]
