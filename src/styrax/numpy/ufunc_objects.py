"""`ufunc`: elementwise functions as objects that also reduce, accumulate and build tables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.shape_struct import ShapeDtypeStruct
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, Index, Scalar
from styrax.transforms.jit import jit_for_all_shapes as jit

from . import binary, ufuncs
from .broadcasting import choose_elements, spread
from .conversion import asarray
from .promotion import (
    arrays,
    axis_index,
    axis_indices,
    check_arraylike,
    convert,
    dtype_of,
    promote_args_inexact,
    shape_of,
    unwrap,
    user_dtype,
)

AT = ("Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like np.ufunc.at(). Instead, you can "
      "pass inplace=False and capture the result; e.g. >>> arr = jnp.add.at(arr, ind, val, inplace=False)")


class ufunc:
    """An elementwise function with methods on whole arrays.

    `add(x, y)` calls it; `add.reduce(x)` folds it over an axis, `add.accumulate(x)` keeps what lies
    between, `add.outer(x, y)` applies it to all pairs, `add.at(x, i, y, inplace=False)` to elements, and
    `add.reduceat(x, i)` to slices. The methods but `at` and `outer` are for functions of two operands.
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: Scalar | None = None, call: Callable[..., Any] | None = None,
                 reduce: Callable[..., Any] | None = None, accumulate: Callable[..., Any] | None = None,
                 at: Callable[..., Any] | None = None, reduceat: Callable[..., Any] | None = None):
        self._func, self._call = func, call or func
        self.nin = operator.index(nin)
        self.nout = operator.index(nout)
        self.nargs = operator.index(self.nin if nargs is None else nargs)
        self.identity = identity
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self.__qualname__ = self.__name__
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat

    def __hash__(self) -> int:
        return hash((self._func, self.__name__, self.identity, self.nin, self.nout))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and (self._func, self.__name__, self.identity, self.nin, self.nout) == (
            other._func, other.__name__, other.identity, other.nin, other.nout)

    def __reduce_ex__(self, protocol: Any) -> Any:
        here = globals().get(self.__name__)  # a ufunc of this module is pickled by its name
        return self.__name__ if here is self else super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        try:
            if out is not None:
                raise NotImplementedError(f"out argument of {self}")
            if where is not None:
                raise NotImplementedError(f"where argument of {self}")
            return self._call(*args)
        except Exception as error:
            hide_frames(error)
            raise

    def _binary_only(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    def reduce(self, a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, out: None = None,
               keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """The function folded over an axis (over all for None), from `initial`, where `where` holds.

        Raises ValueError for functions of other than two operands, and for `where` without a start.
        """
        self._binary_only("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if initial is not None:
            check_arraylike(f"{self.__name__}.reduce", initial)
        if where is not None:
            check_arraylike(f"{self.__name__}.reduce", where)
            if self.identity is None and initial is None:
                raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                                 f"where mask one has to specify 'initial'.")
        return _reduce(a, ufunc_=self, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The function folded over an axis, with all that lies between.

        Raises ValueError for functions of other than two operands, and for scalars.
        """
        self._binary_only("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.accumulate()")
        return _accumulate(a, ufunc_=self, axis=axis, dtype=dtype)

    def at(self, a: ArrayLike, indices: Index, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """A copy of `a` with the function applied at indices, once for every time one occurs.

        `inplace=False` has to be given: raises NotImplementedError otherwise.
        """
        if inplace:
            raise NotImplementedError(AT)
        return _at(a, indices, b, ufunc_=self)

    def reduceat(self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                 out: None = None) -> Array:
        """The function folded over slices of an axis, from each index to the next one.

        An index that is not below the next gives its element alone. Raises ValueError for functions of
        other than two operands, and for indices that are no vector.
        """
        self._binary_only("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        return _reduceat(a, indices, ufunc_=self, axis=axis, dtype=dtype)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of all pairs of an element of `A` and one of `B`.

        Raises ValueError for functions of other than two operands.
        """
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return _outer(unwrap(A), unwrap(B), ufunc_=self)


def _static_jit(function: Callable[..., Any], name: str, *static: str) -> Callable[..., Any]:
    named(function, name)
    return jit(function, static_argnames=("ufunc_", *static))


def _result_dtype(ufunc_: ufunc, *operands: Any) -> Any:
    """The dtype that the function's results have for elements of these arrays."""
    from styrax.transforms.looking import eval_shape

    scalars = [ShapeDtypeStruct((), x.dtype, weak_type=x.weak_type) for x in operands]
    return eval_shape(ufunc_._call, *scalars).dtype


def _reduce_entry(a: Any, *, ufunc_: ufunc, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    if ufunc_._reduce is not None:
        return ufunc_._reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    (a,) = arrays(f"{ufunc_.__name__}.reduce", a)
    a = asarray(a)
    a = convert(a, _result_dtype(ufunc_, a, a) if dtype is None else user_dtype(dtype, "reduce"))
    if axis is None or isinstance(axis, (tuple, list)):
        axes = axis_indices(axis, a.ndim)
        kept = tuple(i for i in range(a.ndim) if i not in axes)
        shape = tuple(1 if i in axes else d for i, d in enumerate(a.shape))
        rest = tuple(a.shape[i] for i in kept)
        where = None if where is None else spread(asarray(where), a.shape)
        flat = lax.reshape(lax.transpose(a, (*axes, *kept)), (int(np.prod([a.shape[i] for i in axes])), *rest))
        if where is not None:
            where = lax.reshape(lax.transpose(where, (*axes, *kept)), flat.shape)
        out = _fold(ufunc_, flat, initial, where)
        return lax.reshape(out, shape) if keepdims else out
    axis = axis_index(axis, a.ndim)
    order = (axis, *(i for i in range(a.ndim) if i != axis))
    moved = lax.transpose(a, order)
    if where is not None:
        where = lax.transpose(spread(asarray(where), a.shape), order)
    out = _fold(ufunc_, moved, initial, where)
    return lax.expand_dims(out, (axis,)) if keepdims else out


def _fold(ufunc_: ufunc, a: Any, initial: Any, where: Any) -> Any:
    """The function folded over the first axis."""
    start = ufunc_.identity if initial is None else initial
    if start is None:
        if a.shape[0] == 0:
            raise ValueError(f"zero-size array to reduction operation {ufunc_.__name__} which has no identity")
        carry, first = lax.index_in_dim(a, 0, keepdims=False), 1
    else:
        carry, first = lax.broadcast_in_dim(convert(unwrap(start), a.dtype), a.shape[1:], ()), 0
        if a.shape[0] == 0:
            return carry

    def body(i: Any, carry: Any) -> Any:
        row = lax.dynamic_index_in_dim(a, i, keepdims=False)
        value = convert(ufunc_._call(carry, row), a.dtype)
        if where is None:
            return value
        return choose_elements(lax.dynamic_index_in_dim(where, i, keepdims=False), value, carry)

    carry = convert(carry, a.dtype)
    return lax.fori_loop(first, a.shape[0], body, carry)


def _accumulate_entry(a: Any, *, ufunc_: ufunc, axis: int, dtype: Any) -> Any:
    if ufunc_._accumulate is not None:
        return ufunc_._accumulate(a, axis=axis, dtype=dtype)
    (a,) = arrays(f"{ufunc_.__name__}.accumulate", a)
    a = asarray(a)
    if a.ndim == 0:
        raise ValueError("cannot accumulate on a scalar")
    a = convert(a, _result_dtype(ufunc_, a, a) if dtype is None else user_dtype(dtype, "accumulate"))
    if axis is None or isinstance(axis, (tuple, list)):
        raise ValueError("accumulate does not allow multiple axes")
    axis = axis_index(axis, a.ndim)
    if a.shape[axis] == 0:
        return a
    order = (axis, *(i for i in range(a.ndim) if i != axis))
    rows = lax.transpose(a, order)

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        value = convert(ufunc_._call(carry, row), a.dtype)
        return value, value

    first = lax.index_in_dim(rows, 0, keepdims=False)
    _, rest = lax.scan(step, first, lax.slice_in_dim(rows, 1, rows.shape[0]))
    out = lax.concatenate([lax.expand_dims(first, (0,)), rest], 0)
    return lax.transpose(out, tuple(int(i) for i in np.argsort(order)))


def _at_entry(a: Any, indices: Any, b: Any, *, ufunc_: ufunc) -> Any:
    from .indexing import gather_elements
    from .updates import scatter

    if b is None and ufunc_.nin == 1:
        a = asarray(a)
        return scatter(a, indices, convert(ufunc_._call(gather_elements(a, indices)), a.dtype), "set")
    a, b = (asarray(x) for x in arrays(f"{ufunc_.__name__}.at", a, b))
    if ufunc_._at is not None:
        return ufunc_._at(a, indices, b)
    a = convert(a, _result_dtype(ufunc_, a, b))
    parts = indices if isinstance(indices, tuple) else (indices,)
    parts = tuple(asarray(p) if not isinstance(p, slice) else p for p in parts)
    if any(isinstance(p, slice) for p in parts):
        raise NotImplementedError("slices in the indices of ufunc.at")
    shape = lax.broadcast_shapes(*(p.shape for p in parts))
    flat = [lax.reshape(spread(p, shape), (int(np.prod(shape)),)) for p in parts]
    rest = a.shape[len(parts):]
    values = lax.reshape(spread(b, (*shape, *rest)), (int(np.prod(shape)), *rest))

    def body(i: Any, out: Any) -> Any:
        at = tuple(lax.dynamic_index_in_dim(p, i, keepdims=False) for p in flat)
        value = ufunc_._call(gather_elements(out, at), lax.dynamic_index_in_dim(values, i, keepdims=False))
        return scatter(out, at, convert(value, a.dtype), "set")

    return lax.fori_loop(0, values.shape[0], body, a)


def _reduceat_entry(a: Any, indices: Any, *, ufunc_: ufunc, axis: int, dtype: Any) -> Any:
    from .clipping import clip
    from .selection import take

    if ufunc_._reduceat is not None:
        return ufunc_._reduceat(a, indices, axis=axis, dtype=dtype)
    a, indices = (asarray(x) for x in arrays(f"{ufunc_.__name__}.reduceat", a, indices))
    # an element may stand alone, as it is: the results are of a dtype that holds it, too
    a = convert(a, dtypes.promote_types(a.dtype, _result_dtype(ufunc_, a, a)) if dtype is None else
                user_dtype(dtype, "reduceat"))
    if indices.ndim != 1:
        raise ValueError("reduceat: indices must be one-dimensional")
    if a.ndim == 0:
        raise ValueError("reduceat: a must have 1 or more dimensions")
    if axis is None or isinstance(axis, (tuple, list)):
        raise ValueError("reduceat requires a single integer axis.")
    axis = axis_index(axis, a.ndim)
    size = a.shape[axis]
    count = indices.shape[0]
    if count == 0:
        return lax.full(tuple(0 if i == axis else d for i, d in enumerate(a.shape)), 0, a.dtype)
    one = convert(1, indices.dtype)
    ends = lax.concatenate([lax.slice_in_dim(indices, 1, count), lax.full((1,), size, indices.dtype)], 0)
    out = take(a, indices, axis=axis)

    def column(x: Any) -> Any:
        return lax.expand_dims(x, tuple(i for i in range(a.ndim) if i != axis))

    def body(i: Any, carry: Any) -> Any:
        at = lax.add(indices, lax.add(convert(i, indices.dtype), one))
        value = convert(ufunc_._call(carry, take(a, clip(at, 0, size - 1), axis=axis)), a.dtype)
        return choose_elements(column(lax.lt(at, ends)), value, carry)

    return lax.fori_loop(0, size, body, out)


def _outer_entry(a: Any, b: Any, *, ufunc_: ufunc) -> Any:
    rank_a, rank_b = len(shape_of(a)), len(shape_of(b))
    a, b = asarray(a), asarray(b)
    right = lax.expand_dims(b, tuple(range(rank_a))) if rank_a else b
    left = lax.expand_dims(a, tuple(range(rank_a, rank_a + rank_b))) if rank_b else a
    return ufunc_._call(left, right)


_reduce = _static_jit(_reduce_entry, "reduce", "axis", "dtype", "keepdims")
_accumulate = _static_jit(_accumulate_entry, "accumulate", "axis", "dtype")
_at = _static_jit(_at_entry, "at")
_reduceat = _static_jit(_reduceat_entry, "reduceat", "axis", "dtype")
_outer = _static_jit(_outer_entry, "outer")


# -- the functions of `numpy` that are ufuncs --------------------------------------------------------
def _lazily(module: str, name: str) -> Callable[..., Any]:
    """A reduction as implementation of a `reduce` or `accumulate`, found when it is first called."""

    def call(a: Any, **options: Any) -> Any:
        import importlib

        function = getattr(importlib.import_module(f"styrax.numpy.{module}"), name)
        if "dtype" in options and name in ("max", "min", "all", "any"):
            kind = options.pop("dtype")
            a = a if kind is None else convert(asarray(a), user_dtype(kind, name))
        if name in ("all", "any"):
            options.pop("initial", None)
        return function(a, **options)

    return call


def _log_reduce(base_two: bool) -> Callable[..., Any]:
    def call(a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None,
             where: Any = None) -> Any:
        from styrax.nn.exponentials import logsumexp

        a = asarray(a) if dtype is None else convert(asarray(a), user_dtype(dtype, "reduce"))
        (a,) = promote_args_inexact("logaddexp.reduce", a)
        factor = np.log(2.0)
        x = lax.mul(a, convert(factor, a.dtype)) if base_two else a
        out = logsumexp(x, axis=axis, keepdims=keepdims, where=where)
        out = lax.div(out, convert(factor, dtype_of(out))) if base_two else out
        if initial is None:
            return out
        return (logaddexp2 if base_two else logaddexp)(initial, out)

    return call


def _scattering(kind: str, of_bools: str | None = None) -> Callable[..., Any]:
    """`at` in the dtype of the array that is changed, by a scatter; for bools, which have no sums, by another."""

    def call(a: Any, indices: Any, b: Any) -> Any:
        from .updates import scatter

        if of_bools is not None and a.dtype == np.bool_:
            return scatter(a, indices, convert(b, a.dtype), of_bools)
        return scatter(a, indices, b, kind)

    return call


def _extreme(kind: str) -> Callable[..., Any]:
    """`at` of `maximum` or `minimum`, in the dtype that the operands have together, by a scatter."""

    def call(a: Any, indices: Any, b: Any) -> Any:
        from .updates import scatter

        dtype = _result_dtype(maximum, a, b)
        return scatter(convert(a, dtype), indices, convert(b, dtype), kind)

    return call


def _binary(function: Callable[..., Any], identity: Any, reduce: Any = None, accumulate: Any = None,
            at: Callable[..., Any] | None = None) -> ufunc:
    return ufunc(function, 2, 1, identity=identity, reduce=reduce, accumulate=accumulate, at=at)


add = _binary(binary.add, 0, _lazily("reductions", "sum"), _lazily("accumulations", "cumsum"),
              _scattering("add", "max"))
multiply = _binary(binary.multiply, 1, _lazily("reductions", "prod"), _lazily("accumulations", "cumprod"),
                   _scattering("mul", "min"))
subtract = _binary(binary.subtract, None, at=_scattering("sub"))
maximum = _binary(binary.maximum, None, _lazily("reductions", "max"), at=_extreme("max"))
minimum = _binary(binary.minimum, None, _lazily("reductions", "min"), at=_extreme("min"))
logical_and = _binary(binary.logical_and, True, _lazily("reductions", "all"))
logical_or = _binary(binary.logical_or, False, _lazily("reductions", "any"))
logical_xor = _binary(binary.logical_xor, False)
bitwise_and = _binary(binary.bitwise_and, -1)
bitwise_or = _binary(binary.bitwise_or, 0)
bitwise_xor = _binary(binary.bitwise_xor, 0)
logaddexp = _binary(binary.logaddexp, -np.inf, _log_reduce(False))
logaddexp2 = _binary(binary.logaddexp2, -np.inf, _log_reduce(True))
negative = ufunc(ufuncs.negative_elements, 1, 1, name="negative")


def frompyfunc(func: Callable[..., ArrayLike | tuple[ArrayLike, ...]], /, nin: int, nout: int, *,
               identity: Scalar | None = None) -> ufunc:
    """A `ufunc` made of a function of scalars, which is vectorized by `vmap`.

    Args:
      func: the function.
      nin: the number of its operands.
      nout: the number of its results.
      identity: what `reduce` starts from; without one an empty axis cannot be reduced.

    Returns:
      the `ufunc`. Its methods but `at` and `outer` work in a loop, one element after the other.
    """
    from .vectorization import vectorize

    return ufunc(func, nin, nout, identity=identity, call=vectorize(func))
