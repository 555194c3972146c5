"""The methods, properties and operators of arrays and tracers, installed into `core.arrays.array`.

Operators give `NotImplemented` for operands that are no arrays or numbers, so that Python asks the
other side; everything else is the function of the same name.
"""

from __future__ import annotations

import operator as py_operator
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from styrax import lax
from styrax.core import hooks
from styrax.core.arrays.array import Array, install_methods
from styrax.core.programs.named import named
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary, hide_frames
from styrax.core.tracing.trace import Tracer
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DeviceLike, DTypeLike, Index, Object, ShapeLike, ShardingLike

from . import (
    accumulations,
    arrangements,
    binary,
    clipping,
    complex_parts,
    conversion,
    division,
    dot_products,
    indexing,
    moments,
    positions,
    reductions,
    rounding,
    selection,
    shaping,
    sorting,
    ufuncs,
)
from . import updates as updates_module
from .promotion import is_array, literal, user_dtype

_CONTAINERS = (list, tuple, set, dict)
_OPERANDS = (int, float, complex, np.ndarray, np.generic)


def _accepts(other: Any) -> bool:
    return isinstance(other, (Tracer, *_OPERANDS, Array)) or hasattr(other, "__jax_array__")


# A Python number beside a strongly typed array takes on the array's dtype when its kind is not above it.
_NUMBERS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
_FITTING = frozenset((np.dtype(d), kind) for kind, kinds in _NUMBERS.items() for d in (
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "complex64")
    if np.dtype(d).kind in kinds) | {(np.dtype(dtypes.bfloat16), kind) for kind in (bool, int, float)}
# Arrays of 64 bits may outlive x64; then they meet numbers in 32 bits.
_FITTING_X64 = frozenset((np.dtype(d), kind) for kind, kinds in _NUMBERS.items()
                         for d in ("int64", "uint64", "float64", "complex128") if np.dtype(d).kind in kinds)


def _fits(dtype: Any, kind: type) -> bool:
    return (dtype, kind) in _FITTING or ((dtype, kind) in _FITTING_X64 and config.enable_x64.value)


def _unknown(left: Any, right: Any) -> Any:
    """What an operator gives for an operand that is no array. TypeError for containers, which repeat and join."""
    if isinstance(left, _CONTAINERS) or isinstance(right, _CONTAINERS):
        raise TypeError(f"unsupported operand type(s): {type(left).__name__!r} and {type(right).__name__!r}")
    return NotImplemented


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator: `function(self, other)`, with the decisions that need no promotion made here."""
    primitive, fast = binary.direct.get(function, (function, frozenset()))

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            kind = type(other)
            if kind is Array:
                a, b = self.aval, other.aval  # type: ignore[union-attr]
                if a.dtype is b.dtype and a.weak_type is b.weak_type and a.shape == b.shape and a.dtype in fast:
                    return primitive(self, other)
            elif kind is float or kind is int:
                a = self.aval
                if not a.weak_type and a.dtype in fast and _fits(a.dtype, kind):
                    return primitive(self, literal(other, a.dtype))
            elif not _accepts(other):
                return _unknown(self, other)
            return function(self, other)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    primitive, fast = binary.direct.get(function, (function, frozenset()))
    def method(self: Array, other: ArrayLike) -> Array:
        try:
            kind = type(other)
            if kind is float or kind is int:
                a = self.aval
                if not a.weak_type and a.dtype in fast and _fits(a.dtype, kind):
                    return primitive(literal(other, a.dtype), self)
            elif kind is not Array and not _accepts(other):
                return _unknown(other, self)
            return function(other, self)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _power(self: Array, other: ArrayLike) -> Array:
    try:
        if type(other) is Array or _accepts(other):
            return binary.power(self, other)
        return NotImplemented
    except Exception as error:
        hide_frames(error)
        raise


def _round(self: Array, ndigits: int | None = None) -> Array:
    if ndigits is None:
        out = rounding.round(self)
        return conversion.astype(out, int)
    return rounding.round(self, decimals=py_operator.index(ndigits))


def _contains(self: Array, query: ArrayLike) -> Array:
    if np.ndim(query) != 0 if not is_array(query) else query.ndim != 0:
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={np.shape(query)}")
    return reductions.any(binary.equal(self, query))


def _iterate(self: Array) -> Iterator[Array]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (lax.index_in_dim(self, i, keepdims=False) for i in range(self.shape[0]))


def _setitem(self: Array, index: Index, value: ArrayLike) -> None:
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
        "x = x.at[idx].set(y) or another .at[] method: "
        "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


@api_boundary
def _delitem(self: Array, index: Index) -> None:
    raise AttributeError("__delitem__: JAX arrays are immutable; jnp.delete gives a copy without some of its elements")


def _copy_of(self: Array) -> Array:
    """A copy of the array."""
    return lax.copy_p.bind(self)


def _deep_copy(self: Array, memo: Object) -> Array:
    return lax.copy_p.bind(self)


def _astype(self: Array, dtype: DTypeLike | None, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """The array with its elements converted to `dtype`. See `astype`."""
    try:
        return conversion.astype(self, dtype, copy=copy, device=device)
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def _reshape(self: Array, *args: ShapeLike, order: str = "C", out_sharding: ShardingLike | None = None) -> Array:
    """The array in another shape, given as one sequence or as arguments. See `reshape`."""
    return shaping.reshape_to(self, *args, order=order)


@api_boundary
def _transpose(self: Array, *args: int | Sequence[int] | None) -> Array:
    """The array with its axes in another order, given as one sequence or as arguments; reversed by default."""
    if not args:
        return shaping.transpose(self)
    if len(args) == 1 and (args[0] is None or hasattr(args[0], "__iter__")):
        return shaping.transpose(self, args[0])  # type: ignore[arg-type]
    return shaping.transpose(self, args)  # type: ignore[arg-type]


def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """The elements as a vector, in row order (or column order for "F")."""
    return shaping.ravel(self, order=order)


def _clip(self: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements kept between two bounds. See `clip`."""
    return clipping.clip_between(self, min=min, max=max)


def _dot(self: Array, b: ArrayLike, *, precision: lax.PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The product with another array. See `dot`."""
    return dot_products.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _item(self: Array, *args: int | tuple[int, ...]) -> bool | int | float | complex:
    """The one element, or the one at an index, as a Python number."""
    array: Any = np.asarray(self)
    if not args and array.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return array.item(*(py_operator.index(a) if not isinstance(a, tuple) else a for a in args))


@api_boundary
def _view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The bytes of the array as elements of another dtype; the last axis grows or shrinks with their size.

    Raises ValueError where the sizes do not divide, NotImplementedError for `type`.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    target = user_dtype(dtype, "view")
    have = self.dtype
    if self.ndim == 0 and dtypes.itemsize_bits(have) != dtypes.itemsize_bits(target):
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if have == target:
        return self
    if target == np.bool_ or have == np.bool_:
        return _bool_view(self, have, target)
    if dtypes.issubdtype(have, np.complexfloating) or dtypes.issubdtype(target, np.complexfloating):
        return _complex_view(self, have, target)
    if have.itemsize == target.itemsize and dtypes.itemsize_bits(have) == dtypes.itemsize_bits(target):
        return lax.bitcast_convert_type(self, target)
    old, new = dtypes.itemsize_bits(have), dtypes.itemsize_bits(target)
    if new < old:
        out = lax.bitcast_convert_type(self, target)
        return lax.reshape(out, (*self.shape[:-1], self.shape[-1] * (old // new)))
    if (self.shape[-1] * old) % new:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                         "the last axis of the array.")
    rows = lax.reshape(self, (*self.shape[:-1], self.shape[-1] * old // new, new // old))
    return lax.bitcast_convert_type(rows, target)


def _bool_view(self: Array, have: Any, target: Any) -> Array:
    if have == np.bool_:
        return _view(lax.convert_element_type(self, np.dtype(np.uint8)), target)
    if have.itemsize != 1:
        return _bool_view(_view(self, np.uint8), np.dtype(np.uint8), target)
    return lax.ne(lax.bitcast_convert_type(self, np.dtype(np.uint8)), np.uint8(0))


def _complex_view(self: Array, have: Any, target: Any) -> Array:
    if dtypes.issubdtype(have, np.complexfloating):
        part = np.empty(0, have).real.dtype
        pairs = lax.stack([lax.real(self), lax.imag(self)], self.ndim)
        flat = lax.reshape(pairs, (*self.shape[:-1], self.shape[-1] * 2)) if self.ndim else pairs
        return _view(flat, target) if target != part else flat
    part = np.empty(0, target).real.dtype
    halves = _view(self, part)
    if halves.shape[-1] % 2:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                         "the last axis of the array.")
    pairs = lax.reshape(halves, (*halves.shape[:-1], halves.shape[-1] // 2, 2))
    last = pairs.ndim - 1
    return lax.complex(
        lax.index_in_dim(pairs, 0, last, keepdims=False), lax.index_in_dim(pairs, 1, last, keepdims=False)
    )


def _to_device(self: Array, device: DeviceLike, *, stream: Object = None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return conversion.place(self, device)


def _platform(self: Array) -> str:
    """The name of the platform that the array lives on."""
    return next(iter(self.devices())).platform


def _namespace(self: Array, /, *, api_version: str | None = None) -> ModuleType:
    """The module of functions on arrays of this kind, as the array API asks for."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"api_version={api_version!r} is not available")
    return hooks.numpy


def _not_implemented(name: str, advice: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"JAX Arrays do not implement the arr.{name} {advice}")

    return method


def _argpartition(self: Array, kth: int, axis: int = -1) -> Array:
    """The indices of a partition. See `argpartition`."""
    return sorting.argpartition(self, kth, axis)


def _choose(self: Array, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None,
            mode: str = "raise") -> Array:
    """The members of `choices` that the elements name. See `choose`."""
    return selection.choose(self, choices, out=out, mode=mode)


def _compress(self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None, size: int | None = None,
              fill_value: ArrayLike = 0) -> Array:
    """The slices where `condition` holds. See `compress`."""
    return positions.compress(condition, self, axis=axis, out=out, size=size, fill_value=fill_value)


def _searchsorted(self: Array, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                  method: str = "scan") -> Array:
    """Where the elements of `v` go in this sorted vector. See `searchsorted`."""
    return sorting.searchsorted(self, v, side=side, sorter=sorter, method=method)


def _byteswap(self: Array, inplace: bool = False) -> Array:
    """The elements with their bytes in reverse order."""
    if inplace:
        raise NotImplementedError("array.byteswap() with inplace=True: JAX arrays are immutable")
    size = self.dtype.itemsize
    if size == 1:
        return self
    if dtypes.issubdtype(self.dtype, np.complexfloating):
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    return lax.bitcast_convert_type(
        lax.rev(lax.bitcast_convert_type(self, np.dtype(np.uint8)), (self.ndim,)), self.dtype
    )


def _diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals. See `diagonal`."""
    return shaping.diagonal(self, offset=offset, axis1=axis1, axis2=axis2)


def _equal(self: Array, other: ArrayLike) -> Array:
    try:
        if type(other) is Array or _accepts(other):
            return binary.equal(self, other)
        return _unknown(self, other)
    except Exception as error:
        hide_frames(error)
        raise


def _conjugate(self: Array) -> Array:
    """The complex conjugate."""
    return complex_parts.conj(self)


def _matrix_transposed(self: Array) -> Array:
    """The array with its last two axes exchanged."""
    if self.ndim < 2:
        raise ValueError("x.mT requires x to have at least 2 dimensions.")
    return shaping.matrix_transpose(self)


def _item_size(self: Array) -> int:
    """The bytes of one element."""
    return self.dtype.itemsize


def _byte_size(self: Array) -> int:
    """The bytes of all elements."""
    return self.size * self.dtype.itemsize


def _check(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the library as a method: its first argument is the array."""
    if isinstance(function, FunctionType):
        return function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    named(method, name, function.__doc__)
    method.__wrapped__ = function  # type: ignore[attr-defined]
    return method


operators: dict[str, Callable[..., Any]] = {
    "__add__": _operator(binary.add), "__radd__": _reflected(binary.add),
    "__sub__": _operator(binary.subtract), "__rsub__": _reflected(binary.subtract),
    "__mul__": _operator(binary.multiply), "__rmul__": _reflected(binary.multiply),
    "__truediv__": _operator(binary.true_divide), "__rtruediv__": _reflected(binary.true_divide),
    "__floordiv__": _operator(division.floor_divide), "__rfloordiv__": _reflected(division.floor_divide),
    "__mod__": _operator(division.remainder), "__rmod__": _reflected(division.remainder),
    "__divmod__": _operator(division.divmod), "__rdivmod__": _reflected(division.divmod),
    "__pow__": _power, "__rpow__": _reflected(binary.power),
    "__matmul__": _operator(dot_products.matmul), "__rmatmul__": _reflected(dot_products.matmul),
    "__and__": _operator(binary.bitwise_and), "__rand__": _reflected(binary.bitwise_and),
    "__or__": _operator(binary.bitwise_or), "__ror__": _reflected(binary.bitwise_or),
    "__xor__": _operator(binary.bitwise_xor), "__rxor__": _reflected(binary.bitwise_xor),
    "__lshift__": _operator(binary.left_shift), "__rlshift__": _reflected(binary.left_shift),
    "__rshift__": _operator(binary.right_shift), "__rrshift__": _reflected(binary.right_shift),
    "__eq__": _equal, "__ne__": _operator(binary.not_equal),
    "__lt__": _operator(binary.less), "__le__": _operator(binary.less_equal),
    "__gt__": _operator(binary.greater), "__ge__": _operator(binary.greater_equal),
    "__neg__": ufuncs.negative_elements, "__pos__": ufuncs.positive, "__abs__": ufuncs.absolute,
    "__invert__": ufuncs.bitwise_not, "__round__": _round, "__getitem__": indexing.getitem, "__setitem__": _setitem,
    "__delitem__": _delitem, "__iter__": _iterate, "__contains__": _contains, "__copy__": _copy_of,
    "__deepcopy__": _deep_copy, "__array_namespace__": _namespace,
}

methods: dict[str, Callable[..., Any]] = {
    **operators,
    **{name: _check(name, getattr(reductions, name)) for name in
       ("all", "any", "argmax", "argmin", "max", "min", "prod", "ptp", "sum")},
    **{name: _check(name, getattr(moments, name)) for name in ("mean", "std", "var")},
    **{name: _check(name, getattr(accumulations, name)) for name in ("cumprod", "cumsum")},
    **{name: _check(name, getattr(shaping, name)) for name in ("ravel", "squeeze", "swapaxes", "trace")},
    **{name: _check(name, getattr(sorting, name)) for name in ("argsort", "sort")},
    "argpartition": _argpartition, "astype": _astype, "byteswap": _byteswap, "choose": _choose, "clip": _clip,
    "clone": _copy_of, "compress": _compress, "conj": _conjugate, "conjugate": _conjugate, "copy": _copy_of,
    "diagonal": _diagonal, "dot": _dot, "flatten": _flatten, "item": _item, "nonzero": _check("nonzero",
                                                                                              positions.nonzero),
    "platform": _platform, "repeat": _check("repeat", arrangements.repeat), "reshape": _reshape,
    "round": _check("round", rounding.round), "searchsorted": _searchsorted,
    "take": _check("take", selection.take), "to_device": _to_device, "transpose": _transpose, "view": _view,
}

properties: dict[str, Callable[..., Any]] = {
    "T": shaping.transpose, "mT": _matrix_transposed, "at": updates_module.at, "real": complex_parts.real,
    "imag": complex_parts.imag, "flat": _not_implemented("flat", "property: consider arr.flatten() instead."),
    "itemsize": _item_size, "nbytes": _byte_size,
}


def install() -> None:
    """Gives arrays and tracers their methods."""
    install_methods(methods, properties)



