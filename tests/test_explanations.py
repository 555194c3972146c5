"""`jit(f).explain(x)`: what it says of nests, against counts made by hand; and that a function is as before."""

from __future__ import annotations

import linecache
import math
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import styrax as jax
from styrax.cpu import runtime

jnp, lax = jax.numpy, jax.lax


def named(explanation, primitive):
    return [n for n in explanation.nests if primitive in n.primitives]


def here(nest, text):
    """Whether a nest's first line in this file has a text."""
    path, line, *_ = nest.lines[0].split(":")
    assert path.endswith("test_explanations.py")
    return text in linecache.getline(__file__, int(line))


@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 96, 80), (300, 400, 200)], ids=str)
def test_operations_of_products(shape):
    m, k, n = shape
    found = jax.jit(jnp.matmul).explain(jnp.ones((m, k)), jnp.ones((k, n)))
    assert sum(nest.operations for nest in named(found, "dot_general")) == pytest.approx(2 * m * n * k, rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint32", "complex64"])
def test_bytes_and_operations_of_elements(dtype):
    with jax.enable_x64(True):
        x = jnp.ones(10_000, dtype)
        (nest,) = jax.jit(lambda x: x + x * x).explain(x).nests
    parts = {"complex64": (3 + 3 + 2) / 2}.get(dtype, 1) * 2  # (a product of complex numbers has six operations)
    assert nest.bytes == 2 * x.nbytes and nest.primitives == ("add",) and here(nest, "x + x * x")
    assert nest.operations >= parts * x.size  # small floats are rounded besides
    assert nest.seconds > 0 and nest.share > 0 and nest.limit in ("memory", "arithmetic")


def test_loops_and_branches():
    def body(c, x):
        y = jnp.sin(c @ x)
        return y, jnp.sum(jnp.sort(y, axis=0))

    def program(x, n):
        c, sums = lax.scan(body, x, jnp.ones((12, 64, 64)))
        c = lax.while_loop(lambda s: s[1] < n, lambda s: (jnp.cos(s[0] @ x), s[1] + 1), (c, 0))[0]
        return lax.cond(n > 3, lambda: c @ x, lambda: c @ c), sums

    x = jnp.eye(64)
    found = jax.jit(program).explain(x, 5)
    (turning,) = [n for n in found.nests if not n.leaf and n.form == "loop"]
    assert turning.executions == 1 and not turning.depth
    assert [n.executions for n in named(found, "sin") if n.leaf] == [12]
    assert [n.executions for n in named(found, "cos") if n.leaf] == [5]
    assert all(n.depth for n in named(found, "cos") if n.leaf)
    assert any(n.form == "while" for n in found.nests)
    assert found.seconds >= sum(n.seconds for n in found.nests) > 0
    text = str(found)
    assert "sin × 12  " in text and text.startswith("program: ")
    assert here(next(n for n in named(found, "sin") if n.leaf), "jnp.sin(c @ x)")


@pytest.fixture(params=[1, 2])
def threads(request):
    before = runtime.num_threads()
    runtime.set_num_threads(request.param)
    yield
    runtime.set_num_threads(before)


def references(x):
    ref = jax.new_ref(x)
    ref[...] = 2 * ref[...]
    return ref[...]


X = np.linspace(0, 1, 5000, dtype=np.float32)
PROGRAMS = {
    "donated": lambda: (jax.jit(lambda x: x + 1, donate_argnums=0), jnp.asarray(X)),
    "static": lambda: (jax.jit(lambda x, n: x * n, static_argnums=1), X, 3),
    "calls": lambda: (jax.jit(lambda x: jax.pure_callback(np.sin, x, x) + 1), X),
    "references": lambda: (jax.jit(references), X),
    "slopes": lambda: (jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))), X),
    "slopes of many": lambda: (jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(jnp.exp(x))))), X.reshape(50, 100)),
    "keys": lambda: (jax.jit(lambda key: jax.random.normal(key, (1000,))), jax.random.key(1)),
    "numbers": lambda: (jax.jit(lambda x, y: x + y), 1, 2.5),
    "trees": lambda: (jax.jit(lambda t: {"a": t["a"] @ t["a"], "b": None}), {"a": jnp.eye(20)}),
    "unknown length": lambda: (jax.jit(lambda x: lax.while_loop(lambda v: v[0] < 9, lambda v: jnp.cos(v) + 9, x)), X),
    "empty": lambda: (jax.jit(lambda x: x * 2), X[:0]),
    "one element": lambda: (jax.jit(lambda x: x * 2), X[1]),
    "invalid": lambda: (jax.jit(lambda x: jnp.log(x - 2) / 0), X),
    "nothing": lambda: (jax.jit(lambda: ()),),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_function_is_as_before(name, threads):
    f, *args = PROGRAMS[name]()
    expected = jax.tree.map(np.asarray, f.__wrapped__(*args))
    found = f.explain(*args)
    assert found.calls >= 3 and str(found).startswith(f"{f.__name__}: ")
    assert all(n.seconds >= 0 and (math.isnan(n.share) or n.share >= 0) for n in found.nests)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), jax.tree.map(np.asarray, f(*args)), expected)


def test_several_devices():
    """A program that is mapped over devices, with a sum over them."""
    text = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((8,), ("i",))
f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(jnp.sin(x), "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
x = jax.device_put(jnp.arange(8000.0), jax.NamedSharding(mesh, P("i")))
print(any("psum" in " ".join(n.primitives) for n in f.explain(x).nests))
print(abs(f(x) - jnp.sin(x).reshape(8, -1).sum(0)).max() < 1e-5)
"""
    done = subprocess.run([sys.executable, "-m", "styrax", "-c", text], capture_output=True, text=True,
                          env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"})
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_misuse():
    f = jax.jit(lambda x: x + 1)
    with pytest.raises(TypeError):
        f.explain()
    with pytest.raises(TypeError):
        f.explain("a")
    with pytest.raises(TypeError, match="Tracer"):
        jax.jit(lambda x: f.explain(x) and x)(1.0)
    with pytest.raises(ZeroDivisionError):
        jax.jit(lambda x: 1 / 0).explain(1.0)
    with pytest.raises(RuntimeError, match="division by zero"):
        jax.jit(lambda x: jax.pure_callback(lambda v: 1 / 0, x, x)).explain(1.0)
    assert f(1) == 2
