"""Exported programs of several devices: their shardings over other meshes, their results, their derivatives."""

from __future__ import annotations

SETUP = """
from jax.export import export
mr8 = Mesh(np.array(D[::-1]), ('i',))
mr42 = Mesh(np.array(D[::-1]).reshape(4, 2), ('a', 'b'))
spec64 = jax.ShapeDtypeStruct((8, 8), 'float32')
def spread(f, ins=None, outs=None, spec=spec64):
    return export(jax.jit(f, in_shardings=ins, out_shardings=outs))(spec)
"""

EXPORTS = [
    "e = spread(jnp.sin, S8)\n(e.nr_devices, e.in_shardings_jax(mr8), e.call(jax.device_put(x64, "
    "e.in_shardings_jax(mr8)[0])))",
    "e = spread(jnp.sin, S42, NamedSharding(m42, P('b')))\n(e.nr_devices, e.in_shardings_jax(mr42), "
    "e.out_shardings_jax(mr42), e.call(jax.device_put(x64, e.in_shardings_jax(mr42)[0])))",
    "e = spread(jnp.sin, S8, NamedSharding(m8, P(None, 'i')))\njax.jit(e.call, in_shardings=NamedSharding(mr8, "
    "P('i')))(x64)",
    "e = spread(lambda x: jnp.sin(x).sum(0), S42)\njax.jit(lambda x: e.call(x) * 2)(jax.device_put(x64, "
    "NamedSharding(mr42, P('a', 'b'))))",
    "e = spread(jnp.sin)\n(e.nr_devices, e.in_shardings_jax(mr8), e.call(jax.device_put(x64, NamedSharding(mr8, "
    "P('i')))))",
    "e = spread(lambda x: lax.with_sharding_constraint(x * 2, S8))\n(e.nr_devices, e.call(jax.device_put(x64, "
    "NamedSharding(mr8, P(None, 'i')))))",
    "e = spread(jax.shard_map(lambda x: lax.psum(x.sum(0), 'i'), mesh=m8, in_specs=P('i'), out_specs=P()))\n"
    "(e.nr_devices, e.call(jax.device_put(x64, NamedSharding(mr8, P('i')))))",
    "e = spread(jnp.sin, NamedSharding(m42, P(('a', 'b'))), NamedSharding(m42, P('b')))\n"
    "x = jax.device_put(x64, e.in_shardings_jax(mr42)[0])\n"
    "(jax.grad(lambda x: e.call(x).sum())(x), e.vjp().in_shardings_jax(mr42), e.vjp().out_shardings_jax(mr42))",
    *(f"e = spread(lambda x: (x * 2).sum(), {s})\njax.grad(e.call)(jax.device_put(x64, NamedSharding(mr8, P('i'))))"
      for s in ("S8", "NamedSharding(mr8, P('i'))")),
    "spread(jnp.sin, S8).call(x64)",
    "spread(jnp.sin, S8).call(jax.device_put(x64, NamedSharding(Mesh(np.array(D[:4]), ('i',)), P('i'))))",
    "spread(jnp.sin, S8).in_shardings_jax(Mesh(np.array(D[:4]), ('i',)))",
    "spread(jnp.sin, S42).in_shardings_jax(Mesh(np.array(D).reshape(4, 2), ('p', 'q')))",
    "spread(jnp.sin, None, S42).out_shardings_jax(m8)",
]

# of files, which JAX does not write here without another package
KEPT = [
    SETUP + f"e = spread({program})\nread = jax.export.deserialize(e.serialize(vjp_order=1))\n"
    "x = jax.device_put(x64, NamedSharding(mr42, P('a', 'b')))\n"
    "same = lambda a, b: np.array_equal(a, b) and a.sharding == b.sharding\n"
    "(read.nr_devices == e.nr_devices == 8 and read.in_shardings_jax(mr42) == e.in_shardings_jax(mr42) and "
    "read.out_shardings_jax(mr42) == e.out_shardings_jax(mr42) and same(read.call(x), e.call(x)) and "
    "same(read.vjp().call(x, x)[0], e.vjp().call(x, x)[0]))"
    for program in (
        "jnp.sin, S42, NamedSharding(m42, P(('b', 'a')))",
        "lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(m42, P('a', P.UNCONSTRAINED)))",
        "jax.shard_map(lambda x: x * lax.psum(x.sum(), 'a'), mesh=m42, in_specs=P('a'), out_specs=P('a'))")
]

ROWS = {"exports": [SETUP + row for row in EXPORTS]}
