"""Programs with a mistake, one a row: what is raised, and how long its traceback is, is compared with JAX's.

Run as a script, it executes all rows with what `import jax` gives and prints one JSON list a row: the name of the
exception's class and the number of lines of its traceback, the message apart.
"""

from __future__ import annotations

import json
import sys
import textwrap
import traceback
import warnings

SETUP = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from functools import partial
x, y, m, n = jnp.arange(3.0), jnp.arange(4.0), jnp.ones((2, 3)), jnp.arange(6)
key = jax.random.key(0)
"""

# family -> programs
TABLE: dict[str, list[str]] = {
    "shapes": [
        "x + y",
        "jnp.dot(m, y)",
        "jax.jit(lambda a, b: a @ b)(m, y)",
        "jax.grad(lambda a: (m @ a).sum())(y)",
        "jax.vmap(jnp.dot)(m, y)",
        "lax.scan(lambda c, v: (c + v, c), x, jnp.ones((5, 4)))",
        "x.reshape(2, 2)",
        "jnp.concatenate([m, x])",
        "jnp.stack([x, y])",
        "lax.add(x, y)",
    ],
    "tracers": [
        "jax.jit(lambda a: 1 if a > 0 else 2)(1.0)",
        "jax.jit(lambda a: int(a))(1)",
        "jax.jit(lambda a: np.asarray(a))(x)",
        "jax.jit(lambda a: a[a > 0])(x)",
        "jax.jit(lambda k: jnp.zeros(k))(3)",
    ],
    "transformations": [
        "jax.grad(lambda a: a)(x)",
        "jax.grad(lambda a: a * 1.0)(3)",
        "jax.grad(3)",
        "jax.vmap(lambda a, b: a, in_axes=(0,))(x, x)",
        "jax.vmap(lambda a: a, in_axes=2)(x)",
        "jax.jit(lambda a: a, static_argnums=(0,))(x)",
        "jax.vjp(lambda a: a, x)[1](y)",
        "jax.jvp(lambda a: a, (x,), (y,))",
    ],
}


def main() -> None:
    space: dict[str, object] = {}
    warnings.simplefilter("ignore")
    exec(SETUP, space)
    for family, programs in TABLE.items():
        for program in programs:
            code = compile(textwrap.dedent(program), "<program>", "exec")
            try:
                exec(code, dict(space))
            except Exception as error:
                error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
                found = [type(error).__name__, len("".join(traceback.format_tb(error.__traceback__)).splitlines())]
            else:
                found = [None, 0]
            print(json.dumps([family, program, *found]))


if __name__ == "__main__":
    sys.exit(main())
