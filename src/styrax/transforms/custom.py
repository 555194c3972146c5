"""Functions with derivatives of the user's own: `custom_jvp`, `custom_vjp` and relatives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..core.arrays.array import Array
from ..core.arrays.constants import constant
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, eval_jaxpr
from ..core.settings import config
from ..core.tracing import errors
from ..core.tracing.source import api_boundary
from ..core.tracing.staging import hoist_tracers
from ..core.tracing.trace import Tracer, get_aval, state
from ..core.trees import tree, tree_paths
from ..core.trees.tree import tree_map
from ..core.types import dtypes
from ..core.types.avals import as_bound, typed
from ..core.types.typing import Function, PyTree
from .aliasing import any_references, check_arguments, check_residuals, check_rule_results
from .calls import tangent_dtype
from .custom_arguments import call_eagerly, check_leaves, positions, resolve_kwargs, split, without_tangents
from .custom_calls import custom_jvp_call_p, custom_vjp_call_p
from .flattening import FlatFunction, positional, with_fixed
from .naming import LateInfo, function_name, leaf_path, wraps
from .nested_rules import NestedRules
from .tracing import abstract_arguments, trace_flat, trace_function
from .zeros import SymbolicZero, Zero, add_tangents, instantiate_zeros, zeros_like_aval

_NOTHING = object()
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Function)


class _Primal(FlatFunction):
    """A function with a rule of its own, as one of the leaves of its differentiable arguments."""

    __slots__ = ()

    def __init__(self, fun: Callable, args_tree: tree.PyTreeDef, fixed: Sequence[tuple[int, Any]]):
        super().__init__(fun, positional(args_tree), fixed)

    @property
    def debug_info(self) -> DebugInfo:
        # names need the places of the leaves, not the leaves: programs keep the rule, and would keep tracers
        return LateInfo("custom_jvp fun", self.fun, lambda: self.arguments(range(self.in_tree.num_leaves)))


def _is_tracer(x: Any) -> bool:
    return isinstance(x, Tracer)


class custom_jvp(NestedRules, Generic[P, R]):
    """A function with a derivative of its own.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated, such as functions; they are passed
        to the rule first, as they are.
      nondiff_argnames: the same by name.

    The rule is given with `defjvp` or `defjvps`. Calling the function without one raises AttributeError.

    Example:
      >>> import styrax as jax
      >>> @jax.custom_jvp
      ... def f(x):
      ...     return x ** 2
      >>> @f.defjvp
      ... def f_jvp(primals, tangents):
      ...     return f(*primals), 10.0 * tangents[0]
      >>> jax.grad(f)(3.0)
      Array(10., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        wraps(fun)(self)
        self.fun = fun
        self.nondiff_argnums = positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Sets the rule: `jvp(*nondiff, primals, tangents) -> (result, tangent of the result)`.

        With `symbolic_zeros`, tangents of unperturbed arguments are `SymbolicZero`s.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Sets the rule by argument: `jvp(tangent, result, *primals)`, None where the derivative is zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            result = self(*primals)  # type: ignore[call-arg]
            if len(jvps) != len(primals):
                raise ValueError(f"{function_name(self.fun)} has {len(primals)} arguments, but defjvps was given "
                                 f"{len(jvps)} rules")
            total = None
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is not None:
                    term = rule(t, result, *primals)
                    total = term if total is None else tree.tree_map(add_tangents, total, term)
            if total is None:
                total = tree.tree_map(lambda x: zeros_like_aval(get_aval(x).to_tangent_aval()), result)
            return result, total

        self.defjvp(jvp)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        import functools

        return functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = function_name(self.fun)
        rule = self.jvp
        if rule is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        values = resolve_kwargs(self.fun, args, kwargs, "custom_jvp")
        if state.trace.is_eval:
            return call_eagerly(self.fun, values, self.nondiff_argnums, "custom_jvp_call")
        if self.nondiff_argnums:
            values = without_tangents(values, self.nondiff_argnums)
        nondiff, dynamic, fixed = split(values, self.nondiff_argnums)
        leaves, in_tree = tree.tree_flatten(dynamic)
        check_leaves(leaves, "custom_jvp_call")
        fun = _Primal(self.fun, in_tree, fixed)

        def jvp(*flat: Any) -> list[Any]:
            half = len(flat) // 2
            pair = rule(*nondiff, in_tree.unflatten(map(as_bound, flat[:half])), in_tree.unflatten(flat[half:]))
            return _check_jvp(pair, name, function_name(rule), fun)

        jvp.__name__ = function_name(rule)
        outs = custom_jvp_call_p.bind(*leaves, subfuns=(fun, jvp), symbolic_zeros=self.symbolic_zeros)
        return tree.tree_unflatten(fun.structure, outs)


def _as_array(ct: Any) -> Any:
    """A cotangent as users know arrays: with methods, also where it is a number or NumPy's."""
    if isinstance(ct, (int, float, complex, np.number)) or (isinstance(ct, np.ndarray) and ct.dtype != dtypes.float0):
        return constant(ct, get_aval(ct))
    return ct


def _check_jvp(pair: Any, name: str, rule_name: str, fun: FlatFunction) -> list[Any]:
    """The flat results of a JVP rule, after looking at what the user returned."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"Custom JVP rule {rule_name} for function {name} must produce a pair (list or tuple of length "
                        f"two) representing primal and tangent outputs, but got {pair}.")
    outs, out_tree = tree.tree_flatten(pair[0])
    tangents, tangent_tree = tree.tree_flatten(pair[1])
    if out_tree != tangent_tree:
        raise TypeError(f"Custom JVP rule {rule_name} for function {name} must produce primal and tangent outputs with "
                        f"equal container (pytree) structures, but got {out_tree} and {tangent_tree} respectively.")
    if fun.out_tree is not None and fun.out_tree != out_tree:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {name} must produce a pair (list or tuple of length two) where "
            "the first element represents the primal output (equal in value to the output of the custom_jvp-decorated "
            f"function {name}, and in particular of the same container/pytree structure), but instead the JVP rule "
            f"output's first element had container/pytree structure:\n    {out_tree}\nwhile the custom_jvp-decorated "
            f"function {name} had output container/pytree structure:\n    {fun.out_tree}.")
    fun.out_tree = out_tree
    for x, t in zip(outs, tangents, strict=True):
        aval = get_aval(x)
        expected = aval.to_tangent_aval()
        found: Any = t.aval if isinstance(t, (SymbolicZero, Zero)) else get_aval(t)
        if expected.is_high or found.is_high:
            agrees = expected == found
        else:
            agrees = expected.shape == found.shape and expected.dtype == tangent_dtype(t, found)
        if not agrees:
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {expected.str_short(short_dtypes=False)} (tangent type of "
                f"{aval.str_short(short_dtypes=False)}) but "
                f"got {found.str_short(short_dtypes=False)}.")
    return [*outs, *tangents]


class CustomVJPPrimal:
    """An argument of a `fwd` rule with `symbolic_zeros`: its value, and whether it is perturbed."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The tree with each `CustomVJPPrimal` in it replaced by its value."""
    return tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree,
                    is_leaf=lambda x: isinstance(x, CustomVJPPrimal))


class custom_vjp(NestedRules, Generic[P, R]):
    """A function with a reverse-mode derivative of its own.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated, such as functions; they are passed
        to the backward rule first, as they are, and must not be traced.
      nondiff_argnames: the same by name.

    The rule is given with `defvjp`. Calling the function without one raises AttributeError.

    Example:
      >>> import styrax as jax
      >>> @jax.custom_vjp
      ... def f(x):
      ...     return x ** 2
      >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
      >>> jax.grad(f)(3.0)
      Array(10., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        wraps(fun)(self)
        self.fun = fun
        self.nondiff_argnums = positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False

    def defvjp(self, fwd: Function, bwd: Function, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the rule.

        Args:
          fwd: `fwd(*args) -> (result, residuals)`; residuals are any pytree.
          bwd: `bwd(*nondiff, residuals, cotangent) -> tuple` of cotangents of the differentiable arguments, None
            for zero.
          symbolic_zeros: whether `fwd` gets `CustomVJPPrimal`s and `bwd` gets `SymbolicZero`s.
          optimize_remat: whether calls that `checkpoint` runs again may use `fun` in place of `fwd` where
            nothing needs the residuals.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("remat optimization for custom_vjp does not support symbolic zeros")
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        import functools

        return functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = function_name(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        values = resolve_kwargs(self.fun, args, kwargs, "custom_vjp")
        if state.trace.is_eval:
            return self._checked(call_eagerly(self.fun, values, self.nondiff_argnums, check=self._check_references))
        nondiff, dynamic, fixed = split(values, self.nondiff_argnums)
        if any(map(_is_tracer, tree.tree_leaves(nondiff))):
            raise errors.UnexpectedTracerError(
                "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated by "
                "nondiff_argnums as non-differentiable. Tracers cannot be passed as non-differentiable arguments to "
                "custom_vjp functions; instead, nondiff_argnums should only be used for arguments that can't be or "
                "contain JAX tracers, e.g. function-valued arguments. In particular, array-valued arguments should "
                "typically not be indicated as nondiff_argnums.")
        leaves, in_tree = tree.tree_flatten(dynamic)
        self._check_references(leaves, in_tree, fixed)
        check_leaves(leaves)
        fun = _Primal(self.fun, in_tree, fixed)
        rule = _Rule(name, self.fwd, self.bwd, self.symbolic_zeros, nondiff, in_tree, fun)

        def fwd(nonzero: Sequence[bool], *primals: Any) -> Any:
            if not self.optimize_remat:
                return rule.forward(nonzero, *primals)
            from .remat_rules import run_forward

            return run_forward(fun, lambda *xs: rule.forward(nonzero, *xs), primals)

        def bwd(*_: Any) -> Any:
            raise TypeError(f"the backward rule of {name} has no residuals before its forward rule ran")

        fwd.__name__ = function_name(self.fwd)
        bwd.__name__ = function_name(self.bwd)
        outs = custom_vjp_call_p.bind(*leaves, subfuns=(fun, fwd, bwd), out_trees=lambda: fun.structure,
                                      symbolic_zeros=self.symbolic_zeros)
        return self._checked(tree.tree_unflatten(fun.structure, outs))

    def _check_references(self, leaves: Sequence[Any], in_tree: tree.PyTreeDef, fixed: Any) -> None:
        if any_references(leaves):
            check_arguments(leaves, (), "custom_vjp", _Primal(self.fun, in_tree, fixed).debug_info)

    def _checked(self, out: PyTree) -> Any:
        """The function's result. Raises ValueError where there is a reference in it."""
        if type(out) is not Array and any_references(tree.tree_leaves(out)):
            check_rule_results(*tree.tree_flatten(out), f"custom_vjp primal function {function_name(self.fun)}")
        return out


class _Rule:
    """A user's VJP rule of one call, as functions of flat lists."""

    __slots__ = ("bwd", "fun", "fwd", "in_tree", "name", "nondiff", "symbolic_zeros")

    def __init__(self, name: str, fwd: Callable, bwd: Callable, symbolic_zeros: bool, nondiff: Sequence[Any],
                 in_tree: tree.PyTreeDef, fun: FlatFunction):
        self.name = name
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.nondiff = nondiff
        self.in_tree = in_tree  # of the differentiable arguments
        self.fun = fun

    def forward(self, nonzero: Sequence[bool], *primals: Any) -> tuple[list, list, Callable]:
        """Runs the forward rule: its results, its residuals, and the function that pulls cotangents back."""
        shown = primals
        if self.symbolic_zeros:
            shown = tuple(CustomVJPPrimal(typed(p), nz) for p, nz in zip(primals, nonzero, strict=True))
        pair = self.fwd(*with_fixed(self.in_tree.unflatten(shown), self.fun.fixed))
        rule_name = function_name(self.fwd)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {rule_name} for function {self.name} must produce a pair (list or tuple of "
                "length two) where the first element represents the primal output (equal to those of the "
                "custom_vjp-decorated "
                f"function {self.name}) and the second element represents residuals (i.e. values stored from the "
                f"forward pass for use on the backward pass), but instead of a pair the fwd rule {rule_name} produced "
                f"{pair}.")
        outs, out_tree = tree.tree_flatten(pair[0])
        check_rule_results(outs, out_tree, f"custom_vjp fwd function {rule_name}")
        if self.fun.out_tree is not None and self.fun.out_tree != out_tree:
            raise TypeError(
                f"Custom VJP fwd rule {rule_name} for function {self.name} must produce a pair (list or tuple of "
                "length two) where the first element represents the primal output (equal to the output of the "
                f"custom_vjp-decorated function {self.name}) and the second element represents residuals, but the fwd "
                f"rule output's first element had container/pytree structure:\n    {out_tree}\nwhile the "
                f"custom_vjp-decorated function {self.name} had output container/pytree structure:\n    "
                f"{self.fun.out_tree}.")
        self.fun.out_tree = out_tree
        residuals, residual_tree = tree.tree_flatten(pair[1])
        check_residuals(residuals, primals, f"custom_vjp fwd function {rule_name}")
        in_avals = [get_aval(p) for p in primals]

        def pull(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return self._backward(residuals, residual_tree, cts, out_tree, in_avals)

        pull.__name__ = function_name(self.bwd)
        return outs, residuals, pull

    def _backward(self, residuals: Sequence[Any], residual_tree: Any, cts: Sequence[Any], out_tree: Any,
                  in_avals: Sequence[Any]) -> list[Any]:
        result = self.bwd(*self.nondiff, tree.tree_unflatten(residual_tree, residuals),
                          tree.tree_unflatten(out_tree, map(_as_array, cts)))
        if isinstance(result, list):
            result = tuple(result)
        found = self._flatten_cotangents(result)
        for i, (ct, aval) in enumerate(zip(found, in_avals, strict=True)):
            expected = aval.to_cotangent_aval()
            if ct is _NOTHING or isinstance(ct, (Zero, SymbolicZero)) or (
                    not expected.is_high and expected.dtype == dtypes.float0):
                found[i] = SymbolicZero(expected)
                continue
            if get_aval(ct) != expected if expected.is_high else get_aval(ct).shape != expected.shape:
                path = f"output{leaf_path(self.in_tree, i)}"
                raise ValueError(
                    "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
                    f"function, but at {path} the bwd rule produced an output of type "
                    f"{get_aval(ct).str_short(short_dtypes=False)} corresponding to an input of type "
                    f"{aval.str_short(short_dtypes=False)}, so the shapes do not match")
        return found

    def _flatten_cotangents(self, result: Any) -> list[Any]:
        """One cotangent per argument leaf; None stands for zeros of a whole argument or part of one."""
        leaves, found_tree = tree.tree_flatten(result)
        length = len(result) if isinstance(result, tuple) else -1
        expected = self.in_tree
        if found_tree == expected:
            return leaves
        marked = tree.tree_map(lambda x: _NOTHING if x is None else x, result, is_leaf=lambda x: x is None)
        marks = tree.tree_leaves(marked)
        try:
            if length != len(tree.treedef_children(expected)):
                raise ValueError("not one cotangent per argument")
            spread = tree_paths.broadcast_prefix(marked, tree.tree_unflatten(expected, range(expected.num_leaves)))
        except ValueError:
            spread = None
        if spread is None or sum(x is not _NOTHING for x in spread) != sum(x is not _NOTHING for x in marks):
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args "
                "tuple of the primal function, and in particular must produce a tuple of length equal to the number of "
                f"arguments to the primal function, but got bwd output structure {found_tree} for primal input "
                f"structure {expected}.")
        return spread


# Relatives


def custom_gradient(fun: Function) -> Function:
    """Decorates a function that returns its result and its own VJP function.

    Args:
      fun: `fun(*args) -> (result, pull)`, where `pull(cotangent)` gives the cotangent of the argument, or a
        tuple of those of several.

    Returns:
      A function of the same arguments that gives the result alone.
    """

    @custom_vjp
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    def fwd(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result, pull = fun(*args, **kwargs)
        closed, out_tree = trace_function(pull, (result,), {}, (), "custom_gradient")
        closed, captured = hoist_tracers(closed, True)
        return result, _ClosedPull(closed.jaxpr, out_tree, captured, len(args) == 1)

    def bwd(residuals: _ClosedPull, cotangent: Any) -> Any:
        leaves = tree.tree_leaves(cotangent)
        found = tree.tree_unflatten(residuals.out_tree, eval_jaxpr(residuals.jaxpr, (), *residuals.captured, *leaves))
        return (found,) if residuals.out_tree.is_leaf() or not isinstance(found, (tuple, list)) else found

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


class _ClosedPull:
    """A VJP function with the values that it closes over, which are its leaves."""

    __slots__ = ("captured", "jaxpr", "out_tree", "single")

    def __init__(self, jaxpr: Jaxpr, out_tree: tree.PyTreeDef, captured: Sequence[Any], single: bool):
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.captured = captured
        self.single = single


tree.register_pytree_node(
    _ClosedPull, lambda p: ((p.captured,), (p.jaxpr, p.out_tree, p.single)),
    lambda data, children: _ClosedPull(data[0], data[1], children[0], data[2]))


@api_boundary
def closure_convert(fun: Function, *example_args: PyTree) -> tuple[Function, list[Array]]:
    """Makes the traced floating-point values that a function closes over its arguments.

    Args:
      fun: a function of arrays and containers of them.
      example_args: arguments, or anything of their shapes and dtypes.

    Returns:
      `(converted, captured)`, so that `converted(*args, *captured)` is `fun(*args)`.

    Example:
      >>> import styrax as jax
      >>> f, consts = jax.closure_convert(lambda x: x * 2, 1.0)
      >>> f(3.0, *consts)
      Array(6., dtype=float32, weak_type=True)
    """
    flat, leaves, avals = abstract_arguments(fun, example_args, {}, (), "closure_convert")
    in_tree = tree.tree_structure(example_args)
    key = (in_tree, tuple(avals), config.trace_context(), tuple(state.axis_sizes.items()))
    known: dict[Any, Function] = {}
    with suppress(TypeError):  # no weak reference to it, or no hash
        known = _converted.setdefault(fun, known)
    if key in known:
        return known[key], []
    closed = trace_flat(flat, leaves, avals)
    converted, captured = _closure_converted(closed, in_tree, flat.structure)
    if not any(isinstance(c, Tracer) for c in closed.consts):  # integers are not captured, and not to be kept either
        known[key] = converted
    return converted, captured


# functions that capture nothing traced -> what they were converted to: programs of it are found again
_converted: weakref.WeakKeyDictionary[Any, dict[Any, Function]] = weakref.WeakKeyDictionary()


def _closure_converted(closed: ClosedJaxpr, in_tree: tree.PyTreeDef,
                       out_tree: tree.PyTreeDef) -> tuple[Function, list[Array]]:
    hoisted = [isinstance(c, Tracer) and (get_aval(c).is_high or dtypes.issubdtype(get_aval(c).dtype, np.inexact))
               for c in closed.consts]
    captured = [c for c, h in zip(closed.consts, hoisted, strict=True) if h]
    kept = [c for c, h in zip(closed.consts, hoisted, strict=True) if not h]

    def converted(*args: Any) -> Any:
        n = len(args) - len(captured)
        leaves, given_tree = tree.tree_flatten(tuple(args[:n]))
        if given_tree != in_tree:
            raise TypeError("The inputs to the closure produced by closure_convert must have the same Pytree structure "
                            f"as the example arguments passed when closure_convert was called. Expected {in_tree}, "
                            f"but got {given_tree}")
        given, fixed = iter(args[n:]), iter(kept)
        consts = [next(given) if h else next(fixed) for h in hoisted]
        return tree.tree_unflatten(out_tree, eval_jaxpr(closed.jaxpr, consts, *leaves))

    return converted, captured


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """The zero tangent of a value: an array of zeros, or a `SymbolicZero`."""

    def one(x: Any) -> Any:
        aval = get_aval(x).to_tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else instantiate_zeros(Zero(aval))

    return tree.tree_map(one, val)


__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "resolve_kwargs", "zero_from_primal",
]
