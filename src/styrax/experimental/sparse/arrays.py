"""What sparse arrays have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import Tracer
from styrax.core.types.typing import Axis, Index, Object, PyTree


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its buffers.

    Attributes:
      shape: its shape.
      indices_sorted: whether positions are known to be in lexicographical order.
      unique_indices: whether no position is known to be stored twice.
    """

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse:
    """A sparse array: buffers, of which some are indices, and a shape.

    Operators that a format does not have raise NotImplementedError.
    """

    data: Array
    shape: tuple[int, ...]
    _bufs: tuple[Array, ...]
    _names: ClassVar[tuple[str, ...]]  # of the buffers, `data` first
    __array_priority__ = 100  # operators of NumPy's arrays leave the work to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, args: Sequence[Array], *, shape: Sequence[int]):
        self.shape = tuple(shape)

    def _lacks(self, operation: str) -> NoReturn:
        # What each format has is JAX's choice, and so are the words.
        raise NotImplementedError(f"{type(self)}.{operation}")

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def nse(self) -> int:
        """How many elements are stored."""
        self._lacks("nse")

    @property
    def T(self) -> JAXSparse:
        return self.transpose()

    def _layout(self) -> dict[str, int]:
        """What a print tells besides dtype and shape."""
        return {"nse": self.nse}

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            layout = "".join(f", {key}={value}" for key, value in self._layout().items())
            text = f"{name}({self.dtype}{list(self.shape)}{layout})"
        except Exception:
            return f"{name}(<invalid>)"
        if isinstance(self.data, Tracer):
            return f"{type(self.data).__name__}[{text}]"
        return text

    def __len__(self) -> int:
        return self.shape[0]

    def block_until_ready(self) -> JAXSparse:
        """Waits until the buffers are computed. Returns the array."""
        for buffer in self._bufs:
            buffer.block_until_ready()
        return self

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        self._lacks("tree_flatten")

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[PyTree]) -> JAXSparse:
        """The array of the given buffers, which need not be arrays: transformations put other things in their place."""
        self = object.__new__(cls)
        for name, child in zip(cls._names, children, strict=True):
            setattr(self, name, child)
        return self

    def transpose(self, axes: Sequence[int] | None = None) -> JAXSparse:
        self._lacks("transpose")

    def todense(self) -> Array:
        self._lacks("todense")

    def sum(self, axis: Axis = None) -> JAXSparse | Array:
        self._lacks("sum")

    def __neg__(self) -> JAXSparse:
        self._lacks("__neg__")

    def __pos__(self) -> JAXSparse:
        self._lacks("__pos__")

    def __matmul__(self, other: Object) -> Any:
        self._lacks("__matmul__")

    def __rmatmul__(self, other: Object) -> Any:
        self._lacks("__rmatmul__")

    def __mul__(self, other: Object) -> Any:
        self._lacks("__mul__")

    def __rmul__(self, other: Object) -> Any:
        self._lacks("__rmul__")

    def __add__(self, other: Object) -> Any:
        self._lacks("__add__")

    def __radd__(self, other: Object) -> Any:
        self._lacks("__radd__")

    def __sub__(self, other: Object) -> Any:
        self._lacks("__sub__")

    def __rsub__(self, other: Object) -> Any:
        self._lacks("__rsub__")

    def __getitem__(self, item: Index) -> Any:
        self._lacks("__getitem__")
