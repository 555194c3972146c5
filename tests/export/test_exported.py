"""Exported functions: attributes, calls, checks and derivatives, against JAX's."""

from __future__ import annotations

import jax as oracle
import jax.numpy as oracle_numpy
import numpy as np
import pytest
from jax import export as oracle_export

import styrax as jax
import styrax.numpy as jnp
from styrax import export
from tests import xla_cpu

LIBRARIES = [(jax, jnp, export), (oracle, oracle_numpy, oracle_export)]


def spec(make, shape, **scope):
    return (jax if make is export else oracle).ShapeDtypeStruct(make.symbolic_shape(shape, **scope), np.float32)


def both(build):
    return [build(*library) for library in LIBRARIES]


def test_attributes():
    def build(jax, jnp, export):
        def fun(x, *, y):
            return {"r": jnp.sin(x) * 2}

        return export.export(jax.jit(fun, donate_argnums=0))(jax.ShapeDtypeStruct((3, 4), np.float32), y=1)

    ours, theirs = both(build)
    for name in ("fun_name", "in_shardings_hlo", "out_shardings_hlo", "nr_devices", "platforms", "ordered_effects",
                 "unordered_effects", "disabled_safety_checks", "calling_convention_version", "module_kept_var_idx",
                 "uses_global_constants"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("in_tree", "out_tree", "in_avals", "out_avals"):
        assert str(getattr(ours, name)) == str(getattr(theirs, name)), name
    assert str(ours) == str(theirs) and ours.has_vjp()
    for name in ("in_tree", "out_tree", "in_avals", "out_avals", "fun_name"):
        text = str(getattr(ours.vjp(), name)).replace("void", "float0")
        assert text == str(getattr(theirs.vjp(), name)), name
    assert [n for n in dir(theirs) if not n.startswith("_") and not hasattr(ours, n)] == []
    public = [n for n in dir(oracle_export) if not n.startswith("_")]
    assert [n for n in public if not hasattr(export, n)] == []


CALLS = {
    "shape": (lambda e, x: e.call(x[:2])),
    "rank": (lambda e, x: e.call(x[0])),
    "dtype": (lambda e, x: e.call(x.astype(np.float16))),
    "tree": (lambda e, x: e.call((x, x))),
    "names": (lambda e, x: e.call(x=x)),
}


@pytest.mark.parametrize("kind", CALLS)
def test_arguments_that_do_not_fit(kind):
    messages = []
    for exported in both(lambda jax, jnp, export: export.export(jax.jit(lambda x: x))(
            jax.ShapeDtypeStruct((3, 4), np.float32))):
        with pytest.raises(ValueError) as error:
            CALLS[kind](exported, np.ones((3, 4), np.float32))
        messages.append(str(error.value).split(" - ")[0])
    assert messages[0] == messages[1]


@pytest.mark.parametrize(("shape", "constraints", "sizes"), [
    ("3, a, a+8", (), (3, 4, 13)), ("3, 4, a+1", (), (3, 4, 1)), ("3, 4, 6*a", (), (3, 4, 13)), ("3, a", (), (4, 4)),
    ("a + 2*b, a, a + b", (), (8, 2, 6)), ("a + 2*b, a, a + b + c", (), (3, 2, 6)), ("2*a + b, a, c*c", (), (7, 2, 36)),
    ("a", ("a >= 8",), (3,)), ("a", ("a <= 2",), (3,)), ("a, b", ("a >= b",), (3, 4)), ("a", ("mod(a, 2) == 0",), (3,)),
    ("a", ("b >= 2",), (3,)), ("a + b", (), (3,)), ("a, a", (), (3, 4)), ("a, 2*a", (), (0, 0)),
])
def test_shapes_that_do_not_fit(shape, constraints, sizes):
    found = []
    for library, _, make in LIBRARIES:
        with pytest.raises(Exception) as error:
            exported = make.export(library.jit(lambda x: x))(spec(make, shape, constraints=constraints))
            exported.call(np.ones(sizes, np.float32))
        text = str(error.value).replace("{'b', 'a'}", "{'a', 'b'}").split("\n")[0]
        found.append((type(error.value).__name__, text))
    assert found[0] == found[1]


NESTED = [
    ("3, a, a+b", "3, 4, 12"), ("3, 4, 3*a", "3, 4, 12"), ("3, a, b", "3, 4, c"), ("3, 4, 3*a", "3, 4, 6*c"),
    ("3, a, a+8", "3, c+2, c+10"), ("3, a, a", "3, 4, 12"), ("3, 4, 5*a", "3, 4, 12"), ("3, a, a+b", "3, 4, c"),
    ("3, a, a", "3, 4, c"), ("3, 4, 5*a", "3, 4, c"), ("3, a, a+b", "c, 4, 12"), ("3, 4, 12", "3, 4, 12"),
]


@pytest.mark.parametrize(("inner", "outer"), NESTED)
def test_exported_inside_exported(inner, outer):
    found = []
    for library, numpy, make in LIBRARIES:
        fun = lambda x, numpy=numpy: numpy.reshape(x, (-1, x.shape[1]))
        of_inner = make.export(library.jit(fun))(spec(make, inner))
        try:
            whole = make.export(library.jit(lambda x, e=of_inner, fun=fun: e.call(x) + fun(x)))(spec(make, outer))
        except ValueError as error:
            found.append(str(error))
            continue
        out = whole.call(np.arange(144, dtype=np.float32).reshape(3, 4, 12))
        found.append((str(whole.out_avals), whole.uses_global_constants, np.asarray(out).tolist()))
    assert found[0] == found[1]


def test_scopes_of_arguments():
    messages = []
    for library, _, make in LIBRARIES:
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes when exporting add") as error:
            make.export(library.jit(add))(spec(make, "a"), spec(make, "a"))
        messages.append([line.split(" scope ")[0] for line in str(error.value).split("\n")])
    assert messages[0] == messages[1]


def add(x, y):
    return x + y


def test_platforms():
    x = np.ones(3, np.float32)
    for library, _, make in LIBRARIES:
        other = make.export(library.jit(lambda x: x), platforms=("tpu",))(x)
        with pytest.raises(ValueError, match=r"was exported for platforms '\('tpu',\)' but it is used on '\('cpu',\)'"):
            other.call(x)
    unchecked = export.export(jax.jit(lambda x: x + 1), platforms=("tpu",),
                              disabled_checks=[export.DisabledSafetyCheck.platform()])(x)
    np.testing.assert_array_equal(unchecked.call(x), x + 1)
    np.testing.assert_array_equal(export.deserialize(unchecked.serialize()).call(x), x + 1)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)


def smooth(x, y):
    return {"s": jnp.tanh(x) * y, "sum": (x * y).sum()}


@pytest.mark.parametrize("shape", ["3, 4", "a, b", "a, 2*b"])
@pytest.mark.parametrize("loaded", [False, True])
def test_derivatives(shape, loaded):
    args = export.symbolic_args_specs((np.ones((3, 4), np.float32),) * 2, shape)
    exported = export.export(jax.jit(smooth))(*args)
    if loaded:
        exported = export.deserialize(exported.serialize(vjp_order=2))
    x, y = (jnp.asarray(np.random.default_rng(i).standard_normal((3, 4)), np.float32) for i in range(2))
    total = lambda f: lambda x, y: sum(jnp.sum(v**2) for v in jax.tree.leaves(f(x, y)))
    second = lambda f: jax.grad(lambda x: (jax.grad(total(f), argnums=1)(x, y) ** 2).sum())(x)
    first = lambda f: jax.grad(total(f), argnums=(0, 1))(x, y)
    for g, h in zip(first(exported.call), first(smooth)):
        np.testing.assert_allclose(g, h, rtol=1e-5)
    np.testing.assert_allclose(second(exported.call), second(smooth), rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(total(exported.call)))(x, y), jax.grad(total(smooth))(x, y), rtol=1e-5)


def test_derivatives_that_are_not_there():
    exported = export.export(jax.jit(jnp.sin))(1.0)
    none = export.deserialize(exported.serialize())
    once = export.deserialize(exported.serialize(vjp_order=1))
    assert exported.has_vjp() and once.has_vjp() and not none.has_vjp() and not once.vjp().has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(none.call)(1.0)
    np.testing.assert_allclose(jax.grad(once.call)(1.0), np.cos(1.0), rtol=1e-6)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(jax.grad(once.call))(1.0)
    for f in (lambda: jax.vmap(exported.call)(jnp.ones(3)), lambda: oracle.vmap(oracle_export.export(
            oracle.jit(oracle_numpy.sin))(1.0).call)(oracle_numpy.ones(3))):
        with pytest.raises(NotImplementedError, match="Batching rule for 'call_exported' not implemented"):
            f()


def test_in_other_programs():
    exported = export.export(jax.jit(lambda x: jnp.cumsum(x) * x.shape[0]))(spec(export, "n"))
    body = lambda c, _: (exported.call(c), None)
    found = jax.jit(lambda x: jax.lax.scan(body, x, length=2)[0])(jnp.arange(3.0))
    np.testing.assert_allclose(found, np.cumsum(np.cumsum(np.arange(3.0)) * 3) * 3)
    assert [exported.call(jnp.ones(n)).shape for n in (1, 2, 5)] == [(1,), (2,), (5,)]
    keys = export.export(jax.jit(lambda k: jax.random.split(k)))(jax.random.key(0))
    assert (keys.call(jax.random.key(3)) == jax.random.split(jax.random.key(3))).all()


@pytest.mark.parametrize("sizes", [(5, 4), (2, 3)])
def test_stablehlo_runs_on_xla(sizes):
    """The dynamic module, given sizes, is the program for XLA."""
    fun = lambda x: jnp.concatenate([x, x * x.shape[0]], 0)[1::2].sum(0) / (x.shape[1] // 2 + 1)
    exported = export.export(jax.jit(fun))(spec(export, "a, b"))
    assert "jax.uses_shape_polymorphism = true" in exported.mlir_module()
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    (out,) = xla_cpu.run_refined(exported.mlir_module(), [x])
    np.testing.assert_allclose(out, fun(jnp.asarray(x)), rtol=1e-5)


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu",), ("cpu", "cuda")])
def test_stablehlo_calls_what_the_platform_knows(platforms):
    """LAPACK is named for CPUs alone; what is for other platforms, too, runs without."""
    exported = export.export(jax.jit(jnp.linalg.inv), platforms=platforms)(jnp.eye(3))
    assert ("lapack" in exported.mlir_module()) == (platforms == ("cpu",))


def test_stablehlo_asserts_shapes():
    exported = export.export(jax.jit(lambda x: x))(spec(export, "2*a, a + 1"))
    (out,) = xla_cpu.run_refined(exported.mlir_module(), [np.ones((4, 3), np.float32)])
    assert out.shape == (4, 3)
    for sizes, message in (((3, 3), "Division had remainder 1"), ((4, 4), "Found inconsistency"), ((0, 1), "found 0")):
        with pytest.raises(Exception, match=message):
            xla_cpu.run_refined(exported.mlir_module(), [np.ones(sizes, np.float32)])
