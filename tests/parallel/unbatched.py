"""What has no rule for a mapped axis works on devices, each of which has an array as any other; which devices a program
needs, and which of its arguments."""

from __future__ import annotations

SETUP = """
from jax.extend import core as extended
from jax.experimental.hijax import VJPHiPrimitive
from jax.interpreters import ad, mlir

def made(name, f, multiple=False):
    p = extended.Primitive(name)
    p.multiple_results = multiple
    p.def_abstract_eval(lambda *xs: list(xs) if multiple else xs[0])
    p.def_impl(f)
    mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=multiple))
    return p

twice, both = made('twice', lambda x: x * 2), made('both', lambda x, y: [x + y, x - y], True)
ad.deflinear2(twice, lambda t, x: [twice.bind(t)])

class Square(VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()
    def expand(self, x):
        return x * x
    def vjp_fwd(self, nonzero, x):
        return square(x), x
    def vjp_bwd_retval(self, x, ct):
        return (2 * x * ct,)

def square(x):
    return Square(jax.typeof(x))(x)

exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) + 1))(jax.ShapeDtypeStruct((2, 4), 'float32'))
"""

UNBATCHED = [
    *(f"shard({f}, P({spec}), P({spec}), m42, check_vma=False)(x64)" for f in ("twice.bind", "square")
      for spec in ("'a', 'b'", "'b'", "None, ('a', 'b')", "")),
    "shard(lambda x: both.bind(x, jnp.ones_like(x)), P('a', 'b'), P('a', 'b'), m42)(x64)",
    "shard(exported.call, P('a', 'b'), P('a', 'b'), m42)(x64)",
    "shard(lambda x: twice.bind(x[0]), P('i'), P('i'))(x64)",
    "jax.grad(lambda x: (shard(twice.bind, P('a', 'b'), P('a', 'b'), m42, check_vma=False)(x) ** 2).sum())(x64)",
    "jax.grad(lambda x: shard(square, P('a', 'b'), P('a', 'b'), m42)(x).sum())(x64)",
    "shard(jax.grad(lambda x: square(x).sum()), P('a'), P('a'), m42)(x64)",
    "jax.pmap(twice.bind)(x64)", "jax.pmap(jax.grad(lambda x: square(x).sum()))(x64)",
    "jax.vmap(shard(twice.bind, P('i'), P('i')))(x64[None])", "jax.vmap(twice.bind)(x64)", "jax.vmap(square)(x64)",
    "jax.vmap(exported.call)(x64.reshape(4, 2, 8)[:, :, :4])",
]

_EXPLICIT = "f = jax.shard_map(lambda x: x + 1, mesh=e42, in_specs=P(), out_specs=P({}))\n"
DEVICES = [
    *(_EXPLICIT.format(spec) + call for spec in ("", "None, None") for call in (
        "f(x64)", "jax.jit(f)(x64)", "jax.jit(lambda x: f(x) * 2 + x)(x64)", "jax.jit(lambda: f(x64) * 2)()",
        "jax.jit(jax.grad(lambda x: f(x).sum()))(x64)", "jax.jit(f)(jax.device_put(x64, D[1]))",
        "jax.jit(lambda: f(jax.device_put(x64, D[1])))()", "f(jax.device_put(x64, D[1]))")),
    *("def body(x):\n    r = jax.new_ref(x)\n    jax.shard_map(lambda r: r.__setitem__(Ellipsis, r[...] + 1), "
      f"mesh={mesh}, in_specs=P(), out_specs=None)(r)\n    return r[...]\nnp.asarray(jax.jit(body)(x8))"
      for mesh in ("m42", "e42")),
    "jax.jit(lambda x: jax.reshard(x, NamedSharding(e42, P('a'))))(x64)",
    *(f"jax.jit({f})(jax.device_put(x8, D[1]), jax.device_put(x8, D[2]))" for f in (
        "lambda x, y: y * 2", "lambda x, y: (jnp.sin(x), y * 2)[1]", "jax.grad(lambda x, y: (x + y).sum())",
        "lambda x, y: jax.jit(lambda x, y: (jnp.sin(x), y))(x, y)[1]", "lambda x, y: (jnp.sin(x), 1.)[1]",
        "lambda x, y: lax.scan(lambda c, _: ((c[0] + 1, c[1] * 2), None), (x, y), None, length=3)[0][1]",
        "lambda x, y: x + y")),
    "jax.jit(lambda x: (jnp.sin(x), 1.)[1])(jax.device_put(x8, D[1]))",
]

ROWS = {"unbatched": [SETUP + row for row in UNBATCHED], "devices needed": DEVICES}
