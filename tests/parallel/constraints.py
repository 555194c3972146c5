"""What is said of where arrays are: constraints, devices of functions that make arrays, meshes, memory to be given."""

from __future__ import annotations

SETUP = """
one, am = SingleDeviceSharding(D[1]), m42.abstract_mesh
A42 = lambda *spec: NamedSharding(am, P(*spec))
N42 = lambda *spec: NamedSharding(m42, P(*spec))
U = P.UNCONSTRAINED
def parameters(spec, x=np.ones((2, 3, 4), np.float32), **options):
    f = lambda x: lax.with_sharding_constraint(x, N42(*spec))
    found = jax.make_jaxpr(jax.vmap(f, **options))(x).eqns[0].params
    return str(found['sharding'].spec), sorted(found['unconstrained_dims'])
wsc = lax.with_sharding_constraint
def spread(f, sharding=S8):
    return jax.jit(f)(jax.device_put(x64, sharding))
def donated(x, device, donate):
    y = jax.device_put(x, device, donate=donate)
    return [a.is_deleted() for a in jax.tree.leaves(x)], y
"""

CONSTRAINTS = [
    "lax.with_sharding_constraint(x64, None)", "lax.with_sharding_constraint((x64, x64), (None, S8))",
    "jax.jit(lambda x: lax.with_sharding_constraint(x, None))(x64)", "lax.with_sharding_constraint((x64, x64), (S8,))",
    "lax.with_sharding_constraint((x64, x64), (S8, NamedSharding(m8, P(None, 'i'))))",
    "lax.with_sharding_constraint(x64, A42('a'))", "lax.with_sharding_constraint(jnp.asarray(x64), A42('a'))",
    "lax.with_sharding_constraint(jax.device_put(x64, S8), A42('a'))",
    "lax.with_sharding_constraint(jax.device_put(x64, S42), A42(None, 'a'))",
    "lax.with_sharding_constraint(x64, NamedSharding(e8, P('i')))", "lax.with_sharding_constraint(x64, P('i'))",
    "with m8:\n    y = jax.jit(lambda x: lax.with_sharding_constraint(x, P('i')))(x64)\ny",
    "m8(lambda: lax.with_sharding_constraint(jnp.asarray(x64), P('i')))()",
    "jax.jit(jax.vmap(lambda x: lax.with_sharding_constraint(x, one), spmd_axis_name='x'))(x64)",
    "jax.vmap(shard(lambda x: x, P('i'), P('i')), spmd_axis_name='i')(x64)",
    *(f"parameters({spec})" for spec in (
        "('a', 'b'), spmd_axis_name='b'", "('a',), spmd_axis_name='a'", "(U, 'a'), spmd_axis_name='b'", "(U, None)",
        "(U, 'b'), in_axes=1, spmd_axis_name='a'", "('a', U), in_axes=1", "('a', None), in_axes=2")),
    "jax.jit(lambda x: lax.with_sharding_constraint(x, S42), out_shardings=one)(x64)",
    "jax.jit(lambda: lax.with_sharding_constraint(jnp.zeros(8), S8), out_shardings=one)()",
    "jax.jit(lambda x: x, in_shardings=N42(U, 'a'))", "jax.jit(lambda x: x, out_shardings=N42(U, 'a'))",
    "jax.jit(lambda x: x, in_shardings=P(U))", "NamedSharding(e8, P(U))", "N42(U).spec",
    "with jax.set_mesh(m8):\n    jax.jit(lambda x: x, device=D[1])(x64)",
    "jax.jit(lambda x: jax.set_mesh(m8))(1.)",
]

ARRAYS = [
    *(f"jnp.{f}({x}, dtype={t}, device={d})" for f in ("array", "asarray") for t in ("None", "'int32'")
      for x in ("jax.device_put(x64, D[2])", "jax.device_put(x64, S8)") for d in ("D[1]", "S42")),
    *(f"jax.jit(lambda x: jnp.{f}(x, device={d}))({x})" for f in ("array", "asarray") for d in ("D[1]", "S42")
      for x in ("x64", "jnp.asarray(x64)", "jax.device_put(x64, D[1])", "jax.device_put(x64, S8)")),
    *(f"c = {x}\njax.jit(lambda: jnp.array(c, device={d}))()" for d in ("D[1]", "S42")
      for x in ("x64", "jnp.asarray(x64)", "jax.device_put(x64, D[2])", "jax.device_put(x64, S42)")),
    "jax.jit(lambda: jnp.array(x64, device=one) * 2)()", "jax.jit(lambda x: jnp.array(x, device=D[1]).sum())(x64)",
    "jax.make_array_from_single_device_arrays((8,), S8, 3)",
    "jax.jit(lambda x: jax.make_array_from_single_device_arrays((8,), S8, [x]))(x8)",
    *(f"jax.jit({f}).lower({x}).compile().out_info" for f in ("lambda x: x * 2", "lambda x: {'a': x.sum(0), 'b': None}")
      for x in ("x64", "jax.device_put(x64, S8)", "jax.device_put(x64, D[1])")),
    *(f"str(jax.jit({f}).lower(x64).compile().{told})" for f in ("lambda x: None", "lambda x: (None, x)")
      for told in ("out_info", "output_formats", "input_formats", "output_shardings")),
    *(f"donated({x}, {d}, {donate})"
      for x in ("jax.device_put(x64, S8)", "jax.device_put(x64, D[1])", "jnp.asarray(x64)")
      for d in ("S42", "D[1]", "NamedSharding(m8, P(None, 'i'))") for donate in ("True", "False")),
    "donated((jax.device_put(x64, S8), jax.device_put(x8, S8)), NamedSharding(m8, P()), (True, False))",
    "donated((jnp.asarray(x64), jnp.asarray(x8)), D[1], (True,))",
    "jax.device_put((x64, x8), donate=(True, False), may_alias=(True, None))",
    "y = jnp.asarray(x64)\n[z is y for z in jax.device_put((y, y, y), may_alias=(True, False, None))]",
]

# what the host finds out of arrays is where these are
BESIDE = [
    f"{f.format(x)}" for x in ("jax.device_put(i64 % 3, D[2])", "jax.device_put(i64 % 3, S42)") for f in (
        "jnp.nonzero({})", "jnp.argwhere({})", "jnp.flatnonzero({})", "jnp.where({})", "jnp.nonzero({}, size=9)",
        "jnp.unique({}, return_index=True, return_inverse=True, return_counts=True)")
] + [
    "jax.pure_callback(np.sin, jax.ShapeDtypeStruct((8,), 'float32'), jax.device_put(x8, D[2]))",
    *(f"jnp.{f}(jax.device_put(x64, D[2]), shape={shape})" for f in ("zeros_like", "ones_like", "empty_like")
      for shape in ("(3,)", "(8, 8)", "()") if f != "empty_like" or shape == "()"),
    "jnp.full_like(jax.device_put(x64, D[2]), 2, shape=(2,))", "jnp.ones_like(jax.device_put(x64, S8), shape=(2,))",
]

# several meshes over the same devices in one program
MESHES = [
    "spread(lambda x: wsc(x * 2, S42) + 1)", "spread(lambda x: (wsc(x, S42), x + 1))",
    "spread(lambda x: wsc(x, S42).sum(0))", "spread(lambda x: jax.jit(lambda x: wsc(x, N42('b')))(x))",
    "spread(lambda x: wsc(wsc(x, S42), NamedSharding(m8, P(None, 'i'))))",
    "spread(jax.grad(lambda x: wsc(x, N42('a')).sum()))", "spread(lambda x: wsc(x, NamedSharding(m222, P(None, 'y'))))",
    "spread(lambda x: (wsc(x, S42) * 2).T)", "spread(lambda x: wsc(x, NamedSharding(m222, P(('x', 'z')))), S42)",
    "spread(lambda x: wsc(x.T, NamedSharding(m222, P('y'))) * 2, S42)",
    "jax.jit(lambda x: wsc(x, S42), in_shardings=S8)(x64)",
    "jax.jit(lambda x: wsc(x, N42('a')), out_shardings=NamedSharding(m8, P(None, 'i')))(x64)",
    "jax.jit(lambda x, y: (x + 1, y + 1))(jax.device_put(x64, S8), jax.device_put(x64, S42))",
]

SHARDINGS = [
    "type('Q', (P,), {})", "Mesh(np.array(D), ('i',)) is m8", "Mesh(np.array(D[::-1]), ('i',)) is m8",
    "m42.abstract_mesh is am",
    "NamedSharding(am, P('a'), memory_kind='weird')", "NamedSharding(am, P('a'), memory_kind='pinned_host')",
    *(f"A42({a}).is_equivalent_to(A42({b}), 2)" for a in ("'a'", "'a', 'b'", "None", "('a', 'b')", "") for b in (
        "'a'", "'a', None", "None, 'a'", "('b', 'a')", "None")),
    "A42('a').is_equivalent_to(N42('a'), 2)", "N42('a').is_equivalent_to(A42('a'), 2)",
    "A42('a').is_equivalent_to(NamedSharding(jax.sharding.AbstractMesh((4, 2), ('x', 'y')), P('x')), 2)",
    "N42('a').is_equivalent_to(NamedSharding(m42, P('a'), memory_kind='pinned_host'), 2)",
    "jax.make_mesh(((4,), 2), ('a', 'b'))", "jax.make_mesh((3, 4), ('a', 'b'))", "jax.make_mesh((2,), ('a', 'b'))",
    "jax.core.ShapedArray((8,), np.dtype('float32'), memory_space=jax.memory.Space.Host).str_short(True)",
    "str(jax.core.ShapedArray((8,), np.dtype('float32'), memory_space=jax.memory.Space.Device))",
    *("from jax.experimental.layout import Format, Layout\ns = jax.ShapeDtypeStruct((2, 4), 'int32', "
      f"sharding=Format(Layout((0, 1)), N42()))\nstr(s.update({change}))" for change in (
          "sharding=N42('b')", "sharding=None", "shape=(4, 4)", "dtype='float32'",
          "sharding=Format(Layout((1, 0)), N42('b'))")),
]

ROWS = {"constraints": [SETUP + row for row in CONSTRAINTS + ARRAYS + BESIDE + MESHES + SHARDINGS]}
