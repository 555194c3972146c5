"""Operations that are compiled once for all shapes, and what keeps them from it."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.dims import Dim, NotGeneric, Recorder
from styrax.cpu.client import backend
from styrax.numpy.indexing import _static_slice
from styrax.transforms.jit import jit_for_all_shapes


def primitive(name: str, lowering) -> Primitive:
    p = Primitive(name)
    p.def_abstract_eval(lambda x: x)
    rules.loops[p] = lowering
    return p


def test_a_fault_of_a_rule_is_not_hidden():
    def lowering(b, x):
        if not all(isinstance(d, int) for d in x.shape):
            raise ValueError("fault of the rule")
        return x

    p = primitive("faulty", lowering)
    for _ in range(2):
        with pytest.raises(ValueError, match="fault of the rule"):
            p.bind(jnp.ones(5))


@pytest.mark.parametrize("ask", [range, lambda d: d < 3, lambda d: min(d, 3)])
def test_a_rule_may_need_plain_integers(ask):
    def lowering(b, x):
        ask(x.shape[0])
        return b.value(x.shape, x.dtype, lambda i: b.neg(x.at(i)))

    p = primitive("plain", lowering)
    for n in (5, 7):
        np.testing.assert_array_equal(p.bind(jnp.ones(n)), -np.ones(n))


def test_sizes_as_keys_and_elements():
    n = Recorder([5]).symbol(0)
    assert type(n) is Dim and repr(n) == "5" and divmod(7, n) == (1, 2)
    with pytest.raises(NotGeneric):
        hash(n)
    with pytest.raises(NotGeneric):
        jnp.asarray(n)
    with pytest.raises(NotGeneric):
        lax.full_like(jnp.ones(3), n)


@pytest.mark.parametrize("shape", [(5,), (8, 3)])
def test_messages_name_the_sizes_of_the_call(shape):
    with pytest.raises(TypeError, match=str(shape[0])) as caught:
        lax.add(jnp.ones(shape), jnp.ones((shape[0] + 4, *shape[1:])))
    assert "n0" not in str(caught.value)


@pytest.mark.parametrize("index", [
    slice(1, None), slice(None, -1), slice(-1, None), slice(None, None, -1), slice(-3, 100), slice(None, None, 3),
    slice(None, 1, -2), slice(10, 2), slice(-100, 2, 2)])
def test_slices_of_generic_sizes(index):
    @jax.jit
    def f(x):
        return x[index]

    for n in (2, 3, 5, 6, 7, 40):
        x = np.arange(n)
        recorder = Recorder([n])
        entry = _static_slice(index, recorder.symbol(0), 0)
        plain = _static_slice(index, n, 0)
        assert entry.length == plain.length
        if plain.length:
            assert (entry.start, entry.step) == (plain.start, plain.step)
        np.testing.assert_array_equal(f(x), x[index])


def test_differences_are_compiled_once():
    jnp.diff(jnp.arange(9.0))
    before = backend.eager.compiled
    for n in (11, 14, 33):
        np.testing.assert_array_equal(jnp.diff(jnp.arange(float(n)) ** 2), np.diff(np.arange(float(n)) ** 2))
    # what remains to be compiled are arange and power for the first of these sizes
    assert backend.eager.compiled <= before + 2


def test_sizes_times_floats_are_numbers():
    recorder = Recorder([6])
    n = recorder.symbol(0)
    assert (0.5 * n, n * 0.5, n + 0.5, 0.5 + n, n - 0.5, 0.5 - n) == (3.0, 3.0, 6.5, 6.5, 5.5, -5.5)
    assert not recorder.admits([7]), "a size that became a number is fixed"


@pytest.mark.parametrize("program", [
    lambda x, y: jnp.multiply(x[1:], y),
    lambda x, y: lax.mul(x[1:], y[..., 1:]),
    lambda x, y: jnp.where(x[1:] > 0, y, x[1:]),
    lambda x, y: jnp.broadcast_to(x[1:], y.shape),
    lambda x, y: jnp.matmul(x[1:, None, None], y[..., None, None]),
    lambda x, y: jnp.take(x[2:], jnp.arange(0), axis=0) if x.shape[0] == 2 else x[2:],
    lambda x, y: x[: x.shape[0] // 2] + y,
])
def test_computed_sizes_of_zero_and_one_are_plain(program):
    generic = jit_for_all_shapes(program)
    for n, m in ((2, 3), (4, 3), (2, 2), (5, 4), (2, 5), (3, 3)):
        x, y = jnp.arange(n) + 1.0, jnp.arange(m) * 2.0
        try:
            wanted = jax.jit(program)(x, y)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                generic(x, y)
        else:
            np.testing.assert_array_equal(generic(x, y), wanted)
