"""Derivatives as users ask for them: `jvp`, `linearize`, `grad`, `linear_transpose`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays.array import Array
from ..core.arrays.constants import constant
from ..core.programs.dead_code import dce_jaxpr
from ..core.programs.jaxpr import Jaxpr, eval_jaxpr
from ..core.programs.name_stack import transform_name_stack
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import ShapedArray, shaped, typed
from ..core.types.typing import Function, PyTree
from .calls import (
    Axes,
    FlatCall,
    check_argument,
    check_input,
    check_output,
    check_outputs,
    check_tangent_type,
    no_reduce_axes,
    tangent_dtype,
)
from .jvp import jvp_flat
from .linear import Linearized, UndefinedPrimal, backward_pass, linear_jaxpr, linearize_flat, transpose_record
from .naming import check_callable, wraps
from .tracing import abstractify, trace_function
from .zeros import Zero, instantiate_zeros, zeros_like_aval

# Forward mode


@api_boundary
def jvp(fun: Function, primals: PyTree, tangents: PyTree, has_aux: bool = False) -> tuple[PyTree, ...]:
    """Runs a function with the derivative in one direction.

    Args:
      fun: a function of arrays and containers of them.
      primals: tuple or list of the arguments.
      tangents: tuple or list of the direction, with the structure, shapes and dtypes of `primals`; for
        integers and booleans of dtype `float0`.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.

    Returns:
      `(results, tangents of the results)`, and the auxiliary part with `has_aux`.

    Raises:
      TypeError: structures or dtypes do not match. ValueError: shapes do not.

    Example:
      >>> import styrax as jax
      >>> jax.jvp(lambda x: x ** 2, (3.0,), (1.0,))
      (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    values, in_tree = tree.tree_flatten(tuple(primals))
    directions, tangent_tree = tree.tree_flatten(tuple(tangents))
    if in_tree != tangent_tree or isinstance(primals, tuple) != isinstance(tangents, tuple):
        in_tree, tangent_tree = map(tree.tree_structure, (primals, tangents))
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree "
                        f"structure {in_tree} whereas tangents have tree structure {tangent_tree}.")
    for p, t in zip(values, directions, strict=True):
        check_argument(p)
        check_argument(t)
        p_aval, t_aval = get_aval(p), get_aval(t)
        expected = p_aval.to_tangent_aval()
        if expected.is_high or t_aval.is_high:
            check_tangent_type(expected, t_aval)
            continue
        if expected.dtype != tangent_dtype(t, t_aval):
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool "
                f"primal dtype the tangent dtype must be float0.Got primal dtype {p_aval.dtype} and so expected "
                f"tangent dtype {expected.dtype}, but got tangent dtype {t_aval.dtype} instead.")
        if p_aval.shape != t_aval.shape:
            raise ValueError("jvp called with different primal and tangent shapes;"
                             f"Got primal shape {p_aval.shape} and tangent shape as {t_aval.shape}")
    flat = FlatCall(fun, in_tree, has_aux)
    with transform_name_stack("jvp"):
        outs, tangents_out = jvp_flat(flat, values, directions)
    check_outputs(outs[:flat.num_outs])
    n = flat.num_outs
    result = flat.results(outs), tree.tree_unflatten(flat.structure, map(_beside, outs[:n], tangents_out[:n]))
    return (*result, flat.aux(outs)) if has_aux else result


def _beside(result: Any, tangent: Any) -> Any:
    """A result's tangent as an array if the result is one, though it is a number of the caller's that came through."""
    tangent = instantiate_zeros(tangent)
    if not isinstance(result, (Array, Tracer)) or isinstance(tangent, (Array, Tracer)):
        return tangent
    aval = get_aval(result).to_tangent_aval()
    # Tangents of integers are arrays of NumPy's, which alone have their dtype; those of other kinds are the kinds' own.
    return tangent if aval.is_high or aval.dtype == dtypes.float0 else constant(tangent, aval)


def _marked(aval: Any) -> str:
    """A type as messages show it, with the mark of a weak one."""
    return "~" * getattr(aval, "weak_type", False) + aval.str_short(short_dtypes=False)


class LinearMap:
    """A linear program of residuals and tangents, as `linearize` returns it."""

    __slots__ = ("in_avals", "in_tree", "jaxpr", "nonzero_out", "out_avals", "out_tree")

    def __init__(self, jaxpr: Jaxpr, in_tree: Any, out_tree: Any, in_avals: Sequence[Any], out_avals: Sequence[Any],
                 nonzero_out: Sequence[bool]):
        self.jaxpr = jaxpr
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.nonzero_out = nonzero_out

    @property
    def args(self) -> tuple[Jaxpr, Sequence[Any], Sequence[Any]]:
        """What it consists of, the program first, as tools read it off a `functools.partial`."""
        return self.jaxpr, self.in_avals, self.out_avals

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        leaves, in_tree = tree.tree_flatten(tangents)
        if in_tree != self.in_tree:
            raise TypeError(f"expected {self.in_tree}, got {in_tree}")
        given = []
        for t, aval in zip(leaves, self.in_avals, strict=True):
            expected, found = aval.to_tangent_aval(), get_aval(t)
            if expected.is_high or found.is_high:
                check_tangent_type(expected, found)
                given.append(t)
                continue
            dtype = tangent_dtype(t, found)
            if expected.shape != found.shape or expected.dtype != dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original primal values:\n"
                    f"Got tangent aval {_marked(found)} for primal aval {_marked(aval)} but expected "
                    f"{_marked(expected)}.")
            if dtype != dtypes.float0:
                given.append(t)
        outs = iter(eval_jaxpr(self.jaxpr, (), *residuals, *given))
        return tree.tree_unflatten(self.out_tree, [
            next(outs) if nz else zeros_like_aval(a) for nz, a in zip(self.nonzero_out, self.out_avals, strict=True)])

    def __repr__(self) -> str:
        return str(self.jaxpr)


@api_boundary
def linearize(fun: Function, *primals: PyTree, has_aux: bool = False) -> tuple[PyTree, ...]:
    """Runs a function and returns its derivative at that point as a function.

    Args:
      fun: a function of arrays and containers of them.
      primals: the arguments.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.

    Returns:
      `(results, push)`, where `push(*tangents)` gives the results' tangents without running `fun`
      again; and the auxiliary part with `has_aux`.

    Example:
      >>> import styrax as jax
      >>> y, tangent = jax.linearize(lambda x: x ** 2, 3.0)
      >>> tangent(1.0)
      Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    flat, values, outs, record = linearize_call(fun, *tree.tree_flatten(primals), has_aux)
    jaxpr, residuals, nonzero_out = linear_jaxpr(record)
    linear = LinearMap(jaxpr, flat.args_tree, flat.structure, [get_aval(x) for x in values],
                       [get_aval(x).to_tangent_aval() for x in outs[:flat.num_outs]], nonzero_out)
    push = tree.Partial(linear, residuals)
    result = flat.results(outs), push
    return (*result, flat.aux(outs)) if has_aux else result


def linearize_call(fun: Callable, values: list[Any], in_tree: tree.PyTreeDef,
                   has_aux: bool) -> tuple[FlatCall, list, list, Linearized]:
    """Runs a function of containers under linearization; gives it, its leaves, its results and the tape."""
    for x in values:
        check_argument(x)
    flat = FlatCall(fun, in_tree, has_aux)
    outs, record = linearize_flat(flat, values, name="jvp")
    n = flat.num_outs
    check_outputs(outs[:n])
    record.outs = record.outs[:n]
    return flat, values, outs, record


# Reverse mode


@api_boundary
def grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, reduce_axes: Axes = ()) -> Function:
    """The gradient of a function with a scalar result.

    Args:
      fun: a function of arrays and containers of them whose result is a scalar of real dtype.
      argnums: position or positions of the arguments to differentiate with regard to; negative ones
        count from the end.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      holomorphic: whether `fun` is promised to be holomorphic; then arguments and result must be complex.
      allow_int: whether integer arguments are allowed; their gradients have dtype `float0`.
      reduce_axes: no longer supported; must be empty.

    Returns:
      A function of the same arguments that gives the gradient, a tuple for several positions; with
      `has_aux` a pair of it and the auxiliary part.

    Raises:
      TypeError: the result is no scalar, or dtypes cannot be differentiated.

    Example:
      >>> import styrax as jax
      >>> jax.grad(lambda x: x ** 3)(2.0)
      Array(12., dtype=float32, weak_type=True)
    """
    value_and_grad_f = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    doc = ("Gradient of {fun} with respect to positional argument(s) {argnums}. Takes the same arguments as {fun} but "
           "returns the gradient, which has the same shape as the arguments at positions {argnums}.")

    @wraps(fun, docstr=doc, argnums=argnums)
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        return value_and_grad_f(*args, **kwargs)[1]

    @wraps(fun, docstr=doc, argnums=argnums)
    def grad_f_aux(*args: Any, **kwargs: Any) -> Any:
        (_, aux), g = value_and_grad_f(*args, **kwargs)
        return g, aux

    return grad_f_aux if has_aux else grad_f


@api_boundary
def value_and_grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False, reduce_axes: Axes = ()) -> Function:
    """A function with a scalar result together with its gradient; see `grad`.

    Returns:
      A function of the same arguments that gives `(value, gradient)`; with `has_aux`
      `((value, auxiliary part), gradient)`.

    Example:
      >>> import styrax as jax
      >>> jax.value_and_grad(lambda x: x ** 3)(2.0)
      (Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    no_reduce_axes(reduce_axes)
    positions = argnums if isinstance(argnums, int) else tuple(map(_index, argnums))
    if not isinstance(positions, tuple):
        positions = _index(positions)
    single = not isinstance(positions, tuple)
    wanted: tuple[int, ...] = (positions,) if single else positions  # type: ignore[assignment]
    needed = max(n if n >= 0 else -n - 1 for n in wanted) if wanted else -1

    @wraps(fun, docstr="Value and gradient of {fun} with respect to positional argument(s) {argnums}. Takes the same "
           "arguments as {fun} but returns a two-element tuple where the first element is the value of {fun} and the "
           "second element is the gradient, which has the same shape as the arguments at positions {argnums}.",
           argnums=argnums)
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        nargs = len(args)
        if needed >= nargs:
            if any(n < -nargs for n in wanted):
                bad = next(n for n in wanted if n < -nargs)
                raise ValueError(
                    "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal "
                    f"to -len(args) and less than len(args), but got value {bad} for len(args) == {nargs}.")
            raise TypeError(
                f"differentiating with respect to argnums={argnums} requires at least {needed + 1} positional "
                f"arguments to be passed by the caller, but got only {nargs} positional arguments.")
        at = [n if n >= 0 else n + nargs for n in wanted]
        leaves, in_tree = tree.tree_flatten(tuple(args[i] for i in at))
        for x in leaves:
            check_input("grad", holomorphic, allow_int, x)
        leaves = list(map(typed, leaves))

        def call(*differentiated: Any) -> Any:
            given = list(args)
            for i, x in zip(at, differentiated, strict=True):
                given[i] = x
            return fun(*given, **kwargs)

        flat = FlatCall(call, in_tree, has_aux)
        outs, record = linearize_flat(flat, leaves, name="jvp")
        n = flat.num_outs
        value = flat.results(outs)
        _check_scalar(value, outs[:n])
        check_output("grad", holomorphic, outs[0])
        record.outs = record.outs[:1]
        with transform_name_stack("transpose"):
            cts = transpose_record(record, [_one(outs[0])])
        grads = [np.zeros(get_aval(x).shape, dtypes.float0) if ct is None else instantiate_zeros(ct)
                 for x, ct in zip(leaves, cts, strict=True)]
        g = tree.tree_unflatten(in_tree, grads)
        if single:
            g = g[0]
        return ((value, flat.aux(outs)), g) if has_aux else (value, g)

    return value_and_grad_f


def _index(x: Any) -> int:
    return operator.index(x)


def _one(value: Any) -> Any:
    """The number one of a scalar's type, an array of its own: it may be the gradient."""
    aval = get_aval(value)
    one = constant(np.ones((), aval.dtype), shaped((), aval.dtype, aval.weak_type))
    told = aval.cotangent_sharding
    if told is None or not (told.spec.unreduced or told.spec.reduced):
        return one
    return hooks.reshard_p.bind(one, dst_sharding=told)


def _check_scalar(value: Any, leaves: Sequence[Any]) -> None:
    message = "Gradient only defined for scalar-output functions. Output "
    if len(leaves) != 1 or leaves[0] is not value:
        if len(leaves) != 1 or not tree.all_leaves([value]):
            raise TypeError(message + f"was {value}.")
    try:
        aval = get_aval(leaves[0])
    except TypeError:
        raise TypeError(f"Argument '{value}' of type {type(value)} is not a valid JAX type") from None
    if not isinstance(aval, ShapedArray):
        raise TypeError(message + f"had abstract value {aval}.")
    if aval.shape != ():
        raise TypeError(message + f"had shape: {aval.shape}.")


# Transposition


@api_boundary
def linear_transpose(fun: Function, *primals: PyTree, reduce_axes: Axes = ()) -> Function:
    """The transpose of a function that is promised to be linear.

    Args:
      fun: a linear function of arrays and containers of them.
      primals: arrays, or anything with shape and dtype, of the types that `fun` is applied to.
      reduce_axes: no longer supported; must be empty.

    Returns:
      A function that takes a cotangent with the structure of the result and gives a tuple of the
      arguments' cotangents. It is a pytree, so that compiled functions can take and return it.

    Raises:
      TypeError: dtypes are not supported, or a cotangent has another type than the result.
      NotImplementedError: `fun` is not linear.

    Example:
      >>> import styrax as jax
      >>> transposed = jax.linear_transpose(lambda x: 3.0 * x, 1.0)
      >>> transposed(2.0)
      (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun)
    no_reduce_axes(reduce_axes)
    leaves, in_tree = tree.tree_flatten(primals)
    avals = [abstractify(x) for x in leaves]
    closed, out_tree = trace_function(fun, primals, {}, (), "linear_transpose")
    if not (all(dtypes.issubdtype(a.dtype, np.inexact) for a in avals + closed.out_avals)
            or all(dtypes.issubdtype(a.dtype, np.integer) for a in avals + closed.out_avals)):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {[a.dtype.name for a in avals]} -> {[a.dtype.name for a in closed.out_avals]}.")
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), True)

    @api_boundary
    def transposed(consts: Sequence[Any], cotangent: Any) -> tuple:
        cts, ct_tree = tree.tree_flatten(cotangent)
        if ct_tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {ct_tree}")
        for ct, aval in zip(cts, closed.out_avals, strict=True):
            found = get_aval(ct)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise TypeError("cotangent type does not match function output, expected "
                                f"{tuple(closed.out_avals)} but got {cts}")
        with transform_name_stack("transpose"):
            found = backward_pass(jaxpr, consts, [UndefinedPrimal(a) for a in avals], cts)
        return tree.tree_unflatten(in_tree, [
            zeros_like_aval(a) if type(ct) is Zero else ct for ct, a in zip(found, avals, strict=True)])

    return tree.Partial(transposed, closed.consts)
