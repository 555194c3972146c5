"""Programs on several devices of a plugin: the same results under the same shardings as on the host's as devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays import backends
from styrax.sharding import Mesh, NamedSharding
from styrax.sharding import PartitionSpec as P
from styrax.xla.pjrt.plugin import Plugin
from styrax.xla.pjrt.plugin_client import PluginBackend

from .conftest import FOUND, OTHER, PACKAGES
from .programs_on_meshes import PROGRAMS

pytestmark = pytest.mark.skipif(bool(OTHER), reason="asks for eight devices")
A = np.arange(64, dtype=np.float32).reshape(8, 8)


# -- against the host's processors as devices ---------------------------------------------------------------


@cache
def differences(platform: str, default: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.xla.pjrt.programs_on_meshes"], capture_output=True, text=True, timeout=600,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": default,
             "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{FOUND[PACKAGES[platform]]}"})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("platform", PACKAGES)
def test_as_on_the_host(platform, name):
    assert not differences(platform, "")[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_on_the_host_with_the_plugin_as_default(name):
    assert not differences("xla_cpu", "xla_cpu,cpu")[name]


# -- what is partitioned -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    """Of four by two devices of the newer plugin, in a client of its own."""
    name = "xla_cpu_of_eight"
    if name not in backends.platforms():
        jax.config.update("jax_pjrt_client_create_options", {"cpu_device_count": 8})
        try:
            backends.register(PluginBackend(name, Plugin(FOUND[PACKAGES["xla_cpu"]])))
        finally:
            jax.config.update("jax_pjrt_client_create_options", None)
    return Mesh(np.array(jax.devices(name)).reshape(4, 2), ("x", "y"))


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def code(f, *args):
    """What is compiled for a call."""
    return f.lower(*args).compile().runtime_executable()


def test_each_device_has_its_part(mesh):
    x = jax.device_put(A, on(mesh, "x", "y"))
    for shard in x.addressable_shards:
        assert shard.data.devices() == {shard.device} and shard.data.shape == (2, 4)
        np.testing.assert_array_equal(np.asarray(shard.data), A[shard.index])
    assert x._live().nbytes == A.nbytes and jax.device_put(A, on(mesh))._live().nbytes == 8 * A.nbytes


def test_arguments_and_results_are_parts(mesh):
    f = jax.jit(lambda x: jnp.sin(x) @ x.T)
    x = jax.device_put(A, on(mesh, "x"))
    told = code(f, x)
    _, arguments, results, _, _ = told.memory_analysis()
    assert arguments == A.nbytes // 4 and results == A.nbytes // 4
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>' in told.as_text()
    assert "mhlo.num_partitions = 8" in told.as_text()


def test_shards_are_worked_on_where_they_are(mesh):
    """A map over shards needs no memory for the others' parts."""
    big = np.ones((4096, 64), np.float32)
    x = jax.device_put(big, on(mesh, ("x", "y")))
    spread = on(mesh, ("x", "y")).spec
    f = jax.jit(jax.shard_map(lambda v: jnp.cumsum(jnp.sin(v), axis=1) + lax.psum(v.sum(), ("x", "y")), mesh=mesh,
                              in_specs=spread, out_specs=spread))
    _, arguments, results, _, workspace = code(f, x).memory_analysis()
    assert arguments == results == big.nbytes // 8
    assert workspace < big.nbytes


def test_programs_are_compiled_once_for_each_sharding(mesh):
    f = jax.jit(lambda x: x * 3)
    x, y = jax.device_put(A, on(mesh, "x")), jax.device_put(A, on(mesh, None, "y"))
    for _ in range(3):
        assert f(x).sharding.spec == P("x") and f(y).sharding.spec == P(None, "y")
    assert len(f.lower(x).compile()._call.recent.codes) == 2


def test_ahead_of_time(mesh):
    x = jax.ShapeDtypeStruct(A.shape, A.dtype, sharding=on(mesh, "x", "y"))
    compiled = jax.jit(lambda x, y: (x * 2, y.sum())).lower(x, 3.0).compile()
    assert [s.spec for s in compiled.input_shardings[0]] == [P("x", "y"), P()]
    assert [s.spec for s in compiled.output_shardings] == [P("x", "y"), P()]
    assert compiled.memory_analysis().argument_size_in_bytes == A.nbytes // 8 + 4
    assert compiled.cost_analysis()["flops"] > 0
    outs = compiled(jax.device_put(A, on(mesh, "x", "y")), 3.0)
    np.testing.assert_array_equal(np.asarray(outs[0]), A * 2)


def test_machine_code_is_loaded(mesh):
    x = jax.device_put(A, on(mesh, "x"))
    made = code(jax.jit(lambda x: x - 2), x)
    client = mesh.devices.flat[0].client
    pieces = made.machine_code()
    client.accept(pieces)
    try:
        jax.clear_caches()
        again = code(jax.jit(lambda x: x - 2), x)
        assert again.key in pieces
    finally:
        client._accepted.clear()


@pytest.mark.parametrize(("answer", "words"), [
    (lambda v: 1 // 0, "ZeroDivisionError"), (lambda v: np.zeros(3, np.float32), "Incorrect output shape")])
def test_failures_of_python(mesh, answer, words):
    """No device waits for another in vain, of which XLA would end the process."""
    told = on(mesh, "x")
    failing = [True]

    def call(v):
        return answer(v) if failing else np.asarray(v)

    f = jax.jit(lambda x: jax.pure_callback(call, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2, out_shardings=told)
    x = jax.device_put(A, on(mesh, "x", "y"))
    with pytest.raises(jax.errors.JaxRuntimeError, match=words):
        jax.block_until_ready(f(x))
    failing.clear()
    np.testing.assert_array_equal(np.asarray(f(x)), 2 * A)
    with pytest.raises(jax.errors.JaxRuntimeError, match="a reason"):
        jax.jit(lambda x: (jax.debug.callback(_fail, x), x.sum()))(x)
    np.testing.assert_array_equal(np.asarray(x + 1), A + 1)


def _fail(v):
    raise ValueError("a reason")


def test_ordered_effects_are_refused(mesh):
    x = jax.device_put(A, on(mesh, "x"))
    with pytest.raises(ValueError, match="ordered effects are not supported for more than 1 device"):
        jax.jit(lambda x: jax.debug.print("{}", x, ordered=True))(x)


def test_other_devices_are_refused_in_words(mesh):
    x = jax.device_put(A, on(mesh, "x"))
    y = jax.device_put(A, mesh.devices.flat[1])
    with pytest.raises(ValueError, match=r"device ids \[0, 1, 2, 3, 4, 5, 6, 7\].* and argument y.* device ids \[1\]"):
        jax.jit(lambda x, y: x + y)(x, y)


# -- donation ------------------------------------------------------------------------------------------------


def addresses(x):
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]


def test_donated_memory_is_taken(mesh):
    f = jax.jit(lambda x, y: (x + 1, y.T), donate_argnums=(0, 1))
    x = jax.device_put(np.ones((1024, 512), np.float32), on(mesh, "x", "y"))
    y = jax.device_put(np.ones((512, 512), np.float32), on(mesh, "x", "y"))  # whose result is spread otherwise
    before = addresses(x)
    out, turned = f(x, y)
    assert addresses(out) == before and x.is_deleted() and turned.sharding.spec == P("y", "x")
    np.testing.assert_array_equal(np.asarray(out), 2)


@pytest.mark.parametrize("look", [
    lambda x: x.addressable_shards[0].data, lambda x: jnp.asarray(x), np.asarray, lambda x: type(x)(x.aval, x.buffer)])
def test_what_others_see_stays(mesh, look):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(np.ones((64, 64), np.float32), on(mesh, "x", "y"))
    seen = look(x)
    np.testing.assert_array_equal(np.asarray(f(x)), 2)
    if seen is not x:
        np.testing.assert_array_equal(np.asarray(seen), 1)
