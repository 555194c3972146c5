"""Dtypes: names, kinds, canonicalisation to 32 bits, and promotion with weak types.

A dtype is a ``numpy.dtype`` (NumPy's own or one of ml_dtypes') or an ``ExtendedDType``. Python scalars
are *weakly typed*: they yield to the dtypes of arrays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, overload

import ml_dtypes
import numpy as np

from ..settings.config import enable_x64, explicit_x64_dtypes, numpy_dtype_promotion
from ..settings.flags import ExplicitX64Mode, NumpyDtypePromotion
from ..tracing.source import api_boundary
from .promotion_lattice import (
    ExtendedDType,
    TypePromotionError,
    all_dtypes,
    bfloat16,
    bits_of,
    bool_,
    by_name,
    complex64,
    complex128,
    extended,
    float0,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    join,
    join_typed,
    kinds,
    ml_kinds,
    prng_key,
    python_scalars,
    scalars_32,
    scalars_64,
    short_names,
    small_floats,
    small_ints,
    string_dtype,
    to_32,
    uint8,
    uint16,
    uint32,
    uint64,
    valid,
    weak_scalars,
)

if TYPE_CHECKING:
    from .typing import DTypeLike, PyTree
else:  # which stands above this module
    DTypeLike, PyTree = (ForwardRef(name, module="styrax.core.types.typing") for name in ("DTypeLike", "PyTree"))

__all__ = [
    "all_dtypes", "as_dtype", "bfloat16", "bool_", "canonicalize_dtype",
    "check_and_canonicalize_user_dtype", "check_user_dtype_supported", "check_valid_dtype",
    "coerce_to_array", "complex128", "complex64", "default_complex_dtype", "default_float_dtype",
    "default_int_dtype", "default_types", "default_uint_dtype", "DType", "dtype", "dtype_name",
    "extended", "ExtendedDType", "finfo", "float0", "float16", "float32", "float64", "iinfo",
    "int16", "int32", "int64", "int8", "is_python_scalar", "is_valid_dtype", "is_weakly_typed",
    "isdtype", "issubdtype", "itemsize_bits", "jax_dtype", "kind", "lattice_result_type",
    "numpy_scalar_types", "prng_key", "promote_types", "python_scalar_dtype", "python_scalars",
    "register_weak_scalar_type", "result_type", "safe_to_cast", "scalar_type_of",
    "scalar_type_to_dtype", "short_dtype_name", "small_floats", "small_ints", "string_dtype",
    "supports_inf", "to_complex_dtype", "to_floating_dtype", "to_inexact_dtype", "to_numeric_dtype",
    "TypePromotionError", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip

DType = np.dtype
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


def numpy_scalar_types() -> tuple[type, ...]:
    """The scalar types (``np.float32``, ``ml_dtypes.bfloat16``, …) of all supported dtypes."""
    return tuple(d.type for d in all_dtypes)


def register_weak_scalar_type(cls: type) -> None:
    """Has values of the class ``cls`` treated as Python integers in promotion."""
    weak_scalars[cls] = int
    scalars_32[cls] = int32
    scalars_64[cls] = int64


def python_scalar_dtype(cls: type) -> np.dtype:
    """The dtype that values of the Python scalar type ``cls`` have: 64 bits where x64 is on."""
    known = scalars_64 if enable_x64.value else scalars_32
    found = known.get(cls)
    return known[next(base for base in cls.__mro__ if base in known)] if found is None else found


def default_int_dtype() -> np.dtype:
    return int64 if enable_x64.value else int32


def default_uint_dtype() -> np.dtype:
    return uint64 if enable_x64.value else uint32


def default_float_dtype() -> np.dtype:
    return float64 if enable_x64.value else float32


def default_complex_dtype() -> np.dtype:
    return complex128 if enable_x64.value else complex64


default_types = {
    "b": lambda: bool_,
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


def scalar_type_to_dtype(cls: type, value: Any = None) -> np.dtype:
    """The dtype of the Python scalar type ``cls``. Raises ``OverflowError`` if ``value`` does not fit."""
    dtype = python_scalar_dtype(cls)
    if value is not None and cls is int:
        limits = iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python int {value} too large to convert to {dtype.name}")
    return dtype


def as_dtype(x: Any) -> Any:
    """``x``, a dtype-like, as a dtype object; extended dtypes pass. Nothing is canonicalised."""
    if isinstance(x, (np.dtype, ExtendedDType)):
        return x
    if type(x) is str:
        found = by_name.get(x)
        if found is not None:
            return found
    return np.dtype(x)


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype:
    """``dtype`` as it is for arrays: 64-bit types become 32-bit ones unless x64 is on."""
    found: Any = dtype
    if not isinstance(dtype, np.dtype):
        if isinstance(dtype, ExtendedDType) or (isinstance(dtype, type) and issubclass(dtype, extended)):
            if not allow_extended_dtype:
                raise ValueError(
                    f"Internal: canonicalize_dtype called on extended dtype {dtype} with "
                    "allow_extended_dtype=False"
                )
            return found
        found = as_dtype(dtype)
    if enable_x64.value:
        return found
    return to_32.get(found, found)


def check_byte_order(dtype: np.dtype) -> None:
    """TypeError for a dtype whose bytes are in an order that arrays do not have."""
    if not dtype.isnative:
        raise TypeError(f"Dtype {dtype} is not a valid JAX array type: its bytes are in an order foreign to this host.")


def _invalid(dtype: Any, fun_name: str | None) -> TypeError:
    where = f" in {fun_name}" if fun_name else ""
    return TypeError(f"JAX only supports number, bool, and string dtypes, got dtype {dtype}{where}")


def is_valid_dtype(dtype: Any) -> bool:
    """Whether arrays may have the dtype object ``dtype``."""
    return dtype in valid or isinstance(dtype, ExtendedDType) or dtype in (float0, string_dtype)


def check_valid_dtype(dtype: Any) -> None:
    """Raises ``TypeError`` for a dtype object that arrays cannot have."""
    if not is_valid_dtype(dtype):
        raise TypeError(
            f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by JAX."
        )


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """The dtype that an array gets for which the user asked for ``dtype``.

    Python scalar types give the default dtypes. A 64-bit dtype asked for by name while x64 is off is
    truncated with a warning (an error or kept, as ``jax_explicit_x64_dtypes`` says).

    Raises:
      TypeError: arrays cannot have such a dtype.
      ValueError: ``dtype`` is None or an array.
    """
    if dtype is None:
        raise ValueError("dtype must be specified.")
    if isinstance(dtype, ExtendedDType):
        return dtype
    cls = type(dtype)
    if cls is type:
        default = (scalars_64 if enable_x64.value else scalars_32).get(dtype)
        if default is not None:
            return default
        if issubclass(dtype, extended):
            return dtype
    elif cls is not str and not isinstance(dtype, (np.dtype, type)) and hasattr(dtype, "aval"):
        raise ValueError(
            "Passing an array as a dtype argument is no longer supported; instead of dtype=arr use "
            "dtype=arr.dtype."
        )
    found = as_dtype(dtype)
    if found not in valid and not is_valid_dtype(found):
        raise _invalid(dtype, fun_name)
    short = to_32.get(found)
    if short is None or enable_x64.value:
        return found
    mode = explicit_x64_dtypes.value
    if mode is ExplicitX64Mode.ALLOW:
        return found
    where = f" requested in {fun_name}" if fun_name else ""
    if mode is ExplicitX64Mode.ERROR:
        raise ValueError(
            f"Explicitly requested dtype {found.name}{where} is not available. To enable more dtypes, set "
            "the jax_enable_x64 or allow_explicit_x64_dtypes configuration options."
            "See https://github.com/jax-ml/jax#current-gotchas for more."
        )
    from ..tracing.source import warn

    warn(
        f"Explicitly requested dtype {found.name}{where} is not available, and will be truncated to dtype "
        f"{short.name}. To enable more dtypes, set the jax_enable_x64 configuration option or the "
        "JAX_ENABLE_X64 shell environment variable. "
        "See https://github.com/jax-ml/jax#current-gotchas for more.",
        UserWarning,
    )
    return short


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> None:
    """Raises or warns as ``check_and_canonicalize_user_dtype`` does."""
    if dtype is not None:
        check_and_canonicalize_user_dtype(dtype, fun_name)


def jax_dtype(obj: Any, *, align: bool = False, copy: bool = False) -> Any:
    """``np.dtype(obj)`` with Styrax's defaults: None, float, int and complex follow the x64 flag."""
    if obj is None:
        return default_float_dtype()
    default = (scalars_64 if enable_x64.value else scalars_32).get(obj) if isinstance(obj, type) else None
    return default if default is not None else np.dtype(obj, align=align, copy=copy)


def dtype(x: Any) -> Any:
    """The dtype of a value (array, tracer, NumPy or Python scalar) or of a dtype-like, canonicalised.

    Raises:
      TypeError: ``x`` has no dtype or one that arrays cannot have.
      ValueError: ``x`` is None.
    """
    scalars = scalars_64 if enable_x64.value else scalars_32
    cls = type(x)
    found = scalars.get(cls)
    if found is not None:
        return found
    if cls is str or isinstance(x, (np.dtype, type)):
        found = scalars.get(x) if cls is type else None
        if found is not None:
            return found
        found = as_dtype(x)
        if found in to_32:
            if isinstance(getattr(x, "dtype", None), np.dtype):  # a scalar type of `numpy`: canonicalised without words
                return canonicalize_dtype(found)
            return check_and_canonicalize_user_dtype(found, "dtype")
    elif x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    else:
        found = getattr(x, "dtype", None)
        if found is None:
            if hasattr(x, "__jax_array__"):
                return dtype(x.__jax_array__())
            if _is_number(x):
                return python_scalar_dtype(type(x))
            raise TypeError(f"Cannot determine dtype of {x}")
        # Arrays and tracers keep the 64 bits that were explicitly asked for.
        if found in to_32 and not hasattr(x, "aval"):
            return canonicalize_dtype(found)
    if found in valid or isinstance(found, ExtendedDType) or found in (float0, string_dtype):
        return found
    raise TypeError(
        f"Value '{x}' with dtype {found} is not a valid JAX array type. Only arrays of numeric types are "
        "supported by JAX."
    )


def is_weakly_typed(x: Any) -> bool:
    """Whether ``x`` yields to the dtype of arrays: Python numbers, and arrays made from them."""
    if type(x) in weak_scalars:
        return True
    return getattr(getattr(x, "aval", None), "weak_type", False)


def _is_number(x: Any) -> bool:
    """Whether `x` is of a class made of one of Python's numbers, as an `IntEnum` is, that is not NumPy's."""
    return isinstance(x, (int, float, complex)) and not isinstance(x, (bool, np.generic))


def plain_number(x: Any) -> Any:
    """What an operation takes for `x`: Python's own number for one of a class made of it, any other value itself."""
    if type(x) in weak_scalars or not _is_number(x) or hasattr(x, "dtype"):
        return x
    return next(base for base in (int, float, complex) if isinstance(x, base))(x)


def is_python_scalar(x: Any) -> bool:
    """Whether ``x`` is a Python bool, int, float or complex, or behaves as one in promotion."""
    return type(x) in scalars_32


def scalar_type_of(x: PyTree) -> type:
    """``bool``, ``int``, ``float`` or ``complex``: the Python scalar type that ``x`` is like."""
    found = dtype(x)
    code = kinds.get(found)
    if code is None:
        raise TypeError(f"Invalid scalar value {x}")
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[code]


def kind(dtype: Any) -> str:
    """``b``, ``u``, ``i``, ``f`` or ``c`` (also for ml_dtypes' types), ``V`` for anything else."""
    return kinds.get(dtype, "V")


def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits of an element: 4 for int4."""
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    if isinstance(dtype, ExtendedDType):
        raise ValueError(f"unexpected input: dtype={dtype!r}")
    found = as_dtype(dtype)
    return bits_of.get(found, found.itemsize * 8)


def dtype_name(dtype: Any) -> str:
    """The long name: ``float32``, ``bfloat16``, ``key<fry>``, ``float0``."""
    return "float0" if dtype == float0 else dtype.name


def printed_dtype_name(dtype: Any) -> str:
    """The name as in jaxprs: ``f32``, ``bf16``, ``key<fry>``, ``float0``."""
    return "float0" if dtype == float0 else short_dtype_name(dtype)


def short_dtype_name(dtype: Any) -> str:
    """JAX's short name: ``f32``, ``bf16``, ``key<fry>``; ``void`` for ``float0``."""
    if dtype == float0:
        return "void"
    name = short_names.get(dtype)
    if name is None:
        name = str(dtype) if isinstance(dtype, ExtendedDType) else np.dtype(dtype).name
        for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
            if name.startswith(long):
                name = name.replace(long, short, 1)
                break
    return name


def supports_inf(dtype: Any) -> bool:
    """Whether the dtype has infinities."""
    found = as_dtype(dtype)
    return kinds.get(found) in ("f", "c") and found not in _without_inf


_without_inf = {
    by_name[n] for n in ("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz")
}


# Where ``issubdtype`` looks: abstract scalar types that each ml_dtypes type counts among.
_above = {
    "f": (np.floating, np.inexact, np.number, np.generic),
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
}


def _scalar_class(x: Any) -> type:
    if isinstance(x, ExtendedDType):
        return x.type
    if isinstance(x, np.dtype):
        return x.type
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return as_dtype(x).type


@lru_cache(maxsize=4096)
def issubdtype(a: DTypeLike, b: DTypeLike) -> bool:
    """Whether the dtype or scalar type ``a`` falls under ``b``; knows ml_dtypes' and extended dtypes."""
    if isinstance(b, ExtendedDType):
        return isinstance(a, ExtendedDType) and a == b
    below, above = _scalar_class(a), _scalar_class(b)
    if below is above:
        return True
    code = ml_kinds.get(below)
    return above in _above[code] if code is not None else issubclass(below, above)


_ISDTYPE = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
            "real floating": "f", "complex floating": "c", "numeric": "iufc"}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of a kind: a name of the array API such as "integral", a dtype, or a tuple."""
    found = as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _ISDTYPE:
            if kinds.get(found, "V") in _ISDTYPE[one]:
                return True
            continue
        if isinstance(one, str):
            try:
                other = as_dtype(one)
            except TypeError:
                raise ValueError(
                    f"Unrecognized kind={one!r} expected one of {list(_ISDTYPE)}, or a compatible input for "
                    "jnp.dtype()"
                ) from None
        elif isinstance(one, (np.dtype, type, ExtendedDType)) or hasattr(one, "dtype"):
            other = as_dtype(one)
        else:
            raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={one!r}")
        if found == other:
            return True
    return False


_inexact = {
    _d: (float32 if bits_of[_d] < 64 else float64)
    for _d in all_dtypes
    if kinds[_d] in "biu" and not (kinds[_d] in "iu" and bits_of[_d] < 4)
}


def to_inexact_dtype(dtype: Any) -> Any:
    """``dtype`` if it is floating or complex, else the float type that holds it."""
    found = as_dtype(dtype)
    return _inexact.get(found, found)


def to_numeric_dtype(dtype: Any) -> Any:
    """``dtype``, or int32 for bool."""
    found = as_dtype(dtype)
    return int32 if found == bool_ else found


def to_floating_dtype(dtype: Any) -> Any:
    """The real floating dtype that goes with ``dtype``: of the parts of a complex one."""
    found = to_inexact_dtype(dtype)
    return finfo(found).dtype


def to_complex_dtype(dtype: Any) -> Any:
    """The complex dtype that holds ``dtype``."""
    found = to_inexact_dtype(dtype)
    return complex128 if found in (float64, complex128) else complex64


def promote_types(a: Any, b: Any) -> Any:
    """The dtype of ``x + y`` for arrays of the dtypes ``a`` and ``b``; int, float and complex are weak.

    Raises:
      TypePromotionError: there is none.
    """
    strict = numpy_dtype_promotion.value is NumpyDtypePromotion.STRICT
    nodes = tuple(x if x in weak_scalars else as_dtype(x) for x in (a, b))
    found = join(nodes, strict, enable_x64.value)
    return scalars_64[found] if isinstance(found, type) else found


def _typed(x: Any) -> tuple[Any, bool]:
    """The dtype of an argument of ``result_type``, and whether it is weak."""
    cls = type(x)
    if cls in weak_scalars:
        return python_scalar_dtype(cls), True
    aval = getattr(x, "aval", None)
    if aval is not None and x.dtype in valid:
        return x.dtype, aval.weak_type
    if cls is type and x in weak_scalars:
        return python_scalar_dtype(x), True
    if x is None:
        return default_float_dtype(), False
    if isinstance(x, ExtendedDType):
        return x, False
    return dtype(x), is_weakly_typed(x)


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """``(dtype, weak)`` of an operation on values or dtypes; weak if nothing but weak types decided."""
    return join_typed(
        tuple([_typed(x) for x in args]),
        numpy_dtype_promotion.value is NumpyDtypePromotion.STRICT,
        enable_x64.value,
    )


@overload
def result_type(*args: PyTree, return_weak_type_flag: Literal[False] = False) -> np.dtype: ...
@overload
def result_type(*args: PyTree, return_weak_type_flag: Literal[True]) -> tuple[np.dtype, bool]: ...
@api_boundary
def result_type(*args: PyTree, return_weak_type_flag: bool = False) -> np.dtype | tuple[np.dtype, bool]:
    """The dtype of an operation on the given values or dtypes.

    Args:
      args: arrays, scalars, dtype-likes; Python scalars and weakly typed arrays yield to others.
      return_weak_type_flag: gives ``(dtype, weak)``.

    Raises:
      TypePromotionError: the dtypes have no common one.
      ValueError: no arguments.
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    found = lattice_result_type(*args)
    return found if return_weak_type_flag else found[0]


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether promotion of the two gives the output's dtype, so that nothing is lost but weakness."""
    given, wanted = _typed(input_dtype_or_value), _typed(output_dtype_or_value)
    if given[0] == wanted[0]:
        return True
    try:
        return join_typed((given, wanted), False, enable_x64.value)[0] == wanted[0]
    except TypePromotionError:
        return False


def coerce_to_array(x: Any, dtype: Any = None) -> np.ndarray:
    """A scalar or NumPy array as a NumPy array of the dtype it has here (or of ``dtype``)."""
    if dtype is None and type(x) in scalars_32:
        dtype = scalar_type_to_dtype(weak_scalars.get(type(x), bool), x if type(x) is int else None)
    return np.asarray(x, dtype)
