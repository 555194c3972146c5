"""Errors inside programs as values: `checkify`.

A checked function is traced, and its program is run with one more value going through it: which check has failed first.
Checks are those that the user has written (`check`) and those for NaNs, divisions by zero and indices out of
range. They are grouped by *kind*: the class of the exception and the types of the values that its message
shows, for which the state has room.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from ..core import hooks
from ..core.programs import rules
from ..core.programs.equation_mesh import in_its_mesh
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.programs.traits import Control
from ..core.tracing.source import api_boundary
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Tracer, current_trace, get_aval, valid_jaxtype
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import ShapedArray
from ..core.types.effects import (
    Effect,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    remat_allowed_effects,
)
from ..core.types.typing import ArrayLike, PyTree
from .batch import moveaxis
from .callbacks import as_arrays
from .checkpoint import checkpoint, remat_p
from .jit_rules import jit_p, jit_params
from .tracing import trace_function
from .zeros import zeros_like_aval

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder

P = ParamSpec("P")
R = TypeVar("R")


class ErrorEffect(Effect):
    """A check that `checkify` has not turned into a value yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Error"


error_effect = ErrorEffect()
for _set in (control_flow_allowed_effects, custom_derivatives_allowed_effects, remat_allowed_effects):
    _set.add_type(ErrorEffect)


class JaxException(Exception):
    """What a check that failed stands for."""


class JaxRuntimeError(ValueError):
    """A check has failed."""


class NaNError(JaxException):
    """An operation gave a value that is not a number."""


class DivisionByZeroError(JaxException):
    """A division by zero."""


class OOBError(JaxException):
    """An index out of range."""


class FailedCheckError(JaxException):
    """A condition that the user checks did not hold."""


class Site:
    """A check in a program: the exception it stands for, and how to make its message of the values it keeps."""

    __slots__ = ("exception", "message")

    def __init__(self, exception: type[JaxException], message: Callable[..., str]):
        self.exception = exception
        self.message = message

    def make(self, payload: Sequence[Any]) -> JaxException:
        return self.exception(self.message(*payload))


sites: dict[int, Site] = {}  # number of a check -> what it is; the numbers are in the values that programs carry
_known: dict[Any, int] = {}  # what makes a check what it is -> its number
_numbers = itertools.count(1)


def _site(exception: type[JaxException], key: Any, message: Callable[..., str]) -> np.int32:
    """The number of a check. Checks with equal keys have equal messages."""
    number = _known.get((exception, key))
    if number is None:
        number = _known[exception, key] = next(_numbers)
        sites[number] = Site(exception, message)
    return np.int32(number)


Kind = tuple[type, tuple[ShapedArray, ...]]
State = dict[Kind, tuple[Any, Any, tuple]]  # kind -> has failed, which check, values for the message


class Error:
    """The outcome of the checks of a function: use `get`, `throw` or `check_error`."""

    __slots__ = ("state",)

    def __init__(self, state: State):
        self.state = state

    def get(self) -> str | None:
        """The message of the check that failed first, None if all held.

        Of a function that was mapped, the messages of all elements where one failed.
        """
        found = self._failures()
        if not found:
            return None
        if found[0][0] == ():
            return _text(found[0][1])
        return "\n".join(f"at mapped index {', '.join(map(str, index))}: {_text(error)}" for index, error in found)

    def get_exception(self) -> JaxException | None:
        """The exception of the check that failed first, None if all held."""
        found = self._failures()
        return found[0][1] if found else None

    def throw(self) -> None:
        """Raises JaxRuntimeError if a check has failed."""
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def _failures(self) -> list[tuple[tuple[int, ...], JaxException]]:
        if not self.state:
            return []
        concrete = {kind: (np.asarray(failed), np.asarray(code), payload)
                    for kind, (failed, code, payload) in self.state.items()}
        shape = np.broadcast_shapes(*(failed.shape for failed, _, _ in concrete.values()))
        out = []
        for index in np.ndindex(*shape):
            for failed, code, payload in concrete.values():
                at = index[:failed.ndim]
                if failed[at]:
                    values = as_arrays(payload)
                    out.append((index, sites[int(code[at])].make([x[at] if at else x for x in values])))
                    break
        return out

    def __repr__(self) -> str:
        return f"Error({self.get() if not any(isinstance(x, Tracer) for x in tree.tree_leaves(self)) else 'traced'})"


def _text(error: JaxException) -> str:
    return f"{error} (`check` failed)" if isinstance(error, FailedCheckError) else str(error)


tree.register_pytree_node(
    Error,
    lambda e: (list(e.state.values()), tuple(e.state)),
    lambda kinds, values: Error(dict(zip(kinds, values, strict=True))))

init_error = Error({})

# Which exceptions a set of checks asks for
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks
ErrorCategory = type[JaxException]


# -- checks that users write ------------------------------------------------------------------------------------

check_p = Primitive("check", multiple_results=True)  # (failed, which check, values…), for one kind of error
check_p.declare(printed=lambda params: {k: v for k, v in sorted(params.items()) if k != "err_tree"})


def check(pred: ArrayLike, msg: str, *fmt_args: PyTree, debug: bool = False, **fmt_kwargs: PyTree) -> None:
    """Checks a condition, also in a program that `checkify` has made of a function.

    Args:
      pred: a boolean scalar.
      msg: the message for when it is false, a format for the arrays that follow.
      debug: whether to leave the check out where the function has not been given to `checkify`.

    Raises:
      JaxRuntimeError: it is false, outside of any transformation. TypeError: arguments that are not arrays.
      ValueError: a program with checks is compiled that has not been given to `checkify`.
    """
    if not valid_jaxtype(pred) or np.shape(pred) != () or dtypes.dtype(pred) != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    leaves, treedef = tree.tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not (hasattr(x, "dtype") and valid_jaxtype(x)):
            raise TypeError(f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x!r} of "
                            f"type {type(x)}.")
    if not leaves:
        msg.format(*fmt_args, **fmt_kwargs)  # a format that lacks its values is an error at once

    def message(*payload: Any) -> str:
        args, kwargs = tree.tree_unflatten(treedef, payload)
        return msg.format(*args, **kwargs)

    check_p.bind(hooks.lax.bitwise_not(pred), _site(FailedCheckError, (msg, treedef), message), *leaves,
                 exception=FailedCheckError, debug=debug)


def debug_check(pred: ArrayLike, msg: str, *fmt_args: PyTree, **fmt_kwargs: PyTree) -> None:
    """As `check`, without effect where the function has not been given to `checkify`."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises JaxRuntimeError if a check has failed; in a function given to `checkify`, it fails there too."""
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    if current_trace().is_eval and not any(isinstance(x, Tracer) for x in tree.tree_leaves(error)):
        error.throw()
        return
    for (exception, _), (failed, code, payload) in error.state.items():
        check_p.bind(failed, code, *payload, exception=exception, debug=False)


@check_p.def_impl
def _check_impl(failed: Any, code: Any, *payload: Any, exception: type[JaxException], debug: bool) -> list:
    if bool(failed) and not debug:
        raise JaxRuntimeError(_text(sites[int(code)].make(payload)))
    return []


@check_p.def_effectful_abstract_eval
def _check_avals(*_: Any, **params: Any) -> tuple[list, frozenset]:
    return [], frozenset({error_effect})


def _check_lowering(b: Builder, *_: Any, debug: bool, **params: Any) -> list[Any]:
    if not debug:
        raise ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried "
            "to stage (jit/scan/pmap/...) a `check` without functionalizing it through `checkify.checkify`.")
    return []


def _check_batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[list, list]:
    """The last element whose check has failed speaks for all."""
    lax = hooks.lax
    moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    failed = moved[0]
    place: Any = 0
    if dims[0] is not None:
        place = failed.shape[0] - 1 - lax.argmax(lax.rev(failed, (0,)), 0, np.int32)
        failed = lax.reduce_or(failed, (0,))
    rest = [x if d is None else lax.dynamic_index_in_dim(x, place, 0, keepdims=False)
            for x, d in zip(moved[1:], dims[1:], strict=True)]
    return check_p.bind(failed, *rest, **params), []


rules.loops[check_p] = rules.stablehlos[check_p] = _check_lowering
rules.jvps[check_p] = lambda primals, tangents, **params: (check_p.bind(*primals, **params), [])
rules.batchers[check_p] = _check_batch


# -- the state ------------------------------------------------------------------------------------------------


def _fresh(kinds: Sequence[Kind]) -> State:
    return {kind: (np.bool_(False), np.int32(0), tuple(map(_blank, kind[1]))) for kind in kinds}


def _blank(aval: ShapedArray) -> Any:
    return np.zeros(aval.shape, aval.dtype) if isinstance(aval.dtype, np.dtype) else zeros_like_aval(aval)


def _array(x: Any) -> Any:
    aval = get_aval(x)
    return hooks.lax.convert_element_type(x, aval.dtype) if isinstance(aval.dtype, np.dtype) else x


def _flat(state: State) -> list[Any]:
    return tree.tree_leaves(list(state.values()))


def _unflat(kinds: Sequence[Kind], leaves: Sequence[Any]) -> State:
    rest = iter(leaves)
    return {kind: (next(rest), next(rest), tuple(next(rest) for _ in kind[1])) for kind in kinds}


def _record(state: State, exception: type, failed: Any, code: Any, payload: Sequence[Any]) -> None:
    """Notes a check's outcome, unless one has failed before."""
    lax = hooks.lax
    kind = exception, tuple(ShapedArray(get_aval(p).shape, get_aval(p).dtype) for p in payload)
    for before, _, _ in state.values():
        failed = lax.bitwise_and(failed, lax.bitwise_not(before))
    before, old_code, old_payload = state[kind]

    def choose(old: Any, new: Any) -> Any:
        old, new = _array(old), _array(new)
        return lax.select(lax.broadcast_in_dim(failed, np.shape(old), ()), new, old)

    state[kind] = (lax.bitwise_or(before, failed), choose(old_code, code),
                   tuple(choose(o, n) for o, n in zip(old_payload, payload, strict=True)))


def _kinds(jaxpr: Jaxpr, enabled: frozenset) -> list[Kind]:
    """The kinds of errors that a program can have."""
    found: dict[Kind, None] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is check_p:
            if eqn.params["exception"] in enabled:
                avals = tuple(ShapedArray(a.aval.shape, a.aval.dtype) for a in eqn.invars[2:])
                found[eqn.params["exception"], avals] = None
            continue
        for exception, payload in _automatic(eqn, enabled):
            found[exception, payload] = None
        for inner in jaxprs_in_params(eqn.params):
            if _rule_of(eqn.primitive) is not None:
                found.update(dict.fromkeys(_kinds(inner, enabled)))
    return list(found)


# -- checks that are made of themselves ---------------------------------------------------------------------------

_INDEX = (ShapedArray((3,), np.int32),)


def _automatic(eqn: JaxprEqn, enabled: frozenset) -> Iterator[Kind]:
    traits = eqn.primitive.traits
    if OOBError in enabled and traits.windows is not None:
        yield OOBError, _INDEX
    if DivisionByZeroError in enabled and traits.divides:
        yield DivisionByZeroError, ()
    if NaNError in enabled and traits.nan and any(_inexact(v.aval) for v in eqn.outvars):
        yield NaNError, ()


def _inexact(aval: Any) -> bool:
    return dtypes.issubdtype(getattr(aval, "dtype", None), np.inexact)


def _check_automatically(state: State, eqn: JaxprEqn, ins: Sequence[Any], outs: Sequence[Any],
                         enabled: frozenset) -> None:
    lax = hooks.lax
    name = eqn.primitive.name
    for exception, _ in _automatic(eqn, enabled):
        if exception is DivisionByZeroError:
            zero = lax.eq(ins[1], lax.full_like(ins[1], 0))
            _record(state, exception, _any(zero), _site(exception, "", lambda: "division by zero"), ())
        elif exception is NaNError:
            failed: Any = np.bool_(False)
            for x in outs:
                if _inexact(get_aval(x)):
                    failed = lax.bitwise_or(failed, _any(lax.ne(x, x)))
            code = _site(exception, name, lambda: f"nan generated by primitive: {name}.")
            _record(state, exception, failed, code, ())
        else:
            _check_indices(state, eqn, ins)


def _any(x: Any) -> Any:
    lax = hooks.lax
    return lax.reduce_or(x, tuple(range(np.ndim(x)))) if np.ndim(x) else x


def _check_indices(state: State, eqn: JaxprEqn, ins: Sequence[Any]) -> None:
    """Indices (…, n) against the least and greatest that are allowed for n dimensions of the operand."""
    lax = hooks.lax
    operand = get_aval(ins[0])
    windows = eqn.primitive.traits.windows
    assert windows is not None
    operands, dims, sizes = windows([get_aval(x) for x in ins], eqn.params)
    axes = list(dims)
    limits = [operand.shape[a] - size for a, size in zip(axes, sizes, strict=True)]
    indices = [lax.reshape(lax.convert_element_type(x, np.int32), (math.prod(np.shape(x)),)) for x in ins[operands]]
    length = sum(math.prod(np.shape(x)) for x in indices)
    if not axes or length == 0:
        return
    flat = lax.concatenate(indices, 0)
    count = length // len(axes)
    highest = np.tile(np.asarray(limits, np.int32), count)
    wrong = lax.bitwise_or(lax.lt(flat, lax.full_like(flat, 0)), lax.gt(flat, highest))
    place = lax.argmax(wrong, 0, np.int32)
    axis = np.tile(np.asarray(axes, np.int32), count)
    size = np.tile(np.asarray([operand.shape[a] for a in axes], np.int32), count)
    payload = lax.concatenate([lax.dynamic_slice(lax.convert_element_type(x, np.int32), (place,), (1,))
                               for x in (flat, axis, size)], 0)
    shape = operand.shape

    def message(found: Any) -> str:
        index, axis, size = (int(x) for x in found)
        return (f"out-of-bounds indexing for array of shape {shape}: index {index} is out of bounds for axis {axis} "
                f"with size {size}. ")

    _record(state, OOBError, _any(wrong), _site(OOBError, shape, message), (payload,))


# -- running a program with its checks ------------------------------------------------------------------------------


def _run(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    """Runs a program in the current trace; the outcome of its checks goes into `state`."""
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        ins = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
        if eqn.primitive is check_p:
            if eqn.params["exception"] in enabled:
                _record(state, eqn.params["exception"], ins[0], ins[1], ins[2:])
            outs: Sequence[Any] = []
        else:
            rule = _rule_of(eqn.primitive)
            if rule is not None and any(
                    _kinds(inner, enabled) or error_effect in inner.effects for inner in jaxprs_in_params(eqn.params)):
                outs = rule(eqn, ins, state, enabled)
            else:
                with in_its_mesh(eqn):
                    found = eqn.primitive.bind(*ins, **eqn.primitive.get_bind_params(eqn.params))
                outs = found if eqn.primitive.multiple_results else [found]
            _check_automatically(state, eqn, ins, outs, enabled)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]


def _lifted(closed: ClosedJaxpr, kinds: Sequence[Kind], enabled: frozenset) -> Callable[..., list[Any]]:
    """The program as a function from (state, arguments) to (state, results), flat."""
    count = len(_flat(_fresh(kinds)))

    def run(*xs: Any) -> list[Any]:
        state = _unflat(kinds, xs[:count])
        outs = _run(closed.jaxpr, closed.consts, xs[count:], state, enabled)
        return [*_flat(state), *outs]

    run.__name__ = closed.debug_info.func_name or "checked"
    return run


def _take(state: State, outs: Sequence[Any]) -> list[Any]:
    """Puts the head of the results back into the state; gives the others."""
    kinds = list(state)
    count = len(_flat(state))
    state.update(_unflat(kinds, outs[:count]))
    return list(outs[count:])


def _as_closed(program: Any) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def _inline(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    program = eqn.primitive.traits.program
    assert program is not None
    closed = _as_closed(program(eqn.params))
    return _run(closed.jaxpr, closed.consts, ins, state, enabled)


def _jit(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    before = _flat(state)
    run = _lifted(eqn.params["jaxpr"], list(state), enabled)
    new = trace_to_jaxpr(run, [get_aval(x) for x in (*before, *ins)], eqn.params["jaxpr"].debug_info)
    if any(isinstance(c, Tracer) for c in new.consts):
        return _take(state, run(*before, *ins))
    return _take(state, jit_p.bind(*before, *ins, **jit_params(new, eqn.params["name"])))


def _checkpoint(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    run = _lifted(_as_closed(eqn.params["jaxpr"]), list(state), enabled)
    before, guards = _flat(state), eqn.params["prevent_cse"]
    if not isinstance(guards, bool):
        guards = (*(True for _ in before), *guards)
    return _take(state, checkpoint(run, policy=eqn.params["policy"], prevent_cse=guards)(*before, *ins))


def _cond(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    runs = [_lifted(branch, list(state), enabled) for branch in eqn.params["branches"]]
    which = hooks.lax.convert_element_type(ins[0], np.int32)
    return _take(state, hooks.lax.switch(which, runs, *_typed(state), *ins[1:]))


def _typed(state: State) -> list[Any]:
    return [_array(x) for x in _flat(state)]


def _scan(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    p = eqn.params
    n_consts, n_carry = p["num_consts"], p["num_carry"]
    consts, carry, xs = ins[:n_consts], ins[n_consts:n_consts + n_carry], ins[n_consts + n_carry:]
    run = _lifted(p["jaxpr"], list(state), enabled)
    before = _typed(state)
    count = len(before)

    def body(carried: Sequence[Any], x: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = run(*carried[:count], *consts, *carried[count:], *x)
        return outs[:count + n_carry], outs[count + n_carry:]

    last, ys = hooks.lax.scan(body, [*before, *carry], list(xs), length=p["length"], reverse=p["reverse"],
                                  unroll=p["unroll"])
    return [*_take(state, last), *ys]


def _while(eqn: JaxprEqn, ins: Sequence[Any], state: State, enabled: frozenset) -> list[Any]:
    p = eqn.params
    n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts, carry = ins[:n_cond], ins[n_cond:n_cond + n_body], ins[n_cond + n_body:]
    kinds = list(state)
    cond, body = (_lifted(p[name], kinds, enabled) for name in ("cond_jaxpr", "body_jaxpr"))
    silent = _lifted(p["cond_jaxpr"], (), frozenset())
    _take(state, cond(*_flat(state), *cond_consts, *carry))
    before = _typed(state)
    count = len(before)

    def step(carried: Sequence[Any]) -> list[Any]:
        outs = body(*carried[:count], *body_consts, *carried[count:])
        after = cond(*outs[:count], *cond_consts, *outs[count:])
        return [*after[:count], *outs[count:]]

    last = hooks.lax.while_loop(lambda carried: silent(*cond_consts, *carried[count:])[0], step, [*before, *carry])
    return _take(state, last)


_rules: Mapping[Primitive, Callable[..., list[Any]]] = {jit_p: _jit, remat_p: _checkpoint}
_control: Mapping[Control, Callable[..., list[Any]]] = {
    Control.COND: _cond, Control.SCAN: _scan, Control.WHILE: _while}


def _rule_of(primitive: Primitive) -> Callable[..., list[Any]] | None:
    """How the programs inside an equation are checked; None where they are left alone."""
    traits = primitive.traits
    if traits.control is not None:
        return _control[traits.control]
    return _rules.get(primitive, _inline if traits.program is not None else None)


@api_boundary
def checkify(f: Callable[P, R], errors: frozenset = user_checks) -> Callable[P, tuple[Error, R]]:
    """A function that tells which of its checks has failed, besides its results.

    Args:
      f: a function of trees of arrays.
      errors: the checks to make: `user_checks`, `nan_checks`, `div_checks`, `index_checks`, or sets of them such as
        `float_checks`, `automatic_checks`, `all_checks`.

    Returns:
      A function of the same arguments that returns `(error, results)`; it can be transformed and compiled. Where a
      function with derivative rules of its own contains checks, they are differentiated as its program is.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> import styrax.experimental.checkify as checkify
      >>> def f(x):
      ...     checkify.check(x > 0, 'x is negative')
      ...     return jnp.log(x)
      >>> error, _ = jax.jit(checkify.checkify(f))(-1.0)
      >>> print(str(error.get()).split(' (')[0])
      x is negative
    """

    @api_boundary
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        # The function is not staged for its arguments: those that are known may decide which way Python goes.
        closed, out_tree = trace_function(partial(f, *args, **kwargs), (), {}, (), "checkify")
        state = _fresh(_kinds(closed.jaxpr, errors))
        outs = _run(closed.jaxpr, closed.consts, [], state, errors)
        return Error(state), tree.tree_unflatten(out_tree, outs)

    checked.__name__ = f"checkify({getattr(f, '__name__', 'f')})"
    checked.__wrapped__ = f  # type: ignore[attr-defined]
    return checked
