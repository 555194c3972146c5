"""Sharding propagation: over which mesh axes results are spread, by how operands are, where the compiler may choose.

One pass forward over a program with the rules by which types tell explicit shardings (`spreading`). Where these refuse,
fewer axes are tried, as few as needed; what no rule knows is replicated. Values are right whatever is found: on
shared memory it says only which device has which part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from ..arrays.mesh import AbstractMesh
from ..arrays.refined_meshes import told_in
from ..arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..tracing.errors import ShardingTypeError
from ..types.avals import ShapedArray
from .jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, jaxprs_in_params
from .primitive import Primitive
from .spreading import Entries, Place, elementwise


class Operand:
    """The type of an operand with mesh axes at its dimensions, as rules of explicit sharding ask it."""

    __slots__ = ("aval", "given_sharding")

    def __init__(self, aval: Any, mesh: AbstractMesh, entries: Entries):
        self.aval = aval
        self.given_sharding = NamedSharding(mesh, PartitionSpec(*entries)) if any(entries) else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.aval, name)


def propagate(closed: ClosedJaxpr, mesh: AbstractMesh, entries: Sequence[Entries]) -> list[Entries]:
    """The mesh axes at the dimensions of a program's results, by those at the dimensions of its arguments."""
    return _of_jaxpr(closed.jaxpr, mesh, entries)


def _of_jaxpr(jaxpr: Jaxpr, mesh: AbstractMesh, given: Sequence[Entries]) -> list[Entries]:
    known: dict[Var, Entries] = dict(zip(jaxpr.invars, given, strict=True))

    def read(x: Any) -> Entries:
        return () if isinstance(x, Literal) else known.get(x, ())

    for eqn in jaxpr.eqns:
        operands = [read(x) for x in eqn.invars]
        outs = of_equation(eqn.primitive, [x.aval for x in eqn.invars], operands, [v.aval for v in eqn.outvars],
                           eqn.params, mesh)
        known.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def of_equation(primitive: Primitive, avals: Sequence[Any], entries: Sequence[Entries], outs: Sequence[Any],
                params: Mapping[str, Any], mesh: AbstractMesh) -> list[Entries]:
    """The same for one operation on operands of types `avals`, with results of types `outs`."""
    told = told_sharding(params)
    if told is not None:
        return [_fitting(told_in(told.spec.partitions, told.mesh, mesh), x, mesh) for x in outs]
    inner = [j.jaxpr if isinstance(j, ClosedJaxpr) else j for j in jaxprs_in_params(dict(params))]
    if not inner and not any(any(e) for e in entries):
        return [()] * len(outs)
    found: Any = None
    if inner:
        found = _of_call(inner, avals, entries, params, mesh) or ()
    else:
        rule = primitive.traits.sharding or (elementwise if primitive.traits.elementwise else None)
        at = Place(mesh, primitive.name, outs)
        for count, tried in enumerate(_relaxed(entries)):
            if count == 1 and _updates(primitive, avals, outs):
                found = entries[0]
                break
            operands = [Operand(a, mesh, e) for a, e in zip(avals, tried, strict=True)]
            try:
                found = () if rule is None else rule(at, *operands, **params)
            except (ShardingTypeError, ValueError, TypeError, NotImplementedError, IndexError):
                continue
            if isinstance(found, list) or _once(found):
                break
        else:
            found = ()
    each = found if isinstance(found, list) else [found] * len(outs)
    return [_fitting(e, x, mesh) for e, x in zip(each, outs, strict=True)]


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


def _of_call(inner: Sequence[Jaxpr], avals: Sequence[Any], entries: Sequence[Entries], params: Mapping[str, Any],
             mesh: AbstractMesh) -> list[Entries] | None:
    """Through programs: of loops by the carries that they begin with, of branches by the first that spreads them."""
    if "branches" in params:
        each = [_of_jaxpr(branch, mesh, entries[1:]) for branch in inner]
        return [next((e for e in found if any(e)), ()) for found in zip(*each, strict=True)]
    if "num_carry" in params:
        consts, carries = params["num_consts"], params["num_carry"]
        rows = [e[1:] for e in entries[consts + carries:]]
        begin, outs = _of_turns(inner[0], mesh, entries[:consts], entries[consts:consts + carries], rows)
        return [*begin, *((None, *e) for e in outs[carries:])]
    if "body_jaxpr" in params:
        consts = params["cond_nconsts"]
        carries = consts + params["body_nconsts"]
        return _of_turns(params["body_jaxpr"].jaxpr, mesh, entries[consts:carries], entries[carries:], [])[0]
    jaxpr = inner[0]
    if len(jaxpr.invars) != len(avals):
        return None
    return _of_jaxpr(jaxpr, mesh, entries)


def _of_turns(body: Jaxpr, mesh: AbstractMesh, consts: Sequence[Entries], carry: Sequence[Entries],
              rows: Sequence[Entries]) -> tuple[list[Entries], list[Entries]]:
    """The carry of a loop, and what a turn gives. A carry that begins replicated is spread as a turn leaves it."""
    carry = list(carry)
    for _ in range(2):
        outs = _of_jaxpr(body, mesh, [*consts, *carry, *rows])
        carry = [c if any(c) else o for c, o in zip(carry, outs[:len(carry)], strict=True)]
    return carry, outs


def _updates(primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether results are the first operand with other elements."""
    return not primitive.traits.bilinear and all(getattr(x, "shape", None) == avals[0].shape for x in outs)


def _relaxed(entries: Sequence[Entries]) -> Iterator[list[Entries]]:
    """The operands' axes, then without those of later operands that earlier ones have, then without each axis in turn,
    without pairs of them: the first that a rule takes keeps the most."""
    yield list(entries)
    taken: set[Any] = set()
    later: list[Entries] = []
    for found in entries:
        later.append(_without(found, taken))
        taken.update(n for e in found for n in axes_of(e))
    yield later
    names = list(dict.fromkeys(n for found in entries for e in found for n in axes_of(e)))[::-1]
    for count in range(1, len(names)):
        for dropped in combinations(names, count):
            for given in (entries, later):
                yield [_without(found, set(dropped)) for found in given]


def _without(entries: Entries, names: set[Any]) -> Entries:
    return tuple(tuple(n for n in axes_of(e) if n not in names) or None for e in entries)


def _once(found: Any) -> bool:
    """Whether each mesh axis stands at one dimension at most."""
    parts = found.spec.partitions if isinstance(found, NamedSharding) else found
    names = [n for e in parts for n in axes_of(e)]
    return len(set(names)) == len(names)


def _fitting(found: Any, out: Any, mesh: AbstractMesh) -> Entries:
    """Entries that divide the dimensions of the result, each mesh axis once, with one entry for each dimension."""
    if not isinstance(out, ShapedArray):
        return ()
    if isinstance(found, (NamedSharding, PartitionSpec)):
        found = (found.spec if isinstance(found, NamedSharding) else found).partitions
    taken: set[Any] = set()
    kept: list[Any] = []
    for entry, d in zip(found, out.shape, strict=False):
        names = tuple(n for n in axes_of(entry) if n in mesh.shape and n not in taken)
        parts = 1
        for n in names:
            parts *= mesh.shape[n]
        if not names or not isinstance(d, int) or d % parts:
            kept.append(None)
            continue
        taken.update(names)
        kept.append(names[0] if len(names) == 1 else names)
    return (*kept, *(None,) * (len(out.shape) - len(kept)))


__all__ = ["of_equation", "propagate", "told_sharding"]
