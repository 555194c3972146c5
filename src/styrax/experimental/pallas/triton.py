"""Names of JAX's Triton kernels: loads, stores and updates under masks, which work on CPUs."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.arrays.array import Array
from ...core.hooks import lax, numpy
from ...core.types.typing import ArrayLike
from . import access
from .accelerators import only_on
from .access import (
    RefLike,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
)
from .arithmetic import max_contiguous


@dataclass(frozen=True)
class CompilerParams:
    """What is said to Triton's compiler. Accepted and without effect on CPUs."""

    num_warps: int | None = None
    num_stages: int | None = None


def load(ref: RefLike, *, mask: Array | None = None, other: ArrayLike | None = None,
         cache_modifier: str | None = None, eviction_policy: str | None = None, volatile: bool = False) -> Array:
    """Reads a reference, or a view of one such as `x_ref.at[pl.ds(start, 8)]`.

    Args:
      mask: boolean array that can be broadcast to what is read. Where it is False, what lies there does not matter; it
        may be outside of the reference.
      other: what is given where the mask is False; without it, any value.
      cache_modifier, eviction_policy, volatile: for GPUs; without effect on CPUs.

    Raises:
      ValueError: `other` without a mask, or a mask that does not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> from styrax.experimental.pallas import triton as plgpu
      >>> def kernel(x_ref, o_ref):
      ...     o_ref[...] = plgpu.load(x_ref.at[pl.ds(0, 4)], mask=jnp.arange(4) < 3, other=-1)
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.arange(4))
      Array([ 0,  1,  2, -1], dtype=int32)
    """
    return access.load(ref, mask=mask, other=other)


def store(ref: RefLike, val: ArrayLike, *, mask: Array | None = None, eviction_policy: str | None = None) -> None:
    """Writes a reference, or a view of one, where a mask is True; nothing is written outside of it.

    Args:
      val: array that can be broadcast to the shape of what is written.
      mask: boolean array that can be broadcast to it; None for True.
      eviction_policy: for GPUs; without effect on CPUs.

    Raises:
      ValueError: shapes or dtypes do not fit.
    """
    access.store(ref, val, mask=mask)


def dot(a: Array, b: Array, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None,
        precision: lax.PrecisionLike = None) -> Array:
    """The product of two matrices in float32, or in int32 for integers, each of which may be transposed first.

    Raises:
      ValueError: operands that are no matrices, or both `allow_tf32` and `precision`.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None and precision is not None:
        raise ValueError("Only one of allow_tf32 and precision can be specified")
    wide = numpy.int32 if numpy.issubdtype(a.dtype, numpy.integer) else numpy.float32
    return lax.dot_general(a, b, (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())), precision=precision,
                           preferred_element_type=wide)


def approx_tanh(x: Array) -> Array:
    """The hyperbolic tangent, of which fewer digits would do. CPUs compute all of them."""
    return lax.tanh(x)


def debug_barrier() -> None:
    """Waits for the other threads of a block of the grid. On CPUs there is one."""


elementwise_inline_asm = only_on("a GPU", "elementwise_inline_asm", "asm * args constraints pack result_shape_dtypes")

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "elementwise_inline_asm", "load", "max_contiguous", "store",
]
