"""Programs over eight devices of the host, in tables: what they give is compared with JAX's, in a process of each.

A row is a block of code whose last expression is the result, or what it raises. `shard` makes functions over devices:
under JAX compiled (it runs operation by operation otherwise), under Styrax once called directly and once compiled.
"""

from __future__ import annotations

from . import (
    arrays,
    collectives,
    compositions,
    constraints,
    copies,
    derivatives,
    effects,
    explicit,
    exports,
    mistakes,
    pmaps,
    propagation,
    references,
    rooflines,
    summands,
    unbatched,
    words,
)

SETUP = """
import copy, functools, pickle
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.extend.sharding import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
D = jax.devices()
m8 = jax.make_mesh((8,), ('i',), (jax.sharding.AxisType.Auto,))
m42 = jax.make_mesh((4, 2), ('a', 'b'), (jax.sharding.AxisType.Auto,) * 2)
m222 = jax.make_mesh((2, 2, 2), ('x', 'y', 'z'), (jax.sharding.AxisType.Auto,) * 3)
i8, i16, i64 = np.arange(8), np.arange(16), np.arange(64).reshape(8, 8)
x8, x16 = np.linspace(-1, 2, 8, dtype=np.float32), np.linspace(-2, 3, 16, dtype=np.float32)
x64 = np.linspace(-3, 3, 64, dtype=np.float32).reshape(8, 8)
e8, e42 = jax.make_mesh((8,), ('i',)), jax.make_mesh((4, 2), ('a', 'b'))
e22 = jax.make_mesh((2, 2), ('x', 'y'))
held = lambda x: (str(jax.typeof(x)), *(sorted(getattr(x.sharding.spec, k)) for k in ("reduced", "unreduced")),
                  str(x.sharding.spec.partitions), [np.asarray(s.data) for s in x.addressable_shards])
S8, S42 = NamedSharding(m8, P('i')), NamedSharding(m42, P('a', 'b'))
"""

TABLE: dict[str, list[str]] = {
    **collectives.ROWS, **derivatives.ROWS, **compositions.ROWS, **pmaps.ROWS, **effects.ROWS, **arrays.ROWS,
    **mistakes.ROWS, **exports.ROWS, **explicit.ROWS, **summands.ROWS, **unbatched.ROWS, **constraints.ROWS,
    **propagation.ROWS, **references.ROWS, **rooflines.ROWS, **copies.ROWS, **words.ROWS,
}
