"""What programs over devices cost, by estimation: bytes and hops between devices, by mesh axis."""

from __future__ import annotations

# (JAX's module logs by a package that need not be there)
SETUP = """
import logging, sys, types
sys.modules.setdefault('absl', types.SimpleNamespace(logging=logging))
from jax.experimental.roofline import roofline, roofline_and_grad
def told(r):
    return (r.flops, r.unfused_flops, sorted(r.ici_bytes.items()), sorted(r.ici_latency.items()), r.hbm_bytes,
            r.unfused_hbm_bytes, r.peak_hbm_bytes)
def costs(f, ins, outs, mesh=m222, shape=(16, 16), dtype='float32', **options):
    x = jax.ShapeDtypeStruct(shape, dtype)
    out, found = roofline(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)(x)
    return [(y.shape, str(y.dtype), str(y.sharding.spec)) for y in jax.tree.leaves(out)], told(found)
"""

COLLECTIVES = {
    "psum": "lax.psum(x, {})", "pmax": "lax.pmax(x, {})", "pmin": "lax.pmin(x, {})",
    "all_gather": "lax.all_gather(x, {}, tiled=True)", "stacked": "lax.all_gather(x, {})",
    "psum_scatter": "lax.psum_scatter(x, {}, scatter_dimension=1, tiled=True)",
    "all_to_all": "lax.all_to_all(x, {}, 1, 0, tiled=True)",
}
AXES = [("m8", "'i'"), ("m42", "'a'"), ("m42", "'b'"), ("m42", "('a', 'b')"), ("m222", "('x', 'z')"),
        ("m222", "('x', 'y', 'z')")]
EVERY = {"m8": "P('i')", "m42": "P(('a', 'b'))", "m222": "P(('x', 'y', 'z'))"}

COSTS = [
    *(f"costs(lambda x: {f.format(axes)}, {EVERY[mesh]}, {EVERY[mesh]}, {mesh})" for mesh, axes in AXES
      for f in COLLECTIVES.values()),
    *(f"costs(lambda x: lax.ppermute(x, {axes}, {perm}), {EVERY[mesh]}, {EVERY[mesh]}, {mesh})"
      for mesh, axes in (("m8", "'i'"), ("m42", "('a', 'b')"), ("m222", "('x', 'y', 'z')")) for perm in (
          "[(i, (i + 1) % 8) for i in range(8)]", "[(i, 7 - i) for i in range(8)]", "[(0, 7)]", "[(4, 0)]",
          "[(i, (i + 2) % 8) for i in range(8)]", "[]")),
    "costs(lambda x: lax.psum(jnp.sin(x) @ x.T, 'x'), P('z', 'x'), P('z'))",
    "costs(lambda x: jax.lax.scan(lambda c, _: (lax.psum(c, 'i'), None), x, None, length=3)[0], P(), P(), m8)",
    "x = jax.ShapeDtypeStruct((8, 8), 'int8')\n"
    "found = roofline_and_grad(lambda a, b: lax.all_gather(a, 'x', axis=1, tiled=True) @ b, m222, "
    "(P(None, 'x'), P()), P('x'))(x, x)\n(found[0].shape, told(found[1]), told(found[2]))",
]

ROWS = {"rooflines": [SETUP + row for row in COSTS]}
