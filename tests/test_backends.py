"""A backend is what `core.arrays.backends.Backend` says, and nothing else is asked of it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import jax as oracle
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.core.arrays import array, backends
from styrax.cpu import client, executable
from tests.backend_of_numpy import Buffer, Executable, toy

SOURCE = Path(jax.__file__).parent



@pytest.fixture(scope="module", autouse=True)
def registry() -> Iterator[None]:
    """Tests of other modules find the backends that there were."""
    backends.get()
    before, apart = dict(backends._loaded), backends.apart
    backends.register(toy)
    yield
    backends._loaded.clear()
    backends._loaded.update(before)
    backends.apart = apart
    jax.clear_caches()


def asked(protocol: type) -> set[str]:
    return {name for name in {**vars(protocol), **inspect.get_annotations(protocol)} if not name.startswith("_")}


@pytest.mark.parametrize(("protocol", "held"), [
    (backends.Backend, client.backend), (backends.Backend, toy),
    (backends.Executable, executable.Executable), (backends.Executable, Executable),
    (array.Buffer, executable.Memory(8, client.backend.devices()[0])),
    (array.Buffer, Buffer(np.zeros(2), toy.devices()[0])),
])
def test_what_is_asked_is_there(protocol, held):
    for name in asked(protocol):
        there = getattr(held, name)
        wanted = inspect.getattr_static(protocol, name, None)
        if inspect.isfunction(wanted):
            required = [p.name for p in inspect.signature(wanted).parameters.values() if p.name != "self"]
            given = [p for p in inspect.signature(there).parameters if p != "self"]
            assert given[:len(required)] == required, name


def test_nothing_else_is_asked():
    """Attributes read off a backend outside of the folder of one."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if not {"cpu", "pjrt", "processes"} & set(path.relative_to(SOURCE).parts):
            text = path.read_text()
            assert "getattr(backend" not in text, path
            found |= set(re.findall(r"backends\.get\([^()]*\)\.(\w+)|\bclient\.(\w+)\(", text))
    found = {name for pair in found for name in pair if name}
    assert {"put", "operand", "adopt", "devices", "barrier", "platform", "for_all_shapes"} <= found
    assert found <= asked(backends.Backend)


@pytest.fixture
def default() -> Iterator[None]:
    jax.clear_caches()
    backends.set_default(toy)
    yield
    backends.set_default(None)
    jax.clear_caches()


def test_a_second_backend_is_known():
    (device,) = jax.devices("toy")
    assert device.platform == "toy" and device.client is toy and str(device) == "toy:0"
    with pytest.raises(ValueError, match="toy"):
        backends.register(toy)
    with pytest.raises(RuntimeError, match="toy"):  # the message lists it
        jax.devices("nowhere")


def test_arrays_move_between_backends():
    x = jnp.arange(3.0)
    there = jax.device_put(x, jax.devices("toy")[0])
    assert there.devices() == set(jax.devices("toy")) and type(there.buffer) is Buffer
    np.testing.assert_array_equal(np.asarray(there), [0, 1, 2])
    back = jax.device_put(there, x.device)
    assert back.devices() == x.devices() and type(back.buffer) is executable.Memory
    np.testing.assert_array_equal(np.asarray(back), [0, 1, 2])


@pytest.mark.usefixtures("default")
def test_a_second_backend_runs_programs():
    assert jax.default_backend() == "toy"
    x = jax.device_put(np.arange(4, dtype=np.float32))
    for y in (x + x, jax.lax.add(x, x), 2 * x):
        assert y.devices() == set(jax.devices("toy"))
        np.testing.assert_array_equal(np.asarray(y), [0, 2, 4, 6])
    f = lambda x: jnp.sum(jnp.sin(x) * x + 1)
    wanted = np.sum(np.sin(np.arange(4)) * np.arange(4) + 1)
    np.testing.assert_allclose(float(jax.jit(f)(x)), wanted, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.jit(jax.grad(f))(x)),
                               np.sin(np.arange(4)) + np.arange(4) * np.cos(np.arange(4)), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="sort on the platform toy"):
        jnp.sort(x)


@pytest.mark.usefixtures("default")
def test_stages_on_a_second_backend():
    compiled = jax.jit(lambda x, y: x * y + 1).lower(np.ones(3, np.float32), np.ones(3, np.float32)).compile()
    code = compiled.runtime_executable()
    assert type(code) is Executable and code.calls == 0
    out = compiled(np.arange(3, dtype=np.float32), np.full(3, 2, np.float32))
    np.testing.assert_array_equal(np.asarray(out), [1, 3, 5])
    assert code.calls == 1
    assert "mul" in compiled.as_text()
    assert compiled.cost_analysis() == {"equations": 2.0}
    assert compiled.memory_analysis().argument_size_in_bytes == 24


def quietly(fun, **options):
    """`jit` with the options that it warns of."""
    with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated"):
        return jax.jit(fun, **options)


CHOICES = {
    "backend": lambda fun, **options: quietly(fun, backend="toy", **options),
    "device": lambda fun, **options: quietly(fun, device=toy.devices()[0], **options),
    "shardings": lambda fun, **options: jax.jit(
        fun, in_shardings=jax.sharding.SingleDeviceSharding(toy.devices()[0]), **options),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_function_is_compiled_where_it_was_told_to(choice):
    """Whatever the default is, and wherever the arguments are."""
    there = set(toy.devices())
    f = CHOICES[choice](lambda x, y: {"a": x * y + 1, "b": (x,)})
    x = np.arange(3, dtype=np.float32)
    for args in ((x, x), (jnp.asarray(x), x), (jax.device_put(x, toy.devices()[0]), jnp.asarray(x))):
        out = f(*args)
        np.testing.assert_array_equal(np.asarray(out["a"]), x * x + 1)
        for leaf in jax.tree.leaves(out):
            assert leaf.devices() == there and leaf.committed and type(leaf.buffer) is Buffer
    compiled = f.lower(x, x).compile()
    assert type(compiled.runtime_executable()) is Executable
    assert compiled(x, x)["a"].devices() == there
    with pytest.raises(NotImplementedError, match="sort on the platform toy"):
        CHOICES[choice](jnp.sort)(x)
    assert jax.jit(lambda x: x + 1)(x).devices() == set(jax.devices())  # others are not concerned


@pytest.mark.parametrize("choice", CHOICES)
def test_transformations_of_a_function_elsewhere(choice):
    x = np.arange(4, dtype=np.float32)
    f = CHOICES[choice](lambda x: jnp.sum(jnp.sin(x) * x))
    slope = CHOICES[choice](jax.grad(f))(x)
    np.testing.assert_allclose(np.asarray(slope), np.sin(x) + x * np.cos(x), rtol=1e-6)
    assert slope.devices() == set(toy.devices())
    mapped = CHOICES[choice](jax.vmap(lambda x: x * 2))(x)
    np.testing.assert_array_equal(np.asarray(mapped), 2 * x)
    assert float(CHOICES[choice](lambda x: x)(jnp.float32(3))) == 3
    empty = CHOICES[choice](lambda x: x + 1)(np.zeros((0, 2), np.float32))
    assert empty.shape == (0, 2) and empty.devices() == set(toy.devices())


@pytest.mark.usefixtures("default")
def test_a_function_for_the_other_backend():
    """The choice holds against the default, too."""
    f = quietly(jnp.sort, backend="cpu")
    out = f(jax.device_put(np.array([2, 1], np.float32)))
    assert out.devices() == set(jax.devices("cpu")) and type(out.buffer) is executable.Memory
    np.testing.assert_array_equal(np.asarray(out), [1, 2])


@pytest.mark.parametrize("name", ["nowhere", "", None])
def test_names_of_backends(name):
    """As in JAX: an unknown one is an error of the call, an empty one is the default's."""
    def outcome(j):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            f = j.jit(lambda x: x + 1, backend=name)
        kinds = [w.category for w in warned]
        try:
            out = f(np.float32(1))
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=f"Unknown backend {name}"):
                f.lower(np.float32(1))
            return kinds, str(error).partition(".")[0]
        return kinds, float(out), out.committed

    assert outcome(jax) == outcome(oracle)


@pytest.mark.usefixtures("default")
def test_dlpack_on_a_second_backend():
    x = jax.device_put(np.arange(3, dtype=np.float32))
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])
    source = np.arange(3, dtype=np.float32)
    taken = jax.dlpack.from_dlpack(source)
    assert taken.devices() == set(jax.devices("toy")) and taken.unsafe_buffer_pointer() == source.ctypes.data


@pytest.mark.parametrize("folder", ["core", "transforms", "lax", "interpreters", "extend", "parallel", "numpy", "xla"])
def test_no_platform_is_named(folder):
    """But in the registry, in messages and documentation that JAX words so, and where a user's platform is compared."""
    allowed = {"core/arrays/backends.py": 3, "core/settings/flags.py": 2, "interpreters/mlir.py": 3}
    for path in (SOURCE / folder).rglob("*.py"):
        count = len(re.findall(r"""(['"])cpu\1""", path.read_text()))
        assert count == allowed.get(path.relative_to(SOURCE).as_posix(), 0), path
