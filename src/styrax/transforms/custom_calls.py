"""The primitives of functions with derivatives of the user's own, as equations.

Bound, they ask the current trace to run the function under its rule. The function and its rules are
passed as callables of flat lists:

- `fun(*args) -> results`
- `jvp(*primals, *tangents) -> [*results, *tangents of the results]`
- `fwd(nonzero, *primals) -> (results, residuals, pull)`, with `nonzero` telling which arguments are
  perturbed and `pull(residuals, cotangents) -> cotangents of the arguments`.

In an equation the program of `fun` stands as `call_jaxpr`, with `num_consts` captured values before
the arguments, which the rules do not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import hooks
from ..core.arrays.constants import constant
from ..core.programs import rules
from ..core.programs.dead_code import has_effects
from ..core.programs.jaxpr import ClosedJaxpr, JaxprEqn, call_effects, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing import errors
from ..core.tracing.trace import Trace, get_aval, set_current_trace, state
from ..core.types.avals import TypedComplex, TypedFloat, TypedInt
from ..core.types.effects import Effects
from .batch import custom_rules
from .linear import backward_pass
from .zeros import SymbolicZero

if TYPE_CHECKING:
    from ..extend.linear_util import WrappedFun

    Subfunctions = Sequence[Callable | WrappedFun]  # the function and its rules, on flat lists


class CustomCall(Primitive):
    """What the two kinds have in common: `bind` takes functions, `subfuns`, for the current trace."""

    def bind_with_trace(self, trace: Trace, args: Any, avals: Any, params: dict[str, Any]) -> Any:
        with set_current_trace(trace):
            return self.bind(*args, **params)


class CustomJVPCall(CustomCall):
    """A call of a function with a JVP rule."""

    def bind(self, *args: Any, subfuns: Subfunctions, symbolic_zeros: bool = False) -> Any:  # type: ignore
        fun, jvp = map(_plain, subfuns)
        return state.trace.process_custom_jvp_call(self, fun, jvp, _as_arrays(args), symbolic_zeros=symbolic_zeros)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        num_consts = params["num_consts"]
        jvp = params["jvp_jaxpr_fun"]
        if num_consts:
            jvp = _skip_constants_jvp(jvp, num_consts)
        fun = _program(params["call_jaxpr"], params.get("name"))
        subfuns = hooks.wrap_function(fun), hooks.wrap_function(jvp)
        return {"subfuns": subfuns, "symbolic_zeros": params["symbolic_zeros"]}


class CustomVJPCall(CustomCall):
    """A call of a function with a VJP rule."""

    def bind(self, *args: Any, subfuns: Subfunctions, out_trees: Any = None,  # type: ignore
             symbolic_zeros: bool = False) -> Any:
        fun, fwd, bwd = map(_plain, subfuns)
        return state.trace.process_custom_vjp_call(
            self, fun, fwd, bwd, _as_arrays(args), out_trees=out_trees, symbolic_zeros=symbolic_zeros)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        num_consts = params["num_consts"]
        fwd = params["fwd_jaxpr_thunk"]
        if num_consts:
            fwd = _skip_constants_fwd(fwd, num_consts)
        fun = _program(params["call_jaxpr"], params.get("name"))
        return {"subfuns": (hooks.wrap_function(fun), hooks.wrap_function(fwd), hooks.wrap_function(params["bwd"])),
                "out_trees": params["out_trees"], "symbolic_zeros": params["symbolic_zeros"]}


def _plain(fun: Any) -> Callable:
    return getattr(fun, "f_transformed", fun)  # libraries pass `WrappedFun`s


def _as_arrays(args: tuple) -> tuple:
    """The arguments with a program's literals as arrays: rules that users write ask for shapes."""
    if any(type(x) in _LITERALS for x in args):
        return tuple(constant(x, get_aval(x)) if type(x) in _LITERALS else x for x in args)
    return args


_LITERALS = (TypedInt, TypedFloat, TypedComplex)


def _program(closed: ClosedJaxpr, name: str | None) -> Callable:
    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun.__name__ = name or "fun"
    fun.debug_info = closed.debug_info  # type: ignore[attr-defined]
    return fun


def _skip_constants_jvp(jvp: Callable, num_consts: int) -> Callable:
    def rule(*args: Any) -> Any:
        half = len(args) // 2
        return jvp(*args[num_consts:half], *args[half + num_consts:])

    rule.__name__ = jvp.__name__
    rule.num_consts = num_consts  # type: ignore[attr-defined]
    rule.reject_constants = _reject_constants  # type: ignore[attr-defined]
    return rule


def _reject_constants() -> None:
    raise errors.UnexpectedTracerError(
        "Detected differentiation of a custom_jvp function with respect to a closed-over value. That is not supported "
        "because the custom JVP rule only specifies how to differentiate the custom_jvp function with respect to "
        "explicit input parameters. Try passing the closed-over value into the custom_jvp function as an argument, and "
        "adapting the custom_jvp rule.")


def _skip_constants_fwd(fwd: Callable, num_consts: int) -> Callable:
    def rule(nonzero: Sequence[bool], *primals: Any) -> Any:
        if any(nonzero[:num_consts]):
            raise errors.CustomVJPException()
        outs, residuals, pull = fwd(tuple(nonzero[num_consts:]), *primals[num_consts:])

        def pull_all(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            avals = [get_aval(x) for x in primals[:num_consts]]
            return [*(SymbolicZero(a.to_cotangent_aval()) for a in avals), *pull(residuals, cts)]

        return outs, residuals, pull_all

    rule.__name__ = fwd.__name__
    return rule


custom_jvp_call_p = CustomJVPCall("custom_jvp_call", multiple_results=True)
custom_jvp_call_p.declare(program=lambda params: params["call_jaxpr"],
                          printed=lambda params: _printed(params, jvp="jvp_jaxpr_fun"))
custom_vjp_call_p = CustomVJPCall("custom_vjp_call", multiple_results=True)
custom_vjp_call_p.declare(program=lambda params: params["call_jaxpr"],
                          printed=lambda params: _printed(params, bwd="bwd", fwd="fwd_jaxpr_thunk"))
custom_rules.update((custom_jvp_call_p, custom_vjp_call_p))


def _printed(params: dict[str, Any], **functions: str) -> dict[str, Any]:
    """The program with the names of the rules' functions, which stand in the parameters `functions`."""
    from ..core.programs.text import callable_name

    closed = params["call_jaxpr"]
    shown = {"call_jaxpr": closed, "symbolic_zeros": params["symbolic_zeros"],
             **{name: callable_name(params[parameter]) for name, parameter in functions.items()}}
    if params["num_consts"]:
        shown["num_consts"] = params["num_consts"]
    return {"name": params.get("name") or closed.jaxpr.debug_info.func_name, **dict(sorted(shown.items()))}


def _call_avals(*_: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return call_jaxpr.out_avals, call_effects(call_jaxpr)


def _run(*args: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


def discard_unused(used_outputs: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The rules need all of a call or nothing of it."""
    if not any(used_outputs) and not has_effects(eqn):
        return [False] * len(eqn.invars), None
    return [True] * len(eqn.invars), eqn


for _primitive in (custom_jvp_call_p, custom_vjp_call_p):
    _primitive.def_effectful_abstract_eval(_call_avals)
    _primitive.def_impl(_run)
    rules.dces[_primitive] = discard_unused


def _transpose_jvp_call(cts: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """A JVP rule says nothing of transposition: a function that is linear transposes as it is written."""
    return backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cts)


rules.transposes[custom_jvp_call_p] = _transpose_jvp_call

__all__ = ["discard_unused", "custom_jvp_call_p", "custom_vjp_call_p"]
