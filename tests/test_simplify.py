"""What the compiler's first stage merges, moves out of loops and drops, and what it leaves alone."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.jaxprs.cse import merge_equal
from styrax.compile.jaxprs.dead_equations import drop_unused
from styrax.compile.jaxprs.inline import inline
from styrax.compile.jaxprs.loop_invariants import move_invariants
from styrax.compile.jaxprs.row_products import multiply_rows_together
from styrax.core.programs.jaxpr import jaxprs_in_params

A = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32) / 8
V = A[0]


def count(jaxpr, name, inside_loops=False):
    """How often a primitive stands in a program, or in its loops' bodies alone."""
    total = 0
    for eqn in jaxpr.eqns:
        total += eqn.primitive.name == name and not inside_loops
        for inner in jaxprs_in_params(eqn.params):
            total += count(inner, name, inside_loops and eqn.primitive.name not in ("scan", "while"))
    return total


def simplified(f, *args):
    closed = jax.make_jaxpr(f)(*args)
    for change in (inline, move_invariants, multiply_rows_together, merge_equal, drop_unused):
        closed = change(closed)
    given = [jnp.asarray(x) for x in jax.tree.leaves(args)]
    outs = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *given)
    for got, compiled, want in zip(outs, jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(f(*args)), strict=True):
        assert got.dtype == compiled.dtype == want.dtype
        assert jnp.asarray(got).weak_type == jnp.asarray(want).weak_type
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(compiled, want, rtol=2e-5, atol=1e-6)
    return closed.jaxpr


@pytest.mark.parametrize(("f", "name"), [
    (lambda a: jnp.sin(a @ a) + jnp.cos(a @ a), "dot_general"),
    (lambda a: (jnp.sort(a, 0)[0], jnp.sort(a, 0)[1]), "sort"),
    (lambda a: jax.jit(lambda x: x @ x)(a) - jax.jit(lambda y: jnp.tanh(y @ y))(a), "dot_general"),
    (lambda a: lax.cond(a[0, 0] > 9, lambda: a @ a - a @ a, lambda: a), "dot_general"),
    (lambda a: jax.vjp(lambda x: jnp.tanh(x @ x), a)[1](jnp.tanh(a @ a))[0] * 0 + a @ a, "tanh"),
])
def test_equal_computations_are_merged(f, name):
    assert count(simplified(f, A), name) == 1


def test_different_ones_are_not():
    def f(a):
        return (a + 0.0, a + -0.0, jnp.cumsum(a, 0), jnp.cumsum(a, 1), a.astype(jnp.int32), a.astype(jnp.int8))

    jaxpr = simplified(f, -np.abs(A) * 0)
    assert count(jaxpr, "cumsum") == count(jaxpr, "add") == count(jaxpr, "convert_element_type") == 2
    zeros = jax.jit(lambda x: (x + 0.0, x + -0.0))(jnp.float32(-0.0))
    assert np.signbit(zeros).tolist() == [False, True]


def test_what_a_checkpoint_computes_again_stays():
    def layer(w, x):
        return jnp.tanh(jnp.tanh(x @ w) @ w)

    def loss(keep):
        return jax.value_and_grad(lambda w: jax.checkpoint(layer, prevent_cse=keep)(w, V).sum())

    kept, merged = (count(simplified(loss(k), A), "tanh") for k in (True, False))
    assert kept == 4
    assert merged == 2


def test_barriers_keep_computations_apart():
    assert count(simplified(lambda a: a @ a - lax.optimization_barrier(a) @ a, A), "dot_general") == 2


LOOPS = {
    "scan": lambda a, x: lax.scan(lambda c, t: (jnp.tanh(c @ (a @ a)) + t, c.sum()), x, jnp.arange(5.0)),
    "fori_loop": lambda a, x: lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ (a @ a)), x),
    "while_loop": lambda a, x: lax.while_loop(lambda c: c[0].sum() < 9, lambda c: (c[0] + 1 + 0 * c[0] @ (a @ a), a),
                                              (x, a)),
    "carried": lambda a, x: lax.fori_loop(0, 5, lambda i, c: (c[0], jnp.tanh(c[1] @ (c[0] @ c[0])), i), (a, x, 0)),
    "nested": lambda a, x: lax.fori_loop(
        0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, d: jnp.tanh(d @ (a @ a)) + i, c), x),
    "gradient": lambda a, x: jax.grad(lambda x: lax.scan(
        lambda c, _: (jnp.tanh(c @ (a @ a)), None), x, None, length=4)[0].sum())(x),
}


@pytest.mark.parametrize("name", LOOPS)
def test_invariants_leave_loops(name):
    """One product with a carry stays at each turn (and one for the way back); that of constants is computed once."""
    jaxpr = simplified(LOOPS[name], A, V)
    inside = count(jaxpr, "dot_general", inside_loops=True)
    assert inside == (2 if name == "gradient" else 1)
    assert count(jaxpr, "dot_general") - inside == 1


def test_cheap_invariants_stay_in_loops():
    jaxpr = simplified(lambda a, x: lax.fori_loop(0, 5, lambda i, c: c * (a + a[::-1]).T, x), A, A)
    assert [e.primitive.name for e in jaxpr.eqns] == ["scan"]


def test_invariant_that_may_never_end_stays_in_a_loop_that_may_never_begin():
    def f(n, x):
        def step(c):
            return c[0] + 1, c[1] + lax.while_loop(lambda y: y > 0, lambda y: y * 1.0, x)

        return lax.while_loop(lambda c: c[0] < n, step, (0, x))[1]

    assert float(jax.jit(f)(0, 1.0)) == 1.0


def test_dead_carries_are_dropped():
    def f(a, x):
        return lax.fori_loop(0, 5, lambda i, c: (c[0] + 1, c[1] @ a, jnp.sin(c[2])), (x, a, x))[::2]

    assert count(simplified(f, A, V), "dot_general") == 0


def test_vmapped_loop_with_a_fixed_carry():
    def f(a, n):
        return lax.while_loop(lambda c: c[1] < n, lambda c: (c[0], c[1] + 1, c[2] + c[0].sum()), (a, 0, 0.0))

    simplified(jax.vmap(f, (None, 0)), A, np.arange(4))
    simplified(jax.vmap(f, (0, None)), A, 3)


def test_calls_of_python_stay_at_their_turns():
    seen = []

    def host(x):
        seen.append(1)
        return np.asarray(x)

    def f(x):
        return lax.fori_loop(0, 4, lambda i, c: c + jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), x), x)

    assert float(jax.jit(f)(jnp.float32(2))) == 10
    assert len(seen) == 4


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("row", [(40,), (3, 40), (2, 3, 40)])
def test_rows_are_multiplied_at_once(row, reverse):
    xs = np.random.default_rng(1).normal(size=(7, *row)).astype(np.float32)

    def f(w, u, xs):
        return lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u), (h, x.sum())), jnp.zeros(row), xs, reverse=reverse)

    jaxpr = simplified(f, A, A.T, xs)
    assert count(jaxpr, "dot_general") == 2
    assert count(jaxpr, "dot_general", inside_loops=True) == 1
    both = simplified(jax.grad(lambda *args: f(*args)[0].sum(), (0, 1, 2)), A, A.T, xs)
    assert count(both, "dot_general", inside_loops=True) < count(both, "dot_general")


def test_products_that_stay_with_their_turns():
    xs = np.random.default_rng(1).normal(size=(7, 40)).astype(np.float32)
    grows = np.ones((40, 40 * 9), np.float32)

    def f(a, xs):
        def turn(c, x):
            return c + (a @ x).sum() + jnp.dot(x, x) + (x @ grows).sum() + (x @ (a * c)).sum(), None

        return lax.scan(turn, 0.0, xs)[0]

    jaxpr = simplified(f, A, xs)
    assert count(jaxpr, "dot_general", inside_loops=True) == count(jaxpr, "dot_general") == 4
