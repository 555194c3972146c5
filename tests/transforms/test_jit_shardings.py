"""What `jit` is told of devices, backends and shardings: checked as JAX does, and found again at the results."""

from __future__ import annotations

import re
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax

scalar = np.float32(2)
vector = np.arange(4, dtype=np.float32)


class Places:
    """Shardings of one package on its only device."""

    def __init__(self, package):
        from importlib import import_module

        sharding = import_module(f"{package.__name__}.sharding")
        self.jit = package.jit
        self.package = package
        self.device = package.devices("cpu")[0]
        self.single = sharding.SingleDeviceSharding(self.device)
        self.spec = sharding.PartitionSpec
        self.mesh = sharding.Mesh(np.array([self.device]), ("i",))
        self.rows = sharding.NamedSharding(self.mesh, self.spec("i"))
        self.whole = sharding.NamedSharding(self.mesh, self.spec())


def two(x, y):
    return x * 10 + y


def pair(x, y):
    return x, y * 2


HONOURED = {
    "nothing": lambda p: p.jit(two)(scalar, vector),
    "None": lambda p: p.jit(two, in_shardings=None, out_shardings=None)(scalar, vector),
    "None and names": lambda p: p.jit(two, in_shardings=None)(scalar, y=vector),
    "device": lambda p: p.jit(two, device=p.device)(scalar, vector),
    "backend": lambda p: p.jit(two, backend="cpu")(scalar, vector),
    "argument": lambda p: p.jit(two, in_shardings=p.single)(scalar, vector),
    "arguments": lambda p: p.jit(pair, in_shardings=(p.whole, p.rows))(scalar, vector),
    "list": lambda p: p.jit(pair, in_shardings=[p.whole, p.rows])(scalar, vector),
    "first of two kinds": lambda p: p.jit(pair, in_shardings=(p.single, p.rows))(vector, vector),
    "tree": lambda p: p.jit(lambda t: t, in_shardings=({"a": p.rows, "b": None},))({"a": vector, "b": vector}),
    "prefix": lambda p: p.jit(lambda t: t, in_shardings=(p.rows,))({"a": vector, "b": [vector]}),
    "behind a static argument": lambda p: p.jit(lambda n, x: x * n, static_argnums=0, in_shardings=(p.rows,))(
        3, vector),
    "result": lambda p: p.jit(two, out_shardings=p.rows)(scalar, vector),
    "single result": lambda p: p.jit(two, out_shardings=p.single)(scalar, vector),
    "results": lambda p: p.jit(pair, out_shardings=(p.whole, p.rows))(scalar, vector),
    "one of the results": lambda p: p.jit(pair, out_shardings=(p.rows, None))(vector, vector),
    "prefix of results": lambda p: p.jit(
        lambda x, y: {"q": pair(x, y), "r": y}, out_shardings={"q": p.whole, "r": None})(scalar, vector),
    "no arguments": lambda p: p.jit(lambda: p.package.numpy.ones(3), out_shardings=p.rows)(),
    "again": lambda p: [g(scalar, vector) for g in [p.jit(two, out_shardings=p.rows)] for _ in range(3)],
    "ahead of time": lambda p: p.jit(two, out_shardings=p.rows).lower(scalar, vector).compile()(scalar, vector),
    "donated": lambda p: p.jit(two, out_shardings=p.rows, donate_argnums=1)(scalar, p.package.numpy.ones(4)),
    "reverse mode": lambda p: p.package.grad(p.jit(lambda x: (x * x).sum(), in_shardings=p.rows))(vector),
    "batched": lambda p: p.package.vmap(p.jit(lambda x: x * 2, out_shardings=p.whole))(vector),
    "mesh": lambda p: in_mesh(p, lambda: p.jit(two, in_shardings=p.spec(), out_shardings=p.spec("i"))(scalar, vector)),
}


def in_mesh(p, call):
    with p.package.set_mesh(p.mesh):
        return call()


@pytest.mark.parametrize("name", HONOURED)
def test_honoured(name):
    def run(p):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            leaves, structure = p.package.tree_util.tree_flatten(HONOURED[name](p))
        return [(np.asarray(x).tolist(), str(x.sharding), x.committed) for x in leaves], str(structure)

    assert run(Places(styrax)) == run(Places(jax))


REFUSED = {
    "text": lambda p: p.jit(two, in_shardings="nonsense"),
    "number": lambda p: p.jit(two, out_shardings=3),
    "text among others": lambda p: p.jit(two, in_shardings=("nonsense", None)),
    "a device": lambda p: p.jit(two, in_shardings=p.device),
    "a function": lambda p: p.jit(two, out_shardings=len),
    "device and backend": lambda p: p.jit(two, device=p.device, backend="cpu"),
    "device and arguments": lambda p: p.jit(two, device=p.device, in_shardings=p.single),
    "backend and results": lambda p: p.jit(two, backend="cpu", out_shardings=p.single),
    "unknown backend": lambda p: p.jit(two, backend="nonsense")(scalar, vector),
    "backend of a wrong type": lambda p: p.jit(two, backend=3)(scalar, vector),
    "unknown device": lambda p: p.jit(two, device="nonsense")(scalar, vector),
    "too few": lambda p: p.jit(two, in_shardings=(p.single,))(scalar, vector),
    "too many": lambda p: p.jit(two, in_shardings=(p.single,) * 3)(scalar, vector),
    "one for a static argument": lambda p: p.jit(lambda n, x: x, static_argnums=0, in_shardings=(None, p.rows))(
        3, vector),
    "no tuple": lambda p: p.jit(lambda t: t, in_shardings={"a": p.single})({"a": vector}),
    "other tree": lambda p: p.jit(lambda t: t, in_shardings=({"a": p.single},))({"b": vector}),
    "names": lambda p: p.jit(two, in_shardings=p.single)(scalar, y=vector),
    "static names": lambda p: p.jit(lambda x, n: x, static_argnames="n", in_shardings=(p.rows,))(vector, n=2),
    "rank of an argument": lambda p: p.jit(two, in_shardings=p.rows)(scalar, vector),
    "rank of a result": lambda p: p.jit(lambda x: {"q": (x,)}, out_shardings=p.rows)(scalar),
    "too few results": lambda p: p.jit(pair, out_shardings=(p.whole,))(scalar, vector),
    "other results": lambda p: p.jit(lambda x: {"a": x}, out_shardings={"b": p.whole})(scalar),
    "list for a tuple": lambda p: p.jit(pair, out_shardings=[p.whole, p.rows])(scalar, vector),
    "no mesh": lambda p: p.jit(two, in_shardings=p.spec())(scalar, vector),
    "no mesh for results": lambda p: p.jit(two, out_shardings=p.spec())(scalar, vector),
    "axis that the mesh lacks": lambda p: in_mesh(p, lambda: p.jit(two, out_shardings=p.spec("j"))(scalar, vector)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    def run(package):
        with warnings.catch_warnings(), pytest.raises(Exception) as info:
            warnings.simplefilter("ignore", DeprecationWarning)
            REFUSED[name](Places(package))
        facts = re.compile(r"\w+_shardings leaf.*got (?!<|cpu|Cpu)|can't specify.*jit|If backend.*|Unknown backend \w+"
                           r"|pjit \w+_shardings(?:\[\d\])?\b|length \d|key path \w\S* is incompat|kwargs"
                           r"|no attribute.*|non-empty mesh|Resource axis: j")
        return info.type.__name__, sorted(set(facts.findall(str(info.value))))

    got, expected = run(styrax), run(jax)
    assert got == expected


def test_devices_are_deprecated():
    for options in ({"backend": "cpu"}, {"device": styrax.devices()[0]}):
        with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated"):
            styrax.jit(two, **options)


def test_stages_tell_shardings():
    def told(p):
        compiled = [p.jit(two).lower(scalar, vector).compile(),
                    p.jit(two, in_shardings=(p.whole, p.rows)).lower(scalar, vector).compile(),
                    p.jit(pair, out_shardings=(p.whole, p.rows)).lower(scalar, vector).compile()]
        return [str((c.input_shardings, c.output_shardings)) for c in compiled]

    assert told(Places(styrax)) == told(Places(jax))


def test_shapes_tell_shardings():
    def told(p):
        shapes = p.jit(pair, out_shardings=(p.whole, None)).eval_shape(scalar, vector)
        return [(s.shape, str(s.sharding)) for s in shapes]

    assert told(Places(styrax)) == told(Places(jax))


def test_programs_name_shardings():
    def text(p):
        g = p.jit(two, in_shardings=(p.whole, p.rows), out_shardings=p.rows)
        return str(p.package.make_jaxpr(g)(scalar, vector))

    assert text(Places(styrax)) == text(Places(jax))


PLACEMENTS = {
    "device_put": lambda jax: jax.device_put(np.ones((4, 2)), jax.P("i", None)),
    "ones": lambda jax: jax.numpy.ones((4, 2), out_sharding=jax.P("i", None)),
    "array": lambda jax: jax.numpy.array(np.ones((4, 2)), out_sharding=jax.P("i", None)),
    "arange": lambda jax: jax.numpy.arange(4, out_sharding=jax.P("i")),
    "full": lambda jax: jax.numpy.full((4, 2), 1.0, out_sharding=jax.P(None, "i")),
    "another axis": lambda jax: jax.numpy.ones((4, 2), out_sharding=jax.P("j")),
}


@pytest.mark.parametrize("kind", [None, "Explicit", "Auto"])
@pytest.mark.parametrize("name", PLACEMENTS)
def test_partitions_are_of_the_mesh_in_force(name, kind):
    def spec(package):
        types = (getattr(package.sharding.AxisType, kind or "Auto"),)
        mesh = package.make_mesh((1,), ("i",), axis_types=types)
        with package.set_mesh(mesh) if kind else nullcontext():
            return str(PLACEMENTS[name](package).sharding.spec)

    try:
        wanted = spec(jax)
    except ValueError:
        with pytest.raises(ValueError):
            spec(styrax)
    else:
        assert spec(styrax) == wanted
