"""Explicit sharding: types, errors and programs as JAX's, on a mesh of 8 devices that are only described; and arrays
on a mesh of the one device that there is."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import styrax.numpy as jnp
from styrax.core.arrays.explicit import is_replicated
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.errors import ShardingTypeError
from styrax.core.types.avals import ShapedArray
from styrax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, use_abstract_mesh
from tests.transforms.oracle import jax, styrax
from tests.transforms.sharded_programs import PROGRAMS, Package


def types_of(package, name):
    """The types of a program's results and what it notes inside; or the class of its error."""
    function, operands, types = PROGRAMS[name]
    p = Package(package, types)
    try:
        with p.sh.use_abstract_mesh(p.mesh):
            traced = package.jit(lambda *xs: function(p, *xs)).trace(*(p.operand(*given) for given in operands))
    except Exception as error:
        return type(error).__name__
    avals = [v.aval for v in traced.jaxpr.jaxpr.outvars]
    return [(a.str_short(True), a.weak_type) for a in avals], p.notes


@pytest.mark.parametrize("name", PROGRAMS)
def test_types(name):
    assert types_of(styrax, name) == types_of(jax, name)


@pytest.mark.parametrize("name", [
    "sin", "add merge", "sum 0", "matmul", "transpose", "reshape split", "concat sharded dim", "slice",
    "dynamic slice", "zeros out", "arange out", "zeros_like", "reshard", "wsc explicit ok", "auto_axes",
    "explicit_axes", "scan carry", "vmap matmul", "mixed types"])
def test_texts(name):
    def text(package):
        function, operands, types = PROGRAMS[name]
        p = Package(package, types)
        with p.sh.use_abstract_mesh(p.mesh):
            traced = package.jit(lambda *xs: function(p, *xs)).trace(*(p.operand(*given) for given in operands))
            return str(traced.jaxpr)

    assert text(styrax) == text(jax)


class OnDevices:
    """One package's functions, on a mesh of its one device."""

    def __init__(self, package, types):
        self.jax = package
        self.np, self.lax, self.random = (import_module(f"{package.__name__}.{m}") for m in ("numpy", "lax", "random"))
        self.nn = import_module(f"{package.__name__}.nn")
        self.sh = import_module(f"{package.__name__}.sharding")
        self.P = self.sh.PartitionSpec
        kinds = {"E": self.sh.AxisType.Explicit, "A": self.sh.AxisType.Auto}
        device = np.array(package.devices("cpu")[:1]).reshape(1, 1)
        self.mesh = self.sh.Mesh(device, ("X", "Y"), tuple(kinds[t] for t in types))


RUN = {
    "put": lambda p, x: x,
    "sin": lambda p, x: p.np.sin(x),
    "with a number": lambda p, x: x + 1,
    "with an array of NumPy's": lambda p, x: x + np.ones((8, 4), np.float32),
    "sums": lambda p, x: (x.sum(), x.sum(0), x.mean(1), x.var(1)),
    "jit": lambda p, x: [p.jax.jit(lambda a: (a.T, a.sum()))(x) for _ in range(2)],
    "jit without arguments": lambda p, x: p.jax.jit(lambda: p.np.ones((8, 4)))(),
    "out_shardings": lambda p, x: p.jax.jit(lambda a: a * 2, out_shardings=p.P(None, "Y"))(x),
    "in_shardings": lambda p, x: p.jax.jit(lambda a: a * 2, in_shardings=p.P("X", None))(x),
    "ahead of time": lambda p, x: p.jax.jit(lambda a: a * 2).lower(x).compile()(x),
    "zeros": lambda p, x: (p.np.zeros((4, 2)), p.np.zeros((4, 2), out_sharding=p.P("X"))),
    "empty": lambda p, x: p.np.zeros((0, 2), out_sharding=p.P("X")) * 2,
    "arange": lambda p, x: p.np.arange(4, out_sharding=p.P("X")),
    "array": lambda p, x: (p.np.array([1., 2.]), p.np.array([1., np.nan], out_sharding=p.P("X"))),
    "product": lambda p, x: x @ np.ones((4, 2), np.float32),
    "ambiguous product": lambda p, x: x.T @ x,
    "impossible product": lambda p, x: x @ x.T,
    "einsum": lambda p, x: p.np.einsum("ij,ik->jk", x, x, out_sharding=p.P(None, "Y" if p.mesh.axis_types[1] is
                                                                           p.sh.AxisType.Explicit else None)),
    "grad": lambda p, x: p.jax.grad(lambda a: (a * a).sum())(x),
    "vmap": lambda p, x: p.jax.vmap(lambda a: a * 2)(x),
    "vmap of grad": lambda p, x: p.jax.vmap(p.jax.grad(lambda a: (a ** 3).sum()))(x),
    "reshard": lambda p, x: p.sh.reshard(x, p.P(None, "X")),
    "auto_axes": lambda p, x: p.sh.auto_axes(lambda a: a.reshape(4, 8), out_sharding=p.P("X", None))(x),
    "reshape": lambda p, x: x.reshape(32),
    "indices": lambda p, x: (x[0], x[:, 1:2], x.at[:, 0].set(1.)),
    "scan": lambda p, x: p.lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=2),
    "cond": lambda p, x: p.lax.cond(True, lambda a: a * 2, lambda a: a, x),
    "random": lambda p, x: (p.random.uniform(p.random.key(0), (8,), out_sharding=p.P("X")),
                            p.random.uniform(p.random.key(0), (8,))),
    "where": lambda p, x: p.np.where(x > 1, x, 0.),
    "joined": lambda p, x: (p.np.concatenate([x, x]), p.np.stack([x, x]), p.np.split(x, 2, 1)),
    "softmax": lambda p, x: p.nn.softmax(x),
    "device_put": lambda p, x: p.jax.device_put(x, p.sh.NamedSharding(p.mesh, p.P(None, "Y"))),
    "constraint": lambda p, x: p.lax.with_sharding_constraint(x, p.P("X", None)),
    "sort": lambda p, x: p.np.sort(x, 1),
}


MIXED = ("put", "with a number", "out_shardings", "zeros", "arange", "array", "constraint")


@pytest.mark.parametrize(("name", "types"), [*((name, "EE") for name in RUN), *((name, "EA") for name in MIXED)])
def test_arrays(name, types):
    def run(package):
        p = OnDevices(package, types)
        with package.set_mesh(p.mesh):
            x = package.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), p.P("X", None))
            try:
                found = package.tree_util.tree_leaves(RUN[name](p, x))
            except Exception as error:
                return type(error).__name__, []
            return ([(str(package.typeof(y)), str(y.sharding), y.committed) for y in found],
                    [np.asarray(y) for y in found])

    (told, values), (expected, wanted) = run(styrax), run(jax)
    assert told == expected
    for value, want in zip(values, wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=2e-6)


def one_device(types=(AxisType.Explicit,) * 2):
    return Mesh(np.array(styrax.devices("cpu")[:1]).reshape(1, 1), ("X", "Y"), types)


def test_programs_depend_on_the_mesh():
    program = styrax.jit(lambda x: x * 2)
    x = jnp.ones((8, 4))
    assert "Single" in str(program(x).sharding)
    with styrax.set_mesh(one_device()):
        assert program(x).sharding.spec == PartitionSpec(None, None)
        assert str(styrax.typeof(program(styrax.device_put(x, PartitionSpec("X"))))) == "float32[8@X,4]"
    assert "Single" in str(program(x).sharding)


def test_types_of_replicated_arrays_are_one():
    """The mesh of an array that is spread over none of its axes is no part of its type."""
    mesh = AbstractMesh((4, 2), ("X", "Y"), (AxisType.Explicit,) * 2)
    plain = ShapedArray((8,), np.float32)
    replicated, spread = (ShapedArray((8,), np.float32, sharding=NamedSharding(mesh, PartitionSpec(entry)))
                          for entry in (None, "X"))
    assert is_replicated(replicated.given_sharding) and not is_replicated(spread.given_sharding)
    assert replicated == plain and hash(replicated) == hash(plain)
    assert spread != plain and spread != replicated
    assert spread.sharding.mesh is mesh or spread.sharding.mesh == mesh


def test_primitives_of_libraries():
    """A primitive without a rule takes replicated operands only; one with the trait says what its results are."""
    prim = Primitive("halves")
    prim.def_abstract_eval(lambda x: ShapedArray((x.shape[0] // 2,), x.dtype))
    mesh = AbstractMesh((4, 2), ("X", "Y"), (AxisType.Explicit,) * 2)

    def typed(*spec):
        operand = styrax.ShapeDtypeStruct((16,), np.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
        return str(styrax.jit(prim.bind).trace(operand).jaxpr.out_avals[0])

    with use_abstract_mesh(mesh):
        assert typed(None) == "float32[8]"
        with pytest.raises(ShardingTypeError, match="halves"):
            typed("X")
        prim.declare(sharding=lambda at, x: x.sharding.spec.partitions)
        assert typed("X") == "float32[8@X]"


def test_several_devices_are_told_to_be_missing():
    mesh = AbstractMesh((4, 2), ("X", "Y"), (AxisType.Explicit,) * 2)
    with use_abstract_mesh(mesh), pytest.raises(ValueError, match="8 devices; there are 1"):
        styrax.jit(lambda: jnp.zeros((8, 4), out_sharding=PartitionSpec("X")))()


OVER_NO_MESH = {
    "bernoulli": lambda p, x, s: p.random.bernoulli(p.random.key(0), 0.5, x.shape, out_sharding=s),
    "normal": lambda p, x, s: p.random.normal(p.random.key(0), x.shape, out_sharding=s),
    "zeros": lambda p, x, s: p.numpy.zeros(x.shape, out_sharding=s),
    "device": lambda p, x, s: p.numpy.zeros(x.shape, device=s),
    "arange": lambda p, x, s: p.numpy.arange(4, out_sharding=s),
    "iota": lambda p, x, s: p.lax.broadcasted_iota(int, x.shape, 0, out_sharding=s),
    "einsum": lambda p, x, s: p.numpy.einsum("ij,ij->ij", x, x, out_sharding=s),
    "dot": lambda p, x, s: p.numpy.dot(x, x.T, out_sharding=s),
    "reshape": lambda p, x, s: p.numpy.reshape(x, (8, 4), out_sharding=s),
    "at": lambda p, x, s: x.at[0].get(out_sharding=s),
    "device_put": lambda p, x, s: p.device_put(x, s),
    "reshard": lambda p, x, s: p.reshard(x, s),
    "constraint": lambda p, x, s: p.lax.with_sharding_constraint(x, s),
}


@pytest.mark.parametrize("name", OVER_NO_MESH)
@pytest.mark.parametrize("wrap", [lambda p, f: f, lambda p, f: p.jit(f), lambda p, f: lambda x: p.jit(lambda: f(x))(),
                                  lambda p, f: lambda x: p.vmap(f)(x[None])[0]],
                         ids=["eager", "jit", "constant", "vmap"])
def test_the_sharding_of_the_type_of_an_array_that_is_not_spread(name, wrap):
    """It says nothing where a result's is told, and is refused where arrays are moved."""
    def run(package):
        def f(x):
            return OVER_NO_MESH[name](package, x, sharding)

        x = package.numpy.ones((4, 8))
        sharding = package.typeof(x).sharding
        try:
            out = wrap(package, f)(x)
            return out.shape, str(out.dtype), type(out.sharding).__name__
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]

    assert run(styrax) == run(jax)
