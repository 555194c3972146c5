"""Programs on arrays that are still to be summed along mesh axes as programs on their summands.

Types tell which arrays these are. In place of each stands the array of its summands, with the axes in front
(`core.arrays.summands`). An equation on such arrays is mapped over their axes, as it is linear in them; operands that
are cut along the axes, as those of a contraction whose sums are left to be made, are mapped over block by block. What
changes along which axes sums are to be made (`reshard`) sums the summands, or makes them: the value's blocks if it was
cut along the axis, else all of it first and zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.arrays.mesh import empty_abstract_mesh, use_abstract_mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.arrays.summands import axes_of_sums, summands, type_of_summands
from ..core.hooks import lax
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from ..core.programs.traits import Control
from ..core.tracing.trace import get_aval
from ..core.types.avals import ShapedArray
from ..core.types.physical import Rewriter
from ..lax.collectives.device_values import copied, device_values_p, of_copies, of_device_values_p
from ..lax.collectives.placing import device_put_p, reshard_p, sharding_constraint_p
from ..transforms.batch import moveaxis
from .blocks import cut, over_devices

MOVING = (reshard_p, device_put_p, sharding_constraint_p)


def on_summands(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program on the summands of arrays; the very same object where all are summed."""
    if not leaves_sums(closed.jaxpr):
        return closed
    with use_abstract_mesh(empty_abstract_mesh):
        return OnSummands.lowered(closed)


def leaves_sums(jaxpr: Jaxpr) -> bool:
    """Whether any value of a program is still to be summed."""
    return _some_type("leaves_sums", jaxpr, axes_of_sums)


def tells_shardings(jaxpr: Jaxpr) -> bool:
    """Whether the type of any value tells a sharding."""
    return _some_type("tells_shardings", jaxpr, lambda aval: aval.given_sharding)


def _some_type(name: str, jaxpr: Jaxpr, holds: Callable[[Any], Any]) -> bool:
    """Whether something holds of the type of any variable of a program, or of a program inside it."""
    known = jaxpr.cache.get(name)
    if known is None:
        variables = [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)]
        known = jaxpr.cache[name] = any(holds(v.aval) for v in variables) or any(
            _some_type(name, inner, holds) for e in jaxpr.eqns for inner in jaxprs_in_params(e.params))
    return known


class OnSummands(Rewriter):
    """On arrays of summands, whose types tell no shardings."""

    concerns = staticmethod(tells_shardings)

    def form(self, aval: Any) -> Any:
        return aval if type(aval) is not ShapedArray or aval.given_sharding is None else type_of_summands(aval)

    def form_of_constant(self, value: Any) -> Any:
        return summands(value) if axes_of_sums(get_aval(value)) else value

    def read(self, atom: Any) -> Any:
        if type(atom) is not Literal or not axes_of_sums(atom.aval):
            return super().read(atom)
        form = type_of_summands(atom.aval)
        rows = np.zeros(form.shape, form.dtype)
        rows.flat[0] = atom.val
        self.constvars.append(Var(form))
        self.consts.append(rows)
        return self.constvars[-1]

    def lowered_param(self, value: Any) -> Any:
        return None if isinstance(value, (NamedSharding, PartitionSpec)) else super().lowered_param(value)

    def rule(self, eqn: JaxprEqn) -> Callable[..., Any] | None:
        if eqn.primitive is device_values_p:
            return lambda x: copied(x, eqn.invars[0].aval.given_sharding)
        if eqn.primitive is of_device_values_p:
            return lambda x: of_copies(x, eqn.params["sharding"])
        if not any(axes_of_sums(v.aval) for v in (*eqn.invars, *eqn.outvars)):
            return (lambda x: x) if eqn.primitive in (reshard_p, sharding_constraint_p) else None
        if eqn.primitive in MOVING:
            return lambda *args: _moved(eqn, args)
        if eqn.primitive.traits.control is Control.SCAN:
            return lambda *args: _scanned(eqn, args, self.lowered_param(eqn.params["jaxpr"]))
        if any(True for _ in jaxprs_in_params(eqn.params)):
            return None
        return lambda *args: _mapped(eqn, args)


# -- equations ----------------------------------------------------------------------------------------------


def _mapped(eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    """A linear operation on each of the summands of its operands."""
    wanted = [axes_of_sums(v.aval) for v in eqn.outvars]
    told = [getattr(v.aval, "given_sharding", None) for v in (*eqn.invars, *eqn.outvars)]
    mesh = next(t.mesh for t in told if t is not None and t.spec.unreduced)
    summed = {n for v in (*eqn.invars, *eqn.outvars) for n in axes_of_sums(v.aval)}
    blocks = []
    for v, x, at in zip(eqn.invars, args, told, strict=False):
        own = axes_of_sums(v.aval)
        if own or at is None:
            blocks.append((x, own))
        else:  # what is summed over is cut along all the axes that its dimension is spread over
            spec = at.spec.update(reduced=(), partitions=tuple(
                e if summed.intersection(axes_of(e)) else None for e in at.spec))
            blocks.append(cut(x, spec, mesh.shape))
    used = summed.union(*(axes for _, axes in blocks))
    sizes = {n: d for n, d in mesh.shape.items() if n in used}
    params = {name: None if isinstance(p, (NamedSharding, PartitionSpec)) else p for name, p in eqn.params.items()}

    def run(*xs: Any) -> list[Any]:
        out = eqn.primitive.bind(*xs, **params)
        return list(out) if eqn.primitive.multiple_results else [out]

    outs = [_along(x, axes, w, sizes, _copies_of)
            for (x, axes), w in zip(over_devices(run, blocks, sizes, False), wanted, strict=True)]
    return outs if eqn.primitive.multiple_results else outs[0]


def _along(x: Any, axes: Sequence[Hashable], wanted: Sequence[Hashable], sizes: Mapping[Hashable, int],
           of_equal: Callable[[Any, int], Any]) -> Any:
    """Summands `[*axes, …]` as `[*wanted, …]`: those along other axes are added up, and `of_equal` gives those along
    axes along which devices have the same."""
    left = [n for n in axes if n in wanted]
    others = tuple(i for i, n in enumerate(axes) if n not in wanted)
    if others:
        x = (lax.reduce_or if get_aval(x).dtype == np.bool_ else lax.reduce_sum)(x, others)
    for n in wanted:
        if n not in left:
            x = of_equal(x, sizes[n])
            left.insert(0, n)
    order = [left.index(n) for n in wanted]
    return x if order == sorted(order) else lax.transpose(x, (*order, *range(len(order), get_aval(x).ndim)))


def _first_of(x: Any, size: int) -> Any:
    """`[size, …]`: a value, followed by zeros."""
    aval = get_aval(x)
    return lax.pad(lax.expand_dims(x, (0,)), np.zeros((), aval.dtype),
                   [(0, size - 1, 0), *[(0, 0, 0)] * aval.ndim])


def _copies_of(x: Any, size: int) -> Any:
    """`[size, …]`: what each device computes from what all have."""
    return lax.broadcast(x, (size,))


def _moved(eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    outs = [_resummed(x, v.aval, w.aval) for x, v, w in zip(args, eqn.invars, eqn.outvars, strict=True)]
    return outs if eqn.primitive.multiple_results else outs[0]


def _resummed(x: Any, given: Any, wanted: Any) -> Any:
    """The summands of a value of type `given` as those of type `wanted`."""
    at = wanted.given_sharding or given.given_sharding
    sizes = at.mesh.shape
    axes, target = axes_of_sums(given), axes_of_sums(wanted)
    kept = tuple(n for n in axes if n in target)
    x = _along(x, axes, kept, sizes, _first_of)
    left = list(kept)
    for d, entry in enumerate(() if given.given_sharding is None else given.given_sharding.spec):
        names = list(axes_of(entry))
        stay = 0 if wanted.given_sharding is None else len(axes_of(wanted.given_sharding.spec[d]))
        block = given.shape[d] // int(np.prod([sizes[n] for n in names], dtype=int))
        while len(names) > stay and set(names[stay:]) <= set(target):  # those along which it stays cut stand before
            name = names.pop()
            x = _blocks_of(x, d + len(left), block, sizes[name])
            block *= sizes[name]
            left.insert(0, name)
    return _along(x, left, target, sizes, _first_of)


def _blocks_of(x: Any, axis: int, block: int, count: int) -> Any:
    """`[count, …]`: in each of `count` values every `count`-th block along an axis, and zeros elsewhere."""
    aval = get_aval(x)
    shape = (count, *aval.shape)
    number = np.arange(aval.shape[axis]) // block % count
    own = lax.broadcast_in_dim(np.arange(count)[:, None] == number, shape, (0, axis + 1))
    return lax.select(own, lax.broadcast_in_dim(x, shape, tuple(range(1, len(shape)))), lax.full(shape, 0, aval.dtype))


def _scanned(eqn: JaxprEqn, args: Sequence[Any], jaxpr: ClosedJaxpr) -> list[Any]:
    """A scan, whose slices have their summands in front."""
    first_x, carries = eqn.params["num_consts"] + eqn.params["num_carry"], eqn.params["num_carry"]
    ins = [moveaxis(x, len(axes_of_sums(v.aval)), 0) if i >= first_x else x
           for i, (x, v) in enumerate(zip(args, eqn.invars, strict=True))]
    outs = eqn.primitive.bind(*ins, **{**eqn.params, "jaxpr": jaxpr})
    return [moveaxis(x, 0, len(axes_of_sums(v.aval))) if i >= carries else x
            for i, (x, v) in enumerate(zip(outs, eqn.outvars, strict=True))]


__all__ = ["on_summands"]
