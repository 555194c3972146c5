"""A program on arrays over several processes as one process's part of it.

One pass over the jaxpr, forwards. Each value is known in one of three ways: whole (equal in all processes), split
(`Split`: the blocks of this process, under a sharding), or a process's own (`Own`: inside `shard_map`). A rule
(`partition_rules`) says for a primitive which shardings it wants of its operands and what that gives; the operands are
brought there, the primitive runs on the blocks, and partial sums are added up across processes. What has no rule is
gathered, and computed whole by every process, which the log says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import hooks
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh, state
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.arrays.shards import bounds
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.programs.propagation import told_sharding
from ..core.programs.traits import Control
from ..core.tracing.trace import get_aval
from ..lax.collectives.axis_reductions import take_rows
from ..lax.collectives.placing import device_put_p, reshard_p, sharding_constraint_p
from ..transforms.batching import AxisData, batch_flat
from .across import across_p, cut_p, join_p, local_axes, named, whole_shape
from .cohort import current
from .mesh_positions import Places
from .tilings import Combination, Tiling, move, tiling

log = logging.getLogger(__name__)
Entries = tuple[Any, ...]


class Split(NamedTuple):
    """An array of which this process has blocks: `rows` is `[blocks, *block]`."""

    rows: Any
    sharding: NamedSharding
    shape: tuple[int, ...]

    @property
    def tiling(self) -> Tiling:
        return tiling(self.sharding, self.shape)

    @property
    def entries(self) -> Entries:
        """The mesh axes by dimensions."""
        return entries_of(self.sharding, len(self.shape))


class Own(NamedTuple):
    """A value that each process has for itself."""

    value: Any


class Step(NamedTuple):
    """How an operation is done on blocks.

    Attributes:
      operands: for each operand its entries, None for a whole one.
      outs: for each result its entries.
      params: the operation's parameters for blocks.
      sums: the mesh axes over which results are partial, and how these are combined.
    """

    operands: Sequence[Entries | None]
    outs: Sequence[Entries]
    params: dict[str, Any]
    sums: tuple[tuple[Hashable, ...], str] | None = None


Rule = Callable[["Partition", JaxprEqn, Sequence[Any]], Step | None]
Flow = Callable[["Partition", JaxprEqn, Sequence[Any]], Sequence[Any]]


def aval_of(v: Any) -> Any:
    """The type of a variable, which is that of an array."""
    return v.aval


def entries_of(sharding: NamedSharding, ndim: int) -> Entries:
    """The mesh axes that each dimension is spread over, as tuples."""
    found = [axes_of(e) for e in sharding.spec][:ndim]
    return (*found, *[()] * (ndim - len(found)))


def spanning_mesh(params: dict[str, Any]) -> Mesh | None:
    """The mesh over several processes that the parameters of an operation name, or mean while it is in force."""
    told = told_sharding(params)
    if told is None:
        return None
    mesh = told.mesh
    if not isinstance(mesh, Mesh):
        if not mesh.axis_names or state.concrete.abstract_mesh.shape_tuple != mesh.shape_tuple:
            return None
        mesh = state.concrete
    return mesh if mesh.is_multi_process else None


def spans(jaxpr: Jaxpr) -> Mesh | None:
    """A mesh over several processes that a program names."""
    for eqn in jaxpr.eqns:
        mesh = spanning_mesh(eqn.params)
        if mesh is not None:
            return mesh
        for inner in jaxprs_in_params(eqn.params):
            found = spans(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)
            if found is not None:
                return found
    return None


class Partition:
    """The pass, over one mesh.

    Args:
      step: says how an operation is done on blocks, None where it has to be done whole.
      flows: the same for loops and branches, which it gives the results of.
    """

    def __init__(self, mesh: Mesh, step: Rule, flows: Mapping[Control, Flow]):
        self.mesh = mesh
        self.step = step
        self.flows = flows

    # -- from one way of knowing a value to another ---------------------------------------------------------
    def sharding(self, entries: Entries) -> NamedSharding:
        """The sharding over the mesh with these entries."""
        spec = [e[0] if len(e) == 1 else tuple(e) or None for e in map(axes_of, entries)]
        while spec and spec[-1] is None:
            spec.pop()
        return NamedSharding(self.mesh, PartitionSpec(*spec))

    def whole(self, x: Any) -> Any:
        """A value as every process has it."""
        if isinstance(x, Own):
            return x.value
        if not isinstance(x, Split):
            return x
        if not x.sharding.is_fully_replicated:
            x = self.split(x, NamedSharding(x.sharding.mesh, PartitionSpec()))
        return hooks.lax.reshape(x.rows, x.shape)

    def split(self, x: Any, sharding: NamedSharding) -> Split:
        """A value under a sharding."""
        if isinstance(x, Split):
            target = tiling(sharding, x.shape)
            if x.tiling.places == target.places:
                return Split(x.rows, sharding, x.shape)
            if x.sharding.is_fully_replicated:
                return self.split(self.whole(x), sharding)
            return Split(across_p.bind(x.rows, plan=move(x.sharding, sharding, x.shape)), sharding, x.shape)
        assert not isinstance(x, Own), "what a process has for itself is no part of an array"
        shape = np.shape(x)
        blocks = [hooks.lax.expand_dims(hooks.lax.slice(x, [a for a, _ in place], [b for _, b in place]), (0,))
                  for place in tiling(sharding, shape).own]
        return Split(blocks[0] if len(blocks) == 1 else hooks.lax.concatenate(blocks, 0), sharding, shape)

    def spread(self, x: Any, entries: Entries) -> Any:
        """A value with these entries; whole, where there are none."""
        return self.split(x, self.sharding(entries)) if any(entries) else self.whole(x)

    # -- the pass --------------------------------------------------------------------------------------------
    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
        for eqn in jaxpr.eqns:
            ins = [v.value if type(v) is Literal else env[v] for v in eqn.invars]
            outs = self.equation(eqn, ins)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, ins: Sequence[Any]) -> Sequence[Any]:
        """The results of one operation."""
        outs = self._equation(eqn, ins)
        found = []
        for v, x in zip(eqn.outvars, outs, strict=True):
            told = getattr(v.aval, "given_sharding", None)
            found.append(x if told is None or isinstance(x, Own) else self.spread(x, entries_of(told, aval_of(v).ndim)))
        return found

    def _equation(self, eqn: JaxprEqn, ins: Sequence[Any]) -> Sequence[Any]:
        primitive, params = eqn.primitive, eqn.params
        if primitive is cut_p:
            return [self._cut(self.split(ins[0], params["sharding"]))]
        if primitive is join_p:
            return [self._join(ins[0], **params)]
        program = None if primitive.traits.program is None else primitive.traits.program(params)
        if program is not None and (any(isinstance(x, (Split, Own)) for x in ins) or spans(
                program.jaxpr if isinstance(program, ClosedJaxpr) else program)):
            inner = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())
            outs = self.run(inner.jaxpr, inner.consts, self._entered(params.get("in_shardings"), ins))
            return self._entered(params.get("out_shardings"), outs)
        told = told_sharding(params)
        if told is not None and primitive in (device_put_p, reshard_p, sharding_constraint_p):
            return [self.spread(x, entries_of(told, aval_of(v).ndim)) if not isinstance(x, Own) else x
                    for x, v in zip(ins, eqn.outvars, strict=True)]
        if primitive.traits.control is not None and (
                any(isinstance(x, (Split, Own)) for x in ins)
                or any(spans(j.jaxpr if isinstance(j, ClosedJaxpr) else j) for j in jaxprs_in_params(params))):
            return self.flows[primitive.traits.control](self, eqn, ins)
        if any(isinstance(x, Own) for x in ins):
            return [Own(y) for y in _bind(primitive, list(map(self.whole, ins)), params)]
        if not any(isinstance(x, Split) for x in ins):
            return _bind(primitive, ins, params)
        step = self.step(self, eqn, ins)
        if step is not None:
            return self._step(primitive, step, ins, [aval_of(v).shape for v in eqn.outvars])
        log.debug("%s has no rule for %s: every process computes it whole", primitive, [
            str(x.sharding.spec) if isinstance(x, Split) else "whole" for x in ins])
        return _bind(primitive, list(map(self.whole, ins)), params)

    def _entered(self, shardings: Sequence[Any] | None, values: Sequence[Any]) -> list[Any]:
        """Values as a call's `in_shardings` or `out_shardings` have them."""
        return [self.split(x, s) if isinstance(s, NamedSharding) and not isinstance(x, Own) else x
                for x, s in zip(values, shardings or (None,) * len(values), strict=True)]

    # -- operations on blocks --------------------------------------------------------------------------------
    def _step(self, primitive: Primitive, step: Step, ins: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
        given = [self.whole(x) if e is None else self.spread(x, e) for x, e in zip(ins, step.operands, strict=True)]
        tilings = [x.tiling if isinstance(x, Split) else None for x in given]
        mine = current().number
        own = [d for d in self.mesh.devices.flat if d.process_index == mine]

        def blocks(d: Device) -> tuple[int, ...]:
            return tuple(t.row[d] for t in tilings if t is not None)

        joint = list(dict.fromkeys(map(blocks, own)))
        count = len(joint)
        vals: list[Any] = []
        dims: list[int | None] = []
        k = 0
        for x in given:
            if not isinstance(x, Split):
                vals.append(x)
                dims.append(None)
                continue
            rows = [each[k] for each in joint]
            k += 1
            if len(set(rows)) == 1:
                vals.append(hooks.lax.index_in_dim(x.rows, rows[0], 0, keepdims=False))
                dims.append(None)
            else:
                vals.append(x.rows if rows == list(range(x.rows.shape[0])) else take_rows(x.rows, np.array(rows)))
                dims.append(0)
        outs, at = batch_flat(lambda *xs: _bind(primitive, xs, step.params), vals, dims, AxisData(None, count))
        found = []
        for y, d, entries, shape in zip(outs, at, step.outs, shapes, strict=True):
            y = hooks.lax.broadcast(y, (count,)) if d is None else _in_front(y, d)
            target = self.sharding(entries)
            to = tiling(target, shape)
            if step.sums is not None:
                y = self._combined(y, to, blocks, joint, *step.sums)
            else:
                first = {to.row[d]: joint.index(blocks(d)) for d in reversed(own)}
                rows = [first[i] for i in range(len(to.own))]
                y = y if rows == list(range(count)) else take_rows(y, np.array(rows))
            found.append(Split(y, target, shape))
        return found

    def _combined(self, y: Any, to: Tiling, blocks: Callable[[Device], tuple[int, ...]], joint: list[Any],
                  axes: tuple[Hashable, ...], how: str) -> Any:
        """Partial results added up over mesh axes, whose rows are `joint`."""
        labels: dict[int, dict[Any, Any]] = {}
        along = [self.mesh.axis_names.index(n) for n in axes]
        index = to.sharding.devices_indices_map(to.shape)
        for place in np.ndindex(*self.mesh.devices.shape):
            d: Any = self.mesh.devices[place]
            labels.setdefault(d.process_index, {}).setdefault(
                blocks(d), (bounds(index[d], to.shape), tuple(place[a] for a in along)))
        plan = Combination({p: list(found.values()) for p, found in labels.items()}, to.places, how)
        assert list(labels[current().number]) == joint
        return across_p.bind(y, plan=plan)

    # -- between arrays and what each process has -------------------------------------------------------------
    def _cut(self, x: Split) -> Own:
        names = named(x.sharding)
        if not names:
            return Own(hooks.lax.squeeze(x.rows, (0,)))
        rows = [x.tiling.row[d] for d in _grid(x.sharding, names)]
        out = x.rows if rows == list(range(x.rows.shape[0])) else take_rows(x.rows, np.array(rows))
        return Own(hooks.lax.reshape(out, (*local_axes(x.sharding, names), *x.tiling.block)))

    def _join(self, x: Any, *, sharding: NamedSharding, total: bool) -> Split:
        names, value = named(sharding), self.whole(x)
        shape = whole_shape(np.shape(value)[len(names):], sharding)
        to = tiling(sharding, shape)
        rows = hooks.lax.reshape(value, (len(to.own), *to.block)) if 0 not in shape else (
            hooks.lax.full((len(to.own), *to.block), 0, get_aval(value).dtype))
        grid = [to.row[d] for d in _grid(sharding, names)] if names else [0]
        order = [grid.index(i) for i in range(len(to.own))]
        if order != list(range(len(to.own))):
            rows = take_rows(rows, np.array(order))
        if total and to.copies > 1:
            rows = across_p.bind(rows, plan=Combination(
                {p: [(place, p) for place in places] for p, places in to.places.items()}, to.places, "sum"))
        return Split(rows, sharding, shape)


def _grid(sharding: NamedSharding, names: Sequence[Hashable]) -> list[Device]:
    """A device of this process for each combination of its positions along mesh axes."""
    mesh: Any = sharding.mesh
    own = Places.of(mesh).own
    found = []
    for where in np.ndindex(*(len(own[n]) for n in names)):
        at = dict(zip(names, where, strict=True))
        found.append(mesh.devices[tuple(own[n][at.get(n, 0)] for n in mesh.axis_names)])
    return found


def _in_front(x: Any, d: int) -> Any:
    from ..transforms.batching import moveaxis

    return moveaxis(x, d, 0)


def _bind(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    out = primitive.bind(*args, **primitive.get_bind_params(params))
    return list(out) if primitive.multiple_results else [out]


__all__ = ["Own", "Partition", "Split", "Step", "aval_of", "entries_of", "spanning_mesh", "spans"]
