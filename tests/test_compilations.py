"""How often things are compiled: eager operations once for all shapes, jitted programs once for each signature."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.cpu import llvm
from styrax.cpu.client import backend


def work(x):
    y = jnp.exp(x) * 2 + x
    z = y.sum(0) - jnp.max(y, axis=1).mean()
    return jax.nn.softmax(x), jnp.var(x, axis=0), z, x.T.reshape(-1)[1:], jnp.where(x > 0, x, 0), x @ x.T, \
        jnp.sort(x, axis=0)


def expected(x):
    y = np.exp(x) * 2 + x
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True), x.var(0), y.sum(0) - y.max(1).mean(), x.T.reshape(-1)[1:],
            np.where(x > 0, x, 0),
            x @ x.T, np.sort(x, 0))


def test_eager_work_is_not_compiled_for_each_shape():
    rng = np.random.default_rng(0)
    counts = []
    for k in range(25):
        x = rng.normal(size=(3 + 2 * k, 5 + k)).astype(np.float32)
        before = backend.eager.compiled + llvm.compile_count.compiled
        for ours, theirs in zip(work(jnp.asarray(x)), expected(x)):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-4, atol=2e-5)
        counts.append(backend.eager.compiled + llvm.compile_count.compiled - before)
    assert sum(counts[3:]) == 0, counts


def test_a_signature_is_compiled_once():
    traces = []

    @jax.jit
    def f(x):
        traces.append(x)
        return x + 1

    for _ in range(3):
        f(jnp.ones(3))
        f(np.ones(3, np.float32))
        f(jnp.ones(4))
    assert len(traces) == 2


PROGRAM = """
import styrax as jax, styrax.numpy as jnp
from styrax.cpu import llvm
f = jax.jit(lambda x: jnp.tanh(x).sum() + 1)
print(float(f(jnp.arange(10.))), llvm.compile_count.compiled)
"""


@pytest.mark.parametrize("damage", [None, b"", b"not code"])
def test_a_second_process_starts_from_the_disk(tmp_path, damage):
    def run():
        found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
                               env={**os.environ, "STYRAX_CACHE_DIR": str(tmp_path), "STYRAX_CACHE": "1"})
        value, compiled = found.stdout.split()
        return value, int(compiled)

    value, compiled = run()
    assert compiled > 0
    if damage is not None:
        for path in tmp_path.rglob("*"):
            if path.is_file():
                path.write_bytes(damage)
    again, recompiled = run()
    assert again == value
    assert recompiled > 0 if damage is not None else recompiled <= 1  # (LLVM warms up on a trifle)


@pytest.mark.parametrize("good, bad, error", [
    (lambda x: jax.lax.dynamic_slice(x, (0, 0), (2, 3)), lambda x: jax.lax.dynamic_slice(x, (0, 0), (9, 3)), TypeError),
    (lambda x: jax.lax.slice(x, (0, 1), (3, 4)), lambda x: jax.lax.slice(x, (0, 1), (3, 9)), TypeError),
    (lambda x: jax.lax.slice(x, (1, 0), (3, 4)), lambda x: jax.lax.slice(x, (3, 0), (2, 4)), TypeError),
    (lambda x: jax.lax.dynamic_update_slice(x, x[:2], (0, 0)),
     lambda x: jax.lax.dynamic_update_slice(x[:2], x, (0, 0)), TypeError),
    (lambda x: jax.lax.pad(x, np.float32(0), ((-2, 0, 0), (0, 0, 0))),
     lambda x: jax.lax.pad(x, np.float32(0), ((-9, 0, 0), (0, 0, 0))), ValueError),
    (lambda x: jnp.broadcast_to(x[:1], (7, 5)), lambda x: jnp.broadcast_to(x[:1], (-1, 5)), TypeError),
    (lambda x: jnp.broadcast_to(x[0, :1], 7), lambda x: jnp.broadcast_to(x[0, :1], -1), TypeError),
], ids=["dynamic_slice", "slice", "slice-limits", "dynamic_update_slice", "pad", "broadcast", "broadcast-scalar"])
def test_programs_for_all_shapes_check_the_shapes(good, bad, error):
    x = jnp.ones((4, 5), np.float32)
    for _ in range(2):
        good(x)
        with pytest.raises(error):
            bad(x)
