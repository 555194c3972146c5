"""The type checker of jaxprs: scopes, types and effects.

Programs are checked after tracing and after every transformation while ``jax_enable_checks`` is on. Each
program object is checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..settings.config import enable_checks
from ..tracing.errors import JaxprTypeError
from ..tracing.source import summarize
from ..tracing.trace import get_aval
from ..types.avals import AbstractRef, ShapedArray, unstacked
from ..types.effects import RefEffect
from .equation_mesh import in_its_mesh
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from .traits import Control

# An inner program of an equation, the types that it is called with, and the types of its results or None
Call = tuple[Jaxpr, Sequence[Any], Sequence[Any] | None]


def maybe_check(program: Any) -> Any:
    """``program``, checked where ``jax_enable_checks`` is on."""
    if enable_checks.value:
        check_jaxpr(program)
    return program


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Checks a program and those inside it.

    Raises:
      JaxprTypeError: a variable is used before it is bound or is bound twice, a type is not what the
        primitive gives for its operands, an inner program does not fit its equation, or an effect is
        missing. The message shows the equation and the user's line.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        _check_consts(jaxpr)
        jaxpr = jaxpr.jaxpr
    if jaxpr.cache.get("checked"):
        return
    scope: set[Var] = set()
    for v in [*jaxpr.constvars, *jaxpr.invars]:
        _bind(v, scope, "an input", jaxpr)
    for eqn in jaxpr.eqns:
        _check_eqn(eqn, scope, jaxpr)
    for v in jaxpr.outvars:
        _check_atom(v, scope, "a result", jaxpr, None)
    _check_effects(jaxpr)
    jaxpr.cache["checked"] = True


def _fail(message: str, jaxpr: Jaxpr, eqn: JaxprEqn | None = None) -> JaxprTypeError:
    where = ""
    if eqn is not None:
        line = summarize(eqn.source_info)
        where = f"\n\nin the equation:\n\n{eqn}" + (f"\n\nfrom {line}" if line else "")
    text = str(jaxpr)
    if len(text) > 20_000:
        text = text[:20_000] + "\n…"
    return JaxprTypeError(f"{message}{where}\n\nin the program:\n\n{text}")


def _bind(v: Any, scope: set[Var], what: str, jaxpr: Jaxpr, eqn: JaxprEqn | None = None) -> None:
    if not isinstance(v, Var):
        raise _fail(f"{v!r} is {what}, but not a variable", jaxpr, eqn)
    if v in scope:
        raise _fail(f"Variable {v!r}, {what}, is already bound", jaxpr, eqn)
    if type(v) is not DropVar:
        scope.add(v)


def _check_atom(v: Any, scope: set[Var], what: str, jaxpr: Jaxpr, eqn: JaxprEqn | None) -> None:
    if isinstance(v, Literal):
        dtype = getattr(v.aval, "dtype", None)
        if getattr(v.aval, "shape", ()) != () or np.shape(v.val) != ():
            raise _fail(f"Literal {v!r} is not a scalar", jaxpr, eqn)
        if isinstance(v.val, np.generic) and isinstance(dtype, np.dtype) and v.val.dtype != dtype:
            raise _fail(f"Literal {v!r} of dtype {v.val.dtype} is said to be of type {v.aval}", jaxpr, eqn)
    elif not isinstance(v, Var):
        raise _fail(f"{v!r} is {what}, but neither a variable nor a literal", jaxpr, eqn)
    elif v not in scope:
        raise _fail(f"Variable {v!r}, {what}, is not defined", jaxpr, eqn)


def same_type(a: Any, b: Any) -> bool:
    """Whether a value of the one type can stand where the other is expected; weakness does not matter."""
    if a is b:
        return True
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        return a.dtype == b.dtype and a.shape == b.shape
    if isinstance(a, AbstractRef) and isinstance(b, AbstractRef):
        return same_type(a.inner_aval, b.inner_aval)
    return bool(a == b)


def _check_eqn(eqn: JaxprEqn, scope: set[Var], jaxpr: Jaxpr) -> None:
    for v in eqn.invars:
        _check_atom(v, scope, "an operand", jaxpr, eqn)
    if eqn.primitive.traits.control is Control.SCAN:
        _check_scan_params(eqn, jaxpr)
    avals = [v.aval for v in eqn.invars]
    try:
        with in_its_mesh(eqn):
            found, effects = eqn.primitive.abstract_eval(*avals, **eqn.params)
    except Exception as error:
        raise _fail(f"{eqn.primitive} does not accept its operands: {error}", jaxpr, eqn) from error
    results = list(found) if eqn.primitive.multiple_results else [found]
    _check_types(results, [v.aval for v in eqn.outvars], f"results of {eqn.primitive}", jaxpr, eqn)
    missing = set(effects) - set(eqn.effects)
    if missing:
        raise _fail(f"The equation lacks effects of its primitive: {sorted(map(str, missing))}", jaxpr, eqn)
    for inner, ins, outs in _calls(eqn):
        _check_types(inner.in_avals, ins, f"inputs of the program in {eqn.primitive}", jaxpr, eqn)
        if outs is not None:
            _check_types(inner.out_avals, outs, f"results of the program in {eqn.primitive}", jaxpr, eqn)
    for inner in jaxprs_in_params(eqn.params):
        try:
            check_jaxpr(inner)
        except JaxprTypeError as error:
            raise _fail(f"The program inside {eqn.primitive} is wrong: {error}", jaxpr, eqn) from None
    for v in eqn.outvars:
        _bind(v, scope, "a result", jaxpr, eqn)


def _check_types(found: Sequence[Any], stated: Sequence[Any], what: str, jaxpr: Jaxpr, eqn: JaxprEqn) -> None:
    if len(found) != len(stated):
        raise _fail(f"There are {len(found)} {what}, but {len(stated)} in the equation", jaxpr, eqn)
    for i, (a, b) in enumerate(zip(found, stated)):
        if not same_type(a, b):
            types = f"{_text(a)}, but {_text(b)} in the equation"
            raise _fail(f"Number {i} of the {what} has type {types}", jaxpr, eqn)


def _text(aval: Any) -> str:
    return aval.str_short(short_dtypes=True)


def _check_effects(jaxpr: Jaxpr) -> None:
    inputs = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    for eqn in jaxpr.eqns:
        for effect in eqn.effects:
            own = effect
            if isinstance(effect, RefEffect):
                if not 0 <= effect.input_index < len(eqn.invars):
                    raise _fail(f"Effect {effect} names no operand", jaxpr, eqn)
                ref = eqn.invars[effect.input_index]
                if isinstance(ref, Literal) or not isinstance(ref.aval, AbstractRef):
                    raise _fail(f"Effect {effect} names an operand that is no reference", jaxpr, eqn)
                if ref not in inputs:
                    continue  # a reference that lives inside the program
                own = effect.replace(inputs[ref])
            if own not in jaxpr.effects:
                raise _fail(f"The program lacks the effect {own} of an equation", jaxpr, eqn)


def _check_consts(closed: ClosedJaxpr) -> None:
    if len(closed.consts) != len(closed.jaxpr.constvars):
        raise _fail(
            f"{len(closed.consts)} constants for {len(closed.jaxpr.constvars)} variables", closed.jaxpr
        )
    for v, c in zip(closed.jaxpr.constvars, closed.consts):
        aval = get_aval(c)
        same = same_type(aval, v.aval)
        if not same and isinstance(c, np.ndarray) and isinstance(v.aval, ShapedArray):
            same = c.shape == v.aval.shape and c.dtype == v.aval.dtype  # 64 bits that x64 now hides
        if not same:
            raise _fail(f"A constant of type {_text(aval)} stands for {v!r}", closed.jaxpr)


# Primitives with inner programs.


def _types(atoms: Sequence[Any]) -> list[Any]:
    return [v.aval for v in atoms]


def _calls(eqn: JaxprEqn) -> list[Call]:
    """The calls that an equation makes, by what its primitive's traits say of its parameters."""
    traits = eqn.primitive.traits
    if traits.control is not None:
        return _CONTROL[traits.control](eqn)
    if traits.program is None:
        return []
    inner = traits.program(eqn.params)
    inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    return [(inner, _types(eqn.invars), _types(eqn.outvars))] if isinstance(inner, Jaxpr) else []


def _cond(eqn: JaxprEqn) -> list[Call]:
    operands = _types(eqn.invars[1:])
    return [(branch.jaxpr, operands, _types(eqn.outvars)) for branch in eqn.params["branches"]]


def _while(eqn: JaxprEqn) -> list[Call]:
    n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    operands = _types(eqn.invars)
    carry = operands[n + m :]
    return [
        (eqn.params["cond_jaxpr"].jaxpr, operands[:n] + carry, None),
        (eqn.params["body_jaxpr"].jaxpr, operands[n : n + m] + carry, carry),
    ]


_COUNT = (lambda x: isinstance(x, int) and x >= 0, "non-negative int")
_SCAN_PARAMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "jaxpr": (lambda x: isinstance(x, ClosedJaxpr), "ClosedJaxpr"),
    "reverse": (lambda x: isinstance(x, bool), "bool"),
    "num_consts": _COUNT, "num_carry": _COUNT, "unroll": _COUNT,
}


def _check_scan_params(eqn: JaxprEqn, jaxpr: Jaxpr) -> None:
    for name, (is_right, wanted) in _SCAN_PARAMS.items():
        value = eqn.params.get(name)
        if name in eqn.params and not is_right(value):
            raise _fail(f"invalid scan param {name} of type {type(value).__name__}, {wanted} required: {value}",
                        jaxpr, eqn)


def _scan(eqn: JaxprEqn) -> list[Call]:
    n, m, length = (eqn.params[k] for k in ("num_consts", "num_carry", "length"))
    operands, results = _types(eqn.invars), _types(eqn.outvars)
    rows = [_row(aval, length) for aval in operands[n + m :]]
    inner = [*operands[: n + m], *rows]
    return [(eqn.params["jaxpr"].jaxpr, inner, [*results[:m], *[_row(a, length) for a in results[m:]]])]


def _row(aval: Any, length: Any) -> Any:
    if isinstance(aval, AbstractRef):
        return AbstractRef(_row(aval.inner_aval, length), aval.memory_space, aval.kind)
    if not aval.shape or aval.shape[0] != length:
        raise JaxprTypeError(f"scan over {length} steps has an operand or result of type {_text(aval)}")
    return unstacked(aval)


_CONTROL: dict[Control, Callable[[JaxprEqn], list[Call]]] = {
    Control.COND: _cond, Control.WHILE: _while, Control.SCAN: _scan}
