"""Arguments of operations as arrays: numbers are kept, since programs are called with few of them, often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracing.trace import get_aval
from ..types.avals import ShapedArray
from . import transfers
from .array import Array
from .tokens import Token

_SCALARS = frozenset((bool, int, float))
_MANY = 1024  # numbers that are kept


class Operands:
    """A backend's `operand`, given what makes a new array of a value of a type (on a device or None)."""

    __slots__ = ("_copy", "_known")

    def __init__(self, copy: Callable[[Any, ShapedArray, Any], Array]):
        self._copy = copy
        self._known: dict[Any, Array] = {}

    def operand(self, value: Any) -> Array:
        """An argument of an operation as an array. Numbers are kept: whoever gets one must not hand it out, since its
        owner could delete it."""
        if isinstance(value, Array | Token):
            return value  # type: ignore[return-value]
        kind, aval = type(value), get_aval(value)
        if transfers.used:
            transfers.check(aval)
        if kind not in _SCALARS and not (kind is np.ndarray and value.ndim == 0):
            return self._copy(value, aval, None)
        bits = value.tobytes() if kind is np.ndarray else value.hex() if kind is float else value
        key = (kind, bits, aval)
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _MANY:
                self._known.clear()
            known = self._known[key] = self._copy(value, aval, None)
        return known
