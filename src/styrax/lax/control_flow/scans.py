"""`scan`: a loop of known length over leading axes, and `map`, its carry-less form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, call_effects, eval_jaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Control
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error, get_aval
from styrax.core.trees import tree
from styrax.core.types import avals
from styrax.core.types.avals import AbstractRef, AbstractToken, stacked, unstacked
from styrax.core.types.dims import plain_size
from styrax.core.types.typing import PyTree
from styrax.transforms import ad
from styrax.transforms.high_types import count, lowered_programs

from .bodies import (
    Body,
    as_array,
    check_carry,
    check_effects,
    first_argument,
    forwarded_inputs,
    promote_inputs,
    rearranged,
    select_where,
    split_list,
    trace_body,
)

scan_p = Primitive("scan", multiple_results=True)
scan_p.declare(control=Control.SCAN)
scan_p.higher_order = True


@api_boundary
def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: PyTree, xs: PyTree = None, length: int | None = None,
         reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False) -> tuple[PyTree, PyTree]:
    """Runs `carry, y = f(carry, x)` over the leading axis of `xs` and stacks the `y`.

    `f` is traced once; the loop is part of the compiled program and can be differentiated in both
    modes.

    Args:
      f: function of the carry and of one slice of `xs` that returns the new carry, of the same tree,
        shapes and dtypes, and a tree of arrays.
      init: the first carry, a tree of arrays.
      xs: tree of arrays to scan over, all with leading axes of one size, or None.
      length: number of steps; needed where `xs` has no arrays, otherwise it must agree with them.
      reverse: scan from the last slice to the first; the `y` stay where their `x` are.
      unroll: how many steps to put in one iteration of the loop; True for all.

    Returns:
      the last carry, and the tree of `y` with a leading axis of the number of steps.

    Raises:
      TypeError: `f` does not return a pair, or its carry differs in tree, shape or dtype.
      ValueError: leading axes or `length` disagree, or neither is given.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.scan(lambda total, x: (total + x, total), 0, jnp.arange(4))
      (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    del _split_transpose  # how JAX lays out the transposed loop; ours hoists what does not change
    xs_flat, xs_tree = tree.tree_flatten(xs)
    init_flat, init_tree = tree.tree_flatten(init)
    x_avals = [get_aval(x) for x in xs_flat]
    steps = _scan_length(xs_flat, x_avals, length)
    unroll = _unroll_factor(unroll, steps)
    if config.config.jax_disable_jit:
        return _scan_in_python(f, init, xs_flat, xs_tree, steps, reverse)
    if avals.explicit:
        _check_unsharded(x_avals)
    x_avals = [_without_axis(a, steps) for a in x_avals]
    in_tree = tree.tree_structure((init, xs))

    def trace_it() -> tuple[Body, Any, list[Any], list[Any]]:
        carry_avals = [get_aval(x) for x in init_flat]
        body = trace_body("scan", f, in_tree, [*carry_avals, *x_avals], [*init_flat, *xs_flat])
        if (
            body.out_tree.num_nodes == 1
            or len(body.out_tree.children()) != 2
            or (body.out_tree.node_data()[0] is not tuple)
        ):
            shown = tree.tree_unflatten(body.out_tree, body.out_avals)
            raise TypeError(f"scan body output must be a pair, got {shown}.")
        carry_tree = body.out_tree.children()[0]
        return body, carry_tree, carry_avals, body.out_avals[: carry_tree.num_leaves]

    body, carry_tree, carry_avals, out_avals = trace_it()
    for _ in range(2):
        init_flat, changed = promote_inputs(f, init_flat, carry_avals, out_avals)
        if not changed:
            break
        body, carry_tree, carry_avals, out_avals = trace_it()
    check_carry("scan body", first_argument(f), init_tree, carry_avals, carry_tree, out_avals)
    outs = bind_scan(
        body.jaxpr, body.captured, init_flat, xs_flat, length=steps, reverse=bool(reverse), unroll=unroll
    )
    return tree.tree_unflatten(body.out_tree, outs)


def _check_unsharded(x_avals: Sequence[Any]) -> None:
    """Raises ValueError where slices of what is scanned over lie on different devices."""
    for a in x_avals:
        told = getattr(a, "given_sharding", None)
        if told is not None and told.spec[0] is not None:
            raise ValueError(f"0th dimension of all xs should be replicated. Got {told.spec}")


def _scan_length(xs: Sequence[Any], avals: Sequence[Any], length: Any) -> int:
    sizes = []
    for x, aval in zip(xs, avals, strict=True):
        if aval.is_high:
            continue
        if not aval.shape:
            raise ValueError(f"scan got value with no leading axis to scan over: {x}.")
        sizes.append(aval.shape[0])
    if length is not None:
        length = concrete_or_error(
            plain_size,
            length,
            "The `length` argument to `scan` expects a concrete `int` value. For scan-like iteration with a "
            "dynamic length, use `while_loop` or `fori_loop`.",
        )
        if any(n != length for n in sizes):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}."
            )
        if length < 0:
            raise ValueError(f"scan got a negative `length` argument: {length}.")
        return length
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if any(n != sizes[0] for n in sizes):
        listed = ", ".join(str(a.shape[0]) for a in avals)
        raise ValueError(f"scan got values with different leading axis sizes: {listed}.")
    return sizes[0]


def _unroll_factor(unroll: Any, length: Any) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = concrete_or_error(
        operator.index, unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value."
    )
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    return max(unroll, 1)


def _scan_in_python(
    f: Callable, carry: Any, xs: Sequence[Any], xs_tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """The loop as the Python loop that it stands for, under `disable_jit`."""
    if length == 0:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is unknown."
        )
    steps = range(length)
    ys = []
    for i in reversed(steps) if reverse else steps:
        slices = [lax.index_in_dim(x, i, keepdims=False) for x in xs]
        carry, y = f(carry, tree.tree_unflatten(xs_tree, slices))
        ys.append(y)
    if reverse:
        ys.reverse()
    stacked = tree.tree_map(
        lambda *leaves: lax.concatenate([lax.expand_dims(y, (0,)) for y in leaves], 0), *ys
    )
    return carry, stacked


def bind_scan(
    jaxpr: ClosedJaxpr, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any], **params: Any
) -> list[Any]:
    """Binds a scan after taking out of the loop what only passes through it.

    A carry that a step gives back unchanged becomes a constant, and a `y` that is an `x` is the
    scanned array itself.
    """
    num_consts, num_carry = len(consts), len(init)
    short, still, passed = _without_forwarding(jaxpr, num_consts, num_carry)
    outs = iter(
        scan_p.bind(
            *select_where(init, still),
            *consts,
            *select_where(init, still, False),
            *xs,
            jaxpr=short,
            num_consts=num_consts + sum(still),
            num_carry=num_carry - sum(still),
            **params,
        )
    )
    carry_out = [x if s else next(outs) for x, s in zip(init, still, strict=True)]
    return carry_out + [next(outs) if p is None else as_array(xs[p]) for p in passed]


def _without_forwarding(
    jaxpr: ClosedJaxpr, num_consts: int, num_carry: int
) -> tuple[ClosedJaxpr, list[bool], list[int | None]]:
    cache = jaxpr.jaxpr.cache
    key = ("scan forwarding", num_consts, num_carry)
    found = cache.get(key)
    if found is None:
        found = cache[key] = _drop_forwarding(jaxpr, num_consts, num_carry)
    return found


def _drop_forwarding(
    jaxpr: ClosedJaxpr, num_consts: int, num_carry: int
) -> tuple[ClosedJaxpr, list[bool], list[int | None]]:
    source = forwarded_inputs(jaxpr.jaxpr)
    still = [source[i] == num_consts + i for i in range(num_carry)]
    first_x = num_consts + num_carry
    passed = [s - first_x if s is not None and s >= first_x else None for s in source[num_carry:]]
    if not any(still) and all(p is None for p in passed):
        return jaxpr, still, passed
    consts, carry, xs = split_list(jaxpr.jaxpr.invars, [num_consts, num_carry])
    carry_out, ys = split_list(jaxpr.jaxpr.outvars, [num_carry])
    short = rearranged(
        jaxpr,
        [*select_where(carry, still), *consts, *select_where(carry, still, False), *xs],
        [*select_where(carry_out, still, False), *(y for y, p in zip(ys, passed, strict=True) if p is None)],
    )
    return short, still, passed


@scan_p.def_effectful_abstract_eval
def _scan_abstract_eval(
    *avals: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> tuple[list[Any], Any]:
    effects = call_effects(jaxpr)
    check_effects("scan", effects)
    _check_operands(avals, jaxpr, num_consts, num_carry, length)
    carry, ys = split_list(jaxpr.out_avals, [num_carry])
    return carry + [_with_axis(a, length) for a in ys], effects


def _without_axis(aval: Any, length: int) -> Any:
    """The type of one slice of what is scanned over."""
    if aval.is_high:
        return aval.dec_rank(length, aval.leading_axis_spec())
    return unstacked(aval)


def _with_axis(aval: Any, length: int) -> Any:
    """The type of `length` slices."""
    if aval.is_high:
        return aval.inc_rank(length, aval.leading_axis_spec())
    return stacked(aval, length)


def _flattened(avals: Sequence[Any], *, num_consts: int, num_carry: int, **params: Any) -> dict[str, Any]:
    """The parameters of a scan over the arrays that its operands consist of."""
    consts, carry, _ = split_list(avals, [num_consts, num_carry])
    return lowered_programs(dict(params, num_consts=count(consts), num_carry=count(carry)))


rules.flattenings[scan_p] = _flattened


def _check_operands(
    avals: Sequence[Any], jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int
) -> None:
    """The operands must be what the body takes, with a leading axis for what is scanned over."""
    expected = jaxpr.in_avals
    if len(avals) != len(expected):
        raise TypeError(f"scan takes {len(expected)} operands for its body, got {len(avals)}")
    first_x = num_consts + num_carry
    for i, (have, want) in enumerate(zip(avals, expected, strict=True)):
        if isinstance(want, AbstractRef | AbstractToken):
            continue
        if want.is_high:
            agrees = have == (_with_axis(want, length) if i >= first_x else want)
        else:
            shape = (length, *want.shape) if i >= first_x else want.shape
            agrees = have.shape == shape and have.dtype == want.dtype
        if not agrees:
            kind = "constant" if i < num_consts else "carry" if i < first_x else "scanned operand"
            raise TypeError(
                f"scan {kind} number {i} has type {have.str_short()}, but the body takes {want.str_short()}"
            )


def scan_as_while(
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """The same loop written with `while_loop` and updates in place of stacking."""
    consts, init, xs = split_list(args, [num_consts, num_carry])
    y_avals = jaxpr.out_avals[num_carry:]
    if length == 0:
        return init + [_blank(a, 0) for a in y_avals]

    def body(state: tuple) -> tuple:
        i, carry, stacks = state
        at = lax.sub(length - 1, i) if reverse else i
        slices = [lax.dynamic_index_in_dim(x, at, keepdims=False) for x in xs]
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *slices)
        carry, ys = split_list(outs, [num_carry])
        stacks = [lax.dynamic_update_index_in_dim(s, y, at, 0) for s, y in zip(stacks, ys, strict=True)]
        return lax.add(i, 1), carry, stacks

    stacks = [_blank(a, length) for a in y_avals]
    _, carry, stacks = lax.while_loop(lambda state: lax.lt(state[0], length), body, (0, init, stacks))
    return carry + stacks


def _blank(aval: Any, length: int) -> Any:
    """What stacked results are written into."""
    return ad.zeros_like_aval(stacked(aval, length))


rules.stablehlos[scan_p] = lambda m, *args, **params: m.call_traced(
    lambda *xs: scan_as_while(*xs, **params), *args
)


# -- map ------------------------------------------------------------------------------------------


@api_boundary
def map(f: Callable[[Any], Any], xs: PyTree, *, batch_size: int | None = None) -> PyTree:
    """Applies `f` to each slice of `xs` along the leading axis, one after the other.

    Like `vmap` in what it computes, like a loop in the memory that it takes.

    Args:
      f: function of one slice.
      xs: tree of arrays with leading axes of one size.
      batch_size: how many slices to compute at once with `vmap`; a rest is computed at the end.

    Returns:
      the tree of results with the leading axis of `xs`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.map(lambda x: x ** 2, jnp.arange(3))
      Array([0, 1, 4], dtype=int32)
    """
    if batch_size is not None:
        return _map_in_batches(f, xs, batch_size)
    _, ys = scan(lambda _, x: ((), f(x)), (), xs)
    return ys


def _map_in_batches(f: Callable[[Any], Any], xs: Any, batch_size: int) -> Any:
    from styrax.transforms import api

    leaves, treedef = tree.tree_flatten(xs)
    if not leaves:
        raise ValueError("map got no values to map over.")
    length = _scan_length(leaves, [get_aval(x) for x in leaves], None)
    batch_size = min(batch_size, length) if batch_size > 0 else length
    batched = api.vmap(f)
    if batch_size == 0:
        return batched(xs)
    batches, rest = divmod(length, batch_size)
    body, tail = [], []
    for x in leaves:
        shape = get_aval(x).shape[1:]
        start = (0,) * (len(shape) + 1)
        head = lax.slice(x, start, (batches * batch_size, *shape)) if rest else x
        body.append(lax.reshape(head, (batches, batch_size, *shape)))
        if rest:
            tail.append(lax.slice(x, (batches * batch_size, *start[1:]), (length, *shape)))
    _, ys = scan(lambda _, x: ((), batched(x)), (), tree.tree_unflatten(treedef, body))
    if not rest:
        return tree.tree_map(lambda y: lax.reshape(y, (length, *y.shape[2:])), ys)
    ys_tail = batched(tree.tree_unflatten(treedef, tail))
    return tree.tree_map(
        lambda y, z: lax.concatenate([lax.reshape(y, (batches * batch_size, *y.shape[2:])), z], 0),
        ys,
        ys_tail,
    )


__all__ = ["map", "scan", "scan_p"]

# The primitive is complete only with its rules, which build on what stands above.
