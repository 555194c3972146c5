"""What a traced function closes over: a constant of its program, or a literal in its equations, as in JAX."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from tests.transforms.oracle import assert_same, assert_same_text, vector

OUTSIDE = {
    "array": lambda jax: jax.numpy.float32(2.0),
    "weak array": lambda jax: jax.numpy.asarray(2.0),
    "bfloat16 array": lambda jax: jax.numpy.bfloat16(2.0),
    "complex array": lambda jax: jax.numpy.complex64(1 + 2j),
    "integer array": lambda jax: jax.numpy.int32(2),
    "boolean array": lambda jax: jax.numpy.bool_(True),
    "element": lambda jax: jax.numpy.ones(3)[0],
    "result": lambda jax: jax.jit(lambda: 2.0)(),
    "NumPy scalar": lambda jax: np.float32(2.0),
    "NumPy array": lambda jax: np.array(2.0, np.float32),
    "wide NumPy scalar": lambda jax: np.float64(2.0),
    "Python number": lambda jax: 2.0,
}

INSIDE = {
    "dtype": lambda jax, x: x + jax.numpy.float32(2.0),
    "asarray": lambda jax, x: x + jax.numpy.asarray(2.0),
    "array": lambda jax, x: x + jax.numpy.array(2),
    "of NumPy": lambda jax, x: x + jax.numpy.asarray(np.array(2.0)),
    "ones": lambda jax, x: x + jax.numpy.ones((), int),
    "full": lambda jax, x: x + jax.numpy.full((), 3),
    "conversions": lambda jax, x: x + jax.numpy.int8(3) + jax.numpy.bool_(True) + jax.numpy.float32(1.0).astype(int),
    "operations": lambda jax, x: x + jax.numpy.sin(1.0) + jax.numpy.add(1, 2),
    "power": lambda jax, x: x ** jax.numpy.int32(2),
    "result": lambda jax, x: (x, jax.numpy.float32(3), 2.0, np.float32(1), True, 3),
    "argument of jit": lambda jax, x: jax.jit(lambda y, z: y + z)(x, jax.numpy.float32(3)),
    "start of a scan": lambda jax, x: jax.lax.scan(lambda a, b: (a + b, a), jax.numpy.float32(0), x),
    "start of a reduction": lambda jax, x: jax.lax.reduce(x, jax.numpy.float32(0), jax.lax.mul, (0,)),
    "where": lambda jax, x: jax.numpy.where(x > 0, jax.numpy.float32(1), jax.numpy.inf),
}


def uses(jax, c) -> dict:
    """Functions that close over a value, in each kind of program that can be inside a program."""
    jnp, lax = jax.numpy, jax.lax

    def custom(y):
        f = jax.custom_jvp(lambda x: x * c)
        f.defjvp(lambda p, t: (p[0] * c, t[0] * c))
        return f(y)

    def custom_vjp(y):
        f = jax.custom_vjp(lambda x: x * c)
        f.defvjp(lambda x: (x * c, ()), lambda _, t: (t * c,))
        return f(y)

    return {
        "plain": lambda x: x + c,
        "twice": lambda x: x * c + c,
        "result": lambda x: c,
        "jit": lambda x: jax.jit(lambda y: y + c)(x),
        "scan": lambda x: lax.scan(lambda a, _: (a, a * c), x, None, 3),
        "cond": lambda x: lax.cond(True, lambda y: y * c, lambda y: y * c + c, x),
        "while": lambda x: lax.while_loop(lambda y: c == y, lambda y: (y, y * c)[0], x),
        "checkpoint": lambda x: jax.checkpoint(lambda y: jnp.sin(y * c))(x),
        "custom_jvp": custom,
        "custom_vjp": custom_vjp,
        "vmap": lambda x: jax.vmap(lambda y: y * c)(jnp.stack([x, x])),
    }


@pytest.mark.parametrize("value", OUTSIDE)
@pytest.mark.parametrize("use", ["plain", "twice", "result", "jit", "scan", "vmap"])
def test_values_from_outside(value, use):
    assert_same_text(lambda jax: uses(jax, OUTSIDE[value](jax))[use], np.float32(1.0))


@pytest.mark.parametrize("use", ["cond", "while", "checkpoint", "custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("value", ["array", "NumPy scalar", "Python number"])
def test_values_in_inner_programs(value, use):
    assert_same_text(lambda jax: uses(jax, OUTSIDE[value](jax))[use], np.float32(1.0))


@pytest.mark.parametrize("use", ["cond", "while", "checkpoint", "custom_jvp", "custom_vjp", "jit", "scan"])
def test_literals_of_the_program_around(use):
    """A scalar made while tracing is a literal there, and an operand of inner programs."""
    assert_same_text(lambda jax: lambda x: uses(jax, jax.numpy.float32(2.0))[use](x), np.float32(1.0))


@pytest.mark.parametrize("make", INSIDE)
def test_scalars_made_while_tracing(make):
    assert_same_text(lambda jax: lambda x: INSIDE[make](jax, x), vector)


@pytest.mark.parametrize("use", ["plain", "jit", "checkpoint", "custom_jvp"])
def test_gradients(use):
    assert_same_text(lambda jax: jax.grad(uses(jax, jax.numpy.float32(2.0))[use]), np.float32(1.0))


@pytest.mark.parametrize("use", [
    "plain", "twice", "jit", "scan", "cond", "checkpoint", "custom_jvp", "custom_vjp", "vmap"])
def test_values_of_programs(use):
    def program(jax):
        c = jax.numpy.float32(2.0)
        f = lambda x: sum(jax.numpy.sum(leaf) for leaf in jax.tree.leaves(uses(jax, c)[use](x)))
        return jax.jit(f)(3.0), jax.grad(f)(3.0), jax.jit(jax.grad(f))(3.0), jax.vmap(jax.grad(f))(jax.numpy.ones(2))

    assert_same(program)


def test_numbers_are_not_passed_to_compiled_programs():
    c = jnp.float32(2.5)
    assert "const" not in styrax.jit(lambda x: x * c).lower(jnp.ones(3)).compile().as_text()


def test_compile_time_values_are_arrays():
    @styrax.jit
    def f(x):
        with styrax.ensure_compile_time_eval():
            return x * int(jnp.float32(2) + 1)

    assert f(2.0) == 6.0


@pytest.mark.parametrize("convert", [int, bool, float, np.asarray, range])
def test_scalars_of_a_program_are_abstract(convert):
    import jax

    for package in (jax, styrax):
        with pytest.raises((package.errors.ConcretizationTypeError, package.errors.TracerArrayConversionError,
                            package.errors.TracerIntegerConversionError)):
            package.jit(lambda x, np=package.numpy: convert(np.int32(3)))(1.0)


def test_deleted_values():
    c = jnp.float32(2.0)
    f = styrax.jit(lambda x: x + c)
    c.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(1.0)
