"""Which results are weakly typed: of operations, their derivatives and maps, as under JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import styrax

OPERATIONS = {
    "slice": lambda j, x: x[1:3],
    "pad": lambda j, x: j.lax.pad(x, 0.0, [(1, 1, 1)]),
    "pad with an element": lambda j, x: j.lax.pad(x, x[0], [(1, 1, 1)]),
    "pad with an array": lambda j, x: j.lax.pad(x, np.float32(2), [(1, 1, 1)]),
    "dynamic_slice": lambda j, x: j.lax.dynamic_slice(x, (2,), (3,)),
    "dynamic_update_slice": lambda j, x: j.lax.dynamic_update_slice(x, x[:2], (1,)),
    "at": lambda j, x: x.at[1].set(2.0),
    "reduce_window": lambda j, x: j.lax.reduce_window(x, 0.0, j.lax.add, (2,), (1,), "VALID"),
    "cumsum": lambda j, x: j.lax.cumsum(x),
    "cummax": lambda j, x: j.lax.cummax(x),
    "concatenate": lambda j, x: j.lax.concatenate([x, x], 0),
    "gather": lambda j, x: x[j.numpy.array([1, 2])],
    "rev": lambda j, x: j.lax.rev(x, (0,)),
    "select": lambda j, x: j.lax.select(x > 0, x, x),
    "sort": lambda j, x: j.lax.sort(x),
    "split": lambda j, x: j.lax.split(x, (2, 4))[0],
    "roll": lambda j, x: j.numpy.roll(x, 1),
    "numpy.pad": lambda j, x: j.numpy.pad(x, 1),
    "convolve": lambda j, x: j.numpy.convolve(x, x),
    "where": lambda j, x: j.numpy.where(x > 0, x, 1.0),
    "take": lambda j, x: j.numpy.take(x, 1),
    "diff": lambda j, x: j.numpy.diff(x),
    "turned": lambda j, x: x.reshape(2, 3).T,
}
WAYS = {
    "plain": lambda j, f, x: f(x),
    "jit": lambda j, f, x: j.jit(f)(x),
    "jvp": lambda j, f, x: j.jvp(f, (x,), (x,))[1],
    "vjp": lambda j, f, x: j.vjp(f, x)[1](f(x))[0],
    "linearize": lambda j, f, x: j.linearize(f, x)[1](x),
    "vmap": lambda j, f, x: j.vmap(f)(j.lax.full_like(x, 1.0, shape=(3, 6))),
}


def weak(j, shape):
    return j.lax.full_like(j.numpy.asarray(2.0), 1.0, shape=shape)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_of_weak_operands(name, way):
    ours, theirs = (WAYS[way](j, lambda x, j=j: OPERATIONS[name](j, x), weak(j, (6,))).weak_type
                    for j in (styrax, jax))
    assert ours == theirs


VALUES = {
    "number": lambda j: 0.5,
    "NumPy": lambda j: np.float32(0.5),
    "weak": lambda j: j.numpy.asarray(0.5),
    "strong": lambda j: j.numpy.float32(0.5),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("operand", VALUES)
def test_of_a_padding(operand, value):
    def found(j):
        x, v = VALUES[operand](j), VALUES[value](j)
        pad = lambda x, v: j.lax.pad(x, v, ())
        many = lambda v: j.numpy.broadcast_to(v, (2,))
        return [pad(x, v).weak_type, j.jit(pad)(x, v).weak_type, j.vmap(pad, (0, None))(many(x), v).weak_type,
                j.vmap(pad, (None, 0))(x, many(v)).weak_type]

    assert found(styrax) == found(jax)


@pytest.mark.parametrize("name", ["psum", "pmax", "pmin", "pmean"])
@pytest.mark.parametrize("value", VALUES)
def test_of_collectives(name, value):
    """Of what is mapped, what is not, and what the program has."""
    def found(j):
        v, zeros = VALUES[value](j), j.numpy.zeros(2)
        collective = lambda x: getattr(j.lax, name)(x, "i")
        inside = j.vmap(lambda a: collective(v), axis_name="i", axis_size=2)
        beside = j.vmap(lambda a, b: collective(a), in_axes=(None, 0), axis_name="i")
        mapped = j.vmap(collective, axis_name="i")
        return [inside(zeros).weak_type, beside(v, zeros).weak_type,
                mapped(j.numpy.broadcast_to(v, (2,))).weak_type]

    assert found(styrax) == found(jax)


CHOSEN = {
    "a number": lambda j, x: 0.35,
    "the operand": lambda j, x: x,
    "a product": lambda j, x: 0.35 * x,
    "a constant": lambda j, x: j.lax.stop_gradient(x),
    "an array": lambda j, x: np.float32(2),
}


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("second", CHOSEN)
@pytest.mark.parametrize("first", CHOSEN)
def test_slopes_of_switches(first: str, second: str, strong: bool) -> None:
    """The tangent is as weak as the first branch's, be it of zeros."""

    def types(j):
        x = j.numpy.float32(0) if strong else j.numpy.asarray(0.5)
        f = lambda v: j.lax.switch(1, [lambda v, k=k: CHOSEN[k](j, v) for k in (first, second)], v)
        slopes = [j.linearize(f, x)[1](x), j.linearize(j.jit(f), x)[1](x), *j.jvp(f, (x,), (x,))]
        return [(y.dtype, y.weak_type) for y in slopes]

    assert types(styrax) == types(jax)


SMOOTH = {
    "pow": lambda j, x, y: j.lax.pow(x, y),
    "product": lambda j, x, y: x * y,
    "quotient": lambda j, x, y: x / y,
    "sin": lambda j, x, y: j.numpy.sin(x),
    "dot": lambda j, x, y: j.numpy.dot(j.numpy.stack([x, y]), j.numpy.stack([y, x])),
    "matmul": lambda j, x, y: (j.numpy.stack([x, y])[None] @ j.numpy.stack([y, x])[:, None])[0, 0],
    "scan": lambda j, x, y: j.lax.scan(lambda c, _: (c * y, c), x, None, length=2)[0],
    "max": lambda j, x, y: j.numpy.maximum(x, y),
    "logaddexp": lambda j, x, y: j.numpy.logaddexp(x, y),
}
SLOPES = {
    "jacfwd": lambda j, f: j.jacfwd(f, (0, 1)),
    "jacrev": lambda j, f: j.jacrev(f, (0, 1)),
    "jvp": lambda j, f: lambda x, y: j.jvp(f, (x, y), (x, y)),
    "vjp": lambda j, f: lambda x, y: j.vjp(f, x, y)[1](f(x, y)),
}


@pytest.mark.parametrize("inner", SLOPES)
@pytest.mark.parametrize("outer", SLOPES)
@pytest.mark.parametrize("name", SMOOTH)
def test_second_slopes_in_weak_scalars(name: str, outer: str, inner: str) -> None:
    def types(j):
        f = SLOPES[outer](j, SLOPES[inner](j, lambda x, y: SMOOTH[name](j, x, y)))
        return [y.weak_type for y in j.tree.leaves(j.jit(f)(j.numpy.asarray(0.34), j.numpy.asarray(0.6)))]

    assert types(styrax) == types(jax)
