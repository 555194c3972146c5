"""Names of `jax.numpy` and methods of arrays are found when they are first used, as if they had been there always."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

FIRST_USES = {
    "an operator": "x + 1",
    "a reflected operator": "1 - x",
    "an operator of a number": "2.0 * x",
    "a comparison": "(x == x).all()",
    "an index": "x[1:]",
    "an index under jit": "jax.jit(lambda x: x[1:])(x)",
    "a method": "x.sum()",
    "a method of the class": "type(x).sum(x)",
    "a property": "x.T",
    "a change": "x.at[0].set(2)",
    "a change under grad": "jax.grad(lambda x: x.at[0].mul(3).sum())(x)",
    "a membership": "np.asarray(2.0 in x)",
    "a conversion": "x.astype('int32')",
    "an inherited operator": "Row(x)",
    "a function under its module's name": "jnp.einsum('i,i', x, x)",
    "a module": "jnp.linalg.norm(x)",
    "two threads": "in_threads(lambda k: x.sum() + k, [x, x])",
}
PRELUDE = """
import numpy as np
import jax
import jax.numpy as jnp
from concurrent.futures import ThreadPoolExecutor

def Row(x):
    def f(c, v):
        return c + v, c @ v
    return jax.lax.scan(f, x, x[None])[0]

def in_threads(f, values):
    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(f, values))

x = jax.device_put(np.arange(4, dtype=np.float32) + 1)
"""


@pytest.mark.parametrize("use", FIRST_USES)
def test_first_use(use):
    space: dict = {}
    exec(PRELUDE, space)  # the real JAX
    expected = np.asarray(eval(FIRST_USES[use], space)).tolist()
    program = f"{PRELUDE}\nprint(np.asarray({FIRST_USES[use]}).tolist())"
    done = subprocess.run([sys.executable, "-m", "styrax", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == str(expected), done.stderr


def test_missing_names():
    import styrax as jax

    with pytest.raises(AttributeError, match="'Array' object has no attribute 'no_such_method'"):
        jax.numpy.ones(3).no_such_method  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'jax.numpy' has no attribute 'no_such_name'"):
        jax.numpy.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'no_such_method'"):
        jax.jit(lambda x: x.no_such_method)(1.0)


def test_all_names_at_once():
    space: dict = {}
    exec("from styrax.numpy import *", space)
    assert space["sum"](np.array([1, 2])) == 3
    assert {"fft", "linalg", "sum"} <= set(dir(importlib.import_module("styrax.numpy")))
