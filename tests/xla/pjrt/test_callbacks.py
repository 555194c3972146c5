"""Programs on a plugin that call Python, and what fails while they run."""

from __future__ import annotations

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.xla.pjrt.loaded_executable import Executable

SCALAR = jax.ShapeDtypeStruct((), np.float32)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64, np.complex64,
                                   np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2],
                         ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)], ids=str)
def test_arrays_pass(device, dtype, shape):
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    seen = []

    def called(x, y):
        seen.append(np.array(x))
        return np.asarray(y), np.asarray(x)

    with jax.enable_x64(True):
        told = jax.ShapeDtypeStruct(shape, dtype)
        f = jax.jit(lambda x: jax.pure_callback(called, (SCALAR, told), x, jnp.float32(4)))
        y, x = f(jax.device_put(values, device))
        assert float(y) == 4 and x.devices() == {device}
        np.testing.assert_array_equal(np.asarray(x), values)
        np.testing.assert_array_equal(seen[-1], values)


def test_calls_in_loops_and_batches(device):
    twice = lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, SCALAR, x, vmap_method="sequential")
    x = jax.device_put(np.float32(1), device)
    assert float(jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, c: twice(c), x))(x)) == 32
    xs = jax.device_put(np.arange(4, dtype=np.float32), device)
    np.testing.assert_array_equal(np.asarray(jax.jit(jax.vmap(twice))(xs)), [0, 2, 4, 6])


def test_prints_come_in_order(device, capsys):
    @jax.jit
    def f(x):
        jax.debug.print("first {}", x, ordered=True)
        jax.debug.print("then {}", x + 1, ordered=True)

    for i in range(3):
        f(jax.device_put(np.float32(i), device))
        device.client.barrier()
    assert capsys.readouterr().out == "".join(f"first {i}.0\nthen {i + 1}.0\n" for i in range(3))


def check_inside(device, other):
    """A program on a device calls a function that runs a program on another one."""
    inner = jax.jit(lambda v: jnp.sum(jnp.sin(v) ** 2))
    called = lambda x: np.asarray(inner(jax.device_put(np.asarray(x), other)))
    x = np.arange(5, dtype=np.float32)
    out = jax.jit(lambda x: jax.pure_callback(called, SCALAR, x) + 1)(jax.device_put(x, device))
    np.testing.assert_allclose(float(out), np.sum(np.sin(x) ** 2) + 1, rtol=1e-5)


def test_the_device_itself_inside_of_a_callback(host_device):
    """On a GPU that work would wait for the program that waits for it; of the processor there is more."""
    check_inside(host_device, host_device)


def test_the_cpu_inside_of_a_callback(device):
    check_inside(device, jax.devices("cpu")[0])


# -- failures ----------------------------------------------------------------------------------------


def failing(x):
    raise ValueError(f"no number but {float(x)}")


def test_a_failure_is_told_by_results(device):
    """The call returns; whoever waits for a result, or for what follows from it, is told."""
    f = jax.jit(lambda x: jax.pure_callback(failing, SCALAR, x) + 1)
    x = jax.device_put(np.float32(3), device)
    for wait in (lambda y: y.block_until_ready(), np.asarray, float, lambda y: (y * 2).block_until_ready()):
        with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: no number but 3.0"):
            wait(f(x))
    device.client.barrier()  # results have told it


def test_the_call_does_not_wait(device):
    """Results are there before the work is done."""
    go = threading.Event()

    def waiting(x):
        assert go.wait(60)
        return x

    big = jnp.ones((300, 300))  # programs of little work run in the call
    f = jax.jit(lambda x, m: (jax.pure_callback(waiting, SCALAR, x), m @ m))
    args = jax.device_put((np.float32(3), np.asarray(big)), device)
    timer = threading.Timer(0.5, go.set)
    timer.start()
    out, _ = f(*args)
    assert float(out) == 3 and go.is_set()
    timer.join()


@pytest.mark.parametrize("size", [2, 300])
def test_failures_of_effects_are_told(device, size):
    """At the latest by the barrier; where little is to do, by the call."""
    f = jax.jit(lambda x: jax.debug.callback(failing, (x @ x)[0, 0]))
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: no number but"):
        f(jax.device_put(np.ones((size, size), np.float32), device))
        device.client.barrier()
    device.client.barrier()


def test_wrong_results_are_refused(device):
    x = jax.device_put(np.float32(2), device)
    for wrong, what in ((np.zeros(3, np.float32), "shape"), (np.int32(1), "dtype")):
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"Incorrect output {what}"):
            jax.jit(lambda x, wrong=wrong: jax.pure_callback(lambda v: wrong, SCALAR, x))(x).block_until_ready()


def test_functions_go_with_their_programs(device):
    client = device.client
    closed = jax.make_jaxpr(lambda x: jax.pure_callback(lambda v: v, SCALAR, x))(np.float32(1))
    code = client.compile(closed, device=device)
    (number,) = code.entry.callbacks.numbers
    assert type(code) is Executable and number in client._callbacks().functions
    (out,) = code(jax.device_put(np.float32(1), device))
    assert float(out) == 1
    client.barrier()
    del code, out
    gc.collect()
    assert number not in client._callbacks().functions
