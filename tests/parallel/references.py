"""References as arguments of maps over devices: each device sees its part as a reference of its own."""

from __future__ import annotations

_BODIES = {
    "r[...] += lax.axis_index('i').astype('float32')": "None",
    "r[...] = jnp.sin(r[...]) * lax.psum(r[...].sum(), 'i')": "None",
    "r[0] = 5.": "None",
    "y = r[...] * 2; r[...] = y + 1; return y": "P('i')",
    "return lax.psum(r[...].sum(), 'i')": "P()",
    "r[...] = lax.fori_loop(0, 3, lambda k, x: x * 2, r[...])": "None",
    "seen.append(str(jax.typeof(r))); seen.append(str(jax.typeof(r[...])))": "None",
}
_MAP = ("seen = []\ndef f(r):\n    {body}\n"
        "with jax.set_mesh({mesh}):\n    x = jax.device_put(jnp.arange(16.), NamedSharding({mesh}, {put}))\n"
        "    r = jax.new_ref(x)\n"
        "    y = jax.jit(jax.shard_map(f{ins}, out_specs={outs}, check_vma={check}))(r)\n"
        "    out = y, np.asarray(r[...]), seen[:2]\nout")

MAPS = [
    _MAP.format(body=body, mesh=mesh, put="P('i')", ins=ins, outs=outs, check=check)
    for body, outs in _BODIES.items() for mesh, ins, check in (
        ("e8", "", True), ("e8", ", in_specs=P('i')", True), ("e8", ", in_specs=P('i')", False),
        ("m8", ", in_specs=P('i')", True))
] + [
    _MAP.format(body="r[...] += 1", mesh="e8", put="P()", ins=", in_specs=P()", outs="None", check=True),
    _MAP.format(body="r[...] += 1", mesh="e8", put="P('i')", ins=", in_specs=P()", outs="None", check=True),
    _MAP.format(body="r[...] += 1", mesh="e8", put="P()", ins=", in_specs=P('i')", outs="None", check=True),
]

OTHERS = [
    "def f(x):\n    r = jax.new_ref(x)\n    def g(r):\n        r[...] = r[...] * lax.axis_index('i')\n"
    "    jax.shard_map(g, mesh=m8, in_specs=P('i'), out_specs=None)(r)\n    return r[...]\nnp.asarray(jax.jit(f)(x16))",
    "def f(r, x):\n    r[...] += x.sum()\n    return x * 2\nr = jax.new_ref(jax.device_put(x8, S8))\n"
    "y = jax.jit(jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs=P('i')))(r, x16)\ny, np.asarray(r[...])",
    "def f(r):\n    r[...] *= 2\nr = jax.new_ref(jax.device_put(x64, S42))\n"
    "jax.jit(jax.shard_map(f, mesh=m42, in_specs=P('a', 'b'), out_specs=None))(r)\nnp.asarray(r[...])",
    "def f(r):\n    r[...] *= 2\nr = jax.new_ref(jax.device_put(x64, S42))\n"
    "jax.jit(jax.shard_map(f, mesh=m42, in_specs=P('a'), out_specs=None, axis_names={'a'}))(r)\nnp.asarray(r[...])",
]

# references stay where they are, and programs follow what they hold
PLACES = [f"r = jax.new_ref(jax.device_put(x16, S8))\n{row}" for row in (
    "r[...], r[0]", "r[...] = jnp.ones(16)\nr[...]", "r[...] += 1\nr[...]",
    *(f"def f(r):\n    {body}\ny = jax.jit(f)(r)\ny, r[...]" for body in (
        "r[...] += 1", "r[...] = jnp.ones(16)", "r[0] = 1.", "return r[...] * 2", "return r[0]",
        "r[...] = lax.with_sharding_constraint(r[...], NamedSharding(m8, P())); return r[...]")),
    "def f(r, x):\n    r[...] += x\n    return x * 2\ny = jax.jit(f, out_shardings=NamedSharding(m8, P()))(r, x16)\n"
    "y, r[...]")] + [
    "def f(x):\n    r = jax.new_ref(x)\n    r[...] *= 2\n    return r[...]\njax.jit(f)(jax.device_put(x16, S8))",
    "def f(x):\n    r = jax.new_ref(jnp.zeros(16))\n    r[...] = x\n    return r[...], jax.freeze(r)\n"
    "jax.jit(f)(jax.device_put(x16, S8))",
    "r = jax.new_ref(jax.device_put(x8, D[1]))\njax.jit(lambda r, x: x + r[...])(r, jax.device_put(x8, S8))",
]

ROWS = {"places of references": PLACES, "references": MAPS + OTHERS}
