"""Jaxprs to operations: each equation's lowering rule is given values and gives values.

Calls are inlined; `cond`, `while` and `scan` become regions whose blocks are lowered in place, with small carries
in registers and scanned inputs and outputs reached by index. Before, and after:

    { lambda ; a:f32[20,30]. let
        b:f32[20] = reduce_sum[axes=(1,) out_sharding=None] a
        c:f32[20,1] = broadcast_in_dim[broadcast_dimensions=(0,)] b
        d:f32[20,30] = broadcast_in_dim[broadcast_dimensions=(0, 1)] c
        e:f32[20,30] = div a d
      in (e,) }

    reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      t0[i0] = a0
    point[i2, i3] out0[(30*i2 + i3)] = div(arg0[(30*i2 + i3)], t0[i2])
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.programs import rules
from ...core.programs.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from ...core.programs.places import Origin
from ...core.programs.traits import Control
from ...core.settings import config
from ...core.types import dtypes
from ...core.types.avals import AbstractToken, ShapedArray
from ...core.types.dims import is_generic
from ...core.types.index_type import ScalarType
from ..costs import MEMBERS, RECORD, WORTH_KEEPING, WORTH_REPEATING, WORTH_STORING
from ..ir.expr import BOOL, COSTS, Expr, Index, unwrap, walk
from ..ir.loopir import Buffer, BufferKind, Declare, Let, Loop, Set, Store, Switch, While
from ..ir.placement import root
from ..ir.values import Computed, Opaque, Operation, Region, Scalar, Stored, Token, Value, is_empty
from ..jaxprs.rewriting import called
from ..program import Program
from . import induction, interchange
from .builder import MAX_DEPTH, MAX_WORK, Builder
from .reuse import UNUSED, Uses, count_uses
from .rewrites import LEVELS


def run(program: Program) -> Program:
    """jaxpr → operations: what is computed, element by element."""
    b = Builder(LEVELS[config.states["styrax_numerics"].value], program.vector_bytes, program.kernels)
    number = 0

    def argument(aval: Any, kind: BufferKind, donated: bool = False) -> tuple[Buffer | None, Value]:
        nonlocal number
        if isinstance(aval, AbstractToken):
            return None, Token()
        dtype = physical_dtype(aval)
        shape = tuple(map(b.extent, aval.shape))
        if aval.dtype == dtypes.float0:  # no bytes, no memory
            return None, b.value(shape, dtype, lambda _: b.const(False, dtype))
        buffer = b.buffer(dtype, b.product(shape), kind, number, kind.value, donated)
        number += 1
        return buffer, Stored(b, buffer, shape, dtype)

    inputs: list[Buffer | None] = []
    args: list[Value] = []
    for i, aval in enumerate(program.closed.in_avals):
        buffer, value = argument(aval, BufferKind.ARG, bool(program.donated and program.donated[i]))
        inputs.append(buffer)
        args.append(value)
    known: dict[int, Value] = {}
    constants: list[tuple[Buffer, Any]] = []

    def constant(value: Any, aval: Any) -> Value:
        found = known.get(id(value))
        if found is None and isinstance(aval, AbstractToken):
            return Token()
        if found is None and aval.shape == () and isinstance(aval.dtype, np.dtype) and aval.dtype != dtypes.float0:
            # a number of the program, as its literals are
            found = known[id(value)] = lowering.literal(Literal(np.asarray(value)[()], aval))
        if found is None:
            buffer, found = argument(aval, BufferKind.CONST)
            known[id(value)] = found
            if buffer is not None:
                constants.append((buffer, value))
        return found

    lowering = Lowering(b, constant, program.generic)
    results = lowering.closed(program.closed, args)
    outputs: list[Buffer | None] = []
    for aval, result in zip(program.closed.out_avals, results, strict=True):
        b.declarations.origin = lowering.origins.get(result)
        buffer, target = (None, None) if isinstance(result, Token) else argument(aval, BufferKind.OUT)
        outputs.append(buffer)
        if not isinstance(target, Stored):
            continue
        if aval.shape == ():
            b.ops.append(Opaque([Store(target.buffer, b.int(0), result.at(()))]))
        else:
            b.write(target, result)
    b.declarations.origin = None
    # No cycles are left, which would keep what the program holds until the garbage collector runs.
    del b.inline, b.constant, lowering.constant
    return program.replace(builder=b, operations=b.ops, inputs=inputs, constants=constants, outputs=outputs,
                           placement=program.placement._replace(aliases=b.aliases))


NO_PLACES: Mapping[Var, Stored] = {}


class Lowering:
    """Lowers one program into a builder. `constant` gives the value of a constant of the program, `generic` says
    whether sizes are known only at run time."""

    def __init__(self, builder: Builder, constant: Callable[[Any, Any], Value], generic: bool = False):
        self.b = builder
        self.constant = constant
        self.generic = generic
        self.origins: dict[Value, Origin] = {}  # the innermost equations that gave values
        builder.inline = lambda closed, *args: self.closed(closed, args)
        builder.constant = lambda array: constant(array, ShapedArray(array.shape, array.dtype))

    def closed(self, closed: ClosedJaxpr, args: Sequence[Value], places: Mapping[Var, Stored] = NO_PLACES
               ) -> list[Value]:
        consts = [self.constant(c, v.aval) for c, v in zip(closed.consts, closed.jaxpr.constvars, strict=True)]
        return self.jaxpr(closed.jaxpr, [*consts, *args], places)

    def sized(self, aval: Any) -> Any:
        if not self.generic or not is_generic(getattr(aval, "shape", ())):
            return aval
        return Sized(tuple(map(self.b.extent, aval.shape)), aval.dtype, aval.weak_type)

    def jaxpr(self, jaxpr: Jaxpr, args: Sequence[Value], places: Mapping[Var, Stored] = NO_PLACES) -> list[Value]:
        """Lowers a program's equations; `args` are its constants and inputs. What is stored and has one of `places`
        is stored there."""
        env: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        uses = count_uses(jaxpr)

        def read(a: Any) -> Value:
            return self.literal(a) if type(a) is Literal else env[a]

        declarations = self.b.declarations
        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.invars]
            origin = declarations.origin = eqn.primitive.name, eqn.source_info
            outs = self.equation(eqn, ins)
            declarations.origin = origin
            for v, value in zip(eqn.outvars, outs, strict=True):
                kept = env[v] = self.keep(value, uses.get(v, UNUSED), places.get(v))
                self.origins.setdefault(kept, origin)
        return [read(a) for a in jaxpr.outvars]

    def literal(self, a: Literal) -> Value:
        dtype = physical_dtype(a.aval)
        e = self.b.const(False if a.aval.dtype == dtypes.float0 else a.val, dtype)
        return self.b.value((), dtype, lambda _: e)

    def zeros(self, aval: Any) -> Value:
        dtype = physical_dtype(aval)
        zero = self.b.const(0, dtype)
        return self.b.value(tuple(map(self.b.extent, aval.shape)), dtype, lambda _: zero)

    def keep(self, value: Value, uses: Uses, place: Stored | None = None) -> Value:
        """Decides whether a value is stored now, at `place` if it has one, or inlined into its users."""
        if not isinstance(value, Computed):
            return value
        often, apart = uses.value, uses.members
        if uses.element < often and (apart is not None or value.cost <= WORTH_REPEATING) and not value.gathers:
            often = uses.element
        if value.depth > MAX_DEPTH:
            return self.b.materialize(value)
        limit = WORTH_STORING if often == 2 and not uses.often and not value.gathers else WORTH_KEEPING
        again = often > 1 and value.cost >= limit or uses.value > 1 and value.work > MAX_WORK
        if again or value.shape == () and value.cost > 0 and (often > 1 or value.depth > 8):
            if value.condition is not None:  # it is what is stored, so that products with it are choices
                return self.b.factors(self.b.materialize(value.condition), value.dtype)
            if apart is not None and not value.gathers:
                return self.b.apart(value, apart)
            if place is None:
                return self.b.materialize(value)
            self.b.write(place, value, joining=True)
            return place
        return value

    def equation(self, eqn: JaxprEqn, ins: Sequence[Value]) -> Sequence[Value]:
        b = self.b
        program = called(eqn)
        if program is not None:
            inside = count_uses(program.jaxpr)
            return self.closed(program, [self.keep(x, inside.get(v, UNUSED))
                                         for x, v in zip(ins, program.jaxpr.invars, strict=True)])
        control = eqn.primitive.traits.control
        if control is None and not eqn.effects and all(
                isinstance(v.aval, ShapedArray) and is_empty(v.aval.shape) for v in eqn.outvars):
            # Nobody reads an element of it, and a rule might read elements of its operands that are not there.
            return [self.zeros(v.aval) for v in eqn.outvars]
        if control is not None:
            return regions[control](self, eqn, ins)
        rule = rules.loops.get(eqn.primitive)
        if rule is None:
            raise NotImplementedError(
                f"MLIR translation rule for primitive '{eqn.primitive.name}' not found for platform cpu: register one "
                "in styrax.core.programs.rules.loops (or, in a library, with jax.interpreters.mlir.register_lowering)")
        b.avals_in = [self.sized(v.aval) for v in eqn.invars]
        b.avals_out = [self.sized(v.aval) for v in eqn.outvars]
        b.unused = {k for k, v in enumerate(eqn.outvars) if type(v) is DropVar}
        if not self._reads_once(eqn, ins):
            by_number = self._read_by_number(eqn)
            ins = [v if k in by_number and self._members_cost_little(v) else self.prepare(v, b.avals_out)
                   for k, v in enumerate(ins)]
        params = eqn.params
        if self.generic:
            params = {k: b.resolved(v) for k, v in params.items()}
        outs = rule(b, *ins, **params)
        outs = list(outs) if eqn.primitive.multiple_results else [outs]
        depth = 1 + max((v.depth for v in ins), default=0)
        for v in outs:
            if isinstance(v, Computed):
                v.depth = depth
        return outs

    def _reads_once(self, eqn: JaxprEqn, ins: Sequence[Value]) -> bool:
        """Whether an equation's result needs no element of its operands twice. Members of records are computed side by
        side, and pieces in one nest, only where that is not much."""
        traits, avals = eqn.primitive.traits, [v.aval for v in eqn.invars]
        if traits.records is not None or traits.pieces is not None:
            out, computed = self.b.avals_out[0], [v for v in ins if isinstance(v, Computed)]
            return (traits.records is not None and traits.records(eqn.params, out) and _is_few(out.shape[-1])
                    or traits.pieces is not None and not self.generic and traits.pieces(avals, eqn.params)
                    and _share_little(computed)) and sum(v.cost for v in computed) <= RECORD
        return traits.once(avals, eqn.params) if callable(traits.once) else traits.once

    def _read_by_number(self, eqn: JaxprEqn) -> range:
        """The operands that are places where windows begin, of which each number is read for itself."""
        windows = eqn.primitive.traits.windows
        if windows is None:
            return range(0)
        return range(len(eqn.invars))[windows([v.aval for v in eqn.invars], eqn.params).operands]

    def _members_cost_little(self, value: Value) -> bool:
        """Whether records, of numbers that were joined say, are no dearer to read than to store, member by member."""
        if not isinstance(value, Computed) or not value.shape:
            return False
        count = value.shape[-1]
        if not isinstance(count, int) or not _is_few(count):
            return False
        return all(cost < WORTH_KEEPING for cost in value.members_cost(count))

    def prepare(self, value: Value, out_avals: Sequence[Any]) -> Value:
        """Stores an operand that a bigger result would compute again and again."""
        mine = self.b.product(value.shape) if isinstance(value, Computed) else 0
        if not isinstance(mine, int) or not isinstance(value, Computed):
            return value
        bigger = any(mine < math.prod(d for d in getattr(aval, "shape", ()) if isinstance(d, int))
                     for aval in out_avals)
        if not bigger or value.cost < WORTH_KEEPING:  # (the cost takes a look at all that the value is made of)
            return value
        self.b.declarations.origin = self.origins.get(value)
        return self.b.materialize(value)

    # -- blocks ------------------------------------------------------------------------------------
    def block(self, build: Callable[[], Any]) -> tuple[list[Operation], Any]:
        """The operations that `build` makes, apart from the current ones, and its result."""
        outside = self.b.ops
        inside: list[Operation] = []
        self.b.ops = inside
        try:
            result = build()
        finally:
            self.b.ops = outside
        return inside, result

    def turn(self, build: Callable[[], Any]) -> tuple[list[Operation], Any]:
        """The same of what a loop runs again and again."""
        self.b.loops += 1
        try:
            return self.block(build)
        finally:
            self.b.loops -= 1

    def fresh(self, value: Value) -> Value:
        """A value that later assignments to carries do not change."""
        return self.b.materialize(value) if isinstance(value, Computed) else value


class Sized:
    """An abstract value whose sizes are index expressions."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, shape: tuple[Index, ...], dtype: Any, weak_type: bool):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)


def physical_dtype(aval: Any) -> ScalarType:
    if aval.dtype == dtypes.float0:  # has no values: any will do
        return BOOL
    return aval.dtype if isinstance(aval.dtype, np.dtype) else np.dtype(np.uint32)


def _share_little(values: Sequence[Computed]) -> bool:
    """Whether values of one rank have hardly anything in common that would be computed again for each of them."""
    if len(values) < 2:
        return True
    index = values[0].builder.loop_vars(values[0].shape)
    elements = [v.looked_at(index) for v in values]

    def computing(exprs: Sequence[Expr]) -> int:
        return sum([COSTS.get(n.op, 1) for n in walk(exprs) if n.op != "load"])

    return sum([computing([e]) for e in elements]) - computing(elements) < WORTH_KEEPING


def _is_few(members: Index) -> bool:
    return isinstance(members, int) and 0 < members <= MEMBERS




Region_ = Callable[[Lowering, JaxprEqn, Sequence[Value]], Sequence[Value]]
class Carries:
    """The values that a loop carries: scalars in registers, arrays in buffers that are updated where they live."""

    def __init__(self, lowering: Lowering, initial: Sequence[Value]):
        self.lowering = lowering
        self.b = b = lowering.b
        self.places: list[Any] = []
        for value in initial:
            if isinstance(value, Token):
                self.places.append(value)
            elif value.shape == ():
                target = b.mutable(value.dtype, "c")
                parts = b.parts(value.at(()))
                b.ops.append(Opaque([Declare(t, e) for t, e in zip(b.parts(target), parts, strict=True)]))
                self.places.append(target)
            else:
                stored = Stored(b, b.buffer(value.dtype, b.product(value.shape), stem="c"), value.shape, value.dtype)
                b.write(stored, value)
                self.places.append(stored)

    def read(self) -> list[Value]:
        """The carries at the start of an iteration."""
        out: list[Value] = []
        for place in self.places:
            if isinstance(place, Expr):
                out.append(Scalar(self.named(place)))
            else:
                out.append(place)
        return out

    def named(self, target: Expr) -> Expr:
        b = self.b
        parts = []
        for t in b.parts(target):
            name = b.arena.unique("get", t.dtype, b.name("k"), t.bounds)
            b.ops.append(Opaque([Let(name, t)]))
            b.scalars.carried.add(name)
            parts.append(name)
        return b.complex(*parts) if len(parts) == 2 else parts[0]

    def update(self, values: Sequence[Value]) -> None:
        """Appends the assignments at the end of an iteration, all of them from the old values."""
        b = self.b
        kept: list[Value] = []
        for place, value in zip(self.places, values, strict=True):
            b.declarations.origin = self.lowering.origins.get(value)
            if isinstance(place, Stored):
                if isinstance(value, Stored) and value.buffer is place.buffer:
                    kept.append(value)
                    continue
                value = b.in_memory(value)
            kept.append(value)
        targets: list[Expr] = []
        exprs: list[Expr] = []
        for place, value in zip(self.places, kept, strict=True):
            if isinstance(place, Expr):
                targets += b.parts(place)
                exprs += b.parts(value.at(()))
        if targets:
            b.ops.append(Opaque([Set(targets, exprs)]))
        self._move({place: value for place, value in zip(self.places, kept, strict=True)
                    if isinstance(place, Stored) and value.buffer is not place.buffer})  # type: ignore[attr-defined]

    def _move(self, moves: dict[Stored, Any]) -> None:
        """Gives carried buffers their next values, each after what reads the old one (a parallel move, made
        sequential)."""
        b = self.b
        places = {place.buffer: place for place in moves}
        sources = {place: places.get(root(b.aliases, value.buffer)) for place, value in moves.items()}
        readers = Counter(filter(None, sources.values()))
        ready = deque(place for place in moves if not readers[place])
        while moves:
            place = ready.popleft() if ready else next(p for p in moves if sources[p])
            source = sources[place]
            if readers[place]:  # they change places
                value = moves[place]
                moves[place], sources[place] = b.materialize(value, b.buffer(value.dtype, b.product(value.shape))), None
            else:
                value = moves.pop(place)
                b.declarations.belongs(place.buffer, self.lowering.origins.get(value))
                b.write(place, value)
            if source is not None:
                readers[source] -= 1
                if not readers[source]:
                    ready.append(source)

    def results(self) -> list[Value]:
        out: list[Value] = []
        for place in self.places:
            out.append(Scalar(self.named(place)) if isinstance(place, Expr) else place)
        return out


def _split(values: Sequence[Value], *sizes: int) -> list[list[Value]]:
    out, at = [], 0
    for n in sizes:
        out.append(list(values[at:at + n]))
        at += n
    out.append(list(values[at:]))
    return out


def _while(lowering: Lowering, eqn: JaxprEqn, ins: Sequence[Value]) -> Sequence[Value]:
    p = eqn.params
    ins = [lowering.fresh(v) if isinstance(v, Computed) and v.cost > 0 else v for v in ins]
    cond_consts, body_consts, initial = _split(ins, p["cond_nconsts"], p["body_nconsts"])
    by_element = interchange.while_(lowering, eqn, cond_consts, body_consts, initial)
    if by_element is not None:
        return by_element
    carries = Carries(lowering, initial)
    b = lowering.b
    rank = len(p["cond_jaxpr"].out_avals[0].shape)  # a batched loop has one predicate for each example

    def predicate(state: Sequence[Value]) -> Value:
        (holds,) = lowering.closed(p["cond_jaxpr"], [*cond_consts, *state])
        return holds

    def head() -> Expr:
        holds = predicate(carries.read())
        if rank:
            each = holds
            (holds,) = b.reduce((), each.shape, [BOOL], "or", (b.const(False, BOOL),), lambda _, r: (each.at(r),))
        return b.materialize(holds).at(()) if isinstance(holds, Computed) and holds.cost else holds.at(())

    head_ops, condition = lowering.turn(head)

    def body() -> None:
        state = carries.read()
        new = lowering.closed(p["body_jaxpr"], [*body_consts, *state])
        if rank:
            holds = b.materialize(predicate(state))
            new = [b.value(x.shape, x.dtype, lambda i, x=x, old=old: b.select(  # type: ignore[misc]
                       holds.at(i[:rank]), x.at(i), old.at(i)))
                   for x, old in zip(new, state, strict=True)]
        carries.update(new)

    body_ops, _ = lowering.turn(body)
    lowering.b.ops.append(Region([head_ops, body_ops], lambda bodies: [While(bodies[0], condition, bodies[1], True)],
                                 exprs=[condition]))
    return carries.results()


def _scan(lowering: Lowering, eqn: JaxprEqn, ins: Sequence[Value]) -> Sequence[Value]:
    b = lowering.b
    p = eqn.params
    length = b.extent(p["length"])
    consts, initial, xs = _split(ins, p["num_consts"], p["num_carry"])
    consts = [lowering.fresh(v) if isinstance(v, Computed) and v.cost > 0 else v for v in consts]
    xs = [lowering.fresh(v) if isinstance(v, Computed) and v.cost > 0 else v for v in xs]
    closed = p["jaxpr"]
    y_avals = closed.out_avals[p["num_carry"]:]
    ys = [Stored(b, b.buffer(physical_dtype(a), b.product((length, *a.shape)), stem="y"), (length, *a.shape),
                 physical_dtype(a)) for a in y_avals]
    t = b.loop_var(length, "t")
    step = b.isub(b.isub(length, 1), t) if p["reverse"] else t

    def slice_at(x: Value) -> Value:
        if isinstance(x, Stored):
            offset = b.iadd(x.offset, b.imul(step, x.strides[0]))
            return Stored(b, x.buffer, x.shape[1:], x.dtype, x.strides[1:], offset)
        return b.value(x.shape[1:], x.dtype, lambda i: x.at((step, *i)))

    if length != 0:
        by_element = interchange.scan(lowering, eqn, consts, initial, xs, slice_at, ys, step, t)
        if by_element is not None:
            return [*by_element, *ys]
    inductions = induction.variables(closed, p["num_consts"], initial, length)
    carries = Carries(lowering, [x for k, x in enumerate(initial) if k not in inductions])

    def carried_at(turn: Index, others: Iterable[Value]) -> list[Value]:
        others = iter(others)
        return [inductions[k].at(b, turn) if k in inductions else next(others) for k in range(len(initial))]

    def body() -> None:
        args = [*consts, *carried_at(t, carries.read())]
        for x in xs:
            x_t = slice_at(x)
            if x_t.shape == ():
                x_t = b.materialize(Computed(b, (), x_t.dtype, lambda i, x_t=x_t: x_t.at(())))  # type: ignore[misc]
            args.append(x_t)
        targets = [Stored(b, y.buffer, y.shape[1:], y.dtype, y.strides[1:], b.imul(step, y.strides[0])) for y in ys]
        wanted = closed.jaxpr.outvars[p["num_carry"]:]
        carried = {v for v in closed.jaxpr.outvars[: p["num_carry"]] if type(v) is not Literal}
        places = {v: target for v, target in zip(wanted, targets, strict=True) if type(v) is not Literal
                  and target.shape != () and v not in carried}  # (carries exchange their memories)
        outs = lowering.closed(closed, args, places)
        new, rows = outs[: p["num_carry"]], outs[p["num_carry"]:]
        for target, row in zip(targets, rows, strict=True):
            if row is target:
                continue
            if row.shape == ():
                b.ops.append(Opaque([Store(target.buffer, b.index(target.offset), row.at(()))]))
            else:
                b.write(target, row, joining=True)
        carries.update([x for k, x in enumerate(new) if k not in inductions])

    if isinstance(length, int) and length == 0:
        return [*carried_at(0, carries.results()), *ys]
    ops, _ = lowering.turn(body)
    b.ops.append(Region([ops],
                        lambda bodies: [Loop(t, unwrap(length) if isinstance(length, Expr) else length, bodies[0])]))
    return [*carried_at(length, carries.results()), *ys]


def _cond(lowering: Lowering, eqn: JaxprEqn, ins: Sequence[Value]) -> Sequence[Value]:
    b = lowering.b
    branches = eqn.params["branches"]
    which, args = ins[0], [lowering.fresh(v) if isinstance(v, Computed) and v.cost > 0 else v for v in ins[1:]]
    if len(branches) == 1:
        return lowering.closed(branches[0], args)
    index = which.at(())
    limit = b.const(len(branches) - 1, index.dtype) if index.dtype != BOOL else None
    if limit is not None:
        index = b.min(b.max(index, b.const(0, index.dtype)), limit)
    else:
        index = b.cast(index, np.int32)
    outs: list[Any] = []
    for aval in branches[0].out_avals:
        if isinstance(aval, AbstractToken):
            outs.append(Token())
        elif aval.shape == ():
            target = b.mutable(physical_dtype(aval))
            b.ops.append(Opaque([Declare(t, None) for t in b.parts(target)]))
            outs.append(target)
        else:
            dtype = physical_dtype(aval)
            outs.append(Stored(b, b.buffer(dtype, b.product(aval.shape)), aval.shape, dtype))
    blocks = []
    for branch in branches:
        def body(branch: ClosedJaxpr = branch) -> None:
            results = lowering.closed(branch, args)
            targets: list[Expr] = []
            exprs: list[Expr] = []
            for out, value in zip(outs, results, strict=True):
                if isinstance(out, Expr):
                    targets += b.parts(out)
                    exprs += b.parts(value.at(()))
                elif isinstance(out, Stored):
                    b.write(out, value)
            if targets:
                b.ops.append(Opaque([Set(targets, exprs)]))

        ops, _ = lowering.block(body)
        blocks.append(ops)
    b.ops.append(Region(blocks, lambda bodies: [Switch(index, bodies)], exprs=[index]))
    holder = Carries.__new__(Carries)
    holder.lowering, holder.b, holder.places = lowering, b, outs
    return holder.results()


regions: dict[Control, Region_] = {Control.WHILE: _while, Control.SCAN: _scan, Control.COND: _cond}
