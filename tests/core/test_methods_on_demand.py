"""Arrays and tracers have NumPy's operators and methods in programs that never import `styrax.numpy`."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("code, printed", [
    ("print(jax.grad(lambda x: x**2)(3.))", "6.0"),
    ("print(jax.jit(lambda x: (1 + x).mean())(2.))", "3.0"),
    ("print(jax.device_put(2.) == 2)", "True"),
    ("print(jax.lax.add(1., 2.)[None])", "[3.]"),
    ("print(jax.device_put(2.).reshape(1, 1).T)", "[[2.]]"),
    ("print(hasattr(jax.device_put(2.), 'no_such_name'))", "False"),
])
def test_first_use(code, printed):
    done = subprocess.run([sys.executable, "-c", f"import styrax as jax; {code}"], capture_output=True, text=True,
                          env={"PYTHONPATH": ":".join(filter(None, sys.path))})
    assert done.stdout.strip() == printed, done.stderr
