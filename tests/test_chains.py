"""Long chains of values that are used again: nothing grows with the size of what they would be, written out."""

import jax as real
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

STEPS = {
    "sum": lambda x: x + x,
    "difference": lambda x: x - x / 2,
    "choice": lambda x: jnp.where(x > 0, x, -x),
    "maximum": lambda x: jnp.maximum(x, x * 0.5),
}


@pytest.mark.parametrize("name", list(STEPS))
@pytest.mark.parametrize("shape", [(), (5,)])
def test_reused_values(name, shape):
    def chain(x):
        for _ in range(1040):
            x = STEPS[name](x)
        return x

    x = np.ones(shape, np.float32)
    want = {"sum": np.inf, "difference": 0.0}.get(name, 1.0)
    np.testing.assert_allclose(styrax.jit(chain)(x), np.full(shape, want), atol=1e-44)


def test_long_chains_are_loops_of_bounded_length():
    """LLVM's time grows faster than a function's length: no function is in proportion to the program."""
    rng = np.random.default_rng(5)
    which, by = rng.integers(0, 4, 1500), rng.uniform(0.5, 1.5, 1500).astype(np.float32)

    def chain(j, x):
        y = x
        for k, c in zip(which, by, strict=True):
            if k == 0:
                x = j.where(x > c, x - c, x)
            elif k == 1:
                x, y = y + c, x
            else:
                x = j.sin(x * c) if k == 2 else x / (1 + x * x)
        return x, y

    x = np.linspace(-2, 2, 37).astype(np.float32)
    f = styrax.jit(lambda x: chain(jnp, x))
    for found, want in zip(f(x), chain(np, x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
    executable = f.lower(x).compile().runtime_executable()
    lengths = [body.count("\n") for body in executable.ir.split("\ndefine ")]
    assert max(lengths) < 3000 and sum(length > 1000 for length in lengths) >= 3
    assert executable.program.work < 1500 * 40 * 37  # each value once, however often it is used


def test_work_of_sums_in_blocks_is_known():
    f = styrax.jit(lambda x: x.sum(0)).lower(jnp.ones((1301, 17))).compile()
    program = f.runtime_executable().program
    assert program.work < 1e6
    assert 1300 * 17 <= f.cost_analysis()["flops"] <= 1301 * 17 * 1.5


SPECIAL = [1, -0.0, 0.0, np.inf, -0.0, np.nan, 2, -3]
GROUPED = {
    "extrema": (lambda j, c, x, y: j.numpy.maximum(j.numpy.minimum(j.numpy.minimum(c, x), y), -x), np.float32),
    "carried on the right": (lambda j, c, x, y: j.numpy.minimum(y, j.numpy.minimum(x, c)), np.float16),
    "sums of integers": (lambda j, c, x, y: c + x + y, np.int8),
    "products of integers": (lambda j, c, x, y: x * (y * c), np.uint32),
    "bits": (lambda j, c, x, y: ((c ^ x) ^ y) | (x & (c & y)), np.int32),
}


@pytest.mark.parametrize("turns", [0, 1, 8])
@pytest.mark.parametrize("name", GROUPED)
def test_regrouped_chains_of_carried_values(name, turns):
    """The order in which what is associative is computed is nobody's to see, signs of zeros included."""
    step, dtype = GROUPED[name]
    xs = np.array(SPECIAL, dtype) if np.dtype(dtype).kind == "f" else np.arange(1, 9).astype(dtype) * 37
    start = xs[::-1][:1] if turns else xs[:1]

    def run(j, wrap):
        def f(c, x, y):
            return j.lax.scan(lambda c, t: (step(j, c, *t),) * 2, c, (x, y))

        return wrap(f)(start[0], xs[:turns], xs[::-1][:turns].copy())

    wanted = run(real, real.jit)
    for wrap in (styrax.jit, lambda f: f):
        for found, right in zip(run(styrax, wrap), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
            if np.dtype(dtype).kind == "f":
                np.testing.assert_array_equal(*(np.signbit(v) & ~np.isnan(v) for v in map(np.asarray, (found, right))))
