"""`checkpoint`: what the backward pass needs is computed again there instead of being kept.

The function becomes one `remat2` equation. Differentiated, its forward part runs as usual and keeps
only what the policy saves; the recorded equation holds the program that computes the rest again from
that and from the inputs, followed by the linear program.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import Any, ParamSpec, TypeGuard, TypeVar

import numpy as np

from ..core import hooks
from ..core.programs.dead_code import dce_call, dce_jaxpr
from ..core.programs.equation_mesh import in_its_mesh
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, call_effects, close_jaxpr, eval_jaxpr
from ..core.programs.name_stack import new_name_stack
from ..core.programs.primitive import Primitive
from ..core.programs.rules import (
    dces,
    discharges,
    fancy_batchers,
    jvps,
    linearizations,
    loops,
    partial_eval_jaxpr_customs,
    partial_evals,
    stablehlos,
    transposes,
)
from ..core.settings import config
from ..core.tracing import errors, source
from ..core.tracing.source import api_boundary
from ..core.tracing.staging import hoist_tracers
from ..core.tracing.trace import Tracer, get_aval, state
from ..core.trees import tree, tree_paths
from ..core.types import dtypes
from ..core.types.avals import AbstractRef, AbstractValue, ShapedArray
from ..core.types.effects import Effects, remat_allowed_effects
from ..core.types.physical import physicals
from ..core.types.typing import Function, PyTree
from . import compile_log
from .batch import AxisData, batch_jaxpr2
from .checkpoint_names import name_p
from .checkpoint_policies import checkpoint_policies
from .flattening import FlatFunction
from .jit_rules import forward_residuals, jit_p, jit_params, resolve
from .jvp import jvp_jaxpr
from .linear import CotangentRef, UndefinedPrimal, cotangent_reference, is_linear, linearize_jaxpr, transpose_jaxpr
from .memo import per_jaxpr
from .naming import check_callable, split_arguments, wraps
from .partial import (
    PartialTrace,
    bind_linear,
    partial_eval_jaxpr,
    partial_eval_jaxpr_custom,
)
from .tracing import abstract_arguments, trace_flat, trace_function
from .zeros import Zero, instantiate_zeros

P = ParamSpec("P")
R = TypeVar("R")
_NOT_GIVEN: Any = object()


_STATIC = "the `static_argnums` argument to `jax.checkpoint` / `jax.remat`"


@api_boundary
def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[bool] = True,
               policy: Callable[..., bool] | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = (), concrete: bool = _NOT_GIVEN) -> Callable[P, R]:
    """Makes a function keep less memory for its derivative, at the price of computing it again.

    Args:
      fun: a function of arrays and containers of them.
      prevent_cse: whether the compiler must be kept from merging the second computation with the first; not
        needed inside of `scan`.
      policy: tells what is kept: `policy(primitive, *avals, **params)` is true for equations whose results
        are. One of `checkpoint_policies`; by default nothing but the arguments is.
      static_argnums, static_argnames: arguments that are passed to `fun` as they are.

    Returns:
      A function of the same arguments and results.

    Raises:
      NotImplementedError: `concrete` is given; use `static_argnums`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
      >>> round(float(jax.grad(f)(1.0)), 4)
      0.36
    """
    if concrete is not _NOT_GIVEN:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and removed in JAX v0.10.0. In "
            "its place please use `static_argnums`; for details refer to "
            "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html.")
    if not callable(fun):
        return _late(fun)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    programs: dict[Any, tuple[Jaxpr, list[Any], tree.PyTreeDef]] = {}
    with suppress(TypeError):  # no weak reference to it, or no hash
        programs = _programs.setdefault(fun, programs)

    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = split_arguments(args, static_argnums, _STATIC) if static_argnums != () else ()
        fixed = {k: v for k, v in kwargs.items() if k in names}
        given = {k: v for k, v in kwargs.items() if k not in names}
        call = functools.partial(fun, **fixed) if fixed else fun
        flat, leaves, avals = abstract_arguments(call, args, given, static, "checkpoint / remat")
        key = (tuple([(i, type(x), x) for i, x in flat.fixed]), tuple(fixed.items()), flat.in_tree, tuple(avals),
               config.trace_context(), tuple(state.axis_sizes.items()))
        found = None
        with suppress(TypeError):  # something has no hash
            found = programs.get(key)
        if found is None:
            found = _trace(flat, leaves, avals)
            if not any(isinstance(c, Tracer) or isinstance(get_aval(c), AbstractRef) for c in found[1]):
                with suppress(TypeError):
                    programs[key] = found
        jaxpr, captured, out_tree = found
        guards = prevent_cse
        if not isinstance(guards, bool):
            given, named = flat.in_tree.unflatten(leaves)
            guards = (*(False for _ in captured), *tree_paths.broadcast_prefix(prevent_cse, given),
                      *(True for _ in tree.tree_leaves(named)))
        outs = remat_p.bind(*captured, *leaves, jaxpr=jaxpr, prevent_cse=guards, differentiated=False, policy=policy)
        return tree.tree_unflatten(out_tree, outs)

    return checkpointed


remat = checkpoint
# of each function, by its arguments: what is found again was compiled, too
_programs: weakref.WeakKeyDictionary[Any, dict[Any, tuple[Jaxpr, list[Any], tree.PyTreeDef]]] = (
    weakref.WeakKeyDictionary())


def _late(fun: Any) -> Callable:
    """What is not callable fails where it is called, as in JAX."""

    @api_boundary
    def fails(*args: Any, **kwargs: Any) -> Any:
        check_callable(fun)

    return fails


def _trace(flat: FlatFunction, leaves: Sequence[Any],
           avals: Sequence[Any]) -> tuple[Jaxpr, list[Any], tree.PyTreeDef]:
    """The program of a function, the values that it captures, which are its first arguments, and its results."""
    try:
        closed = trace_flat(flat, leaves, avals)
    except (errors.ConcretizationTypeError, errors.JAXTypeError) as error:
        _suggest_static(error)
        raise
    closed, captured = hoist_tracers(closed, True)
    return closed.jaxpr, captured, flat.structure


def _suggest_static(error: Exception) -> None:
    error.add_note("Consider using the `static_argnums` parameter for `jax.remat` or `jax.checkpoint`. See the "
                   "`jax.checkpoint` docstring and its example involving `static_argnums`:\n"
                   "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html")


# The primitive

remat_p = Primitive("remat2", multiple_results=True)
remat_p.declare(program=lambda params: params["jaxpr"])


@remat_p.def_effectful_abstract_eval
def _remat_avals(*_: Any, jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return jaxpr.out_avals, call_effects(close_jaxpr(jaxpr))


@remat_p.def_impl
def _remat(*args: Any, jaxpr: Jaxpr, differentiated: bool, **params: Any) -> list[Any]:
    closed = close_jaxpr(jaxpr)
    # What is computed again uses keys again, for the same numbers.
    again = differentiated and config.debug_key_reuse.value
    with config.debug_key_reuse(False) if again else nullcontext():
        if not _compiles(closed):
            return eval_jaxpr(jaxpr, (), *args)
        return jit_p.impl(*args, **jit_params(closed, "checkpoint"))


LOWERINGS = (loops, stablehlos, physicals, discharges)  # a rule in one of these, and a program compiles


@per_jaxpr
def _compiles(closed: ClosedJaxpr) -> bool:
    """Whether all primitives of a program have a lowering: a library's may do with what runs them eagerly."""
    for eqn in closed.jaxpr.eqns:
        primitive = eqn.primitive
        if primitive.traits.program is not None:
            inner = primitive.traits.program(eqn.params)
            if not _compiles(inner if isinstance(inner, ClosedJaxpr) else close_jaxpr(inner)):
                return False
        elif primitive.traits.control is None and not any(primitive in table for table in LOWERINGS):
            return False
    return True


Guards = bool | tuple[bool, ...]  # whether the operands stand behind a barrier: all of them, or each


def _each(guards: Guards, args: Sequence[Any]) -> Sequence[bool]:
    return [guards] * len(args) if isinstance(guards, bool) else guards


def _joined(guards: Guards, *parts: Sequence[bool]) -> Guards:
    """The guards of other operands, part by part, where each has its own."""
    return guards if isinstance(guards, bool) else tuple(g for part in parts for g in part)


def _stablehlo(m: Any, *args: Any, jaxpr: Jaxpr, prevent_cse: Guards, differentiated: bool, **_: Any) -> Any:
    """What is computed again stands behind a barrier, across which XLA merges nothing."""
    behind = [i for i, (x, guarded) in enumerate(zip(args, _each(prevent_cse, args), strict=True))
              if guarded and isinstance(x.aval, ShapedArray)]
    if differentiated and behind:
        found = m.op("stablehlo.optimization_barrier", [args[i] for i in behind], [args[i].aval for i in behind])
        found = dict(zip(behind, found if isinstance(found, (list, tuple)) else [found], strict=True))
        args = tuple(found.get(i, x) for i, x in enumerate(args))
    return m.call(close_jaxpr(jaxpr), *args, name="checkpoint")


stablehlos[remat_p] = _stablehlo


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, prevent_cse: Guards, **params: Any) -> Any:
    nonzero = [type(t) is not Zero for t in tangents]
    new, nonzero_out = jvp_jaxpr(close_jaxpr(jaxpr), nonzero, False)
    new, captured = hoist_tracers(new, True)
    given = [t for t in tangents if type(t) is not Zero]
    guards = _joined(prevent_cse, [False] * len(captured), _each(prevent_cse, primals), [True] * len(given))
    results = remat_p.bind(*captured, *primals, *given, jaxpr=new.jaxpr, prevent_cse=guards, **params)
    n = len(nonzero_out)
    given = iter(results[n:])
    return results[:n], [next(given) if nz else Zero.from_primal_value(x)
                         for x, nz in zip(results[:n], nonzero_out, strict=True)]


class _Halves:
    """A differentiated program cut in two: `known` runs now, `again` recomputes the residuals of `rest`."""

    __slots__ = ("guarded", "inputs", "known", "num_outs", "rest", "saved", "sources", "used")

    def __init__(self, primal: ClosedJaxpr, num_outs: int, rest: ClosedJaxpr, policy: Any):
        """`primal` gives results and then residuals, which `rest` takes before its other inputs."""
        self.num_outs = num_outs
        jaxpr = primal.jaxpr
        n = len(jaxpr.invars)
        saveable = policy or _nothing
        known, staged, _, _, num_saved = partial_eval_jaxpr_custom(
            jaxpr.replace(invars=[*jaxpr.constvars, *jaxpr.invars], constvars=[]),
            [False] * (n + len(primal.consts)), True, False,
            [False] * num_outs + [True] * (len(jaxpr.outvars) - num_outs), saveable)
        # the program that recomputes, then uses: (saved..., inputs..., others...) -> results of rest
        whole = _compose(staged, rest.jaxpr, len(jaxpr.outvars) - num_outs)
        whole, used = dce_jaxpr(whole, [True] * len(whole.outvars),
                                [False] * len(staged.invars) + [True] * (len(whole.invars) - len(staged.invars)))
        saved = known.outvars[len(jaxpr.outvars):]
        outvars = [*known.outvars[:num_outs], *(v for v, u in zip(saved, used[:num_saved], strict=True) if u)]
        known = known.replace(outvars=outvars)
        self.guarded = {v for v in known.outvars[num_outs:] if type(v) is not Literal and policy is not None}
        closed = close_jaxpr(dce_jaxpr(known, [True] * len(outvars), True)[0])
        self.known, self.sources = forward_residuals(closed, num_outs)
        self.used = used[num_saved:len(staged.invars)]
        self.inputs = [v.aval for v, u in zip(staged.invars[num_saved:], self.used, strict=True) if u]
        made = {v: e for e in known.eqns for v in e.outvars}
        self.saved = [(v.aval, made[v]) for v in outvars[num_outs:] if type(v) is not Literal and v in made]
        self.rest = whole

    def run(self, run_known: Callable, consts: Sequence[Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Runs the first part: its results, and the values that the second part takes from it."""
        everything = [*consts, *args]
        results = run_known(_eval_guarded, self.known.jaxpr, everything, self.guarded)
        saved = resolve(self.sources, everything, results)
        inputs = [x for x, u in zip(everything, self.used, strict=True) if u]
        return results[:self.num_outs], [*saved, *inputs]

    def guards(self, before: Guards, of_args: Sequence[bool], others: int) -> Guards:
        """Those of the second part, which also takes `others`; `of_args` are those of the first part's arguments."""
        consts = [False] * (len(self.used) - len(of_args))
        inputs = [g for g, u in zip([*consts, *of_args], self.used, strict=True) if u]
        return _joined(before, [True] * len(self.sources), inputs, [True] * others)


def _nothing(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    return False


def _compose(first: Jaxpr, second: Jaxpr, num_shared: int) -> Jaxpr:
    """The program that computes `first` again and feeds its results to the first inputs of `second`."""
    substitute: dict[Any, Any] = dict(zip(second.invars[:num_shared], first.outvars, strict=True))

    def atom(a: Any) -> Any:
        return a if type(a) is Literal else substitute.get(a, a)

    again = [e if e.source_info is None else e.replace(source_info=e.source_info.replace(
        _recomputed + e.source_info.name_stack)) for e in first.eqns]
    eqns = [e.replace(invars=[atom(a) for a in e.invars]) for e in second.eqns]
    return Jaxpr([], first.invars + second.invars[num_shared:], [atom(a) for a in second.outvars], again + eqns,
                 None, first.debug_info)


_recomputed = new_name_stack("rematted_computation")


def _eval_guarded(jaxpr: Jaxpr, args: Sequence[Any], guarded: set[Var]) -> list[Any]:
    """Runs a program; saved values that are also used on the way are rounded to what is saved.

    A compiler may keep more precision than the dtype has inside of one kernel, and the backward pass
    would then see another value than the forward pass.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    staging = not state.trace.is_eval
    used = {a for e in jaxpr.eqns for a in e.invars if type(a) is not Literal} if staging and guarded else set()
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        with source.inherit(eqn.source_info), in_its_mesh(eqn):
            out = eqn.primitive.bind(*(a.value if type(a) is Literal else env[a] for a in eqn.invars), **params)
            outs = out if eqn.primitive.multiple_results else [out]
            for v, x in zip(eqn.outvars, outs, strict=True):
                if v in guarded and v in used and eqn.primitive is not jit_p and _is_float(v.aval):
                    info = dtypes.finfo(v.aval.dtype)
                    x = hooks.lax.reduce_precision(x, info.nexp, info.nmant)
                env[v] = x
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]


def _is_float(aval: AbstractValue) -> TypeGuard[ShapedArray]:
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and dtypes.issubdtype(dtype, np.floating)


def _split(key: tuple, jaxpr: Jaxpr, policy: Any, make: Callable[[], tuple[ClosedJaxpr, int, ClosedJaxpr, Any]]) -> Any:
    """A split kept on the program it is of, with what else `make` says of it."""
    try:
        found = jaxpr.cache.get((*key, policy))
    except TypeError:
        primal, num_outs, rest, extra = make()
        return _Halves(primal, num_outs, rest, policy), primal.consts, rest, extra
    if found is None:
        primal, num_outs, rest, extra = make()
        found = jaxpr.cache[(*key, policy)] = (_Halves(primal, num_outs, rest, policy), primal.consts, rest, extra)
    return found


def _check_effects(jaxpr: Jaxpr) -> None:
    """Raises NotImplementedError for effects that must not happen again."""
    forbidden = remat_allowed_effects.filter_not_in(jaxpr.effects)
    if forbidden:
        raise NotImplementedError(f"Effects not supported in partial-eval of `checkpoint`/`remat`: {forbidden}")


def _linearize(nonzero: Sequence[bool], *primals: Any, jaxpr: Jaxpr, policy: Any, prevent_cse: Guards,
               **params: Any) -> Any:
    _check_effects(jaxpr)

    def make() -> tuple[ClosedJaxpr, int, ClosedJaxpr, Any]:
        primal, nonzero_out, linear, _ = linearize_jaxpr(_without_refs(jaxpr), nonzero)
        return primal, len(nonzero_out), linear, nonzero_out

    split, consts, _, nonzero_out = _split(("remat linearize", tuple(nonzero)), jaxpr, policy, make)
    compile_log.saved_by_checkpoint(split.inputs, split.saved)
    outs, residuals = split.run(_call, consts, primals)
    guards = split.guards(prevent_cse, _each(prevent_cse, primals), sum(nonzero))

    def push(residuals: Sequence[Any], *tangents: Any) -> list[Any]:
        given = iter(bind_linear(
            remat_p, *residuals, *(instantiate_zeros(t) for t, nz in zip(tangents, nonzero, strict=True) if nz),
            jaxpr=split.rest, policy=policy, prevent_cse=guards, **params))
        return [next(given) if nz else Zero.from_primal_value(x) for x, nz in zip(outs, nonzero_out, strict=True)]

    return outs, nonzero_out, residuals, push


def _without_refs(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The program with its own references as values, which can be computed again."""
    from .refs import discharge_closed

    closed = close_jaxpr(jaxpr)
    return closed if any(isinstance(a, AbstractRef) for a in jaxpr.in_avals) else discharge_closed(closed)


def _call(fun: Callable, *args: Any) -> Any:
    return fun(*args)


def _partial_eval(trace: PartialTrace, *args: Any, jaxpr: Jaxpr, policy: Any, prevent_cse: Guards,
                  **params: Any) -> list[Any]:
    _check_effects(jaxpr)
    unknown_in = tuple(trace.is_unknown(x) for x in args)

    def make() -> tuple[ClosedJaxpr, int, ClosedJaxpr, Any]:
        known, unknown, unknown_out, _ = partial_eval_jaxpr(_without_refs(jaxpr), unknown_in)
        return known, len(unknown_out) - sum(unknown_out), unknown, unknown_out

    split, consts, _, unknown_out = _split(("remat partial evaluation", unknown_in), jaxpr, policy, make)
    known_args = [x for x, u in zip(args, unknown_in, strict=True) if not u]
    outs, residuals = split.run(trace.run_known, consts, known_args)
    each = _each(prevent_cse, args)
    guards = split.guards(prevent_cse, [g for g, u in zip(each, unknown_in, strict=True) if not u], 0)
    guards = _joined(prevent_cse, _each(guards, residuals), [g for g, u in zip(each, unknown_in, strict=True) if u])
    recorded = iter(trace.record(remat_p, [*residuals, *(x for x, u in zip(args, unknown_in, strict=True) if u)],
                                 dict(jaxpr=split.rest, policy=policy, prevent_cse=guards, **params)))
    given = iter(outs)
    return [next(recorded) if u else next(given) for u in unknown_out]


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: Jaxpr, differentiated: bool, prevent_cse: Guards,
               **params: Any) -> list[Any]:
    linear = [is_linear(x) for x in args]
    zero = [type(ct) is Zero for ct in cts]
    refs = [i for i, x in enumerate(args) if isinstance(x, CotangentRef)]
    new, nonzero = transpose_jaxpr(close_jaxpr(jaxpr), linear, zero)
    new, captured = hoist_tracers(new, True)
    guards = _joined(prevent_cse, [False] * len(captured),
                     [g for g, n in zip(_each(prevent_cse, args), linear, strict=True) if not n], [True] * len(refs),
                     [True] * zero.count(False))
    results = iter(remat_p.bind(
        *captured, *(x for x, n in zip(args, linear, strict=True) if not n),
        *(cotangent_reference(args[i]) for i in refs),
        *(ct for ct, z in zip(cts, zero, strict=True) if not z), jaxpr=new.jaxpr, differentiated=True,
        prevent_cse=guards, **params))
    found: list[Any] = [None] * len(args)
    arrays = [i for i, x in enumerate(args) if type(x) is UndefinedPrimal]
    for i, nz in zip(arrays, nonzero, strict=True):
        found[i] = next(results) if nz else Zero(args[i].aval.to_cotangent_aval())
    return found


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, prevent_cse: Guards,
           **params: Any) -> Any:
    new, out_dims = batch_jaxpr2(close_jaxpr(jaxpr), axis_data, dims)
    new, captured = hoist_tracers(new, True)
    guards = _joined(prevent_cse, [False] * len(captured), _each(prevent_cse, args))
    return remat_p.bind(*captured, *args, jaxpr=new.jaxpr, prevent_cse=guards, **params), out_dims


def _dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    guards = eqn.params["prevent_cse"]

    def changes(new: Jaxpr, used: Sequence[bool]) -> dict[str, Any]:
        kept = _joined(guards, [g for g, u in zip(_each(guards, used), used, strict=True) if u])
        return {"params": {**eqn.params, "jaxpr": new, "prevent_cse": kept}, "effects": call_effects(close_jaxpr(new))}

    return dce_call(used_outputs, eqn, lambda: dce_jaxpr(eqn.params["jaxpr"], used_outputs), changes)


def _split_for_policy(saveable: Callable, unknown_in: Sequence[bool], instantiated_in: Sequence[bool],
                      eqn: JaxprEqn) -> Any:
    """Rule of `partial_eval_jaxpr_custom`: inside of another checkpoint, all is computed again."""
    if any(unknown_in):
        many = len(eqn.outvars)
        return None, eqn, [True] * many, [True] * many, []
    many = len(eqn.outvars)
    return eqn, eqn, [False] * many, [True] * many, []


def _discharge(in_avals: Any, out_avals: Any, *args: Any, jaxpr: Jaxpr, prevent_cse: Guards, **params: Any) -> Any:
    from .refs import discharge_closed

    closed = close_jaxpr(jaxpr)
    new, captured = hoist_tracers(discharge_closed(closed), True)
    n = len(jaxpr.outvars)
    guards = _joined(prevent_cse, [False] * len(captured), _each(prevent_cse, args))
    outs = remat_p.bind(*captured, *args, jaxpr=new.jaxpr, prevent_cse=guards, **params)
    contents: list[Any] = [None] * len(args)
    changed = [i for i, a in enumerate(in_avals) if hasattr(a, "inner_aval")]
    for i, x in zip(changed, outs[n:], strict=True):
        contents[i] = x
    return contents, outs[:n]


jvps[remat_p] = _jvp
linearizations[remat_p] = _linearize
partial_evals[remat_p] = _partial_eval
transposes[remat_p] = _transpose
fancy_batchers[remat_p] = _batch
dces[remat_p] = _dce
partial_eval_jaxpr_customs[remat_p] = _split_for_policy
discharges[remat_p] = _discharge


def print_saved_residuals(f: Function, *args: PyTree, **kwargs: PyTree) -> None:
    """Prints what the backward pass of `f(*args, **kwargs)` keeps, a line each, and where it comes from."""
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {origin}")


def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """What the backward pass of `f(*args, **kwargs)` keeps: abstract values, and where each comes from."""
    from .naming import argument_names

    closed, _ = trace_function(f, args, kwargs, (), "saved_residuals")
    nonzero = [a.is_high or dtypes.issubdtype(a.dtype, np.inexact) for a in closed.in_avals]
    primal, nonzero_out, linear, _ = linearize_jaxpr(closed, nonzero)
    jaxpr = primal.jaxpr
    residuals = dict.fromkeys(v for v in jaxpr.outvars[len(nonzero_out):] if type(v) is not Literal)
    names = argument_names(f, args, kwargs)
    found = [(v.aval, "from a constant") for v in jaxpr.constvars if v in residuals]
    found += [(v.aval, f"from the argument {names[i]}") for i, v in enumerate(jaxpr.invars) if v in residuals]
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        where = source.summarize(eqn.source_info)
        for v in eqn.outvars:
            if v in residuals:
                if eqn.primitive is hooks.lax.reduce_precision_p:  # the guard of a saved value
                    eqn = made.get(eqn.invars[0], eqn)
                what = f"named '{eqn.params['name']}'" if eqn.primitive is name_p else f"output of {_what(eqn)}"
                found.append((v.aval, f"{what} from {where}"))
    return found


def _what(eqn: JaxprEqn) -> str:
    if eqn.primitive is jit_p:
        return f"jitted function '{eqn.params['name']}'"
    return eqn.primitive.name


__all__ = [
    "checkpoint", "checkpoint_policies", "get_aval", "print_saved_residuals", "remat", "remat_p",
]
