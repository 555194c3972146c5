"""Looking at programs without running them: `make_jaxpr` and `eval_shape`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import extend_axis_env
from ..core.trees import tree
from ..core.types.avals import AbstractValue
from ..core.types.typing import AxisName, Function, PyTree
from .jit import PjitFunction, can_be_cached
from .naming import check_callable, function_name, split_arguments, wraps
from .tracing import check_hashable, trace_function


@api_boundary
def make_jaxpr(fun: Function, static_argnums: int | Sequence[int] = (),
               axis_env: Sequence[tuple[AxisName, int]] | None = None, return_shape: bool = False) -> Function:
    """A function that shows the program that `fun` is, instead of running it: the one that `jit` traces, or has traced.

    Args:
      fun: a function of arrays, scalars and containers of them.
      static_argnums: positions of arguments that are passed to `fun` as they are.
      axis_env: `(name, size)` pairs of mapped axes to have in scope.
      return_shape: whether to return the structure of the results too.

    Returns:
      A function of the same arguments (or `ShapeDtypeStruct`s in their place) that returns a
      `ClosedJaxpr`, or with `return_shape` a pair of it and the results' `ShapeDtypeStruct`s.

    Raises:
      TypeError: `fun` is not callable.

    Example:
      >>> import styrax as jax
      >>> jax.make_jaxpr(lambda x: 2 * x + 1)(1.0)
      { lambda ; a:f32[]. let
          b:f32[] = mul 2.0:f32[] a
          c:f32[] = add b 1.0:f32[]
        in (c,) }
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")

    @wraps(fun, namestr="make_jaxpr({fun})")
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        static = split_arguments(args, static_argnums)
        for i in static:
            check_hashable(args[i])
        with ExitStack() as scope:
            for name, size in axis_env or ():
                scope.enter_context(extend_axis_env(name, size))
            if can_be_cached(fun):
                program = PjitFunction(fun, {"static_argnums": static_argnums or None}).traced(args, kwargs)
                closed, out_tree = program.whole, program.out_tree
            else:
                closed, out_tree = trace_function(fun, args, kwargs, static, "jit")
        if return_shape:
            return closed, tree.tree_unflatten(out_tree, [_shape_of(a) for a in closed.out_avals])
        return closed

    make_jaxpr_f.__module__ = "jax"
    make_jaxpr_f.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', function_name(fun))})"
    return make_jaxpr_f


def _shape_of(aval: Any) -> ShapeDtypeStruct | AbstractValue:
    if aval.is_high:
        return aval
    told = aval.given_sharding
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type,
                            sharding=told if told is not None and told.mesh.are_all_axes_explicit else None)


@api_boundary
def eval_shape(fun: Function, *args: PyTree, **kwargs: PyTree) -> PyTree:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing it.

    Arguments may be arrays or anything with `shape` and `dtype`. Returns the structure of the
    results with a `ShapeDtypeStruct` for each array.

    Raises:
      TypeError: `fun` is not callable, or an argument is not an array.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.eval_shape(jnp.dot, jnp.ones((3, 4)), jnp.ones(4))
      ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    check_callable(fun)
    if hasattr(fun, "eval_shape"):  # a jitted function: where its results lie, too
        return fun.eval_shape(*args, **kwargs)
    program = PjitFunction(fun, {}).traced(args, kwargs)
    return tree.tree_unflatten(program.out_tree, [_shape_of(a) for a in program.whole.out_avals])


__all__ = ["eval_shape", "make_jaxpr"]
