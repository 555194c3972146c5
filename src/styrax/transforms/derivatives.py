"""Derivatives as users ask for them: `jvp`, `vjp`, `linearize`, `grad`, Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, source, tree
from ..core.avals import ShapeDtypeStruct
from ..core.jaxpr import Jaxpr, eval_jaxpr
from ..core.trace import Tracer, get_aval
from . import array_ops
from .jvp import jvp_flat
from .linear import UndefinedPrimal, backward_pass, linear_jaxpr, linearize_flat, transpose_record
from .mapping import vmap
from .naming import check_callable, debug_info, wraps
from .partial import dce_jaxpr
from .tracing import abstractify, trace_function
from .zeros import Zero, instantiate_zeros, zeros_like_aval

Axes = Sequence[Any]


def _check_argument(x: Any) -> None:
    try:
        get_aval(x)
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.") from None


def _split_aux(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError("expected function with aux output to return a two-element tuple, but got type "
                        f"{type(result)} with value {result}")
    return result[0], result[1]


class _Flat:
    """A function of pytrees as one of flat lists, which remembers the structure of its results.

    Results come first, auxiliary ones after them.
    """

    __slots__ = ("aux_tree", "call", "has_aux", "in_tree", "num_outs", "out_tree")

    def __init__(self, call: Callable, in_tree: tree.PyTreeDef, has_aux: bool):
        self.call = call
        self.in_tree = in_tree
        self.has_aux = has_aux

    def __call__(self, *leaves: Any) -> list[Any]:
        result = self.call(*tree.tree_unflatten(self.in_tree, leaves))
        if self.has_aux:
            result, aux = _split_aux(result)
            outs, self.out_tree = tree.tree_flatten(result)
            extra, self.aux_tree = tree.tree_flatten(aux)
            self.num_outs = len(outs)
            return outs + extra
        outs, self.out_tree = tree.tree_flatten(result)
        self.num_outs = len(outs)
        return outs

    def results(self, leaves: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.out_tree, leaves[:self.num_outs])

    def aux(self, leaves: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.aux_tree, leaves[self.num_outs:])


# Forward mode


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple[Any, ...]:
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
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    values, in_tree = tree.tree_flatten(tuple(primals))
    directions, tangent_tree = tree.tree_flatten(tuple(tangents))
    if in_tree != tangent_tree:
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree "
                        f"structure {in_tree} whereas tangents have tree structure {tangent_tree}.")
    for p, t in zip(values, directions, strict=True):
        _check_argument(p)
        _check_argument(t)
        p_aval, t_aval = get_aval(p), get_aval(t)
        expected = p_aval.to_tangent_aval()
        if expected.dtype != _tangent_dtype(t, t_aval):
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool "
                f"primal dtype the tangent dtype must be float0.Got primal dtype {p_aval.dtype} and so expected "
                f"tangent dtype {expected.dtype}, but got tangent dtype {t_aval.dtype} instead.")
        if p_aval.shape != t_aval.shape:
            raise ValueError("jvp called with different primal and tangent shapes;"
                             f"Got primal shape {p_aval.shape} and tangent shape as {t_aval.shape}")
    flat = _Flat(fun, in_tree, has_aux)
    outs, tangents_out = jvp_flat(flat, values, directions)
    _check_outputs(outs[:flat.num_outs])
    n = flat.num_outs
    result = flat.results(outs), tree.tree_unflatten(flat.out_tree, map(instantiate_zeros, tangents_out[:n]))
    return (*result, flat.aux(outs)) if has_aux else result


def _tangent_dtype(t: Any, aval: Any) -> Any:
    return t.dtype if getattr(t, "dtype", None) == dtypes.float0 else aval.dtype


def _check_outputs(outs: Sequence[Any]) -> None:
    for x in outs:
        try:
            get_aval(x)
        except TypeError:
            raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


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

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        leaves, in_tree = tree.tree_flatten(tangents)
        if in_tree != self.in_tree:
            raise TypeError(f"expected {self.in_tree}, got {in_tree}")
        given = []
        for t, aval in zip(leaves, self.in_avals, strict=True):
            expected, found = aval.to_tangent_aval(), get_aval(t)
            dtype = _tangent_dtype(t, found)
            if expected.shape != found.shape or expected.dtype != dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original primal values:\n"
                    f"Got tangent aval {found.str_short(short_dtypes=False)} for primal aval "
                    f"{aval.str_short(short_dtypes=False)} but expected {expected.str_short(short_dtypes=False)}.")
            if dtype != dtypes.float0:
                given.append(t)
        outs = iter(eval_jaxpr(self.jaxpr, (), *residuals, *given))
        return tree.tree_unflatten(self.out_tree, [
            next(outs) if nz else zeros_like_aval(a) for nz, a in zip(self.nonzero_out, self.out_avals, strict=True)])

    def __repr__(self) -> str:
        return str(self.jaxpr)


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Runs a function and returns its derivative at that point as a function.

    Args:
      fun: a function of arrays and containers of them.
      primals: the arguments.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.

    Returns:
      `(results, push)`, where `push(*tangents)` gives the results' tangents without running `fun`
      again; and the auxiliary part with `has_aux`.
    """
    check_callable(fun)
    values, in_tree = tree.tree_flatten(primals)
    for x in values:
        _check_argument(x)
    flat = _Flat(fun, in_tree, has_aux)
    outs, record = linearize_flat(flat, values)
    n = flat.num_outs
    _check_outputs(outs[:n])
    record.outs = record.outs[:n]
    jaxpr, residuals, nonzero_out = linear_jaxpr(record)
    linear = LinearMap(jaxpr, in_tree, flat.out_tree, [get_aval(x) for x in values],
                       [get_aval(x).to_tangent_aval() for x in outs[:n]], nonzero_out)
    push = tree.Partial(linear, residuals)
    result = flat.results(outs), push
    return (*result, flat.aux(outs)) if has_aux else result


# Reverse mode


class VJP:
    """The function that pulls cotangents back; a pytree whose leaves are the residuals it keeps."""

    def __init__(self, jaxpr: Jaxpr, residuals: Sequence[Any], in_tree: Any, out_tree: Any, in_avals: Sequence[Any],
                 out_avals: Sequence[Any], perturbed: Sequence[bool], nonzero_out: Sequence[bool], name: str):
        self.jaxpr = jaxpr
        self.opaque_residuals = list(residuals)
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.perturbed = tuple(perturbed)
        self.nonzero_out = tuple(nonzero_out)
        self.name = name

    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(_one_cotangent.format(name=self.name.split(" at ")[0], n=len(cotangents)))
        leaves, ct_tree = tree.tree_flatten(cotangents[0])
        if ct_tree != self.out_tree:
            raise ValueError(_wrong_tree(self.name, self.out_tree, cotangents[0]))
        given = []
        for ct, aval, nz in zip(leaves, self.out_avals, self.nonzero_out, strict=True):
            _check_cotangent(ct, aval)
            if nz:
                given.append(Zero(aval.to_cotangent_aval()) if _is_float0(ct) else ct)
        undefined = [UndefinedPrimal(a.to_tangent_aval()) for a, p in zip(self.in_avals, self.perturbed, strict=True)
                     if p]
        found = backward_pass(self.jaxpr, (), [*self.opaque_residuals, *undefined], given)
        pulled = iter(found[len(self.opaque_residuals):])
        return tree.tree_unflatten(self.in_tree, [
            instantiate_zeros(next(pulled)) if p else np.zeros(a.shape, dtypes.float0)
            for a, p in zip(self.in_avals, self.perturbed, strict=True)])

    def __repr__(self) -> str:
        return (f"VJP(fun={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
                f"opaque_residuals={self.opaque_residuals})")


def _flatten_vjp(x: VJP) -> tuple[tuple, tuple]:
    return ((x.opaque_residuals,),
            (x.jaxpr, x.in_tree, x.out_tree, x.in_avals, x.out_avals, x.perturbed, x.nonzero_out, x.name))


def _unflatten_vjp(data: tuple, children: tuple) -> VJP:
    (residuals,) = children
    return VJP(data[0], residuals if isinstance(residuals, list) else [residuals], *data[1:])


tree.register_pytree_node(VJP, _flatten_vjp, _unflatten_vjp)


_one_cotangent = """
The function returned by `jax.vjp` applied to {name} was called with {n} arguments,
but functions returned by `jax.vjp` take one: the cotangent of the value that {name} returned, with
its structure. Pass a tuple for a function that returns a tuple: `f_vjp((ct0, ct1))`."""


def _wrong_tree(name: str, expected: Any, found: Any) -> str:
    from ..core import tree_paths

    example = tree.tree_unflatten(expected, [0.0] * expected.num_leaves)
    lines = []
    for path, a, b, why in tree_paths.equality_errors(example, found):
        lines.append(f"  * out{tree_paths.keystr(path)} was {a} in the original output, but {b} here, so {why}.")
    return ("unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` must match the pytree\n"
            f"structure of the differentiated function {name}.\n\nBut the tree structures differ:\n" + "\n".join(lines))


def _is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def _check_cotangent(ct: Any, aval: Any) -> None:
    """Raises ValueError for a cotangent of another type than the result."""
    expected = aval.to_cotangent_aval()
    if expected.dtype == dtypes.float0:
        return
    found = get_aval(ct)
    if expected.shape != found.shape or expected.dtype != found.dtype:
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{found.str_short(short_dtypes=False)}, but expected {expected.str_short(short_dtypes=False)} because the "
            "corresponding output of the differentiated function had JAX type "
            f"{aval.str_short(short_dtypes=False)}")


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Axes = ()) -> tuple[Any, ...]:
    """Runs a function and returns the function that pulls cotangents back through it.

    Args:
      fun: a function of arrays and containers of them.
      primals: the arguments.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      reduce_axes: no longer supported; must be empty.

    Returns:
      `(results, pull)`, where `pull(cotangents)`, given cotangents with the structure, shapes and dtypes of
      the results, gives a tuple of the arguments' cotangents (of dtype `float0` for integers and booleans);
      and the auxiliary part with `has_aux`.
    """
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
    values, in_tree = tree.tree_flatten(primals)
    for x in values:
        _check_argument(x)
    flat = _Flat(fun, in_tree, has_aux)
    outs, record = linearize_flat(flat, values)
    n = flat.num_outs
    _check_outputs(outs[:n])
    record.outs = record.outs[:n]
    jaxpr, residuals, nonzero_out = linear_jaxpr(record)
    pull = VJP(jaxpr, residuals, in_tree, flat.out_tree, [get_aval(x) for x in values],
               [get_aval(x) for x in outs[:n]], [v is not None for v in record.invars], nonzero_out,
               source.describe_function(fun))
    result = flat.results(outs), pull
    return (*result, flat.aux(outs)) if has_aux else result


def _no_reduce_axes(reduce_axes: Axes) -> None:
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument is deprecated")


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, reduce_axes: Axes = ()) -> Callable:
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


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False, reduce_axes: Axes = ()) -> Callable:
    """A function with a scalar result together with its gradient; see `grad`.

    Returns:
      A function of the same arguments that gives `(value, gradient)`; with `has_aux`
      `((value, auxiliary part), gradient)`.
    """
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
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
            _check_input("grad", holomorphic, allow_int, x)

        def call(*differentiated: Any) -> Any:
            given = list(args)
            for i, x in zip(at, differentiated, strict=True):
                given[i] = x
            return fun(*given, **kwargs)

        flat = _Flat(call, in_tree, has_aux)
        outs, record = linearize_flat(flat, leaves)
        n = flat.num_outs
        value = flat.results(outs)
        _check_scalar(value, outs[:n])
        _check_output("grad", holomorphic, outs[0])
        record.outs = record.outs[:1]
        cts = transpose_record(record, [_one(outs[0])])
        grads = [np.zeros(get_aval(x).shape, dtypes.float0) if ct is None else instantiate_zeros(ct)
                 for x, ct in zip(leaves, cts, strict=True)]
        g = tree.tree_unflatten(in_tree, grads)
        if single:
            g = g[0]
        return ((value, flat.aux(outs)), g) if has_aux else (value, g)

    return value_and_grad_f


def _index(x: Any) -> int:
    return x.__index__() if hasattr(x, "__index__") else int.__index__(x)


def _one(value: Any) -> Any:
    """The number one of a scalar's type."""
    aval = get_aval(value)
    if aval.weak_type:
        return 1.0 if dtypes.issubdtype(aval.dtype, np.floating) else 1.0 + 0.0j
    return np.ones((), aval.dtype)


def _check_scalar(value: Any, leaves: Sequence[Any]) -> None:
    message = "Gradient only defined for scalar-output functions. Output "
    if len(leaves) != 1 or leaves[0] is not value:
        if len(leaves) != 1 or not tree.all_leaves([value]):
            raise TypeError(message + f"was {value}.")
    try:
        aval = get_aval(leaves[0])
    except TypeError:
        raise TypeError(f"Argument '{value}' of type {type(value)} is not a valid JAX type") from None
    if getattr(aval, "shape", None) is None:
        raise TypeError(message + f"had abstract value {aval}.")
    if aval.shape != ():
        raise TypeError(message + f"had shape: {aval.shape}.")


def _check_input(what: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    _check_argument(x)
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}.")
    elif isinstance(dtype, dtypes.ExtendedDType) or dtypes.issubdtype(dtype, np.integer) or \
            dtypes.issubdtype(dtype, np.bool_):
        if not allow_int:
            raise TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtype.name}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int "
                "to True.")
    elif not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"{what} requires numerical-valued inputs (input dtype that is a sub-dtype of np.bool_ or "
                        f"np.number), but got {dtype.name}.")


def _check_output(what: str, holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.")
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            f"non-holomorphic functions involving complex outputs, use jax.vjp directly.")
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For differentiation of functions with integer outputs, use jax.vjp directly.")


# Transposition


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Axes = ()) -> Callable:
    """The transpose of a function that is promised to be linear.

    Args:
      fun: a linear function of arrays and containers of them.
      primals: arrays, or anything with shape and dtype, of the types that `fun` is applied to.
      reduce_axes: no longer supported; must be empty.

    Returns:
      A function that takes a cotangent with the structure of the result and gives a tuple of the
      arguments' cotangents.

    Raises:
      TypeError: dtypes are not supported, or a cotangent has another type than the result.
      NotImplementedError: `fun` is not linear.
    """
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
    leaves, in_tree = tree.tree_flatten(primals)
    avals = [abstractify(x) for x in leaves]
    closed, out_tree = trace_function(fun, primals, {}, (), "linear_transpose")
    if not (all(dtypes.issubdtype(a.dtype, np.inexact) for a in avals + closed.out_avals)
            or all(dtypes.issubdtype(a.dtype, np.integer) for a in avals + closed.out_avals)):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {[a.dtype.name for a in avals]} -> {[a.dtype.name for a in closed.out_avals]}.")
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), True)

    def transposed(cotangent: Any) -> tuple:
        cts, ct_tree = tree.tree_flatten(cotangent)
        if ct_tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {ct_tree}")
        for ct, aval in zip(cts, closed.out_avals, strict=True):
            found = get_aval(ct)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise TypeError("cotangent type does not match function output, expected "
                                f"{tuple(closed.out_avals)} but got {cts}")
        found = backward_pass(jaxpr, closed.consts, [UndefinedPrimal(a) for a in avals], cts)
        return tree.tree_unflatten(in_tree, [
            zeros_like_aval(a) if type(ct) is Zero else ct for ct, a in zip(found, avals, strict=True)])

    return transposed


# Jacobians


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable:
    """The Jacobian of a function, column by column in forward mode.

    Args:
      fun: a function of arrays and containers of them.
      argnums: position or positions of the arguments to differentiate with regard to.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      holomorphic: whether `fun` is promised to be holomorphic.

    Returns:
      A function of the same arguments. For each array of the result (of shape `out`) and each of the
      differentiated arguments (of shape `in`) it gives an array of shape `out + in`: the structure of
      the results, with the structure of the arguments in place of each leaf. With `has_aux` a pair of
      that and the auxiliary part.
    """
    check_callable(fun)

    @wraps(fun, docstr=_JACOBIAN_DOC, argnums=argnums)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, single = _choose(fun, args, kwargs, argnums)
        leaves, in_tree = tree.tree_flatten(chosen)
        for x in leaves:
            _check_input_jacfwd(holomorphic, x)

        def push(*tangents: Any) -> Any:
            return jvp(partial, chosen, tree.tree_unflatten(in_tree, tangents), has_aux=has_aux)

        basis = _basis(leaves)
        if has_aux:
            value, columns, aux = vmap(push, out_axes=(None, -1, None))(*basis)
        else:
            value, columns = vmap(push, out_axes=(None, -1))(*basis)
        for y in tree.tree_leaves(value):
            _check_output_jacfwd(holomorphic, y)
        shapes = [get_aval(x).shape for x in leaves]

        def unravel(column: Any) -> Any:
            shape = get_aval(column).shape[:-1]
            parts = _split(column, shapes, len(shape))
            result = tree.tree_unflatten(
                in_tree, [array_ops.lax.reshape(p, shape + s) for p, s in zip(parts, shapes, strict=True)])
            return result[0] if single else result

        found = tree.tree_map(unravel, columns)
        return (found, aux) if has_aux else found

    return jacobian


_JACOBIAN_DOC = ("Jacobian of {fun} with respect to positional argument(s) {argnums}. Takes the same arguments as {fun} "
                 "but returns the jacobian of the output with respect to the arguments at positions {argnums}.")


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Callable:
    """The Jacobian of a function, row by row in reverse mode; see `jacfwd`.

    With `allow_int`, integer arguments are allowed; their Jacobians have dtype `float0`.
    """
    check_callable(fun)

    @wraps(fun, docstr=_JACOBIAN_DOC, argnums=argnums)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, single = _choose(fun, args, kwargs, argnums)
        for x in tree.tree_leaves(chosen):
            _check_input("jacrev", holomorphic, allow_int, x)
        value, pull, *aux = vjp(partial, *chosen, has_aux=has_aux)
        outs, out_tree = tree.tree_flatten(value)
        for y in outs:
            _check_output("jacrev", holomorphic, y)
        rows = vmap(lambda *cts: pull(tree.tree_unflatten(out_tree, cts)))(*_basis(outs))
        rows = rows[0] if single else rows
        leaves, in_tree = tree.tree_flatten(rows)
        shapes = [get_aval(y).shape for y in outs]
        by_leaf = []
        for row in leaves:
            shape = get_aval(row).shape[1:]
            parts = _split(row, shapes, 0)
            by_leaf.append([_reshape(p, s + shape) for p, s in zip(parts, shapes, strict=True)])
        found = tree.tree_unflatten(out_tree, [
            tree.tree_unflatten(in_tree, [parts[k] for parts in by_leaf]) for k in range(len(outs))])
        return (found, aux[0]) if has_aux else found

    return jacobian


def hessian(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable:
    """The matrix of second derivatives of a function: `jacfwd` of `jacrev`, with their arguments."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _choose(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any],
            argnums: int | Sequence[int]) -> tuple[Callable, tuple, bool]:
    """The function of the chosen arguments alone, and those arguments."""
    single = isinstance(argnums, int)
    nums = (argnums,) if single else tuple(argnums)
    n = len(args)
    needed = max((i if i >= 0 else -i - 1 for i in nums), default=-1)
    if needed >= n:
        raise TypeError(f"differentiating with respect to argnums={argnums} requires at least {needed + 1} positional "
                        f"arguments to be passed by the caller, but got only {n} positional arguments.")
    at = [i % n for i in nums]

    def partial(*chosen: Any) -> Any:
        given = list(args)
        for i, x in zip(at, chosen, strict=True):
            given[i] = x
        return fun(*given, **kwargs)

    return partial, tuple(args[i] for i in at), single


def _size(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The unit vectors of a list of arrays: for each leaf an array with all of them in front."""
    avals = [get_aval(x) for x in leaves]
    total = sum(_size(a.shape) for a in avals)
    lax = array_ops.lax
    found = []
    offset = 0
    for aval in avals:
        n = _size(aval.shape)
        if aval.to_tangent_aval().dtype == dtypes.float0:
            found.append(np.zeros((total, *aval.shape), dtypes.float0))
        else:
            rows = lax.broadcasted_iota(np.int32, (total, n), 0)
            columns = lax.broadcasted_iota(np.int32, (total, n), 1)
            ones = lax.eq(rows, lax.add(columns, np.int32(offset)))
            found.append(lax.reshape(lax.convert_element_type(ones, aval.dtype), (total, *aval.shape)))
        offset += n
    return found


def _split(x: Any, shapes: Sequence[tuple], axis: int) -> list[Any]:
    """Cuts an array along an axis in parts of the sizes of `shapes`."""
    if len(shapes) == 1:
        return [x]
    parts = []
    offset = 0
    for shape in shapes:
        n = _size(shape)
        parts.append(x[offset:offset + n] if _is_float0(x) else
                     array_ops.lax.slice_in_dim(x, offset, offset + n, axis=axis))
        offset += n
    return parts


def _reshape(x: Any, shape: tuple) -> Any:
    return x.reshape(shape) if _is_float0(x) else array_ops.lax.reshape(x, shape)


def _check_input_jacfwd(holomorphic: bool, x: Any) -> None:
    _check_argument(x)
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError("jacfwd with holomorphic=True requires inputs with complex dtype, but got "
                            f"{dtype.name}.")
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex inputs or integer inputs, use jax.jvp directly.")


def _check_output_jacfwd(holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(f"jacfwd with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.")


__all__ = [
    "ShapeDtypeStruct", "Tracer", "debug_info", "grad", "hessian", "jacfwd", "jacrev", "jvp", "linear_transpose",
    "linearize", "value_and_grad", "vjp",
]
