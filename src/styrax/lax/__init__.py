"""The operations: primitives by family, and the functions that apply them.

What most programs use is imported here; families that some use, when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..lazy import names as _names
from .casting import (
    bitcast_convert_type,
    bitcast_convert_type_p,
    convert_element_type,
    convert_element_type_p,
    copy_p,
    dtype,
    reduce_precision,
    reduce_precision_p,
    stop_gradient,
    stop_gradient_p,
)
from .collectives.axis_reductions import pmax, pmax_p, pmean, pmin, pmin_p, psum, psum_p
from .collectives.named_axes import axis_index, axis_index_p, axis_size
from .collectives.placing import device_put_p, sharding_constraint_p, with_sharding_constraint
from .control_flow import loop_rules as _loop_rules
from .control_flow import policy_rules as _policy_rules
from .control_flow import scan_reverse as _scan_reverse
from .control_flow import scan_rules as _scan_rules
from .control_flow.conditionals import cond, cond_p, switch
from .control_flow.loops import fori_loop, while_loop, while_p
from .control_flow.scans import map, scan, scan_p
from .elementwise.arithmetic import (
    add,
    add_p,
    div,
    div_p,
    integer_pow,
    integer_pow_p,
    max,
    max_p,
    min,
    min_p,
    mul,
    mul_p,
    mulhi,
    mulhi_p,
    neg,
    neg_p,
    nextafter,
    nextafter_p,
    pow,
    pow_p,
    reciprocal,
    rem,
    rem_p,
    square,
    square_p,
    sub,
    sub_p,
)
from .elementwise.bits import (
    and_p,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    clz_p,
    not_p,
    or_p,
    population_count,
    population_count_p,
    shift_left,
    shift_left_p,
    shift_right_arithmetic,
    shift_right_arithmetic_p,
    shift_right_logical,
    shift_right_logical_p,
    xor_p,
)
from .elementwise.comparisons import (
    clamp,
    clamp_p,
    eq,
    eq_p,
    eq_to_p,
    ge,
    ge_p,
    gt,
    gt_p,
    le,
    le_p,
    le_to_p,
    lt,
    lt_p,
    lt_to_p,
    ne,
    ne_p,
    select,
    select_n,
    select_n_p,
)
from .elementwise.functions import (
    AccuracyMode,
    RoundingMethod,
    Tolerance,
    abs,
    abs_p,
    acos,
    acos_p,
    acosh,
    acosh_p,
    asin,
    asin_p,
    asinh,
    asinh_p,
    atan,
    atan2,
    atan2_p,
    atan_p,
    atanh,
    atanh_p,
    cbrt,
    cbrt_p,
    ceil,
    ceil_p,
    complex,
    complex_p,
    conj,
    conj_p,
    cos,
    cos_p,
    cosh,
    cosh_p,
    exp,
    exp2,
    exp2_p,
    exp_p,
    expm1,
    expm1_p,
    floor,
    floor_p,
    imag,
    imag_p,
    is_finite,
    is_finite_p,
    log,
    log1p,
    log1p_p,
    log2,
    log2_p,
    log_p,
    logistic,
    logistic_p,
    real,
    real_p,
    round,
    round_p,
    rsqrt,
    rsqrt_p,
    sign,
    sign_p,
    sin,
    sin_p,
    sinh,
    sinh_p,
    sqrt,
    sqrt_p,
    tan,
    tan_p,
    tanh,
    tanh_p,
)
from .elementwise.special import (
    bessel_i0e,
    bessel_i0e_p,
    bessel_i1e,
    bessel_i1e_p,
    digamma,
    digamma_p,
    erf,
    erf_inv,
    erf_inv_p,
    erf_p,
    erfc,
    erfc_p,
    lgamma,
    lgamma_p,
    polygamma,
    polygamma_p,
    zeta,
    zeta_p,
)
from .indexing.dimension_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from .indexing.gather import gather, gather_p, index_take
from .indexing.scatter import (
    scatter,
    scatter_add,
    scatter_add_p,
    scatter_apply,
    scatter_max,
    scatter_max_p,
    scatter_min,
    scatter_min_p,
    scatter_mul,
    scatter_mul_p,
    scatter_p,
    scatter_sub,
    scatter_sub_p,
)
from .indexing.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_slice_p,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    dynamic_update_slice_p,
)
from .indexing.static_slicing import index_in_dim, slice, slice_in_dim, slice_p
from .reductions.contractions import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
    dot_general_p,
)
from .reductions.reduce import (
    reduce,
    reduce_and,
    reduce_and_p,
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
    reduce_or_p,
    reduce_p,
    reduce_prod,
    reduce_prod_p,
    reduce_sum,
    reduce_sum_p,
    reduce_xor,
    reduce_xor_p,
)
from .shaping.broadcasting import (
    broadcast,
    broadcast_in_dim,
    broadcast_in_dim_p,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    expand_dims,
    squeeze,
    squeeze_p,
)
from .shaping.filling import (
    broadcasted_iota,
    empty,
    empty_p,
    full,
    full_like,
    iota,
    iota_p,
    pad,
    pad_p,
    shape_as_value,
)
from .shaping.joining import concatenate, concatenate_p, split, split_p, stack, stack_p, unstack, unstack_p
from .shaping.padding import padtype_to_pads
from .shaping.reshaping import collapse, reshape, reshape_p, rev, rev_p, tile, tile_p, transpose, transpose_p

_HOMES = {
    "lax.collectives.casts": "pcast stage_p",
    "lax.collectives.communication": (
        "all_gather all_gather_p all_to_all all_to_all_p pbroadcast pbroadcast_p ppermute ppermute_p pshuffle "
        "psum_scatter pswapaxes reduce_scatter_p"),
    "lax.collectives.ragged_exchange": "ragged_all_to_all ragged_all_to_all_p",
    "lax.collectives.sends": "precv precv_p psend psend_p",
    "lax.control_flow.barriers": "dce_sink dce_sink_p optimization_barrier optimization_barrier_p stage",
    "lax.control_flow.composites": "composite composite_p",
    "lax.control_flow.futures": "psum_scatter_start",
    "lax.control_flow.platforms": "platform_dependent",
    "lax.control_flow.solvers": "custom_linear_solve custom_root linear_solve_p",
    "lax.control_flow.token_order": "after_all after_all_p create_token create_token_p",
    "lax.elementwise.incomplete": (
        "betainc igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p random_gamma_grad "
        "random_gamma_grad_p regularized_incomplete_beta_p"),
    "lax.elementwise.polynomial_values": "one_minus_square one_minus_square_p polynomial polynomial_p",
    "lax.fourier": "FftType fft fft_p",
    "lax.random_bits.bit_generator": "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p",
    "lax.random_bits.prng": (
        "random_bits_p random_clone_p random_fold_in_p random_seed_p random_split_p random_unwrap_p random_wrap_p"),
    "lax.random_bits.threefry": "iota_2x32_shape_p threefry2x32_p",
    "lax.reductions.arg_extrema": "argmax argmax_p argmin argmin_p",
    "lax.reductions.associative": "associative_scan",
    "lax.reductions.convolution": "conv_general_dilated conv_general_dilated_p",
    "lax.reductions.convolution_kinds": (
        "conv conv_general_dilated_local conv_general_dilated_patches conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose conv_transpose_shape_tuple conv_with_general_padding"),
    "lax.reductions.convolution_layouts": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers conv_general_permutations"),
    "lax.reductions.cumulative": (
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum cumsum_p"),
    "lax.reductions.ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general scaled_dot",
    "lax.reductions.window_geometry": "reduce_window_shape_tuple",
    "lax.reductions.window_selection": "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p",
    "lax.reductions.windows": (
        "reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p reduce_window_sum_p"),
    "lax.sorting.sort": "approx_max_k approx_min_k approx_top_k_p sort sort_key_val sort_p top_k top_k_p",
}

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from . import linalg
    from .collectives.casts import pcast, stage_p
    from .collectives.communication import (
        all_gather,
        all_gather_p,
        all_to_all,
        all_to_all_p,
        pbroadcast,
        pbroadcast_p,
        ppermute,
        ppermute_p,
        pshuffle,
        psum_scatter,
        pswapaxes,
        reduce_scatter_p,
    )
    from .collectives.ragged_exchange import ragged_all_to_all, ragged_all_to_all_p
    from .collectives.sends import precv, precv_p, psend, psend_p
    from .control_flow.barriers import dce_sink, dce_sink_p, optimization_barrier, optimization_barrier_p, stage
    from .control_flow.composites import composite, composite_p
    from .control_flow.futures import psum_scatter_start
    from .control_flow.platforms import platform_dependent
    from .control_flow.solvers import custom_linear_solve, custom_root, linear_solve_p
    from .control_flow.token_order import after_all, after_all_p, create_token, create_token_p
    from .elementwise.incomplete import (
        betainc,
        igamma,
        igamma_grad_a,
        igamma_grad_a_p,
        igamma_p,
        igammac,
        igammac_p,
        random_gamma_grad,
        random_gamma_grad_p,
        regularized_incomplete_beta_p,
    )
    from .elementwise.polynomial_values import one_minus_square, one_minus_square_p, polynomial, polynomial_p
    from .fourier import FftType, fft, fft_p
    from .random_bits.bit_generator import (
        RandomAlgorithm,
        rng_bit_generator,
        rng_bit_generator_p,
        rng_uniform,
        rng_uniform_p,
    )
    from .random_bits.prng import (
        random_bits_p,
        random_clone_p,
        random_fold_in_p,
        random_seed_p,
        random_split_p,
        random_unwrap_p,
        random_wrap_p,
    )
    from .random_bits.threefry import iota_2x32_shape_p, threefry2x32_p
    from .reductions.arg_extrema import argmax, argmax_p, argmin, argmin_p
    from .reductions.associative import associative_scan
    from .reductions.convolution import conv_general_dilated, conv_general_dilated_p
    from .reductions.convolution_kinds import (
        conv,
        conv_general_dilated_local,
        conv_general_dilated_patches,
        conv_general_shape_tuple,
        conv_shape_tuple,
        conv_transpose,
        conv_transpose_shape_tuple,
        conv_with_general_padding,
    )
    from .reductions.convolution_layouts import (
        ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers,
        conv_dimension_numbers,
        conv_general_permutations,
    )
    from .reductions.cumulative import (
        cumlogsumexp,
        cumlogsumexp_p,
        cummax,
        cummax_p,
        cummin,
        cummin_p,
        cumprod,
        cumprod_p,
        cumsum,
        cumsum_p,
    )
    from .reductions.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general, scaled_dot
    from .reductions.window_geometry import reduce_window_shape_tuple
    from .reductions.window_selection import select_and_gather_add_p, select_and_scatter_add_p, select_and_scatter_p
    from .reductions.windows import (
        reduce_window,
        reduce_window_max_p,
        reduce_window_min_p,
        reduce_window_p,
        reduce_window_sum_p,
    )
    from .sorting.sort import approx_max_k, approx_min_k, approx_top_k_p, sort, sort_key_val, sort_p, top_k, top_k_p
else:
    __getattr__, __dir__, _ = _names(__name__, _HOMES, modules=["linalg"])
