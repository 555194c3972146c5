"""Python functions called from inside programs: `pure_callback` and `io_callback`.

The function runs on the host when the program reaches the call. A pure one may be left out, moved or run
again; one with effects runs exactly as often as the program says, and ordered ones in the order of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import hooks
from ..core.arrays import backends
from ..core.arrays.by_device import plainly
from ..core.arrays.devices import Sharding
from ..core.programs import rules
from ..core.programs.following import beside
from ..core.programs.primitive import Primitive
from ..core.programs.spreading import nowhere
from ..core.tracing import errors
from ..core.tracing.invalid_values import check_values
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import ShapedArray, stacked
from ..core.types.effects import (
    Effect,
    control_flow_allowed_effects,
    counted_effects,
    lowerable_effects,
    ordered_effects,
    per_device_effects,
)
from ..core.types.physical import physicals
from ..core.types.typing import PyTree
from .batch import AxisData, calls_of_devices, moveaxis
from .in_turn import by_device

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder


class IOEffect(Effect):
    """The program acts on the outside world, in any order."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "IO"


class OrderedIOEffect(Effect):
    """The program acts on the outside world, in the order of its calls."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OrderedIO"


io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()

for _kind in (IOEffect, OrderedIOEffect):
    lowerable_effects.add_type(_kind)
    control_flow_allowed_effects.add_type(_kind)
    counted_effects.add_type(_kind)
    per_device_effects.add_type(_kind)
ordered_effects.add_type(OrderedIOEffect)


class FlatCallback:
    """A function of trees that is called with leaves and gives leaves."""

    __slots__ = ("callback_func", "in_tree")

    def __init__(self, callback_func: Callable, in_tree: Any):
        self.callback_func = callback_func
        self.in_tree = in_tree

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree.tree_unflatten(self.in_tree, leaves)
        return tree.tree_leaves(self.callback_func(*args, **kwargs))

    def __eq__(self, other: object) -> bool:
        return (type(other) is FlatCallback and self.callback_func == other.callback_func
                and self.in_tree == other.in_tree)

    def __hash__(self) -> int:
        return hash((self.callback_func, self.in_tree))

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func!r}, in_tree={self.in_tree!r})"


pure_callback_p = Primitive("pure_callback", multiple_results=True)
pure_callback_p.declare(distinct=True, sharding=nowhere)
io_callback_p = Primitive("io_callback", multiple_results=True)

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None)


@api_boundary
def pure_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                  sharding: Sharding | None = None, vmap_method: str | None = None, **kwargs: PyTree) -> PyTree:
    """Calls a pure Python function from a program, also under `jit`.

    The function must give the same results for the same arguments and do nothing else: it may be called any number of
    times, or not at all where its results are not used.

    Args:
      callback: the function. It is given arrays in the trees of `args` and `kwargs`.
      result_shape_dtypes: a tree of objects with `shape` and `dtype`: what the function returns.
      args, kwargs: its arguments, trees of arrays.
      sharding: the device that it runs for.
      vmap_method: what `vmap` does. "sequential": one call for each element; "sequential_unrolled" without a loop;
        "expand_dims" and "broadcast_all": one call with a leading axis, which arguments that are not mapped have with
        size 1 or with the full size; "legacy_vectorized": one call in which those lack it. None: an error.

    Returns:
      A tree of arrays like `result_shape_dtypes`.

    Raises:
      ValueError: an unknown `vmap_method`; 64-bit results while 64-bit types are disabled; differentiation (give the
        derivative with `custom_jvp`). NotImplementedError: `vmap` without a method.
      JaxRuntimeError: the function raised, or returned other shapes or dtypes than announced.

    Example:
      >>> import styrax as jax
      >>> import numpy as np
      >>> shape = jax.ShapeDtypeStruct((), np.float32)
      >>> jax.jit(lambda x: jax.pure_callback(lambda v: np.float32(v + 1), shape, x))(1.0)
      Array(2., dtype=float32)
    """
    if not callable(callback):
        raise TypeError(f"Expected a callable, got {callback!r}")
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {list(VMAP_METHODS)}, but got: {vmap_method}")
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    avals, out_tree = _result_avals(result_shape_dtypes)
    outs = pure_callback_p.bind(*_check_leaves(leaves, "pure_callback"), callback=FlatCallback(callback, in_tree),
                                result_avals=avals, sharding=sharding, vmap_method=vmap_method)
    return tree.tree_unflatten(out_tree, outs)


@api_boundary
def io_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                sharding: Sharding | None = None, ordered: bool = False, **kwargs: PyTree) -> PyTree:
    """Calls a Python function with side effects from a program, also under `jit`.

    Args:
      callback: the function. It is given arrays in the trees of `args` and `kwargs`.
      result_shape_dtypes: a tree of objects with `shape` and `dtype`: what the function returns; None for nothing.
      args, kwargs: its arguments, trees of arrays.
      sharding: the device that it runs for.
      ordered: whether the calls happen in the order of the program.

    Returns:
      A tree of arrays like `result_shape_dtypes`.

    Raises:
      ValueError: differentiation, or `vmap` of an ordered callback.
      JaxRuntimeError: the function raised, or returned other shapes or dtypes than announced.
    """
    if not callable(callback):
        raise TypeError(f"Expected a callable, got {callback!r}")
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    avals, out_tree = _result_avals(result_shape_dtypes)
    outs = io_callback_p.bind(*_check_leaves(leaves, "io_callback"), callback=FlatCallback(callback, in_tree),
                              result_avals=avals, sharding=sharding, ordered=ordered)
    return tree.tree_unflatten(out_tree, outs)


def _result_avals(result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    leaves, out_tree = tree.tree_flatten(result_shape_dtypes)
    avals = []
    for x in leaves:
        dtype = np.dtype(x.dtype)
        if dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError("result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled")
        avals.append(ShapedArray(x.shape, dtype))
    return tuple(avals), out_tree


def _check_leaves(leaves: Sequence[Any], name: str) -> Sequence[Any]:
    for i, x in enumerate(leaves):
        try:
            get_aval(x)
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {name} as a JAX value. The problematic value is of type {type(x)} and "
                f"was passed to {name} at position {i}.") from None
    return leaves


@pure_callback_p.def_abstract_eval
def _pure_avals(*_: Any, result_avals: Sequence[ShapedArray], **params: Any) -> list[ShapedArray]:
    return list(result_avals)


@io_callback_p.def_effectful_abstract_eval
def _io_avals(*_: Any, result_avals: Sequence[ShapedArray], ordered: bool, **params: Any) -> tuple[list, frozenset]:
    return list(result_avals), frozenset({ordered_io_effect if ordered else io_effect})


# -- running --------------------------------------------------------------------------------------------------


def as_arrays(values: Sequence[Any]) -> list[Any]:
    """Concrete values, or NumPy views that are valid for a moment only, as arrays."""
    backend = backends.get()
    return [backend.put(x, get_aval(x), None) for x in values]


def checked(results: Sequence[Any], avals: Sequence[ShapedArray]) -> list[np.ndarray]:
    """A callback's results as NumPy arrays of the shapes and dtypes that were announced. RuntimeError for others."""
    if len(results) != len(avals):
        raise RuntimeError(
            f"Mismatched number of outputs from callback. Expected: {len(avals)}, Actual: {len(results)}")
    out = []
    for i, (x, aval) in enumerate(zip(results, avals, strict=True)):
        array = np.asarray(x)
        dtype = dtypes.canonicalize_dtype(array.dtype)
        if array.shape != aval.shape:
            raise RuntimeError(f"Incorrect output shape for return value #{i}: Expected: {aval.shape}, Actual: "
                               f"{array.shape}")
        if dtype != aval.dtype:
            raise RuntimeError(f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: {dtype}")
        out.append(array.astype(dtype, copy=False))
    return out


class told:
    """Context manager: a failure of a function that a program calls is told to a logger, which shows it by default.

    The program may raise its own error late, or not at all.
    """

    __slots__ = ("api", "logger")

    def __init__(self, logger: str, api: str):
        self.logger = logger
        self.api = api

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            import logging

            logging.getLogger(self.logger).exception("%s failed", self.api)


def _impl(primitive: Primitive, *args: Any, callback: FlatCallback, result_avals: Sequence[ShapedArray],
          **params: Any) -> list[Any]:
    try:
        results = _function(callback, result_avals, **params)(*args)
    except Exception as error:
        raise errors.callback_failed(error) from error
    check_values(results, primitive.name)
    outs = as_arrays(results)
    beside(outs, args)
    return outs


def _function(callback: FlatCallback, result_avals: Sequence[ShapedArray], ordered: bool | None = None,
              **params: Any) -> Callable[..., list[np.ndarray]]:
    """A callback as programs call it: NumPy views in, NumPy arrays out."""
    api = "jax.pure_callback" if ordered is None else "jax.io_callback"  # a pure one has no such parameter

    def function(*views: np.ndarray) -> list[np.ndarray]:
        with told("jax._src.callback", api), plainly():
            results = callback(*as_arrays(views))
        return checked(results, result_avals)

    return function


def _loops(b: Builder, *xs: Any, result_avals: Sequence[ShapedArray], **params: Any) -> list[Any]:
    return b.host_call(_function(result_avals=result_avals, **params), [(a.shape, a.dtype) for a in result_avals], xs)


def _stablehlo(m: Any, *xs: Any, result_avals: Sequence[ShapedArray], ordered: bool | None = None,
               **params: Any) -> list[Any]:
    return m.host_call(_function(result_avals=result_avals, ordered=ordered, **params),
                       [(a.shape, a.dtype) for a in result_avals], xs,
                       side_effect=ordered is not None, ordered=bool(ordered))


# -- transformations --------------------------------------------------------------------------------------------


def _refuse_pure(*_: Any, **params: Any) -> Any:
    raise ValueError(
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.")


def _refuse_io(*_: Any, **params: Any) -> Any:
    raise ValueError("IO callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
                     "gradients.")


def _refuse_transpose(*_: Any, **params: Any) -> Any:
    raise ValueError("Callbacks cannot be transposed. Please use `jax.custom_jvp` to use callbacks while taking "
                     "gradients.")


def one_by_one(primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None], unroll: bool,
               params: dict[str, Any]) -> tuple[list[Any], list[int]]:
    """Binds a primitive once for each element of the mapped axis."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]
    size = mapped[0].shape[0]

    def body(_: Any, row: Sequence[Any]) -> tuple[tuple, list[Any]]:
        rest = iter(row)
        return (), primitive.bind(*(x if d is None else next(rest) for x, d in zip(args, dims, strict=True)), **params)

    _, outs = hooks.lax.scan(body, (), mapped, unroll=size if unroll else 1)
    return outs, [0] * len(outs)


def batched_call(primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None], *, vmap_method: str | None,
                 result_avals: Sequence[ShapedArray], **params: Any) -> tuple[list[Any], list[int]]:
    """Binds a primitive that calls out of the program for a mapped axis, as `vmap_method` says."""
    if vmap_method is None:
        raise NotImplementedError(
            f"vmap is only supported for the {primitive} primitive when vmap_method is one of 'sequential', "
            "'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'. Got vmap_method=None.")
    if vmap_method.startswith("sequential"):
        return one_by_one(primitive, args, dims, vmap_method == "sequential_unrolled",
                          {**params, "vmap_method": vmap_method, "result_avals": result_avals})
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    lax = hooks.lax

    def lead(x: Any, d: int | None) -> Any:
        if d is not None:
            return moveaxis(x, d, 0)
        if vmap_method == "legacy_vectorized":
            return x
        shape = np.shape(x)
        extent = 1 if vmap_method == "expand_dims" else size
        return lax.broadcast_in_dim(x, (extent, *shape), tuple(range(1, len(shape) + 1)))

    outs = primitive.bind(
        *(lead(x, d) for x, d in zip(args, dims, strict=True)), vmap_method=vmap_method,
        result_avals=tuple(stacked(a, size) for a in result_avals), **params)
    return outs, [0] * len(outs)


def _batch_pure(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None],
                **params: Any) -> tuple[list[Any], list[int]]:
    if axis_data.devices:
        return by_device(axis_data, partial(pure_callback_p.bind, **params), args, dims)
    return batched_call(pure_callback_p, args, dims, **params)


def _batch_io(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, ordered: bool,
              **params: Any) -> tuple[list[Any], list[int]]:
    if axis_data.devices:
        return by_device(axis_data, partial(io_callback_p.bind, ordered=ordered, **params), args, dims)
    if ordered:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return one_by_one(io_callback_p, args, dims, False, {**params, "ordered": ordered})


for _primitive, _batch, _refuse in ((pure_callback_p, _batch_pure, _refuse_pure),
                                    (io_callback_p, _batch_io, _refuse_io)):
    _primitive.def_impl(partial(_impl, _primitive))
    rules.loops[_primitive] = _loops
    rules.stablehlos[_primitive] = _stablehlo
    rules.jvps[_primitive] = _refuse
    rules.transposes[_primitive] = _refuse_transpose
    rules.fancy_batchers[_primitive] = _batch
    physicals[_primitive] = lambda _, *args, _primitive=_primitive, **params: _primitive.bind(*args, **params)

calls_of_devices.update((pure_callback_p, io_callback_p))

__all__ = ["IOEffect", "OrderedIOEffect", "io_callback", "io_callback_p", "pure_callback", "pure_callback_p"]
