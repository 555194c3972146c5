"""The names of dtypes, what is known of them, and NumPy's constants."""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary, hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DType, DTypeLike, Object

from .promotion import is_array, shape_of

e = np.e
pi = np.pi
inf = np.inf
nan = np.nan
euler_gamma = np.euler_gamma
newaxis = None

generic = np.generic
number = np.number
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
flexible = np.flexible
character = np.character
object_ = np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning
finfo = dtypes.finfo
iinfo = dtypes.iinfo
ndarray = Array


class _ScalarMeta(type):
    """A class that stands for a dtype: `float32` is accepted as a dtype, and makes arrays when called."""

    dtype: np.dtype

    @api_boundary
    def __call__(cls, x: Any) -> Any:
        from .conversion import asarray

        if isinstance(x, (str, bytes)):
            x = cls.dtype.type(x)
        elif isinstance(x, int) and not isinstance(x, bool) and cls.dtype.kind in "iu":
            x = np.array(x, dtypes.canonicalize_dtype(cls.dtype))
        return asarray(x, dtype=cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> builtins.bool:
        return cls is other or cls.dtype.type is other or cls.dtype == other

    def __ne__(cls, other: object) -> builtins.bool:
        return not cls == other

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, cls.dtype.type)


def _scalar(scalar_type: type, name: str | None = None) -> Any:
    name = name or scalar_type.__name__
    made = _ScalarMeta(name, (object,), {"dtype": np.dtype(scalar_type),
                                         "__doc__": f"The dtype {name}; called with a value, an array of it."})
    made.__module__ = "jax.numpy"
    return made


bool_ = bool = _scalar(np.bool_, "bool")
int1 = _scalar(ml_dtypes.int1) if hasattr(ml_dtypes, "int1") else None
int2 = _scalar(ml_dtypes.int2)
int4 = _scalar(ml_dtypes.int4)
int8 = _scalar(np.int8)
int16 = _scalar(np.int16)
int32 = _scalar(np.int32)
int64 = _scalar(np.int64)
uint1 = _scalar(ml_dtypes.uint1) if hasattr(ml_dtypes, "uint1") else None
uint2 = _scalar(ml_dtypes.uint2)
uint4 = _scalar(ml_dtypes.uint4)
uint8 = _scalar(np.uint8)
uint16 = _scalar(np.uint16)
uint32 = _scalar(np.uint32)
uint64 = _scalar(np.uint64)
float4_e2m1fn = _scalar(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar(ml_dtypes.float6_e3m2fn)
float8_e3m4 = _scalar(ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar(ml_dtypes.float8_e8m0fnu)
bfloat16 = _scalar(ml_dtypes.bfloat16)
float16 = _scalar(np.float16)
float32 = single = _scalar(np.float32)
float64 = double = _scalar(np.float64)
complex64 = csingle = _scalar(np.complex64)
complex128 = cdouble = _scalar(np.complex128)
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128


def _dtype_of(x: Any) -> Any:
    """What stands for its dtype, an array, as its dtype; ValueError for arrays of keys, which NumPy has not."""
    dtype = getattr(x, "dtype", None)
    if isinstance(x, (int, float, complex, list, np.ndarray)) and not isinstance(x, np.generic):
        raise TypeError(f"Cannot interpret '{x}' as a data type")
    if dtype is None and not isinstance(x, (type, str, np.dtype, dtypes.ExtendedDType)):
        return dtypes.as_dtype(x)
    if dtype is None or isinstance(x, (type, np.dtype, np.generic)):
        return x
    if isinstance(dtype, dtypes.ExtendedDType):
        raise ValueError(f"Could not convert {x!r} to a NumPy dtype: its dtype is {dtype}")
    return dtype


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> builtins.bool:
    """Whether a dtype belongs to a dtype or to an abstract class of them, such as `floating`.

    Args:
      arg1: a dtype, or an array for that of its elements.
      arg2: a dtype or a class: `generic`, `number`, `integer`, `inexact`, … or an extended one.

    Returns:
      a bool of Python. Narrow types such as bfloat16 and int4 belong to `floating` and `signedinteger`.

    Raises:
      TypeError: for what is no dtype.
      ValueError: for an array of keys.
    """
    try:
        return dtypes.issubdtype(_dtype_of(arg1), _dtype_of(arg2))
    except Exception as error:
        hide_frames(error)
        raise


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> builtins.bool:
    """Whether a dtype is of a kind.

    Args:
      dtype: a dtype.
      kind: a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
        "numeric", or a tuple of kinds.

    Returns:
      a bool of Python.

    Raises:
      TypeError: for what is no kind.
      ValueError: for another word.
    """
    return dtypes.isdtype(dtype, kind)


@api_boundary
def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype that operations on arrays of two dtypes give.

    Args:
      a, b: dtypes; the Python types `int`, `float` and `complex` are weak and yield to the other's width.

    Returns:
      a dtype.

    Raises:
      TypePromotionError: where there is none, as for narrow floats beside each other.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.promote_types(jnp.int8, jnp.uint8)
      dtype('int16')
    """
    return dtypes.promote_types(a, b)  # type: ignore[arg-type]


def result_type(*args: ArrayLike | DTypeLike) -> DType:
    """The dtype that an operation on the arguments gives.

    Args:
      *args: arrays, numbers and dtypes; Python's numbers are weak and yield to the width of others.

    Returns:
      a dtype, not of 64 bits unless x64 is enabled.

    Raises:
      ValueError: without arguments.
      TypePromotionError: where there is none.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.result_type(jnp.int8, 1.0)
      dtype('float32')
    """
    try:
        return dtypes.result_type(*args)
    except Exception as error:
        hide_frames(error)
        raise


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool:
    """Whether NumPy can convert between two dtypes under a casting rule.

    Args:
      from_: a dtype, or an array, whose dtype it is; no number of Python.
      to: a dtype.
      casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns:
      a bool of Python.

    Raises:
      TypeError: for numbers, and for what is no dtype.
      ValueError: for other rules.
    """
    return np.can_cast(_dtype_within(from_), _dtype_within(to), casting)  # type: ignore[arg-type]


def _dtype_within(x: Any) -> Any:
    """The dtype of an array or of one of our scalar types; NumPy's types have a `dtype`, too, which is none."""
    dtype = getattr(x, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else x


def isscalar(element: Object) -> builtins.bool:
    """Whether `element` is a number or an array of rank 0.

    Args:
      element: any object; for those that are no arrays NumPy decides, which takes strings as scalars, too.

    Returns:
      a bool of Python.
    """
    if is_array(element) or hasattr(element, "__jax_array__"):
        return shape_of(element) == ()
    return np.isscalar(element) or isinstance(element, np.ndarray) and element.ndim == 0


def iterable(y: Object) -> builtins.bool:
    """Whether `iter(y)` succeeds.

    Args:
      y: any object.

    Returns:
      a bool of Python.
    """
    return np.iterable(y)


index_exp = np.index_exp
s_ = np.s_
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
save = np.save
savez = np.savez


def array_repr(arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: builtins.bool | None = None) -> str:
    """The text of an array that shows its dtype.

    Args:
      arr: an array.
      max_line_width: characters of a line; this and the others are as set by `set_printoptions` where they are None.
      precision: digits after the point of floats.
      suppress_small: whether numbers that these digits do not show are written as 0.

    Returns:
      a string.
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)  # type: ignore[arg-type]


def array_str(a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: builtins.bool | None = None) -> str:
    """The elements of an array as text.

    Args:
      a: an array.
      max_line_width: characters of a line; this and the others are as set by `set_printoptions` where they are None.
      precision: digits after the point of floats.
      suppress_small: whether numbers that these digits do not show are written as 0.

    Returns:
      a string.
    """
    return np.array_str(a, max_line_width, precision, suppress_small)  # type: ignore[arg-type]
