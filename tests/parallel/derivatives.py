"""Derivatives inside the mapped function, and through it."""

from __future__ import annotations

BODIES = {
    "jnp.sin(x) * 2": ("P('i')", "P('i')"),
    "lax.psum(jnp.sin(x), 'i')": ("P('i')", "P()"),
    "x * lax.psum(x ** 2, 'i')": ("P('i')", "P('i')"),
    "lax.pmean(x * lax.axis_index('i'), 'i')": ("P('i')", "P()"),
    "jnp.sin(x).sum() * lax.all_gather(x, 'i', tiled=True)": ("P('i')", "P('i')"),
    "lax.ppermute(x ** 2, 'i', [(0, 3), (5, 1), (2, 2)]) * x": ("P('i')", "P('i')"),
    "lax.psum_scatter(jnp.outer(jnp.arange(8.), x ** 2), 'i') * x": ("P('i')", "P('i')"),
    "lax.all_to_all(jnp.outer(x, jnp.arange(8.)) ** 2, 'i', 1, 0, tiled=True)": ("P('i')", "P('i')"),
    "x * lax.axis_index('i')": ("P()", "P('i')"),
    "lax.psum(x * lax.axis_index('i'), 'i')": ("P()", "P()"),
    "jnp.exp(x / 9)": ("P()", "P()"),
    "lax.cond(lax.axis_index('i') < 3, jnp.sin, jnp.cos, x) * lax.psum(x, 'i')": ("P('i')", "P('i')"),
    "lax.scan(lambda c, y: (c * jnp.cos(y), lax.psum(c, 'i')), jnp.ones_like(x), jnp.stack([x, x + 1]))[0]":
        ("P('i')", "P('i')"),
}

THROUGH = [
    f"f = shard(lambda x: {body}, {ins}, {outs}, check_vma={check})\n{way}"
    for body, (ins, outs) in BODIES.items()
    for check in (True, False)
    for way in ("(lambda w: jax.grad(lambda x: jnp.sum(jnp.cos(f(x)) * w))(x16))(1 + jnp.arange(f(x16).size).reshape("
                "f(x16).shape))",)
    if check or not body.startswith("lax.scan")
] + [
    f"f = shard(lambda x: {body}, {ins}, {outs})\njax.jvp(f, (x16,), (x16[::-1],))"
    for body, (ins, outs) in BODIES.items()
]

# what types tell of derivatives with respect to arguments that vary along different axes
_TWO = {
    "tree": "lambda w, xs: jax.tree.map(lambda z: jnp.sum(z @ w, axis=-1), xs)",
    "mixed": "lambda w, xs: (xs[0].sum() * w, xs[1] * xs[1])",
    "crossed": "lambda w, xs: (w.sum(), xs[1] * xs[0][:2, :2].sum())",
    "apart": "lambda w, xs: (jnp.zeros(2), lax.stop_gradient(xs[1]))",
}
VARYING = [
    f"seen = []\ndef f(w, x, y):\n    r = jax.{way}({fun}, argnums={at})(w, (x, y))\n"
    "    seen.append([str(jax.typeof(a)) for a in jax.tree.leaves(r)])\n    return x\n"
    "jax.jit(jax.shard_map(f, mesh=m42, in_specs=(P(), P('a'), P('b')), out_specs=P('a')))(x64[:4], x64[:, :4], "
    "x64[:, :4])\nseen[:1]"
    for fun in _TWO.values() for way in ("jacrev", "jacfwd") for at in (0, 1)
]

INSIDE = [
    "shard(jax.grad(lambda x: jnp.sum(lax.psum(x ** 2, 'i'))), P('i'), P('i'))(x16)",
    "shard(jax.grad(lambda x: jnp.sum(lax.psum(x ** 2, 'i'))), P('i'), P('i'), check_vma=False)(x16)",
    "shard(jax.grad(lambda x: jnp.sum(lax.pmean(x ** 3, 'i'))), P('i'), P('i'))(x16)",
    "shard(jax.grad(lambda x: jnp.sum(lax.pmean(x ** 3, 'i'))), P('i'), P('i'), check_vma=False)(x16)",
    "shard(jax.grad(lambda x: jnp.sum(x ** 2)), P('i'), P('i'))(x16)",
    "shard(lambda w, x: jax.grad(lambda w: jnp.sum((w * x) ** 2))(w), (P(), P('i')), P())(x8[2], x16)",
    "shard(lambda w, x: jax.grad(lambda w: jnp.sum((w * x) ** 2))(w)[None], (P(), P('i')), P('i'), "
    "check_vma=False)(x8[2], x16)",
    "shard(lambda w, x: lax.psum(jax.grad(lambda w: jnp.sum((w * x) ** 2))(w), 'i'), (P(), P('i')), P(), "
    "check_vma=False)(x8[2], x16)",
    "shard(lambda w, x: jax.value_and_grad(lambda w: lax.psum(jnp.sum((w * x) ** 2), 'i'))(w), (P(), P('i')), "
    "P())(x8[2], x16)",
    "shard(lambda w, x: jax.grad(lambda w: lax.pmean(jnp.sum(w @ x), ('a', 'b')))(w), (P(None, 'b'), P('b', 'a')), "
    "P(None, 'b'), m42)(x64, x64)",
    "shard(lambda x: jax.jvp(lambda x: lax.psum(jnp.sin(x), 'i'), (x,), (x * 2,)), P('i'), P())(x16)",
    "shard(lambda x: jax.jacrev(lambda x: lax.psum(x ** 2, 'i'))(x), P('i'), P(None, 'i'))(x16)",
    "shard(lambda x: jax.jacfwd(lambda x: x * lax.psum(x, 'i'))(x), P('i'), P('i'))(x16)",
    "shard(lambda x: jax.hessian(lambda x: lax.psum(jnp.sum(x ** 3), 'i'))(x), P('i'), P('i'))(x16)",
    "shard(lambda x: jax.vjp(lambda x: lax.all_gather(x, 'i'), x)[1](lax.all_gather(x, 'i'))[0], P('i'), "
    "P('i'))(x16)",
    "shard(jax.checkpoint(lambda x: jnp.sin(lax.psum(x, 'i')) * x), P('i'), P('i'))(x16)",
    "jax.grad(lambda x: shard(jax.checkpoint(lambda x: jnp.sin(lax.psum(x, 'i')) * x), P('i'), "
    "P('i'))(x).sum())(x16)",
    "jax.grad(lambda x: jax.checkpoint(shard(lambda x: jnp.sin(lax.psum(x, 'i')) * x, P('i'), "
    "P('i')))(x).sum())(x16)",
    "jax.linearize(shard(lambda x: jnp.sin(lax.psum(x, 'i')) * x, P('i'), P('i')), x16)[1](x16)",
    "jax.hessian(lambda x: shard(lambda x: lax.psum(x ** 3, 'i'), P('i'), P())(x).sum())(x16)",
    "jax.grad(lambda w: shard(lambda w, x: lax.psum(jnp.sum(w * x), 'i'), (P(), P('i')), P())(w, x16))(x8[3])",
    "jax.grad(lambda w: shard(lambda w, x: lax.psum(jnp.sum(w * x), 'i'), (P(), P('i')), P(), check_vma=False)(w, "
    "x16))(x8[3])",
    "@jax.custom_jvp\ndef g(x): return jnp.sin(x)\n"
    "g.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * 3 * lax.psum(1., 'i')))\n"
    "jax.grad(lambda x: shard(g, P('i'), P('i'))(x).sum())(x16)",
    "@jax.custom_vjp\ndef g(x): return lax.psum(x, 'i')\n"
    "g.defvjp(lambda x: (lax.psum(x, 'i'), x), lambda x, ct: (jnp.cos(x) * ct,))\n"
    "jax.grad(lambda x: shard(g, P('i'), P(), check_vma=False)(x).sum())(x16)",
    "@jax.custom_vjp\ndef g(x): return x * 2\ng.defvjp(lambda x: (x * 2, x), lambda x, ct: (jnp.cos(x) * ct,))\n"
    "jax.grad(lambda x: shard(g, P('i'), P('i'))(x).sum())(x16)",
    "@jax.custom_vjp\ndef g(x): return x * 2\ng.defvjp(lambda x: (x * 2, x), lambda x, ct: (jnp.cos(x) * ct,))\n"
    "shard(jax.grad(lambda x: lax.psum(g(x), 'i').sum()), P('i'), P('i'))(x16)",
    "jax.grad(lambda x: shard(lambda x: lax.ppermute(x ** 2, ('a', 'b'), [(0, 7), (6, 1), (3, 3)]) * x, P(('a', "
    "'b')), P(('a', 'b')), m42)(x).sum())(x16)",
    "jax.grad(lambda x: (shard(lambda x: lax.psum_scatter(x ** 2, ('a', 'b'), tiled=True), P(None, ('a', 'b')), "
    "P(('a', 'b')), m42)(x) * jnp.arange(8.)[:, None]).sum())(x64)",
    "jax.grad(lambda x: (shard(lambda x: lax.psum_scatter(x ** 2, ('b', 'a'), tiled=True), P(None, ('a', 'b')), "
    "P(('a', 'b')), m42)(x) * jnp.arange(8.)[:, None]).sum())(x64)",
    "jax.grad(lambda x: (shard(lambda x: lax.all_gather(x ** 2, ('b', 'a'), tiled=True), P(('a', 'b')), P('a'), "
    "m42)(x) * jnp.arange(64.)).sum())(x16)",
]

# Custom rules with collectives: results of these do not vary, nor do their cotangents.
_RULE = """@jax.custom_vjp
def f(x):
    return lax.psum(jnp.sin(x), 'i')
f.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x) * 7,))
@jax.custom_jvp
def h(x):
    return lax.psum(x, 'i')
h.defjvp(lambda p, t: (h(p[0]), lax.psum(t[0], 'i') * 3))
@jax.custom_vjp
def f2(x, w):
    return lax.psum(x * w, 'a'), x.sum()
f2.defvjp(lambda x, w: (f2(x, w), (x, w)), lambda r, g: (
    g[0] * r[1] + g[1], lax.psum((g[0] * r[0]).sum(), ('a', 'b')) * jnp.ones_like(r[1])))
"""
RULES = [_RULE + row for row in (
    *(f"jax.grad(lambda x: shard({f}, P('i'), P())(x).sum())(x8)" for f in (
        "f", "jax.jit(f)", "jax.checkpoint(f)", "h", "lambda x: lax.psum(f(x) * x, 'i')", "lambda x: h(x) * f(x)")),
    *(f"jax.grad(lambda x: shard({f}, P('i'), P('i'))(x).sum())(x8)" for f in (
        "lambda x: f(x) * x", "lambda x: h(x) * x", "jax.grad(lambda x: f(x)[0])",
        "lambda x: lax.scan(lambda c, _: (f(c) * c, None), x, None, length=2)[0]")),
    "jax.jvp(shard(h, P('i'), P()), (x8,), (x8,))", "jax.linearize(shard(f, P('i'), P()), x8)[0]",
    "jax.grad(lambda x, w: sum(y.sum() for y in shard(lambda x, w: (f2(x, w)[0], f2(x, w)[1][None]), "
    "(P('a', 'b'), P()), (P(None, 'b'), P(('a', 'b'))), m42)(x, w)), (0, 1))(x64, jnp.ones(()))")]

# rules that name the axis where the function does not, of values that do not vary along it
_NAMES = """
@jax.custom_vjp
def f(x):
    return jnp.tan(x)
f.defvjp(lambda x: (lax.psum(x, 'i'), x), lambda x, g: (jnp.cos(x) * g,))
@jax.custom_jvp
def h(x):
    return jnp.sin(x)
h.defjvp(lambda x, t: (lax.psum(x[0], 'i'), t[0] * lax.axis_size('i')))
"""
NAMES = [f"{_NAMES}m = jax.jit(shard(lambda x: {call} ** 2, P(), P()))\njax.grad(lambda x: m(x).sum())(x8), m(x8)"
         for call in ("jax.checkpoint(f)(x)", "jax.jit(f)(x)", "lax.scan(lambda c, _: (f(c), None), x, None, length=2)"
                      "[0]", "lax.cond(True, f, f, x)", "jax.jit(h)(x)", "jax.checkpoint(h)(x)", "f(h(x))")]

ROWS = {"types of derivatives": VARYING, "names in rules": NAMES,
        "derivatives through": THROUGH, "derivatives inside": INSIDE, "rules": RULES}
