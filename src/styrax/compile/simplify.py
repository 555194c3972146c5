"""jaxpr → jaxpr: calls inlined, nothing computed twice, nothing computed in a loop that does not change there.

What `checkpoint` computes again on purpose is merged only with itself. Programs with run-time sizes are left as they
are: comparing their parameters would ask about sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.backends import params_key
from ..core.check import maybe_check
from ..core.dead_code import dce_jaxpr
from ..core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params

# primitives that are nothing but a program: name -> the program among their parameters
CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "jit": lambda p: p["jaxpr"],
    "closed_call": lambda p: p["call_jaxpr"],
    "core_call": lambda p: p["call_jaxpr"],
    "checkpoint": lambda p: p["jaxpr"],
    "remat2": lambda p: p["jaxpr"],
    "custom_jvp_call": lambda p: p["call_jaxpr"],
    "custom_vjp_call": lambda p: p["call_jaxpr"],
    "custom_vmap_call": lambda p: p["call"],
    "linear_call": lambda p: p["callee"],
}

# Fresh memory and stateful random numbers are not the same twice, barriers are there to keep things apart, and who
# calls Python from a loop expects a call at each turn.
DISTINCT = frozenset(("empty", "rng_uniform", "optimization_barrier", "pure_callback"))

# What a loop computes for less than it costs to keep: these leave a loop only with something that needs them.
CHEAP = frozenset((
    "abs", "add", "add_any", "and", "bitcast_convert_type", "broadcast_in_dim", "ceil", "clamp", "clz", "complex",
    "concatenate", "conj", "convert_element_type", "copy", "device_put", "dynamic_slice", "eq", "eq_to", "floor",
    "gather", "ge", "gt", "imag", "iota", "is_finite", "le", "le_to", "lt", "lt_to", "max", "min", "mul", "ne", "neg",
    "not", "or", "pad", "population_count", "real", "reduce_precision", "reshape", "rev", "round", "select_n",
    "sharding_constraint", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "slice", "split",
    "square", "squeeze", "stack", "stop_gradient", "sub", "tile", "transpose", "unstack", "xor"))

# Elementwise all the same: worth keeping while the result stays in a cache.
COSTLY = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e", "cbrt", "cos", "cosh",
    "digamma", "div", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "igamma", "igammac", "integer_pow", "lgamma",
    "log", "log1p", "logistic", "nextafter", "polygamma", "pow", "rem", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
    "zeta"))
CACHED = 1 << 18  # bytes
GROWTH = 8  # times that a row may grow when it is multiplied outside of a loop
ROOM = 1 << 28  # bytes that all rows may take there


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, smaller. Inputs and results correspond one to one."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) < 2 and not any(True for eqn in jaxpr.eqns for _ in jaxprs_in_params(eqn.params)):
        return closed
    known = jaxpr.cache.get("simplified")
    if known is None or known[0] is not closed:
        known = jaxpr.cache["simplified"] = (closed, _Simplifier().program(closed))
    return known[1]


def is_pure(eqn: JaxprEqn) -> bool:
    """Whether an equation may be merged with an equal one, and computed earlier."""
    return (not eqn.effects and eqn.primitive.name not in DISTINCT
            and all(isinstance(v.aval, ShapedArray) for v in (*eqn.invars, *eqn.outvars)))


def _worth_keeping(eqn: JaxprEqn) -> bool:
    """Whether a loop gains when it reads an equation's results instead of computing them."""
    name = eqn.primitive.name
    if name in COSTLY:
        return sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars) <= CACHED
    return name not in CHEAP and name != "while"  # which may never end, in a loop that may never begin


def _literal_key(a: Literal) -> Any:
    value = np.asarray(a.val)
    return value.tobytes(), value.dtype, a.aval.dtype, a.aval.weak_type


class _Simplifier:
    """Writes one program anew."""

    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.by_constant: dict[int, Var] = {}
        self.computed: dict[Any, Sequence[Var]] = {}
        self.region = 0  # equations are merged with those of the same region
        self.regions = 0

    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        old = closed.jaxpr
        args = [*self.constants(closed), *old.invars]
        outvars = self.inline(old, args)
        new = Jaxpr(self.constvars, old.invars, outvars, self.eqns, None, old.debug_info)
        if any(e.primitive.name in ("scan", "while", "cond") for e in self.eqns):
            new, _ = dce_jaxpr(new, [True] * len(outvars), True)
        return ClosedJaxpr(maybe_check(new), self.consts)

    def constants(self, closed: ClosedJaxpr) -> list[Var]:
        out = []
        for value, v in zip(closed.consts, closed.jaxpr.constvars, strict=True):
            found = self.by_constant.get(id(value))
            if found is None:
                found = self.by_constant[id(value)] = Var(v.aval)
                self.constvars.append(found)
                self.consts.append(value)
            out.append(found)
        return out

    def inline(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Adds a program's equations; its results."""
        env: dict[Any, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        for eqn in jaxpr.eqns:
            ins = [v if type(v) is Literal else env[v] for v in eqn.invars]
            env.update(zip(eqn.outvars, self.equation(eqn, ins), strict=True))
        return [v if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        name = eqn.primitive.name
        if name in CALLS:
            inner = CALLS[name](eqn.params)
            closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
            with self.apart(bool(eqn.params.get("prevent_cse"))):
                return self.inline(closed.jaxpr, [*self.constants(closed), *ins])
        if name == "scan":
            return self.scan(eqn, ins)
        if name == "while":
            return self.while_(eqn, ins)
        if name == "cond":
            branches = tuple(map(simplify, eqn.params["branches"]))
            eqn = eqn.replace(params={**eqn.params, "branches": branches})
        return self.add(eqn, ins)

    @contextmanager
    def apart(self, really: bool) -> Iterator[None]:
        before = self.region
        if really:
            self.regions += 1
            self.region = self.regions
        yield
        self.region = before

    def add(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Var]:
        """Adds an equation, or finds the results of an equal one."""
        key = None
        if is_pure(eqn):
            atoms = tuple(_literal_key(a) if type(a) is Literal else a for a in ins)
            params = params_key(eqn.params), tuple(map(type, eqn.params.values()))  # 1 and True are equal keys
            key = (eqn.primitive, atoms, params, self.region, tuple(v.aval for v in eqn.outvars))
            found = self.computed.get(key)
            if found is not None:
                return found
        outvars = [Var(v.aval) for v in eqn.outvars]
        self.eqns.append(eqn.replace(invars=ins, outvars=outvars))
        if key is not None:
            self.computed[key] = outvars
        return outvars

    # -- loops -------------------------------------------------------------------------------------
    def scan(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        p = eqn.params
        loop = _Loop(simplify(p["jaxpr"]), ins, p["num_consts"], p["num_carry"])
        fixed = loop.fix_carries()
        if p["length"] != 0:
            self.take_out(loop)
            self.take_rows_out(loop, p["length"])
        new = eqn.replace(outvars=[v for k, v in enumerate(eqn.outvars) if k not in fixed], params={
            **p, "jaxpr": loop.closed(), "num_consts": loop.num_consts, "num_carry": loop.num_carry})
        return _with_fixed(self.add(new, loop.ins), fixed, len(eqn.outvars))

    def while_(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        p = eqn.params
        n = p["cond_nconsts"]
        loop = _Loop(simplify(p["body_jaxpr"]), ins[n:], p["body_nconsts"], len(ins) - n - p["body_nconsts"])
        fixed = loop.fix_carries()
        self.take_out(loop)
        cond, cond_ins = simplify(p["cond_jaxpr"]), list(ins[:n])
        if fixed:
            carried = cond.jaxpr.invars[n:]
            invars = [*cond.jaxpr.invars[:n], *(carried[k] for k in fixed),
                      *(v for k, v in enumerate(carried) if k not in fixed)]
            cond, cond_ins = ClosedJaxpr(cond.jaxpr.replace(invars=invars), cond.consts), [*cond_ins, *fixed.values()]
        new = eqn.replace(outvars=[v for k, v in enumerate(eqn.outvars) if k not in fixed], params={
            **p, "cond_jaxpr": cond, "cond_nconsts": len(cond_ins), "body_jaxpr": loop.closed(),
            "body_nconsts": loop.num_consts})
        return _with_fixed(self.add(new, [*cond_ins, *loop.ins]), fixed, len(eqn.outvars))

    def take_out(self, loop: _Loop) -> None:
        """Computes here what a loop would compute alike at each turn."""
        moved = loop.invariants()
        if not moved:
            return
        env: dict[Any, Atom] = dict(zip(loop.constvars, self.constants(loop.body), strict=True))
        env.update(zip(loop.invars[:loop.num_consts], loop.ins, strict=False))
        for eqn in moved:
            ins = [v if type(v) is Literal else env[v] for v in eqn.invars]
            env.update(zip(eqn.outvars, self.equation(eqn, ins), strict=True))
        loop.remove(moved, env)


    def take_rows_out(self, loop: _Loop, length: int) -> None:
        """Multiplies all rows at once, where each turn multiplies one of its own with a matrix that does not change."""
        products = loop.products_of_rows(length)
        if not products:
            return
        env: dict[Any, Atom] = dict(zip(loop.constvars, self.constants(loop.body), strict=True))
        env.update(zip(loop.invars, loop.ins, strict=True))
        for eqn in products:
            (left, right), none = eqn.params["dimension_numbers"]
            out = eqn.outvars[0].aval
            whole = eqn.replace(outvars=[Var(out.update(shape=(length, *out.shape)))], params={
                **eqn.params, "dimension_numbers": ((tuple(d + 1 for d in left), right), none)})
            loop.feed(eqn, self.add(whole, [env[v] for v in eqn.invars])[0])


def _with_fixed(outs: Sequence[Atom], fixed: dict[int, Atom], count: int) -> list[Atom]:
    rest = iter(outs)
    return [fixed[k] if k in fixed else next(rest) for k in range(count)]


class _Loop:
    """A loop's body and operands: constants, then carries, then what each turn has of its own."""

    def __init__(self, body: ClosedJaxpr, ins: Sequence[Atom], num_consts: int, num_carry: int):
        self.body = body
        self.constvars = body.jaxpr.constvars
        self.invars = list(body.jaxpr.invars)
        self.outvars = list(body.jaxpr.outvars)
        self.eqns = body.jaxpr.eqns
        self.ins = list(ins)
        self.num_consts = num_consts
        self.num_carry = num_carry

    def closed(self) -> ClosedJaxpr:
        if self.eqns is self.body.jaxpr.eqns and self.invars == self.body.jaxpr.invars:
            return self.body
        return ClosedJaxpr(Jaxpr(self.constvars, self.invars, self.outvars, self.eqns, None,
                                 self.body.jaxpr.debug_info.replace(arg_names=(), result_paths=())), self.body.consts)

    def fix_carries(self) -> dict[int, Atom]:
        """Makes constants of carries that never change: their numbers, and their values."""
        n, carried = self.num_consts, self.invars[self.num_consts:self.num_consts + self.num_carry]
        fixed = {k: self.ins[n + k] for k, v in enumerate(carried) if self.outvars[k] is v}
        if fixed:
            order = [*range(n), *(n + k for k in fixed), *(k for k in range(n, len(self.invars)) if k - n not in fixed)]
            self.invars = [self.invars[k] for k in order]
            self.ins = [self.ins[k] for k in order]
            self.outvars = [v for k, v in enumerate(self.outvars) if k not in fixed]
            self.num_consts += len(fixed)
            self.num_carry -= len(fixed)
        return fixed

    def invariants(self) -> list[JaxprEqn]:
        """The equations that give the same at each turn, as far as keeping their results is worth it."""
        steady = {*self.constvars, *self.invars[:self.num_consts]}
        candidates = []
        for eqn in self.eqns:
            if is_pure(eqn) and all(type(v) is Literal or v in steady for v in eqn.invars):
                steady.update(eqn.outvars)
                candidates.append(eqn)
        needed: set[Any] = set()
        moved = []
        for eqn in reversed(candidates):
            if _worth_keeping(eqn) or any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is not Literal)
                moved.append(eqn)
        return moved[::-1]

    def products_of_rows(self, length: int) -> list[JaxprEqn]:
        """The equations that multiply what a turn has of its own with a constant, as far as there is room for all."""
        constants = {*self.constvars, *self.invars[:self.num_consts]}
        rows = set(self.invars[self.num_consts + self.num_carry:])
        found = []
        for eqn in self.eqns:
            if eqn.primitive.name != "dot_general" or not is_pure(eqn) or eqn.params.get("out_sharding") is not None:
                continue
            (row, matrix), out = eqn.invars, eqn.outvars[0].aval
            if row in rows and matrix in constants and eqn.params["dimension_numbers"][1] == ((), ()) and (
                    out.size <= GROWTH * row.aval.size and length * out.size * out.dtype.itemsize <= ROOM):
                found.append(eqn)
        return found

    def feed(self, eqn: JaxprEqn, rows: Atom) -> None:
        """Leaves an equation out: its results come from outside, a row for each turn."""
        self.eqns = [e for e in self.eqns if e is not eqn]
        self.invars.append(eqn.outvars[0])
        self.ins.append(rows)

    def remove(self, moved: Sequence[JaxprEqn], values: dict[Any, Atom]) -> None:
        """Leaves out equations whose results, as far as the rest reads them, come from outside."""
        gone = set(map(id, moved))
        self.eqns = [eqn for eqn in self.eqns if id(eqn) not in gone]
        read = {v for eqn in self.eqns for v in eqn.invars if type(v) is not Literal}
        read.update(v for v in self.outvars if type(v) is not Literal)
        new = [v for eqn in moved for v in eqn.outvars if v in read]
        n = self.num_consts
        self.invars[n:n] = new
        self.ins[n:n] = [values[v] for v in new]
        self.num_consts += len(new)


__all__ = ["CALLS", "simplify"]
