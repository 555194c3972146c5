"""Arrays that are still to be summed along mesh axes: what each device has of them, and what may be done with them."""

from __future__ import annotations

ON_22 = "with jax.set_mesh(e22):\n"
# a, b: summands along x; r: summed along x; g: summands that differ, along both
ARRAYS = ("a, b = (jax.reshard(jnp.arange(4.), s) for s in (P(unreduced={'x'}), P('y', unreduced={'x'})))\n"
          "r = jax.reshard(jnp.arange(1., 5.), P(reduced={'x'}))\n"
          "g = jax.make_array_from_single_device_arrays((4,), NamedSharding(e22, P(None, unreduced={'x', 'y'})), [\n"
          "    jax.device_put(np.full(4, i, np.float32), d) for i, d in enumerate(e22.devices.flat)])\n"
          "s, w = jax.device_put(x8, P(('x', 'y'))), jax.device_put(x64, P('x', 'y'))\n"
          "v, u = jax.device_put(x64, P(None, 'x')), jax.device_put(x64, P('x', None))\n")


def on_22(*lines: str) -> str:
    """A row under the mesh, whose last line is an expression."""
    *first, last = (ARRAYS + "\n".join(lines)).split("\n")
    body = "".join(f"    {line}\n" for line in (*first, f"out = {last}"))
    return f"{ON_22}{body}out"


RESHARDED = [*(("a", s) for s in ("P('y', unreduced={'x'})", "P()", "P('x')", "P('y')", "P(reduced={'x'})")),
             ("b", "P(unreduced={'x'})"), ("b", "P('x')"), ("r", "P(unreduced={'x'})"), ("r", "P('x')"),
             *(("g", s) for s in ("P()", "P(unreduced={'x'})", "P(unreduced={'y'})", "P('x', unreduced={'y'})",
                                  "P('x')")),
             *(("s", s) for s in ("P(unreduced={'x'})", "P(unreduced={'y'})", "P('x', unreduced={'y'})")),
             *(("w", s) for s in ("P('x', unreduced={'y'})", "P(None, 'y', unreduced={'x'})", "P(unreduced={'x'})")),
             ("jnp.float32(3)", "P(unreduced={'x'})"), ("jnp.arange(3)", "P(unreduced={'y'})"),
             ("jnp.zeros((0, 2))", "P(unreduced={'x'})"), ("jnp.arange(4, dtype='bfloat16')", "P(unreduced={'y'})")]

LINEAR = ["a + a", "g + g", "a * r", "r * a", "a.astype('bfloat16')", "a.reshape(2, 2)",
          "a.reshape(2, 2).T", "a.sum()", "a[None]", "lax.broadcast(a, (2,))", "jnp.real(a)", "a.copy()",
          "jnp.concatenate([a, a])", "lax.split(a, (1, 3))[1]", "jax.jit(lambda x: lax.slice(x, (1,), (3,)))(a)",
          "lax.pad(a, np.float32(0), [(1, 2, 0)])", "jnp.where(np.arange(4) > 1, a, a + a)", "jnp.array(a)",
          "lax.fori_loop(0, 3, lambda i, c: c + c, a)", "lax.cond(True, lambda c: c + c, lambda c: c, g)",
          "jax.jit(lambda c: c + c, donate_argnums=0)(g + g)", "jax.device_put(jnp.arange(4.), P(unreduced={'x'}))",
          "jax.device_put(s, P('x', unreduced={'y'}))", "jax.device_put(a, P(unreduced={'x'}))", "copy.deepcopy(g)",
          "jax.jit(lambda x: x * 2, out_shardings=P(unreduced={'x'}))(jnp.arange(4.))",
          "jax.jit(lambda x: x + x, out_shardings=P('x'))(a)",
          "jax.reshard(jax.reshard(jnp.asarray(x8 > 0), P(unreduced={'x'})), P())", "lax.stop_gradient(a)",
          "jax.reshard(jnp.ones(1), P(unreduced={'x'})) + jax.reshard(jnp.ones(1), P(unreduced={'x'}))",
          "jax.reshard(jax.device_put(x8, P('x')) / 0, P(unreduced={'x'}))", "lax.optimization_barrier(a)",
          "jax.jit(lambda x: x + x).lower(a).compile()(a)", "jax.jit(lambda x: lax.optimization_barrier(x))(g)",
          "jax.jit(lambda x: x + x).lower(jax.ShapeDtypeStruct((4,), 'float32', sharding=a.sharding)).compile()(a)",
          "lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + c[1]), (0, g))[1]",
          "jax.jit(lambda x: jax.jit(lambda y: y * 2, out_shardings=P(unreduced={'x'}))(x))(jnp.arange(4.))",
          "jax.jit(lambda x: jax.device_put(x, P(unreduced={'x'})))(jnp.arange(4.))",
          "jax.jit(lambda x: jax.device_put(x, P()))(g)", "jax.device_put(g, a.sharding, may_alias=False)",
          "jax.device_put(g + g, P(unreduced={'x', 'y'}), donate=True)",
          "jax.jit(lambda x: jax.jit(lambda y: jax.reshard(y, P()))(x))(g)",
          "jnp.dot(v, u, out_sharding=P(unreduced={'x'}))", "jax.vjp(lambda x: x.sum(), r)[1](1.)[0]",
          "jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P('x'))(a)",
          "jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P())(r)",
          "jnp.arange(4, out_sharding=P(unreduced={'x'}))",
          "jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P(unreduced={'x'}))(jnp.arange(4.))",
          "lax.reshape(a, (2, 2), out_sharding=P('y', unreduced={'x'}))",
          "r.at[np.array([0, 1])].get(out_sharding=P())",
          "lax.broadcast_in_dim(jnp.arange(4.), (2, 4), (1,), out_sharding=P('y', unreduced={'x'}))",
          "lax.broadcast_in_dim(a, (2, 4), (1,), out_sharding=P('y', unreduced={'x'}))",
          "jnp.asarray(jnp.arange(4.), out_sharding=P(unreduced={'x'}))",
          "jnp.zeros(4, out_sharding=P(unreduced={'x'}))",
          "jnp.einsum('ij,jk->ik', v, u, out_sharding=P(unreduced={'x'}))",
          "jnp.einsum('ij->j', w, out_sharding=P('y', unreduced={'x'}))",
          "jnp.einsum('ij,ij->', w, w, out_sharding=P(unreduced={'x', 'y'}))",
          "lax.reduce_sum(w, axes=(0, 1), out_sharding=P(unreduced={'x'}))",
          "lax.reduce_sum(s, axes=(0,), out_sharding=P(unreduced={'x', 'y'}))",
          "lax.reduce_sum(jnp.dot(w, u.T, out_sharding=P('x')), axes=(0,), out_sharding=P(None, unreduced={'x'}))"]

REFUSED = ["np.asarray(a)", "a.tolist()", "float(a.sum())", "list(a)", "pickle.dumps(a)", "jax.device_get(a)",
           "bool(a.sum())", "jax.device_put(a, P())", "jax.device_put(a, D[0])", "a.addressable_shards[0].index",
           "a.sharding.devices_indices_map((4,))", "jax.device_put(x8, P(unreduced={'x'}))",
           "jax.make_array_from_callback((4,), NamedSharding(e22, P(unreduced={'x'})), lambda i: x8[:4])",
           "jax.vjp(lambda x: x * x, r)[1](r)", "jax.vjp(lambda x: x * x, r)[1](jnp.ones(4))",
           "lax.reshape(a, (2, 2), out_sharding=P())", "lax.reshape(r, (2, 2), out_sharding=P())",
           "lax.reshape(jnp.arange(4), (2, 2), out_sharding=P(unreduced={'x'}))", "r * jnp.ones(4)",
           "jax.reshard(jnp.arange(4), P(reduced={'x'})) * jnp.arange(4)",
           "jnp.bincount(i8 % 3, length=3, out_sharding=P(unreduced={'x'}))",
           "jnp.sin(a)", "a * 2", "a + 1", "a == a", "jnp.dot(w, u, out_sharding=P(unreduced={'x'}))",
           "jnp.dot(v, w, out_sharding=P(unreduced={'x'}))",
           "lax.reduce_sum(w, axes=(0,), out_sharding=P(unreduced={'y'}))"]

TOLD = ["repr(a)", "str(b)", "f'{a}'", "len(a), a.nbytes, a.shape, a.is_fully_replicated, a.is_fully_addressable",
        "g.sharding.is_fully_replicated, a.sharding.is_fully_replicated, r.sharding.is_fully_replicated",
        "b.sharding.shard_shape((4,))", "a.sharding.is_equivalent_to(NamedSharding(e22, P()), 1)",
        "[s.device.id for s in a.global_shards]", "a.addressable_data(2)", "a.addressable_data(2).sharding"]

# derivatives: those of what is left to be summed were summed, and the other way
LOSSES = [("(x * x).sum()", "r"), ("jax.reshard(x, P()).sum()", "a"), ("jax.reshard(x, P('x')).sum()", "r"),
          ("(jnp.sin(jax.reshard(x, P('x'))) * x8[:4]).sum()", "r"), ("jax.reshard(x + x, P()).sum()", "b"),
          ("jax.reshard(x, P('y')).sum()", "g"), ("x.sum()", "a"), ("(x * r).sum()", "a"),
          ("jnp.sin(jnp.sin(x).sum())", "r"),
          ("jax.reshard(jnp.dot(x, u, out_sharding=P(unreduced={'x'})), P()).sum()", "v"),
          ("(jax.reshard(x, P(unreduced={'x'})) * r).sum()", "jnp.arange(4.)"),
          ("jnp.sin(jax.reshard(jnp.dot(x, u, out_sharding=P(unreduced={'x'})), P())).sum()", "v"),
          ("(lax.broadcast_in_dim(x, (2, 4), (1,), out_sharding=P('x')) * np.arange(8.).reshape(2, 4)).sum()", "r"),
          ("lax.broadcast_in_dim(x, (2, 4), (1,)).sum()", "r"),
          ("jnp.sin(u @ x).sum()", "jax.reshard(jnp.ones((8, 3)), P(reduced={'x'}))"),
          ("jax.checkpoint(lambda x: jnp.sin(x).sum())(x)", "r"),
          ("jnp.concatenate([x, x]).sum()", "r"), ("jax.jit(lambda y: lax.slice(y, (1,), (3,)))(x).sum()", "a")]

# what a body knows of its values inside a `shard_map`
KNOWN = "def f(*xs):\n    y = ({})(*xs)\n    told.append(str(jax.typeof(y)))\n    return y\n"
MAPPED = [("lambda x: x", "unreduced={'x'}", "a"), ("lambda x: x + x", "unreduced={'x'}", "a"),
          ("lambda x, y: x * y", "unreduced={'x'}", "a, r"), ("lambda x: x.sum()", "unreduced={'x'}", "a"),
          ("lambda x: x.reshape(2, 2).T", "unreduced={'x'}", "a"), ("lambda x: lax.psum(x, 'x')", "", "a"),
          ("lambda x: lax.psum(x, ('x', 'y'))", "", "g"), ("lambda x: lax.psum(x, 'y')", "unreduced={'x'}", "g"),
          ("lambda x: lax.psum(x, 'y')", "unreduced={'x'}", "a"), ("lambda x: x", "unreduced={'x'}", "q"),
          ("lambda x: lax.psum_scatter(x, 'x', tiled=True)", "'x'", "a"), ("lambda x: x", "'y', unreduced={'x'}", "w"),
          ("lambda x: lax.psum_scatter(x, ('x', 'y'), tiled=True)", "('x', 'y')", "g"),
          ("lambda x: lax.all_gather(x, 'x', tiled=True, to='reduced')", "reduced={'x'}", "q"),
          ("lambda x: lax.all_gather(x, 'x', tiled=True, to='invarying')", "", "q"),
          ("lambda x: lax.all_gather(x, ('x', 'y'), to='reduced')", "reduced={'x', 'y'}", "s"),
          ("lambda x: lax.pcast(x, 'x', to='varying')", "'x'", "r"),
          ("lambda x: lax.pcast(x, 'x', to='varying')", "'x'", "jnp.arange(4.)"),
          ("lambda x: lax.pcast(x, 'x', to='reduced')", "reduced={'x'}", "jnp.arange(4.)"),
          ("lambda x: lax.pcast(x, 'x', to='unreduced')", "unreduced={'x'}", "q"),
          ("lambda x: lax.pcast(x, ('x', 'y'), to='unreduced')", "unreduced={'x', 'y'}", "s"),
          ("lambda x: jnp.sin(x)", "reduced={'x'}", "r"), ("lambda x, y: x + y", "reduced={'x'}", "r, r"),
          ("lambda x, y: x[:2] * y", "'x'", "r, q"), ("lambda x, y: lax.psum(x[:2] + y, 'x')", "", "r, q"),
          ("lambda x: lax.scan(lambda c, _: (c + c, None), x, None, length=2)[0]", "unreduced={'x'}", "a"),
          ("lambda x: lax.cond(True, lambda c: c + c, lambda c: c, x)", "unreduced={'x'}", "a"),
          ("lambda x: jax.jit(lambda c: c + c)(x)", "unreduced={'x'}", "a"),
          ("lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2)[0]", "reduced={'x'}", "r"),
          ("lambda x: jax.vmap(lambda c: c + c)(x)", "unreduced={'x'}", "a"),
          ("lambda x, y: jax.grad(lambda x: (x[:2] * y).sum())(x)", "unreduced={'x'}", "r, q"),
          ("lambda x: jax.grad(lambda x: lax.psum(x, 'x').sum())(x)", "reduced={'x'}", "a"),
          ("lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + c[1]), (0, x))[1]",
           "unreduced={'x'}", "a"), ("lambda x: jax.jvp(jnp.sin, (x,), (x,))[1]", "reduced={'x'}", "r"),
          ("lambda x: lax.psum(lax.pcast(x, ('x', 'y'), to='unreduced'), 'x')", "unreduced={'y'}", "s"),
          ("lambda x: lax.psum_scatter(lax.pcast(x, ('x', 'y'), to='unreduced'), 'x', tiled=True)",
           "'x', unreduced={'y'}", "s"), ("lambda x, y: x @ y", "reduced={'x'}", "r, r"),
          ("lambda x: jnp.concatenate([x, x])", "reduced={'x'}", "r"), ("lambda x: x[1:3]", "reduced={'x'}", "r"),
          ("lambda x: x * lax.axis_index('x').astype('float32')", "'x'", "r"),
          # sums in a loop, of which each device makes its own
          ("lambda x: lax.scan(lambda acc, k: (acc + lax.pcast(k * k, 'x', to='unreduced'), None), "
           "lax.pcast(x[0] * 0, 'x', to='unreduced'), x)[0]", "unreduced={'x'}", "q"),
          ("lambda x, r: lax.scan(lambda acc, k: (acc + jax.grad(lambda r: jnp.sin(k * r).sum())(r), None), "
           "lax.pcast(jnp.zeros(4) + x[0], 'x', to='unreduced'), x)[0]", "unreduced={'x'}", "q, r"),
          # refused
          ("lambda x: x", "", "a"), ("lambda x: x", "'x'", "a"), ("lambda x: x", "reduced={'x'}", "a"),
          ("lambda x: x", "", "r"), ("lambda x: x", "'x'", "r"), ("lambda x: x", "unreduced={'x'}", "r"),
          ("lambda x: x", "reduced={'x'}", "jnp.arange(4.)"), ("lambda x: x", "unreduced={'x'}", "jnp.arange(4.)"),
          ("lambda x: x", "reduced={'x'}", "q"), ("lambda x: jnp.sin(x)", "unreduced={'x'}", "a"),
          ("lambda x: x * 2", "unreduced={'x'}", "a"), ("lambda x, y: x + y", "unreduced={'x'}", "a, jnp.arange(4.)"),
          ("lambda x, y: x + y", "unreduced={'x'}", "a, r"), ("lambda x, y: x * y", "unreduced={'x'}", "a, a"),
          ("lambda x, y: x[:2] + y", "unreduced={'x'}", "a, q"),
          ("lambda x, y: x + y", "reduced={'x'}", "r, jnp.arange(4.)"), ("lambda x: lax.psum(x, 'x')", "", "r"),
          ("lambda x: lax.pmax(x, 'x')", "", "a"), ("lambda x: lax.psum(x, ('x', 'y'))", "", "a"),
          ("lambda x: lax.psum_scatter(x, 'x', tiled=True)", "'x'", "r"),
          ("lambda x: lax.all_gather(x, 'x', tiled=True)", "'x'", "a"),
          ("lambda x: lax.all_gather(x, 'x', tiled=True, to='nowhere')", "'x'", "q"),
          *((f"lambda x: lax.pcast(x, 'x', to='{to}')", "'x'", x) for x, to in (
              ("a", "varying"), ("a", "reduced"), ("a", "unreduced"), ("r", "reduced"), ("r", "unreduced"),
              ("jnp.arange(4.)", "unreduced"), ("q", "reduced"), ("q", "varying")))]
GIVEN = [("P(unreduced={'x'})", "jnp.arange(4.)"), ("P()", "a"), ("P()", "r"), ("P(reduced={'x'})", "a"),
         ("P(reduced={'x'})", "jnp.arange(4.)"), ("P(unreduced={'x'})", "a"), ("P(reduced={'x'})", "r")]
# whole functions of which derivatives are taken: body, out_specs, argument
DERIVED = [("lambda x: lax.psum(x, 'x')", "", "a"), ("lambda x: lax.psum_scatter(x, 'x', tiled=True)", "'x'", "a"),
           ("lambda x: lax.pcast(x, 'x', to='varying')", "'x'", "r"), ("lambda x: jnp.sin(x)", "reduced={'x'}", "r"),
           ("lambda x: lax.all_gather(x, 'x', tiled=True, to='reduced')", "reduced={'x'}", "q"),
           ("lambda x: x * x", "unreduced={'x'}", "q"), ("lambda x: lax.psum(jnp.sin(x), 'x')", "", "q"),
           ("lambda x: lax.psum(x * lax.axis_index('x'), 'x')", "", "q"),
           ("lambda x: lax.pcast(x, 'x', to='varying') * (1 + lax.axis_index('x'))", "'x'", "r"),
           ("lambda x: (x + x).sum()", "unreduced={'x'}", "a"), ("lambda x: lax.psum(x, ('x', 'y'))", "", "g")]
UNCHECKED = [("lambda x: x", "'x'", "a"), ("lambda x: lax.psum(x, 'x')", "", "a"),
             ("lambda x: lax.psum_scatter(x, 'x', tiled=True)", "'x'", "a"), ("lambda x: x", "'x'", "r")]
_MAP = "jax.shard_map({}, out_specs=P({}){})"
_Q = "q = jax.device_put(np.arange(4, dtype=np.float32), P('x'))"

# gradients of layers in a loop, added up over parts of a batch before devices' are
TRAINING = ("def loss(w, x):\n    return lax.scan(lambda c, k: (jnp.tanh(c @ k), None), x, w)[0].sum()\n"
            "def step(w, xs):\n    start = jax.reshard(jnp.zeros_like(w), P(unreduced={'x'}))\n"
            "    return lax.scan(lambda acc, x: (acc + jax.grad(loss)(w, x), None), start, xs)[0]\n"
            "w = jax.reshard(x64.reshape(4, 4, 4)[:3] / 4, P(reduced={'x'}))\n"
            "x = jax.device_put(x64.reshape(2, 8, 4), P(None, 'x'))").split("\n")
# while results are looked at
WATCHED = [on_22("with jax.debug_nans(True):",
                 f"    y = {f}(jax.reshard(jnp.asarray([{x}, 1.]), P(unreduced={{'x'}})))",
                 "held(y)") for f in ("jax.jit(lambda x: x + x)", "(lambda x: x + x)") for x in ("np.nan", "1.")]
OUTSIDE = ["a + a", "jax.jit(lambda x: x + x)(g)", "jax.reshard(g, NamedSharding(e22, P()))"]

# axes of size 1, of arrays and of the mesh
ONES = [f"with jax.set_mesh(jax.make_mesh((1, 2), ('x', 'y'))):\n"
        f"    b, c = jax.reshard(np.ones((1, 1, 4)), P('x', None, 'y')), jax.reshard(np.ones((1, 4, 2)), P('x', 'y'))\n"
        f"    out = held({f}), held(jax.reshard({f}, P('x')))\nout" for f in (
            "jnp.matmul(b, c, out_sharding=P('x', unreduced={'y'}))", "jnp.matmul(b, c, out_sharding=P('x'))",
            "jnp.einsum('aij,ajk->aik', b, c, out_sharding=P('x', unreduced={'y'}))")]

ROWS = {
    "summands of size one": ONES,
    "summands of gradients": [on_22(*TRAINING, f"held(jax.jit({f})({x}))") for f, x in (
        ("jax.grad(loss)", "w, x[0]"), ("step", "w, x"), ("lambda w, x: jax.reshard(step(w, x), P())", "w, x"))],
    "summands watched": WATCHED,
    "summands outside": [on_22("None").removesuffix("out") + f"held({x})" for x in OUTSIDE],
    "summands": [on_22(f"held({x})") for x in LINEAR],
    "summands resharded": [on_22(f"held({f})") for x, s in RESHARDED for f in (
        f"jax.reshard({x}, {s})", f"jax.jit(lambda x: jax.reshard(x, {s}))({x})")],
    "summands refused": [on_22(x) for x in REFUSED],
    "summands told": [on_22(x) for x in TOLD],
    "summands mapped": [on_22(_Q, "told = []", *KNOWN.format(f).rstrip().split("\n"), f"held({wrap}({x})), told")
                        for f, o, x in MAPPED
                        for wrap in (_MAP.format("f", o, ""), f"jax.jit({_MAP.format('f', o, '')})")],
    "summands given": [on_22(f"held(jax.shard_map(lambda x: x, in_specs={s}, out_specs={s})({x}))") for s, x in GIVEN],
    "summands unchecked": [on_22(_Q, f"m = {_MAP.format(f, o, f', in_specs={s}, check_vma=False')}",
                                 f"held(jax.jit(m)({x})), held(jax.jit(jax.grad(lambda x: m(x).sum()))({x}))")
                           for f, o, x in UNCHECKED for s in [f"P({'un' if x == 'a' else ''}reduced={{'x'}})"]],
    "summands mapped, derived": [on_22(
        _Q, f"m = {_MAP.format(f, o, '')}", f"held({wrap}(jax.grad(lambda x: {loss}.sum()))({x}))")
        for f, o, x in DERIVED for wrap in ("", "jax.jit")
        for loss in ["jax.reshard(m(x), P())" if o.startswith("un") else "m(x)"]],
    "summands derived": [on_22(f"held({f.format(loss)}({x}))") for loss, x in LOSSES for f in (
        "jax.grad(lambda x: {})", "jax.jit(jax.grad(lambda x: {}))")],
}
