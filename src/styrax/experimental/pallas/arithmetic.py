"""Sizes and strides, and what kernels tell the compiler about integers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...core.arrays.array import Array
from ...core.hooks import lax, numpy
from ...core.types import dtypes
from ...core.types.typing import ArrayLike
from ...lax.reductions.contractions import PrecisionLike


def dot(a: Array, b: Array, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None,
        precision: PrecisionLike = None) -> Array:
    """The product of two matrices, of which each may be transposed; sums are float32, or int32 of integers.

    Args:
      a, b: matrices.
      trans_a, trans_b: whether they are transposed before.
      allow_tf32: whether rounded operands may be used, as a short form of `precision`.
      precision: how exact the product is, see `jax.lax.dot_general`.

    Raises:
      ValueError: they are no matrices, or both `allow_tf32` and `precision` are given.
    """
    if np.ndim(a) != 2 or np.ndim(b) != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = "high" if allow_tf32 else "highest"
    integers = dtypes.issubdtype(dtypes.result_type(a, b), np.integer)
    return lax.dot_general(a, b, (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())), precision=precision,
                           preferred_element_type=np.int32 if integers else np.float32)


def cdiv(a: int | Array, b: int | Array) -> int | Array:
    """The quotient of integers, rounded up: `cdiv(7, 2) == 4`."""
    if isinstance(a, int) and isinstance(b, int):
        return (a + b - 1) // b
    return lax.div(a + (b - 1), b)


def align_to(a: int | Array, alignment: int | Array) -> int | Array:
    """The least multiple of an integer that is not below `a`: `align_to(5, 4) == 8`."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below `x`.

    Raises:
      ValueError: `x` is negative.
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 << (x - 1).bit_length() if x else 1


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements apart neighbours lie along each dimension, rows after rows."""
    sizes = itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)
    return tuple(reversed(list(sizes))) if shape else ()


def multiple_of(x: Array, values: Sequence[int] | int) -> Array:
    """`x`, of which the caller promises that it is a multiple of `values`. CPUs have no use for the promise."""
    return x


def max_contiguous(x: Array, values: Sequence[int] | int) -> Array:
    """`x`, of which the caller promises how many values follow one another. CPUs have no use for the promise."""
    return x


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Array:
    """`1 / x`, of the shape and the floating-point dtype of `x`.

    Args:
      approx: whether fewer digits do. On CPUs all are computed.
      full_range: whether denormal numbers must be right. They are.

    Raises:
      TypeError: `x` is not of a floating-point dtype.
    """
    if not dtypes.issubdtype(dtypes.dtype(x), np.inexact):
        raise TypeError(f"reciprocal takes floating-point numbers, not {dtypes.dtype(x)}")
    return lax.integer_pow(x, -1)


def broadcast_to(a: Array, shape: tuple[int, ...]) -> Array:
    """An array spread to a shape as in NumPy.

    Raises:
      ValueError: the shapes do not fit.
    """
    return numpy.broadcast_to(a, shape)

