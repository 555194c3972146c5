"""JAX's FAQ: buffer donation."""

from __future__ import annotations

import jax
import pytest

import styrax
from tests.documents.sessions import JAX, OURS, Session, errors, play
from tests.documents.test_faq_jit import IMPORTS

ADD = """
from typing import List
from jax import Array

def add(x, y):
  return x + y

x = jax.device_put(np.ones((2, 3)))
y = jax.device_put(np.ones((2, 3)))
"""


def test_the_result_takes_the_donated_memory():
    session, ran = play(IMPORTS + ADD, """
# Execute `add` with donation of the buffer for `y`. The result has
# the same shape and type as `y`, so it will share its buffer.
z = jax.jit(add, donate_argnums=(1,))(x, y)
z
""", "print(x.is_deleted(), y.is_deleted(), z.is_deleted())")
    assert ran[2].output == "False True False\n"
    assert not ran[1].warnings


@pytest.mark.parametrize("look", ["y", "print(y)", "y.tolist()"])
def test_the_memory_is_the_same(look):
    session = Session(OURS)
    session.run(IMPORTS + ADD)
    session.run(look)
    before = session.run("y.unsafe_buffer_pointer()").value
    cell = "jax.jit(lambda y: y.at[0].add(1.), donate_argnums=0)(y).unsafe_buffer_pointer()"
    assert session.run(cell).value == before


def test_all_arrays_of_a_donated_tree():
    _, ran = play(IMPORTS + ADD, """
def add_ones(xs: List[Array]):
  return [x + 1 for x in xs]

xs = [jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((3, 4)))]
# Execute `add_ones` with donation of all the buffers for `xs`.
# The outputs have the same shape and type as the elements of `xs`,
# so they will share those buffers.
z = jax.jit(add_ones, donate_argnums=0)(xs)
z
""", "print([x.is_deleted() for x in xs])")
    assert ran[2].output == "[True, True]\n"


@pytest.mark.parametrize("use", ["w = y + 1", "np.asarray(y)", "jax.jit(add)(x, y)", "jax.grad(lambda y: y.sum())(y)"])
def test_a_donated_array_is_gone(use):
    jax.clear_caches()  # what JAX has compiled already says so in words of its runtime
    ours, theirs = errors(IMPORTS + ADD, "z = jax.jit(add, donate_argnums=(1,))(x, y)", use)
    assert isinstance(ours, RuntimeError)
    for error in ours, theirs:
        assert "Array has been deleted with shape=float32[2,3]" in str(error)


def warnings_of(cell: str) -> list[str]:
    """Our warnings about unusable donations; JAX gives as many, for the same arrays."""
    found = []
    for package in OURS, JAX:
        session = Session(package)
        session.run(IMPORTS + ADD)
        ran = session.run(cell)
        found.append((ran.warned("Some donated buffers were not usable"), ran.text))
    (ours, text), (theirs, expected) = found
    assert text == expected
    assert [w.partition("usable: ")[2].partition("]")[0] for w in ours] == [
        w.partition("usable: ")[2].partition("]")[0] for w in theirs]
    return ours


def test_more_donations_than_results():
    warning, = warnings_of("""
# Execute `add` with donation of the buffers for both `x` and `y`.
# One of those buffers will be used for the result, but the other will
# not be used.
z = jax.jit(add, donate_argnums=(0, 1))(x, y)
print(x.is_deleted(), y.is_deleted())
""")
    assert "float32[2,3]" in warning and "argument y" in warning and "add at" in warning


def test_donation_that_fits_no_result():
    warning, = warnings_of("""
y = jax.device_put(np.ones((1, 3)))  # `y` has different shape than the output
# Execute `add` with donation of the buffer for `y`.
z = jax.jit(add, donate_argnums=(1,))(x, y)
print(x.is_deleted(), y.is_deleted())
""")
    assert "float32[1,3]" in warning


def test_the_warning_stands_at_the_users_line_and_comes_once():
    session = Session(OURS)
    session.run(IMPORTS + ADD)
    ran = session.run("""
f = jax.jit(add, donate_argnums=(0, 1))
for _ in range(3):
  f(jnp.ones((2, 3)), jnp.ones((2, 3)))
""")
    warning, = [w for w in ran.warnings if "donated" in str(w.message)]
    assert warning.filename.startswith("/documents/cell") and warning.lineno == 4
    assert warning.category is UserWarning


@pytest.mark.parametrize("cell", [
    "z = jax.jit(lambda y: y.reshape(3, 2), donate_argnums=0)(y)",
    "z = jax.jit(lambda y: y.astype(int), donate_argnums=0)(y)",
    "z = jax.jit(lambda y: y[:1], donate_argnums=0)(y)",
    "z = jax.jit(lambda x, y: x, donate_argnums=(0, 1))(x, y)",
    "z = jax.jit(lambda x, y: (y, x), donate_argnums=(0, 1))(x, y)",
    "z = jax.jit(add, donate_argnums=(1,))(x=x, y=y)",
    "z = jax.jit(add, donate_argnames='y')(x, y)",
    "z = jax.jit(add, donate_argnames='y')(x, y=y)",
    "z = jax.jit(add, donate_argnums=(0, 1)).lower(x, y).compile()(x, y)",
    "z = jax.jit(lambda x: jax.jit(add, donate_argnums=1)(x, x))(x)",
    "z = jax.grad(lambda x: jax.jit(add, donate_argnums=1)(x, y).sum())(x)",
    "z = jax.jit(lambda x: x, donate_argnums=0)(x)",
    "v = np.asarray(y); z = jax.jit(add, donate_argnums=1)(x, y); print(v.sum())",
])
def test_which_arrays_are_deleted(cell):
    warnings_of(cell + "\nprint(z)\nprint(x.is_deleted(), y.is_deleted())")


@pytest.mark.parametrize("nums", ["(0,)", "(0, 1)"])
def test_one_array_passed_twice(nums):
    ours, theirs = errors(IMPORTS + ADD, f"jax.jit(add, donate_argnums={nums})(x, x)")
    assert isinstance(ours, styrax.errors.JaxRuntimeError)
    assert "donate" in str(ours) and "argument x and argument y" in str(ours)
