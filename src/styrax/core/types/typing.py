"""The words that annotations of public functions are written with.

    from styrax.core.arrays.array import Array
    from styrax.core.types.typing import ArrayLike, Axis, DTypeLike

    def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None) -> Array: ...

Results are `Array`, arguments `ArrayLike`. Modules import these names when they run, not only for type checkers, so
that `typing.get_type_hints` resolves every annotation. This module stands below all that use it: what lies above it
(`Array`, shardings) is a forward reference here. `ArrayLike` thus serves in annotations; `styrax.typing.ArrayLike` is
the one for `isinstance`. Take `Array` from `core.arrays.array`.

Where a parameter takes anything on purpose, one of the names at the end (`PyTree`, `Object`, `Function`) says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from types import EllipsisType
from typing import IO, TYPE_CHECKING, Any, ForwardRef, Protocol, SupportsIndex, TypeAlias, Union

import numpy as np

from ..arrays.devices import Device, Sharding

if TYPE_CHECKING:
    from ..arrays.array import Array
    from ..arrays.shardings import NamedSharding, PartitionSpec
else:
    Array = ForwardRef("Array", module="styrax.core.arrays.array")
    NamedSharding = ForwardRef("NamedSharding", module="styrax.core.arrays.shardings")
    PartitionSpec = ForwardRef("PartitionSpec", module="styrax.core.arrays.shardings")


# -- elements ----------------------------------------------------------------------------------
class SupportsDType(Protocol):
    """Anything with a `dtype`, such as an array or a scalar class."""

    @property
    def dtype(self) -> np.dtype: ...


DType: TypeAlias = np.dtype
"""The dtype of a result."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""What names a dtype: "float32", jnp.float32, float, np.dtype(...), or an array that has it."""

Scalar: TypeAlias = np.bool_ | np.number | bool | int | float | complex
"""A number of Python or NumPy."""

HostArray: TypeAlias = np.ndarray | Scalar
"""What functions of arrays take that is not an array of ours."""

ArrayLike: TypeAlias = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
"""An array or a number: what functions of arrays take."""


# -- what arrays are made from -------------------------------------------------------------------
class SupportsArray(Protocol):
    """Anything that NumPy makes an array of."""

    def __array__(self) -> np.ndarray: ...


class SupportsJaxArray(Protocol):
    """Anything that knows itself as one of our arrays."""

    def __jax_array__(self) -> Array: ...


class SupportsDLPack(Protocol):
    """Anything that lends its memory by the DLPack protocol."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


NestedArrayLike: TypeAlias = (
    ArrayLike | SupportsArray | SupportsJaxArray | memoryview | bytes | Sequence["NestedArrayLike"])
"""An array, a number, or sequences of them in sequences of one shape; what `array` takes."""


class SupportsShape(Protocol):
    """Anything with `shape` and `dtype`: an array, or a description of one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...


# -- shapes, axes, indices -----------------------------------------------------------------------
Dim: TypeAlias = SupportsIndex
"""The size of one dimension: an int, or a symbolic size."""

Shape: TypeAlias = Sequence[Dim]
"""A shape as an argument. Where one number will do as well: `ShapeLike`. Results are `tuple[int, ...]`."""

ShapeLike: TypeAlias = Dim | Shape
"""A shape, or the size of a vector."""

Axis: TypeAlias = int | Sequence[int] | None
"""Axes to work along: one, several, or None for all. Negative ones count from the end."""

AxisName: TypeAlias = Hashable
"""The name of a mapped axis or a mesh axis."""

Index: TypeAlias = ArrayLike | slice | EllipsisType | None | Sequence[int] | tuple["Index", ...]
"""What stands between brackets: `x[index]`."""


# -- places ----------------------------------------------------------------------------------------
DeviceLike: TypeAlias = Device | Sharding
"""Where an array is to live."""

ShardingLike: TypeAlias = Union[NamedSharding, PartitionSpec]  # noqa: UP007
"""How a result is spread over a mesh: `out_sharding`."""

File: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""A path, or a file opened for bytes."""


# -- anything, on purpose --------------------------------------------------------------------------
PyTree: TypeAlias = Any
"""Nested containers with arrays at their leaves. Python's types cannot say which, so checkers let all pass."""

Object: TypeAlias = Any
"""Any object of Python: what is only passed on, compared or printed."""

Function: TypeAlias = Callable[..., Any]
"""A function of the user's whose arguments only the user knows."""
