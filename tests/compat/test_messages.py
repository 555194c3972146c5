"""Messages of mistakes word for word as JAX's, up to where a message tells of lines and arguments."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import styrax

Mistake = Callable[[Any], Any]


def _mapped(m: Any, **specs: Any) -> Any:
    mesh = m.make_mesh((1,), ("x",))
    return m.shard_map(lambda *xs: xs[0], mesh=mesh, **specs)(m.numpy.arange(8.0), {"a": np.ones(8)})


def _spec(m: Any, *names: Any) -> Any:
    return importlib.import_module(f"{m.__name__}.sharding").PartitionSpec(*names)


def _written(m: Any) -> Any:
    return m.new_ref(m.numpy.float32(1))


X = np.arange(3, dtype=np.float32)
MISTAKES: dict[str, Mistake] = {
    "nonzero": lambda m: m.jit(lambda x: m.numpy.nonzero(x))(X),
    "where": lambda m: m.jit(lambda x: m.numpy.where(x))(X),
    "argwhere of a matrix": lambda m: m.jit(lambda x: m.numpy.argwhere(x))(X[None]),
    "unique": lambda m: m.jit(lambda x: m.numpy.unique(x))(X),
    "int": lambda m: m.jit(lambda x: int(x))(X[0]),
    "float": lambda m: m.jit(lambda x: float(x))(X[0]),
    "zeros of a tracer": lambda m: m.jit(lambda n: m.numpy.zeros(n))(3),
    "zeros of tracers": lambda m: m.jit(lambda n: m.numpy.zeros((n, 2)))(3),
    "gradient of a reference": lambda m: m.grad(lambda r: r[...])(_written(m)),
    "value and gradient of a reference": lambda m: m.value_and_grad(lambda r: r[...])(_written(m)),
    "jacrev of a reference": lambda m: m.jacrev(lambda r: r[...])(_written(m)),
    "tangent that is no reference": lambda m: m.jvp(lambda r: r[...], (_written(m),), (np.float32(1),)),
    "jacfwd of a reference": lambda m: m.jacfwd(lambda r: r[...])(_written(m)),
    "sum of conditions": lambda m: m.lax.reduce_sum(np.array([True]), (0,)),
    "sine of integers": lambda m: m.lax.sin(np.arange(3)),
    "conjunction of floats": lambda m: m.lax.bitwise_and(X, X),
    "order of complex numbers": lambda m: m.lax.lt(1j, 2j),
    "beta of conditions": lambda m: m.lax.betainc(*[np.array([True])] * 3),
    "two dtypes": lambda m: m.lax.add(np.int32(1), np.float32(1)),
    "two dtypes of arrays": lambda m: m.lax.concatenate([X, np.arange(2, dtype=np.int32)], 0),
    "cases of two shapes": lambda m: m.lax.select(np.bool_(True), X, X[:2]),
    "scan of three": lambda m: m.lax.scan(lambda c, x: (c, x, x), 0.0, X),
    "backend": lambda m: m.devices("gpu"),
    "backend of nobody": lambda m: m.devices("nowhere"),
    "mapped arguments' axis": lambda m: _mapped(m, in_specs=_spec(m, "y"), out_specs=_spec(m, "x")),
    "mapped results' axis": lambda m: _mapped(
        m, in_specs=_spec(m, "x"), out_specs=(_spec(m, "x"), _spec(m, ("y", "z")))),
    "axis in a tree": lambda m: _mapped(m, in_specs=(_spec(m, "x"), {"a": _spec(m, "z")}), out_specs=_spec(m, "x")),
}


def _guarded(m: Any) -> Any:
    with m.transfer_guard("disallow"):
        return m.jit(lambda x: x)(np.float32(2))


MISTAKES["transfer that a guard forbids"] = _guarded


def message(m: Any, mistake: Mistake) -> tuple[str, str]:
    with pytest.raises(Exception) as caught:
        mistake(m)
    text = str(caught.value).replace(m.__name__, "jax")
    told = re.split(r" at \S+\.py|\nThe value was needed|\n+See https|\n\n?This value became", text)[0]
    # JAX lists these in the order of a set, which is another in each process
    told = re.sub(r"(?<=are subtypes of )[\w, ]+", lambda found: ", ".join(sorted(found[0].split(", "))), told)
    return type(caught.value).__name__, told.strip()


@pytest.mark.parametrize("name", list(MISTAKES))
def test_told_as_by_jax(name: str) -> None:
    assert message(styrax, MISTAKES[name]) == message(jax, MISTAKES[name])


def test_a_search_for_invalid_values_is_announced(capsys: pytest.CaptureFixture) -> None:
    said = []
    for m in (styrax, jax):
        with m.debug_nans(True), pytest.raises(FloatingPointError):
            m.numpy.log(m.numpy.float32(-1))
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize("platform", ["gpu", "tpu", "nowhere"])
def test_default_devices_that_are_not_there(platform: str) -> None:
    def place(m: Any) -> Any:
        with m.default_device(platform):
            return m.numpy.ones(3)

    assert message(styrax, place)[0] == message(jax, place)[0]


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_arrays_made_under_a_mesh_are_on_it(kind: str) -> None:
    def made(m: Any) -> list[str]:
        types = (getattr(importlib.import_module(f"{m.__name__}.sharding").AxisType, kind),)
        with m.set_mesh(m.make_mesh((1,), ("x",), axis_types=types)):
            arrays = [m.numpy.asarray([1.0, 2.0]), m.numpy.array([[1]]), m.numpy.asarray(X), m.numpy.asarray(1.0)]
        return [f"{type(x.sharding).__name__} {x.sharding.spec} {x.sharding.mesh.axis_names}" for x in arrays]

    assert made(styrax) == made(jax)
