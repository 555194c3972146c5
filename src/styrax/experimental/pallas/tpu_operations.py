"""Operations of TPU kernels that are arithmetic, and names of those that need a TPU's compiler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.arrays.array import Array
from ...core.hooks import lax, numpy
from ...core.types import dtypes
from ...core.types.typing import DTypeLike
from . import access
from .accelerators import only_on
from .access import RefLike
from .specs import SpaceNames

_TPU = "a TPU"


def roll(x: Array, shift: Array | int, axis: int, *, stride: int | None = None,
         stride_axis: int | None = None) -> Array:
    """Moves elements along an axis, those beyond the end to the beginning.

    Args:
      shift: by how many positions, not negative; may be traced.
      stride, stride_axis: by how many more positions each next row along another axis is moved.

    Raises:
      ValueError: a negative shift or stride, an axis out of range, one of `stride` and `stride_axis` alone, or
        both axes the same.
    """
    if isinstance(shift, int) and shift < 0:
        raise ValueError("shift must be non-negative.")
    if not 0 <= axis < x.ndim:
        raise ValueError(f"Axis {axis} is out of range for array of shape {x.shape}.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not specified.")
    if stride is None or stride_axis is None:
        return numpy.roll(x, shift, axis)
    if stride < 0:
        raise ValueError("stride must be non-negative.")
    if not 0 <= stride_axis < x.ndim or stride_axis == axis:
        raise ValueError(f"stride_axis {stride_axis} must be another axis than {axis} of an array of shape {x.shape}.")
    i32 = np.dtype(np.int32)
    moved = lax.add(lax.mul(lax.broadcasted_iota(i32, x.shape, stride_axis), np.int32(stride)),
                    lax.convert_element_type(shift, i32))
    source = lax.rem(lax.sub(lax.broadcasted_iota(i32, x.shape, axis), moved), np.int32(x.shape[axis]))
    return numpy.take_along_axis(x, source, axis)


def bitcast(x: Array, ty: DTypeLike) -> Array:
    """The bits of an array as elements of another dtype; the last axis but one is as much longer as they are shorter.

    Raises:
      ValueError: the array has less than two axes, or its rows do not make up whole elements.
    """
    new = dtypes.canonicalize_dtype(ty)
    if x.ndim < 2:
        raise ValueError("Not implemented: bitcast 1D")
    old_bytes, new_bytes = x.dtype.itemsize, new.itemsize
    if old_bytes == new_bytes:
        return lax.bitcast_convert_type(x, new)
    rows = x.shape[-2] * old_bytes
    if rows % new_bytes:
        raise ValueError(f"Not implemented: the second last axis of shape {x.shape} does not make up whole elements of "
                         f"{new}")
    if old_bytes > new_bytes:
        parts = lax.bitcast_convert_type(x, new)  # (..., rows, columns, parts)
        return numpy.moveaxis(parts, -1, -2).reshape(*x.shape[:-2], rows // new_bytes, x.shape[-1])
    ratio = new_bytes // old_bytes
    grouped = x.reshape(*x.shape[:-2], x.shape[-2] // ratio, ratio, x.shape[-1])
    return lax.bitcast_convert_type(numpy.moveaxis(grouped, -2, -1), new)


def einshape(equation: str, x: Array, assert_is_tile_preserving: bool = False, **sizes: int) -> Array:
    """Reshapes and transposes: `einshape("a(bc)->bac", x, b=2)` cuts the second axis in two and takes its parts apart.

    Args:
      equation: names of axes; parentheses stand for one axis that is cut (left) or made (right) of those inside.
      assert_is_tile_preserving: accepted and without effect.
      sizes: of axes that are cut out of one and not known from its size.

    Raises:
      ValueError: the equation does not fit the array.
    """
    left, _, right = equation.partition("->")
    before, after = _axes(left), _axes(right)
    if len(before) != x.ndim or sorted("".join(before)) != sorted("".join(after)):
        raise ValueError(f"einshape equation {equation!r} does not fit an array of shape {x.shape}")
    known = dict(sizes)
    for group, size in zip(before, x.shape, strict=True):
        unknown = [name for name in group if name not in known]
        rest = int(np.prod([known[name] for name in group if name in known], dtype=np.int64))
        if len(unknown) > 1 or size % rest or not unknown and rest != size:
            raise ValueError(f"einshape equation {equation!r} with sizes {sizes} does not cut {size} elements")
        if unknown:
            known[unknown[0]] = size // rest
    names = "".join(before)
    cut = x.reshape([known[name] for name in names])
    turned = lax.transpose(cut, [names.index(name) for name in "".join(after)])
    return turned.reshape([int(np.prod([known[name] for name in group], dtype=np.int64)) for group in after])


def _axes(text: str) -> list[str]:
    """The groups of names on one side of an equation."""
    groups: list[str] = []
    inside = False
    for letter in text:
        if letter in "()":
            inside = letter == "("
            if inside:
                groups.append("")
        elif inside:
            groups[-1] += letter
        else:
            groups.append(letter)
    return groups


def load(ref: RefLike, *, mask: Array | None = None) -> Array:
    """Reads a reference, or a view of one; where a mask is False, any value. See `triton.load`."""
    return access.load(ref, mask=mask)


def touch(ref: RefLike) -> None:
    """Says that a reference is used. CPUs see what is."""


def trace_value(label: str, value: Array) -> None:
    """Records a scalar in a profile of a TPU. Without effect on CPUs."""


def with_memory_space_constraint(x: Array, memory_space: SpaceNames) -> Array:
    """`x`, which is to be in a memory space. CPUs have one."""
    return x


def pack_elementwise(xs: Sequence[Array], *, packed_dtype: DTypeLike) -> Array:
    """Arrays of 32-bit elements side by side in the bits of one, the first in the lowest.

    Args:
      xs: as many arrays of one shape as narrower elements fit into one.
      packed_dtype: the narrower dtype: floating-point values are rounded, of integers the lowest bits are taken.

    Raises:
      ValueError: another number of arrays.
    """
    narrow = dtypes.canonicalize_dtype(packed_dtype)
    bits = 8 * narrow.itemsize
    if len(xs) * bits != 32:
        raise ValueError(f"The number of sources must match the packing factor (32 / {bits}), got {len(xs)}")
    word = np.dtype(np.uint32)
    total = None
    for i, x in enumerate(xs):
        part = lax.bitcast_convert_type(lax.convert_element_type(x, narrow), np.dtype(f"uint{bits}"))
        shifted = lax.shift_left(lax.convert_element_type(part, word), np.uint32(i * bits))
        total = shifted if total is None else lax.bitwise_or(total, shifted)
    assert total is not None
    return lax.bitcast_convert_type(total, np.dtype(np.int32))


def unpack_elementwise(x: Array, *, index: int, packed_dtype: DTypeLike, unpacked_dtype: DTypeLike) -> Array:
    """One of the arrays that `pack_elementwise` has put together, in a wider dtype."""
    narrow = dtypes.canonicalize_dtype(packed_dtype)
    bits = 8 * narrow.itemsize
    word = lax.shift_right_logical(lax.bitcast_convert_type(x, np.dtype(np.uint32)), np.uint32(index * bits))
    part = lax.bitcast_convert_type(lax.convert_element_type(word, np.dtype(f"uint{bits}")), narrow)
    return lax.convert_element_type(part, dtypes.canonicalize_dtype(unpacked_dtype))


core_barrier = only_on(_TPU, "core_barrier", "sem * core_axis_name")
emit_pipeline = only_on(_TPU, "emit_pipeline", "body * grid in_specs=() out_specs=() tiling=None core_axis=None "
                        "core_axis_name=None dimension_semantics=None trace_scopes=True no_pipelining=False "
                        "_explicit_indices=False")
emit_pipeline_with_allocations = only_on(_TPU, "emit_pipeline_with_allocations", "body * grid in_specs=() out_specs=()")
get_barrier_semaphore = only_on(_TPU, "get_barrier_semaphore")
matmul_acc_lhs = only_on(_TPU, "matmul_acc_lhs", "acc_addr lhs mxu_index load_staged_rhs=None")
matmul_pop = only_on(_TPU, "matmul_pop", "acc_addr shape dtype mxu_index")
matmul_push_rhs = only_on(_TPU, "matmul_push_rhs", "rhs staging_register mxu_index * transpose=False")
prng_random_bits = only_on(_TPU, "prng_random_bits", "shape")
prng_seed = only_on(_TPU, "prng_seed", "*seeds")
run_on_first_core = only_on(_TPU, "run_on_first_core", "core_axis_name")
sample_block = only_on(_TPU, "sample_block", "sampler_fn global_key block_size tile_size total_size block_index=None "
                       "**kwargs")
stateful_bernoulli = only_on(_TPU, "stateful_bernoulli", "*args **kwargs")
stateful_bits = only_on(_TPU, "stateful_bits", "*args **kwargs")
stateful_normal = only_on(_TPU, "stateful_normal", "*args **kwargs")
stateful_uniform = only_on(_TPU, "stateful_uniform", "*args **kwargs")
stochastic_round = only_on(_TPU, "stochastic_round", "x random_bits * target_dtype")
to_pallas_key = only_on(_TPU, "to_pallas_key", "key")
