"""`cond` and `switch`: one of several branches, chosen while the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.programs import check, dead_code, rules
from styrax.core.programs.jaxpr import ClosedJaxpr, call_effects, eval_jaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Control
from styrax.core.settings import config
from styrax.core.tracing.source import hide_frames
from styrax.core.tracing.trace import concrete_or_error, get_aval, is_concrete
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.avals import AbstractRef, ShapedArray
from styrax.core.types.effects import RefEffect, counted_effects, per_device_effects
from styrax.core.types.typing import ArrayLike, Function, PyTree
from styrax.transforms import ad, batching, partial
from styrax.transforms.in_turn import by_device, refuse_collectives
from styrax.transforms.linear import cotangent_reference, is_linear
from styrax.transforms.views import flatten_arguments

from .bodies import (
    as_array,
    check_branches,
    check_effects,
    discharged,
    either,
    forwarded_inputs,
    merge,
    rearranged,
    renumber_effects,
    select_where,
    trace_body,
)
from .branches import join_captured, join_residuals

cond_p = Primitive("cond", multiple_results=True)
cond_p.declare(control=Control.COND)
cond_p.higher_order = True

_no_operand = object()


def switch(index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: PyTree,
           operand: PyTree = _no_operand) -> PyTree:
    """Applies the branch of number `index` to the operands.

    Args:
      operand: the only operand, under its older name.
      index: integer scalar; clamped to the branches that there are.
      branches: sequence of functions of the operands. All are traced, and must return trees of the
        same structure, shapes and dtypes; only the chosen one runs.
      operands: trees of arrays.

    Returns:
      what the chosen branch returns: a tree of arrays of the type that all have.

    Raises:
      TypeError: the index is not an integer scalar, or results of branches differ in type.
      ValueError: there are no branches.

    Example:
      >>> import styrax as jax
      >>> jax.lax.switch(1, [lambda x: x, lambda x: 10 * x], 3)
      Array(30, dtype=int32, weak_type=True)
    """
    try:  # (a boundary in place: conditionals nest deep, and a wrapper is one frame more a level)
        if operand is not _no_operand:
            if operands:
                raise TypeError("if 'operand' keyword is passed then no positional operands can be passed")
            operands = (operand,)
        branches = tuple(branches) if isinstance(branches, (list, tuple)) else branches
        if not isinstance(branches, tuple) or not all(map(callable, branches)):
            raise TypeError("lax.switch: branches argument should be a sequence of callables.")
        aval = _scalar_aval(index, "Branch index must be scalar", "Index type must be an integer")
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(f"Index type must be an integer, got {index} as {aval.dtype.name}")
        if not branches:
            raise ValueError("Empty branch sequence")
        if len(branches) == 1:
            return branches[0](*operands)
        last = np.int32(len(branches) - 1)
        index = lax.clamp(np.int32(0), lax.convert_element_type(index, np.int32), last)
        if config.config.jax_disable_jit and is_concrete(index):
            return branches[int(concrete_or_error(None, index))](*operands)
        names = [f"branch {i}" if i == 0 else f"branch{i}" for i in range(len(branches))]
        return bind_branches("switch", index, branches, names, operands)
    except Exception as error:
        hide_frames(error)
        raise


def cond(pred: ArrayLike, true_fun: Function, false_fun: Function, *operands: PyTree,
         operand: PyTree = _no_operand) -> PyTree:
    """Applies `true_fun` to the operands if `pred` holds, `false_fun` otherwise.

    Both functions are traced, only one of them runs. Under `vmap` with a batched predicate both run
    and results are selected.

    Args:
      operand: the only operand, under its older name.
      pred: boolean or number, a scalar; numbers count as true where they are not zero.
      true_fun, false_fun: functions of the operands that return trees of the same structure, shapes
        and dtypes.
      operands: trees of arrays. The older form `cond(pred, x, true_fun, y, false_fun)` is accepted.

    Returns:
      what the chosen function returns: a tree of arrays of the type that both have.

    Raises:
      TypeError: `pred` is not a scalar number, or the results of the functions differ in type.

    Example:
      >>> import styrax as jax
      >>> jax.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3)
      Array(4, dtype=int32, weak_type=True)
    """
    try:  # (a boundary in place: conditionals nest deep, and a wrapper is one frame more a level)
        if not (callable(true_fun) and callable(false_fun)):
            if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(operands[0]):
                # cond(pred, true_operand, true_fun, false_operand, false_fun)
                true_operand, true_fun, (false_operand, false_fun) = true_fun, false_fun, operands
                return cond(
                    pred, lambda xs: true_fun(xs[0]), lambda xs: false_fun(xs[1]), (true_operand, false_operand)
                )
            raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
        if operand is not _no_operand:
            if operands:
                raise TypeError("if 'operand' keyword is passed then no positional operands can be passed")
            operands = (operand,)
        if pred is None:
            raise TypeError("cond predicate is None")
        if isinstance(pred, Sequence):
            raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}")
        aval = _scalar_aval(pred, "Pred must be a scalar", "Pred type must be either boolean or number")
        if not (aval.dtype == np.bool_ or dtypes.issubdtype(aval.dtype, np.number)) or dtypes.issubdtype(
            aval.dtype, np.complexfloating
        ):
            raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
        if config.config.jax_disable_jit and is_concrete(pred):
            return (true_fun if bool(concrete_or_error(None, pred)) else false_fun)(*operands)
        if aval.dtype != np.bool_:
            pred = lax.ne(pred, np.zeros((), aval.dtype)[()])
        index = lax.convert_element_type(pred, np.int32)
        return bind_branches("cond", index, (true_fun, false_fun), ("true_fun", "false_fun"), operands)
    except Exception as error:
        hide_frames(error)
        raise


def _scalar_aval(x: Any, what: str, kind: str) -> Any:
    """The type of a scalar. TypeError, which says `what` or which `kind` is wanted, for other things."""
    try:
        aval = get_aval(x)
    except TypeError:
        shape = np.shape(x) if isinstance(x, (list, tuple)) else ()
        raise TypeError(f"{what}, got {x} of shape {shape}." if shape else f"{kind}, got {x}.") from None
    if not isinstance(aval, ShapedArray) or aval.shape:
        raise TypeError(f"{what}, got {x} of shape {aval.shape}.")
    return aval


def bind_branches(
    construct: str, index: Any, funs: Sequence[Callable], names: Sequence[str], operands: tuple
) -> Any:
    leaves, in_tree = flatten_arguments(operands)
    avals = [get_aval(x) for x in leaves]
    bodies = list(map(trace_body, repeat(construct), funs, repeat(in_tree), repeat(avals), repeat(leaves)))
    first = bodies[0]
    for fun, name, body in zip(funs[1:], names[1:], bodies[1:], strict=True):
        check_branches(
            construct,
            (names[0], name),
            (funs[0], fun),
            (first.out_tree, body.out_tree),
            (first.out_avals, body.out_avals),
        )
    branches, captured = join_captured(bodies)
    if construct == "cond":  # the branch of false is the one of number 0
        branches = branches[::-1]
    outs = bind_cond(index, branches, [*captured, *leaves])
    return tree.tree_unflatten(bodies[0].out_tree, outs)


def bind_cond(index: Any, branches: Sequence[ClosedJaxpr], operands: Sequence[Any]) -> list[Any]:
    """Binds `cond` after taking out the results that are the same operand in every branch."""
    branches = tuple(branches)
    first = branches[0].jaxpr
    key = ("cond forwarding", branches)
    found = first.cache.get(key)
    if found is None:
        sources = zip(*(forwarded_inputs(b.jaxpr) for b in branches), strict=True)
        passed = [s[0] if s[0] is not None and all(i == s[0] for i in s) else None for s in sources]
        short = branches
        if any(p is not None for p in passed):
            short = tuple(
                rearranged(
                    b,
                    b.jaxpr.invars,
                    [v for v, p in zip(b.jaxpr.outvars, passed, strict=True) if p is None],
                )
                for b in branches
            )
        found = first.cache[key] = short, passed
    short, passed = found
    outs = iter(cond_p.bind(index, *operands, branches=short))
    return [next(outs) if p is None else as_array(operands[p]) for p in passed]


@cond_p.def_effectful_abstract_eval
def _cond_abstract_eval(index: Any, *avals: Any, branches: tuple[ClosedJaxpr, ...]) -> tuple[list[Any], Any]:
    joined: set[Any] = set()
    for b in branches:
        joined |= renumber_effects(call_effects(b), (1).__add__)
    check_effects("cond", joined)
    for n, b in enumerate(branches):
        if len(avals) != len(b.in_avals):
            raise TypeError(f"cond branch {n} takes {len(b.in_avals)} operands, got {len(avals)}")
        for have, want in zip(avals, b.in_avals, strict=True):
            if not isinstance(want, AbstractRef) and not check.same_type(have, want):
                raise TypeError(f"cond branch {n} takes {want.str_short()}, got {have.str_short()}")
    return branches[0].out_avals, frozenset(joined)


# -- derivatives ----------------------------------------------------------------------------------
def _cond_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Any) -> Any:
    index, *operands = primals
    operand_dots = tangents[1:]
    nonzero = [type(t) is not ad.Zero for t in operand_dots]
    nonzero_out = [False] * len(branches[0].out_avals)
    for b in branches:
        _, found = ad.jvp_jaxpr(b, nonzero, False)
        nonzero_out = either(nonzero_out, found)
    new = tuple(ad.jvp_jaxpr(b, nonzero, nonzero_out)[0] for b in branches)
    dots = [ad.instantiate_zeros(t) for t in select_where(operand_dots, nonzero)]
    outs = cond_p.bind(index, *operands, *dots, branches=new)
    primals_out, given = outs[: len(nonzero_out)], iter(outs[len(nonzero_out) :])
    return primals_out, [
        next(given) if nz else ad.Zero.from_primal_value(p)
        for p, nz in zip(primals_out, nonzero_out, strict=True)
    ]


rules.jvps[cond_p] = _cond_jvp


def _cond_linearize(nonzero: Sequence[bool], index: Any, *operands: Any, branches: Any) -> Any:
    nonzero = list(nonzero[1:])
    nonzero_out = [False] * len(branches[0].out_avals)
    for b in branches:
        found = ad.linearize_jaxpr(b, nonzero, False)[1]
        nonzero_out = either(nonzero_out, found)
    num_results = len(nonzero_out)
    key = ("cond linearize", branches, tuple(nonzero))
    cache = branches[0].jaxpr.cache
    if key not in cache:
        parts = []
        for b in branches:
            primal, _, linear, _ = ad.linearize_jaxpr(b, nonzero, nonzero_out)
            parts.append((dead_code.without_dead_code(primal), linear))
        cache[key] = join_residuals(parts, num_results)
    firsts, seconds, passed = cache[key]
    outs = bind_cond(index, firsts, operands)
    results, kept = outs[:num_results], iter(outs[num_results:])
    residuals = [next(kept) if p is None else operands[p] for p in passed]

    def linear_map(residuals: Any, index_dot: Any, *tangents: Any) -> list[Any]:
        index, *residuals = residuals
        dots = [ad.instantiate_zeros(t) for t in select_where(tangents, nonzero)]
        given = iter(partial.bind_linear(cond_p, index, *residuals, *dots, branches=seconds))
        return [
            next(given) if nz else ad.Zero.from_primal_value(p)
            for p, nz in zip(results, nonzero_out, strict=True)
        ]

    return results, nonzero_out, [index, *residuals], linear_map


rules.linearizations[cond_p] = _cond_linearize


def _cond_partial_eval(trace: Any, index: Any, *operands: Any, branches: Any) -> list[Any]:
    unknown = [trace.is_unknown(x) for x in operands]
    if trace.is_unknown(index):
        return trace.record(cond_p, [index, *operands], dict(branches=branches))
    unknown_out = [False] * len(branches[0].out_avals)
    for b in branches:
        found = partial.partial_eval_jaxpr(b, unknown, False)[2]
        unknown_out = either(unknown_out, found)
    parts = []
    for b in branches:
        known, rest, _, _ = partial.partial_eval_jaxpr(b, unknown, unknown_out)
        parts.append((known, rest))
    if all(unknown_out) and not any(known.eqns for known, _ in parts):
        return trace.record(cond_p, [index, *operands], dict(branches=branches))
    num_results = len(unknown_out) - sum(unknown_out)
    firsts, seconds, passed = join_residuals(parts, num_results)
    known_operands = select_where(operands, unknown, False)
    outs = trace.run_known(bind_cond, index, firsts, known_operands)
    results, kept = outs[:num_results], iter(outs[num_results:])
    residuals = [next(kept) if p is None else known_operands[p] for p in passed]
    rest = trace.record(cond_p, [index, *residuals, *select_where(operands, unknown)], dict(branches=seconds))
    return merge(unknown_out, results, rest)


rules.partial_evals[cond_p] = _cond_partial_eval


def _cond_transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Any) -> list[Any]:
    linear = [is_linear(x) for x in operands]
    zero_out = [type(ct) is ad.Zero for ct in cts]
    nonzero_in = [False] * sum(
        lin and not isinstance(a, AbstractRef) for a, lin in zip(branches[0].in_avals, linear, strict=True)
    )
    for b in branches:
        found = ad.transpose_jaxpr(b, linear, zero_out)[1]
        nonzero_in = either(nonzero_in, found)
    new = tuple(_transposed_branch(b, tuple(linear), tuple(zero_out), tuple(nonzero_in)) for b in branches)
    outs = iter(
        bind_cond(
            index,
            new,
            [
                *select_where(operands, linear, False),
                *(cotangent_reference(x) for x in operands if isinstance(x, ad.CotangentRef)),
                *select_where(cts, zero_out, False),
            ],
        )
    )
    flags = iter(nonzero_in)
    bars: list[Any] = [None]
    for x in operands:
        if not ad.is_undefined_primal(x):
            bars.append(None)
        else:
            bars.append(next(outs) if next(flags) else ad.Zero(x.aval.to_cotangent_aval()))
    return bars


def _transposed_branch(
    branch: ClosedJaxpr, linear: tuple[bool, ...], zero_out: tuple[bool, ...], wanted: tuple[bool, ...]
) -> ClosedJaxpr:
    """The transposed branch with the cotangents of all inputs that `wanted` marks."""
    transposed, nonzero_in = ad.transpose_jaxpr(branch, linear, zero_out)
    if tuple(nonzero_in) == wanted:
        return transposed
    avals = [a.to_cotangent_aval()
             for a, lin in zip(branch.in_avals, linear, strict=True)
             if lin and not isinstance(a, AbstractRef)]  # fmt: skip
    cache = transposed.jaxpr.cache
    key = ("wanted", wanted)
    if key not in cache:
        from styrax.core.tracing.staging import trace_to_jaxpr

        def run(*args: Any) -> list[Any]:
            given = iter(eval_jaxpr(transposed.jaxpr, transposed.consts, *args))
            return [
                next(given) if have else ad.zeros_like_aval(aval)
                for aval, have, want in zip(avals, nonzero_in, wanted, strict=True)
                if want
            ]

        cache[key] = trace_to_jaxpr(run, transposed.in_avals, branch.debug_info)
    return cache[key]


rules.transposes[cond_p] = _cond_transpose


# -- batching -------------------------------------------------------------------------------------
def _cond_batch(axis_data: Any, args: Sequence[Any], dims: Sequence[Any], *, branches: Any) -> Any:
    index, *operands = args
    index_dim, *operand_dims = dims
    if index_dim is not None:
        return _cond_batch_index(axis_data, index, index_dim, operands, operand_dims, branches)
    batched = [d is not None for d in operand_dims]
    operands = [
        batching.moveaxis(x, d, 0) if d is not None else x
        for x, d in zip(operands, operand_dims, strict=True)
    ]
    batched_out = [False] * len(branches[0].out_avals)
    for b in branches:
        found = batching.batch_jaxpr(b, axis_data, batched, False)[1]
        batched_out = either(batched_out, found)
    new = tuple(batching.batch_jaxpr(b, axis_data, batched, batched_out)[0] for b in branches)
    return cond_p.bind(index, *operands, branches=new), [0 if b else None for b in batched_out]


def _cond_batch_index(
    axis_data: Any, index: Any, index_dim: int, operands: list[Any], dims: list[Any], branches: Any
) -> Any:
    """With a batched index every branch runs, on harmless operands where it is not chosen."""
    found = {e for b in branches for e in b.effects}
    if axis_data.devices and per_device_effects.filter_in(found):
        refuse_collectives("cond", axis_data, found)
        return by_device(axis_data, lambda index, *operands: cond_p.bind(index, *operands, branches=branches),
                         [index, *operands], [index_dim, *dims])
    if any(isinstance(e, RefEffect) for e in found):
        raise NotImplementedError(
            "State effect not supported in vmap-of-cond: a reference is written or read in a branch that is "
            "chosen by a batched predicate."
        )
    if counted_effects.filter_in(found):
        raise NotImplementedError("IO effect not supported in vmap-of-cond.")
    index = batching.moveaxis(index, index_dim, 0)
    operands = [batching.bdim_at_front(x, d, axis_data.size, axis_data.explicit_mesh_axis)
                for x, d in zip(operands, dims, strict=True)]
    results = []
    for n, b in enumerate(branches):
        chosen = lax.eq(index, np.int32(n))
        # where the branch is not chosen its operands carry no tangents: a NaN there stays there
        guarded = [_select(chosen, [lax.stop_gradient(x), x]) for x in operands]
        body = batching.batch_jaxpr(b, axis_data, [True] * len(operands), True)[0]
        results.append(eval_jaxpr(body.jaxpr, body.consts, *guarded))
    outs = [_select(index, list(choices)) for choices in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def _select(which: Any, choices: list[Any]) -> Any:
    """`select_n` over the leading axis, passing on what has no elements to select (tokens)."""
    aval = get_aval(choices[0])
    if not isinstance(aval, ShapedArray):
        return choices[0]
    if aval.ndim > 1:
        which = lax.broadcast_in_dim(which, aval.shape, (0,))
    return lax.select_n(which, *choices)


rules.fancy_batchers[cond_p] = _cond_batch


# -- dead code, references, lowering --------------------------------------------------------------
def _cond_dce(used_outs: Sequence[bool], eqn: Any) -> tuple[list[bool], Any]:
    if not any(used_outs) and not dead_code.has_effects(eqn):
        return [False] * len(eqn.invars), None
    branches = eqn.params["branches"]
    used_in = [False] * (len(eqn.invars) - 1)
    for b in branches:
        found = dead_code.dce_jaxpr(b.jaxpr, used_outs, False)[1]
        used_in = either(used_in, found)
    pruned = [dead_code.dce_jaxpr(b.jaxpr, used_outs, used_in)[0] for b in branches]
    if (
        all(used_in)
        and all(used_outs)
        and all(len(p.eqns) == len(b.eqns) for p, b in zip(pruned, branches, strict=True))
    ):
        return [True, *used_in], eqn
    new = tuple(ClosedJaxpr(p, b.consts) for p, b in zip(pruned, branches, strict=True))
    keep = [True, *used_in]
    return keep, eqn.replace(
        invars=select_where(eqn.invars, keep),
        outvars=select_where(eqn.outvars, used_outs),
        params=dict(branches=new),
        effects=_cond_abstract_eval(*[v.aval for v in select_where(eqn.invars, keep)], branches=new)[1],
    )


rules.dces[cond_p] = _cond_dce


def _cond_discharge(in_avals: Sequence[Any], out_avals: Sequence[Any], *args: Any, branches: Any) -> Any:
    """References among the operands give their contents back as further results."""
    is_ref = [isinstance(a, AbstractRef) for a in in_avals]
    num_results = len(branches[0].out_avals)
    new = tuple(discharged(b) for b in branches)
    outs = bind_cond(args[0], new, args[1:])
    return merge(is_ref, [None] * (len(args) - sum(is_ref)), outs[num_results:]), outs[:num_results]


rules.discharges[cond_p] = _cond_discharge


def _cond_hlo(m: Any, index: Any, *operands: Any, branches: Any) -> Any:
    tokens = m.order(*branches)

    def region(i: int, b: ClosedJaxpr) -> str:
        def body(m2: Any) -> list[Any]:
            m2.token = m.token
            outs = m2.inline(b, *operands)
            return [*m2.order(*branches), *outs]

        return m.region([], body, f"branch_{i}_fun")

    avals = [*(t.aval for t in tokens), *m.avals_out]
    regions = [region(i, b) for i, b in enumerate(branches)]
    return m.proceed(tokens, m.op("stablehlo.case", [index], avals, regions=regions))


rules.stablehlos[cond_p] = _cond_hlo


__all__ = ["cond", "cond_p", "switch"]
