"""What passes over jaxprs share: a program written anew, with the constants of programs inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.programs.check import maybe_check
from ...core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program of an equation that is nothing but a call of it, to a compiler."""
    find = eqn.primitive.traits.program or eqn.primitive.traits.implementation
    if find is None:
        return None
    inner = find(eqn.params)
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())


def kept_apart(eqn: JaxprEqn) -> bool:
    """Whether a call computes again, on purpose, what others have computed."""
    return bool(eqn.params.get("prevent_cse"))


def is_pure(eqn: JaxprEqn) -> bool:
    """Whether an equation may be merged with an equal one, and computed earlier."""
    return (not eqn.effects and not eqn.primitive.traits.distinct and not kept_apart(eqn)
            and all(isinstance(v.aval, ShapedArray) for v in (*eqn.invars, *eqn.outvars)))


# the parameters of control flow that hold programs
_PROGRAMS = {Control.SCAN: ("jaxpr",), Control.WHILE: ("cond_jaxpr", "body_jaxpr"), Control.COND: ("branches",)}


def programs_of(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """The programs that control flow runs."""
    control = eqn.primitive.traits.control
    for name in () if control is None else _PROGRAMS[control]:
        value = eqn.params[name]
        yield from value if isinstance(value, tuple) else (value,)


def map_programs(eqn: JaxprEqn, change: Callable[[ClosedJaxpr], ClosedJaxpr]) -> JaxprEqn:
    """The equation with `change` applied to the programs that it runs or calls."""
    control = eqn.primitive.traits.control
    changes: dict[str, Any] = {}
    for name in () if control is None else _PROGRAMS[control]:
        old = eqn.params[name]
        several = old if isinstance(old, tuple) else (old,)
        changed = tuple(map(change, several))
        if any(x is not y for x, y in zip(several, changed, strict=True)):
            changes[name] = changed if isinstance(old, tuple) else changed[0]
    if kept_apart(eqn) and eqn.primitive.traits.program is not None:
        inner = called(eqn)
        assert inner is not None
        new = change(inner)
        if new is not inner and not new.consts:
            changes.update((k, new if isinstance(v, ClosedJaxpr) else new.jaxpr) for k, v in eqn.params.items()
                           if isinstance(v, ClosedJaxpr | Jaxpr))
    return eqn.replace(params={**eqn.params, **changes}) if changes else eqn


class Rewriting:
    """A program being written. Constants of programs that are inlined or moved out become its own."""

    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.by_constant: dict[int, Var] = {}
        self.copying = False

    def run(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The program with each equation replaced by what `equation` gives; the same object where it adds them all
        as they are."""
        old = closed.jaxpr
        outvars = self.write(old, [*self.constants(closed), *old.invars])
        if len(self.eqns) == len(old.eqns) and all(x is y for x, y in zip(self.eqns, old.eqns, strict=True)):
            return closed
        return ClosedJaxpr(maybe_check(Jaxpr(self.constvars, old.invars, outvars, self.eqns, None, old.debug_info)),
                           self.consts)

    def constants(self, closed: ClosedJaxpr) -> list[Var]:
        """The constants of a program as variables of this one, each value once."""
        out = []
        for value, v in zip(closed.consts, closed.jaxpr.constvars, strict=True):
            found = self.by_constant.get(id(value))
            if found is None:
                found = self.by_constant[id(value)] = Var(v.aval) if self.copying else v
                self.constvars.append(found)
                self.consts.append(value)
            out.append(found)
        return out

    def write(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Adds a program's equations on these constants and arguments; its results."""
        env: dict[Any, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [v if type(v) is Literal else env[v] for v in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return [v if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def copy(self, closed: ClosedJaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Adds another program's equations, with variables of their own; its results."""
        with self.copies():
            return self.write(closed.jaxpr, [*self.constants(closed), *args])

    @contextmanager
    def copies(self) -> Iterator[None]:
        """Equations added inside stand elsewhere, too, perhaps several times: their variables are new."""
        before, self.copying = self.copying, True
        yield
        self.copying = before

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Adds what an equation becomes; its results."""
        return self.add(eqn, ins)

    def add(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Var]:
        """Adds an equation on other operands."""
        if self.copying:
            eqn = eqn.replace(invars=ins, outvars=[Var(v.aval) for v in eqn.outvars])
        elif len(ins) != len(eqn.invars) or any(x is not y for x, y in zip(ins, eqn.invars, strict=True)):
            eqn = eqn.replace(invars=ins)
        self.eqns.append(eqn)
        return eqn.outvars
