"""Programs on a plugin: where they run, what they give, and how they fail."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.core.arrays import backends
from styrax.core.types import avals
from styrax.xla.pjrt import options
from styrax.xla.pjrt.loaded_executable import Executable

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def same(ours, theirs, tolerance=1e-6):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


# -- where programs run ------------------------------------------------------------------------------


def test_told_by_name(device):
    with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated"):
        f = jax.jit(lambda x: x * 2 + 1, backend=device.platform)
    for x in (X, jnp.asarray(X), jax.device_put(X, device)):
        out = f(x)
        assert out.devices() == {device} and out.committed
        np.testing.assert_array_equal(np.asarray(out), X * 2 + 1)


def test_programs_follow_their_arguments(device):
    """One function serves both: where an argument is committed to, otherwise the default device."""
    (cpu,) = jax.devices("cpu")
    f = jax.jit(lambda x, y: jnp.sin(x) * y)
    there, here = jax.device_put(X, device), jnp.asarray(X)
    for args, where in ((here, here), cpu), ((there, here), device), ((here, there), device), ((X, X), cpu), (
            (there, X), device), ((here, 2.0), cpu), ((there, 2.0), device):
        out = f(*args)
        assert out.devices() == {where}, args
        assert out.committed is (where is device)
        same(out, f(*map(np.asarray, args)))
    assert (jnp.sin(there) + here).devices() == {device}
    assert jax.grad(lambda x: jnp.sum(x ** 2))(there).devices() == {device}
    assert jax.vmap(lambda x: x + 1)(there).devices() == {device}
    carry, ys = jax.lax.scan(lambda c, x: (c + x, c * x), there[0], there)
    assert carry.devices() == ys.devices() == {device}
    same((carry, ys), jax.lax.scan(lambda c, x: (c + x, c * x), here[0], here))


def test_loops_at_the_top_beside_explicit_sharding(device, monkeypatch):
    """Once types may tell shardings, results are asked for theirs, also of what runs at once."""
    monkeypatch.setattr(avals, "explicit", True)
    there = jax.device_put(X, device)
    carry, ys = jax.lax.scan(lambda c, x: (c + x, c * x), there[0], there)
    assert carry.devices() == ys.devices() == {device}
    same(carry, X[0] + X.sum(0))


def test_arguments_that_are_not_read_say_nothing(device):
    f = jax.jit(lambda x, y: y + 1)
    assert f(jax.device_put(X, device), jnp.asarray(X)).devices() == set(jax.devices("cpu"))


def test_constants_are_taken_along(device):
    there = jax.device_put(X, device)
    big = jax.device_put(np.ones(5000, np.float32), device)
    assert jax.jit(lambda x: x + there)(X).devices() == set(jax.devices("cpu"))
    f = jax.jit(lambda x: (x + jnp.asarray(X), jnp.sum(big)))
    out = f(there)
    assert out[0].devices() == out[1].devices() == {device} and float(out[1]) == 5000
    np.testing.assert_array_equal(np.asarray(out[0]), 2 * X)


def test_several_devices_are_refused(device):
    (cpu,) = jax.devices("cpu")
    there, here = jax.device_put(X, device), jax.device_put(X, cpu)
    for f in (jax.jit(lambda x, y: x + y), jnp.add, jax.lax.add):
        with pytest.raises(ValueError, match="incompatible devices for jitted computation. Got argument x of "):
            f(there, here)


def test_a_function_compiled_before_the_backend_was_used(device):
    """Its code is for the CPU; it sees that an argument is elsewhere."""
    apart, backends.apart = backends.apart, False
    try:
        f = jax.jit(lambda x: x - 3)
        assert f(jnp.asarray(X)).devices() == set(jax.devices("cpu"))
        backends.apart = True
        out = f(jax.device_put(X, device))
        assert out.devices() == {device}
        np.testing.assert_array_equal(np.asarray(out), X - 3)
        assert f(jnp.asarray(X)).devices() == set(jax.devices("cpu"))
    finally:
        backends.apart = apart


# -- what they give ------------------------------------------------------------------------------------


def dense(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def train(params, x, y, key):
    def loss(params):
        noise = 0.01 * jax.random.normal(key, x.shape)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(dense(params, x + noise)) * y, axis=-1))

    value, slopes = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value


def test_a_training_step(device):
    rng = np.random.default_rng(0)
    sizes = (8, 16, 16, 4)
    params = [(rng.normal(size=(m, n)).astype(np.float32) / 4, np.zeros(n, np.float32))
              for m, n in zip(sizes, sizes[1:])]
    x, y = rng.normal(size=(32, 8)).astype(np.float32), np.eye(4, dtype=np.float32)[rng.integers(0, 4, 32)]
    step = jax.jit(train, donate_argnums=0)
    ours, theirs = jax.tree.map(jnp.asarray, params), jax.device_put(params, device)
    first = None
    for i in range(5):
        ours, a = step(ours, x, y, jax.random.key(i))
        theirs, b = step(theirs, x, y, jax.random.key(i))
        first = first or float(a)
        assert b.devices() == {device}
        np.testing.assert_allclose(float(a), float(b), rtol=1e-5)
    assert float(b) < first
    same(ours, theirs, 1e-5)


def test_results_without_memory(device):
    x = jax.device_put(np.float32(2), device)
    out, pull = jax.vjp(lambda x, n: x * n, x, jax.device_put(np.int32(3), device))
    a, b = jax.jit(pull)(out)
    assert float(a) == 18 and b.dtype == jax.dtypes.float0
    assert jax.jit(lambda x: ())(x) == ()


def test_a_large_constant_is_an_argument(device):
    table = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    lowered = jax.jit(lambda x: x + table, in_shardings=jax.sharding.SingleDeviceSharding(device)).lower(table)
    compiled = lowered.compile()
    assert len(compiled.as_text()) < 2000
    np.testing.assert_array_equal(np.asarray(compiled(table)), table + table)


def test_stages(device):
    place = jax.sharding.SingleDeviceSharding(device)
    compiled = jax.jit(lambda x: jnp.sin(x) @ x.T, in_shardings=place).lower(X).compile()
    assert type(compiled.runtime_executable()) is Executable
    assert "stablehlo.sine" in compiled.as_text()
    stats = compiled.memory_analysis()
    assert stats.argument_size_in_bytes == 24 and stats.output_size_in_bytes == 16
    assert compiled.cost_analysis()["transcendentals"] >= 6
    same(compiled(X), jnp.sin(X) @ X.T)
    with pytest.raises(NotImplementedError, match="jax.profiler.trace"):
        compiled.explain([X])


def test_code_is_loaded_instead_of_compiled(device, monkeypatch):
    x = jax.device_put(X, device)
    closed = jax.make_jaxpr(lambda x: x * 7 - 1)(X)
    client = device.client
    code = client.compile(closed, device=device).machine_code()
    ((key, data),) = code.items()
    assert len(key) == 32 and len(data) > 100
    client.accept(code)
    monkeypatch.setattr(client, "_compile", lambda *_: pytest.fail("compiled"))
    (out,) = client.compile(closed, device=device)(x)
    np.testing.assert_array_equal(np.asarray(out), X * 7 - 1)
    monkeypatch.undo()
    other = client.compile(jax.make_jaxpr(lambda x: x * 8)(X), device=device)
    assert key not in other.machine_code()
    client._accepted.clear()


def test_keys_tell_plugins_apart(host_device):
    clients = [jax.devices(p)[0].client for p in ("xla_cpu", "xla_cpu_older")]
    assert len({c.key("text", b"options") for c in clients}) == 2


def test_threads_share_a_program(device):
    f = jax.jit(lambda x: jnp.sum(jnp.sin(x) * x))
    xs = [jax.device_put(np.full(1000, i, np.float32), device) for i in range(4)]
    wanted = [float(f(x)) for x in xs]
    found: list[list[float]] = [[] for _ in xs]

    def work(i):
        for _ in range(50):
            found[i].append(float(f(xs[i])))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[w] * 50 for w in wanted]


# -- donation --------------------------------------------------------------------------------------------


def test_donated_memory_is_taken(device):
    f = jax.jit(lambda x, y: (x + 1, y), donate_argnums=0)
    x, y = jax.device_put(np.ones(1000, np.float32), device), jax.device_put(X, device)
    address = x.unsafe_buffer_pointer()
    out, _ = f(x, y)
    assert x.is_deleted() and not y.is_deleted() and out.unsafe_buffer_pointer() == address
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        f(x, y)


def test_memory_that_numpy_sees_is_not_taken(device):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(2):
        x = jax.device_put(np.ones(1000, np.float32), device)
        view = np.asarray(x)
        out = f(x)
        np.testing.assert_array_equal(view, 1)
        np.testing.assert_array_equal(np.asarray(out), 2)
        del x, out
        gc.collect()
        np.testing.assert_array_equal(view, 1)
        assert f(jax.device_put(np.ones(1000, np.float32), device)).shape == (1000,)  # others are taken still


# -- failures --------------------------------------------------------------------------------------------


def test_wrong_types_do_not_reach_the_plugin(device):
    """A plugin looks at sizes alone: int32 for float32 would give garbage."""
    code = device.client.compile(jax.make_jaxpr(lambda x: x + 1)(X), device=device)
    for wrong in (X.astype(np.int32), X.T, X[:1], X.astype(np.float16)):
        with pytest.raises(TypeError, match=r"compiled for an argument of type float32\[2, 3\]"):
            code(jax.device_put(wrong, device))
    with pytest.raises(backends.Elsewhere):
        code(jnp.asarray(X))


def test_programs_that_do_not_compile(device):
    with pytest.raises(jax.errors.JaxRuntimeError, match="nonsense"):
        device.client._compile("module @m { nonsense }", options.compile_options([device.id]))


def test_memory_that_cannot_be_had(device):
    f = jax.jit(lambda x: jnp.zeros((1 << 24, 1 << 24), np.int8) + x)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        f(jax.device_put(np.int8(1), device)).block_until_ready()
