"""Functions with a batching rule of the user's own: `custom_vmap` and `sequential_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import hooks
from ..core.programs.jaxpr import ClosedJaxpr, call_effects, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.programs.rules import dces, fancy_batchers, jvps, linearizations, transposes
from ..core.tracing.source import api_boundary
from ..core.tracing.staging import hoist_tracers
from ..core.trees import tree
from ..core.types.effects import Effects
from ..core.types.typing import Function
from .alike import tells_apart
from .batch import AxisData, batch_flat, bdim_at_front, broadcast, moveaxis
from .custom import resolve_kwargs
from .custom_calls import discard_unused
from .jit_rules import jit_p, jit_params
from .jvp import jvp_flat, jvp_jaxpr
from .linear import backward_pass
from .naming import function_name, wraps
from .nested_rules import NestedRules
from .tracing import trace_function
from .zeros import instantiate_zeros


class custom_vmap(NestedRules):
    """A function whose batching the user defines, with `def_vmap`.

    Calling it runs the function; under `vmap` the rule runs in its place. Mapping it without a rule raises
    AttributeError.
    """

    def __init__(self, fun: Callable):
        wraps(fun)(self)
        self.fun = fun
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Sets the rule: `rule(axis_size, in_batched, *args) -> (result, out_batched)`.

        `in_batched` is a list with, for each argument, its structure filled with booleans that tell which
        arrays have a mapped axis, in front; `out_batched` is the same for the result.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = resolve_kwargs(self.fun, args, kwargs, "custom_vmap")
        name = function_name(self.fun)
        rule = self.vmap_rule
        if rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap.")
        leaves, in_tree = tree.tree_flatten(args)
        closed, out_tree = trace_function(self.fun, args, {}, (), "custom_vmap")
        closed, captured = hoist_tracers(closed, True)
        if captured:
            leaves = [*captured, *leaves]
        outs = custom_vmap_call_p.bind(
            *leaves, call=closed, rule=_Rule(name, rule, in_tree, out_tree, len(captured)), in_tree=in_tree,
            out_tree=out_tree)
        return tree.tree_unflatten(out_tree, outs)


class _Rule:
    """A user's batching rule on flat lists: `(size, batched, args) -> (results, batched)`."""

    __slots__ = ("in_tree", "name", "num_captured", "out_tree", "rule")

    def __init__(self, name: str, rule: Callable, in_tree: Any, out_tree: Any, num_captured: int):
        self.name = name
        self.rule = rule
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.num_captured = num_captured

    def __call__(self, size: Any, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        n = self.num_captured
        if any(batched[:n]):
            raise ValueError(f"custom_vmap function {self.name} closes over a mapped value, of which its rule knows "
                             "nothing: pass it as an argument")
        given = tree.tree_unflatten(self.in_tree, args[n:])
        marks = list(tree.tree_unflatten(self.in_tree, batched[n:]))
        pair = self.rule(size, marks, *given)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"the batching rule of {self.name} must return a pair (result, out_batched), but returned "
                            f"{pair}")
        outs, out_tree = tree.tree_flatten(pair[0])
        flags, flags_tree = tree.tree_flatten(pair[1])
        if out_tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({function_name(self.rule)}) does not match that of "
                f"original custom-vmapped function.\nOriginal output: {self.out_tree}\nRule output: {out_tree}")
        if flags_tree != self.out_tree:
            raise ValueError(
                "structure of output value and output batching specification returned by custom vmap rule "
                f"({function_name(self.rule)}) do not match.\nOutput values: {out_tree}\nBatching spec: {flags_tree}")
        return outs, flags

    def __repr__(self) -> str:
        return repr(self.rule)


custom_vmap_call_p = Primitive("custom_vmap_call", multiple_results=True)
custom_vmap_call_p.declare(program=lambda params: params["call"])


@custom_vmap_call_p.def_effectful_abstract_eval
def _avals(*_: Any, call: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return call.out_avals, call_effects(call)


@custom_vmap_call_p.def_impl
def _run(*args: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(call.jaxpr, call.consts, *args)


def _batch(axis_data: AxisData, args: Any, dims: Any, *, rule: Callable, **params: Any) -> Any:
    batched = [d is not None for d in dims]
    front = [x if d is None else bdim_at_front(x, d, axis_data.size) for x, d in zip(args, dims, strict=True)]
    outs, flags = rule(axis_data.size, batched, front)
    return outs, [0 if f else None for f in flags]


def _jvp(primals: Any, tangents: Any, *, call: ClosedJaxpr, rule: Callable, in_tree: Any, out_tree: Any) -> Any:
    n, num_outs = len(primals), len(call.out_avals)
    new, _ = jvp_jaxpr(call, [True] * n, True)

    def rule_with_tangents(size: Any, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list, list[bool]]:
        if not any(p and t for p, t in zip(batched[:n], batched[n:], strict=True)):
            # what the rule sees is one example: its values or its tangents are mapped around it
            results, dims = batch_flat(
                lambda *xs: derivative(size, [False] * n, xs)[0], args, [0 if b else None for b in batched],
                AxisData(None, size))
            return [x if d is None else moveaxis(x, d, 0) for x, d in zip(results, dims, strict=True)], [
                d is not None for d in dims]
        either = [p or t for p, t in zip(batched[:n], batched[n:], strict=True)]
        spread = [broadcast(x, size, 0) if e and not b else x
                  for x, e, b in zip(args, either + either, batched, strict=True)]
        return derivative(size, either, spread)

    def derivative(size: Any, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list, list[bool]]:
        flags: list[bool] = []

        def run(*xs: Any) -> list[Any]:
            outs, found = rule(size, batched, xs)
            flags[:] = found
            return outs

        outs, tangents_out = jvp_flat(run, args[:n], args[n:])
        return [*outs, *map(instantiate_zeros, tangents_out)], flags + flags

    outs = custom_vmap_call_p.bind(*primals, *map(instantiate_zeros, tangents), call=new, rule=rule_with_tangents,
                                   in_tree=in_tree, out_tree=out_tree)
    return outs[:num_outs], outs[num_outs:]


def _linearize(nonzero: Sequence[bool], *primals: Any, call: ClosedJaxpr, **params: Any) -> Any:
    """Reverse mode looks through the call: its rule says nothing of the two halves of a derivative."""
    return linearizations[jit_p](nonzero, *primals, **jit_params(call, "custom_vmap"))


def _transpose(cts: Any, *args: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
    return backward_pass(call.jaxpr, call.consts, args, cts)


fancy_batchers[custom_vmap_call_p] = _batch
tells_apart.add(custom_vmap_call_p)
jvps[custom_vmap_call_p] = _jvp
linearizations[custom_vmap_call_p] = _linearize
transposes[custom_vmap_call_p] = _transpose
dces[custom_vmap_call_p] = discard_unused


def sequential_vmap(f: Function) -> Function:
    """A function that `vmap` maps with a loop, one example after the other, instead of all at once."""
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, structure = tree.tree_flatten(args)
        marks = tree.tree_leaves(list(in_batched))
        mapped_leaves = [x for x, b in zip(leaves, marks, strict=True) if b]

        def one(xs: Sequence[Any]) -> Any:
            given = iter(xs)
            return f(*tree.tree_unflatten(structure, [next(given) if b else x
                                                      for x, b in zip(leaves, marks, strict=True)]))

        out = hooks.lax.map(one, mapped_leaves)
        return out, tree.tree_map(lambda _: True, out)

    return mapped


__all__ = ["custom_vmap", "custom_vmap_call_p", "sequential_vmap"]
