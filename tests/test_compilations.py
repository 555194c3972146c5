"""How often things are compiled: eager operations once for all shapes, jitted programs once for each signature."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.compile.lowering.products import LARGE
from styrax.cpu import eager, libraries, llvm, tiers
from styrax.cpu.client import CpuBackend, Executable, backend
from styrax.experimental import ode


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
        x = rng.normal(size=(3 + 2 * k, 7 + k)).astype(np.float32)
        before = backend.eager.compiled + llvm.compile_count.compiled
        for ours, theirs in zip(work(jnp.asarray(x)), expected(x)):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-4, atol=2e-5)
        tiers.settle()  # what has been called twice is optimised
        counts.append(backend.eager.compiled + llvm.compile_count.compiled - before)
    assert sum(counts[5:]) == 0, counts


def numbers(*shape):
    return jnp.asarray(np.random.default_rng(1).random(shape, np.float32))


def decay(y, t):
    return -y


LIBRARY = {
    "binomial": lambda: jax.random.binomial(jax.random.key(0), 10, numbers(5)),
    "multinomial": lambda: jax.random.multinomial(jax.random.key(0), 10, numbers(5)),
    "poisson": lambda: jax.random.poisson(jax.random.key(0), 20 * numbers(5)),
    "gamma": lambda: jax.random.gamma(jax.random.key(0), numbers(5)),
    "digitize": lambda: jnp.digitize(numbers(5), jnp.sort(numbers(3))),
    "polyfit": lambda: jnp.polyfit(numbers(9), numbers(9) ** 2, 2, cov=True),
    "average": lambda: jnp.average(numbers(5), weights=numbers(5), returned=True),
    "piecewise": lambda: jnp.piecewise(numbers(5), [numbers(5) > 0.5], [1.0, lambda x: -x]),
    "truncnorm": lambda: jax.scipy.stats.truncnorm.logpdf(numbers(5), -1.0, 2.0),
    "comb": lambda: jax.scipy.special.comb(5, 2),
    "odeint": lambda: ode.odeint(decay, numbers(5), jnp.linspace(0, 1, 3)),
    "gradient of odeint": lambda: jax.grad(lambda y: ode.odeint(decay, y, jnp.linspace(0, 1, 3)).sum())(numbers(5)),
    "checkpoint": lambda: jax.grad(lambda x: jax.checkpoint(decay)(x, 0).sum())(numbers(5)),
    "associative_scan": lambda: jax.lax.associative_scan(jnp.add, numbers(5)),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_what_is_called_eagerly_again_is_not_compiled_again(name, monkeypatch):
    for _ in range(3):
        jax.block_until_ready(LIBRARY[name]())
    tiers.settle()
    compile, asked = CpuBackend.compile, []
    monkeypatch.setattr(CpuBackend, "compile", lambda *args, **kwargs: asked.append(1) or compile(*args, **kwargs))
    before = backend.eager.compiled + llvm.compile_count.compiled
    jax.block_until_ready(LIBRARY[name]())
    tiers.settle()
    assert backend.eager.compiled + llvm.compile_count.compiled == before and not asked


def test_traced_integers_are_not_kept_with_a_converted_function():
    class Shift:
        def __call__(self, x):
            return x + self.by

    shift = Shift()

    def call(x, by):
        shift.by = by
        f, captured = jax.closure_convert(shift, x)
        return f(x, *captured)

    for n in (2, 3):
        assert jax.jit(call)(jnp.ones(n), n)[0] == 1 + n
        assert jax.jit(lambda x, by: call(x, by))(jnp.ones(n), n + 5)[0] == 6 + n


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


@pytest.mark.parametrize("function", [jnp.matmul, jnp.add, jax.nn.softmax, jnp.linalg.norm, jnp.kron],
                         ids=lambda f: getattr(f, "__name__", str(f)))
def test_what_the_user_jits_is_compiled_for_its_shapes(function):
    x = jnp.asarray(np.arange(6.0).reshape(2, 3) @ np.ones((3, 3)), np.float32)[:, :2]
    args = (x, x) if function in (jnp.matmul, jnp.add, jnp.kron) else (x,)
    backend.eager.kernels.clear()
    g = jax.jit(function)
    g.clear_cache()  # of what other tests have jitted
    np.testing.assert_allclose(g(*args), function(*map(np.asarray, args)), rtol=1e-6)
    (program,) = g._programs.values()
    assert program.closed.in_avals == [x.aval] * len(args)
    assert not isinstance(program.code, eager.Bound)


class Clock:
    """A clock that goes on by what the calls of a program are said to take."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        sized = Executable.sized

        def timed(program, *given):
            run = sized(program, *given)

            def call(*args):
                self.now += seconds(args[0].shape)
                return run(*args)

            return call

        monkeypatch.setattr(Executable, "sized", timed)
        monkeypatch.setattr(eager.time, "perf_counter", lambda: self.now)


OPERATIONS = {"primitive": jax.lax.exp, "function": jnp.square, "program": jax.nn.softmax,
              "product": lambda x: jnp.inner(x, x)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_eager_work_is_compiled_for_a_shape_when_it_would_have_paid(name, monkeypatch):
    f = OPERATIONS[name]
    large, small = jnp.ones((7, 37)), jnp.ones((3, 11))
    expected = np.asarray(f(large))
    jax.clear_caches()
    backend.eager.exact.clear()
    backend.eager.kernels.clear()  # what they took to compile was measured by a true clock
    Clock(monkeypatch, lambda shape: eager.COMPILATION / (10 if shape == (7, 37) else 10_000))
    counts = []
    for _ in range(30):
        before = len(PROGRAMS)
        f(small)
        np.testing.assert_allclose(f(large), expected, rtol=1e-6)
        counts.append(len(PROGRAMS) - before)
    assert sum(counts[1:]) == 1 and counts.index(1, 1) in range(6, 14), counts
    np.testing.assert_allclose(f(small), f(np.asarray(small)), rtol=1e-6)


PROGRAMS: list[str] = []


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """Notes the programs that are compiled."""
    PROGRAMS.clear()
    compile_program = CpuBackend.compile

    def noted(self, closed, **options):
        PROGRAMS.append(options.get("name", ""))
        return compile_program(self, closed, **options)

    monkeypatch.setattr(CpuBackend, "compile", noted)
    monkeypatch.setattr(backend.eager, "compile", backend.compile)


def test_one_program_calls_blas_for_all_large_products(monkeypatch):
    monkeypatch.setattr(libraries, "vector_bytes", lambda: 64)
    rng = np.random.default_rng(1)
    backend.eager.kernels.clear()
    backend.eager.exact.clear()
    jax.clear_caches()
    counts = []
    for m, k, n in [(130, 90, 80), (131, 95, 70), (300, 50, 65), (40, 30, 20), (41, 9, 20)]:
        x, y = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
        a, b = jnp.asarray(x), jnp.asarray(y)
        before = len(PROGRAMS)
        product = jnp.matmul(a, b)
        counts.append(len(PROGRAMS) - before)
        np.testing.assert_allclose(product, x @ y, rtol=1e-4, atol=1e-4)
        if m * k * n >= LARGE:  # then the panels are those of a program for these sizes alone
            np.testing.assert_array_equal(product, jax.jit(lambda a, b: a @ b)(a, b))
    assert counts == [1, 0, 0, 1, 0]
    kernels = [k for found in backend.eager.kernels.values() for k in found]
    assert sorted("@blas_sgemm" in k.code.ir for k in kernels) == [False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("m, k, n", [(120, 70, 65), (1030, 40, 30), (30, 1100, 33), (4, 300, 400), (3, 400, 300),
                                     (600, 50, 700), (520, 521, 37), (0, 400, 700), (700, 0, 400), (1, 600, 700)])
def test_large_products_of_any_layout(m, k, n, dtype):
    rng = np.random.default_rng(m + k + n)
    wide = np.complex128 if dtype == np.complex64 else np.float64
    draw = lambda *shape: (rng.normal(size=shape) + (1j * rng.normal(size=shape) if wide is np.complex128 else 0))
    products = [
        (lambda a, b: a @ b, (m, k), (k, n)), (lambda a, b: a.T @ b, (k, m), (k, n)),
        (lambda a, b: a @ b.T, (m, k), (n, k)), (lambda a, b: a.T @ b.T, (k, m), (n, k)),
        (lambda a, b: a[:, ::2] @ b[1:], (m, 2 * k), (k + 1, n)),
    ]
    with jax.enable_x64(dtype == np.float64):
        for f, left, right in products:
            x, y = draw(*left), draw(*right)
            got = f(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
            assert got.dtype == dtype
            np.testing.assert_allclose(got, f(x, y), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("count", [1, 3])
def test_large_products_in_batches(count):
    rng = np.random.default_rng(count)
    x, y = rng.normal(size=(count, 70, 80)), rng.normal(size=(count, 80, 90))
    for spec, a, b in [("bij,bjk->bik", x, y), ("bij,bkj->bik", x, y.swapaxes(1, 2).copy()),
                       ("ibj,jbk->bik", x.swapaxes(0, 1).copy(), y.swapaxes(0, 1).copy())]:
        got = jnp.einsum(spec, jnp.asarray(a, np.float32), jnp.asarray(b, np.float32))
        np.testing.assert_allclose(got, np.einsum(spec, a, b), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(jax.vmap(lambda a, b: a @ b)(jnp.asarray(x, np.float32), jnp.asarray(y, np.float32)),
                                   x @ y, rtol=1e-3, atol=1e-3)


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
