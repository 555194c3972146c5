"""Cells in the manner of JAX's documentation print the same under both: values, errors' first lines, warnings."""

from __future__ import annotations

import importlib
import io
import re
import warnings

import numpy as np
import pytest

CELLS = {
    "lines of arrays": "[jnp.ones(n) / 3 for n in range(5, 15)]",
    "lines of matrices": "[jnp.arange(2 * n).reshape(2, n) * 1.125 for n in range(5, 12)]",
    "lines of weak types": "[jnp.full((), 1.5), jnp.asarray(2), jnp.zeros((0, 3)), jnp.zeros(0), jnp.arange(1200)]",
    "variables": "[(re.sub('[0-9]{9,}', '', repr(v))) for e in eqns(lambda x: x[1:] + x.sum()) for v in e.outvars]",
    "literals": "[e.invars[1:] for e in eqns(lambda x: (x + 1, x * jnp.float32(2), x.astype(int) * 3))]",
    "weak literals": "[jax.make_jaxpr(f)(a).eqns[0].invars[1] for f, a in ((lambda x: x + 1, 1), "
                     "(lambda x: x - 2., 1.), "
                     "(lambda x: x * 2j, 1j), (lambda x: x | True, True))]",
    "reference": "(r := jax.new_ref(jnp.zeros(3)), r.aval, jax.make_jaxpr(lambda: r[...])())",
    "implementation of keys": "re.sub('0x[0-9a-f]+', '', "
                              "str(error(lambda: jax.random.wrap_key_data(jnp.zeros(3, 'uint32')))))",
    "arrays of keys": "[jnp.zeros(2, dtype), jnp.ones((2, 1), dtype), jnp.empty((), dtype), jnp.full(2, 7, dtype), "
                      "jnp.zeros((0,), dtype), jnp.full(2, key), jnp.zeros_like(keys), jnp.ones_like(key), "
                      "jnp.full_like(keys, key), jax.lax.full((2,), 5, dtype), jax.lax.full_like(keys, 3), "
                      "jax.vmap(jnp.zeros_like)(keys), jax.jit(lambda: jnp.zeros(2, dtype))()]",
    "dtypes of lax": "jax.lax.add(1.0, jnp.int32(1))",
    "dtypes of lax.select": "jax.lax.select(True, 1, 2.)",
    "truncated set": "jnp.zeros(3, int).at[0].set(2.5)",
    "set of complex numbers": "jnp.zeros(3).at[0].set(1j), jnp.zeros(3).at[1:].add(1j)",
    "complex astype": "jnp.array([1j]).astype(float)",
    "rank promotion": "promotion('warn')",
    "refused rank promotion": "promotion('raise')",
    "contracted dimensions": "jnp.dot(jnp.ones(3), jnp.ones(4))",
    "deprecated device": "jax.jit(jnp.sin, device=jax.devices()[0])(0.)",
    "forward mode": "(f := jax.custom_vjp(jnp.sin)).defvjp(lambda x: (x, x), lambda x, g: (g,)) or "
                    "jax.jvp(f, (1.,), (1.,))",
    "compiled for other types": "jax.jit(lambda x: x).lower(1).compile()(1.5)",
    "weak types of stages": "[jax.jit(lambda x: x).trace(1).out_info, jax.jit(lambda x: x).lower(1).out_info]",
    "gradients of parts": "[jax.grad(f)(3. + 4j) for f in (jnp.real, jnp.imag, jnp.abs, "
                          "lambda z: (z * jnp.conj(z)).real)] "
                          "+ [jax.jit(jax.grad(jnp.real))(1j), jax.vmap(jax.grad(jnp.imag))(jnp.ones(2) * 1j)]",
    "argnums": "jax.grad(jnp.sin, argnums='a')",
    "transposed": "[jax.linear_transpose(lambda x: 2 * x, 3.)(5.), "
                  "isinstance(jax.linear_transpose(lambda x: 2 * x, 3.), jax.tree_util.Partial)]",
    "custom_gradient": "(f := jax.custom_gradient(lambda x: (x ** 2, lambda g: (g * x,))), type(f).__name__, "
                       "jax.make_jaxpr(f)(3.), jax.grad(f)(3.))[1:]",
    "core dimension": "jnp.vectorize(lambda a, b: a @ b, signature='(n,m),(m)->(n)')(jnp.ones((4, 2, 3)), jnp.ones(4))",
    "core dimensions": "jnp.vectorize(lambda a: a, signature='(n)->(m,n)')(jnp.ones(3))",
    "several results": "jnp.vectorize(lambda a: a, signature='(n)->(m),()')(jnp.ones(3))",
    "one argument": "jnp.vectorize(lambda a: a, excluded={1}, signature='(n),(n)->()')(jnp.ones(3))",
    "sizes": "[str(error(f)).split('\\n')[:2] for f in (lambda: jnp.zeros(2.5), lambda: jnp.ones((2, 2.5)), "
             "lambda: jnp.full('a', 1), lambda: jax.eval_shape(jnp.zeros, 1), "
             "lambda: jax.eval_shape(lambda n: jnp.ones([2, n]), 1), lambda: jnp.broadcast_to(1, 2.5))]",
    "traced slices": "jax.jit(lambda x: x[x[0]:, :x[1]])(jnp.arange(3))",
    "traced reference": "jax.eval_shape(lambda r: print(r, file=out), jax.new_ref(1)) or out.getvalue()",
    "captured by a kernel": "pallas.pallas_call(lambda o: o.__setitem__(..., jnp.ones(3) * x), "
                            "out_shape=jax.ShapeDtypeStruct((3,), 'float32'), interpret=True)()",
    "references of kernels": "jax.make_jaxpr(pallas.pallas_call(lambda i, o: o.__setitem__(..., i[...]), "
                             "out_shape=jax.ShapeDtypeStruct((3,), 'float32'), interpret=True))(x)",
    "specifications": "[P('x', unreduced={'y'}), P(unreduced={'y'}), P('x'), P(('x', 'y')), P('x', None), P(), "
                      "P(None)]",
}


def shown(package: str, cell: str) -> list[str]:
    jax = importlib.import_module(package)
    jnp = importlib.import_module(package + ".numpy")
    pallas = importlib.import_module(package + ".experimental.pallas")
    keys = jax.random.split(jax.random.key(0))

    def error(f):
        try:
            return f()
        except Exception as found:
            return found

    def promotion(level):
        with jax.numpy_rank_promotion(level):
            return jnp.ones((2, 3)) + jnp.ones(3)

    names = {"jax": jax, "jnp": jnp, "np": np, "re": re, "key": keys[0], "keys": keys, "dtype": keys.dtype,
             "P": jax.sharding.PartitionSpec, "error": error, "promotion": promotion,
             "pallas": pallas, "x": jnp.ones(3), "out": io.StringIO(),
             "eqns": lambda f: jax.make_jaxpr(f)(jnp.ones(3)).eqns}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lines = repr(eval(cell, names)).split("\n")
        except Exception as found:
            lines = [type(found).__name__, str(found).split("\n")[0]]
    lines += [f"{w.category.__name__}: {w.message}" for w in caught]
    return [line.replace("styrax.", "jax.") for line in lines]


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_cells_print_the_same(cell):
    assert shown("styrax", cell) == shown("jax", cell)
