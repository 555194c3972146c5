"""Convolutions: `conv_general_dilated`.

One primitive covers all of them, their transposes included: strides become holes between elements
(dilation) and the other way round, groups of features become groups of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.attributes import i64_array
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms import ad, batching
from styrax.transforms.batch import mapped_aval

from .. import factor_rules, sharding_rules
from ..casting import convert_element_type
from ..indexing.dimension_numbers import shape_of
from ..shaping.filling import full
from ..shaping.padding import PaddingType, dilated, padtype_to_pads, window_count
from ..shaping.reshaping import reshape, rev
from .contractions import PrecisionLike, canonicalize_precision
from .convolution_layouts import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    spatial_sizes,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

conv_general_dilated_p = Primitive("conv_general_dilated")
conv_general_dilated_p.declare(nan=True, sharding=sharding_rules.given("out_sharding", sharding_rules.convolution),
                               factors=factor_rules.convolution)


def _check_conv(lhs: Any, rhs: Any, strides: Sequence[int], dn: ConvDimensionNumbers, lhs_dilation: Sequence[int],
                rhs_dilation: Sequence[int], features: int, batches: int) -> None:
    name = "conv_general_dilated"
    if len(lhs.shape) != len(rhs.shape):
        raise TypeError(f"{name} lhs and rhs must have the same number of dimensions, but got {lhs.shape} and "
                        f"{rhs.shape}.")
    for what, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if count <= 0:
            raise ValueError(f"{name} {what} must be a positive integer, got {count}.")
    if features > 1 and batches > 1:
        raise ValueError("At most one of batch_group_count and feature_group_count may be > 1, got "
                         f"batch_group_count={batches} and feature_group_count={features}")
    batch, feature = (lhs.shape[d] for d in dn.lhs_spec[:2])
    out_feature, in_feature = (rhs.shape[d] for d in dn.rhs_spec[:2])
    if feature % features:
        raise ValueError(f"{name} feature_group_count must divide lhs feature dimension size, but {features} does not "
                         f"divide {feature}.")
    if feature // features != in_feature:
        raise ValueError(f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs input "
                         f"feature dimension size, but {feature} // {features} != {in_feature}.")
    if out_feature % features:
        raise ValueError(f"{name} rhs output feature dimension size must be a multiple of feature_group_count, but "
                         f"{out_feature} is not a multiple of {features}.")
    if batch % batches:
        raise ValueError(f"{name} batch_group_count must divide lhs batch dimension size, but {batches} does not "
                         f"divide {batch}.")
    if out_feature % batches:
        raise ValueError(f"{name} rhs output feature dimension size must be a multiple of batch_group_count, but "
                         f"{out_feature} is not a multiple of {batches}.")
    spatial = len(lhs.shape) - 2
    if len(strides) != spatial:
        raise ValueError(f"{name} window and window_strides must have the same number of dimensions, but got "
                         f"{spatial} and {len(strides)}")
    if any(s <= 0 for s in strides):
        raise ValueError(f"{name} window_strides must be positive, got {tuple(strides)}.")
    for what, dilation in (("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation)):
        if len(dilation) != spatial:
            raise ValueError(f"{name} {what} must have one factor for each of the {spatial} spatial dimensions, got "
                             f"{tuple(dilation)}.")
        if any(d <= 0 for d in dilation):
            raise ValueError(f"{name} {what} must be positive, got {tuple(dilation)}.")


@conv_general_dilated_p.def_abstract_eval
def _conv_abstract(lhs: ShapedArray, rhs: ShapedArray, *, window_strides: tuple[int, ...], padding: Any,
                   lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
                   dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
                   precision: Any, preferred_element_type: Any, out_sharding: Any = None) -> ShapedArray:
    dn = dimension_numbers
    if lhs.dtype != rhs.dtype:
        raise TypeError("lax.conv_general_dilated requires arguments to have the same dtypes, got "
                        f"{dtypes.dtype_name(lhs.dtype)}, {dtypes.dtype_name(rhs.dtype)}.")
    _check_conv(lhs, rhs, window_strides, dn, lhs_dilation, rhs_dilation, feature_group_count, batch_group_count)
    in_sizes = spatial_sizes(lhs.shape, dn.lhs_spec)
    if len(padding) != len(in_sizes):
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(in_sizes)}, got {len(padding)}.")
    padded = [dilated(n, d) + low + high for n, d, (low, high) in zip(in_sizes, lhs_dilation, padding, strict=True)]
    if any(n < 0 for n in padded):
        raise ValueError("Negative padding is larger than the size of the corresponding dimension: got "
                         f"padding={tuple(padding)} for lhs_shape[2:]={tuple(in_sizes)}")
    window = [dilated(k, d) for k, d in zip(spatial_sizes(rhs.shape, dn.rhs_spec), rhs_dilation, strict=True)]
    counts = [window_count(n, k, s) for n, k, s in zip(padded, window, window_strides, strict=True)]
    sizes = (lhs.shape[dn.lhs_spec[0]] // batch_group_count, rhs.shape[dn.rhs_spec[0]], *counts)
    shape = [0] * len(sizes)
    for d, n in zip(dn.out_spec, sizes, strict=True):
        shape[d] = n
    dtype = lhs.dtype
    if preferred_element_type is not None:
        _check_preferred(dtype, preferred_element_type)
        dtype = preferred_element_type
    return ShapedArray(tuple(shape), dtype, lhs.weak_type and rhs.weak_type)


def _check_preferred(dtype: Any, preferred: Any) -> None:
    if preferred == dtype:
        return
    kind = dtypes.kind(dtype)
    if kind != "b" and kind + dtypes.kind(preferred) not in ("ii", "uu", "ui", "if", "uf", "ff", "cc"):
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible combinations of (input_type, "
            "preferred_element_type) are (integral, integral), (integral, floating), (floating, floating), "
            "(complex, complex.")
    if preferred.itemsize < dtype.itemsize:
        raise TypeError("`preferred_element_type` must not be narrower than the original type, got "
                        f"preferred_element_type of {preferred} for input type of {dtype}.")


def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                         padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
                         rhs_dilation: Sequence[int] | None = None,
                         dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, feature_group_count: int = 1,
                         batch_group_count: int = 1, precision: PrecisionLike = None,
                         preferred_element_type: DTypeLike | None = None,
                         out_sharding: ShardingLike | None = None) -> Array:
    """The general convolution with dilation.

    Args:
      lhs: the input, of `n + 2` dimensions.
      rhs: the kernel, of `n + 2` dimensions; it is not flipped.
      window_strides: `n` strides.
      padding: "SAME", "SAME_LOWER", "VALID", or `n` pairs (low, high).
      lhs_dilation: `n` factors by which elements of the input are spread apart, for transposed
        convolutions.
      rhs_dilation: `n` factors by which elements of the kernel are spread apart.
      dimension_numbers: see `conv_dimension_numbers`.
      feature_group_count: number of groups in which input features are convolved separately.
      batch_group_count: number of groups in which the batch is convolved with separate features of the
        kernel.
      precision: as for `dot_general`; for accelerators.
      preferred_element_type: dtype to accumulate in and return; by default that of the operands.
      out_sharding: sharding of the result.

    Returns:
      the convolution, laid out as `dimension_numbers` says.

    Raises:
      TypeError, ValueError: for ranks, shapes, group counts or dtypes that do not fit together.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> x, w = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3))
      >>> jax.lax.conv_general_dilated(x, w, (1,), 'SAME', dimension_numbers=('NCH', 'OIH', 'NCH'))
      Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    dnums = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    spatial = len(shape_of(lhs)) - 2
    if lhs_dilation is None:
        lhs_dilation = (1,) * spatial
    elif isinstance(padding, (str, PaddingType)) and any(d != 1 for d in lhs_dilation):
        raise ValueError("String padding is not implemented for transposed convolution using this op. Please either "
                         "exactly specify the required padding or use conv_transpose.")
    if rhs_dilation is None:
        rhs_dilation = (1,) * spatial
    for dilation in (lhs_dilation, rhs_dilation):
        if any(d <= 0 for d in dilation):
            raise TypeError(f"All dilations must be positive, got {tuple(dilation)}.")
    if isinstance(padding, (str, PaddingType)):
        window = [dilated(k, d) for k, d in
                  zip(spatial_sizes(shape_of(rhs), dnums.rhs_spec), rhs_dilation, strict=False)]
        if len(window_strides) == spatial:
            padding = padtype_to_pads(spatial_sizes(shape_of(lhs), dnums.lhs_spec), window, window_strides, padding)
        else:
            padding = [(0, 0)] * spatial
    else:
        try:
            padding = [(int(low), int(high)) for low, high in padding]
        except (TypeError, ValueError):
            raise ValueError("padding argument to conv_general_dilated should be a string or a sequence of (low, high) "
                             f"pairs, got {padding}") from None
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    return conv_general_dilated_p.bind(
        lhs, rhs, window_strides=tuple(map(int, window_strides)), padding=tuple(padding),
        lhs_dilation=tuple(map(int, lhs_dilation)), rhs_dilation=tuple(map(int, rhs_dilation)),
        dimension_numbers=dnums, feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count), precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type, out_sharding=out_sharding)


# --- derivatives
def _axis_into(source: int, target: int, x: Any) -> Any:
    """Moves axis `source` in front of axis `target` (counted without it) and merges the two."""
    shape = list(shape_of(x))
    order = [d for d in range(len(shape)) if d != source]
    order.insert(target, source)
    sizes = [shape[d] for d in order]
    merged = (*sizes[:target], sizes[target] * sizes[target + 1], *sizes[target + 2:])
    if order == sorted(order):
        return reshape(x, merged)
    return reshape(x, merged, tuple(order))


def _axis_out_of(axis: int, outer: int, x: Any) -> Any:
    """Splits an axis into `outer` parts, a new axis in front of it."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], outer, shape[axis] // outer if outer else 0, *shape[axis + 1:]))


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _bind_transposed(x: Any, y: Any, params: dict[str, Any], dtype: Any, **changes: Any) -> Any:
    """A convolution in a transpose rule: its operands and result have the operands' dtype."""
    params = {**params, **changes, "preferred_element_type": None}
    return conv_general_dilated_p.bind(
        *(v if get_aval(v).dtype == dtype else convert_element_type(v, dtype) for v in (x, y)), **params)


def _conv_transpose_lhs(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """The gradient of the input: the cotangent, spread by the strides, with the flipped kernel."""
    dn: ConvDimensionNumbers = params["dimension_numbers"]
    dtype = lhs.aval.dtype
    if type(ct) is ad.Zero:
        return ad.Zero(lhs.aval)
    features, batches = params["feature_group_count"], params["batch_group_count"]
    groups = max(features, batches)
    lhs_sizes = spatial_sizes(lhs.aval.shape, dn.lhs_spec)
    rhs_sizes = spatial_sizes(shape_of(rhs), dn.rhs_spec)
    out_sizes = spatial_sizes(shape_of(ct), dn.out_spec)
    if groups > 1:
        rhs = _axis_out_of(dn.rhs_spec[0], groups, rhs)
        rhs = _axis_into(dn.rhs_spec[0], dn.rhs_spec[1], rhs)
    padding = []
    for n, k, o, ld, rd, s, (low, _) in zip(lhs_sizes, rhs_sizes, out_sizes, params["lhs_dilation"],
                                            params["rhs_dilation"], params["window_strides"], params["padding"],
                                            strict=True):
        before = dilated(k, rd) - low - 1
        padding.append((before, dilated(n, ld) + dilated(k, rd) - 1 - dilated(o, s) - before))
    out = _bind_transposed(
        ct, rev(rhs, dn.rhs_spec[2:]), params, dtype, window_strides=params["lhs_dilation"], padding=tuple(padding),
        out_sharding=lhs.aval.cotangent_sharding if batches == 1 else None,
        lhs_dilation=params["window_strides"], feature_group_count=groups, batch_group_count=1,
        dimension_numbers=ConvDimensionNumbers(dn.out_spec, _swapped(dn.rhs_spec), dn.lhs_spec))
    if batches > 1:
        out = _axis_out_of(dn.lhs_spec[1], batches, out)
        out = _axis_into(dn.lhs_spec[1], dn.lhs_spec[0], out)
    return out


def _conv_transpose_rhs(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """The gradient of the kernel: input with cotangent, batch and features exchanged."""
    dn: ConvDimensionNumbers = params["dimension_numbers"]
    dtype = rhs.aval.dtype
    if type(ct) is ad.Zero:
        return ad.Zero(rhs.aval)
    if 0 in shape_of(lhs) or 0 in shape_of(ct):
        return ad.Zero(rhs.aval)
    lhs_sizes = spatial_sizes(shape_of(lhs), dn.lhs_spec)
    rhs_sizes = spatial_sizes(rhs.aval.shape, dn.rhs_spec)
    out_sizes = spatial_sizes(shape_of(ct), dn.out_spec)
    padding = []
    for n, k, o, ld, rd, s, (low, _) in zip(lhs_sizes, rhs_sizes, out_sizes, params["lhs_dilation"],
                                            params["rhs_dilation"], params["window_strides"], params["padding"],
                                            strict=True):
        padding.append((low, dilated(o, s) - dilated(n, ld) + dilated(k, rd) - low - 1))
    return _bind_transposed(
        lhs, ct, params, dtype, window_strides=params["rhs_dilation"], padding=tuple(padding),
        out_sharding=rhs.aval.cotangent_sharding,
        rhs_dilation=params["window_strides"],
        feature_group_count=params["batch_group_count"], batch_group_count=params["feature_group_count"],
        dimension_numbers=ConvDimensionNumbers(*map(_swapped, (dn.lhs_spec, dn.out_spec, dn.rhs_spec))))


def _conv_jvp(tangent_of_lhs: bool) -> Any:
    def rule(tangent: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
        return conv_general_dilated_p.bind(*((tangent, rhs) if tangent_of_lhs else (lhs, tangent)), **params)

    return rule


ad.defjvp(conv_general_dilated_p, _conv_jvp(True), _conv_jvp(False))


def _conv_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    if ad.is_undefined_primal(lhs):
        return [_conv_transpose_lhs(ct, lhs, rhs, **params), None]
    return [None, _conv_transpose_rhs(ct, lhs, rhs, **params)]


rules.transposes[conv_general_dilated_p] = _conv_transpose


# --- batching
def _conv_batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
    lhs, rhs = args
    lhs_dim, rhs_dim = dims
    dn: ConvDimensionNumbers = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    batch_axis, feature_axis = dn.out_spec[:2]
    if 0 in (*shape_of(lhs), *shape_of(rhs)):  # zeros: groups could not be told apart
        example, _ = conv_general_dilated_p.abstract_eval(
            *(mapped_aval(d, get_aval(x)) for x, d in zip(args, dims, strict=True)), **params)
        size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return full((size, *example.shape), 0, example.dtype), 0
    if lhs_dim is not None and rhs_dim is not None:
        size = shape_of(lhs)[lhs_dim]
        rhs = _axis_into(rhs_dim, dn.rhs_spec[0], rhs)
        if batches > 1:
            lhs = _axis_into(lhs_dim, dn.lhs_spec[0], lhs)
            params["batch_group_count"] = batches * size
        else:
            lhs = _axis_into(lhs_dim, dn.lhs_spec[1], lhs)
            params["feature_group_count"] = features * size
        out = conv_general_dilated_p.bind(lhs, rhs, **params)
        return _axis_out_of(feature_axis, size, out), feature_axis
    if lhs_dim is not None:
        size = shape_of(lhs)[lhs_dim]
        axis = dn.lhs_spec[0]
        if batches > 1:
            # The mapped axis has to stand inside the groups.
            lhs = batching.moveaxis(lhs, lhs_dim, 0)
            lhs = _axis_out_of(axis + 1, batches, lhs)
            lhs = _axis_into(0, axis + 1, lhs)
            lhs = _axis_into(axis, axis, lhs)
        else:
            lhs = _axis_into(lhs_dim, axis, lhs)
        out = conv_general_dilated_p.bind(lhs, rhs, **params)
        return _axis_out_of(batch_axis, size, out), batch_axis
    size = shape_of(rhs)[rhs_dim]
    axis = dn.rhs_spec[0]
    groups = max(features, batches)
    if groups == 1:
        out = conv_general_dilated_p.bind(lhs, _axis_into(rhs_dim, axis, rhs), **params)
        return _axis_out_of(feature_axis, size, out), feature_axis
    rhs = batching.moveaxis(rhs, rhs_dim, 0)
    rhs = _axis_out_of(axis + 1, groups, rhs)
    rhs = _axis_into(0, axis + 1, rhs)
    rhs = _axis_into(axis, axis, rhs)
    out = conv_general_dilated_p.bind(lhs, rhs, **params)
    out = _axis_out_of(feature_axis, groups, out)
    out = _axis_out_of(feature_axis + 1, size, out)
    return _axis_into(feature_axis, feature_axis + 1, out), feature_axis


rules.batchers[conv_general_dilated_p] = _conv_batch


# --- lowerings
def _loops(b: Builder, lhs: Any, rhs: Any, **params: Any) -> Any:
    from .convolution_loops import convolution_loops

    return convolution_loops(b, lhs, rhs, **params)


rules.loops[conv_general_dilated_p] = _loops


def _hlo_dims(spec: Sequence[int], letters: str) -> str:
    names = [""] * len(spec)
    for position, d in enumerate(spec):
        names[d] = letters[position] if position < 2 else str(position - 2)
    return f"[{', '.join(names)}]"


def _conv_stablehlo(m: Any, lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
                    rhs_dilation: Any, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                    batch_group_count: int, precision: Any, preferred_element_type: Any, out_sharding: Any = None
                    ) -> Any:
    dn = dimension_numbers
    out = m.avals_out[0]
    if dtypes.kind(out.dtype) == "c":
        return m.call_traced(lambda x, y: _complex_conv(x, y, dict(
            window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
            dimension_numbers=dn, feature_group_count=feature_group_count, batch_group_count=batch_group_count,
            precision=precision, preferred_element_type=None, out_sharding=None)), lhs, rhs)
    numbers = f"{_hlo_dims(dn.lhs_spec, 'bf')}x{_hlo_dims(dn.rhs_spec, 'oi')}->{_hlo_dims(dn.out_spec, 'bf')}"
    spatial = len(window_strides)
    pads = (f"dense<{[list(p) for p in padding]}> : tensor<{spatial}x2xi64>" if spatial
            else "dense<> : tensor<0x2xi64>")
    pair = precision if type(precision) in (tuple, list) else (precision, precision)
    names = [getattr(p, "name", None) or "DEFAULT" for p in pair]
    attributes = ", ".join((
        f"batch_group_count = {batch_group_count} : i64",
        f"dimension_numbers = #stablehlo.conv<{numbers}>",
        f"feature_group_count = {feature_group_count} : i64",
        f"lhs_dilation = {i64_array(lhs_dilation)}",
        f"padding = {pads}",
        f"precision_config = [{', '.join(f'#stablehlo<precision {n}>' for n in names)}]",
        f"rhs_dilation = {i64_array(rhs_dilation)}",
        f"window_strides = {i64_array(window_strides)}",
    ))
    return m.op("stablehlo.convolution", [lhs, rhs], [out], attributes=attributes)


def _complex_conv(x: Any, y: Any, params: dict[str, Any]) -> Any:
    """A complex convolution out of three real ones, for platforms without complex ones."""
    from ..elementwise.arithmetic import add, sub
    from ..elementwise.functions import complex, imag, real

    def conv(p: Any, q: Any) -> Any:
        return conv_general_dilated_p.bind(p, q, **params)

    x_re, x_im, y_re, y_im = real(x), imag(x), real(y), imag(y)
    k1 = conv(add(x_re, x_im), y_re)
    k2 = conv(x_re, sub(y_im, y_re))
    k3 = conv(x_im, add(y_re, y_im))
    return complex(sub(k1, k3), add(k1, k2))


rules.stablehlos[conv_general_dilated_p] = _conv_stablehlo
