"""Programs on scalars, such as a user's combining function, as expressions of the loop builder."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from styrax.core.settings import config
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import Tracer, state
from styrax.core.trees import tree
from styrax.transforms.flattening import FlatFunction, positional
from styrax.transforms.naming import function_name

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

_traced: weakref.WeakKeyDictionary[Any, dict[Any, tuple[ClosedJaxpr, tree.PyTreeDef]]] = weakref.WeakKeyDictionary()


def traced(fun: Callable[..., Any], in_tree: tree.PyTreeDef, avals: Sequence[Any]
           ) -> tuple[ClosedJaxpr, tree.PyTreeDef]:
    """A user's function on scalars as a program, and the structure of its results. `in_tree` is that of its positional
    arguments, which are the first of `avals`: the program does not read the others. A function that is known is not
    traced anew: a new program would be compiled anew. Raises NotImplementedError for one that uses traced values
    besides its arguments."""
    key = in_tree, tuple(avals), config.trace_context(), tuple(state.axis_sizes.items())
    known: dict[Any, tuple[ClosedJaxpr, tree.PyTreeDef]] | None = None
    with suppress(TypeError):  # no weak reference to it, or no hash
        known = _traced.setdefault(fun, {})
        if key in known:
            return known[key]
    flat, read = FlatFunction(fun, positional(in_tree)), in_tree.num_leaves
    closed = trace_to_jaxpr(lambda *leaves: flat(*leaves[:read]), avals)
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(f"{function_name(fun)} is applied to scalars inside an operation: it cannot use "
                                  "traced values besides its arguments (reduction computations can't close over "
                                  "tracers). Pass them as operands of the operation.")
    found = closed, flat.structure
    if known is not None:
        known[key] = found
    return found


def scalar_program(b: Builder, closed: ClosedJaxpr, scalars: Sequence[Any]) -> list[Any]:
    """The results of a program without effects on scalar expressions.

    Constants of the program have to be scalars, too.
    """
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = {}
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        env[v] = b.const(np.asarray(c)[()], v.aval.dtype)  # type: ignore[attr-defined]
    env.update(zip(jaxpr.invars, scalars, strict=True))

    def read(atom: Any) -> Any:
        if isinstance(atom, Literal):
            return b.const(np.asarray(atom.val, atom.aval.dtype)[()], atom.aval.dtype)
        return env[atom]

    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        rule = rules.loops.get(eqn.primitive)
        inner = _called(eqn.params)
        if inner is not None and (rule is None or eqn.primitive.name in ("jit", "pjit")):
            outs = scalar_program(b, inner, operands)
        elif rule is None:
            raise NotImplementedError(f"{eqn.primitive.name} cannot be part of a function of scalars on the CPU")
        else:
            saved = b.avals_in, b.avals_out
            b.avals_in, b.avals_out = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
            values = [b.value((), x.dtype, lambda _, x=x: x) for x in operands]  # type: ignore[misc]
            made = rule(b, *values, **eqn.params)
            b.avals_in, b.avals_out = saved
            outs = [v.at(()) for v in (made if isinstance(made, (list, tuple)) else [made])]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _called(params: dict[str, Any]) -> ClosedJaxpr | None:
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        value = params.get(name)
        if isinstance(value, ClosedJaxpr):
            return value
        if isinstance(value, Jaxpr):
            return ClosedJaxpr(value, ())
    return None
