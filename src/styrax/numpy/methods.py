"""Methods and properties of arrays and tracers that are more than a function of the library.

`core.hooks.METHODS` names those that are defined here.
"""

from __future__ import annotations

import operator as py_operator
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from styrax import lax
from styrax.core import hooks
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary, hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DeviceLike, DTypeLike, Index, Object, ShapeLike, ShardingLike

from . import conversion, shaping
from .promotion import user_dtype


def __iter__(self: Array) -> Iterator[Array]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (lax.index_in_dim(self, i, keepdims=False) for i in range(self.shape[0]))


def __setitem__(self: Array, index: Index, value: ArrayLike) -> None:
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
        "x = x.at[idx].set(y) or another .at[] method: "
        "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


@api_boundary
def __delitem__(self: Array, index: Index) -> None:
    raise AttributeError("__delitem__: JAX arrays are immutable; jnp.delete gives a copy without some of its elements")


def copy(self: Array) -> Array:
    """A copy of the array."""
    return lax.copy_p.bind(self)


def __deepcopy__(self: Array, memo: Object) -> Array:
    return lax.copy_p.bind(self)


def astype(self: Array, dtype: DTypeLike | None, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """The array with its elements converted to `dtype`. See `astype`."""
    try:
        return conversion.astype(self, dtype, copy=copy, device=device)
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def reshape(self: Array, *args: ShapeLike, order: str = "C", out_sharding: ShardingLike | None = None) -> Array:
    """The array in another shape, given as one sequence or as arguments. See `reshape`."""
    if out_sharding is not None:
        shape: Any = args[0] if len(args) == 1 else args
        return shaping.reshape(self, shape, order, out_sharding=out_sharding)
    return shaping.reshape_to(self, *args, order=order)


@api_boundary
def transpose(self: Array, *args: int | Sequence[int] | None) -> Array:
    """The array with its axes in another order, given as one sequence or as arguments; reversed by default."""
    if not args:
        return shaping.transpose(self)
    if len(args) == 1 and (args[0] is None or hasattr(args[0], "__iter__")):
        return shaping.transpose(self, args[0])  # type: ignore[arg-type]
    return shaping.transpose(self, args)  # type: ignore[arg-type]


def flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """The elements as a vector, in row order (or column order for "F")."""
    return shaping.ravel(self, order=order, out_sharding=out_sharding)


def item(self: Array, *args: int | tuple[int, ...]) -> bool | int | float | complex:
    """The one element, or the one at an index, as a Python number."""
    array: Any = np.asarray(self)
    if not args and array.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return array.item(*(py_operator.index(a) if not isinstance(a, tuple) else a for a in args))


@api_boundary
def view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The bytes of the array as elements of another dtype; the last axis grows or shrinks with their size.

    Raises ValueError where the sizes do not divide, NotImplementedError for `type`.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    target = user_dtype(dtype, "view")
    have = self.dtype
    if self.ndim == 0 and dtypes.itemsize_bits(have) != dtypes.itemsize_bits(target):
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if have == target:
        return self
    if target == np.bool_ or have == np.bool_:
        return _bool_view(self, have, target)
    if dtypes.issubdtype(have, np.complexfloating) or dtypes.issubdtype(target, np.complexfloating):
        return _complex_view(self, have, target)
    if have.itemsize == target.itemsize and dtypes.itemsize_bits(have) == dtypes.itemsize_bits(target):
        return lax.bitcast_convert_type(self, target)
    old, new = dtypes.itemsize_bits(have), dtypes.itemsize_bits(target)
    if new < old:
        out = lax.bitcast_convert_type(self, target)
        return lax.reshape(out, (*self.shape[:-1], self.shape[-1] * (old // new)))
    if (self.shape[-1] * old) % new:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                         "the last axis of the array.")
    rows = lax.reshape(self, (*self.shape[:-1], self.shape[-1] * old // new, new // old))
    return lax.bitcast_convert_type(rows, target)


def _bool_view(self: Array, have: Any, target: Any) -> Array:
    if have == np.bool_:
        return view(lax.convert_element_type(self, np.dtype(np.uint8)), target)
    if have.itemsize != 1:
        return _bool_view(view(self, np.uint8), np.dtype(np.uint8), target)
    return lax.ne(lax.bitcast_convert_type(self, np.dtype(np.uint8)), np.uint8(0))


def _complex_view(self: Array, have: Any, target: Any) -> Array:
    if dtypes.issubdtype(have, np.complexfloating):
        part = np.empty(0, have).real.dtype
        pairs = lax.stack([lax.real(self), lax.imag(self)], self.ndim)
        flat = lax.reshape(pairs, (*self.shape[:-1], self.shape[-1] * 2)) if self.ndim else pairs
        return view(flat, target) if target != part else flat
    part = np.empty(0, target).real.dtype
    halves = view(self, part)
    if halves.shape[-1] % 2:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                         "the last axis of the array.")
    pairs = lax.reshape(halves, (*halves.shape[:-1], halves.shape[-1] // 2, 2))
    last = pairs.ndim - 1
    return lax.complex(
        lax.index_in_dim(pairs, 0, last, keepdims=False), lax.index_in_dim(pairs, 1, last, keepdims=False)
    )


def to_device(self: Array, device: DeviceLike, *, stream: Object = None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    from styrax.lax.collectives.placing import device_put

    return device_put(self, device)


def byteswap(self: Array, inplace: bool = False) -> Array:
    """The elements with their bytes in reverse order."""
    if inplace:
        raise NotImplementedError("array.byteswap() with inplace=True: JAX arrays are immutable")
    size = self.dtype.itemsize
    if size == 1:
        return self
    if dtypes.issubdtype(self.dtype, np.complexfloating):
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    return lax.bitcast_convert_type(
        lax.rev(lax.bitcast_convert_type(self, np.dtype(np.uint8)), (self.ndim,)), self.dtype
    )


def platform(self: Array) -> str:
    """The name of the platform that the array lives on."""
    return next(iter(self.devices())).platform


def __array_namespace__(self: Array, /, *, api_version: str | None = None) -> ModuleType:
    """The module of functions on arrays of this kind, as the array API asks for."""
    available = [hooks.numpy.__array_api_version__]
    if api_version is not None and api_version not in available:
        raise ValueError(f"{api_version=} is not available; available versions are: {available}")
    return hooks.numpy


@api_boundary
def flat(self: Array) -> NoReturn:
    """Refused: arrays are not changed in place."""
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


def diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals. See `diagonal`."""
    return shaping.diagonal(self, offset=offset, axis1=axis1, axis2=axis2)


def mT(self: Array) -> Array:
    """The array with its last two axes exchanged."""
    if self.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={self.ndim}")
    return shaping.matrix_transpose(self)


def itemsize(self: Array) -> int:
    """The bytes of one element."""
    return self.dtype.itemsize


def nbytes(self: Array) -> int:
    """The bytes of all elements."""
    return self.size * self.dtype.itemsize
