"""What programs over several devices say: messages of errors, word by word, and where results are of programs that were
compiled ahead of time."""

from __future__ import annotations


def said(row: str) -> str:
    """A row whose result is that of its last line, or what it raises, with the message."""
    *before, last = row.split("\n")
    lines = [*before, f"out = {last}"]
    inside = "\n".join(f"    {line}" for line in lines)
    return f"try:\n{inside}\nexcept Exception as e:\n    out = type(e).__name__, str(e)\nout"


_MAPPED = "f = lambda x: {'a': x, 'b': (x, x)}\n"
SPECIFICATIONS = [
    *(f"{_MAPPED}jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs={specs})(x8)" for specs in (
        "{'a': P('i')}", "{'a': P('i'), 'b': [P('i'), P('i')]}", "(P('i'),)", "'i'", "(3, {'a': 4})", "P('q')",
        "P()", "{'a': P(), 'b': P('i')}")),
    *(f"{_MAPPED}jax.jit(jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs={specs}))(x8)" for specs in (
        "(P('i'),)", "P()", "{'a': P('i'), 'b': (P('i'), P())}")),
    "jax.shard_map(lambda x, y: x, mesh=m8, in_specs=(P('i'),), out_specs=P('i'))(x8, x8)",
    "jax.shard_map(lambda x, y: x, mesh=m8, in_specs=(P('i'), {'a': P()}), out_specs=P('i'))(x8, {'b': x8})",
    "jax.shard_map(lambda x: x, mesh=m8, in_specs=('i',), out_specs=P('i'))(x8)",
    "jax.shard_map(lambda x, y, z: x, mesh=m8, in_specs=(P('i'), 3, None), out_specs=P('i'))(x8, x8, x8)",
    "jax.jit(jax.shard_map(lambda x: {'a': x.sum(), 'b': x}, mesh=m8, in_specs=P('i'), out_specs=P('i')))(x8)",
    "jax.shard_map(lambda x: x, in_specs=P('i'), out_specs=P('i'))(x8)",
    "jax.shard_map(lambda x: x, mesh=m8, out_specs=P('i'))(x8)",
    "jax.shard_map(lambda x: x, mesh=m8, in_specs=P('i'), out_specs=P('i'), axis_names='i')(x8)",
    "jax.shard_map(lambda x: x, mesh=m8, in_specs=P('i'), out_specs=P('i'), check_rep=False)(x8)",
    "jax.shard_map(lambda x: (x, 3.), mesh=m8, in_specs=P('i'), out_specs=(P('i'), None))(x8)",
    "jax.shard_map(lambda x: (x, None), mesh=m8, in_specs=P('i'), out_specs=(P('i'), None))(x8)",
    "with jax.set_mesh(m42):\n    out = jax.shard_map(lambda x: x, "
    "mesh=m8, in_specs=P('i'), out_specs=P('i'))(x8)\nout",
    "jax.shard_map(lambda x: lax.with_sharding_constraint(x, P('i')), mesh=m8, in_specs=P('i'), out_specs=P('i'))(x8)",
    "jax.shard_map(lambda x: jax.device_put(x, D[1]), mesh=m8, in_specs=P('i'), out_specs=P('i'))(x8)",
]

PREFIXES = [
    "jax.jit(lambda x: (x, x), out_shardings=(S8,))(x8)", "jax.jit(lambda x: {'a': x}, out_shardings={'b': S8})(x8)",
    "jax.jit(lambda x: x['a'], in_shardings=({'b': S8},))({'a': x8})",
    "jax.jit(lambda x: x, in_shardings=S8)(np.zeros(9))", "jax.jit(lambda x: x, out_shardings=S8)(np.zeros(9))",
    "jax.jit(lambda x: x, in_shardings=NamedSharding(m8, P(None, 'i')))(x8)",
    "jax.device_put(x8, NamedSharding(m8.abstract_mesh, P('i')))",
]

# arguments of programs that are told where they are, and where they are not
_AT = ["D[0]", "D[1]", "S8", "NamedSharding(m8, P())", "NamedSharding(m42, P('b'))"]
GIVEN = [
    *(f"jax.jit(lambda x: x + 1, in_shardings={wanted})(jax.device_put(x8, {at}))" for at in _AT
      for wanted in ("S8", "NamedSharding(m8, P())", "SingleDeviceSharding(D[1])")),
    *(f"jax.jit(lambda x: x + 1, out_shardings=S8)(jax.device_put(x8, {at}))" for at in (
        *_AT, "NamedSharding(Mesh(np.array(D[:4]), ('q',)), P())")),
    "jax.jit(lambda x, y: x + 1, in_shardings=(S8, NamedSharding(Mesh(np.array(D[:4]), ('q',)), P())))(x8, x8)",
    "x = jnp.asarray(x8)\ny = jax.jit(lambda x: x + 1, in_shardings=S8, donate_argnums=0)(x)\n(y, x.is_deleted(), x)",
]
_STRUCT = "jax.ShapeDtypeStruct((8,), 'float32'{})"
AHEAD = [f"c = jax.jit(lambda x: x + 1).lower({lowered}).compile()\nc({called}), c.input_shardings, c.output_shardings"
         for lowered in ("x8", "jax.device_put(x8, S8)", "jax.device_put(x8, D[3])", _STRUCT.format(""),
                         _STRUCT.format(", sharding=S8"), "jax.device_put(x8, NamedSharding(e8, P('i')))")
         for called in ("x8", "jnp.asarray(x8)", "jax.device_put(x8, S8)", "jax.device_put(x8, D[0])",
                        "jax.device_put(x8, NamedSharding(m8, P()))")
         ] + ["c = jax.jit(lambda x: x + 1, in_shardings=S8).lower(x8).compile()\nc(jax.device_put(x8, D[1]))",
              "c = jax.jit(lambda *xs: sum(xs)).lower(*[x8] * 6).compile()\nc(*[jax.device_put(x8, S8)] * 6)"]

# along dimensions that arrays lack
LACKING = ["shard(lambda x: lax.psum_scatter(x, 'i', scatter_dimension=3, tiled=True), P(), P('i'))(x8)",
           "shard(lambda x: lax.psum_scatter(x, 'i', scatter_dimension=1), P(), P())(x8)",
           "shard(lambda x: lax.all_to_all(x, 'i', 3, 0), P(), P('i'))(x8)",
           "shard(lambda x: lax.all_to_all(x, 'i', 0, 2, tiled=True), P(), P('i'))(x8)"]

# what is printed of values that all devices have
_SHOWN = ["x", "x + 1", "x.max()", "lax.pmin(x, 'b')", "lax.pmax(x, ('a', 'b'))", "jnp.ones(2)", "lax.axis_index('a')",
          "jnp.floor(lax.pmax(x, ('a', 'b')))", "lax.ppermute(x, 'b', [(0, 1), (1, 0)])", "y", "x.astype(jnp.bfloat16)",
          "lax.psum(x, ('a', 'b')) > 3"]
_SEEN = ("seen, y = [], jnp.arange(3.)\ndef f(x):\n    v = {}\n    seen.extend([str(v), repr(v), f'{{v}}'])\n"
         "    return x\n")
SHOWN = [*(_SEEN.format(v) + "jax.shard_map(f, mesh=m42, in_specs=P('a', 'b'), out_specs=P('a', 'b'))(x64)\nseen"
           for v in _SHOWN),
         *(_SEEN.format("x") + row for row in (
             "jax.shard_map(f, mesh=m42, in_specs=P('b'), out_specs=P('b'), check_vma=False)(x8)\nseen",
             "jax.shard_map(f, mesh=Mesh(np.array(D[::-1]), ('i',)), in_specs=P('i'), out_specs=P('i'))(x8)\nseen",
             "jax.jit(jax.shard_map(f, mesh=m42, in_specs=P('a', 'b'), out_specs=P('a', 'b')))(x64)\nseen",
             "jax.grad(lambda x: jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs=P('i'))(x).sum())(x8)\nseen",
             "jax.make_jaxpr(jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs=P('i')))(x8)\nseen",
             "k = jax.random.split(jax.random.key(0), 8)\n"
             "jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs=P('i'))(k)\nseen"))]

# what `pmap` says, and where it expects its arguments
PMAPS = [
    "jax.pmap(lambda x: x)(np.zeros(9))", "jax.pmap(lambda x: x, 'p')(np.zeros(12))",
    "jax.pmap(lambda x, y: x + y, in_axes=(None, None))(x8, x8)", "jax.pmap(lambda x: x, in_axes=None)(x8)",
    "jax.pmap(lambda x, y: x, in_axes=(None, {'a': None}), axis_size=4)(x8, {'a': x8})", "jax.pmap(lambda x: x)(None)",
    "jax.pmap(lambda x, y: x + y)(x8[:4], x16[:5])",
    "jax.pmap(lambda x, y: x, in_axes=(0, 1))(x8, x16.reshape(2, 8)[:, :5])",
    "jax.pmap(lambda x: x, in_axes=(0, 0))(x8)", "jax.pmap(lambda x, y: x, in_axes=(0,))(x8, x8)",
    "jax.pmap(lambda x: x, in_axes=({'a': 0},))({'b': x8})", "jax.pmap(lambda x: x, donate_argnums=5)(x8)",
    "c = jax.pmap(lambda x, y: x + y, in_axes=(0, None)).lower(x8, x8).compile()\n"
    "c.input_shardings, c.output_shardings, c(x8, x8)",
    "c = jax.pmap(lambda x: x * 2, 'p', in_axes=1).lower(jnp.asarray(x64)).compile()\nc.input_shardings, c(x64)",
]

# Programs as text where a mesh is in force: calls tell it.
TEXTS = [
    *(f"with jax.set_mesh({mesh}):\n    y = jax.device_put(x8, P('i'))\n    out = str({call})\nout" for mesh, call in (
        *((m, "jax.make_jaxpr(lambda y: jax.jit(jnp.sin)(y) * 2)(y)") for m in ("e8", "m8")),
        *(("e8", f"jax.make_jaxpr({f})(y)") for f in (
            "lambda y: jax.jit(lambda z: jax.jit(jnp.sin)(z) + 1)(y)", "jax.vmap(jax.jit(jnp.sin))", "jax.nn.relu",
            "jnp.linalg.norm", "lambda y: jnp.where(y > 0, y, 0)",
            "lambda y: jax.jit(lambda z: z, donate_argnums=0)(y)",
            "lambda y: lax.scan(lambda c, _: (c * 2, None), y, None, length=3)", "lambda y: jax.reshard(y, P())")),
        ("e8", "jax.make_jaxpr(jax.jit(jnp.sin))(y).eqns[0].params['ctx_mesh']"),
        ("m8", "jax.make_jaxpr(lambda y: jax.jit(lambda z: z, in_shardings=P('i'), out_shardings=P())(y))(x8)"),
        ("m8", "jax.make_jaxpr(lambda y: lax.with_sharding_constraint(y, S8))(x8)"),
        ("e8", "jax.jit(jnp.sin).lower(y).as_text()"), ("m8", "jax.jit(lambda y: y * 2).lower(y).as_text()"))),
    "jax.jit(lambda x: x * 2).lower(jax.device_put(x64, S42)).as_text()",
    "with jax.set_mesh(e42):\n    out = jax.jit(lambda x: jax.reshard(jax.reshard(x, P(('a', 'b'))), "
    "P(None, ('b', 'a')))).lower(x64).as_text()\nout",
    "str(jax.make_jaxpr(jax.vmap(lambda z: lax.with_sharding_constraint(z, NamedSharding(m42, P('a'))), "
    "spmd_axis_name='b'))(x64))",
]

ROWS = {"pmap's words": [*map(said, PMAPS)], "shown": SHOWN, "words of specifications": [*map(said, SPECIFICATIONS)],
        "texts of programs": TEXTS,
        "words of prefixes": [*map(said, PREFIXES)],
        "given elsewhere": [*map(said, GIVEN)], "ahead of time": [*map(said, AHEAD)], "lacking": LACKING}
