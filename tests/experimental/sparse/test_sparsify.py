"""`sparsify`: operators, control flow and both ways to run a function, beside JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.experimental import sparse
from styrax.experimental.sparse import transform

from .libraries import bcoo, compare, with_zeros

A, V = with_zeros((4, 4)), np.linspace(-1, 1, 4).astype(np.float32)


def other(lib, m):
    """The same array, whose positions are not known to be."""
    return lib.sparse.BCOO((m.data, m.indices + 0), shape=m.shape)


OPERATORS = {
    "neg": lambda lib, m: -m, "pos": lambda lib, m: +m, "abs": lambda lib, m: abs(m), "mul": lambda lib, m: 2 * m * V,
    "div": lambda lib, m: m / 2 / (V + 2), "div by": lambda lib, m: 2 / m, "add": lambda lib, m: m + other(lib, m),
    "sub": lambda lib, m: m - other(lib, m), "add dense": lambda lib, m: m + A,
    "dense add": lambda lib, m: lib.np.asarray(A) + m,
    "add number": lambda lib, m: m + 1, "sub dense": lambda lib, m: m - A, "pow": lambda lib, m: m ** 3,
    "no pow": lambda lib, m: m ** -1, "float pow": lambda lib, m: m ** 0.5, "eq": lambda lib, m: m == m,
    "lt": lambda lib, m: m < m, "matmul": lambda lib, m: m @ V, "rmatmul": lambda lib, m: lib.np.asarray(V) @ m,
    "sparse matmul": lambda lib, m: m @ m.T, "mul sparse": lambda lib, m: m * other(lib, m),
    "matmul of wrong shape": lambda lib, m: m @ V[:3], "int": lambda lib, m: m[1], "slice": lambda lib, m: m[1:, ::2],
    "reversed": lambda lib, m: m[::-1], "array index": lambda lib, m: m[lib.np.array([0, 3])],
    "traced index": lambda lib, m: m[lib.np.argmax(V)], "none": lambda lib, m: m[:, 1:2].reshape(4),
    "ellipsis": lambda lib, m: m[..., -1], "empty": lambda lib, m: m[0:0], "iteration": lambda lib, m: list(m),
    "sum": lambda lib, m: m.sum(1), "reshape": lambda lib, m: m.reshape(2, 8),
    "astype": lambda lib, m: m.astype("int8"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    compare(OPERATORS[name], bcoo(A))


FUNCTIONS = {
    "zero at zero": lambda lib, m: (lib.np.sin(m) + lib.np.tanh(m) - lib.np.expm1(m)) @ V,
    "densifying": lambda lib, m: lib.np.cos(m), "no rule": lambda lib, m: lib.lax.complex(m, m),
    "product": lambda lib, m: -lib.np.sin(3 * m).T @ (V + 1), "jit": lambda lib, m: lib.jax.jit(lambda x: 2 * x)(m),
    "nested": lambda lib, m: lib.jax.jit(lambda x: lib.jax.jit(lambda y: y @ V)(x) + 1)(m),
    "stack": lambda lib, m: lib.np.stack([m, m], 1), "hstack": lambda lib, m: lib.np.hstack([m, m]),
    "vstack": lambda lib, m: lib.np.vstack([m, m[0]]), "todense": lambda lib, m: lib.sparse.todense(m) + 1,
    "while": lambda lib, m: lib.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, m)),
    "fori": lambda lib, m: lib.lax.fori_loop(0, 3, lambda i, v: m @ v / 4, lib.np.asarray(V)),
    "scan": lambda lib, m: lib.lax.scan(lambda c, _: (c @ m, None), lib.np.asarray(V), None, length=3)[0],
    "cond": lambda lib, m: lib.lax.cond(m.sum() > 0, lambda x: x, lambda x: 2 * x, m),
    "mismatch": lambda lib, m: lib.lax.cond(True, lambda x: x, lambda x: lib.sparse.todense(x), m),
    "grad inside": lambda lib, m: lib.jax.grad(lambda x: lib.np.sum(x ** 2))(m),
    "where": lambda lib, m: lib.np.where(V > 0, m, m),
    "convolve": lambda lib, m: lib.np.convolve(m[0], V),
}


@pytest.mark.parametrize("use_tracer", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, use_tracer):
    compare(lambda lib, m: lib.sparse.sparsify(lambda x: FUNCTIONS[name](lib, x), use_tracer)(m), bcoo(A))


@pytest.mark.parametrize("use_tracer", [False, True])
def test_custom_derivatives(use_tracer):
    square = jax.custom_jvp(lambda x: x ** 2)
    square.defjvp(lambda p, t: (p[0] ** 2, 2 * t[0] * p[0]))
    cube = jax.custom_vjp(lambda x: x ** 3)
    cube.defvjp(lambda x: (x ** 3, x), lambda x, g: (3 * g * x ** 2,))
    mat = sparse.BCOO.fromdense(A)
    for fun, power in ((square, 2), (cube, 3)):
        np.testing.assert_array_equal(sparse.sparsify(fun, use_tracer)(mat).todense(), A ** power)
    slope = sparse.sparsify(jax.grad(lambda x: square(x).sum()), use_tracer)(mat)
    np.testing.assert_array_equal(slope.todense(), 2 * A)


def test_scan_over_and_into_sparse_arrays():
    cube = with_zeros((3, 4, 4))
    mat = sparse.BCOO.fromdense(cube, n_batch=1)
    f = lambda xs: lax.scan(lambda c, x: (c + x @ V, 2 * x), jnp.zeros(4), xs)
    for wrap in (lambda g: g, jax.jit):
        total, ys = wrap(sparse.sparsify(f))(mat)
        np.testing.assert_allclose(total, (cube @ V).sum(0), rtol=1e-5)
        assert (ys.shape, ys.n_batch) == (cube.shape, 1)
        np.testing.assert_array_equal(ys.todense(), 2 * cube)


def test_derivatives_and_batches_outside():
    mat = sparse.BCOO.fromdense(A)
    f = sparse.sparsify(lambda m, v: jnp.sin(m) @ v)
    got = jax.jit(jax.vmap(jax.grad(lambda v: f(mat, v).sum())))(np.stack([V, 2 * V]))
    np.testing.assert_allclose(got, np.stack([np.sin(A).sum(0)] * 2), rtol=1e-5, atol=1e-6)


def test_shared_positions():
    mat = sparse.BCOO.fromdense(A)
    out = sparse.sparsify(lambda m: 2 * m + m * 3 - m)(mat)
    assert out.nse == mat.nse
    np.testing.assert_array_equal(out.todense(), 4 * A)
    env = transform.SparsifyEnv([mat.indices, mat.data, 2 * mat.data])
    values = [env.sparse(mat.shape, data_ref=i, indices_ref=0) for i in (1, 2)]
    outs, _ = transform.sparsify_raw(lambda x, y: x + y)(env, *values)
    total, = transform.spvalues_to_arrays(env, outs)
    assert total.nse == mat.nse
    np.testing.assert_array_equal(total.todense(), 3 * A)


def test_kinds_of_values():
    env = transform.SparsifyEnv()
    values = transform.arrays_to_spvalues(env, (V, sparse.BCOO.fromdense(A), sparse.BCSR.fromdense(A)))
    assert [(v.is_dense(), v.is_bcoo(), v.is_bcsr()) for v in values] == [
        (True, False, False), (False, True, False), (False, False, True)]
    assert [a.shape for a in transform.spvalues_to_avals(env, values)] == [(4,), (4, 4), (4, 4)]
    assert len(env._buffers) == 6
    seen = []
    sparse.sparsify(seen.append, use_tracer=True)(V)
    assert isinstance(seen[0], sparse.SparseTracer) and "SparseTracer" in repr(seen[0])
