"""`jit`, and operations one by one, on arrays over several processes: the values."""

from __future__ import annotations

BODIES = [
    "lambda x: x + 1", "lambda x: jnp.sin(x) * 2 - x", "lambda x: x * v + jnp.float32(2)", "lambda x: x.sum()",
    "lambda x: x.sum(0)", "lambda x: x.max(1)", "lambda x: x.min()", "lambda x: x.mean(1, keepdims=True) * x",
    "lambda x: ((x > 3).any(0), (x > 3).all(1))", "lambda x: x.prod(0)", "lambda x: jnp.var(x, 0)",
    "lambda x: x @ w", "lambda x: x.T @ x", "lambda x: x @ w @ w.T @ x.T", "lambda x: jnp.einsum('ij,kj->ik', x, x)",
    "lambda x: jnp.einsum('ij,ij->j', x, x)", "lambda x: jnp.einsum('ij,kl->ijkl', x, x)",
    "lambda x: jnp.einsum('bij,bjk->bik', x.reshape(2, 2, 8), x.reshape(2, 8, 2))",
    "lambda x: jax.nn.softmax(x)", "lambda x: jax.nn.softmax(x, 0)", "lambda x: x.reshape(2, 2, 8)",
    "lambda x: x.reshape(-1)", "lambda x: x.reshape(4, 2, 4)", "lambda x: x.reshape(8, 4)",
    "lambda x: x[None, :, None]",
    "lambda x: x.T", "lambda x: x[1]", "lambda x: x[:, 1:3]", "lambda x: x[::-1]", "lambda x: x[1:3, ::2]",
    "lambda x: (jnp.sort(x, 0), jnp.sort(-x, 1))", "lambda x: jnp.argsort(-x, 1)", "lambda x: jnp.concatenate([x, x])",
    "lambda x: jnp.concatenate([x, x], 1)", "lambda x: jnp.stack([x, x])", "lambda x: jnp.split(x, 2, 1)",
    "lambda x: jnp.pad(x, ((0, 0), (1, 2)))", "lambda x: jnp.roll(x, 1, 0)", "lambda x: jnp.tile(x, (1, 2))",
    "lambda x: (jnp.argmax(x, 1), jnp.argmin(x))", "lambda x: jnp.linalg.norm(x) + x",
    "lambda x: jnp.where(x > 3, x, 0.0)", "lambda x: jnp.clip(x, 1, 5)", "lambda x: x.astype(np.int32) // 2",
    "lambda x: jnp.take(x, jnp.array([1, 0]), axis=0)", "lambda x: jnp.take_along_axis(x, x.astype(np.int32) % 4, 0)",
    "lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 1), 1)", "lambda x: x[jnp.arange(4), jnp.arange(4)]",
    "lambda x: w[x.astype(np.int32) % 8]", "lambda x: x.at[1].set(5.0)", "lambda x: x.at[:, 2].add(1.0)",
    "lambda x: jnp.cumsum(x, 1) + jnp.cumsum(x, 0)", "lambda x: jax.vmap(lambda r: r / r.sum())(x)",
    "lambda x: jax.random.normal(jax.random.key(0), x.shape) + x", "lambda x: jnp.fft.fft(x, axis=1)",
    "lambda x: jnp.linalg.cholesky(x @ x.T + 50 * jnp.eye(4))", "lambda x: lax.dynamic_slice(x, (1, 0), (2, 8))",
    "lambda x: lax.dynamic_update_slice(x, x[:1], (2, 0))", "lambda x: jnp.arange(8.0) + x",
    "lambda x: jnp.zeros_like(x)",
    "lambda x: (x, x.sum(), jnp.ones(3))", "lambda x: {'a': (x[0], [x])}",
    "lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x)",
    "lambda x: lax.scan(lambda c, r: (c + r.sum(), c), 0., x)",
    "lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=3)",
    "lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x)",
    "lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)",
    "lambda x: lax.cond(x[0, 0] > 0, lambda x: x.T @ x, lambda x: jnp.ones((8, 8)), x)",
    "lambda x: lax.while_loop(lambda c: c.sum() < 1e4, lambda c: c * 2, x)",
    "lambda x: lax.while_loop(lambda c: c[1] < 5, lambda c: (c[0] + x, c[1] + 1), (jnp.zeros((4, 8)), 0))",
    "jax.grad(lambda x: (jnp.tanh(x @ w) ** 2).sum())", "jax.grad(lambda x: jax.nn.logsumexp(x, 1).sum())",
    "jax.value_and_grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c + r), None), x[0], x)[0].sum())",
    "jax.checkpoint(lambda x: jnp.sin(x).sum())", "lambda x: jax.jvp(jnp.sin, (x,), (x,))",
    "lambda x: jax.jit(lambda y: y @ w, out_shardings=NamedSharding(m2, P('y')))(x)",
    "lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(m2, P('y', 'x')))",
    "lambda x: jax.shard_map(lambda b: lax.psum(b, 'x'), mesh=m2, in_specs=P('x', 'y'), out_specs=P(None, "
    "'y'))(x * 2) + 1",
    "jax.grad(lambda x: (jax.shard_map(lambda b: lax.psum(b ** 2, 'x'), mesh=m2, in_specs=P('x', 'y'), "
    "out_specs=P(None, 'y'))(jnp.sin(x)) ** 2).sum())",
]
EXPLICIT = "me2 = jax.make_mesh((2, 2), ('x', 'y'))\nx = jax.device_put(v, NamedSharding(me2, P('x', 'y')))\n"
PLACES = ["made(v, NamedSharding(m2, P('y', 'x')))", "made(v, NamedSharding(m2, P(None, ('x', 'y'))))",
          "made(v, NamedSharding(mt, P('x')))"]
ROWS = {
    "parts": [f"value(jax.jit({body})(a))" for body in BODIES],
    "placed": ["value(jax.jit(lambda x: (x @ w, x.T @ x, jax.nn.softmax(x), x.sum(0), jax.grad(lambda x: (x @ w).sum() "
               f"** 2)(x)))({place}))" for place in PLACES],
    "eager": [f"value(({body})(a))" for body in BODIES[::7]] + [
        "value(a + v), value(a * 2), value(2 - a), value(a @ w), value(-a), value(a[0]), float(a[1, 1]), "
        "bool((a >= 0).all())",
        "value(a + jnp.asarray(v)), value(jnp.maximum(a, 3)), value(a.T), value(a.reshape(8, 4))",
        "value(a + made(v, S))", "a + jax.device_put(v, own[0])",
    ],
    "told": [
        "jax.jit(lambda x: x * 2, out_shardings=NamedSharding(m2, P('y')))(a)",
        "jax.jit(lambda x: (x, x.T), out_shardings=(NamedSharding(m2, P()), NamedSharding(m2, P('y', 'x'))))(a)",
        "jax.jit(lambda x: x * 2, in_shardings=NamedSharding(m2, P('x')), out_shardings=NamedSharding(m2, P('x')))(v)",
        "jax.jit(lambda x: x + 1, in_shardings=NamedSharding(m2, P('x')))(a)",
        "jax.jit(lambda x: x @ w, out_shardings=NamedSharding(m, P('i')))(made(v, S))",
        "jax.jit(lambda: jnp.arange(8.0), out_shardings=NamedSharding(m, P('i')))()",
        "jax.jit(lambda k: jax.random.normal(k, (8, 4)), out_shardings=NamedSharding(m, P('i')))(jax.random.key(3))",
        "jax.jit(lambda x, y: x + y)(a, jax.device_put(v, own[0]))",
        "jax.jit(lambda x: x * 2, donate_argnums=0, out_shardings=S2)(made(v, S2))",
        "x = made(v, S2)\njax.jit(lambda x: x * 2, donate_argnums=0, out_shardings=S2)(x)\nx.is_deleted()",
        "jax.jit(lambda x: x + 1)(made(v, NamedSharding(m2, P())))",
        *(EXPLICIT + row for row in (
            "str(jax.typeof(x)), x * 2", "x.sum(0), x.sum()", "jax.jit(lambda x: jnp.sin(x) @ w)(x)",
            "jax.jit(jax.grad(lambda x: (x ** 2).sum()))(x)", "jax.sharding.reshard(x, NamedSharding(me2, P(None, "
            "'y')))",
            "jax.jit(jax.shard_map(lambda x: lax.psum(x, 'x'), mesh=me2, in_specs=P('x', 'y'), out_specs=P(None, "
            "'y')))(x)",
            "with jax.set_mesh(me2):\n    y = jax.jit(lambda x: jax.sharding.reshard(x * 2, P('x', None)))(x)\ny",
            "with jax.set_mesh(me2):\n    y = jax.jit(lambda x: jnp.einsum('ij,kj->ik', x, x, out_sharding=P('x')))(x)"
            "\ny",
            "with jax.set_mesh(me2):\n    y = jnp.zeros((4, 8), out_sharding=P('x', 'y')) + x\ny",
        )),
    ],
}
