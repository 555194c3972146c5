"""What custom rules give that no mapped operand enters is the same for all examples: `vmap` knows, as JAX's does."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import styrax
import styrax.numpy

EXAMPLES = np.arange(1, 4, dtype=np.float32)


def with_vjp(package: Any) -> Any:
    """Two results, one of each operand."""
    f = package.custom_vjp(lambda a, b: (a * 2, b * 3))
    f.defvjp(lambda a, b: (f(a, b), None), lambda _, cts: (cts[0] * 2, cts[1] * 3))
    return f


def with_jvp(package: Any) -> Any:
    f = package.custom_jvp(lambda a, b: (a * 2, b * 3))
    f.defjvp(lambda primals, tangents: (f(*primals), (tangents[0] * 2, tangents[1] * 3)))
    return f


def least(package: Any, f: Any) -> Any:
    """Of collectives without derivatives, and of what is computed before them."""
    def example(a: Any, b: Any) -> Any:
        first, second = f(a, b)
        return package.lax.pmin(package.numpy.sin(first) + 1, "i") * second + package.lax.pmax(first, "i")

    return lambda a, b: package.vmap(example, in_axes=(None, 0), axis_name="i")(a, b).sum()


def unmapped(package: Any, f: Any) -> Any:
    def example(a: Any, b: Any) -> Any:
        first, second = f(a, b)
        return first + 1, second

    def total(a: Any, b: Any) -> Any:
        first, second = package.vmap(example, in_axes=(None, 0), out_axes=(None, 0))(a, b)
        assert first.shape == ()
        return first * second.sum()

    return total


def permuted(package: Any, f: Any) -> Any:
    """A permutation of equals changes nothing."""
    def example(a: Any, b: Any) -> Any:
        return package.lax.pmin(package.lax.pshuffle(a, "i", [2, 0, 1]), "i") * f(a, b)[1]

    return lambda a, b: package.vmap(example, in_axes=(None, 0), axis_name="i")(a, b).sum()


def among_jacobians(package: Any, f: Any) -> Any:
    def example(a: Any, b: Any) -> Any:
        return package.jacfwd(lambda c: package.lax.pmin(f(package.lax.pshuffle(a, "i", [2, 1, 0]), a)[0], "i") * c)(b)

    return lambda a, b: package.vmap(example, in_axes=(None, 0), axis_name="i")(a, b).sum()


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("rule", [with_vjp, with_jvp])
@pytest.mark.parametrize("program", [least, unmapped, permuted, among_jacobians])
def test_as_jax(program: Any, rule: Any, jitted: bool):
    found = []
    for package in (styrax, jax):
        f = package.value_and_grad(program(package, rule(package)), (0, 1))
        found.append((package.jit(f) if jitted else f)(package.numpy.float32(0.5), package.numpy.asarray(EXAMPLES)))
    (value, slopes), (expected, expected_slopes) = found
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for slope, wanted in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, wanted, rtol=1e-6)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_each_cotangent_reaches_the_rule(jitted: bool):
    """A slope that is not the function's own: every example has that of its own result."""
    f = styrax.custom_vjp(lambda a, b: a * 1)
    f.defvjp(lambda a, b: (a * 1, b), lambda b, ct: (ct, ct * b))

    def total(b: Any) -> Any:
        return (styrax.vmap(lambda b: f(2.0, b))(b) * EXAMPLES).sum()

    slope = styrax.grad(styrax.jit(total) if jitted else total)(EXAMPLES)
    np.testing.assert_array_equal(slope, [x * x for x in EXAMPLES])


def test_no_examples():
    f = with_vjp(styrax)
    none = styrax.numpy.zeros((0,))
    out = styrax.vmap(lambda b: styrax.lax.psum(f(2.0, b)[0], "i"), axis_name="i", out_axes=None)(none)
    assert np.shape(out) == () and float(out) == 0.0


@pytest.mark.parametrize("package", [styrax, jax])
def test_numbers_beside_perturbed_operands_tell_their_dtypes(package: Any):
    """A rule that hands an operand on untouched, through `vmap`."""
    def untouched(a: Any, c: Any) -> Any:
        scaled, number = package.vmap(lambda a, c: (a * c, c), in_axes=(0, None), out_axes=(0, None))(a, c)
        assert number.dtype == np.float32
        return scaled

    f = package.custom_vjp(untouched)
    f.defvjp(lambda a, c: (untouched(a, c), c), lambda c, ct: (ct * c, package.numpy.zeros_like(c)))
    slope = package.grad(lambda a: f(a, 0.5).sum())(package.numpy.asarray(EXAMPLES))
    np.testing.assert_array_equal(slope, np.full(3, 0.5, np.float32))


def drawn_once(package: Any, f: Any) -> Any:
    """Bits of the `rbg` generator depend on whether a key has the axis."""
    def example(b: Any) -> Any:
        first, _ = f(package.numpy.float32(1), b)
        seed = package.numpy.where(first > 0, 3, 4) + package.numpy.argmax(package.numpy.stack([first, first - 1]))
        bits = package.random.bits(package.random.key(seed, impl="rbg"), (2,))
        state = package.numpy.arange(4, dtype=np.uint32) * first.astype(np.uint32)
        return bits, package.lax.rng_bit_generator(state, (2,))[1], package.lax.pmin(bits, "i")

    return package.vmap(example, axis_name="i")


def drawn_inside(package: Any, f: Any) -> Any:
    """In programs inside, whose operand has cotangents."""
    @package.jit
    def drawn(first: Any) -> Any:
        state = package.numpy.arange(4, dtype=np.uint32) * first.astype(np.uint32)
        return first * 2, package.lax.rng_bit_generator(state, (2,))[1]

    def example(b: Any) -> Any:
        first, bits = drawn(f(package.numpy.float32(1), b)[0])
        return first, package.lax.pmin(bits, "i") <= bits

    return package.vmap(example, axis_name="i")


def chosen_once(package: Any, f: Any) -> Any:
    """Branches; the one not taken has a NaN for a slope."""
    def example(a: Any, b: Any) -> Any:
        first, second = f(a, b)
        small = package.lax.cond(first < 5, lambda x: x * 3, lambda x: package.numpy.sqrt(x - 100), second)
        branches = [package.numpy.cos, package.numpy.sin, package.numpy.exp]
        other = package.lax.switch(first.astype("int32"), branches, second)
        return small + other + package.lax.pmax(first.astype("int32"), "i")

    return lambda b: package.grad(lambda b: package.vmap(
        example, in_axes=(None, 0), axis_name="i")(package.numpy.float32(1), b).sum())(b)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("rule", [with_vjp, with_jvp])
@pytest.mark.parametrize("program", [drawn_once, drawn_inside, chosen_once])
def test_decided_once_as_jax(program: Any, rule: Any, jitted: bool):
    found = []
    for package in (styrax, jax):
        f = program(package, rule(package))
        found.append(package.tree.leaves((package.jit(f) if jitted else f)(package.numpy.asarray(EXAMPLES))))
    for value, expected in zip(*found, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_a_branch_that_all_examples_share_is_no_selection():
    f = with_jvp(styrax)

    def example(b: Any) -> Any:
        first, second = f(styrax.numpy.float32(1), b)
        return styrax.lax.cond(first < 5, lambda x: x * 3, styrax.numpy.sin, second)

    text = str(styrax.make_jaxpr(styrax.vmap(example))(EXAMPLES))
    assert "cond" in text and "select_n" not in text
