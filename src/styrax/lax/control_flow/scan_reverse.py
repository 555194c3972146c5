"""Reverse mode of `scan`: linearization, partial evaluation and transposition.

What differentiation needs of the forward loop are its residuals; only those that change from step to
step are stacked. A residual that depends on constants alone is computed once before the loop, and
one that is a scanned input is read from there again. The transpose of a scan is a scan in the other
direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styrax.core.hooks import lax
from styrax.core.programs import dead_code, rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from styrax.core.tracing.staging import hoist_tracers, trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import AbstractRef
from styrax.transforms import ad, partial
from styrax.transforms.linear import cotangent_reference, is_linear

from .bodies import either, merge, needed_step, rearranged_once, select_where, split_list
from .scans import bind_scan, scan_p

# -- residuals ------------------------------------------------------------------------------------


class _Forward:
    """A body split for a forward loop that leaves residuals behind.

    `before(consts)` gives values that the loop does not change; `body` is the loop's step, which
    takes the constants that `used_consts` marks and `num_fixed` of those values; `places` says for
    each residual where it comes from.
    """

    __slots__ = ("before", "body", "num_fixed", "places", "used_consts")

    def __init__(self, before: Any, body: Any, num_fixed: int, places: Any, used_consts: list[bool]):
        self.before = before
        self.body = body
        self.num_fixed = num_fixed
        self.places = places
        self.used_consts = used_consts


def _plan_forward(closed: ClosedJaxpr, num_consts: int, num_carry: int, num_results: int) -> _Forward:
    key = ("scan residuals", num_consts, num_carry, num_results)
    cache = closed.jaxpr.cache
    if key not in cache:
        cache[key] = _make_plan(closed, num_consts, num_carry, num_results)
    return cache[key]


def _make_plan(closed: ClosedJaxpr, num_consts: int, num_carry: int, num_results: int) -> _Forward:
    jaxpr = closed.jaxpr
    const_vars, carry_vars, x_vars = split_list(jaxpr.invars, [num_consts, num_carry])
    results, residuals = split_list(jaxpr.outvars, [num_results])
    x_index = {v: i for i, v in enumerate(x_vars)}

    # Equations that the loop does not change. Those without operands (a constant spread over a shape)
    # are cheaper to repeat inside than to pass in.
    fixed = {v for v in const_vars if not isinstance(v.aval, AbstractRef)} | set(jaxpr.constvars)
    free: set[Var] = set()
    outside, inside = [], []
    for eqn in jaxpr.eqns:
        operands = [v for v in eqn.invars if type(v) is not Literal]
        if eqn.effects or not all(v in fixed for v in operands):
            inside.append(eqn)
            continue
        fixed.update(eqn.outvars)
        outside.append(eqn)
        if all(v in free for v in operands):
            free.update(eqn.outvars)
            inside.append(eqn)

    places: list[tuple[str, Any]] = []
    stacked: dict[Any, int] = {}
    hoisted: dict[Var, int] = {}
    const_index = {v: i for i, v in enumerate(const_vars)}
    for v in residuals:
        if type(v) is Literal:
            places.append(("value", v.val))
        elif v in const_index:
            places.append(("const", const_index[v]))
        elif v in x_index:
            places.append(("x", x_index[v]))
        elif v in fixed:
            places.append(("fixed", hoisted.setdefault(v, len(hoisted))))
        else:
            places.append(("stacked", stacked.setdefault(v, len(stacked))))

    # What the remaining equations and results read of the hoisted values comes first among the fixed.
    made_inside = {v for eqn in inside for v in eqn.outvars}
    read = dict.fromkeys(
        v
        for v in [*(v for eqn in inside for v in eqn.invars), *results]
        if type(v) is not Literal
        and v in fixed
        and v not in made_inside
        and v not in const_index
        and v not in jaxpr.constvars
    )
    order = list(read) + [v for v in hoisted if v not in read]
    position = {v: i for i, v in enumerate(order)}
    by_number = list(hoisted)
    places = [(kind, position[by_number[n]] if kind == "fixed" else n) for kind, n in places]
    before = Jaxpr(jaxpr.constvars, const_vars, order, outside, None, jaxpr.debug_info)
    before, _ = dead_code.dce_jaxpr(before, [True] * len(order), True)
    body = Jaxpr(
        jaxpr.constvars, [*const_vars, *read, *carry_vars, *x_vars], [*results, *stacked], inside, None,
        jaxpr.debug_info,
    )  # fmt: skip
    keep = [False] * num_consts + [True] * (len(body.invars) - num_consts)
    body, used = dead_code.dce_jaxpr(body, [True] * len(body.outvars), keep)
    return _Forward(
        ClosedJaxpr(before, closed.consts),
        ClosedJaxpr(body, closed.consts),
        len(read),
        places,
        used[:num_consts],
    )


def _run_forward(
    plan: _Forward,
    consts: list[Any],
    init: list[Any],
    xs: list[Any],
    num_results: int,
    params: dict[str, Any],
) -> tuple[list[Any], list[Any], list[bool]]:
    """The results of the loop, its residuals, and which of these change from step to step."""
    fixed = eval_jaxpr(plan.before.jaxpr, plan.before.consts, *consts)
    used = [*select_where(consts, plan.used_consts), *fixed[: plan.num_fixed]]
    outs = bind_scan(plan.body, used, init, xs, **params)
    results, stacked = split_list(outs, [num_results])
    sources = {"const": consts, "x": xs, "fixed": fixed, "stacked": stacked}
    residuals = [n if kind == "value" else sources[kind][n] for kind, n in plan.places]
    return results, residuals, [kind in ("x", "stacked") for kind, _ in plan.places]


def _linear_body(
    closed: ClosedJaxpr, scanned: Sequence[bool], num_consts: int, num_carry: int
) -> ClosedJaxpr:
    """A step that takes residuals first, with those that change moved behind what it scans over."""
    residuals, consts, carry, xs = split_list(closed.jaxpr.invars, [len(scanned), num_consts, num_carry])
    return rearranged_once(
        closed,
        [*select_where(residuals, scanned, False), *consts, *carry, *xs, *select_where(residuals, scanned)],
        closed.jaxpr.outvars,
    )


def _linear_scan(
    run: Callable[..., list[Any]],
    body: ClosedJaxpr,
    residuals: list[Any],
    scanned: list[bool],
    consts: list[Any],
    carry: list[Any],
    xs: list[Any],
    params: dict[str, Any],
) -> list[Any]:
    body = _linear_body(body, scanned, len(consts), len(carry))
    fixed = select_where(residuals, scanned, False)
    return run(
        [*fixed, *consts, *carry, *xs, *select_where(residuals, scanned)],
        dict(jaxpr=body, num_consts=len(fixed) + len(consts), num_carry=len(carry), **params),
    )


# -- linearization --------------------------------------------------------------------------------


def _scan_linearize(
    nonzero: Sequence[bool], *primals: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **params: Any
) -> tuple[list[Any], list[bool], Any, Callable]:
    consts_nz, carry_nz, xs_nz = split_list(list(nonzero), [num_consts, num_carry])
    num_results = len(jaxpr.out_avals)
    num_ys = num_results - num_carry
    while True:
        primal, nonzero_out, linear, _ = ad.linearize_jaxpr(
            jaxpr, consts_nz + carry_nz + xs_nz, carry_nz + [False] * num_ys
        )
        joined = either(carry_nz, nonzero_out[:num_carry])
        if joined == carry_nz:
            break
        carry_nz = joined
    primal, captured = hoist_tracers(primal)  # what a custom rule in the body closes over
    plan = _plan_forward(primal, num_consts + len(captured), num_carry, num_results)
    consts, init, xs = split_list(primals, [num_consts, num_carry])
    results, residuals, scanned = _run_forward(plan, [*captured, *consts], init, xs, num_results, params)

    def linear_map(residuals: Any, *tangents: Any) -> list[Any]:
        consts_dot, init_dot, xs_dot = split_list(tangents, [num_consts, num_carry])
        outs = _linear_scan(
            lambda args, p: partial.bind_linear(scan_p, *args, **p),
            linear,
            list(residuals),
            scanned,
            [ad.instantiate_zeros(t) for t in select_where(consts_dot, consts_nz)],
            [ad.instantiate_zeros(t) for t in select_where(init_dot, carry_nz)],
            [ad.instantiate_zeros(t) for t in select_where(xs_dot, xs_nz)],
            params,
        )
        given = iter(outs)
        return [
            next(given) if nz else ad.Zero.from_primal_value(p)
            for p, nz in zip(results, nonzero_out, strict=True)
        ]

    return results, nonzero_out, residuals, linear_map


rules.linearizations[scan_p] = _scan_linearize


# -- partial evaluation ---------------------------------------------------------------------------


def _split_body(
    jaxpr: ClosedJaxpr, unknown: Sequence[bool], num_consts: int, num_carry: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[bool]]:
    """The known and the unknown part of a step, which inputs are unknown in the end, and which results."""
    consts_uk, carry_uk, xs_uk = split_list(list(unknown), [num_consts, num_carry])
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        unknown = consts_uk + carry_uk + xs_uk
        known, rest, unknown_out, _ = partial.partial_eval_jaxpr(jaxpr, unknown, carry_uk + [False] * num_ys)
        joined = either(carry_uk, unknown_out[:num_carry])
        if joined == carry_uk:
            return known, rest, unknown, unknown_out
        carry_uk = joined


def _scan_partial_eval(
    trace: Any, *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **params: Any
) -> list[Any]:
    unknown = [trace.is_unknown(x) for x in args]
    known, rest, unknown, unknown_out = _split_body(jaxpr, unknown, num_consts, num_carry)
    if not known.eqns and all(unknown_out):  # nothing to do beforehand: the residuals are operands
        all_params = dict(jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, **params)
        return trace.record(scan_p, args, all_params)
    results, unknown_results = _run_split(
        trace.run_known, trace.record, known, rest, unknown, unknown_out, args, num_consts, num_carry, params
    )
    return merge(unknown_out, results, unknown_results)


def _run_split(
    run_known: Callable,
    record: Callable,
    known: ClosedJaxpr,
    rest: ClosedJaxpr,
    unknown: list[bool],
    unknown_out: list[bool],
    args: Sequence[Any],
    num_consts: int,
    num_carry: int,
    params: dict[str, Any],
) -> tuple[list[Any], list[Any]]:
    parts = split_list(list(args), [num_consts, num_carry])
    flags = split_list(unknown, [num_consts, num_carry])
    known_args = [select_where(p, f, False) for p, f in zip(parts, flags, strict=True)]
    consts, carry, xs = (select_where(p, f) for p, f in zip(parts, flags, strict=True))
    num_results = len(unknown_out) - sum(unknown_out)
    plan = _plan_forward(known, len(known_args[0]), len(known_args[1]), num_results)
    results, residuals, scanned = run_known(_run_forward, plan, *known_args, num_results, params)
    outs = _linear_scan(
        lambda a, p: record(scan_p, a, p), rest, residuals, scanned, consts, carry, xs, params
    )
    return results, outs


rules.partial_evals[scan_p] = _scan_partial_eval


# -- transposition --------------------------------------------------------------------------------


def _scan_transpose(
    cts: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    **params: Any,
) -> list[Any]:
    step, used_in, used_out = needed_step(
        jaxpr.jaxpr, [type(ct) is not ad.Zero for ct in cts], num_consts, num_carry
    )
    if not (all(used_in) and all(used_out)):
        # Where no cotangent can come from stays a symbolic zero: a product with it might be NaN.
        found = iter(_scan_transpose(
            select_where(cts, used_out), *select_where(args, used_in), jaxpr=ClosedJaxpr(step, jaxpr.consts),
            num_consts=sum(used_in[:num_consts]), num_carry=sum(used_out[:num_carry]), reverse=reverse, **params,
        ))  # fmt: skip
        return [
            next(found) if used else ad.Zero(x.aval.to_cotangent_aval()) if is_linear(x) else None
            for x, used in zip(args, used_in, strict=True)
        ]
    linear = [is_linear(x) for x in args]
    carry_linear = _linear_carries(jaxpr, linear, num_consts, num_carry)
    if not all(carry_linear):
        return _transpose_mixed(
            cts, args, linear, carry_linear, jaxpr, num_consts, num_carry, dict(params, reverse=reverse)
        )
    is_ref = [isinstance(a, AbstractRef) for a in jaxpr.in_avals]
    consts_lin, _, xs_lin = split_list(linear, [num_consts, num_carry])
    consts, _, xs = split_list(args, [num_consts, num_carry])
    ct_carry, ct_ys = split_list(cts, [num_carry])
    ys_nz = [type(ct) is not ad.Zero for ct in ct_ys]
    strong = tuple(type(ct) is not ad.Zero and not getattr(get_aval(ct), "weak_type", False) for ct in ct_carry)
    body, xs_nz, used = _transposed_body(jaxpr, tuple(consts_lin), tuple(xs_lin), tuple(ys_nz), tuple(is_ref), strong)
    fixed = [cotangent_reference(c) if r and l else c
             for c, l, r in zip(consts, consts_lin, is_ref) if r or not l]  # fmt: skip
    summed = [l and not r for l, r in zip(consts_lin, is_ref)]
    ct_consts = [
        ad.zeros_like_aval(c.aval.to_cotangent_aval()) for c in select_where(consts, summed)
    ]
    scanned = [*select_where(ct_ys, ys_nz), *select_where(xs, xs_lin, False)]
    outs = bind_scan(
        body,
        select_where(fixed, used[: len(fixed)]),
        [*ct_consts, *map(ad.instantiate_zeros, ct_carry)],
        select_where(scanned, used[len(used) - len(scanned) :]),
        reverse=not reverse,
        **params,
    )
    consts_bar, init_bar, xs_bar = split_list(outs, [len(ct_consts), num_carry])
    given = iter(xs_bar)
    all_xs_bar = [
        None if not lin else next(given) if xs_nz[i] else ad.Zero(xs[i].aval.to_cotangent_aval())
        for i, lin in enumerate(xs_lin)
    ]
    init_lin = linear[num_consts : num_consts + num_carry]
    return [
        *merge(summed, [None] * (num_consts - len(ct_consts)), consts_bar),
        *(ct if lin else None for ct, lin in zip(init_bar, init_lin, strict=True)),
        *all_xs_bar,
    ]


def _linear_carries(jaxpr: ClosedJaxpr, linear: list[bool], num_consts: int, num_carry: int) -> list[bool]:
    """Which carries the linear inputs reach in some step."""
    body = jaxpr.jaxpr
    carry = linear[num_consts : num_consts + num_carry]
    while True:
        flags = linear[:num_consts] + carry + linear[num_consts + num_carry :]
        reached = set(select_where(body.invars, flags))
        before = -1
        while len(reached) > before:  # a reference that is reached late was so when it was read
            before = len(reached)
            for eqn in body.eqns:
                if any(type(v) is not Literal and v in reached for v in eqn.invars):
                    reached.update(eqn.outvars)
                    reached.update(v for v in eqn.invars if isinstance(v.aval, AbstractRef))
        joined = either(carry, [type(v) is not Literal and v in reached for v in body.outvars[:num_carry]])
        if joined == carry:
            return carry
        carry = joined


def _transpose_mixed(
    cts: Sequence[Any],
    args: Sequence[Any],
    linear: list[bool],
    carry_linear: list[bool],
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    params: dict[str, Any],
) -> list[Any]:
    """Runs the part of the loop that is not linear (a counter, say) forward, then transposes the rest."""
    flags = linear[:num_consts] + carry_linear + linear[num_consts + num_carry :]
    known, rest, unknown, unknown_out = _split_body(jaxpr, flags, num_consts, num_carry)
    linear_args: list[Any] = []
    linear_params: dict[str, Any] = {}

    def keep(primitive: Any, operands: list[Any], kept: dict[str, Any]) -> list[Any]:
        linear_args.extend(operands)
        linear_params.update(kept)
        return []

    _run_split(
        lambda fun, *xs: fun(*xs),
        keep,
        known,
        rest,
        unknown,
        unknown_out,
        args,
        num_consts,
        num_carry,
        params,
    )
    found = _scan_transpose(select_where(cts, unknown_out), *linear_args, **linear_params)
    # the operands of the rest are its residuals and, in order, the inputs that are unknown
    bars = iter(b for x, b in zip(linear_args, found, strict=True) if is_linear(x))
    return [next(bars) if lin else None for lin in linear]


def _transposed_body(
    jaxpr: ClosedJaxpr,
    consts_lin: tuple[bool, ...],
    xs_lin: tuple[bool, ...],
    ys_nz: tuple[bool, ...],
    is_ref: tuple[bool, ...],
    strong: tuple[bool, ...],
) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """The step of the transposed loop, and which cotangents of scanned inputs it gives.

    It takes constants and references; carries the sums of the constants' cotangents and the
    cotangent of the carry, whose type is not weak where `strong` says so; scans over cotangents of
    the `y` and over what the step scanned over. Last comes which of these inputs it really has:
    residuals of results that nobody asks the cotangents of are not read.
    """
    key = ("scan transpose", consts_lin, xs_lin, ys_nz, strong)
    cache = jaxpr.jaxpr.cache
    if key not in cache:
        cache[key] = _transpose_body(jaxpr, consts_lin, xs_lin, ys_nz, is_ref, strong)
    return cache[key]


def _strong(x: Any) -> Any:
    return lax.convert_element_type(x, x.dtype) if getattr(get_aval(x), "weak_type", False) else x


def _transpose_body(
    jaxpr: ClosedJaxpr,
    consts_lin: tuple[bool, ...],
    xs_lin: tuple[bool, ...],
    ys_nz: tuple[bool, ...],
    is_ref: tuple[bool, ...],
    strong: tuple[bool, ...],
) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    num_consts, num_carry = len(consts_lin), len(strong)
    const_avals, carry_avals, x_avals = split_list(jaxpr.in_avals, [num_consts, num_carry])
    carry_out, y_avals = split_list(jaxpr.out_avals, [num_carry])
    summed = [lin and not ref for lin, ref in zip(consts_lin, is_ref)]

    def cotangent_type(aval: Any) -> Any:
        return aval.to_cotangent_aval()

    in_avals = [
        *(a.to_cotangent_aval() if lin else a
          for a, lin, s in zip(const_avals, consts_lin, summed, strict=True) if not s),
        *(cotangent_type(a) for a in select_where(const_avals, summed)),
        *(a.strip_weak_type() if s else a for a, s in zip(map(cotangent_type, carry_out), strong)),
        *(cotangent_type(a) for a in select_where(y_avals, ys_nz)),
        *select_where(x_avals, xs_lin, False),
    ]  # fmt: skip
    sizes = [num_consts - sum(summed), sum(summed), num_carry, sum(ys_nz)]
    xs_nz: list[bool] = []

    def step(*args: Any) -> list[Any]:
        fixed, ct_consts, ct_carry, ct_ys, xs = split_list(args, sizes)
        fixed_values, x_values, y_cts = iter(fixed), iter(xs), iter(ct_ys)

        def constant(aval: Any, lin: bool, ref: bool) -> Any:
            if not lin:
                return next(fixed_values)
            return ad.CotangentRef(next(fixed_values)) if ref else ad.UndefinedPrimal(aval)

        primals = [
            *map(constant, const_avals, consts_lin, is_ref[:num_consts]),
            *map(ad.UndefinedPrimal, carry_avals),
            *(ad.UndefinedPrimal(a) if lin else next(x_values) for a, lin in zip(x_avals, xs_lin)),
        ]
        cts = [
            *ct_carry,
            *(
                next(y_cts) if nz else ad.Zero(cotangent_type(a))
                for a, nz in zip(y_avals, ys_nz, strict=True)
            ),
        ]
        bars = ad.backward_pass(jaxpr.jaxpr, jaxpr.consts, primals, cts)
        consts_bar, carry_bar, xs_bar = split_list(bars, [num_consts, num_carry])
        sums = [
            ad.add_tangents(ct, bar)
            for ct, bar in zip(ct_consts, select_where(consts_bar, summed), strict=True)
        ]
        xs_nz[:] = [lin and type(b) is not ad.Zero for b, lin in zip(xs_bar, xs_lin, strict=True)]
        carried = [_strong(b) if s else b for b, s in zip(map(ad.instantiate_zeros, carry_bar), strong)]
        return [*sums, *carried, *select_where(xs_bar, xs_nz)]

    closed = trace_to_jaxpr(step, in_avals, jaxpr.debug_info)
    first, last = sizes[0], sizes[0] + sizes[1] + sizes[2]
    keep = [first <= i < last for i in range(len(in_avals))]
    body, used = dead_code.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), keep)
    return ClosedJaxpr(body, closed.consts), xs_nz, used


rules.transposes[scan_p] = _scan_transpose
