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


COLLECTIVES = [(name, shape) for name in ("psum", "pmax", "pmin", "pmean") for shape in ((), (2,))]


@pytest.mark.parametrize(("name", "shape"), [*COLLECTIVES, ("psum_scatter", (2,))], ids=str)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("jitted", ["", "inside", "outside"])
def test_of_collectives(name, value, shape, jitted):
    """Of what is mapped, what is not, and what the program has."""
    def found(j):
        v, zeros = VALUES[value](j), j.numpy.zeros(2)
        if shape:
            v = j.numpy.broadcast_to(v, shape)
        given = dict(tiled=True) if name == "psum_scatter" else {}
        collective = lambda x: getattr(j.lax, name)(x, "i", **given)
        if jitted == "inside":
            collective = j.jit(collective)
        inside = j.vmap(lambda a: collective(v), axis_name="i", axis_size=2)
        beside = j.vmap(lambda a, b: collective(a), in_axes=(None, 0), axis_name="i")
        mapped = j.vmap(collective, axis_name="i")
        if jitted == "outside":
            inside, beside, mapped = map(j.jit, (inside, beside, mapped))
        return [inside(zeros).weak_type, beside(v, zeros).weak_type,
                mapped(j.numpy.broadcast_to(v, (2, *shape))).weak_type]

    assert found(styrax) == found(jax)


MATRICES = {
    "cholesky": lambda j, a, b: j.lax.linalg.cholesky(a),
    "eig": lambda j, a, b: j.lax.linalg.eig(a),
    "eigh": lambda j, a, b: j.lax.linalg.eigh(a),
    "numpy.eigh": lambda j, a, b: j.numpy.linalg.eigh(a),
    "schur": lambda j, a, b: j.lax.linalg.schur(a),
    "hessenberg": lambda j, a, b: j.lax.linalg.hessenberg(a),
    "tridiagonal": lambda j, a, b: j.lax.linalg.tridiagonal(a),
    "tridiagonal_solve": lambda j, a, b: j.lax.linalg.tridiagonal_solve(a[0], b[0], a[0], b),
    "lu": lambda j, a, b: j.lax.linalg.lu(a),
    "qr": lambda j, a, b: j.lax.linalg.qr(a),
    "qr with pivots": lambda j, a, b: j.lax.linalg.qr(a, pivoting=True),
    "svd": lambda j, a, b: j.lax.linalg.svd(a),
    "triangular_solve": lambda j, a, b: j.lax.linalg.triangular_solve(a, b),
    "householder_product": lambda j, a, b: j.lax.linalg.householder_product(a, b[0]),
    "symmetric_product": lambda j, a, b: j.lax.linalg.symmetric_product(a, b),
    "slogdet": lambda j, a, b: j.numpy.linalg.slogdet(a),
    "det": lambda j, a, b: j.numpy.linalg.det(a),
    "inv": lambda j, a, b: j.numpy.linalg.inv(a),
    "solve": lambda j, a, b: j.numpy.linalg.solve(a, b),
    "toeplitz": lambda j, a, b: j.scipy.linalg.toeplitz(a[0], b[0]),
    "diag of a matrix": lambda j, a, b: j.numpy.diag(a),
    "diag of a vector": lambda j, a, b: j.numpy.diag(a[0]),
    "polyval": lambda j, a, b: j.numpy.polyval(a[0], b),
    "polyadd": lambda j, a, b: j.numpy.polyadd(a, b[1:]),
    "round": lambda j, a, b: j.numpy.round(a),
    "round to decimals": lambda j, a, b: j.numpy.round(a, 1),
    "sinc": lambda j, a, b: j.numpy.sinc(a),
    "logit": lambda j, a, b: j.scipy.special.logit(a),
}

SCALARS = ["round", "round to decimals", "sinc", "logit", "rad2deg"]
MATRICES["rad2deg"] = lambda j, a, b: j.numpy.rad2deg(a)


@pytest.mark.parametrize("way", [lambda j, f, x: f(x), lambda j, f, x: j.jit(f)(x), lambda j, f, x: j.vmap(f)(x[None])])
@pytest.mark.parametrize("name", SCALARS)
def test_of_weak_scalars(name, way):
    """Beside which constants stay weak, where beside arrays they do not."""
    ours, theirs = (way(j, lambda x, j=j: MATRICES[name](j, x, None), j.numpy.asarray(0.5)).weak_type
                    for j in (styrax, jax))
    assert ours == theirs


@pytest.mark.parametrize("first", ["weak", "strong"])
@pytest.mark.parametrize("second", ["weak", "strong"])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("jitted", [False, True])
def test_of_matrices(name, jitted, first, second):
    def found(j):
        a, b = (weak(j, (2, 2)) if kind == "weak" else j.numpy.full((2, 2), 0.5, "float32") for kind in (first, second))
        f = lambda a, b: MATRICES[name](j, a, b)
        return [x.weak_type for x in j.tree.leaves((j.jit(f) if jitted else f)(a, b))]

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


MET = ["add", "divide", "arctan2", "power", "equal", "maximum", "hypot"]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("shape", [(1,), (3, 1, 3)], ids=str)
@pytest.mark.parametrize("kind", ["array", "constant"])
@pytest.mark.parametrize("name", MET)
def test_of_integers_that_meet_as_floats(name, kind, shape, jitted):
    """Unsigned 64 bits and signed integers: weakly typed floats, also where one of them is a constant."""
    def found(j):
        with j.enable_x64(True):
            other = np.ones(shape, "int32")
            f = lambda x: getattr(j.numpy, name)(x, j.numpy.asarray(other) if kind == "array" else other)
            out = (j.jit(f) if jitted else f)(j.numpy.array([2], "uint64"))
            return out.dtype, out.weak_type

    assert found(styrax) == found(jax)
