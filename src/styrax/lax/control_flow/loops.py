"""`while_loop` and `fori_loop`: loops that stop by a condition, or after a number of steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.programs import check, rules
from styrax.core.programs.jaxpr import ClosedJaxpr, call_effects
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Control
from styrax.core.settings import config
from styrax.core.tracing.errors import ConcretizationTypeError
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error, get_aval, is_concrete
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import is_symbolic
from styrax.core.types.typing import ArrayLike, PyTree
from styrax.transforms.high_types import count, lowered_programs

from .bodies import (
    as_array,
    check_carry,
    check_effects,
    first_argument,
    forwarded_inputs,
    promote_inputs,
    rearranged,
    renumber_effects,
    select_where,
    split_list,
    trace_body,
)
from .scans import scan

while_p = Primitive("while", multiple_results=True)
while_p.declare(control=Control.WHILE)
while_p.higher_order = True


@api_boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree) -> PyTree:
    """Applies `body_fun` to a value as long as `cond_fun` of it holds.

    The loop is part of the compiled program. It can be differentiated in forward mode only, because
    its number of steps is not known beforehand; `scan` and `fori_loop` with fixed bounds have both.

    Args:
      cond_fun: function of the carry that returns a boolean scalar.
      body_fun: function of the carry that returns a carry of the same tree, shapes and dtypes.
      init_val: the first carry, a tree of arrays.

    Returns:
      the carry for which `cond_fun` did not hold.

    Raises:
      TypeError: the condition is not a boolean scalar, or the carry changes in tree, shape or dtype.

    Example:
      >>> import styrax as jax
      >>> jax.lax.while_loop(lambda x: x < 100, lambda x: 3 * x, 1)
      Array(243, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.config.jax_disable_jit:
        try:
            value = tree.tree_map(as_array, init_val)
            while _holds(cond_fun(value)):
                value = body_fun(value)
            return value
        except ConcretizationTypeError:  # a condition that is mapped, say: the loop as an equation
            pass
    init, init_tree = tree.tree_flatten(init_val)
    in_tree = tree.tree_structure((init_val,))
    for _ in range(3):
        avals = [get_aval(x) for x in init]
        cond = trace_body("while_cond", cond_fun, in_tree, avals, init)
        body = trace_body("while_body", body_fun, in_tree, avals, init)
        init, changed = promote_inputs(body_fun, init, avals, body.out_avals)
        if not changed:
            break
    if cond.out_tree.num_leaves != 1 or cond.out_tree.num_nodes != 1:
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree}.")
    (pred,) = cond.out_avals
    if not isinstance(pred, ShapedArray) or pred.shape != () or pred.dtype != np.bool_:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {cond.out_avals}.")
    check_carry("while_loop body", first_argument(body_fun), init_tree, avals, body.out_tree, body.out_avals)
    return tree.tree_unflatten(
        init_tree, bind_while(cond.jaxpr, body.jaxpr, cond.captured, body.captured, init)
    )


def _holds(pred: Any) -> bool:
    return bool(
        concrete_or_error(None, pred, "The condition of `while_loop` must be concrete under disable_jit.")
    )


def bind_while(
    cond: ClosedJaxpr,
    body: ClosedJaxpr,
    cond_consts: Sequence[Any],
    body_consts: Sequence[Any],
    init: Sequence[Any],
) -> list[Any]:
    """Binds a loop after making constants of the carries that nothing changes and no condition reads."""
    num_cond, num_body = len(cond_consts), len(body_consts)
    cache = body.jaxpr.cache
    key = ("while forwarding", cond, num_cond, num_body)
    found = cache.get(key)
    if found is None:
        found = cache[key] = _drop_forwarding(cond, body, num_cond, num_body)
    short_cond, short_body, still = found
    outs = iter(
        while_p.bind(
            *cond_consts,
            *select_where(init, still),
            *body_consts,
            *select_where(init, still, False),
            cond_nconsts=num_cond,
            cond_jaxpr=short_cond,
            body_nconsts=num_body + sum(still),
            body_jaxpr=short_body,
        )
    )
    return [x if s else next(outs) for x, s in zip(init, still, strict=True)]


def _drop_forwarding(
    cond: ClosedJaxpr, body: ClosedJaxpr, num_cond: int, num_body: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    cond_consts, cond_carry = split_list(cond.jaxpr.invars, [num_cond])
    read = {v for eqn in cond.eqns for v in eqn.invars} | set(cond.jaxpr.outvars)
    still = [
        source == num_body + i and cond_carry[i] not in read
        for i, source in enumerate(forwarded_inputs(body.jaxpr))
    ]
    if not any(still):
        return cond, body, still
    consts, carry = split_list(body.jaxpr.invars, [num_body])
    short_body = rearranged(
        body,
        [*select_where(carry, still), *consts, *select_where(carry, still, False)],
        select_where(body.jaxpr.outvars, still, False),
    )
    short_cond = rearranged(cond, [*cond_consts, *select_where(cond_carry, still, False)], cond.jaxpr.outvars)
    return short_cond, short_body, still


@while_p.def_effectful_abstract_eval
def _while_abstract_eval(
    *avals: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[list[Any], Any]:
    found = renumber_effects(
        call_effects(cond_jaxpr), lambda i: i + (body_nconsts if i >= cond_nconsts else 0)
    ) | renumber_effects(call_effects(body_jaxpr), cond_nconsts.__add__)
    check_effects("while", found)
    carry = avals[cond_nconsts + body_nconsts :]
    expected = body_jaxpr.in_avals[body_nconsts:]
    if len(carry) != len(expected):
        raise TypeError(f"while takes a carry of {len(expected)} arrays, got {len(carry)}")
    for n, (have, want) in enumerate(zip(carry, expected, strict=True)):
        if not check.same_type(have, want):
            raise TypeError(f"while carry number {n} has type {have.str_short()}, not {want.str_short()}")
    return body_jaxpr.out_avals, found


def _flattened(avals: Sequence[Any], *, cond_nconsts: int, body_nconsts: int, **params: Any) -> dict[str, Any]:
    """The parameters of a loop over the arrays that its operands consist of."""
    cond_consts, body_consts, _ = split_list(avals, [cond_nconsts, body_nconsts])
    return lowered_programs(dict(params, cond_nconsts=count(cond_consts), body_nconsts=count(body_consts)))


rules.flattenings[while_p] = _flattened


# -- fori_loop ------------------------------------------------------------------------------------


@api_boundary
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Any], init_val: PyTree, *,
              unroll: int | bool | None = None) -> PyTree:
    """Applies `val = body_fun(i, val)` for `i` from `lower` up to but not including `upper`.

    With bounds that are known while tracing this is a `scan`, which both modes of differentiation
    can handle; otherwise a `while_loop`.

    Args:
      lower, upper: integer scalars.
      body_fun: function of the index and the carry that returns a carry of the same type.
      init_val: the first carry, a tree of arrays.
      unroll: how many steps to put in one iteration; only for bounds known while tracing.

    Returns:
      the carry after the last step, a tree like `init_val`; `init_val` itself where `upper <= lower`.

    Raises:
      TypeError: the bounds differ in dtype or the carry changes its type.
      ValueError: `unroll` is given with bounds that are not known.

    Example:
      >>> import styrax as jax
      >>> jax.lax.fori_loop(0, 5, lambda i, total: total + i, 0)
      Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    lower, upper = _common_bounds(lower, upper)
    if is_concrete(lower) and is_concrete(upper):
        first, last = _concrete_bound(lower), _concrete_bound(upper)
        if first is not None and last is not None:
            return _fori_scan(first, last, body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
    _, _, result = while_loop(_counter_below, _wrapped(_counting, body_fun), (lower, upper, init_val))
    return result


def _concrete_bound(x: Any) -> int | None:
    if is_symbolic(x):
        return x
    value = np.asarray(concrete_or_error(None, x))
    if value.shape:
        return None
    number, dtype = int(value), get_aval(x).dtype
    if not dtypes.issubdtype(dtype, np.integer):  # as JAX: counted by integers where the bounds are known
        return number
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(f"Python int {number} too large to convert to {limits.dtype}")
    return number


def _common_bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Bounds of one dtype: a Python number takes that of the other bound."""
    low, high = get_aval(lower), get_aval(upper)
    if low.dtype == high.dtype:
        return lower, upper
    integers = all(dtypes.issubdtype(a.dtype, np.integer) for a in (low, high))
    if low.weak_type == high.weak_type or not integers:
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{low.dtype.name} and {high.dtype.name}"
        )
    if low.weak_type:
        return lax.convert_element_type(lower, high.dtype), upper
    return lower, lax.convert_element_type(upper, low.dtype)


def _fori_scan(first: int, last: int, body_fun: Callable, init_val: Any, unroll: int | bool | None) -> Any:
    if config.config.jax_disable_jit:
        value = init_val
        for i in range(first, last):
            value = body_fun(i, value)
        return value
    (_, result), _ = scan(
        _wrapped(_scanning, body_fun),
        (first, init_val),
        None,
        length=max(last - first, 0),
        unroll=1 if unroll is None else unroll,
    )
    return result


def _counter_below(loop_carry: tuple) -> Any:
    i, upper, _ = loop_carry
    return lax.lt(i, upper)


def _scanning(fun: Callable) -> Callable:
    def scanned_fun(loop_carry: Any, _: Any) -> Any:
        i, x = loop_carry
        return (lax.add(i, _one(i)), fun(i, x)), None

    return scanned_fun


def _counting(fun: Callable) -> Callable:
    def while_body_fun(loop_carry: Any) -> Any:
        i, upper, x = loop_carry
        return lax.add(i, _one(i)), upper, fun(i, x)

    return while_body_fun


def _one(i: Any) -> Any:
    aval = get_aval(i)
    if aval.weak_type:  # a Python number of its kind
        return 1 if dtypes.issubdtype(aval.dtype, np.integer) else 1.0
    return np.ones((), aval.dtype)[()]


class _Weak:
    """Calls a function without keeping it alive."""

    __slots__ = ("reference",)

    def __init__(self, fun: Callable):
        self.reference = weakref.ref(fun)

    def __call__(self, *args: Any) -> Any:
        return self.reference()(*args)  # type: ignore[misc]


# Body -> its wrapper in each form of the loop, so that a body used again is not traced again.
_wrappers: weakref.WeakKeyDictionary[Any, dict[Callable, Callable]] = weakref.WeakKeyDictionary()


def _wrapped(wrap: Callable[[Callable], Callable], fun: Callable) -> Callable:
    try:
        known = _wrappers.setdefault(fun, {})
    except TypeError:  # no weak reference to it, or no hash
        return _standing_for(lambda: fun, wrap, wrap(fun))
    if wrap not in known:
        called = _Weak(fun)
        known[wrap] = _standing_for(called.reference, wrap, wrap(called))
    return known[wrap]


def _standing_for(fun: Callable[[], Any], wrap: Callable, wrapped: Callable) -> Callable:
    """A function that is told to stand where the one is that it wraps, which messages name."""
    wrapped.__module__ = getattr(fun(), "__module__", None) or ""
    wrapped.stands_for = ("fori_loop", fun, ("upper",) if wrap is _counting else ())  # type: ignore[attr-defined]
    return wrapped


__all__ = ["fori_loop", "while_loop", "while_p"]

# The primitive is complete only with its rules, which build on what stands above.
