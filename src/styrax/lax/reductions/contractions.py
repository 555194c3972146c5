"""`dot_general` and the products built on it."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import along, check_explicit, permuted, resolved, with_mapped_axis
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.programs import rules
from styrax.core.settings import config
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, ShardingLike
from styrax.transforms import ad

from .. import factor_rules, sharding_rules
from ..casting import convert_element_type
from ..elementwise.families import shape_of, standard_primitive
from ..shaping.reshaping import transpose
from .contraction_loops import dot_loops, product_dtype


class Precision(enum.Enum):
    """How exactly an accelerator multiplies; the CPU is always exact."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _PRECISION_NAMES.get(value)


class DotAlgorithm(NamedTuple):
    """The types in which an accelerator multiplies and adds, and into how many parts it cuts numbers."""

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms of accelerators."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which products are added, or None where the operands decide."""
        parts = self.name.split("_")
        for suffix in ("FAST", "ACCUM", "X3", "X6", "X9"):
            if suffix in parts:
                parts.remove(suffix)
        names = {"F16": np.float16, "BF16": dtypes.bfloat16, "F32": np.float32, "F64": np.float64}
        return np.dtype(names[parts[-1]]) if parts[-1] in names else None

    @property
    def supported_lhs_types(self) -> tuple[type, ...] | None:
        """The dtypes that operands may have, or None where any may be."""
        parts = self.name.split("_")
        first, last = parts[0], parts[-1]
        wide = (np.float32,)
        types: dict[str, tuple[type, ...]] = {
            "F16": (np.float16,), "BF16": wide if last in ("X3", "X6", "X9") else (dtypes.bfloat16, np.float32),
            "TF32": wide, "F32": wide, "F64": (np.float64,)}
        return types.get(first)

    @property
    def supported_rhs_types(self) -> tuple[type, ...] | None:
        """As `supported_lhs_types`."""
        return self.supported_lhs_types


DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)

_PRECISION_NAMES: dict[Any, Precision] = {
    None: Precision.DEFAULT,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
}


def canonicalize_precision(precision: Any) -> Any:
    """A `precision` argument as it stands in programs: None, a pair of `Precision`, or an algorithm.

    Raises ValueError for anything else.
    """
    if precision is None:
        default = config.config.jax_default_matmul_precision
        if default is None:
            return None
        precision = str(default) if not isinstance(default, str) else default
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return (precision, precision)
    if isinstance(precision, str):
        if precision in _PRECISION_NAMES:
            return (_PRECISION_NAMES[precision],) * 2
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, (tuple, list)) and len(precision) == 2:
        pair = tuple(p if isinstance(p, Precision) else _PRECISION_NAMES.get(p) for p in precision)
        if all(p is not None for p in pair):
            return pair
    raise ValueError(
        "Precision argument must be one of:\n- None,\n- a string in "
        f"{[n for n in _PRECISION_NAMES if n]},\n- a lax.Precision value,\n- a tuple of two lax.Precision values "
        "or strings,\n- a lax.DotAlgorithmPreset or the name of one of these presets, or\n- a lax.DotAlgorithm "
        f"value;\nbut got {precision}."
    )


def _check_numbers(name: str, aval: Any, contract: tuple, batch: tuple) -> None:
    if any(not 0 <= d < aval.ndim for d in (*batch, *contract)):
        raise TypeError(
            f"dot_general requires {name} dimension numbers to be nonnegative and less than the number of axes "
            f"of the {name} value, got {name}_batch of {batch} and {name}_contracting of {contract} for {name} "
            f"of rank {aval.ndim}"
        )
    for kind, numbers in (("batch", batch), ("contracting", contract)):
        if len(set(numbers)) != len(numbers):
            raise TypeError(
                f"dot_general requires {name} {kind} dimensions to be distinct, got {name}_{kind} {numbers}."
            )
    if set(batch) & set(contract):
        raise TypeError(
            f"dot_general requires {name} batch dimensions to be disjoint from contracting dimensions, got "
            f"{name}_batch {batch} and {name}_contracting {contract}."
        )


def _dot_shape(lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> tuple:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_numbers("lhs", lhs, lhs_contract, lhs_batch)
    _check_numbers("rhs", rhs, rhs_contract, rhs_batch)
    for kind, left, right in (("lhs batch dimensions and rhs batch dimensions", lhs_batch, rhs_batch),
                              ("contracting dimensions", lhs_contract, rhs_contract)):
        sizes = tuple(lhs.shape[d] for d in left), tuple(rhs.shape[d] for d in right)
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general requires {kind} to have the same shape, got {sizes[0]} and {sizes[1]}.\n"
                f"The operands have shapes {lhs.shape} and {rhs.shape}."
            )
    return (
        *(lhs.shape[d] for d in lhs_batch),
        *(s for d, s in enumerate(lhs.shape) if d not in lhs_contract and d not in lhs_batch),
        *(s for d, s in enumerate(rhs.shape) if d not in rhs_contract and d not in rhs_batch),
    )


def _dot_dtype(lhs: Any, rhs: Any, *, preferred_element_type: Any, **_: Any) -> Any:
    for aval in (lhs, rhs):
        if isinstance(aval.dtype, dtypes.ExtendedDType) or not (
            aval.dtype == np.bool_ or dtypes.issubdtype(aval.dtype, np.number)
        ):
            raise TypeError(f"lax.dot_general does not accept dtype {aval.dtype.name}.")
    if preferred_element_type is None:
        return product_dtype(lhs.dtype, rhs.dtype)
    if preferred_element_type != lhs.dtype:
        result = product_dtype(lhs.dtype, rhs.dtype)
        if dtypes.kind(result) in "iuc":  # floats may be rounded
            _refuse_narrower(result, preferred_element_type)
    return preferred_element_type


def _refuse_narrower(dtype: Any, preferred: Any) -> None:
    """Raises TypeError for sums of a dtype in one of fewer bits; complex numbers have those of their parts."""
    bits = [1 if d == np.bool_ else dtypes.itemsize_bits(d) // (2 if dtypes.kind(d) == "c" else 1)
            for d in (dtype, preferred)]
    if bits[1] < bits[0]:
        raise TypeError("`preferred_element_type` must not be narrower than the original type, got "
                        f"preferred_element_type of {preferred} for result type of {dtype}.")


def _dot_hlo(
    m: Any,
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
) -> Any:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    out = m.avals_out[0]
    if lhs.dtype != rhs.dtype:
        # Mixed operands meet in the dtype of the result, or in what holds both.
        common = out.dtype
        lhs, rhs = m.convert(lhs, common), m.convert(rhs, common)
    numbers = (
        f"lhs_batching_dimensions = {list(lhs_batch)}, rhs_batching_dimensions = {list(rhs_batch)}, "
        f"lhs_contracting_dimensions = {list(lhs_contract)}, rhs_contracting_dimensions = {list(rhs_contract)}"
    )
    pair = precision if type(precision) is tuple else (Precision.DEFAULT, Precision.DEFAULT)  # or an algorithm
    levels = ", ".join(f"#stablehlo<precision {p.name}>" for p in pair)
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, precision_config = [{levels}]"
    aval = out
    if np.dtype(lhs.dtype).kind == "c" and np.dtype(out.dtype).kind != "c":
        aval = ShapedArray(out.shape, lhs.dtype)
    if np.dtype(lhs.dtype).kind != "c" and np.dtype(out.dtype).kind == "c":
        lhs, rhs = m.convert(lhs, out.dtype), m.convert(rhs, out.dtype)
    result = m.op1("stablehlo.dot_general", [lhs, rhs], aval, attributes)
    if aval is out:
        return result
    part = ShapedArray(out.shape, np.dtype(f"float{4 * np.dtype(lhs.dtype).itemsize}"))
    return m.convert(m.op1("stablehlo.real", [result], part), out.dtype)


def _printed(params: dict[str, Any]) -> dict[str, Any]:
    contracting, batch = params["dimension_numbers"]
    shown = {**params, "dimension_numbers": (tuple(map(list, contracting)), tuple(map(list, batch)))}
    return {k: v for k, v in sorted(shown.items()) if v is not None}


dot_general_p = standard_primitive(
    "dot_general",
    _dot_shape,
    _dot_dtype,
    lambda lhs, rhs, **_: lhs.weak_type and rhs.weak_type,
    loops=dot_loops,
    hlo=_dot_hlo,
)
dot_general_p.declare(contraction=True, nan=True, printed=_printed,
                      sharding=sharding_rules.contraction, factors=factor_rules.contraction)


def _rank(x: Any) -> int:
    return len(x.aval.shape) if ad.is_undefined_primal(x) else len(shape_of(x))


def _dot_transpose_lhs(
    ct: Any,
    x: Any,
    y: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
    swap: bool = False,
) -> Any:
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_ndim, y_ndim = _rank(x), _rank(y)
    x_kept = [d for d in range(x_ndim) if d not in x_contract and d not in x_batch]
    y_kept = [d for d in range(y_ndim) if d not in y_contract and d not in y_batch]
    n = len(x_batch)
    # In the cotangent, batch dimensions come first, then those of the left and the right operand.
    if swap:
        ct_y = range(n, n + len(y_kept))
    else:
        ct_y = range(n + len(x_kept), n + len(x_kept) + len(y_kept))
    numbers = ((tuple(ct_y), tuple(y_kept)), (tuple(range(n)), tuple(y_batch)))
    y_sorted = [x_contract[k] for k in np.argsort(y_contract)]
    order = [*x_batch, *x_kept, *y_sorted]
    product = dot_general(
        ct,
        y,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=permuted(x.aval.cotangent_sharding or along(0, len(order), None), order),
    )
    result = transpose(product, np.argsort(order).tolist())
    if get_aval(result).dtype != x.aval.dtype:
        result = convert_element_type(result, x.aval.dtype)
    return result




def _dot_transpose_rhs(ct: Any, x: Any, y: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    swapped = ((y_contract, x_contract), (y_batch, x_batch))
    return _dot_transpose_lhs(ct, y, x, dimension_numbers=swapped, swap=True, **params)


ad.defbilinear(dot_general_p, _dot_transpose_lhs, _dot_transpose_rhs)


def _dot_batch(args: Any, dims: Any, *, dimension_numbers: Any, out_sharding: Any, **params: Any) -> Any:
    lhs, rhs = args
    lhs_dim, rhs_dim = dims
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers

    def moved(numbers: Sequence[int], dim: int | None) -> tuple[int, ...]:
        return tuple(numbers) if dim is None else tuple(d + (d >= dim) for d in numbers)

    contract = moved(lhs_contract, lhs_dim), moved(rhs_contract, rhs_dim)
    left, right = moved(lhs_batch, lhs_dim), moved(rhs_batch, rhs_dim)
    if lhs_dim is not None and rhs_dim is not None:
        out_dim = 0
        left, right = (lhs_dim, *left), (rhs_dim, *right)
    elif lhs_dim is not None:
        free = [d for d in range(len(shape_of(lhs))) if d not in left and d not in contract[0]]
        out_dim = len(left) + free.index(lhs_dim)
    else:
        free = [d for d in range(len(shape_of(rhs))) if d not in right and d not in contract[1]]
        lhs_free = len(shape_of(lhs)) - len(left) - len(contract[0])
        out_dim = len(left) + lhs_free + free.index(rhs_dim)
    x, dim = (rhs, rhs_dim) if lhs_dim is None else (lhs, lhs_dim)
    told = with_mapped_axis(out_sharding, out_dim, get_aval(x), dim)
    numbers = contract, (left, right)
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, out_sharding=told, **params), out_dim


rules.batchers[dot_general_p] = _dot_batch


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers, precision: PrecisionLike = None,
                preferred_element_type: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Contract dimensions of two arrays, side by side over batch dimensions.

    Args:
      lhs, rhs: the arrays.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, tuples of
        dimensions; those that belong together have equal sizes.
      precision: how exactly an accelerator computes; the CPU ignores it.
      preferred_element_type: dtype of the result and of the sums.
      out_sharding: sharding of the result.

    Returns:
      an array whose dimensions are the batch dimensions, then the others of `lhs`, then those of `rhs`.

    Raises:
      TypeError: for dimensions that do not exist, overlap, or differ in size.
      ValueError: for a precision that is none.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ())))
      Array([[3., 3.],
             [3., 3.]], dtype=float32)
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = (
        (tuple(map(operator.index, lhs_contract)), tuple(map(operator.index, rhs_contract))),
        (tuple(map(operator.index, lhs_batch)), tuple(map(operator.index, rhs_batch))),
    )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_and_canonicalize_user_dtype(
            preferred_element_type, "dot_general"
        )
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=None if out_sharding is None else _over_explicit_axes(out_sharding),
    )


def _over_explicit_axes(sharding: Any) -> Any:
    resolved_sharding = resolved(result_sharding(sharding))
    if resolved_sharding is not sharding:
        check_explicit(resolved_sharding, "passed to dot_general ")
    return resolved_sharding


def dot(lhs: ArrayLike, rhs: ArrayLike, *args: Object, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None) -> Array:
    """The product of vectors and matrices, or with `dimension_numbers` any contraction.

    Args:
      lhs, rhs: arrays of one or two dimensions (of any number with `dimension_numbers`).
      *args: `precision` and `preferred_element_type` in the older order.
      dimension_numbers: as for `dot_general`.
      precision: how exactly an accelerator computes.
      preferred_element_type: dtype of the result and of the sums.
      out_sharding: sharding of the result.

    Returns:
      an array of the batch dimensions, then those left of `lhs`, then those left of `rhs`.

    Raises:
      ValueError: for other numbers of dimensions, or sizes that differ, without `dimension_numbers`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.dot(jnp.arange(3), jnp.arange(3))
      Array(5, dtype=int32)
    """
    if args:  # the older order: precision, preferred_element_type
        precision, preferred_element_type = (*args, None)[:2]
    if dimension_numbers is None:
        left, right = shape_of(lhs), shape_of(rhs)
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched "
                f"matrix-matrix, matrix-vector, or vector-vector products; got lhs_shape={left} rhs_shape={right}"
            )
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """The product of matrices, over leading batch dimensions.

    Args:
      lhs, rhs: arrays of one number of dimensions, at least two; the last two are the matrices', the
        others are equal.
      precision: how exactly an accelerator computes.

    Returns:
      an array of shape `[..., m, n]` for operands `[..., m, k]` and `[..., k, n]`.

    Raises:
      ValueError: for fewer dimensions, or numbers of them that differ.
    """
    left, right = len(shape_of(lhs)), len(shape_of(rhs))
    if left < 2 or right < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {left}, {right}")
    if left != right:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {left}, {right}")
    batch = tuple(range(left - 2))
    return dot_general(lhs, rhs, (((left - 1,), (left - 2,)), (batch, batch)), precision=precision)
