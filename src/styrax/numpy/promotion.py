"""Which dtype and which rank the operands of a function meet in.

The lattice itself is `core.types.dtypes`; here are its decisions applied to arguments, remembered by
dtype and weak type, so that an operation on arrays of one dtype pays a dictionary look-up at most.

Operands are annotated as `Array` from here on, although NumPy's values and Python's numbers pass as they are: `lax`
takes them. What has to know asks `is_array`, and reads types by `typed` and `shape_of`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import Dim, NotGeneric
from styrax.lax.casting import _convert_element_type, warn_of_loss
from styrax.lax.shaping.sizes import size_value

Typed = tuple[Any, bool]  # a dtype and whether it is weak

_PYTHON_KINDS = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64),
                 complex: np.dtype(np.complex128)}
_BOOL = np.dtype(np.bool_)


def is_array(x: Any) -> TypeGuard[Array]:
    """Whether `x` is an array of ours or a tracer of one (not a NumPy array, not a scalar)."""
    return isinstance(x, (Array, Tracer))


def is_arraylike(x: Any) -> bool:
    """Whether functions take `x` as an operand: arrays, tracers of arrays, NumPy arrays and scalars, Python numbers."""
    return (type(x) is Array
            or isinstance(x, (Array, bool, int, float, complex, np.ndarray, np.number, np.bool_))
            or _is_extension_scalar(x) or hasattr(x, "__jax_array__"))


def _is_extension_scalar(x: Any) -> bool:
    # Scalars of ml_dtypes derive from np.generic alone.
    return isinstance(x, np.generic) and not isinstance(x, (np.flexible, np.object_, np.datetime64, np.timedelta64))


def check_arraylike(name: str, *args: Any) -> None:
    """Raises TypeError, naming function and position, for an argument that is no array or number."""
    for position, x in enumerate(args):
        if not is_arraylike(x):
            if type(x) is Dim:
                raise NotGeneric("a size as an operand")
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}.")


def unwrap(x: Any) -> Array:
    """An operand as an array, tracer, NumPy value or Python number (`__jax_array__` is called)."""
    if type(x) is Array or isinstance(x, (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)):
        return x  # type: ignore[return-value]
    return x.__jax_array__()


def arrays(name: str, *args: Any) -> list[Array]:
    """The arguments, checked to be operands of the function `name`."""
    check_arraylike(name, *args)
    return [unwrap(x) for x in args]


def not_numeric(x: Any, dtype: Any) -> TypeError:
    """The error for an operand whose elements are texts, dates or objects."""
    return TypeError(f"Value '{x}' with dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are "
                     "supported by JAX.")


def canonical(dtype: Any) -> Any:
    """The dtype that stands for `dtype` under the present setting of `jax_enable_x64`."""
    return dtypes.canonicalize_dtype(dtype)


def default_float() -> Any:
    return dtypes.canonicalize_dtype(np.dtype(np.float64))


def default_int() -> Any:
    return dtypes.canonicalize_dtype(np.dtype(np.int64))


def typed(x: Any) -> Typed:
    """The dtype an operand has for promotion, and whether it is weak."""
    kind = type(x)
    if kind is Array or issubclass(kind, (Array, Tracer)):
        aval = x.aval
        return aval.dtype, aval.weak_type
    python = _PYTHON_KINDS.get(kind)
    if python is not None:
        return (python, False) if kind is bool else (dtypes.canonicalize_dtype(python), True)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "OSUMm":
            raise not_numeric(x, x.dtype)
        return dtypes.canonicalize_dtype(x.dtype), False
    if isinstance(x, (bool, int, float, complex)):  # subclasses, such as enumerations
        for base, dtype in _PYTHON_KINDS.items():
            if isinstance(x, base):
                return dtypes.canonicalize_dtype(dtype), base is not bool
    if isinstance(x, Array):  # arrays of an extended dtype
        return x.aval.dtype, False
    return typed(x.__jax_array__())


def typed_beside(x: Any) -> Typed:
    """The dtype and weak type of constants that meet an operand: weak beside scalars alone."""
    dtype, weak = typed(x)
    return dtype, weak and shape_of(x) == ()


def dtype_of(x: Any) -> Any:
    """The dtype of an operand."""
    return typed(x)[0]


def shape_of(x: Any) -> tuple:
    """The shape of an operand."""
    shape = getattr(x, "shape", None)
    if shape is None:
        return shape_of(x.__jax_array__()) if hasattr(x, "__jax_array__") else np.shape(x)
    return shape


_meetings: dict[tuple, Typed] = {}


def result_typed(*args: Any) -> Typed:
    """The dtype and weak type that operands are promoted to together.

    Raises TypePromotionError where the present promotion rules forbid the meeting.
    """
    kinds = [typed(x) for x in args]
    first = kinds[0]
    if len(kinds) == 1 or all(k == first for k in kinds):
        return (first[0], False) if first[1] and first[0] == _BOOL and len(kinds) > 1 else first
    key = (*kinds, config.enable_x64.value, config.numpy_dtype_promotion.value)
    found = _meetings.get(key)
    if found is None:
        dtype, weak = dtypes.result_type(*map(dtypes.plain_number, args), return_weak_type_flag=True)
        dtype = dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)  # arrays of 64 bits may outlive x64
        found = _meetings[key] = (dtype, weak and dtype != _BOOL)
    return found


def to_inexact(dtype: Any) -> Any:
    """`dtype` itself where it is inexact, float64 for integers of 64 bits, float32 for others.

    Raises TypeError for dtypes of texts, objects and times, which NumPy would read as numbers.
    """
    if dtypes.issubdtype(dtype, np.inexact):
        return dtype
    if getattr(dtype, "kind", "V") in "SUOMm":
        raise TypeError(f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by "
                        "JAX.")
    return np.dtype(np.float64 if dtypes.itemsize_bits(dtype) == 64 else np.float32)


def to_numeric(dtype: Any) -> Any:
    """`dtype` itself, or int32 for booleans."""
    return np.dtype(np.int32) if dtype == _BOOL else dtype


def to_complex(dtype: Any) -> Any:
    """The complex dtype that holds values of `dtype`."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        return dtype
    wide = np.dtype(np.complex128) if dtype in (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.uint64)) else (
        np.dtype(np.complex64))
    return dtypes.canonicalize_dtype(wide)


_literals: dict[tuple, np.ndarray] = {}


def literal(x: Any, dtype: Any) -> np.ndarray:
    """A Python number as a 0-d NumPy array of a dtype: ints wrap around, floats beyond integers' bounds are the next.

    Raises OverflowError for an int that the default integer dtype cannot hold.
    """
    kind = type(x)
    small = kind is int or kind is bool or (kind is float and x == x and x != 0)
    if small:
        found = _literals.get((kind, x, dtype))
        if found is not None:
            return found
    if kind is int:
        check_int(x)
    if kind is float and np.dtype(dtype).kind in "iu":
        bounds = np.iinfo(dtype)
        x = 0 if x != x else int(min(max(x, bounds.min), bounds.max))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = np.asarray(x).astype(dtype)
    value.flags.writeable = False
    if small and len(_literals) < 4096:
        _literals[(kind, x, dtype)] = value
    return value


def check_int(x: int) -> None:
    """Raises OverflowError for an int beyond the default integer dtype."""
    if not _fits(x):
        raise OverflowError(f"Python int {x} too large to convert to int{64 if config.enable_x64.value else 32}")


def _fits(x: int, signed: bool = False) -> bool:
    """Whether the default integer dtype holds an int, or where it has 64 bits (unless `signed`) the unsigned one."""
    bits = 63 if config.enable_x64.value else 31
    return -(1 << bits) <= x < (1 << bits) or bits == 63 and not signed and 0 <= x < (1 << 64)


def wrapped(x: Any, dtype: Any, weak: bool = False) -> Array:
    """`convert`, which of an int that the default integer dtype cannot hold takes the lowest bits."""
    if type(x) is int and not _fits(x, signed=weak):
        return _convert_element_type(x, dtype, weak)
    return convert(x, dtype, weak)


def convert(x: Any, dtype: Any, weak: bool = False) -> Array:
    """`x` with another dtype and weak type. What has them already is returned as it is."""
    kind = type(x)
    if kind is Array or issubclass(kind, (Array, Tracer)):
        aval = x.aval
        if aval.dtype == dtype and aval.weak_type == weak:
            return x
        if dtypes.kind(aval.dtype) == "c":
            warn_of_loss(dtype)
        return lax.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak, sharding=None)
    if kind not in _PYTHON_KINDS and isinstance(x, (int, float, complex)) and not isinstance(x, np.generic):
        kind = int if isinstance(x, int) else float if isinstance(x, float) else complex  # numbers that tell a dtype
        x = kind(x)  # type: ignore[arg-type]
    if kind in _PYTHON_KINDS:
        if kind is complex:
            warn_of_loss(dtype)
        if not weak:
            return literal(x, dtype)  # type: ignore[return-value]
        if kind is int:
            check_int(x)
        if dtypes.canonicalize_dtype(_PYTHON_KINDS[kind]) == dtype and kind is not bool:
            return x
        python = {"f": float, "i": int, "c": complex}.get(dtype.kind)
        if python is not None and dtypes.canonicalize_dtype(_PYTHON_KINDS[python]) == dtype:
            return python(x)
        return lax.convert_element_type_p.bind(literal(x, dtype), new_dtype=dtype, weak_type=True, sharding=None)
    if hasattr(x, "_is_symbolic_dim"):
        return size_value(x, dtype, weak)
    value = np.asarray(x)
    if weak:
        return lax.convert_element_type_p.bind(value, new_dtype=dtype, weak_type=True, sharding=None)
    if value.dtype == dtype:
        return value  # type: ignore[return-value]
    if value.dtype.kind == "c":
        warn_of_loss(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return value.astype(dtype)  # type: ignore[return-value]


def number_like(value: Any, x: Any) -> Array:
    """A number beside an operand: of its dtype, and weakly typed beside a weakly typed scalar alone."""
    return convert(value, *typed_beside(x))


def number_as(value: Any, x: Any) -> Array:
    """A number of an operand's dtype and weak type."""
    return convert(value, *typed(x))


def promote_dtypes(*args: Any) -> list[Array]:
    """Operands converted to their common dtype."""
    dtype, weak = result_typed(*args)
    return [convert(x, dtype, weak) for x in args]


def both(x: Any, y: Any) -> Array:
    """Whether two conditions hold."""
    return lax.bitwise_and(*promote_shapes("and", *promote_dtypes(x, y)))


def either(x: Any, y: Any) -> Array:
    """Whether one of two conditions holds."""
    return lax.bitwise_or(*promote_shapes("or", *promote_dtypes(x, y)))


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Operands converted to their common dtype, made a floating point one at least."""
    dtype, weak = result_typed(*args)
    dtype = to_inexact(dtype)
    return [convert(x, dtype, weak) for x in args]


def promote_dtypes_numeric(*args: Any) -> list[Array]:
    """Operands converted to their common dtype, booleans to integers."""
    dtype, weak = result_typed(*args)
    dtype = to_numeric(dtype)
    return [convert(x, dtype, weak) for x in args]


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Operands converted to their common dtype, made a complex one."""
    dtype, weak = result_typed(*args)
    dtype = to_complex(dtype)
    return [convert(x, dtype, weak) for x in args]


def promote_shapes(name: str, *args: Any) -> list[Array]:
    """Operands of one rank, or rank 0: elementwise primitives broadcast scalars and sizes of 1.

    Raises ValueError for shapes that do not broadcast, and as `jax_numpy_rank_promotion` asks.
    """
    if len(args) < 2:
        return list(args)
    shapes = [shape_of(x) for x in args]
    first = shapes[0]
    if all(s == first for s in shapes):
        return list(args)
    ranks = {len(s) for s in shapes if s}
    if len(ranks) < 2:
        return list(args)
    if config.numpy_rank_promotion.value != "allow":
        _rank_promotion(name, shapes)
    rank = len(lax.broadcast_shapes(*shapes))
    return [lax.broadcast_to_rank(x, rank) if len(s) != rank else x for x, s in zip(args, shapes)]


def _rank_promotion(name: str, shapes: list[tuple]) -> None:
    text = " ".join(map(str, shapes))
    if config.numpy_rank_promotion.value == "warn":
        warnings.warn(f"Following NumPy automatic rank promotion for {name} on shapes {text}. Set the "
                      "jax_numpy_rank_promotion config option to 'allow' to disable this warning; for more "
                      "information, see https://docs.jax.dev/en/latest/rank_promotion_warning.html.", stacklevel=4)
        return
    raise ValueError(
        f"Operands could not be broadcast together for {name} on shapes {text} and with the config option "
        "jax_numpy_rank_promotion='raise'. For more information, see "
        "https://docs.jax.dev/en/latest/rank_promotion_warning.html.\nGive the operands the same rank, for instance "
        "with jnp.expand_dims.")


def _check_numbers(name: str, args: Sequence[Any]) -> None:
    """Raises TypeError for arrays of float0, and of dtypes of libraries that would have to be promoted."""
    found = [dtype_of(x) for x in args]
    if dtypes.float0 in found:
        raise TypeError(f"Called {name} with a float0 array. float0s do not support any operations by design because "
                        "they are not compatible with non-trivial vector spaces. No implicit dtype conversion is done. "
                        "You can use np.zeros_like(arr, dtype=np.float) to cast a float0 array to a regular zeros "
                        "array.")
    if any(isinstance(d, dtypes.ExtendedDType) for d in found):
        raise TypeError(f"{name} does not accept dtypes {', '.join(d.name for d in found)}.")


def promote_args(name: str, *args: Any) -> list[Array]:
    """Checked operands of one dtype and of ranks that broadcast."""
    args = arrays(name, *args)  # type: ignore[assignment]
    try:
        return promote_shapes(name, *promote_dtypes(*args))
    except ValueError:
        _check_numbers(name, args)
        raise


def promote_args_inexact(name: str, *args: Any) -> list[Array]:
    """As `promote_args`, in floating point at least."""
    args = arrays(name, *args)  # type: ignore[assignment]
    try:
        return promote_shapes(name, *promote_dtypes_inexact(*args))
    except ValueError:
        _check_numbers(name, args)
        raise


def promote_args_numeric(name: str, *args: Any) -> list[Array]:
    """As `promote_args`, booleans as integers."""
    args = arrays(name, *args)  # type: ignore[assignment]
    return promote_shapes(name, *promote_dtypes_numeric(*args))


def user_dtype(dtype: Any, name: str = "") -> Any:
    """The dtype that a user's `dtype=` argument means here.

    Warns where 64 bits were asked for and are not enabled. Raises TypeError for what is no dtype, ValueError for an
    array.
    """
    return dtypes.check_and_canonicalize_user_dtype(dtype, name)


def dtype_of_new(name: str, shape: Any, dtype: Any) -> Any:
    """The dtype of an array that `name` makes; a second int is a size that belongs to the shape."""
    try:
        return user_dtype(float if dtype is None else dtype, name)
    except TypeError as error:
        if isinstance(shape, int) and isinstance(dtype, int):
            raise TypeError(f"{error}.\n\nDid you accidentally write `jax.numpy.{name}({shape}, {dtype})` when you "
                            f"meant `jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for the "
                            "shape?") from None
        raise


def axis_index(axis: Any, ndim: int, name: str = "") -> int:
    """An axis counted from the front. Raises ValueError outside [-ndim, ndim)."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def static_axis(axis: Any) -> Any:
    """An `axis=` argument, an int or several in an iterable, as None, an int or a tuple of ints; among them names of
    mapped axes."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, str):
        return (axis,)
    axis = concrete_or_error(None, axis, "The axis argument must be known statically.")
    if isinstance(axis, Iterable) and getattr(axis, "ndim", None) != 0:
        return tuple(a if isinstance(a, str) else operator.index(a) for a in axis)
    return operator.index(axis)


def axis_indices(axis: Any, ndim: int, unique: bool = True) -> tuple[int, ...]:
    """Axes given as None, an int or several in an iterable, counted from the front.

    Raises ValueError for axes out of range, or given twice if they are to be unique.
    """
    if axis is None:
        return tuple(range(ndim))
    axis = static_axis(axis)
    if isinstance(axis, tuple):
        found = tuple(axis_index(a, ndim) for a in axis)
        if unique and len(set(found)) != len(found):
            raise ValueError(f"duplicate value in 'axis': {axis}")
        return found
    return (axis_index(axis, ndim),)
