"""Layouts of convolutions: which dimension is batch, feature or space, the shapes that follow, what meets what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from styrax.core.types import dtypes

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value


class ConvDimensionNumbers(NamedTuple):
    """Which dimension plays which part in a convolution.

    Args:
      lhs_spec: batch dimension, feature dimension, spatial dimensions of the input.
      rhs_spec: output feature dimension, input feature dimension, spatial dimensions of the kernel.
      out_spec: as `lhs_spec`, of the result.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers: TypeAlias = tuple[str, str, str] | ConvDimensionNumbers | None
"""Dimension numbers as arguments: three strings such as ("NCHW", "OIHW", "NCHW"), or in full, or the default."""


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The permutations to (batch, feature, spatial) order of three dimension strings.

    Args:
      dimension_numbers: strings such as `("NHWC", "HWIO", "NHWC")` for input, kernel and result.

    Returns:
      for each of them a tuple of dimensions: of batch and feature (the kernel: outputs and inputs), then of the spatial
      ones in the kernel's order.

    Raises:
      TypeError: for strings that lack a dimension, repeat one or do not agree.
    """
    lhs, rhs, out = dimension_numbers
    pairs = (("N", "C"), ("O", "I"), ("N", "C"))
    for i, (spec, (a, c)) in enumerate(zip((lhs, rhs, out), pairs, strict=True)):
        if spec.count(a) != 1 or spec.count(c) != 1:
            raise TypeError(f"convolution dimension_numbers[{i}] must contain the characters '{a}' and '{c}' exactly "
                            f"once, got {spec}.")
        if len(spec) != len(set(spec)):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}.")
    if not set(lhs) - {"N", "C"} == set(rhs) - {"O", "I"} == set(out) - {"N", "C"}:
        raise TypeError("convolution dimension_numbers elements must each have the same set of spatial characters, "
                        f"got {tuple(dimension_numbers)}.")
    spatial = [c for c in rhs if c not in "OI"]  # the kernel's order is everybody's

    def permutation(spec: str, first: str, second: str) -> tuple[int, ...]:
        return (spec.index(first), spec.index(second), *(spec.index(c) for c in spatial))

    return permutation(lhs, "N", "C"), permutation(rhs, "O", "I"), permutation(out, "N", "C")


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: ConvGeneralDilatedDimensionNumbers) -> ConvDimensionNumbers:
    """Dimension numbers in full, of None (batch, feature, spatial everywhere) or of three strings.

    Args:
      lhs_shape, rhs_shape: shapes of input and kernel, of equal rank.
      dimension_numbers: None, a `ConvDimensionNumbers`, or strings such as `("NHWC", "HWIO", "NHWC")`.

    Returns:
      a `ConvDimensionNumbers`.

    Raises:
      TypeError: for ranks that differ and for strings that do not describe them.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError("convolution requires lhs and rhs ndim to be equal, got "
                        f"{len(lhs_shape)} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        plain = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(plain, plain, plain)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError("convolution dimension_numbers must be tuple/list or None, got "
                        f"{type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}.")
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError("convolution dimension_numbers elements must be strings, got "
                        f"{tuple(map(type, dimension_numbers))}.")
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != len(lhs_shape):
            raise TypeError(f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, got "
                            f"{len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}.")
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def spatial_sizes(shape: Sequence[int], spec: Sequence[int]) -> list[int]:
    return [shape[d] for d in spec[2:]]


class Convolution:
    """A convolution but for its operands. `padding` has what goes before each dimension; the rest follows."""

    __slots__ = ("batch_groups", "dims", "feature_groups", "lhs_dilation", "padding", "rhs_dilation", "strides")

    def __init__(self, strides: tuple[int, ...], padding: tuple[int, ...], lhs_dilation: tuple[int, ...],
                 rhs_dilation: tuple[int, ...], dims: ConvDimensionNumbers, feature_groups: int, batch_groups: int):
        self.strides, self.padding = strides, padding
        self.lhs_dilation, self.rhs_dilation = lhs_dilation, rhs_dilation
        self.dims = dims
        self.feature_groups, self.batch_groups = feature_groups, batch_groups

    def moved(self, lhs: Sequence[int], rhs: Sequence[int], out: Sequence[int]) -> Convolution:
        """Of operands whose dimensions stand in other orders."""
        specs = [tuple(order.index(d) for d in spec) for order, spec in zip((lhs, rhs, out), self.dims, strict=True)]
        return Convolution(self.strides, self.padding, self.lhs_dilation, self.rhs_dilation,
                           ConvDimensionNumbers(*specs), self.feature_groups, self.batch_groups)

    @property
    def has_holes(self) -> bool:
        return any(d > 1 for d in self.lhs_dilation)

    def spaces(self, lhs: Any, rhs: Any, shape: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """The sizes of the result's space, of the input's, and of the kernel's."""
        outs, sizes, taps = (spatial_sizes(s, spec) for s, spec in (
            (shape, self.dims.out_spec), (lhs.shape, self.dims.lhs_spec), (rhs.shape, self.dims.rhs_spec)))
        return outs, sizes, taps

    def meeting(self, b: Builder, k: int, out: Any, number: Any) -> tuple[Any, Any]:
        """Of the taps of dimension k that meet an element of the input with holes at a place of the result, one by
        number, and the element; either may be behind an end. o·stride + t·dilation - low is a multiple of the holes for
        every so-manyth t, if dilation and holes have no common factor."""
        holes, dilation = self.lhs_dilation[k], self.rhs_dilation[k]
        start = b.sub(b.mul(out, b.index(self.strides[k])), b.index(self.padding[k]))
        first = b.floormod(b.mul(start, b.index(-pow(dilation, -1, holes))), b.index(holes))
        tap = b.add(first, b.mul(b.index(number), b.index(holes)))
        return tap, b.floordiv(b.add(start, b.mul(tap, b.index(dilation))), b.index(holes))


def accumulation_dtype(dtype: Any) -> Any:
    """Half precisions are summed in f32."""
    return np.dtype(np.float32) if dtypes.kind(dtype) == "f" and dtype.itemsize <= 2 else dtype


def inside(b: Builder, tap: Any, taps: int, place: Any, size: int) -> list[Any]:
    """What holds where there are such a tap and such an element."""
    return [b.lt(tap, b.index(taps)), b.ge(place, b.index(0)), b.lt(place, b.index(size))]


def ordered(b: Builder, x: Value, order: Sequence[int]) -> Value:
    """With dimensions in another order."""
    if tuple(order) == tuple(range(len(order))):
        return x
    places = [order.index(d) for d in range(len(order))]
    return b.value([x.shape[d] for d in order], x.dtype, lambda i: x.at([i[k] for k in places]))
