"""Arguments of operations as arrays: numbers are kept, since programs are called with few of them, often."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..tracing.trace import get_aval
from ..types.avals import ShapedArray
from ..types.dtypes import python_scalar_dtype
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
        self._known: dict[Hashable, Array] = {}

    def operand(self, value: Any) -> Array:
        """An argument of an operation as an array. Numbers are kept: whoever gets one must not hand it out, since its
        owner could delete it."""
        kind = type(value)
        if kind in _SCALARS and not transfers.used:
            key = (kind, value.hex() if kind is float else value, python_scalar_dtype(kind))
            known = self._known.get(key)
            return self._keep(key, self._copy(value, get_aval(value), None)) if known is None else known
        if isinstance(value, (Array, Token)):
            return value  # type: ignore[return-value]
        aval = get_aval(value)
        if transfers.used:
            transfers.check(aval)
        if kind is not np.ndarray or value.ndim:
            return self._copy(value, aval, None)
        key = (kind, value.tobytes(), aval)
        known = self._known.get(key)
        return self._keep(key, self._copy(value, aval, None)) if known is None else known

    def _keep(self, key: Hashable, array: Array) -> Array:
        if len(self._known) > _MANY:
            self._known.clear()
        self._known[key] = array
        return array
