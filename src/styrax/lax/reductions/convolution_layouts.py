"""Layouts of convolutions: which dimension is batch, feature or space, and the shapes that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias


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
