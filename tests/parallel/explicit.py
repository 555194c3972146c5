"""Arrays on meshes with explicit axes: what operations are told of their results, stages ahead of time, what stands for
arrays, and what does not fit."""

from __future__ import annotations

INITIALIZERS = ["zeros", "ones", "constant(2.)", "uniform()", "normal()", "truncated_normal()", "glorot_normal()",
                "he_uniform()", "orthogonal()"]

# functions that are told how their result is spread: it is, eagerly and in programs
TOLD = [
    *(f"jax.nn.initializers.{f}(jax.random.key(0), (8, 2), out_sharding=P('i')) * 0" for f in INITIALIZERS),
    "jnp.arange(16.).reshape(8, 2, out_sharding=P('i'))",
    "jax.device_put(x64, P('i')).reshape(64, out_sharding=P('i'))",
    "jnp.arange(16.).reshape(2, 8).flatten(out_sharding=P('i'))",
    "jnp.repeat(jnp.asarray(x8), 2, out_sharding=P('i'))",
    "jnp.repeat(jnp.asarray(x8), i8 % 3, total_repeat_length=8, out_sharding=P('i'))",
    "jax.ops.segment_sum(jnp.asarray(x16), i16 // 2, num_segments=8, out_sharding=P('i'))",
    "jax.ops.segment_max(jnp.asarray(x16), i16 // 2, num_segments=8, out_sharding=P('i'))",
    "jax.ops.segment_prod(jnp.asarray(x16), i16 // 2, num_segments=8, out_sharding=P(unreduced={'i'}))",
    "jnp.asarray(x16).at[i8].get(out_sharding=P('i'))",
    "jnp.asarray(x16).at[i8].set(1., out_sharding=P('i'))",
    "jnp.full((8, 2), 3., out_sharding=NamedSharding(e8, P('i')))",
    "lax.reduce(jnp.asarray(x64), np.float32(0), lax.add, (1,), out_sharding=P('i'))",
    "jnp.bincount(i8, length=8, out_sharding=P('i'))",
    "jnp.percentile(jnp.asarray(x8), 50., out_sharding=P())",
    "jax.jit(lambda x: x * 2, out_shardings=P('i'))(jnp.arange(8)) + 1",
]
_EACH = ("def f():\n    return {}\n"
         "with jax.set_mesh(e8):\n    out = [(y, str(jax.typeof(y)), y.sharding.spec) for y in "
         "(f(), jax.jit(f)())]\nout")

MISTAKES = [
    "jnp.zeros(8, out_sharding=NamedSharding(m8, P(None)))",
    "jnp.zeros(8, out_sharding=NamedSharding(m42, P(None)))",
    "jnp.einsum('ij,jk->ik', x64, x64, out_sharding=NamedSharding(m8, P()))",
    "jax.jit(lambda x: jnp.einsum('ij,jk->ik', x, x, out_sharding=NamedSharding(m8, P())))(x64)",
    "jnp.zeros(8, out_sharding='i')",
    "jnp.zeros(7, out_sharding=P('i'))",
    "jax.sharding.auto_axes(lambda x: jnp.einsum('ij,jk->ik', x, x, out_sharding=P('i')), out_sharding=P('i'))(x64)",
    "w, x = jnp.ones((1, 8)), jax.device_put(x64, P('i'))\n"
    "jax.jit(jax.shard_map(lambda x: x + w, in_specs=P('i'), out_specs=P('i')))(x)",
    "w, x = jnp.ones((1, 8)), jax.device_put(x64, P('i'))\n"
    "jax.shard_map(lambda w, x: x * w, in_specs=(P(), P('i')), out_specs=P('i'))(w, x)\n"
    "jax.shard_map(lambda x: x * w, in_specs=P('i'), out_specs=P('i'))(x)",
]

PLAIN = [
    "jax.jit(lambda k: jax.random.normal(k, (8, 2), out_sharding=NamedSharding(e8, P('i'))))(jax.random.key(0))",
    "lax.with_sharding_constraint(jax.device_put(x8, S8), NamedSharding(Mesh(np.array(D[::-1]), ('i',)), P('i')))",
    "jax.jit(lambda x: x, out_shardings=NamedSharding(Mesh(np.empty((), object), ()), P()))(x8)",
    "jax.jit(lambda x: x, in_shardings=NamedSharding(Mesh(np.empty((), object), ()), P()))(x8)",
    *(f"jax.make_mesh((4, 2), ('a', 'b'), {types}).axis_types" for types in (
        "jax.sharding.AxisType.Auto", "('auto', 'auto')", "[jax.sharding.AxisType.Auto] * 2", "()",
        "(jax.sharding.AxisType.Auto,) * 3", "'auto'")),
    "jax.sharding.AbstractMesh((2, 2), ('x', 'y')).update_axis_types({'x': 'explicit'})",
    "NamedSharding(m8, None)", "NamedSharding(None, P())", "NamedSharding(m8, 'i')", "NamedSharding(m8, ('i',))",
    "class C:\n    __slots__ = ()\n    def __call__(self, x):\n        return x\nf = jax.jit(C())\nf(x8)",
    *(f"jax.jit(lambda x: x).lower(1.).compile(compiler_options={{'{k}': {v}}})(1.)" for k, v in (
        ("xla_embed_ir_in_executable", "'maybe'"), ("xla_embed_ir_in_executable", "'true'"),
        ("xla_backend_optimization_level", "'two'"), ("xla_backend_optimization_level", "'2'"))),
]

# Reads of what is spread, and what has zeros or branches beside it inside.
_SPREAD = "s, t = jax.device_put(x64, P('i')), jax.device_put(i64, P(None, 'i'))\n"
READS = [f"with jax.set_mesh(e8):\n    {_SPREAD}    try:\n        y = {row}\n        out = y, str(jax.typeof(y))\n"
         "    except Exception as e:\n        out = type(e).__name__, str(e)\nout" for row in (
    "s[0]", "s[:, 0]", "s[0, 0]", "s[:4]", "s[::2]", "s[None, 0]", "s[...]", "s[:, :4]", "t[0]", "t[-1]",
    "s[jnp.array(0)]",
    "s.at[0].get(out_sharding=P())", "s.at[0].get(out_sharding=P('i'))", "s.at[:, 0].get(out_sharding=P())",
    "s.at[:, :4].get(out_sharding=P())", "s.at[:].get(out_sharding=P())", "t.at[2:5, 1:3].get(out_sharding=P())",
    "t.at[-1, -1].get(out_sharding=P())", "jax.jit(lambda s: s[0])(s)", "jax.jit(lambda s: s[:, 0])(s)",
    "jax.jit(lambda s, k: s[k])(s, 1)", "jax.jit(lambda s: s.at[0].get(out_sharding=P()))(s)",
    "jnp.take_along_axis(s, jnp.zeros((8, 1), int), 1)",
    "jnp.take_along_axis(x64, jax.device_put(i64[:, :1] * 0, P('i')), 1)",
    "jnp.tile(s, (2, 1))", "jnp.tile(s, (1, 2))", "jnp.tile(s, (2, 1, 1))", "jnp.sort(s, 0)", "jnp.linalg.inv(s)",
    "lax.sort((s, jnp.asarray(x64)))", "jnp.zeros(7, out_sharding=P('i'))",
    "lax.scan(lambda c, _: (jax.reshard(c, P()), None), s, None, length=2)",
    "lax.cond(True, lambda s: s, lambda s: jax.reshard(s, P()), s)",
    "jax.jit(lambda s: lax.with_sharding_constraint(s, P(None, 'i')))(s)",
    "jax.grad(lambda s: jax.nn.relu(s).sum())(s)", "jax.grad(lambda s: jax.nn.relu6(s).sum())(s)",
    "jax.nn.logsumexp(s, axis=1)", "jax.nn.logsumexp(s, axis=0)", "jax.nn.log_softmax(s)",
    "jax.nn.softmax(s, where=s > 0)",
    "jax.grad(lambda s: jax.nn.softmax(s)[:, 0].sum())(s)", "jax.scipy.special.xlogy(s, s ** 2)",
    "jax.scipy.special.entr(s)", "jax.scipy.stats.gamma.logpdf(s + 4, 2.)", "jnp.imag(s)", "lax.full_like(s, 3)",
    "jax.vmap(jnp.zeros_like)(s)", "jax.grad(lambda s: jax.nn.logsumexp(s, axis=1).sum())(s)")]

PARTS = [
    *(f"jax.make_array_from_single_device_arrays((8,), S8, {parts})" for parts in (
        "[]", "[jnp.ones(1)]", "[jnp.ones(1)] * 8", "[jax.device_put(np.ones(2), d) for d in D]",
        "[jax.device_put(np.ones(1, t), d) for d, t in zip(D, 'ffffffii')]", "jnp.ones(8)", "list(range(8))",
        "[jax.device_put(np.ones(1), d) for d in D]")),
    *(f"jax.make_array_from_callback((8,), S8, {parts})" for parts in (
        "lambda i: x8[i][:0]", "lambda i: 3", "lambda i: x8[i], dtype=np.int32", "lambda i: x8[i]")),
    "jax.jit(lambda x: jax.make_array_from_callback((8,), S8, lambda i: x[i]))(x8)",
]

GSPMD = [
    "g = GSPMDSharding(D, S42._to_xla_hlo_sharding(2))\n"
    "repr((g, g.shard_shape((8, 4)), g.num_devices, g.is_fully_replicated, g.devices_indices_map((8, 4))))",
    "g = GSPMDSharding(D, S42._to_xla_hlo_sharding(2))\n"
    "(g.is_equivalent_to(S42, 2), S42.is_equivalent_to(g, 2), g == GSPMDSharding(D[::-1], g._to_xla_hlo_sharding(2)))",
    "g = GSPMDSharding(D, S42._to_xla_hlo_sharding(2))\n[(s.device.id, str(s.index), np.asarray(s.data)) for s in "
    "jax.device_put(x64, g).addressable_shards]",
    "g = GSPMDSharding(D, S42._to_xla_hlo_sharding(2))\ny = jax.jit(lambda x: x.sum(1) * 2)(jax.device_put(x64, g))\n"
    "[(s.device.id, str(s.index), np.asarray(s.data)) for s in y.addressable_shards]",
    "GSPMDSharding(D, S42._to_xla_hlo_sharding(2)).shard_shape((7, 2))",
    "GSPMDSharding(D, S42._to_xla_hlo_sharding(2)).check_compatible_aval((8,))",
    "GSPMDSharding(D, 3)",
    "NamedSharding(m42, P('a', unreduced={'b'}))", "NamedSharding(m42, P('a', reduced={'b'}))",
    "NamedSharding(e8, P(unreduced={'q'}))",
]

STRUCTS = [
    "jax.ShapeDtypeStruct((8, 8), 'float32', sharding=NamedSharding(m8, P(None, 'i', None)))",
    "jax.ShapeDtypeStruct((8, 8), 'float32', sharding=P(None, 'i', None))",
    "jax.ShapeDtypeStruct((8, 8), 'float32', sharding=P('i'))",
    "jax.ShapeDtypeStruct((8, 8), 'float32', sharding='i')",
    "jax.ShapeDtypeStruct((), 'float32', sharding=S8)",
    "jax.ShapeDtypeStruct((8, 8), 'float32', vma={'i'})",
    "jax.ShapeDtypeStruct((8, 8), 'float32', manual_axis_type=3)",
    "repr(jax.ShapeDtypeStruct((8,), 'float32', manual_axis_type=jax.sharding.ManualAxisType(varying={'i'})))",
    "repr(jax.ShapeDtypeStruct((8,), 'float32', weak_type=True, is_ref=True).update(weak_type=False))",
    "repr(jax.ShapeDtypeStruct((8, 8), 'float32', sharding=S8).format)",
    "jax.ShapeDtypeStruct((8, 8), 'float32', sharding=NamedSharding(m42, P('a', 'b'))).update(shape=(8,))",
    "x = jax.ShapeDtypeStruct((8,), 'float32')\nx.shape = (3,)",
    "x = jax.ShapeDtypeStruct((8,), 'float32')\nx.another = (3,)",
    "with jax.set_mesh(e8):\n    out = repr(jax.ShapeDtypeStruct((8,), 'float32', sharding=P('i')))\nout",
    "with jax.set_mesh(e8):\n    out = repr(jax.ShapeDtypeStruct((8,), 'float32', sharding=P('q')))\nout",
    "x = jax.ShapeDtypeStruct((8,), 'float32', sharding=S8)\nrepr(pickle.loads(pickle.dumps(x.update(sharding=None))))",
]

ARGUMENTS = ["y8, 1.", "1., y8", "y8, y8", "3., 4.", "jax.device_put(1., D[1]), 2.", "np.ones(3), y8",
             "jax.ShapeDtypeStruct((8,), 'float32', sharding=S8), 1.",
             "jax.ShapeDtypeStruct((8,), 'float32', sharding=NamedSharding(m8.abstract_mesh, P('i'))), y8"]
STAGES = [f"y8 = jax.device_put(x8, S8)\nc = jax.jit(lambda x, y: {result}{more}).lower({given}).compile()\n"
          "repr((c.input_shardings, c.output_shardings, c.input_formats))"
          for given in ARGUMENTS for result in ("(x * 2, y)", "x * 2") for more in ("", ", keep_unused=True")
          if not more or result == "(x * 2, y)" or given == "y8, 1."]
STAGES = [row for row in STAGES if "abstract_mesh" not in row or "x * 2, y" in row]  # else only the unused one is there
STAGES.append("m = jax.sharding.AbstractMesh((2,), ('i',))\njax.jit(lambda x, y: (x, y)).lower("
              "jax.ShapeDtypeStruct((8,), 'float32', sharding=NamedSharding(m, P('i'))), jax.device_put(x8, S8))")

# maps over some axes of a mesh whose others are explicit, programs that see axes in two ways, casts
_PART = ("def f(x):\n    seen.append(str(jax.typeof(x)))\n    return {}\nout = []\nwith jax.set_mesh(e42):\n"
         "    x = jax.device_put(x64, P('a', 'b'))\n    for wrap in (lambda f: f, jax.jit):\n        seen = []\n"
         "        y = wrap({})(x)\n        out.append((y, y.sharding.spec, seen[:1]))\nout")
PARTLY = [
    *(_PART.format(body, f"jax.shard_map(f, out_specs={out}, axis_names={{{name}}})") for body, out, name in (
        ("x * 2", "P('a')", "'a'"), ("x * 2", "P(None, 'b')", "'b'"), ("x.T", "P(None, 'a')", "'a'"),
        ("lax.psum(x, 'a')", "P()", "'a'"), ("x.sum(0)", "P('a')", "'a'"), ("jnp.sin(x)[None]", "P('a')", "'a'"),
        ("lax.all_gather(x, 'b', axis=1, tiled=True)", "P(None, 'b')", "'b'"))),
    _PART.format("x * 2", "jax.smap(f, in_axes=1, out_axes=1, axis_name='a')"),
    _PART.format("x + 1", "jax.smap(f, in_axes=0, out_axes=0, axis_name='b')"),
    _PART.format("jax.smap(lambda a: a * 3, in_axes=1, out_axes=1, axis_name='b')(x)",
                 "jax.smap(f, in_axes=0, out_axes=0, axis_name='a')"),
    _PART.format("jnp.sin(x).sum()", "jax.grad(lambda x: jax.shard_map(lambda a: f(a)[None], out_specs=P('a'), "
                 "axis_names={{'a'}})(x).sum())".replace("{{", "{").replace("}}", "}")),
]
TWICE = [
    "am = e42.abstract_mesh\ndef f(x):\n    with jax.sharding.use_abstract_mesh(am.update(axis_sizes=(8, 1), "
    "axis_names=('c', 'd'))):\n        y = jax.reshard(jnp.sin(x), P('c', None)) * 2\n"
    "    return jax.reshard(y, P('b'))\n"
    "with jax.set_mesh(e42):\n    x = jax.device_put(x64, P('a', 'b'))\n    out = [jax.jit(f)(x), jax.jit("
    "jax.grad(lambda x: jax.jit(f)(x).sum()))(x), jax.vjp(jax.jit(f), x)[1](x)[0]]\nout",
    "am = e42.abstract_mesh\ndef f(x):\n    x = jnp.sin(x)\n    with jax.sharding.use_abstract_mesh(am.update("
    "axis_sizes=(8, 1), axis_names=('c', 'd'))):\n        y = jax.reshard(x, P(('c', 'd'), None)) * 2\n"
    "    return jax.reshard(y, P('b'))\n"
    "with jax.set_mesh(e42):\n    x = jax.device_put(x64, P('a', 'b'))\n    out = [jax.jit(f)(x), jax.jit("
    "jax.grad(lambda x: jax.jit(f)(x).sum()))(x), jax.jvp(jax.jit(f), (x,), (x,))[1], jax.vmap(jax.jit(f))("
    "jnp.ones((2, 8, 8))), jax.jit(jax.grad(lambda x: jax.checkpoint(f)(x).sum()))(x)]\nout",
    "def f(x):\n    return jax.sharding.auto_axes(lambda y: jnp.sin(y) @ y.T, axes='a', out_sharding=P('a', None))(\n"
    "        x * 2)\n"
    "with jax.set_mesh(e42):\n    x = jax.device_put(x64, P('a', 'b'))\n    closed = jax.make_jaxpr(f)(x)\n"
    "    out = [jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0].sharding.spec]\nout",
    "am = m42.abstract_mesh.update_axis_types({n: jax.sharding.AxisType.Explicit for n in 'ab'})\ndef f(x):\n"
    "    with jax.sharding.use_abstract_mesh(am):\n        y = jnp.sin(jax.reshard(x * 2, P(None, 'b')))\n"
    "    return jax.reshard(y, P(None, None))\nwith jax.set_mesh(m42):\n    out = np.asarray(jax.jit(f)(x64))\nout",
]
CASTS = [f"with jax.set_mesh(e8):\n    out = {row}\nout" for row in (
    "lax.pcast(x8, 'i', to='varying')", "lax.pcast(x8, 'i', to='reduced')",
    *(f"jax.shard_map(lambda a: lax.pcast(a, {name}, to={to!r}), in_specs={spec}, out_specs=P('i'))(jax.device_put(x8, "
      f"{spec}))" for name, to, spec in (
          ("{'i'}", "varying", "P('i')"), ("'i'", "varying", "P('i')"), ("'i'", "varying", "P()"),
          ("'i'", "unreduced", "P()"), ("'i'", "reduced", "P('i')"), ("()", "varying", "P('i')"),
          ("'i'", "nowhere", "P()"))))]
CASTS.append("with jax.set_mesh(e8), jax.auto_pcast(False):\n    out = jax.smap(lambda a, b: a * b, in_axes=(0, None), "
             "out_axes=0, axis_name='i')(jax.device_put(x8, P('i')), jax.device_put(x8[:1], P()))\nout")
# conversions that are told a sharding, under transformations
CONVERSIONS = [
    f"c = lambda x, d: lax.convert_element_type_p.bind(x, new_dtype=np.dtype(d), weak_type=False, sharding={to})\n"
    f"with jax.set_mesh(e42):\n    x = jax.device_put(x64, {at})\n    out = [y.sharding.spec for y in ({row},)]\nout"
    for at in ("P('a', 'b')", "P(None, None)") for to, row in (
        ("NamedSharding(e42.abstract_mesh, P('b'))", "jax.jit(jax.vmap(lambda x: c(x, 'int32')))(x)"),
        ("NamedSharding(e42, P('a'))", "jax.jit(jax.vmap(lambda x: c(x, 'int32'), in_axes=1, out_axes=1))(x)"),
        ("NamedSharding(e42, P('b'))", "jax.jit(jax.grad(lambda x: c(x, 'float16').sum()))(x)"))
    if at == "P(None, None)" or "in_axes" not in row]
# types that tell nothing of axes with one device
_SINGLE = ("m = jax.make_mesh((2, 1), ('x', 'y'), (jax.sharding.AxisType.{kind},) * 2)\nseen = []\n"
           "with jax.set_mesh(m), jax.remove_size_one_mesh_axis_from_type(True):\n"
           "    x = jax.device_put(x64, NamedSharding(m, P('x', 'y')))\n    def f(x):\n        y = {body}\n"
           "        seen.append((str(jax.typeof(x)), str(jax.typeof(y))))\n        return y\n    out = jax.typeof(x), "
           "np.asarray(jax.jit(jax.shard_map(f, in_specs=P('x', 'y'), out_specs={out}, mesh=m))(x)), seen[:1]\nout")
SINGLE = [_SINGLE.format(kind=kind, body=body, out=out) for kind in ("Auto", "Explicit") for body, out in (
    ("x", "P('x', 'y')"), ("x", "P('x')"), ("lax.psum(x, 'x')", "P()"), ("lax.psum(x, 'y')", "P('x')"),
    ("lax.psum(x, ('x', 'y'))", "P(None, 'y')"), ("lax.pcast(x, 'y', to='varying')", "P('x')"),
    ("lax.axis_index('y') + x", "P('x')"), ("lax.pmean(x, 'y')", "P('x', 'y')"), ("x * 2", "P()"),
    ("lax.pcast(jnp.ones((4, 8)), ('x', 'y'), to='varying')", "P('x')"))] + [
    "m = jax.make_mesh((2, 1), ('x', 'y'))\nwith jax.set_mesh(m), jax.remove_size_one_mesh_axis_from_type(True):\n"
    f"    out = {row}\nout" for row in (
        "str(jax.jit(lambda x: lax.pcast(x, 'y', to='varying')).trace(x8).jaxpr)",
        "str(jax.jit(lambda x: lax.psum(x, 'y')).trace(x8).jaxpr)",
        "str(jax.jit(lambda x: lax.psum(x, 'x')).trace(x8).jaxpr)",
        "str(jax.typeof(jax.reshard(x64, P('y', 'x'))))", "str(jax.typeof(jax.device_put(x64, P(('x', 'y')))))")]
STRUCTS += [
    *(f"with jax.set_mesh(e8):\n    out = repr(jax.ShapeDtypeStruct.like({x}))\nout" for x in (
        "jax.device_put(x64, P('i'))", "x64", "np.float64(3)", "3.", "jax.typeof(jax.device_put(x64, P('i')))",
        "jax.ShapeDtypeStruct((8,), 'int32', sharding=P('i'), weak_type=True)", "[1, 2]")),
    *(f"seen = []\nwith jax.set_mesh(e8):\n    {wrap}(lambda x: (seen.append(repr(jax.ShapeDtypeStruct.like(x))), x)[1]"
      f"{more})(jax.device_put(x64, P('i')))\nseen[:1]" for wrap, more in (
          ("jax.jit", ""), ("jax.vmap", ""))),
    "x = jax.ShapeDtypeStruct((8,), 'float32', sharding=P('i'))\n"
    "with jax.set_mesh(e8):\n    out = repr(x.sharding)\nout",
    "jax.ShapeDtypeStruct((8,), 'float32', sharding=P('i')).sharding",
]

ROWS = {
    "told": [_EACH.format(row) for row in TOLD],
    "explicit mistakes": [f"with jax.set_mesh(e8):\n{indented}" for indented in (
        "\n".join(f"    {line}" for line in row.split("\n")) + "\n0" for row in MISTAKES)],
    "shardings' mistakes": PLAIN, "parts": PARTS, "structs": STRUCTS, "stages": STAGES, "tiles": GSPMD,
    "partly": PARTLY, "twice": TWICE, "casts": CASTS, "reads": READS,
    "conversions": CONVERSIONS, "single": SINGLE,
}
