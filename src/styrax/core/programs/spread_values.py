"""Programs as sharding propagation sees them: values with mesh axes at their dimensions, and operations with factors.

Calls and branches stand inline, a loop is one turn of its body whose carry begins as what enters it or as a turn
leaves it. Constants, and scalars as arrays, are made anew for each that reads them, so that one reader does not tell
another how it is spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays.shardings import UNCONSTRAINED, NamedSharding, axes_of
from .factors import Factors, apart, elementwise
from .jaxpr import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from .primitive import Primitive
from .traits import Control

Entries = tuple[Any, ...]  # of a `PartitionSpec`, one for each dimension
Refine = Callable[[NamedSharding], Entries]
_DEEP = 8  # constants of longer computations are not made anew


class Value:
    """What a program computes: the mesh axes at its dimensions, and which dimensions take no more."""

    __slots__ = ("axes", "closed", "given", "size", "wanted", "operations", "reads")

    def __init__(self, shape: Sequence[Any], entries: Entries | None = None):
        self.axes: list[tuple[Any, ...]] = [()] * len(shape)
        self.closed = [False] * len(shape)
        self.given = entries is not None
        self.size = 1
        for d in shape:
            self.size *= d if isinstance(d, int) else 1
        self.wanted: list[Entries] = []  # what constraints say of it
        self.operations: list[Operation] = []
        self.reads = 0
        if entries is not None:
            self.tell(entries)

    def again(self) -> Value:
        """The same value where others read it."""
        made = Value(())
        made.axes, made.closed, made.given, made.size = self.axes, self.closed, self.given, self.size
        made.wanted, made.operations = self.wanted, self.operations
        return made

    def tell(self, entries: Entries) -> None:
        """Has the value be spread so, but for dimensions of which nothing is said."""
        for d, entry in enumerate(entries[:len(self.axes)]):
            self.closed[d] = entry is not UNCONSTRAINED
            self.axes[d] = () if entry is UNCONSTRAINED else axes_of(entry)
        for d in range(len(entries), len(self.axes)):
            self.closed[d] = True


class Operation:
    """An operation on values whose dimensions consist of factors.

    Attributes:
      shared: the factors of several values.
      at: for each factor the places (number of the value, dimension, number in the dimension) that it stands at.
      dims: for each value the factors of each dimension.
      sizes: of the factors.
      late: the factors that are followed last.
      edge: whether results are operands by another name.
    """

    __slots__ = ("values", "count", "at", "shared", "dims", "sizes", "late", "passing", "spread", "edge", "waits",
                 "done")

    def __init__(self, values: Sequence[Value], count: int, factors: Factors, shapes: Sequence[Sequence[Any]]):
        self.values = values
        self.count = count  # of operands
        self.passing = factors.passing
        self.spread = factors.spread
        self.edge = not factors.reads
        self.waits = False  # to be followed
        self.done: Any = None  # the directions in which it was followed since its values changed last
        numbers: dict[Any, int] = {}
        self.at: list[list[tuple[int, int, int]]] = []
        self.sizes: list[int] = []
        self.dims: list[list[tuple[int, ...]]] = []
        for k, dims in enumerate((*factors.operands, *factors.results)):
            found: list[tuple[int, ...]] = []
            for d, entry in enumerate(dims):
                labels = entry if isinstance(entry, list) else [] if entry is None else [entry]
                for place, label in enumerate(labels):
                    n = numbers.setdefault(label, len(numbers))
                    if n == len(self.at):
                        self.at.append([])
                        self.sizes.append(0)
                    self.at[n].append((k, d, place))
                    size = factors.sizes.get(label, shapes[k][d])
                    self.sizes[n] = max(self.sizes[n], size if isinstance(size, int) else 0)
                found.append(tuple(numbers[x] for x in labels))
            self.dims.append(found)
        self.late = {numbers[x] for x in factors.late if x in numbers}
        self.shared = [n for n, places in enumerate(self.at) if len(places) > 1]


class Graph:
    """The values and operations of a program.

    Args:
      refine: the entries of a sharding in the axes that propagation knows.
    """

    def __init__(self, refine: Refine):
        self.refine = refine
        self.operations: list[Operation] = []
        self.constrained: list[Value] = []
        self.asked: list[tuple[JaxprEqn, Value]] = []  # of which programs ask how they are spread

    # -- values ------------------------------------------------------------------------------------
    def value(self, aval: Any, entries: Entries | None = None) -> Value:
        return Value(getattr(aval, "shape", ()), entries)

    def operation(self, operands: Sequence[Value], results: Sequence[Value], factors: Factors,
                  shapes: Sequence[Sequence[Any]]) -> None:
        """Adds an operation, where it has anything to say."""
        values = [*operands, *results]
        made = Operation(values, len(operands), factors, shapes)
        if not made.shared:
            return
        self.operations.append(made)
        for v in dict.fromkeys(values):
            v.operations.append(made)

    def same(self, sources: Sequence[Value], targets: Sequence[Value], aval: Any) -> None:
        """Has values be spread as those that they are one of."""
        shape = getattr(aval, "shape", ())
        if shape:
            dims = [range(len(shape))] * (len(sources) + len(targets))
            self.operation(sources, targets, Factors(dims[:len(sources)], dims[len(sources):], passing=True, reads=0),
                           [shape] * len(dims))

    # -- programs ----------------------------------------------------------------------------------
    def program(self, jaxpr: Jaxpr, arguments: Sequence[Value]) -> list[Value]:
        """Adds a program; its results."""
        known: dict[Var, Any] = dict(zip(jaxpr.invars, arguments, strict=True))
        for v in jaxpr.constvars:
            known[v] = Again(self, None, v, (), 0, True)

        def read(x: Any) -> Value:
            if isinstance(x, Literal):
                return self.value(x.aval)
            found = known[x] if x in known else self.value(x.aval)
            return found() if isinstance(found, Again) else found

        for eqn in jaxpr.eqns:
            again = self._again(eqn, known)
            if again is not None:
                known[eqn.outvars[0]] = again
                continue
            constant = [isinstance(x, Literal) or isinstance(known[x], Again) for x in eqn.invars]
            outs = self.equation(eqn, [read(x) for x in eqn.invars], constant)
            known.update(zip(eqn.outvars, outs, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def _again(self, eqn: JaxprEqn, known: Mapping[Var, Any]) -> Again | None:
        """How a constant, or a scalar as an array, is made anew; None for what depends on arrays."""
        if len(eqn.outvars) != 1 or told_sharding(eqn.params) is not None or next(
                iter(jaxprs_in_params(eqn.params)), None) is not None or eqn.primitive.traits.distinct:
            return None
        found = [None if isinstance(x, Literal) else known[x] for x in eqn.invars]
        read = [f for f in found if f is not None]
        deep = 1 + sum(f.deep for f in read if isinstance(f, Again))
        out: Any = eqn.outvars[0].aval
        constant = all(isinstance(f, Again) and f.constant for f in read)
        if constant:
            if getattr(out, "shape", ()) and (deep > _DEEP or not eqn.primitive.traits.movement and any(
                    x.aval.size > out.size for x in eqn.invars)):
                return None
        elif any(getattr(x.aval, "shape", ()) for x in eqn.invars) or not eqn.primitive.traits.movement:
            return None
        return Again(self, eqn, eqn.outvars[0], found, deep, constant)

    def equation(self, eqn: JaxprEqn, operands: Sequence[Value], constant: Sequence[bool] = ()) -> list[Value]:
        """Adds an equation; its results."""
        inner = list(jaxprs_in_params(eqn.params))
        control = eqn.primitive.traits.control
        if control is Control.COND:
            return self._branches(eqn, inner, operands)
        if control is Control.SCAN:
            return self._scan(eqn, inner[0], operands)
        if control is Control.WHILE:
            consts = eqn.params["cond_nconsts"]
            carries = consts + eqn.params["body_nconsts"]
            return self._turns(eqn.params["body_jaxpr"].jaxpr, operands[consts:carries], operands[carries:], [])[0]
        if inner and "const_lengths" in eqn.params:  # solvers: what is solved by
            first = sum(eqn.params["const_lengths"][:2])
            count = eqn.params["const_lengths"].solve
            used = [*operands[first:first + count], *operands[sum(eqn.params["const_lengths"]):]]
            return self.program(eqn.params["jaxprs"].solve.jaxpr, used)
        if inner and len(inner[0].invars) == len(operands) and len(inner[0].outvars) == len(eqn.outvars):
            return self._call(eqn, inner[0], operands)
        if eqn.primitive.asks_sharding:
            self.asked.append((eqn, operands[0]))
        params = eqn.params
        windows = eqn.primitive.traits.windows
        if windows is not None and eqn.primitive.traits.movement:
            if all(constant[windows([x.aval for x in eqn.invars], params).operands]):
                params = {**params, "fixed": True}
        return self.simple(eqn.primitive, [x.aval for x in eqn.invars], operands, [v.aval for v in eqn.outvars], params)

    def simple(self, primitive: Primitive, avals: Sequence[Any], operands: Sequence[Value], outs: Sequence[Any],
               params: Mapping[str, Any]) -> list[Value]:
        """Adds an operation of a primitive; its results."""
        told = told_sharding(params)
        if told is not None:
            return self._told(told, avals, operands, outs, params)
        results = [self.value(x) for x in outs]
        rule = primitive.traits.factors or (elementwise if primitive.traits.elementwise else apart)
        shapes = [getattr(x, "shape", ()) for x in (*avals, *outs)]
        reads = 1
        if primitive.traits.elementwise:
            operands = [self._repeated(x, a, outs[0]) for x, a in zip(operands, avals, strict=True)]
            avals = [outs[0] if a.shape else a for a in avals]
            shapes[:len(avals)] = [a.shape for a in avals]
        if any(shapes[:len(avals)]) and any(shapes[len(avals):]) and rule is not apart:
            found = rule(avals, outs, **params)
            for factors in found if isinstance(found, list) else [found]:
                reads = factors.reads
                self.operation(operands, results, factors, shapes)
        for x in operands:
            x.reads += reads
        return results

    def _repeated(self, x: Value, aval: Any, out: Any) -> Value:
        """An operand of an elementwise operation in the shape of the result."""
        if aval.shape == out.shape or not aval.shape:
            return x
        made = self.value(out)
        kept = [d if n == m else None for d, (n, m) in enumerate(zip(aval.shape, out.shape, strict=True))]
        self.operation([x], [made], Factors([kept], [kept], spread=True), [aval.shape, out.shape])
        return made

    def _told(self, told: NamedSharding, avals: Sequence[Any], operands: Sequence[Value], outs: Sequence[Any],
              params: Mapping[str, Any]) -> list[Value]:
        """The results of an operation that is told how they are spread."""
        entries = self.refine(told)
        free = params.get("unconstrained_dims") or ()
        entries = tuple(UNCONSTRAINED if d in free else e for d, e in enumerate(entries))
        results = [self.value(x, entries) for x in outs]
        for x in operands:
            x.reads += 1
        for aval, x, out, y in zip(avals, operands, outs, results, strict=False):
            if getattr(aval, "shape", ()) == getattr(out, "shape", ()):
                self._constrained(x, y, aval, entries)
        return results

    def _constrained(self, x: Value, result: Value, aval: Any, entries: Entries) -> None:
        """Has a value be spread as it is told, as `result`."""
        self.operation([x], [result], elementwise([aval], [aval]), [aval.shape] * 2)
        x.wanted.append(entries)
        self.constrained.append(x)

    def _call(self, eqn: JaxprEqn, inner: Jaxpr, operands: Sequence[Value]) -> list[Value]:
        """The results of a call, which may be told how its arguments and results are spread."""

        def told(values: Sequence[Value], avals: Sequence[Any], shardings: Sequence[Any]) -> list[Value]:
            out = list(values)
            for i, (x, aval, sharding) in enumerate(zip(values, avals, shardings, strict=False)):
                if isinstance(sharding, NamedSharding):
                    entries = self.refine(sharding)
                    x.reads += 1
                    out[i] = self.value(aval, entries)
                    self._constrained(x, out[i], aval, entries)
            return out

        arguments = told(operands, inner.in_avals, eqn.params.get("in_shardings") or ())
        return told(self.program(inner, arguments), inner.out_avals, eqn.params.get("out_shardings") or ())

    def constrain(self, arguments: Sequence[Value]) -> None:
        """Has values other than arguments that one constraint alone tells of be spread so from the beginning."""
        for x in self.constrained:
            if not x.given and x not in arguments and len(set(x.wanted)) == 1 and UNCONSTRAINED not in x.wanted[0]:
                x.tell(x.wanted[0])

    # -- control flow ------------------------------------------------------------------------------
    def _branches(self, eqn: JaxprEqn, branches: Sequence[Jaxpr], operands: Sequence[Value]) -> list[Value]:
        each = [self.program(branch, operands[1:]) for branch in branches]
        for x in (x for outs in each for x in outs):
            x.reads += 1
        results = [self.value(v.aval) for v in eqn.outvars]
        for v, result, sources in zip(eqn.outvars, results, zip(*each, strict=True), strict=True):
            self.same(sources, [result], v.aval)
        return results

    def _scan(self, eqn: JaxprEqn, body: Jaxpr, operands: Sequence[Value]) -> list[Value]:
        consts, carries = eqn.params["num_consts"], eqn.params["num_carry"]
        rows = []
        for x, v in zip(operands[consts + carries:], body.invars[consts + carries:], strict=True):
            rows.append(self._row(x, v.aval, inward=True))
        carry, outs = self._turns(body, operands[:consts], operands[consts:consts + carries], rows)
        return [*carry, *(self._row(x, v.aval, inward=False)
                          for x, v in zip(outs[carries:], body.outvars[carries:], strict=True))]

    def _row(self, x: Value, aval: Any, *, inward: bool) -> Value:
        """The row of an array that a turn is given, or the array of the rows that turns leave."""
        shape = getattr(aval, "shape", ())
        dims = [range(len(shape)), (None, *range(len(shape)))]
        shapes = [shape, (1, *shape)]
        x.reads += 1
        made = self.value(aval) if inward else Value(shapes[1])
        if inward:
            dims, shapes = dims[::-1], shapes[::-1]
        self.operation([x], [made], Factors(dims[:1], dims[1:], passing=True), shapes)
        return made

    def _turns(self, body: Jaxpr, consts: Sequence[Value], begin: Sequence[Value], rows: Sequence[Value]
               ) -> tuple[list[Value], list[Value]]:
        """The carry of a loop, and what a turn gives."""
        avals = [v.aval for v in body.invars[len(consts):len(consts) + len(begin)]]
        carry = [self.value(a) for a in avals]
        outs = self.program(body, [*consts, *carry, *rows])
        for x, c, out, aval in zip(begin, carry, outs, avals, strict=False):
            x.reads += 1
            out.reads += 1
            self.same([x, out], [c], aval)
        return [c.again() for c in carry], outs


class Again:
    """A constant, which is made anew for each that reads it."""

    __slots__ = ("graph", "eqn", "var", "operands", "deep", "constant")

    def __init__(self, graph: Graph, eqn: JaxprEqn | None, var: Var, operands: Sequence[Any], deep: int,
                 constant: bool):
        self.graph = graph
        self.eqn = eqn
        self.var = var
        self.operands = operands
        self.deep = deep
        self.constant = constant

    def __call__(self) -> Value:
        if self.eqn is None:
            return self.graph.value(self.var.aval)
        operands = [x() if isinstance(x, Again) else self.graph.value(v.aval) if x is None else x
                    for x, v in zip(self.operands, self.eqn.invars, strict=True)]
        return self.graph.equation(self.eqn, operands)[0]


def told_sharding(params: Mapping[str, Any]) -> NamedSharding | None:
    """The sharding of its result that an operation is told."""
    for name in ("sharding", "out_sharding", "dst_sharding"):
        wanted = params.get(name)
        if isinstance(wanted, NamedSharding):
            return wanted
    for wanted in params.get("devices") or () if "copy_semantics" in params else ():
        if isinstance(wanted, NamedSharding):
            return wanted
    return None


__all__ = ["Entries", "Graph", "Operation", "Value", "told_sharding"]
