"""Sharding propagation: over which mesh axes values are spread where the compiler may choose, as XLA's Shardy finds it.

Mesh axes go along factors (see `factors`) from operands to results and back until nothing changes: first through
operations that leave elements where they are, then along the other factors. Where an axis could go to several
dimensions of a value, the factor that is cut most, or that the larger operand has, comes first. Values are right
whatever is found: on shared memory it says only which device has which part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays.mesh import AbstractMesh
from ..arrays.refined_meshes import told_in
from ..arrays.shardings import UNCONSTRAINED, axes_of
from ..types.avals import ShapedArray
from .jaxpr import ClosedJaxpr
from .primitive import Primitive
from .spread_values import Entries, Graph, Operation, Value, told_sharding

Axes = tuple[Any, ...]
Part = tuple[Any, int]  # of an axis: its name, and which of the prime factors of its size
_BACK, _ON = 1, 2  # directions: from results to operands, from operands to results


class Propagated:
    """What is found of a program's arguments, results, and values that it asks about."""

    __slots__ = ("arguments", "results", "asked")

    def __init__(self, arguments: list[Entries], results: list[Entries], asked: list[tuple[Any, Entries]]):
        self.arguments = arguments
        self.results = results
        self.asked = asked


class Parts:
    """The axes of a mesh in parts of prime sizes: dimensions that are cut or joined have parts of an axis."""

    def __init__(self, mesh: AbstractMesh):
        self.mesh = mesh
        self.of: dict[Any, tuple[Part, ...]] = {}
        self.sizes: dict[Part, int] = {}
        for name, size in mesh.shape.items():
            primes = _primes(size)
            self.of[name] = tuple((name, k) for k in range(len(primes)))
            self.sizes.update(zip(self.of[name], primes, strict=True))

    def refined(self, entries: Sequence[Any]) -> Entries:
        """Entries in parts of axes."""
        return tuple(e if e is UNCONSTRAINED else tuple(p for n in axes_of(e) for p in self.of.get(n, ()))
                     for e in entries)

    def whole(self, axes: Axes, d: Any) -> Any:
        """The axes of which all parts stand there, up to the first that does not or that does not divide the
        dimension, as an entry."""
        names: list[Any] = []
        count, at = 1, 0
        while at < len(axes):
            name = axes[at][0]
            count *= self.mesh.shape[name]
            if axes[at:at + len(self.of[name])] != self.of[name] or not isinstance(d, int) or d % count:
                break
            names.append(name)
            at += len(self.of[name])
        return (names[0] if len(names) == 1 else tuple(names)) if names else None

    def product(self, axes: Axes) -> int:
        count = 1
        for part in axes:
            count *= self.sizes[part]
        return count

    def entries(self, value: Value, aval: Any) -> Entries:
        """How a value is spread, in axes of the mesh."""
        if not isinstance(aval, ShapedArray):
            return ()
        return tuple(map(self.whole, value.axes, aval.shape))


def _primes(n: int) -> list[int]:
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found


def propagate(closed: ClosedJaxpr, mesh: AbstractMesh, given: Sequence[Entries | None],
              wanted: Sequence[Entries | None] = ()) -> Propagated:
    """Over which mesh axes the arguments and results of a program are spread.

    Args:
      given: the mesh axes at the dimensions of its arguments; None where the compiler chooses.
      wanted: the same of the results.
    """
    parts = Parts(mesh)
    graph = Graph(lambda told: parts.refined(told_in(told.spec.partitions, told.mesh, mesh)))
    arguments = _values(closed.in_avals, given, parts)
    results = graph.program(closed.jaxpr, arguments)
    for x, aval, e in zip(results, closed.out_avals, wanted, strict=False):
        if e is not None:
            graph.same([x], [Value(aval.shape, parts.refined(e))], aval)
    for x in results:
        x.reads += 1
    graph.constrain(arguments)
    _settle(graph, parts)
    return Propagated([parts.entries(x, a) for x, a in zip(arguments, closed.in_avals, strict=True)],
                      [parts.entries(x, a) for x, a in zip(results, closed.out_avals, strict=True)],
                      [(eqn, parts.entries(x, eqn.invars[0].aval)) for eqn, x in graph.asked])


def of_equation(primitive: Primitive, avals: Sequence[Any], given: Sequence[Entries | None], outs: Sequence[Any],
                params: Mapping[str, Any], mesh: AbstractMesh) -> list[Entries]:
    """Over which mesh axes the results of one operation are spread, by how its operands of types `avals` are."""
    parts = Parts(mesh)
    graph = Graph(lambda told: parts.refined(told_in(told.spec.partitions, told.mesh, mesh)))
    operands = _values(avals, given, parts)
    if "start_indices" in primitive.traits.sizes:  # which programs for all positions are told when they run
        params = {**params, "fixed": False}
    results = graph.simple(primitive, avals, operands, outs, params)
    _settle(graph, parts)
    return [parts.entries(x, a) for x, a in zip(results, outs, strict=True)]


def _values(avals: Sequence[Any], given: Sequence[Entries | None], parts: Parts) -> list[Value]:
    return [Value(getattr(a, "shape", ()), None if e is None else parts.refined(e))
            for a, e in zip(avals, given, strict=True)]


# -- to a fixed point ------------------------------------------------------------------------------


def _alone(op: Operation, late: bool) -> int:
    """Through operations that leave elements where they are, whose operands nothing else reads."""
    return _BACK | _ON if op.passing and (op.edge or all(x.reads < 2 for x in op.values[:op.count])) else 0


def _passing(op: Operation, late: bool) -> int:
    return _BACK | _ON if op.passing else 0


def _kept(op: Operation, late: bool) -> int:
    """Along dimensions that stay as they are."""
    return 0 if late else _BACK if op.spread else _BACK | _ON


def _moved(op: Operation, late: bool) -> int:
    return _BACK if op.spread else _BACK | _ON


def _all(op: Operation, late: bool) -> int:
    return _BACK | _ON


_ROUNDS: Sequence[Callable[[Operation, bool], int]] = (_alone, _passing, _kept, _moved, _all)


def _settle(graph: Graph, parts: Parts) -> None:
    """Follows operations until nothing changes, in rounds that follow more and more."""
    for round_ in _ROUNDS:
        waiting = graph.operations[::-1]
        for op in waiting:
            op.waits = True
        while waiting:
            op = waiting.pop()
            op.waits = False
            directions = round_(op, False), round_(op, True) if op.late else 0
            if op.done == directions:
                continue
            op.done = directions
            for value in _follow(op, directions, parts):
                for other in value.operations:
                    other.done = None
                    if not other.waits:
                        other.waits = True
                        waiting.append(other)


def _follow(op: Operation, directions: tuple[int, int], parts: Parts) -> list[Value]:
    """Lets axes go along the factors of an operation; the values that change."""
    found = []
    for factor in op.shared:
        direction = directions[factor in op.late]
        axes = _agreed(op, factor, direction, parts)
        if axes:
            found.append((_rank(op, factor, axes, parts), factor, axes, direction))
    if len(found) > 1:
        found.sort(key=lambda x: x[0])
    changed: dict[int, Value] = {}
    for _, factor, axes, direction in found:
        for k, d, place in op.at[factor]:
            if direction & (_ON if k >= op.count else _BACK) and _extend(op, k, d, place, axes, parts):
                changed[id(op.values[k])] = op.values[k]
    return list(changed.values())


def _agreed(op: Operation, factor: int, direction: int, parts: Parts) -> Axes:
    """The axes along a factor up to the first about which values differ."""
    if not direction:
        return ()
    best: Axes = ()
    limit: int | None = None
    for k, d, place in op.at[factor]:
        if not direction & (_BACK if k >= op.count else _ON):
            continue
        axes = _along(op, k, d, place, parts)
        if not axes or axes == best:
            continue
        if best:
            same = next((n for n, (a, b) in enumerate(zip(axes, best, strict=False)) if a != b), None)
            if same is not None:
                limit = same if limit is None else min(limit, same)
        if len(axes) > len(best):
            best = axes
    return best if limit is None else best[:limit]


def _rank(op: Operation, factor: int, axes: Axes, parts: Parts) -> tuple[int, int]:
    """Which factors come first: of elementwise operations those that are cut most, of others those that the largest
    operand has; then by operands."""
    sources = [k for k, d, place in op.at[factor] if _along(op, k, d, place, parts)[:len(axes)] == axes]
    if op.passing and len({x.size for x in op.values}) == 1:
        return -parts.product(axes), min(sources)
    return min((-op.values[k].size, k) for k in sources)


def _along(op: Operation, k: int, d: int, place: int, parts: Parts) -> Axes:
    """The axes of a dimension that lie along the factor at a place in it."""
    axes, factors = op.values[k].axes[d], op.dims[k][d]
    return axes if len(factors) == 1 or not axes else _split(axes, [op.sizes[f] for f in factors], parts)[0][place]


def _split(axes: Axes, sizes: Sequence[int], parts: Parts) -> tuple[list[Axes], bool]:
    """The axes by the factors of a dimension, from major to minor; whether all have a place."""
    out: list[Axes] = []
    at = 0
    for i, size in enumerate(sizes):
        begin, count = at, 1
        while at < len(axes) and (i == len(sizes) - 1 or size % (count * parts.sizes[axes[at]]) == 0):
            count *= parts.sizes[axes[at]]
            at += 1
        out.append(axes[begin:at])
        if count != size:
            out += [()] * (len(sizes) - len(out))
            break
    return out, at == len(axes)


def _extend(op: Operation, k: int, d: int, place: int, axes: Axes, parts: Parts) -> bool:
    """Spreads a value over more axes along a factor, as far as they are free and fit; whether it changed."""
    value = op.values[k]
    if value.closed[d]:
        return False
    factors = op.dims[k][d]
    if len(factors) == 1:
        own, split = value.axes[d], [value.axes[d]]
    else:
        sizes = [op.sizes[f] for f in factors]
        split, fits = _split(value.axes[d], sizes, parts)
        if not fits or any(parts.product(split[i]) != sizes[i] for i in range(place)):
            return False
        own = split[place]
    if len(axes) <= len(own) or axes[:len(own)] != own:
        return False
    taken = {n for e in value.axes for n in e}
    more: list[Any] = []
    for n in axes[len(own):]:
        if n in taken or (place < len(factors) - 1
                          and op.sizes[factors[place]] % parts.product((*own, *more, n))):
            break
        more.append(n)
    if not more or (any(split[place + 1:]) and parts.product((*own, *more)) != op.sizes[factors[place]]):
        return False
    split[place] = (*own, *more)
    value.axes[d] = tuple(n for e in split for n in e)
    return True


__all__ = ["Propagated", "of_equation", "propagate", "told_sharding"]
