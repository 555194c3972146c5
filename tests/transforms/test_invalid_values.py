"""jax_debug_nans and jax_debug_infs: the operation that gives an invalid value is told, as by JAX."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax


def shard_map(j, f):
    mesh = j.make_mesh((1,), ("a",), axis_types=(j.sharding.AxisType.Auto,))
    return j.shard_map(f, mesh=mesh, in_specs=j.P("a"), out_specs=j.P("a"))


INVALID = {
    "operation": lambda j, jnp: jnp.log(-1.0),
    "divided": lambda j, jnp: jnp.zeros(2) / 0.0,
    "library function": lambda j, jnp: jnp.mean(jnp.ones(0)),
    "compiled": lambda j, jnp: j.jit(lambda x: jnp.sum(jnp.log(x) * 2))(-1.0),
    "one operation compiled": lambda j, jnp: j.jit(jnp.log)(-1.0),
    "nested": lambda j, jnp: j.jit(lambda x: j.jit(lambda y: jnp.log(y) + 1)(x) * 2)(-1.0),
    "hidden": lambda j, jnp: j.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(-1.0),
    "gradient": lambda j, jnp: j.grad(lambda x: jnp.where(x > 0, jnp.log(x), 0.0) * x)(0.0),
    "vmap": lambda j, jnp: j.vmap(jnp.log)(-jnp.ones(3)),
    "scan": lambda j, jnp: j.lax.scan(lambda c, x: (c / x, c), 0.0, jnp.zeros(2)),
    "scan compiled": lambda j, jnp: j.jit(lambda y: j.lax.scan(lambda c, x: (c / x, c), 0.0, y))(jnp.zeros(2)),
    "cond": lambda j, jnp: j.lax.cond(True, jnp.log, jnp.sin, -1.0),
    "while": lambda j, jnp: j.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] / 0.0), (0, 0.0)),
    "integers": lambda j, jnp: jnp.arange(3) // 0,
    "infinite": lambda j, jnp: 1 / jnp.zeros(1),
    "infinite compiled": lambda j, jnp: j.jit(lambda x: jnp.exp(x) + 1)(1e4),
    "numbers of Python's": lambda j, jnp: j.jit(lambda x: x / x)(0.0),
    "half": lambda j, jnp: jnp.log(jnp.full(2, -1, jnp.bfloat16)),
    "complex": lambda j, jnp: jnp.log(jnp.array([0j])) * 0,
    "constant": lambda j, jnp: jnp.array([1.0, np.nan]),
    "infinite constant": lambda j, jnp: jnp.asarray([-np.inf, 1.0]),
    "constant number": lambda j, jnp: jnp.float32(np.nan),
    "constant put": lambda j, jnp: j.device_put(np.array([np.nan], np.float32)),
    "constant compiled": lambda j, jnp: j.jit(lambda: jnp.array([np.nan, 1.0]))(),
    "pmap": lambda j, jnp: j.pmap(jnp.log)(-jnp.ones((1, 2))),
    "pmap of the collective": lambda j, jnp: j.pmap(lambda x: j.lax.psum(jnp.log(x), "i"), "i")(-jnp.ones((1, 2))),
    "pmap compiled": lambda j, jnp: j.jit(lambda x: jnp.sin(j.pmap(jnp.log)(x)))(-jnp.ones((1, 2))),
    "after pmap": lambda j, jnp: j.jit(lambda x: jnp.log(j.pmap(jnp.sin)(x)))(-jnp.ones((1, 2))),
    "infinite under pmap": lambda j, jnp: j.pmap(lambda x: 1 / x)(jnp.zeros((1, 2))),
    "gradient of pmap": lambda j, jnp: j.grad(lambda x: j.pmap(jnp.sqrt)(x).sum())(-jnp.ones((1, 2))),
    "shard_map": lambda j, jnp: shard_map(j, lambda x: jnp.log(x) * 2)(-jnp.ones(2)),
    "shard_map compiled": lambda j, jnp: j.jit(shard_map(j, jnp.log))(-jnp.ones(2)),
    "callback": lambda j, jnp: j.pure_callback(lambda: np.float32(np.nan), j.ShapeDtypeStruct((), jnp.float32)),
    "callback compiled": lambda j, jnp: j.jit(lambda x: j.experimental.io_callback(
        lambda x: np.asarray(x) * np.float32(np.nan), j.ShapeDtypeStruct((2,), jnp.float32), x))(jnp.ones(2)),
    "constant not reached": lambda j, jnp: j.jit(lambda x: jnp.isnan(jnp.array([np.nan, 1.0])) * x)(2.0),
}


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize("flag", ["debug_nans", "debug_infs"])
def test_invalid_values_are_found(flag, name):
    """Where JAX stops with the name of an operation, so do we."""

    def outcome(package):
        with getattr(package, flag)(True):
            try:
                return [np.asarray(x) for x in package.tree_util.tree_leaves(INVALID[name](package, package.numpy))]
            except ArithmeticError as error:
                return f"{type(error).__name__}: {error}"

    expected, got = outcome(jax), outcome(styrax)
    if isinstance(expected, str):
        assert got == expected
    else:
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a.astype(np.complex64), b.astype(np.complex64))


def test_the_line_of_an_invalid_value_in_a_compiled_function_is_told():
    def f(x):
        y = styrax.numpy.log(x)  # here
        return y * 2

    line = f.__code__.co_firstlineno + 1
    with styrax.debug_nans(True), pytest.raises(FloatingPointError) as error:
        styrax.jit(f)(-1.0)
    assert (__file__, line) in [(f.filename, f.lineno) for f in traceback.extract_tb(error.value.__traceback__)]
    assert np.isnan(styrax.jit(f)(-1.0))


@pytest.mark.parametrize("f, args", [
    (lambda: float("nan"), ()),
    (lambda x: x, (np.nan,)),
    (lambda x: x * 3.0, (np.nan,)),
    (lambda x: x * 3.0, (np.array([np.nan], np.float32),)),
    (lambda x: (x + np.nan) * 2.0, (1.0,)),
], ids=["constant", "argument", "number", "array of NumPy", "sum of numbers"])
def test_a_value_that_no_operation_gives_is_told_of_the_whole_function(f, args):
    """Run as it is written, the function computes with Python's or NumPy's numbers, which nobody watches."""
    for package in (jax, styrax):
        for words in ("the de-optimized function did not .*input", "the de-optimized function did not .*literals"):
            with package.debug_nans(True), pytest.raises(FloatingPointError, match=words):
                package.jit(f)(*args)


def test_an_invalid_constant_of_numpy_is_found():
    """JAX calls the operation by a name of its own."""
    for package in (jax, styrax):
        with package.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in"):
            package.numpy.array(np.array([np.nan], np.float32))
