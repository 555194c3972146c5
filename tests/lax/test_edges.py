"""`lax` at the edges, against JAX: starts beyond the index dtype, integers, solvers that close over traced values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, assert_same_outcome, jax, styrax

STARTS = [2**31, 2**31 + 1, 2**32 + 1, -2**31 - 1, -2**31 - 7, 2**62, 2**63, np.int64(2**31), np.int64(2**32 + 1),
          np.int64(-2**31 - 7), np.uint32(2**31), np.uint64(2**32 + 1)]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("start", STARTS, ids=repr)
def test_starts_beyond_the_index_dtype_wrap_around(start, x64):
    def program(jax):
        lax, jnp = jax.lax, jax.numpy
        x = jnp.arange(5, dtype="int32")
        found = [lax.dynamic_slice(x, (start,), (2,)), lax.dynamic_slice_in_dim(x, start, 2),
                 lax.dynamic_update_slice(x, x[:1] + 9, (start,)),
                 jax.vmap(lambda x: lax.dynamic_slice(x, (start,), (2,)))(jnp.stack([x, x + 1]))]
        if not isinstance(start, np.unsignedinteger):
            found.append(lax.dynamic_slice(x.reshape(5, 1), (start, 0), (1, 1)))
        return found

    with jax.enable_x64(x64), styrax.enable_x64(x64):
        assert_same(program)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bool"])
def test_cumulative_log_sum_exps_are_described_for_integers(dtype):
    x = f"np.arange(4).astype({dtype!r})"
    assert_same_outcome(f"jax.eval_shape(lax.cumlogsumexp, {x}).dtype.name")
    assert_same_outcome(f"jax.make_jaxpr(lax.cumlogsumexp)({x}).eqns[0].primitive.name")
    for call in ("lax.cumlogsumexp", "jax.jit(lax.cumlogsumexp)", "jax.vmap(lax.cumlogsumexp)"):
        argument = f"{x}.reshape(2, 2)" if "vmap" in call else x
        assert_same_outcome(f"{call}({argument})")


def root(jax, a, b):
    jnp, lax, linalg = jax.numpy, jax.lax, jax.scipy.linalg
    factors = linalg.cho_factor(a @ a.T)
    solve = lambda _, y: linalg.cho_solve(factors, y)
    return lax.custom_root(lambda x: a @ a.T @ x - b, b, lambda f, x: (solve(f, b), {"steps": jnp.float32(3)}),
                           lambda g, y: lax.custom_linear_solve(g, y, solve, symmetric=True), has_aux=True)


DERIVATIVES = {
    "value": lambda jax, f: f,
    "jitted": lambda jax, f: jax.jit(f),
    "forward": lambda jax, f: jax.jacfwd(f, (0, 1)),
    "reverse": lambda jax, f: jax.jacrev(lambda a, b: f(a, b)[0], (0, 1)),
    "second": lambda jax, f: jax.hessian(lambda a, b: f(a, b)[0].sum()),
    "batched": lambda jax, f: lambda a, b: jax.vmap(jax.jacrev(lambda a: f(a, b)[0]))(jax.numpy.stack([a, a + 1])),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_roots_whose_linear_solver_closes_over_what_is_differentiated(name):
    a, b = np.array([[2, 0.3], [0.3, 1]], np.float32), np.array([1, 2], np.float32)
    assert_same(lambda jax: DERIVATIVES[name](jax, lambda a, b: root(jax, a, b))(a, b), rtol=1e-4, atol=1e-4)


def test_the_tree_of_a_tangent_solution_is_checked():
    for package in (jax, styrax):
        with pytest.raises(TypeError, match=r"tangent_solve\(\) output pytree"):
            package.lax.custom_root(lambda y: 1.0 - y, 0.0, lambda f, x: x, lambda f, x: (x, x))


def test_eigenvectors_of_complex_tridiagonal_matrices():
    rng = np.random.RandomState(0)
    d, e = rng.rand(4).astype(np.complex64), (rng.rand(3) + 1j * rng.rand(3)).astype(np.complex64)
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    for package in (jax, styrax):
        w, v = package.scipy.linalg.eigh_tridiagonal(d, e)
        np.testing.assert_allclose(matrix @ v, v * w, atol=1e-5)
        np.testing.assert_allclose(np.conj(v).T @ v, np.eye(4), atol=1e-5)


BRANCHES = {
    "strong and weak": lambda x: [lambda: x, lambda: 1],
    "weak and strong": lambda x: [lambda: 1, lambda: x],
    "both ways": lambda x: [lambda: (x, 1), lambda: (1, x)],
    "floats": lambda x: [lambda: x * 1.0, lambda: 1.0],
    "weak": lambda x: [lambda: 1, lambda: 2],
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_weak_types_of_branches_are_those_of_the_first(name, dtype):
    def program(jax):
        branches = BRANCHES[name](jax.numpy.array(2, dtype))
        if dtype == "float32":
            branches = [lambda f=f: jax.tree.map(lambda y: y * 1.0, f()) for f in branches]
        calls = [lambda k: jax.lax.switch(k, branches), lambda k: jax.lax.cond(k > 0, *branches)]
        found = [[f(0), f(1), jax.jit(f)(1), jax.vmap(f)(jax.numpy.arange(2))] for f in calls]
        return [found, [bool(x.aval.weak_type) for x in jax.tree.leaves(found)]]

    assert_same(program)
