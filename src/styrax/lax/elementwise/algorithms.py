"""Iterative algorithms on one number, written once for both lowerings.

A special function is a Python function of `Number` values. Run with `ScalarOps` it writes the native
code of one element, with real loops; run with `ArrayOps` it applies operations of `lax` to whole
arrays, whose loops go on until every element is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes


class Number:
    """A number (or an array of them) with Python's operators."""

    __slots__ = ("ops", "value")

    def __init__(self, ops: Any, value: Any):
        self.ops = ops
        self.value = value

    def _binary(self, name: str, other: Any, swap: bool = False) -> Number:
        x, y = self.value, self.ops.lift(other, self.value)
        return Number(self.ops, self.ops.call(name, y, x) if swap else self.ops.call(name, x, y))

    def __add__(self, other: Any) -> Number:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Number:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Number:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Number:
        return self._binary("sub", other, True)

    def __mul__(self, other: Any) -> Number:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Number:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Any) -> Number:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._binary("div", other, True)

    def __pow__(self, other: Any) -> Number:
        return self._binary("pow", other)

    def __neg__(self) -> Number:
        return Number(self.ops, self.ops.call("neg", self.value))

    def __lt__(self, other: Any) -> Number:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Number:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Number:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> Number:
        return self._binary("ge", other)

    def equals(self, other: Any) -> Number:
        return self._binary("eq", other)

    def differs(self, other: Any) -> Number:
        return self._binary("ne", other)

    def __and__(self, other: Number) -> Number:
        return Number(self.ops, self.ops.call("and_", self.value, other.value))

    def __or__(self, other: Number) -> Number:
        return Number(self.ops, self.ops.call("or_", self.value, other.value))

    def __invert__(self) -> Number:
        return Number(self.ops, self.ops.call("not_", self.value))

    def where(self, on_true: Any, on_false: Any) -> Number:
        """`on_true` where this condition holds, else `on_false`."""
        pattern = next(v.value for v in (on_true, on_false) if isinstance(v, Number))
        return Number(
            self.ops,
            self.ops.select(self.value, self.ops.lift(on_true, pattern), self.ops.lift(on_false, pattern)),
        )

    def like(self, number: float) -> Number:
        """A constant of this value's dtype and shape."""
        return Number(self.ops, self.ops.full(number, self.value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *others: Number(
            self.ops, self.ops.call(name, self.value, *[self.ops.lift(o, self.value) for o in others])
        )


class ScalarOps:
    """Native code of one element: `b` builds scalars, `n` statements."""

    def __init__(self, b: Any, n: Any, tolerance: float | None = None):
        self.b = b
        self.n = n
        self._tolerance = tolerance

    def call(self, name: str, *xs: Any) -> Any:
        return getattr(self.b, name)(*xs)

    def lift(self, x: Any, pattern: Any) -> Any:
        return x.value if isinstance(x, Number) else self.b.const(x, pattern.dtype)

    full = lift

    def select(self, condition: Any, on_true: Any, on_false: Any) -> Any:
        return self.b.select(condition, on_true, on_false)

    def epsilon(self, pattern: Any) -> float:
        return float(np.finfo(pattern.dtype).eps)

    def tolerance(self, pattern: Any) -> float:
        return self.epsilon(pattern) if self._tolerance is None else self._tolerance

    def loop(
        self, going: Callable[..., Number], step: Callable[..., Sequence[Number]], start: Sequence[Number]
    ) -> list[Number]:
        """Repeats `step` on the state as long as `going` holds of it."""
        cells = [self.n.var(s.value.dtype, s.value) for s in start]

        def now() -> list[Number]:
            return [Number(self, c.get()) for c in cells]

        with self.n.while_(lambda: going(*now()).value):
            for cell, new in zip(cells, step(*now()), strict=True):
                cell.set(new.value)
        return now()


class ArrayOps:
    """Operations of `lax` on arrays of one shape."""

    _NAMES = {
        "and_": "bitwise_and",
        "or_": "bitwise_or",
        "not_": "bitwise_not",
        "shr_logical": "shift_right_logical",
    }

    def call(self, name: str, *xs: Any) -> Any:
        return getattr(lax, self._NAMES.get(name, name))(*xs)

    def lift(self, x: Any, pattern: Any) -> Any:
        return x.value if isinstance(x, Number) else np.asarray(x, get_aval(pattern).dtype)

    def full(self, x: Any, pattern: Any) -> Any:
        return lax.full_like(pattern, x)

    def select(self, condition: Any, on_true: Any, on_false: Any) -> Any:
        shape = get_aval(condition).shape

        def spread(x: Any) -> Any:
            return x if get_aval(x).shape == shape else lax.broadcast_in_dim(x, shape, ())

        return lax.select(condition, spread(on_true), spread(on_false))

    def epsilon(self, pattern: Any) -> float:
        return float(dtypes.finfo(get_aval(pattern).dtype).eps)

    tolerance = epsilon

    def loop(
        self, going: Callable[..., Number], step: Callable[..., Sequence[Number]], start: Sequence[Number]
    ) -> list[Number]:
        """Repeats `step` on the state as long as `going` holds of it."""
        def numbers(values: Sequence[Any]) -> list[Number]:
            return [Number(self, v) for v in values]

        def any_active(carry: Any) -> Any:
            active = carry[0]
            return lax.reduce_or(active, tuple(range(get_aval(active).ndim)))

        def advance(carry: Any) -> Any:
            active, *old = carry
            new = [
                lax.select(active, n.value, o) for n, o in zip(step(*numbers(old)), old, strict=True)
            ]
            return [lax.bitwise_and(active, going(*numbers(new)).value), *new]

        carry = [going(*start).value, *[s.value for s in start]]
        return numbers(lax.while_loop(any_active, advance, carry)[1:])


class CountingOps:
    """Computes nothing: for asking an algorithm how many results it has."""

    def call(self, name: str, *xs: Any) -> Any:
        return None

    lift = full = select = call

    def epsilon(self, pattern: Any) -> float:
        return 1e-16

    tolerance = epsilon

    def loop(self, going: Any, step: Any, start: Sequence[Number]) -> list[Number]:
        return list(start)
