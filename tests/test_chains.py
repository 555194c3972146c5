"""Long chains of values that are used again: nothing grows with the size of what they would be, written out."""

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


def test_work_of_sums_in_blocks_is_known():
    f = styrax.jit(lambda x: x.sum(0)).lower(jnp.ones((1301, 17))).compile()
    program = f.runtime_executable().program
    assert program.work < 1e6
    assert 1300 * 17 <= f.cost_analysis()["flops"] <= 1301 * 17 * 1.5
