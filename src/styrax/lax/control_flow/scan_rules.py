"""How `scan` is differentiated forwards, batched, pruned and freed of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core.programs import dead_code, rules
from styrax.core.programs.jaxpr import ClosedJaxpr
from styrax.core.tracing.staging import hoist_tracers
from styrax.core.types.avals import AbstractRef
from styrax.transforms import ad, batching

from .bodies import discharged, either, merge, needed_step, rearranged_once, select_where, split_list
from .scans import scan_p

# -- forward mode ---------------------------------------------------------------------------------


def _scan_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    nonzero = [type(t) is not ad.Zero for t in tangents]
    consts_nz, carry_nz, xs_nz = split_list(nonzero, [num_consts, num_carry])
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        nonzero = consts_nz + carry_nz + xs_nz
        body, nonzero_out = ad.jvp_jaxpr(jaxpr, nonzero, carry_nz + [False] * num_ys)
        joined = either(carry_nz, nonzero_out[:num_carry])
        if joined == carry_nz:
            break
        carry_nz = joined
    ys_nz = nonzero_out[num_carry:]

    body, captured = hoist_tracers(body)  # what a custom rule in the body closes over
    consts, init, xs = split_list(primals, [num_consts, num_carry])
    given = [ad.instantiate_zeros(t) for t, nz in zip(tangents, nonzero, strict=True) if nz]
    counts = [sum(consts_nz), sum(carry_nz)]
    consts_dot, init_dot, xs_dot = split_list(given, counts)
    captured_in, p_in, t_in = split_list(body.jaxpr.invars, [len(captured), len(primals)])
    p_consts, p_carry, p_xs = split_list(p_in, [num_consts, num_carry])
    t_consts, t_carry, t_xs = split_list(t_in, counts)
    p_out, t_out = split_list(body.jaxpr.outvars, [num_carry + num_ys])
    body = rearranged_once(
        body,
        [*captured_in, *p_consts, *t_consts, *p_carry, *t_carry, *p_xs, *t_xs],
        [*p_out[:num_carry], *t_out[: counts[1]], *p_out[num_carry:], *t_out[counts[1] :]],
    )
    outs = scan_p.bind(
        *captured, *consts, *consts_dot, *init, *init_dot, *xs, *xs_dot,
        jaxpr=body, num_consts=len(captured) + num_consts + counts[0], num_carry=num_carry + counts[1], **params,
    )  # fmt: skip
    carry, carry_dot, ys, ys_dot = split_list(outs, [num_carry, counts[1], num_ys])
    dots = iter(carry_dot + ys_dot)
    primals_out = carry + ys
    return primals_out, [
        next(dots) if nz else ad.Zero.from_primal_value(p)
        for p, nz in zip(primals_out, carry_nz + ys_nz, strict=True)
    ]


rules.jvps[scan_p] = _scan_jvp


# -- batching -------------------------------------------------------------------------------------


def _scan_batch(
    axis_data: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    batched = [d is not None for d in dims]
    consts_b, carry_b, xs_b = split_list(batched, [num_consts, num_carry])
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        body, batched_out = batching.batch_jaxpr(
            jaxpr, axis_data, consts_b + carry_b + xs_b, carry_b + [False] * num_ys
        )
        joined = either(carry_b, batched_out[:num_carry])
        if joined == carry_b:
            break
        carry_b = joined
    consts, init, xs = split_list(args, [num_consts, num_carry])
    consts_d, init_d, xs_d = split_list(dims, [num_consts, num_carry])
    consts = [
        batching.moveaxis(x, d, 0) if d is not None else x for x, d in zip(consts, consts_d, strict=True)
    ]
    init = [
        batching.bdim_at_front(x, d, axis_data.size, axis_data.explicit_mesh_axis) if b else x
        for x, d, b in zip(init, init_d, carry_b, strict=True)
    ]
    xs = [batching.moveaxis(x, d, 1) if d is not None else x for x, d in zip(xs, xs_d, strict=True)]
    outs = scan_p.bind(*consts, *init, *xs, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    carry_dims = [0 if b else None for b in carry_b]
    return outs, carry_dims + [1 if b else None for b in batched_out[num_carry:]]


rules.fancy_batchers[scan_p] = _scan_batch


# -- dead code ------------------------------------------------------------------------------------


def _scan_dce(used_outs: Sequence[bool], eqn: Any) -> tuple[list[bool], Any]:
    params = eqn.params
    jaxpr, num_carry = params["jaxpr"], params["num_carry"]
    if not any(used_outs) and not dead_code.has_effects(eqn):
        return [False] * len(eqn.invars), None
    body, used_in, used_outs = needed_step(jaxpr.jaxpr, used_outs, params["num_consts"], num_carry)
    if body is jaxpr.jaxpr:
        return used_in, eqn
    new_params = dict(
        params,
        jaxpr=ClosedJaxpr(body, jaxpr.consts),
        num_consts=sum(used_in[: params["num_consts"]]),
        num_carry=sum(used_outs[:num_carry]),
    )
    invars = select_where(eqn.invars, used_in)
    new = eqn.replace(
        invars=invars,
        outvars=select_where(eqn.outvars, used_outs),
        params=new_params,
        effects=scan_p.abstract_eval(*[v.aval for v in invars], **new_params)[1],
    )
    return used_in, new


rules.dces[scan_p] = _scan_dce


# -- references -----------------------------------------------------------------------------------


def _scan_discharge(
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    """References among the constants become carries, which hold their contents."""
    is_ref = [isinstance(a, AbstractRef) for a in in_avals[:num_consts]]
    num_refs = sum(is_ref)
    body = discharged(jaxpr)
    consts_v, carry_v, xs_v = split_list(body.jaxpr.invars, [num_consts, num_carry])
    carry_o, rest = split_list(body.jaxpr.outvars, [num_carry])
    ys_o, refs_o = split_list(rest, [len(rest) - num_refs])
    body = rearranged_once(
        body,
        [*select_where(consts_v, is_ref, False), *select_where(consts_v, is_ref), *carry_v, *xs_v],
        [*refs_o, *carry_o, *ys_o],
    )
    consts, init, xs = split_list(args, [num_consts, num_carry])
    outs = scan_p.bind(
        *select_where(consts, is_ref, False), *select_where(consts, is_ref), *init, *xs,
        jaxpr=body, num_consts=num_consts - num_refs, num_carry=num_carry + num_refs, **params,
    )  # fmt: skip
    contents, results = split_list(outs, [num_refs])
    new = merge(is_ref, [None] * (num_consts - num_refs), contents)
    return new + [None] * (len(args) - num_consts), results


rules.discharges[scan_p] = _scan_discharge
