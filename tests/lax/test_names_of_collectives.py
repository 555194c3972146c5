"""Tokens, casts of devices' values, polar factors, and functions over axes of a mesh, against JAX."""

from __future__ import annotations

import jax
import jax.extend.core
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

BOTH = pytest.mark.parametrize("package", [jax, styrax], ids=["jax", "styrax"])


def mesh_of(package, kind="Auto"):
    return package.make_mesh((1,), ("i",), axis_types=(getattr(package.sharding.AxisType, kind),))


@BOTH
def test_tokens(package):
    lax, token = package.lax, package.extend.core.Token
    made = lax.create_token()
    assert isinstance(made, token) and isinstance(lax.after_all(made, made), token)
    assert isinstance(lax.after_all(), token)
    after, x = package.jit(lambda k, x: (lax.after_all(k, lax.create_token()), x + 1))(made, 1.0)
    assert isinstance(after, token) and x == 2.0
    with pytest.raises(TypeError, match="must be tokens"):
        lax.after_all(1.0)
    printed = str(package.make_jaxpr(lambda x: (lax.after_all(lax.create_token()), x))(1.0))
    assert printed == str(jax.make_jaxpr(lambda x: (jax.lax.after_all(jax.lax.create_token()), x))(1.0))


def test_tokens_in_a_loop():  # JAX 0.10.2 has none there
    lax = styrax.lax
    carried, x = styrax.jit(lambda x: lax.fori_loop(
        0, 3, lambda i, c: (lax.after_all(c[0]), c[1] * 2), (lax.create_token(), x)))(1.0)
    assert isinstance(carried, styrax.extend.core.Token) and x == 8.0


def test_sends_need_an_axis_and_an_accelerator():
    shape = jax.ShapeDtypeStruct((2,), np.float32)
    f = styrax.shard_map(lambda x: styrax.lax.precv(styrax.lax.psend(x, "i", [(0, 0)]), shape, "i", [(0, 0)]),
                         mesh=mesh_of(styrax), in_specs=styrax.P("i"), out_specs=styrax.P("i"))
    with pytest.raises(NotImplementedError):
        styrax.jit(f)(jnp.ones(2))
    with pytest.raises(NameError):
        styrax.lax.psend(jnp.ones(2), "i", [(0, 0)])


@BOTH
def test_pcast(package):
    spec = package.sharding.PartitionSpec("i")
    run = lambda to: package.shard_map(lambda x: package.lax.pcast(package.numpy.ones(2), "i", to=to) + x,
                                       mesh=mesh_of(package), in_specs=spec, out_specs=spec)(package.numpy.ones(2))
    np.testing.assert_array_equal(run("varying"), [2, 2])
    with pytest.raises(ValueError):
        run("something")
    with pytest.raises(ValueError):
        package.lax.pcast(package.numpy.ones(2), "i", to="varying")
    np.testing.assert_array_equal(package.lax.pcast(package.numpy.ones(2), (), to="varying"), [1, 1])


MATRICES = {
    "tall": np.array([[1.0, 2], [3, 4], [5, 6]], np.float32),
    "complex": np.array([[1, 2j], [3, 4]], np.complex64),
    "nearly singular": np.array([[1, 1], [1, 1.001]], np.float32),
    "one element": np.array([[-3.0]], np.float32),
    "random": np.random.default_rng(0).normal(size=(12, 9)).astype(np.float32),
}


@pytest.mark.parametrize("name", MATRICES)
def test_polar_factors(name):
    a = MATRICES[name]
    u, h, count, converged = styrax.lax.linalg.qdwh(a)
    eye = np.eye(a.shape[1])
    np.testing.assert_allclose(u.conj().T @ u, eye, atol=1e-5)
    np.testing.assert_allclose(u @ h, a, atol=1e-5)
    np.testing.assert_array_equal(h, h.conj().T)
    assert np.linalg.eigvalsh(np.asarray(h, np.complex128)).min() > -1e-5
    theirs = jax.lax.linalg.qdwh(a)
    assert (count.dtype, converged.dtype) == (theirs[2].dtype, theirs[3].dtype) and bool(converged)


@pytest.mark.parametrize("matrix", [np.zeros((0, 0), np.float32), np.zeros((2, 2), np.float32),
                                    np.full((2, 2), np.nan, np.float32)], ids=["empty", "zero", "nan"])
def test_polar_factors_of_odd_matrices(matrix):
    for ours, theirs in zip(styrax.lax.linalg.qdwh(matrix)[:2], jax.lax.linalg.qdwh(matrix)[:2], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@BOTH
def test_polar_factors_of_a_part(package):
    a = np.array([[1.0, 2, 9], [3, 4, 9], [9, 9, 9]], np.float32)
    u, h, *_ = package.lax.linalg.qdwh(a, dynamic_shape=(2, 2))
    np.testing.assert_allclose((u @ h)[:2, :2], a[:2, :2], atol=1e-5)
    np.testing.assert_allclose(u[2], 0, atol=1e-6)
    assert int(package.lax.linalg.qdwh(a, max_iterations=1)[2]) == 1
    for bad in (np.ones((2, 3), np.float32), np.ones(2, np.float32), np.ones((2, 2), np.int32)):
        with pytest.raises(ValueError):
            package.lax.linalg.qdwh(bad)


@BOTH
def test_smap(package):
    x = np.ones((1, 2), np.float32)
    with package.set_mesh(mesh_of(package)):
        f = package.smap(lambda x, y: x * 2 + y + package.lax.axis_index("i"), in_axes=(0, None), out_axes=1,
                         axis_name="i")
        out = package.jit(f)(x, 1.0)
        np.testing.assert_array_equal(out, [[3, 3]])
        np.testing.assert_array_equal(package.smap(in_axes=0, out_axes=0, axis_name="i")(lambda x: x)(x), x)
    with pytest.raises(ValueError, match="mesh"):
        package.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="i")(x)
    with pytest.raises(TypeError):
        package.smap(lambda x: x, in_axes="i", out_axes=0, axis_name="i")


@BOTH
def test_auto_and_explicit_axes(package):
    spec, x = package.sharding.PartitionSpec("i"), package.numpy.ones(2)
    with package.set_mesh(mesh_of(package, "Explicit")):
        f = package.sharding.auto_axes(lambda x: x * 2, out_sharding=spec)
        np.testing.assert_array_equal(package.jit(f)(x), [2, 2])
        assert f(x).sharding.spec == spec
        np.testing.assert_array_equal(package.sharding.auto_axes(lambda x: x * 2)(x, out_sharding=spec), [2, 2])
    with package.set_mesh(mesh_of(package)):
        np.testing.assert_array_equal(package.sharding.explicit_axes(lambda x: x * 2, in_sharding=spec)(x), [2, 2])
    np.testing.assert_array_equal(package.sharding.auto_axes(lambda x: x * 2, out_sharding=spec)(x), [2, 2])
    with pytest.raises(ValueError, match="mesh"):
        package.sharding.explicit_axes(lambda x: x * 2, in_sharding=spec)(x)


def test_manual_axis_types():
    results = []
    for package in (jax, styrax):
        kind = package.sharding.ManualAxisType
        both = kind(unreduced={"i"}, reduced={"i"})
        results.append((repr(kind()), repr(both), repr(kind(varying={"i"}).update(reduced=frozenset("k"))),
                        kind(varying={"i"}) == kind(varying=frozenset("i")), kind().empty, both.empty))
        with pytest.raises(ValueError, match="common mesh axes"):
            kind(varying={"i"}, unreduced={"i"})
    assert results[0] == results[1]


def test_drawings(capsys):
    styrax.debug.visualize_array_sharding(jnp.ones((4, 4)))
    assert "CPU 0" in (drawn := capsys.readouterr().out)
    mesh = styrax.make_mesh((1, 1), ("a", "b"))
    styrax.debug.visualize_sharding((4, 4), styrax.NamedSharding(mesh, styrax.P("a", "b")))
    assert capsys.readouterr().out == drawn
    styrax.jit(lambda x: (styrax.debug.visualize_array_sharding(x), x)[1])(jnp.ones(4))
    styrax.effects_barrier()
    assert "CPU 0" in capsys.readouterr().out
    with pytest.raises(ValueError, match="1 and 2"):
        styrax.debug.visualize_array_sharding(jnp.ones((2, 2, 2)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3)])
def test_formats_of_arrays(shape):
    ours, theirs = (p.numpy.ones(shape).format for p in (styrax, jax))
    assert str(ours.layout) == str(theirs.layout)
    assert ours.sharding == jnp.ones(shape).sharding
