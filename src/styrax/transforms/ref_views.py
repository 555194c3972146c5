"""Views of references that hold all elements of what they look at: in another shape, order or dtype.

Each is one step of a view, beside the indexers of `ref_indexing`: it says what type the view has, what
is read through it, and how what was written to it goes back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import hooks
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.typing import DTypeLike

Type = tuple[tuple[int, ...], Any]  # a shape and a dtype


@dataclass(frozen=True, slots=True)
class ReshapeTransform:
    """The elements in another shape."""

    shape: tuple[int, ...]

    @classmethod
    def make(cls, shape: Sequence[int], old: tuple[int, ...]) -> ReshapeTransform:
        """Raises TypeError for what is no shape, ValueError for one of another size than `old`."""
        if not all(isinstance(d, (int, np.integer)) for d in shape):
            raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {tuple(shape)}.")
        new = tuple(int(d) for d in shape)
        if new.count(-1) > 1:
            raise ValueError(f"At most one dimension can be -1, but got {new}")
        if -1 in new:
            size, known = math.prod(old), math.prod(d for d in new if d != -1)
            if not known or size % known:
                raise ValueError(f"Specified dims {new} do not evenly divide the size of the ref ({size}).")
            new = tuple(size // known if d == -1 else d for d in new)
        if math.prod(new) != math.prod(old):
            raise ValueError(f"cannot reshape shape {old} into shape {new}")
        return cls(new)

    def of(self, shape: tuple[int, ...], dtype: Any) -> Type:
        return self.shape, dtype

    def read(self, x: Any) -> Any:
        return hooks.lax.reshape(x, self.shape)

    def restore(self, new: Any, old: Any) -> Any:
        return hooks.lax.reshape(new, get_aval(old).shape)

    def batched(self, size: int) -> ReshapeTransform:
        return ReshapeTransform((size, *self.shape))

    def __str__(self) -> str:
        return f"{{reshape({list(self.shape)})}}"


@dataclass(frozen=True, slots=True)
class TransposeTransform:
    """The dimensions in another order."""

    permutation: tuple[int, ...]

    @classmethod
    def make(cls, permutation: Sequence[int], rank: int) -> TransposeTransform:
        """Raises ValueError for what is no permutation of `rank` dimensions."""
        found = tuple(permutation)
        if len(found) != rank:
            raise ValueError(f"Permutation {found} does not match the rank of the type ({rank})")
        if sorted(p % rank for p in found) != list(range(rank)):
            raise ValueError(f"{found} is no permutation of {rank} dimensions")
        return cls(tuple(p % rank for p in found))

    @classmethod
    def to_front(cls, dim: int, rank: int) -> TransposeTransform:
        return cls((dim, *(i for i in range(rank) if i != dim)))

    def of(self, shape: tuple[int, ...], dtype: Any) -> Type:
        return tuple(shape[p] for p in self.permutation), dtype

    def read(self, x: Any) -> Any:
        return hooks.lax.transpose(x, self.permutation)

    def restore(self, new: Any, old: Any) -> Any:
        return hooks.lax.transpose(new, tuple(int(i) for i in np.argsort(self.permutation)))

    def batched(self, size: int) -> TransposeTransform:
        return TransposeTransform((0, *(p + 1 for p in self.permutation)))

    def __str__(self) -> str:
        return f"{{transpose({list(self.permutation)})}}"


@dataclass(frozen=True, slots=True)
class BitcastTransform:
    """The bits as another dtype. Where the width changes, rows become more or fewer, as parts lie in rows."""

    dtype: Any

    @classmethod
    def make(cls, dtype: DTypeLike, shape: tuple[int, ...], old: Any) -> BitcastTransform:
        """Raises NotImplementedError or ValueError where there are no rows for the parts, or not enough."""
        new = cls(dtypes.canonicalize_dtype(dtype))
        before, after = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new.dtype)
        if before != after:
            if len(shape) < 2:
                raise NotImplementedError("Bitcast 1D ref with bitwidth change is not supported.")
            if shape[-2] * before % after:
                raise ValueError("Expected input and output shapes are the same after multiplying the second-minor "
                                 "dimension by the bitwidths.")
        return new

    def of(self, shape: tuple[int, ...], dtype: Any) -> Type:
        before, after = dtypes.itemsize_bits(dtype), dtypes.itemsize_bits(self.dtype)
        if before != after:
            shape = (*shape[:-2], shape[-2] * before // after, shape[-1])
        return shape, self.dtype

    def read(self, x: Any) -> Any:
        return _bitcast(x, self.dtype)

    def restore(self, new: Any, old: Any) -> Any:
        return _bitcast(new, get_aval(old).dtype)

    def batched(self, size: int) -> BitcastTransform:
        return self

    def __str__(self) -> str:
        return f"{{bitcast({self.dtype})}}"


Rearrangement = ReshapeTransform | TransposeTransform | BitcastTransform


def _bitcast(x: Any, dtype: Any) -> Any:
    lax = hooks.lax
    aval = get_aval(x)
    before, after = dtypes.itemsize_bits(aval.dtype), dtypes.itemsize_bits(dtype)
    if before == after:
        return lax.bitcast_convert_type(x, dtype)
    *outer, rows, columns = aval.shape
    last = len(outer)
    order = (*range(last), last, last + 2, last + 1)
    if before > after:
        parts = lax.transpose(lax.bitcast_convert_type(x, dtype), order)
        return lax.reshape(parts, (*outer, rows * (before // after), columns))
    ratio = after // before
    parts = lax.reshape(x, (*outer, rows // ratio, ratio, columns))
    return lax.bitcast_convert_type(lax.transpose(parts, order), dtype)


for _step in (ReshapeTransform, TransposeTransform, BitcastTransform):
    tree.register_pytree_node(_step, lambda step: ((), step), lambda step, _: step)
