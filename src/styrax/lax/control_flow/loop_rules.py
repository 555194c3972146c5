"""How `while` is differentiated, split, batched, pruned, freed of references, and printed for XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styrax.core.hooks import lax
from styrax.core.programs import dead_code, rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Var
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import AbstractRef
from styrax.core.types.effects import AccumEffect, WriteEffect, counted_effects, ordered_effects, per_device_effects
from styrax.transforms import ad, batching, partial
from styrax.transforms.in_turn import by_device, refuse_collectives
from styrax.transforms.references import ref_get, ref_set

from .bodies import discharged, either, merge, rearranged, rearranged_once, select_where, split_list
from .loops import while_p

# -- derivatives ----------------------------------------------------------------------------------


def _while_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], list[Any]]:
    nonzero = [type(t) is not ad.Zero for t in tangents]
    if any(nz and isinstance(get_aval(p), AbstractRef) for p, nz in zip(primals, nonzero, strict=True)):
        return ad.jvp_flat(_on_contents(primals, dict(
            cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts,
        )), primals, tangents)
    _, consts_nz, carry_nz = split_list(nonzero, [cond_nconsts, body_nconsts])
    while True:
        body, nonzero_out = ad.jvp_jaxpr(body_jaxpr, consts_nz + carry_nz, carry_nz)
        joined = either(carry_nz, nonzero_out)
        if joined == carry_nz:
            break
        carry_nz = joined
    cond_consts, consts, init = split_list(primals, [cond_nconsts, body_nconsts])
    _, consts_t, init_t = split_list(tangents, [cond_nconsts, body_nconsts])
    consts_dot = [ad.instantiate_zeros(t) for t in select_where(consts_t, consts_nz)]
    init_dot = [ad.instantiate_zeros(t) for t in select_where(init_t, carry_nz)]
    p_consts, p_carry, t_consts, t_carry = split_list(
        body.jaxpr.invars, [body_nconsts, len(init), len(consts_dot)]
    )
    body = rearranged_once(body, [*p_consts, *t_consts, *p_carry, *t_carry], body.jaxpr.outvars)
    cond = _with_more_carries(cond_jaxpr, [get_aval(t) for t in init_dot], len(cond_jaxpr.in_avals))
    outs = while_p.bind(
        *cond_consts, *consts, *consts_dot, *init, *init_dot,
        cond_nconsts=cond_nconsts, cond_jaxpr=cond,
        body_nconsts=body_nconsts + len(consts_dot), body_jaxpr=body,
    )  # fmt: skip
    primals_out, dots = outs[: len(init)], iter(outs[len(init) :])
    return primals_out, [
        next(dots) if nz else ad.Zero.from_primal_value(p)
        for p, nz in zip(primals_out, carry_nz, strict=True)
    ]


def _changed(body: ClosedJaxpr) -> set[int]:
    """The arguments of a body that are references which it changes."""
    return {e.input_index for e in body.effects if isinstance(e, (WriteEffect, AccumEffect))}


def _on_contents(args: Sequence[Any], params: dict[str, Any]) -> Callable[..., list[Any]]:
    """A loop that changes references, as a function of the same arguments whose loop carries their contents.

    Such a loop can be split in what is known beforehand and what is linear, and its carries selected by a predicate.
    """
    avals = [get_aval(x) for x in args]
    changed = {id(args[params["cond_nconsts"] + i]) for i in _changed(params["body_jaxpr"])}

    def run(*given: Any) -> list[Any]:
        refs = {id(x): new for x, new, a in zip(args, given, avals, strict=True) if isinstance(a, AbstractRef)}
        contents = {key: ref_get(ref) for key, ref in refs.items()}
        read = [contents.get(id(x), new) for x, new in zip(args, given, strict=True)]
        left, outs = _while_discharge(avals, (), *read, **params)
        for key, new in {id(x): new for x, new in zip(args, left, strict=True) if id(x) in changed}.items():
            ref_set(refs[key], (), new)
        return outs

    return run


def _with_more_carries(cond: ClosedJaxpr, avals: Sequence[Any], position: int) -> ClosedJaxpr:
    """A condition that takes further arguments, from `position` on, and ignores them."""
    if not avals:
        return cond
    key = ("more carries", tuple(avals), position)
    cache = cond.jaxpr.cache
    if key not in cache:
        invars = cond.jaxpr.invars
        new = [*invars[:position], *map(Var, avals), *invars[position:]]
        cache[key] = rearranged(cond, new, cond.jaxpr.outvars)
    return cache[key]


rules.jvps[while_p] = _while_jvp


def _while_transpose(*_: Any, **__: Any) -> Any:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
        "start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
    )


rules.transposes[while_p] = _while_transpose


def _while_partial_eval(
    trace: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:
    """Known carries are computed by a loop of their own; the recorded loop computes everything again."""
    params = dict(
        cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts
    )
    unknown = [trace.is_unknown(x) for x in args]
    cond_uk, body_uk, carry_uk = split_list(unknown, [cond_nconsts, body_nconsts])
    while True:
        known, _, unknown_out, _ = partial.partial_eval_jaxpr(body_jaxpr, body_uk + carry_uk, carry_uk)
        joined = either(carry_uk, unknown_out)
        if joined == carry_uk:
            break
        carry_uk = joined
    cond_unknown = partial.partial_eval_jaxpr(cond_jaxpr, cond_uk + carry_uk, False)[2][0]
    if cond_unknown or all(carry_uk) or any(hasattr(e, "input_index") for e in body_jaxpr.effects | cond_jaxpr.effects):
        return trace.record(while_p, args, params)
    num_known = len(carry_uk) - sum(carry_uk)
    body_known = _first_results(known, num_known)
    keep = [True] * cond_nconsts + [not u for u in carry_uk]
    cond_known = _without_inputs(cond_jaxpr, keep)
    cond_consts, body_consts, init = split_list(args, [cond_nconsts, body_nconsts])
    known_consts = select_where(body_consts, body_uk, False)
    results = trace.run_known(
        while_p.bind, *cond_consts, *known_consts, *select_where(init, carry_uk, False),
        cond_nconsts=cond_nconsts, cond_jaxpr=cond_known,
        body_nconsts=len(known_consts), body_jaxpr=body_known,
    )  # fmt: skip
    recorded = trace.record(while_p, args, params)
    return merge(carry_uk, results, select_where(recorded, carry_uk))


def _first_results(closed: ClosedJaxpr, number: int) -> ClosedJaxpr:
    used = [i < number for i in range(len(closed.jaxpr.outvars))]
    jaxpr, _ = dead_code.dce_jaxpr(closed.jaxpr, used, True)
    return ClosedJaxpr(jaxpr, closed.consts)


def _without_inputs(closed: ClosedJaxpr, keep: Sequence[bool]) -> ClosedJaxpr:
    jaxpr, _ = dead_code.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), keep)
    return ClosedJaxpr(jaxpr, closed.consts)


rules.partial_evals[while_p] = _while_partial_eval


# -- batching -------------------------------------------------------------------------------------


def _while_batch(
    axis_data: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], list[Any]]:
    """With a batched predicate the whole carry is batched, and the predicate has the axis in front.

    Such a loop runs as long as the predicate holds for some example, and leaves the carries of the
    others as they are, and the contents of references with them; what it prints it prints for all of
    them. A predicate that has axes from earlier batching and not from this one keeps them in front; the
    carries have this axis behind them.
    """
    found = body_jaxpr.effects | cond_jaxpr.effects
    if not axis_data.devices and ordered_effects.filter_in(counted_effects.filter_in(found)):
        raise NotImplementedError("Ordered IO effects not supported in vmap.")
    batched = [d is not None for d in dims]
    cond_b, body_b, carry_b = split_list(batched, [cond_nconsts, body_nconsts])
    while True:
        _, carry_out = batching.batch_jaxpr(body_jaxpr, axis_data, body_b + carry_b, carry_b)
        joined = either(carry_b, carry_out)
        if joined == carry_b:
            break
        carry_b = joined
    pred_rank = len(cond_jaxpr.out_avals[0].shape)
    cond_dims: list[int | None] = [0 if b else None for b in cond_b]
    body_dims: list[int | None] = [0 if b else None for b in body_b]
    _, (pred_dim,) = batching.batch_jaxpr_axes(
        cond_jaxpr, axis_data, cond_dims + [0 if b else None for b in carry_b], [None]
    )
    pred_batched = pred_dim is not None
    carry_dims: list[int | None] = [0 if pred_batched else pred_rank if b else None for b in carry_b]
    pred_axes = [0 if pred_batched else None]
    cond, _ = batching.batch_jaxpr_axes(cond_jaxpr, axis_data, cond_dims + carry_dims, pred_axes)
    body, _ = batching.batch_jaxpr_axes(body_jaxpr, axis_data, body_dims + carry_dims, carry_dims)
    if pred_batched and _changed(body_jaxpr):
        return batching.batch_flat(_on_contents(args, dict(
            cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts,
        )), args, dims, axis_data)
    if pred_batched and axis_data.devices and per_device_effects.filter_in(found):
        refuse_collectives("while_loop", axis_data, found)
        return by_device(axis_data, lambda *args: while_p.bind(
            *args, cond_nconsts=cond_nconsts, cond_jaxpr=cond_jaxpr, body_nconsts=body_nconsts,
            body_jaxpr=body_jaxpr), args, dims)
    if pred_batched and counted_effects.filter_in(found):
        raise NotImplementedError("Unordered IO effects not supported in while_loop with batched predicate")
    cond_consts, body_consts, init = split_list(args, [cond_nconsts, body_nconsts])
    cond_d, body_d, init_d = split_list(dims, [cond_nconsts, body_nconsts])
    outs = while_p.bind(
        *(_move(x, d, 0) for x, d in zip(cond_consts, cond_d, strict=True)),
        *(_move(x, d, 0) for x, d in zip(body_consts, body_d, strict=True)),
        *(_place(x, d, want, axis_data.size) for x, d, want in zip(init, init_d, carry_dims, strict=True)),
        cond_nconsts=cond_nconsts, cond_jaxpr=cond, body_nconsts=body_nconsts, body_jaxpr=body,
    )  # fmt: skip
    return outs, carry_dims


def _move(x: Any, dim: int | None, to: int) -> Any:
    return x if dim is None else batching.moveaxis(x, dim, to)


def _place(x: Any, dim: int | None, want: int | None, size: Any) -> Any:
    if want is None:
        return x
    return batching.broadcast(x, size, want) if dim is None else batching.moveaxis(x, dim, want)


rules.fancy_batchers[while_p] = _while_batch


# -- dead code, references, lowering --------------------------------------------------------------


def _while_dce(used_outs: Sequence[bool], eqn: Any) -> tuple[list[bool], Any]:
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    num_cond, num_body = params["cond_nconsts"], params["body_nconsts"]
    if not any(used_outs) and not dead_code.has_effects(eqn):
        return [False] * len(eqn.invars), None
    cond_used = dead_code.dce_jaxpr(cond.jaxpr, [True], False)[1]
    cond_consts_used, used = split_list(cond_used, [num_cond])
    if cond.jaxpr.out_avals[0].shape:  # every carry is selected by the predicate
        used = [True] * len(used)
    used = either(used, used_outs)
    while True:
        new_body, body_used = dead_code.dce_jaxpr(body.jaxpr, used, [False] * num_body + used)
        joined = [a or b for a, b in zip(used, body_used[num_body:], strict=True)]
        if joined == used:
            break
        used = joined
    used_in = cond_consts_used + body_used[:num_body] + used
    if all(used_in) and len(new_body.eqns) == len(body.eqns):
        return used_in, eqn
    new_cond, _ = dead_code.dce_jaxpr(cond.jaxpr, [True], cond_consts_used + used)
    new_params = dict(
        cond_nconsts=sum(cond_consts_used),
        cond_jaxpr=ClosedJaxpr(new_cond, cond.consts),
        body_nconsts=sum(body_used[:num_body]),
        body_jaxpr=ClosedJaxpr(new_body, body.consts),
    )
    invars = select_where(eqn.invars, used_in)
    return used_in, eqn.replace(
        invars=invars,
        outvars=select_where(eqn.outvars, used),
        params=new_params,
        effects=while_p.abstract_eval(*[v.aval for v in invars], **new_params)[1],
    )


rules.dces[while_p] = _while_dce


def _while_discharge(
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], list[Any]]:
    """References among the body's constants become carries that hold their contents.

    A reference that the condition reads too becomes one carry for both.
    """
    cond_args, body_args, init = split_list(args, [cond_nconsts, body_nconsts])
    cond_ref, body_ref, _ = split_list(
        [isinstance(a, AbstractRef) for a in in_avals], [cond_nconsts, body_nconsts]
    )
    if any(isinstance(e, WriteEffect) for e in cond_jaxpr.effects):
        raise NotImplementedError("a condition of while_loop may read references, but not write to them")
    contents = select_where(body_args, body_ref)
    # the same contents stand for the same reference on both sides
    shared = {id(x): n for n, x in enumerate(contents)}
    cond_position = [shared.get(id(x)) if r else None for x, r in zip(cond_args, cond_ref, strict=True)]
    cond = discharged(cond_jaxpr)
    body = discharged(body_jaxpr)
    num_carry = len(init)

    consts_v, carry_v = split_list(body.jaxpr.invars, [body_nconsts])
    body = rearranged(
        body,
        [*select_where(consts_v, body_ref, False), *select_where(consts_v, body_ref), *carry_v],
        [*body.jaxpr.outvars[num_carry:], *body.jaxpr.outvars[:num_carry]],
    )
    cond = _condition_on_contents(cond, cond_nconsts, cond_position, [get_aval(x) for x in contents])
    outs = while_p.bind(
        *(x for x, p in zip(cond_args, cond_position, strict=True) if p is None),
        *select_where(body_args, body_ref, False),
        *contents,
        *init,
        cond_nconsts=sum(p is None for p in cond_position),
        cond_jaxpr=cond,
        body_nconsts=body_nconsts - len(contents),
        body_jaxpr=body,
    )
    found, results = split_list(outs, [len(contents)])
    new_body = merge(body_ref, [None] * (body_nconsts - len(contents)), found)
    new_cond = [found[p] if p is not None else x if r else None
                for x, r, p in zip(cond_args, cond_ref, cond_position, strict=True)]  # fmt: skip
    return new_cond + new_body + [None] * num_carry, results


def _condition_on_contents(
    cond: ClosedJaxpr, num_consts: int, positions: Sequence[int | None], avals: Sequence[Any]
) -> ClosedJaxpr:
    consts, carry = split_list(cond.jaxpr.invars, [num_consts])
    shared = {p: v for v, p in zip(consts, positions, strict=True) if p is not None}
    return rearranged(
        cond,
        [
            *(v for v, p in zip(consts, positions, strict=True) if p is None),
            *(shared.get(n) or Var(a) for n, a in enumerate(avals)),
            *carry,
        ],
        cond.jaxpr.outvars[:1],
    )


rules.discharges[while_p] = _while_discharge


def _while_hlo(
    m: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Any:
    """`stablehlo.while`; a predicate with axes is reduced for it, and selects the carries that go on."""
    cond_args, body_args, init = split_list(args, [cond_nconsts, body_nconsts])
    pred_aval = cond_jaxpr.out_avals[0]
    tokens = m.order(cond_jaxpr, body_jaxpr)

    def holds(m2: Any, carry: Any, scope: str | None = None) -> Any:
        (pred,) = m2.inline(cond_jaxpr, *cond_args, *carry, scope=scope)
        return pred

    def condition(m2: Any, *state: Any) -> Any:
        carry = m2.proceed(tokens, state)
        pred = carry.pop() if at_hand else holds(m2, carry)
        if not pred_aval.shape:
            return pred
        axes = tuple(range(len(pred_aval.shape)))
        return m2.call_traced(lambda p: lax.reduce_or(p, axes), pred)

    def step(m2: Any, *state: Any) -> Any:
        carry = m2.proceed(tokens, state)
        pred = carry.pop() if at_hand else None
        new = m2.inline(body_jaxpr, *body_args, *carry)
        if pred_aval.shape:
            pred = pred or holds(m2, carry, f"{m.path}/body_pred")
            new = [_go_on(m2, pred, n, x) for n, x in zip(new, carry, strict=True)]
        if at_hand:
            new.append(holds(m2, new))
        return [*m2.order(cond_jaxpr, body_jaxpr), *new]

    at_hand = bool(m.order(cond_jaxpr))  # a predicate with ordered effects is computed once for each turn, in the body
    if at_hand:
        init = [*init, holds(m, init)]
        tokens = m.order(cond_jaxpr)
    init = [*tokens, *init]
    avals = [x.aval for x in init]
    regions = [m.region(avals, condition, "cond"), m.region(avals, step, "body")]
    outs = m.proceed(tokens, m.op("stablehlo.while", init, avals, regions=regions))
    return outs[:-1] if at_hand else outs


def _go_on(m: Any, pred: Any, new: Any, old: Any) -> Any:
    def select(p: Any, a: Any, b: Any) -> Any:
        p = lax.broadcast_in_dim(p, get_aval(a).shape, tuple(range(get_aval(p).ndim)))
        return lax.select(p, a, b)

    return m.call_traced(select, pred, new, old)[0]


rules.stablehlos[while_p] = _while_hlo
