"""Names of releases newer than the oracle: what they mean here."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.experimental.layout import Layout, explicit_layout
from styrax.sharding import PartitionSpec as P
from styrax.sharding import UnreducedKind, no_collectives

X = np.arange(8, dtype=np.float32).reshape(4, 2)
SUMS = {
    "psum": lambda x: lax.psum(x, "i"), "pmax": lambda x: lax.pmax(x, "i"), "pmean": lambda x: lax.pmean(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"), "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1)]),
    "all_to_all": lambda x: lax.all_to_all(jnp.tile(x, 2)[:4], "i", 0, 0),
    "psum_scatter": lambda x: lax.psum_scatter(jnp.tile(x, 2)[:4], "i"),
}


@pytest.mark.parametrize("name", SUMS)
def test_collectives_are_refused(name):
    f = jax.jit(jax.vmap(SUMS[name], axis_name="i"))
    outside = f(X)
    with no_collectives(), pytest.raises(ValueError, match="no_collectives"):
        f(X)
    np.testing.assert_array_equal(f(X), outside)


def test_what_needs_no_other_device_is_allowed():
    f = jax.jit(jax.vmap(lambda x: x * lax.axis_index("i"), axis_name="i"))
    with no_collectives():
        np.testing.assert_array_equal(f(X), X * np.arange(4, dtype=np.float32)[:, None])


def test_arrays_that_are_cut_are_not_spread_in_another_way():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        whole = jnp.ones((4, 2))
        with no_collectives():
            cut = jax.jit(lambda a: jax.sharding.reshard(a, P("x", None)))(whole)
            with pytest.raises(ValueError, match="reshard"):
                jax.jit(lambda a: jax.sharding.reshard(a, P(None, "x")))(cut)
        np.testing.assert_array_equal(jax.jit(lambda a: jax.sharding.reshard(a, P()))(cut), whole)


def test_kinds_of_unreduced_values():
    assert P(unreduced={"x": UnreducedKind.SUM}) == P(unreduced={"x"})
    with pytest.raises(ValueError, match="SUM"):
        P(unreduced={"x": "max"})


@pytest.mark.parametrize("jitted", [False, True])
def test_functions_with_layouts(jitted):
    by_columns = Layout(major_to_minor=(1, 0))
    f = explicit_layout(lambda x, *, scale: {"y": x * scale}, in_layouts=(by_columns,), out_layouts=by_columns)
    np.testing.assert_array_equal((jax.jit(f) if jitted else f)(X, scale=2)["y"], 2 * X)
    np.testing.assert_array_equal(jax.vmap(jax.grad(lambda x: (x ** 2).sum()))(X), 2 * X)
    with pytest.raises(ValueError, match="Layout"):
        explicit_layout(lambda x: x, in_layouts=("columns",))(X)
