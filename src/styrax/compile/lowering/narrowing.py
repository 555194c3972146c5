"""Narrowing: what is asked of indices that were integers of fewer bits is asked of these, of which vectors have more
lanes; and long integers that are known to be short ones are divided as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.types.index_type import INDEX
from ..ir.expr import Expr
from .intervals import of, of_type
from .number_types import NARROW_INTS, is_integer

if TYPE_CHECKING:
    from .scalars import Scalars

LONG, SHORT = (np.dtype(np.int64), np.dtype(np.uint64)), np.dtype(np.int32)


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


def shortened(b: Scalars, x: Expr, y: Expr) -> tuple[Expr, Expr] | None:
    """Two long integers as short ones, whose quotients do not overflow, if both are known to fit."""
    if x.dtype not in LONG or x.op == y.op == "const":
        return None
    low, high = of_type(SHORT)
    if not all(low < least and most <= high for least, most in map(of, (x, y))):
        return None
    if x.dtype.kind == "u" and of(y)[0] <= 0:  # all bits of the quotient by 0 are those of the type
        return None
    x, y = (e.args[0] if e.op == "cast" and is_integer(e.args[0].dtype) else e for e in (x, y))
    return b.cast(x, SHORT), b.cast(y, SHORT)
