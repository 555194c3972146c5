"""Conversions between dtypes: by value, by bits, by precision; and values from outside as arrays."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import with_mapped_axis
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import Literal
from styrax.core.tracing.source import api_boundary, hide_frames, warn
from styrax.core.tracing.staging import StagingTrace, owner_of_constants
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike, DType, DTypeLike, Object, PyTree
from styrax.transforms import ad, batching

from . import factor_rules, sharding_rules
from .elementwise.families import FLOAT, OPERATIONS, Operation, check_dtype, standard_primitive

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

_PYTHON_SCALARS = (bool, int, float, builtins.complex)


def _convert_dtype(x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    if x.dtype != new_dtype:
        for dtype in (x.dtype, new_dtype):
            if isinstance(dtype, dtypes.ExtendedDType):
                raise ValueError(f"Cannot convert_element_type from {x.dtype.name} to {new_dtype.name}")
        if x.dtype == dtypes.float0 and new_dtype != np.bool_:
            raise TypeError(f"Cannot convert_element_type from float0 to {new_dtype.name}")
    return new_dtype


def _convert_scalar(b: Builder, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    if x.dtype.kind == "c" and new_dtype.kind != "c" and new_dtype != np.bool_:
        x = b.real(x)
    return b.cast(x, new_dtype)


def _convert_hlo(m: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    out = m.avals_out[0]
    if x.dtype == out.dtype:
        return x
    if out.dtype == np.bool_:
        return m.compare("NE", x, m.full(0, x.aval))
    if x.dtype.kind == "c" and out.dtype.kind != "c":
        x = m.op1("stablehlo.real", [x], ShapedArray(x.shape, np.dtype(f"float{4 * x.dtype.itemsize}")))
    return m.convert(x, out.dtype)


convert_element_type_p = standard_primitive(
    "convert_element_type",
    lambda x, **_: x.shape,
    _convert_dtype,
    lambda x, *, new_dtype, weak_type, sharding: weak_type,
    scalar=_convert_scalar,
    hlo=_convert_hlo,
)
_casts = rules.loops[convert_element_type_p]


def _convert_loops(b: Builder, x: Any, **params: Any) -> Any:
    if x.dtype == b.avals_out[0].dtype:
        return x  # only its type becomes weak, or strong
    seen = params["new_dtype"] in (np.float16, np.float32, np.float64, np.complex64, np.complex128)
    return b.factors(x, params["new_dtype"]) if x.dtype == np.bool_ and seen else _casts(b, x, **params)


rules.loops[convert_element_type_p] = _convert_loops


def _convert_batch(args: Any, dims: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    (x,), (d,) = args, dims
    told = with_mapped_axis(sharding, d, get_aval(x), d)
    return convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type, sharding=told), d


batching.primitive_batchers[convert_element_type_p] = _convert_batch


def _convert_jvp(t: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    tangent_dtype = ShapedArray((), new_dtype).to_tangent_aval().dtype
    if tangent_dtype == dtypes.float0:
        return ad.Zero(ShapedArray(get_aval(x).shape, dtypes.float0))
    return convert_element_type_p.bind(
        t, new_dtype=tangent_dtype, weak_type=weak_type, sharding=sharding
    )


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> list[Any]:
    assert ad.is_undefined_primal(x)
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval)]
    old = x.aval
    return [convert_element_type_p.bind(ct, new_dtype=old.dtype, weak_type=old.weak_type,
                                        sharding=old.cotangent_sharding)]


ad.defjvp(convert_element_type_p, _convert_jvp)
ad.primitive_transposes[convert_element_type_p] = _convert_transpose


def _fold(x: Any, aval: Any, new_dtype: Any) -> Any:
    """A NumPy or Python value converted at once, or None where only the device's rules will do."""
    if isinstance(new_dtype, dtypes.ExtendedDType) or isinstance(aval.dtype, dtypes.ExtendedDType):
        return None
    value = np.asarray(x)
    if value.dtype == dtypes.float0:
        return value if new_dtype == dtypes.float0 else None
    if value.dtype == object:  # an int of more than 64 bits
        if dtypes.kind(new_dtype) in "iu":
            raise OverflowError(f"Python int {x} too large to convert to {dtypes.dtype_name(new_dtype)}")
        value = np.asarray(float(x))
    if dtypes.kind(new_dtype) in "iu" and dtypes.kind(value.dtype) not in "biu":
        # NumPy leaves NaN and numbers out of range undefined here; arrays saturate.
        if value.shape or not np.isfinite(value.real):
            return None
        limits = np.iinfo(new_dtype) if new_dtype.kind in "iu" else None
        if limits is None or not limits.min <= float(value.real) <= limits.max:
            return None
    if not np.can_cast(value.dtype, new_dtype, "unsafe"):  # NumPy has no cast between all types that are not its own
        return None
    if value.dtype.kind == "c" and new_dtype.kind != "c" and new_dtype != np.bool_:
        value = value.real
    return value.astype(new_dtype)


def _bind_convert(trace: Any, args: tuple, params: dict[str, Any]) -> Any:
    """Constants are converted at once: they become literals of the program being staged, or arrays."""
    (x,) = args
    base, value, aval = owner_of_constants(trace), x, None
    if isinstance(x, Tracer):
        atom = getattr(x, "atom", None) if x._trace is base else None
        if type(atom) is not Literal:
            return trace.process_primitive(convert_element_type_p, args, params)
        value, aval = atom.val, atom.aval
    if isinstance(value, (np.ndarray, np.generic, *_PYTHON_SCALARS)):
        new_dtype, weak_type = params["new_dtype"], params["weak_type"]
        folded = _fold(value, aval if aval is not None else get_aval(value), new_dtype)
        if folded is not None:
            aval = ShapedArray(folded.shape, new_dtype, weak_type)
            if base.is_eval:
                return backends.get().put(folded, aval, None)
            if not isinstance(base, StagingTrace):
                return base.process_primitive(convert_element_type_p, args, params)
            if folded.shape and weak_type:  # which constants are not
                return base.process_primitive(convert_element_type_p, (folded,), params)
            if folded.shape:
                return base.to_tracer(folded)
            return base.literal(folded[()], aval)
    return base.process_primitive(convert_element_type_p, args, params)


convert_element_type_p.def_bind_with_trace(_bind_convert)


def warn_of_loss(dtype: Any) -> None:
    """Warns, at the user's line, where complex values are to become those of a dtype that is not complex."""
    if dtypes.kind(dtype) != "c":
        warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def check_real(number: Any, dtype: Any) -> None:
    """Raises TypeError where a complex number of Python, whose imaginary part is not dropped, is to become real."""
    if type(number) is complex and dtypes.kind(dtype) in "iuf":
        raise TypeError(f"a number of Python with an imaginary part, {number}, is converted to {dtype.name}")


def _convert_element_type(
    operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None
) -> Any:
    """`convert_element_type` for canonical dtypes, which can also set or clear the weak type."""
    if hasattr(operand, "__jax_array__"):
        operand = operand.__jax_array__()
    aval = get_aval(operand)
    if new_dtype is None:
        new_dtype = aval.dtype
    elif not isinstance(new_dtype, dtypes.ExtendedDType):
        new_dtype = np.dtype(new_dtype)
    weak_type = bool(weak_type) and dtypes.kind(new_dtype) in "ifc"
    if dtypes.kind(aval.dtype) == "c":
        warn_of_loss(new_dtype)
        check_real(operand, new_dtype)
    if aval.dtype == new_dtype and aval.weak_type == weak_type and sharding is None:
        if isinstance(operand, (Array, Tracer)):
            return operand
    return convert_element_type_p.bind(
        operand, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding
    )


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert elements to another dtype by value.

    Floats become integers by dropping the fraction, limited to the range of the new dtype; NaN becomes
    0. Complex numbers lose their imaginary part, with a warning.

    Args:
      operand: an array or scalar.
      new_dtype: the new dtype; 64-bit ones are truncated unless x64 is on.

    Returns:
      an array of the same shape, never weakly typed.

    Raises:
      TypeError: for something that is not an array, or a dtype that arrays cannot have.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.convert_element_type(jnp.array([1.5, -2.5]), jnp.int32)
      Array([ 1, -2], dtype=int32)
    """
    try:
        new_dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "convert_element_type")
        return _convert_element_type(operand, new_dtype, weak_type=False)
    except Exception as error:
        hide_frames(error)
        raise


def as_array(x: Any) -> Any:
    """A value as an array, or as a tracer of the current trace; dtype and weak type stay as they are."""
    if isinstance(x, (Array, Tracer)):
        return x
    aval = get_aval(x)
    return convert_element_type_p.bind(
        x, new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=None
    )


@api_boundary
def dtype(x: Object) -> DType:
    """The dtype of a value, or of a dtype-like, as arrays have it.

    Args:
      x: an array, number, dtype, type, or name of a dtype.

    Returns:
      the dtype, narrowed to 32 bits where x64 is off.

    Raises:
      TypeError: for something that has none.
    """
    return dtypes.dtype(x)



def _printed(params: dict[str, Any]) -> dict[str, Any]:
    from styrax.core.programs.text import is_nowhere

    return {k: v for k, v in sorted(params.items()) if not (k == "sharding" and is_nowhere(v))}


convert_element_type_p.declare(printed=_printed,
                               sharding=sharding_rules.given("sharding", sharding_rules.same),
                               factors=factor_rules.elementwise)
OPERATIONS["convert_element_type"] = Operation(
    "convert_element_type", convert_element_type_p, convert_element_type, "cast", 1, (), None
)

# -- bits ------------------------------------------------------------------------------------------


def _bitcast_shape(x: Any, *, new_dtype: Any) -> tuple:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new:
        return x.shape
    if old > new:
        return (*x.shape, old // new)
    if not x.shape or x.shape[-1] * old != new:
        last = x.shape[-1] if x.shape else 1
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of size {old} bits to "
            f"{new_dtype.name} of size {new}, bits but {last} * {old} != {new}"
        )
    return x.shape[:-1]


def _bitcast_dtype(x: Any, *, new_dtype: Any) -> Any:
    _bitcast_shape(x, new_dtype=new_dtype)  # complains first
    if x.dtype != new_dtype and any(d.kind in "bc" for d in (x.dtype, new_dtype)):
        raise TypeError("lax.bitcast_convert_type does not support bool or complex values unless the operand and "
                        f"destination types match. Got operand dtype={x.dtype.name}, new_dtype={new_dtype.name}.")
    return new_dtype


def _bitcast_loops(b: Builder, x: Any, *, new_dtype: Any) -> Any:
    out = b.avals_out[0]
    old_bits, new_bits = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old_bits == new_bits:
        return b.value(out.shape, out.dtype, lambda i: b.bitcast(x.at(i), new_dtype))
    wide_bits, narrow_bits = max(old_bits, new_bits), min(old_bits, new_bits)
    wide, narrow = np.dtype(f"uint{wide_bits}"), _unsigned(narrow_bits)

    def split(index: Any) -> Any:
        *outer, k = index
        whole = b.bitcast(x.at(outer), wide)
        shift = b.cast(b.mul(k, b.index(narrow_bits)), wide)
        part = b.and_(b.shr_logical(whole, shift), b.const(2**narrow_bits - 1, wide))
        return b.bitcast(b.cast(part, narrow), new_dtype)

    def join(index: Any) -> Any:
        whole: Any = None
        for k in range(wide_bits // narrow_bits):
            part = b.cast(b.bitcast(x.at([*index, b.index(k)]), narrow), wide)
            if narrow_bits < 8:
                # Elements of fewer bits fill a byte: a sign reaches beyond them.
                part = b.and_(part, b.const(2**narrow_bits - 1, wide))
            part = b.shl(part, b.const(k * narrow_bits, wide)) if k else part
            whole = part if whole is None else b.or_(whole, part)
        return b.bitcast(whole, new_dtype)

    return b.value(out.shape, out.dtype, split if old_bits > new_bits else join)


def _unsigned(bits: int) -> Any:
    return dtypes.as_dtype(f"uint{bits}")


bitcast_convert_type_p = standard_primitive(
    "bitcast_convert_type",
    _bitcast_shape,
    _bitcast_dtype,
    lambda x, *, new_dtype: False,
    loops=_bitcast_loops,
    hlo=lambda m, x, *, new_dtype: m.op1("stablehlo.bitcast_convert", [x], m.avals_out[0]),
)
bitcast_convert_type_p.declare(movement=True, sharding=sharding_rules.in_front, factors=factor_rules.in_front)
ad.defjvp_zero(bitcast_convert_type_p)


def _bitcast_batch(args: Any, dims: Any, *, new_dtype: Any) -> Any:
    (x,), (dim,) = args, dims
    if dtypes.itemsize_bits(get_aval(x).dtype) == dtypes.itemsize_bits(new_dtype):
        return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), dim
    # The last dimension is split or joined; keep the batch away from it.
    if dim != 0:
        x = batching.moveaxis(x, dim, 0)
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), 0


batching.primitive_batchers[bitcast_convert_type_p] = _bitcast_batch


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Read the bits of each element as another dtype.

    Args:
      operand: an array.
      new_dtype: the new dtype. A narrower one adds a last dimension (least significant part first), a
        wider one removes the last dimension, which has to hold exactly one new element.

    Returns:
      an array of the new dtype.

    Raises:
      ValueError: where the last dimension does not fill one element.
    """
    new_dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


# -- precision -------------------------------------------------------------------------------------


def _reduce_precision_shape(x: Any, *, exponent_bits: int, mantissa_bits: int) -> tuple:
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return x.shape


def _reduce_precision_dtype(x: Any, **_: Any) -> Any:
    check_dtype("reduce_precision", x, FLOAT)
    return x.dtype


def _reduce_precision_scalar(b: Builder, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    info = dtypes.finfo(x.dtype)
    width = dtypes.itemsize_bits(x.dtype)
    word = _unsigned(width)
    have_mantissa = info.nmant
    have_exponent = width - 1 - have_mantissa
    bits = b.bitcast(x, word)

    def const(value: int) -> Any:
        return b.const(value, word)

    sign_mask = 1 << (width - 1)
    exponent_mask = ((1 << have_exponent) - 1) << have_mantissa
    if mantissa_bits < have_mantissa:
        # Round to nearest even: add half a unit less one, plus the bit that is kept last.
        dropped = have_mantissa - mantissa_bits
        last = b.and_(b.shr_logical(bits, const(dropped)), const(1))
        bits = b.add(bits, b.add(last, const((1 << (dropped - 1)) - 1)))
        bits = b.and_(bits, const(((1 << width) - 1) ^ ((1 << dropped) - 1)))
    if exponent_bits < have_exponent:
        bias = (1 << (have_exponent - 1)) - 1
        reduced_bias = (1 << (exponent_bits - 1)) - 1
        largest = const((bias + reduced_bias) << have_mantissa)
        smallest = const((bias - reduced_bias + 1) << have_mantissa)
        exponent = b.and_(bits, const(exponent_mask))
        sign = b.and_(bits, const(sign_mask))
        bits = b.select(b.gt(exponent, largest), b.or_(sign, const(exponent_mask)), bits)
        bits = b.select(b.lt(exponent, smallest), sign, bits)
    result = b.bitcast(bits, x.dtype)
    # NaN stays what it was; with no mantissa bits its payload could otherwise read as infinity.
    return b.select(b.ne(x, x), x if mantissa_bits else b.const(float("inf"), x.dtype), result)


reduce_precision_p = standard_primitive(
    "reduce_precision",
    _reduce_precision_shape,
    _reduce_precision_dtype,
    scalar=_reduce_precision_scalar,
    hlo=lambda m, x, *, exponent_bits, mantissa_bits: m.op1(
        "stablehlo.reduce_precision",
        [x],
        m.avals_out[0],
        f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32",
    ),
)
batching.defvectorized(reduce_precision_p)
ad.deflinear2(reduce_precision_p, lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)])


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round elements to what a narrower floating format could hold; the dtype stays.

    Args:
      operand: floating array.
      exponent_bits: bits of the exponent, at least 1. Numbers beyond the range become infinite, numbers
        below it zero.
      mantissa_bits: bits of the mantissa, at least 0.

    Returns:
      an array of the same shape and dtype.

    Raises:
      ValueError: for numbers of bits that make no format.
      TypeError: for an array that is not floating.
    """
    return reduce_precision_p.bind(
        operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


# -- copies and barriers to derivatives --------------------------------------------------------------

copy_p = standard_primitive(
    "copy",
    lambda x: x.shape,
    lambda x: x.dtype,
    loops=rules.same_value,
    hlo=lambda m, x: x,
)
copy_p.declare(movement=True, sharding=sharding_rules.same, factors=factor_rules.elementwise)
batching.defvectorized(copy_p)
ad.deflinear2(copy_p, lambda ct, x: [ct])
physicals[copy_p] = lambda context, x: copy_p.bind(x)

stop_gradient_p = standard_primitive(
    "stop_gradient",
    lambda x: x.shape,
    lambda x: x.dtype,
    loops=rules.same_value,
    hlo=lambda m, x: x,
)
stop_gradient_p.declare(movement=True, sharding=sharding_rules.same, factors=factor_rules.elementwise)
batching.defvectorized(stop_gradient_p)
ad.defjvp_zero(stop_gradient_p)
physicals[stop_gradient_p] = lambda context, x: x


def stop_gradient(x: PyTree) -> PyTree:
    """The argument itself, as a constant to differentiation.

    Args:
      x: a pytree of arrays.

    Returns:
      the same pytree; derivatives through it are zero.

    Example:
      >>> import styrax as jax
      >>> jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)
      Array(3., dtype=float32, weak_type=True)
    """
    from styrax.core.trees.tree import tree_map

    return tree_map(_stop_one, x)


def _stop_one(x: Any) -> Any:
    aval = get_aval(x)
    if not hasattr(aval, "dtype") or aval.dtype == dtypes.float0:
        return x
    return stop_gradient_p.bind(x)
