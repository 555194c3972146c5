"""Minimization: the minima, what is counted on the way, states of failure, batches and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.scipy.optimize
import numpy as np
import pytest
import scipy.optimize

import styrax
import styrax.numpy
import styrax.scipy

BFGS, LBFGS = "BFGS", "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def valley(x: Any) -> Any:
    return 0.26 * (x**2).sum() - 0.48 * x[0] * x[1]


def bowl(x: Any) -> Any:
    return ((x - 1) ** 4).sum()


def minimize(package: Any, *args: Any, **options: Any) -> Any:
    return package.scipy.optimize.minimize(*args, **options)


# Where JAX's line search, which gives up earlier, finds its way as well.
@pytest.mark.parametrize("method, function, start", [
    (BFGS, himmelblau, [1.0, 1.0]), (LBFGS, himmelblau, [1.0, 1.0]), (BFGS, valley, [1.0, 1.0]),
    (LBFGS, valley, [1.0, 1.0]), (BFGS, bowl, [0.0, 0.0, 0.0])])
def test_as_jax(method: str, function: Any, start: list[float]) -> None:
    with styrax.enable_x64(True), jax.enable_x64(True):
        ours = minimize(styrax, function, styrax.numpy.array(start), method=method)
        theirs = minimize(jax, function, jax.numpy.array(start), method=method)
    assert ours._fields == theirs._fields
    for name, a, b in zip(ours._fields, ours, theirs):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type), name
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("method", [BFGS, LBFGS])
def test_a_curved_valley(method: str) -> None:
    with styrax.enable_x64(True):
        for start in ([0.0, 0.0], [-1.2, 1.0, 1.2], [3.0, -2.0, 1.0, 1.0]):
            found = minimize(styrax, rosenbrock, styrax.numpy.array(start), method=method)
            expected = scipy.optimize.minimize(rosenbrock, np.array(start), method="BFGS")
            np.testing.assert_allclose(found.x, expected.x, atol=1e-3)
            assert found.status in (0, 4) and np.abs(found.jac).max() < 1e-3


def test_steep_functions() -> None:
    # An inverse Hessian of 1e-8 is lost beside an identity.
    for scale in (1e4, 3e4, 1e-3):
        found = minimize(styrax, lambda x: ((scale * x) ** 2).mean(), styrax.numpy.ones(2), method=BFGS)  # noqa: B023
        assert found.success and found.fun < 1e-4


def test_without_a_minimum() -> None:
    for method, evaluations in ((BFGS, 11), (LBFGS, 21)):
        found = minimize(styrax, lambda x: -x @ x, styrax.numpy.ones(3), method=method)
        expected = minimize(jax, lambda x: -x @ x, jax.numpy.ones(3), method=method)
        assert (found.status, found.nfev, found.nit) == (5, evaluations, 1)
        assert (expected.status, expected.nfev, expected.nit) == (5, evaluations, 1)
        np.testing.assert_array_equal(found.x, expected.x)
    nan = minimize(styrax, lambda x: (x * styrax.numpy.nan).sum(), styrax.numpy.ones(2), method=BFGS)
    assert not nan.success


LIMITS = [(BFGS, {"maxiter": 2}, 1), (LBFGS, {"maxiter": 2}, 1), (LBFGS, {"maxfun": 3}, 2), (LBFGS, {"maxgrad": 3}, 3),
          (LBFGS, {"ftol": 0.9}, 4), (BFGS, {"maxiter": 0}, 1)]


@pytest.mark.parametrize("method, options, status", LIMITS, ids=str)
def test_limits(method: str, options: dict[str, float], status: int) -> None:
    ours = minimize(styrax, bowl, styrax.numpy.zeros(3), method=method, options=options)
    theirs = minimize(jax, bowl, jax.numpy.zeros(3), method=method, options=options)
    assert [int(x) for x in (ours.status, ours.nit, ours.nfev)] == [int(x) for x in (
        theirs.status, theirs.nit, theirs.nfev)]
    assert ours.status == status


def test_tolerances() -> None:
    loose = minimize(styrax, bowl, styrax.numpy.zeros(3), method=BFGS, tol=1e-1)
    tight = minimize(styrax, bowl, styrax.numpy.zeros(3), method=BFGS, tol=1e-1, options={"gtol": 1e-4})
    assert loose.nit < tight.nit and np.abs(loose.jac).max() < 1e-1 and np.abs(tight.jac).max() < 1e-4


def test_complex_variables() -> None:
    target = np.complex64([1 + 2j, -1j, 3])
    for method in (BFGS, LBFGS):
        found = minimize(styrax, lambda x: (abs(x - target) ** 2).sum(), styrax.numpy.zeros(3, complex), method=method)
        np.testing.assert_allclose(found.x, target, atol=1e-4)
        assert found.success


def test_batches_and_derivatives() -> None:
    starts = np.float32([[0, 0], [1, 1], [3, 2.5], [-3, 3]])

    def found(start: Any) -> Any:
        return minimize(styrax, himmelblau, start, method=BFGS)

    together = styrax.jit(styrax.vmap(found))(starts)
    for n, start in enumerate(starts):
        alone = found(styrax.numpy.asarray(start))
        np.testing.assert_allclose(together.x[n], alone.x, atol=1e-3)
        assert himmelblau(np.asarray(together.x[n])) < 1e-6

    def minimum(a: Any) -> Any:
        return minimize(styrax, lambda x, a: ((x - a) ** 2).sum() + 2 * a, styrax.numpy.zeros(2), (a,), method=BFGS).fun

    np.testing.assert_allclose(styrax.jvp(minimum, (3.0,), (1.0,))[1], 2.0, rtol=1e-4)


CALLS = {
    "a method": lambda p: minimize(p, bowl, p.numpy.ones(3), method="foo"),
    "no method": lambda p: minimize(p, bowl, p.numpy.ones(3)),
    "a number": lambda p: minimize(p, bowl, 3.0, method=BFGS),
    "a list": lambda p: minimize(p, bowl, [3.0], method=BFGS),
    "a matrix": lambda p: minimize(p, bowl, p.numpy.ones((3, 1)), method=BFGS),
    "a function of vectors": lambda p: minimize(p, lambda x: x, p.numpy.ones(3), method=BFGS),
    "arguments": lambda p: minimize(p, bowl, p.numpy.ones(3), args=3, method=BFGS),
    "options": lambda p: minimize(p, bowl, p.numpy.ones(3), method=BFGS, options={"foo": 1}),
    "integers": lambda p: minimize(p, bowl, p.numpy.ones(3, int), method=BFGS),
}


@pytest.mark.parametrize("call", CALLS)
def test_errors(call: str) -> None:
    def error(package: Any) -> str:
        with pytest.raises(Exception) as caught:
            CALLS[call](package)
        return caught.type.__name__

    assert error(styrax) == error(jax)
