"""Programs with a mistake as cells of IPython: prints how many lines each shows, one JSON list a cell."""

from __future__ import annotations

import contextlib
import io
import json

from IPython.core.interactiveshell import InteractiveShell

SETUP = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
x, y, m, n = jnp.arange(3.0), jnp.arange(4.0), jnp.ones((2, 3)), jnp.arange(6)
key = jax.random.key(0)
"""

CELLS = [
    "x + y",
    "x @ y",
    "x == y",
    "x[0] = 1",
    "x[0, 0]",
    "x['a']",
    "x + 'a'",
    "x.reshape(2, 2)",
    "x.astype('nonsense')",
    "x.sum(axis=3)",
    "x.at[jnp.array([0, 1])].add(y)",
    "if x > 1: pass",
    "float(x)",
    "jnp.dot(m, y)",
    "jnp.concatenate([m, x])",
    "jnp.stack([x, y])",
    "jnp.where(x > 1, y, 0)",
    "jnp.zeros(-1)",
    "jnp.zeros(3, 'nonsense')",
    "jnp.array('text')",
    "jnp.sin('a')",
    "jnp.einsum('ij,jk->ik', m, m)",
    "jnp.linalg.inv(m)",
    "jnp.broadcast_to(x, (2, 4))",
    "lax.add(x, y)",
    "lax.scan(lambda c, v: (c + v, c), x, jnp.ones((5, 4)))",
    "lax.scan(lambda c, v: (c + 1.5, v), 0, n)",
    "lax.cond(True, lambda a: a, lambda a: (a, a), 1.0)",
    "lax.while_loop(lambda c: c < 3, lambda c: c + 0.5, 0)",
    "jax.random.normal(3)",
    "jax.jit(lambda a, b: a @ b)(m, y)",
    "jax.jit(lambda a: 1 if a > 0 else 2)(1.0)",
    "jax.jit(lambda a: np.asarray(a))(x)",
    "jax.jit(lambda k: jnp.zeros(k))(3)",
    "jax.jit(lambda a: a[a > 0])(x)",
    "jax.jit(lambda a: a)('a')",
    "jax.jit(3)",
    "jax.grad(lambda a: a)(x)",
    "jax.grad(lambda a: a * 1.0)(3)",
    "jax.grad(lambda a: (m @ a).sum())(y)",
    "jax.vmap(jnp.dot)(m, y)",
    "jax.vmap(lambda a: a, in_axes=2)(x)",
    "jax.jvp(lambda a: a, (x,), (y,))",
    "jax.vjp(lambda a: a, x)[1](y)",
    "jax.tree.map(lambda a, b: a, {'a': 1}, {'b': 1})",
    "def f(a):\n    raise ValueError('mine')\njax.jit(jax.vmap(jax.grad(f)))(x)",
    "def net(p, v):\n    h = jnp.tanh(v @ p[0])\n    return (h @ p[1]).sum()\n"
    "jax.grad(net)([jnp.ones((3, 4)), jnp.ones((5, 2))], jnp.ones((7, 3)))",
    "kept = []\njax.jit(lambda a: kept.append(a))(x)\nkept[0] + 1",
]


def main() -> None:
    shell = InteractiveShell.instance(colors="NoColor")
    shell.run_cell(SETUP)
    for cell in CELLS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            shell.run_cell(cell)
        text = out.getvalue()
        print(json.dumps([cell, len(text.splitlines()), text]))


if __name__ == "__main__":
    main()
