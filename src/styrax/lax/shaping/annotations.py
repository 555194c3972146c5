"""Identities that tell compilers something about a value: how it is laid out, what it is like, what to note of it."""

from __future__ import annotations

from typing import Any

from styrax.core.arrays.layouts import Layout
from styrax.core.programs import rules
from styrax.core.programs.lowering import Builder, Value
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules


def _annotation(name: str) -> Primitive:
    prim = Primitive(name)
    prim.declare(movement=True, sharding=sharding_rules.same, factors=factor_rules.elementwise)
    prim.def_abstract_eval(lambda x, **_: x)
    rules.loops[prim] = rules.same_value
    rules.stablehlos[prim] = lambda m, x, **_: x
    batching.defvectorized(prim)
    ad.deflinear2(prim, lambda ct, x, **params: [prim.bind(ct, **params)])
    return prim


layout_constraint_p = _annotation("layout_constraint")


def _layout_batch(args: Any, dims: Any, *, layout: Any) -> Any:
    """Examples lie one after the other, each in its order."""
    x = batching.moveaxis(args[0], dims[0], 0)
    order = (0, *(d + 1 for d in layout.major_to_minor))
    return layout_constraint_p.bind(x, layout=Layout(order)), 0


rules.batchers[layout_constraint_p] = _layout_batch
rules.stablehlos[layout_constraint_p] = lambda m, x, *, layout: m.foreign_call(
    "LayoutConstraint", [x], [x.aval], None, has_side_effect=False, api_version=1,
    operand_layouts=[range(len(layout.major_to_minor))], result_layouts=[layout.major_to_minor[::-1]])[0]
xla_metadata_value_p = _annotation("xla_metadata_value")


def _note(m: Any, x: Any, *, xla_metadata_kvs: Any) -> Any:
    m.annotate([x], dict(xla_metadata_kvs))
    return x


rules.stablehlos[xla_metadata_value_p] = _note

shard_alike_p = Primitive("shard_alike", multiple_results=True)
shard_alike_p.declare(movement=True, sharding=sharding_rules.alike, factors=factor_rules.elementwise)
shard_alike_p.def_abstract_eval(lambda x, y: [x, y])


def _alike_loops(b: Builder, x: Value, y: Value) -> list[Value]:
    return [x, y]


rules.loops[shard_alike_p] = _alike_loops
rules.stablehlos[shard_alike_p] = lambda m, x, y: [x, y]


def _shard_alike_batch(args: Any, dims: Any) -> Any:
    (dx, dy), (x, y) = dims, args
    size = get_aval(x).shape[dx] if dx is not None else get_aval(y).shape[dy]
    x, y = batching.all_at_front(args, dims, size)
    return shard_alike_p.bind(x, y), [0, 0]


rules.batchers[shard_alike_p] = _shard_alike_batch
rules.jvps[shard_alike_p] = lambda primals, tangents: (shard_alike_p.bind(*primals), list(tangents))
rules.transposes[shard_alike_p] = lambda cts, x, y: [
    ct if ad.is_undefined_primal(v) else None for ct, v in zip(cts, (x, y), strict=True)]
