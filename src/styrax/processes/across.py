"""Operations of one process's program in which the other processes take part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import hooks
from ..core.arrays import backends
from ..core.arrays.array import Array
from ..core.arrays.shardings import NamedSharding, axes_of
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.trace import get_aval
from ..core.types.avals import shaped
from ..core.types.effects import Effects, no_effects
from ..transforms import ad, batching
from .mesh_positions import Places
from .tilings import Combination, Plan, tiling

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder, Value

# -- rows of all processes moved or combined -----------------------------------------------------------------
across_p = Primitive("across_processes")
across_p.declare(distinct=True)


@across_p.def_abstract_eval
def _across_aval(rows: Any, *, plan: Plan) -> Any:
    return shaped(plan.result_shape(rows.shape), rows.dtype)


@across_p.def_impl
def _across(rows: Any, *, plan: Plan) -> Any:
    out = plan.run(rows._value if isinstance(rows, Array) else np.asarray(rows))
    return backends.get().put(out, shaped(out.shape, out.dtype), None)


def _across_loops(b: Builder, rows: Value, *, plan: Plan) -> Value:
    shape: Any = rows.shape
    (out,) = b.host_call(lambda x: [plan.run(x)], [(plan.result_shape(shape), rows.dtype)], [rows])
    return out


def _across_transpose(ct: Any, rows: Any, *, plan: Plan) -> list[Any]:
    assert isinstance(plan, Combination)
    return [across_p.bind(ct, plan=plan.transposed())]


def _across_batch(args: Sequence[Any], dims: Sequence[int], *, plan: Plan) -> Any:
    assert isinstance(plan, Combination)
    return across_p.bind(batching.moveaxis(args[0], dims[0], 1), plan=plan), 1


def _across_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, plan: Plan) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = across_p.bind(x, plan=plan)
    if type(t) is ad.Zero:
        return out, ad.Zero(get_aval(out))
    if isinstance(plan, Combination) and plan.how in ("max", "min"):
        raise NotImplementedError(f"the derivative of a {plan.how}imum over the devices of several processes")
    return out, across_p.bind(t, plan=plan)


rules.loops[across_p] = _across_loops
rules.jvps[across_p] = _across_jvp
rules.transposes[across_p] = _across_transpose
rules.batchers[across_p] = _across_batch


# -- between arrays over all processes and what one process has of them --------------------------------------
def local_axes(sharding: NamedSharding, names: Sequence[Any]) -> tuple[int, ...]:
    """How many positions the devices of this process have along mesh axes."""
    places = Places.of(sharding.mesh)
    return tuple(len(places.own[n]) for n in names)


def named(sharding: NamedSharding) -> tuple[Any, ...]:
    """The mesh axes along which a sharding cuts, in the mesh's order."""
    found = {n for e in sharding.spec for n in axes_of(e)}
    return tuple(n for n in sharding.mesh.axis_names if n in found)


# The blocks of an array that this process's devices have, `[*mesh axes that cut it, *block]`.
cut_p = Primitive("cut_across_processes")
# An array made of such blocks. Blocks that several processes have are equal, or (`total`) to be added up.
join_p = Primitive("join_across_processes")
for _primitive in (cut_p, join_p):
    _primitive.declare(distinct=True)
    _primitive.def_impl(partial(lambda primitive, *args, **params: hooks.apply_stateful(primitive, args, params),
                                _primitive))


@cut_p.def_effectful_abstract_eval
def _cut_aval(x: Any, *, sharding: NamedSharding) -> tuple[Any, Effects]:
    shape = *local_axes(sharding, named(sharding)), *sharding.shard_shape(x.shape)
    return shaped(shape, x.dtype, x.weak_type), no_effects


@join_p.def_effectful_abstract_eval
def _join_aval(x: Any, *, sharding: NamedSharding, total: bool) -> tuple[Any, Effects]:
    shape = whole_shape(x.shape[len(named(sharding)):], sharding)
    told = hooks.sharding_of_type(sharding, shape)
    aval = shaped(shape, x.dtype, x.weak_type)
    return (aval if told is None else aval.update(sharding=told)), no_effects


def whole_shape(block: tuple[int, ...], sharding: NamedSharding) -> tuple[int, ...]:
    """The shape of an array with blocks of a shape."""
    return tuple(d * n for d, n in zip(block, sharding._parts((1,) * len(block)), strict=True))


def _cut_transpose(ct: Any, x: Any, *, sharding: NamedSharding) -> list[Any]:
    return [join_p.bind(ct, sharding=sharding, total=True)]


def _join_transpose(ct: Any, x: Any, *, sharding: NamedSharding, total: bool) -> list[Any]:
    blocks = cut_p.bind(ct, sharding=sharding)
    if not total:  # each process has a share in what they all have
        blocks = hooks.lax.mul(blocks, hooks.lax.full_like(blocks, 1 / tiling(sharding, get_aval(ct).shape).copies))
    return [blocks]


def _with_dim(sharding: NamedSharding, d: int) -> NamedSharding:
    entries = [*sharding.spec, *[None] * max(0, d - len(sharding.spec))]
    return sharding.update(spec=sharding.spec.update(partitions=(*entries[:d], None, *entries[d:])))


def _cut_batch(args: Sequence[Any], dims: Sequence[int], *, sharding: NamedSharding) -> Any:
    return cut_p.bind(args[0], sharding=_with_dim(sharding, dims[0])), dims[0] + len(named(sharding))


def _join_batch(args: Sequence[Any], dims: Sequence[int], *, sharding: NamedSharding, total: bool) -> Any:
    d = len(named(sharding))
    return join_p.bind(batching.moveaxis(args[0], dims[0], d), sharding=_with_dim(sharding, 0), total=total), 0


ad.deflinear2(cut_p, _cut_transpose)
ad.deflinear2(join_p, _join_transpose)
rules.batchers[cut_p] = _cut_batch
rules.batchers[join_p] = _join_batch

__all__ = ["across_p", "cut_p", "join_p", "local_axes", "named", "whole_shape"]
