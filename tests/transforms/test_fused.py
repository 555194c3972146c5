"""Library functions that are one program where they are called eagerly: as step by step, and where they cannot be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.cpu.client import backend
from styrax.transforms.fused import fused

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
V = np.arange(1, 7, dtype=np.float32)
CALLS = {
    "sum": (lambda np_, x, v: np_.sum(x, axis=1, keepdims=True)),
    "mean of nothing": (lambda np_, x, v: np_.sum(x[:0], axis=0)),
    "mean": (lambda np_, x, v: np_.mean(x, 0)),
    "max": (lambda np_, x, v: np_.max(x, axis=(0, 1))),
    "argmin": (lambda np_, x, v: np_.argmin(x, axis=-1)),
    "dot": (lambda np_, x, v: np_.dot(x, v)),
    "matmul": (lambda np_, x, v: np_.matmul(x, x.T)),
    "outer": (lambda np_, x, v: np_.outer(v, v)),
    "vdot": (lambda np_, x, v: np_.vdot(v, v)),
    "tensordot": (lambda np_, x, v: np_.tensordot(x, v, 1)),
    "spread": (lambda np_, x, v: x + v),
    "number": (lambda np_, x, v: np_.maximum(x, 1)),
    "number first": (lambda np_, x, v: 2 / (x + 10)),
    "power": (lambda np_, x, v: np_.power(np_.abs(x), 1.5)),
    "logaddexp": (lambda np_, x, v: np_.logaddexp(x, v)),
    "clip": (lambda np_, x, v: np_.clip(x, -1, 1)),
    "percentile": (lambda np_, x, v: np_.percentile(x, 30, axis=1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_numpys_at_several_sizes(name):
    call = CALLS[name]
    for rows in (4, 3, 1):
        for _ in range(3):
            found = call(jnp, jnp.asarray(X[:rows]), jnp.asarray(V))
            np.testing.assert_allclose(found, call(np, X[:rows], V), rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(jax.jit(lambda x, v: call(jnp, x, v))(X[:rows], V), call(np, X[:rows], V),
                                   rtol=2e-6, atol=1e-6)


def test_one_program_serves_all_sizes():
    jnp.mean(jnp.ones((3, 4)), axis=1)
    before = backend.eager.compiled
    for n in range(5, 9):
        np.testing.assert_array_equal(jnp.mean(jnp.ones((n, n + 1)), axis=1), np.ones(n))
    assert backend.eager.compiled == before


def test_under_a_trace_there_are_equations():
    found = [str(eqn.primitive) for eqn in jax.make_jaxpr(jnp.mean)(X).eqns]
    assert found == ["reduce_sum", "div"]
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: jnp.dot(x, x)))(X), 2 * X, rtol=1e-6)


@pytest.mark.parametrize("call, error", [
    (lambda: jnp.sum([1.0, 2.0]), TypeError), (lambda: jnp.sum("x"), TypeError),
    (lambda: jnp.sum(X, axis=5), ValueError), (lambda: jnp.mean(X, axis=0, out=X), NotImplementedError),
    (lambda: jnp.dot(jnp.ones(3), jnp.ones(4)), TypeError), (lambda: jnp.matmul(jnp.ones(3), 2.0), ValueError),
    (lambda: jnp.ones(3) + jnp.ones(4), TypeError), (lambda: jnp.max(jnp.ones((0, 3)), axis=0), ValueError),
    (lambda: jnp.argmax(jnp.ones(3), axis="i"), TypeError),
    (lambda: jnp.clip(jnp.ones(3), 1j, 2), ValueError), (lambda: jnp.add(jnp.ones(3)), TypeError),
])
def test_what_is_refused_says_why_each_time(call, error):
    messages = set()
    for _ in range(3):
        with pytest.raises(error) as caught:
            call()
        messages.add(str(caught.value))
    (message,) = messages
    assert message


def test_every_call_warns_of_a_dtype_that_is_cut():
    x = jnp.ones(3)
    for _ in range(3):
        with pytest.warns(UserWarning, match="float64"):
            assert jnp.sum(x, dtype="float64").dtype == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.sum(x, dtype=jnp.float16).dtype == np.float16


def test_settings_of_the_moment_hold():
    x = jnp.asarray(X)
    assert jnp.sum(jnp.asarray([True, True])).dtype == np.int32
    with jax.enable_x64(True):
        assert jnp.sum(jnp.asarray([True, True])).dtype == np.int64
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.mean(x * np.nan)
    with jax.disable_jit():
        np.testing.assert_allclose(jnp.mean(x), X.mean(), rtol=1e-6)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x + jnp.asarray(V)
    np.testing.assert_array_equal(x + jnp.asarray(V), X + V)


def test_a_function_that_looks_at_values_runs_step_by_step():
    @fused
    def positive(x):
        return jnp.sqrt(x) if x.sum() > 0 else -x

    for sign in (1, -1, 1):
        x = jnp.asarray([4.0, 9.0]) * sign
        np.testing.assert_array_equal(positive(x), [2, 3] if sign > 0 else [4, 9])


def test_numbers_are_operands_and_keep_their_weak_types():
    assert jnp.maximum(1, 2).weak_type and not jnp.maximum(jnp.ones(3), 2).weak_type
    assert jnp.maximum(jnp.arange(3), 0.5).dtype == np.float32
    before = backend.eager.compiled
    jnp.maximum(jnp.ones(3), 0.25)
    middle = backend.eager.compiled
    for number in (0.5, 0.75, -3.0):
        np.testing.assert_array_equal(jnp.maximum(jnp.zeros(5), number), np.full(5, max(0, number)))
    assert middle <= before + 1 and backend.eager.compiled <= middle + 1


def test_methods_and_stages():
    x = jnp.asarray(X)
    np.testing.assert_allclose(x.mean(axis=0), X.mean(0), rtol=1e-6)
    np.testing.assert_allclose(jnp.sum.lower(x).compile()(x), X.sum(), rtol=1e-6)
    assert jnp.sum.__name__ == "sum" and "axis" in jnp.sum.__doc__
