"""The `jit` primitive, a program within a program, and what transformations do to it.

Every rule transforms the inner program (once: the results are kept on it) and calls the new one. A
value that the inner program only passes through is taken from outside instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.programs.dead_code import dce_call, dce_closed, dce_jaxpr
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, call_effects, close_jaxpr, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.programs.rules import (
    dces,
    fancy_batchers,
    jvps,
    linearizations,
    partial_eval_jaxpr_customs,
    partial_evals,
    stagings,
    texts,
    transposes,
)
from ..core.tracing.staging import hoist_tracers
from ..core.tracing.trace import get_aval
from ..core.types.effects import Effects
from .batch import AxisData, batch_jaxpr2
from .jvp import jvp_jaxpr
from .linear import CotangentRef, UndefinedPrimal, cotangent_reference, is_linear, linearize_jaxpr, transpose_jaxpr
from .memo import per_jaxpr
from .partial import (
    PartialTrace,
    bind_linear,
    partial_eval_jaxpr,
    partial_eval_jaxpr_custom,
)
from .zeros import Zero, instantiate_zeros

if TYPE_CHECKING:
    from ..core.programs.layout import Doc
    from ..core.programs.text import Names, Settings


class UnspecifiedValue:
    """Stands for a sharding that nothing was said about."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()

jit_p = Primitive("jit", multiple_results=True)
jit_p.declare(program=lambda params: params["jaxpr"])


def _text(eqn: JaxprEqn, names: Names, settings: Settings) -> Doc:
    from ..core.programs.text import default_eqn, name_alike

    params = eqn.params
    name_alike(params["jaxpr"].jaxpr, eqn, names)
    shown = {
        "donated_invars": any(params.get("donated_invars", ())),
        "in_shardings": any(map(_is_specified, params.get("in_shardings", ()))),
        "out_shardings": any(map(_is_specified, params.get("out_shardings", ()))),
        "in_layouts": any(x is not None for x in params.get("in_layouts", ())),
        "out_layouts": any(x is not None for x in params.get("out_layouts", ())),
        "keep_unused": params.get("keep_unused", False),
        "inline": params.get("inline", False),
        "compiler_options_kvs": bool(params.get("compiler_options_kvs", ())),
        "ctx_mesh": not getattr(params.get("ctx_mesh"), "empty", True),
    }
    pairs = [("name", params.get("name"))]
    pairs += [(k, v) for k, v in sorted(params.items()) if k != "name" and shown.get(k, True)]
    return default_eqn(eqn, names, settings, pairs)


def _is_specified(sharding: Any) -> bool:
    return sharding is not None and type(sharding).__name__ != "UnspecifiedValue"


texts[jit_p] = _text


def jit_params(jaxpr: ClosedJaxpr, name: str, *, in_shardings: Sequence[Any] | None = None,
               out_shardings: Sequence[Any] | None = None, donated_invars: Sequence[bool] | None = None,
               ctx_mesh: Any = None, keep_unused: bool = False, inline: bool = False,
               compiler_options_kvs: tuple = ()) -> dict[str, Any]:
    """The parameters of a `jit` equation."""
    ins, outs = len(jaxpr.jaxpr.invars), len(jaxpr.jaxpr.outvars)
    return dict(
        jaxpr=jaxpr,
        in_shardings=(UNSPECIFIED,) * ins if in_shardings is None else tuple(in_shardings),
        out_shardings=(UNSPECIFIED,) * outs if out_shardings is None else tuple(out_shardings),
        in_layouts=(None,) * ins,
        out_layouts=(None,) * outs,
        donated_invars=(False,) * ins if donated_invars is None else tuple(donated_invars),
        ctx_mesh=ctx_mesh,
        name=name,
        keep_unused=keep_unused,
        inline=inline,
        compiler_options_kvs=compiler_options_kvs,
    )


def _with(params: dict[str, Any], jaxpr: ClosedJaxpr, ins: Sequence[int | None],
          outs: Sequence[int | None]) -> dict[str, Any]:
    """Parameters for a new program whose inputs and results correspond to old ones (or, None, to none)."""

    def pick(values: Sequence[Any], which: Sequence[int | None], default: Any) -> tuple:
        return tuple(default if i is None else values[i] for i in which)

    return {
        **params,
        "jaxpr": jaxpr,
        "in_shardings": pick(params["in_shardings"], ins, UNSPECIFIED),
        "in_layouts": pick(params["in_layouts"], ins, None),
        "donated_invars": pick(params["donated_invars"], ins, False),
        "out_shardings": pick(params["out_shardings"], outs, UNSPECIFIED),
        "out_layouts": pick(params["out_layouts"], outs, None),
    }


def _where(marks: Sequence[bool]) -> list[int]:
    return [i for i, m in enumerate(marks) if m]


def _jit_staging(trace: Any, tracers: Sequence[Any], params: dict[str, Any]) -> Any:
    """With `inline`, the program's equations stand where its call would."""
    if not params["inline"]:
        return NotImplemented
    closed = params["jaxpr"]
    return eval_jaxpr(closed.jaxpr, closed.consts, *tracers)


stagings[jit_p] = _jit_staging


@jit_p.def_effectful_abstract_eval
def _jit_avals(*_: Any, jaxpr: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return jaxpr.out_avals, call_effects(jaxpr)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = [type(t) is not Zero for t in tangents]
    new, nonzero_out = jvp_jaxpr(jaxpr, nonzero, False)
    new, captured = hoist_tracers(new)  # what a custom rule inside closes over
    ins, outs = range(len(primals)), range(len(nonzero_out))
    results = jit_p.bind(
        *captured, *primals, *(t for t in tangents if type(t) is not Zero),
        **_with(params, new, [*(None,) * len(captured), *ins, *_where(nonzero)], [*outs, *_where(nonzero_out)]))
    n = len(nonzero_out)
    given = iter(results[n:])
    return results[:n], [next(given) if nz else Zero.from_primal_value(x)
                         for x, nz in zip(results[:n], nonzero_out, strict=True)]


def _linearize(nonzero: Sequence[bool], *primals: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    primal, nonzero_out, linear, _ = linearize_jaxpr(jaxpr, nonzero)
    num_outs = len(nonzero_out)
    primal, captured = hoist_tracers(primal)
    consts = primal.consts
    primal, sources = forward_residuals(primal, num_outs, True)
    new = len(primal.jaxpr.outvars) - num_outs
    # what the linear program reads is needed after the call, and so is a tangent: neither is given away
    kept = {i - len(captured) for kind, i in sources if kind == "in"}
    donated = params["donated_invars"]
    given_away = tuple(d and i not in kept for i, d in enumerate(donated))
    params = {**params, "donated_invars": (False,) * len(donated)}
    results = jit_p.bind(*captured, *primals, **_with(
        {**params, "donated_invars": given_away}, primal, [*(None,) * len(captured), *range(len(primals))],
        [*range(num_outs), *(None,) * new]))
    residuals = resolve(sources, [*captured, *primals], results, consts)
    ins, outs = _where(nonzero), _where(nonzero_out)

    def push(residuals: Sequence[Any], *tangents: Any) -> list[Any]:
        given = bind_linear(
            jit_p, *residuals, *(instantiate_zeros(t) for t, nz in zip(tangents, nonzero, strict=True) if nz),
            **_with(params, linear, [*(None,) * len(residuals), *ins], outs))
        tangents_out = iter(given)
        return [next(tangents_out) if nz else Zero.from_primal_value(x)
                for x, nz in zip(results, nonzero_out, strict=False)]

    return results[:num_outs], nonzero_out, residuals, push


@per_jaxpr
def forward_residuals(closed: ClosedJaxpr, num_outs: int,
                      constants: bool = False) -> tuple[ClosedJaxpr, list[tuple[str, int]]]:
    """Takes the residuals (results after the first `num_outs`) that are inputs or other results out.

    Returns the smaller program and where each residual is found: `("in", i)` or `("out", i)`, or, with `constants`,
    `("const", i)`.
    """
    jaxpr = closed.jaxpr
    inputs = {v: i for i, v in enumerate(jaxpr.invars)}
    consts = {v: i for i, v in enumerate(jaxpr.constvars)} if constants else {}
    outvars = list(jaxpr.outvars[:num_outs])
    known = {v: i for i, v in enumerate(outvars) if type(v) is not Literal}
    sources: list[tuple[str, int]] = []
    for v in jaxpr.outvars[num_outs:]:
        if type(v) is not Literal and v in inputs:
            sources.append(("in", inputs[v]))
        elif type(v) is not Literal and v in consts:
            sources.append(("const", consts[v]))
        elif type(v) is not Literal and v in known:
            sources.append(("out", known[v]))
        else:
            if type(v) is not Literal:
                known[v] = len(outvars)
            sources.append(("out", len(outvars)))
            outvars.append(v)
    new = jaxpr.replace(outvars=outvars)
    new, _ = dce_jaxpr(new, [True] * len(outvars), True)
    return (ClosedJaxpr(new, closed.consts) if closed.consts else close_jaxpr(new)), sources


def resolve(sources: Sequence[tuple[str, int]], args: Sequence[Any], results: Sequence[Any],
            consts: Sequence[Any] = ()) -> list[Any]:
    """The residuals' values, by `forward_residuals`."""
    given = {"in": args, "out": results, "const": consts}
    return [given[kind][i] for kind, i in sources]


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = [is_linear(x) for x in args]
    zero = [type(ct) is Zero for ct in cts]
    refs = [i for i, x in enumerate(args) if isinstance(x, CotangentRef)]
    new, nonzero = transpose_jaxpr(jaxpr, linear, zero)
    known = [i for i, n in enumerate(linear) if not n]
    arrays = [i for i, x in enumerate(args) if type(x) is UndefinedPrimal]
    wanted = [i for i, nz in zip(arrays, nonzero, strict=True) if nz]
    flipped = {
        **params,
        "in_shardings": params["in_shardings"] + params["out_shardings"],
        "in_layouts": params["in_layouts"] + params["out_layouts"],
        "donated_invars": (False,) * (len(args) + len(cts)),
        "out_shardings": params["in_shardings"],
        "out_layouts": params["in_layouts"],
    }
    places = [*known, *refs, *(len(args) + i for i, z in enumerate(zero) if not z)]
    values = [*(args[i] for i in known), *(cotangent_reference(args[i]) for i in refs),
              *(ct for ct, z in zip(cts, zero, strict=True) if not z)]
    new, used = _dce_inner(new, (True,) * len(wanted))  # not every residual is needed for every cotangent
    results = iter(jit_p.bind(
        *(x for x, u in zip(values, used, strict=True) if u),
        **_with(flipped, new, [i for i, u in zip(places, used, strict=True) if u], wanted)))
    found: list[Any] = [None] * len(args)
    for i, nz in zip(arrays, nonzero, strict=True):
        found[i] = next(results) if nz else Zero(args[i].aval.to_cotangent_aval())
    return found


def _partial_eval(trace: PartialTrace, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    unknown_in = [trace.is_unknown(x) for x in args]
    known, unknown, unknown_out, residual_avals = partial_eval_jaxpr(jaxpr, unknown_in)
    num_known = len(unknown_out) - sum(unknown_out)
    consts = known.consts
    known, sources = forward_residuals(known, num_known, True)
    known_args = [x for x, u in zip(args, unknown_in, strict=True) if not u]
    new = len(known.jaxpr.outvars) - num_known
    known_ins = [i for i, u in enumerate(unknown_in) if not u]
    known_outs = [i for i, u in enumerate(unknown_out) if not u]
    results = trace.run_known(
        jit_p.bind, *known_args, **_with(params, known, known_ins, [*known_outs, *(None,) * new]))
    residuals = resolve(sources, known_args, results, consts)
    recorded = iter(trace.record(
        jit_p, [*residuals, *(x for x, u in zip(args, unknown_in, strict=True) if u)],
        _with(params, unknown, [*(None,) * len(residuals), *_where(unknown_in)], _where(unknown_out))))
    given = iter(results)
    return [next(recorded) if u else next(given) for u in unknown_out]


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr,
           **params: Any) -> Any:
    new, out_dims = batch_jaxpr2(jaxpr, axis_data, dims)
    return jit_p.bind(*args, **_with(params, new, range(len(args)), range(len(out_dims)))), out_dims


@per_jaxpr
def _dce_inner(closed: ClosedJaxpr, used_outputs: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    return dce_closed(closed, used_outputs)


def _dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    return dce_call(used_outputs, eqn, lambda: _dce_inner(eqn.params["jaxpr"], tuple(used_outputs)),
                    lambda new, used_inputs: {
                        "params": _with(eqn.params, new, _where(used_inputs), _where(used_outputs)),
                        "effects": call_effects(new)})


def _split_for_policy(saveable: Callable, unknown_in: Sequence[bool], instantiated_in: Sequence[bool],
                      eqn: JaxprEqn) -> Any:
    """Rule of `partial_eval_jaxpr_custom`: a policy looks into the inner program."""
    closed = eqn.params["jaxpr"]
    opened = Jaxpr([], closed.jaxpr.constvars + closed.jaxpr.invars, closed.jaxpr.outvars, closed.jaxpr.eqns)
    n = len(closed.consts)
    known, staged, unknown_out, instantiated_out, num_residuals = partial_eval_jaxpr_custom(
        opened, [False] * n + list(unknown_in), [False] * n + list(instantiated_in), False, True, saveable)
    known_closed = ClosedJaxpr(known.replace(constvars=known.invars[:n], invars=known.invars[n:]), closed.consts)
    num_known_outs = len(unknown_out) - sum(unknown_out)
    known_closed, sources = forward_residuals(known_closed, num_known_outs)
    known_ins = [v for v, u in zip(eqn.invars, unknown_in, strict=True) if not u]
    known_outs = [v for v, u in zip(eqn.outvars, unknown_out, strict=True) if not u]
    new_vars = [Var(v.aval) for v in known_closed.jaxpr.outvars[num_known_outs:]]
    all_outs = [*known_outs, *new_vars]
    residuals = [known_ins[i] if kind == "in" else all_outs[i] for kind, i in sources]
    known_eqn = eqn.replace(
        invars=known_ins, outvars=all_outs, effects=call_effects(known_closed),
        params=_with(eqn.params, known_closed, [i for i, u in enumerate(unknown_in) if not u],
                     [*(i for i, u in enumerate(unknown_out) if not u), *(None,) * len(new_vars)]))
    staged_ins = [i for i, (s, u) in enumerate(zip(instantiated_in, unknown_in, strict=True)) if s or u]
    # A saved result is what the known call gives: the staged one does not give it again.
    saved = dict(zip(staged.invars, residuals))
    again = [k for k, v in enumerate(staged.outvars) if type(v) is Literal or saved.get(v) is not eqn.outvars[k]]
    outs = [staged.outvars[k] for k in again]
    read = {v for e in staged.eqns for v in e.invars if type(v) is not Literal}.union(
        v for v in outs if type(v) is not Literal)
    needed = [i for i, v in enumerate(staged.invars[:num_residuals]) if v in read]
    residuals = [residuals[i] for i in needed]
    staged_closed = close_jaxpr(staged.replace(
        invars=[*(staged.invars[i] for i in needed), *staged.invars[num_residuals:]], outvars=outs))
    staged_eqn = eqn.replace(
        invars=[*residuals, *(eqn.invars[i] for i in staged_ins)], outvars=[eqn.outvars[k] for k in again],
        effects=call_effects(staged_closed),
        params=_with(eqn.params, staged_closed, [*(None,) * len(residuals), *staged_ins], again))
    instantiated_out = [k in again for k in range(len(eqn.outvars))]
    return (known_eqn, staged_eqn if again or staged_closed.effects else None, unknown_out, instantiated_out,
            [v for v in residuals if type(v) is not Literal])


jvps[jit_p] = _jvp
linearizations[jit_p] = _linearize
transposes[jit_p] = _transpose
partial_evals[jit_p] = _partial_eval
fancy_batchers[jit_p] = _batch
dces[jit_p] = _dce
partial_eval_jaxpr_customs[jit_p] = _split_for_policy

__all__ = ["UNSPECIFIED", "forward_residuals", "get_aval", "jit_p", "jit_params", "resolve"]
