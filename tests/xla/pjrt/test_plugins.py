"""Plugins as files: which there are, what is none, what they are told, and what a fork leaves of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import styrax as jax
from styrax.core.settings import config
from styrax.xla.pjrt import c_api, discovery, options
from styrax.xla.pjrt.plugin import Plugin, PluginError
from styrax.xla.pjrt.plugin_client import PluginBackend


def run(text: str, **environment: str) -> str:
    """What a program prints. It is to end well."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- files -------------------------------------------------------------------------------------------


def test_files_that_are_no_plugins(tmp_path):
    text = tmp_path / "plugin.so"
    text.write_text("no library")
    for path in (text, tmp_path / "nowhere.so"):
        with pytest.raises(PluginError, match=f"{path} cannot be loaded"):
            Plugin(path)
    import _ctypes

    with pytest.raises(PluginError, match="is no PJRT plugin: it has no function GetPjrtApi"):
        Plugin(_ctypes.__file__)


def test_a_backend_whose_plugin_does_not_work(tmp_path, monkeypatch):
    path = tmp_path / "plugin.so"
    path.write_text("no library")
    monkeypatch.setenv(discovery.VARIABLE, f"broken:{path}")
    with pytest.raises(RuntimeError, match="initialize backend 'broken': the PJRT plugin .* cannot be loaded"):
        jax.devices("broken")
    monkeypatch.setenv(discovery.VARIABLE, "nonsense")
    with pytest.raises(RuntimeError, match=f"invalid value of the environment variable {discovery.VARIABLE}"):
        jax.devices("broken_as_well")


def test_versions_and_extensions(plugin):
    assert plugin.version >= c_api.OLDEST and plugin.extensions
    assert plugin.attributes["stablehlo_current_version"] > [1, 0, 0]
    assert len(plugin.fingerprint) == 32


def test_functions_that_are_missing(plugin, monkeypatch):
    monkeypatch.delitem(plugin._addresses, "Device_MemoryStats")
    plugin._functions.pop("Device_MemoryStats", None)
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED: .* has no function Device_MemoryStats"):
        plugin.call("Device_MemoryStats")


def test_sizes_of_structures():
    """Those that the header of version 0.106 gives, on machines of 64 bits."""
    import ctypes

    sizes = {"Error_GetCode": 28, "Client_Create": 88, "Client_Compile": 56, "Client_BufferFromHostBuffer": 120,
             "LoadedExecutable_Execute": 80, "Buffer_ToHostBuffer": 56, "Program": 48, "NamedValue": 56,
             "Event_OnReady": 40, "Buffer_Destroy": 24}
    for name, size in sizes.items():
        kind = c_api.structure(name)
        last = kind._fields_[-1][0]
        assert getattr(kind, last).offset + getattr(kind, last).size == size, name
        assert ctypes.sizeof(kind) == -(-size // 8) * 8
    with pytest.raises(KeyError):
        c_api.structure("Nothing")
    assert c_api.FUNCTIONS.index("Buffer_UnsafePointer") == 73 and len(set(c_api.FUNCTIONS)) == len(c_api.FUNCTIONS)


def test_versions_are_written_twice_alike():
    """For pip's options there is a file, for `pip install styrax[test-xla]` an extra."""
    import tomllib

    root = Path(__file__).parents[3]
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["test-xla"]
    lines = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines if not line.startswith("#")] == extra


# -- which there are -----------------------------------------------------------------------------------


def test_plugins_are_found(monkeypatch, tmp_path):
    found = {p.source: p for p in discovery.plugins()}
    assert found["the package lammps_jax_pjrt_cpu"].platform == "xla_cpu"
    package = tmp_path / "jax_plugins" / "xla_mine"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "xla_mine_plugin.so").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pjrt_other.so").touch()
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jax_plugins]\nother = other\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(discovery.VARIABLE, "first:/a.so,second:/b.so")
    told = [(p.platform, p.path.name) for p in discovery.plugins()]
    assert told[:2] == [("first", "a.so"), ("second", "b.so")]
    assert ("mine", "xla_mine_plugin.so") in told and ("other", "pjrt_other.so") in told


def test_nothing_is_looked_for_before_it_is_asked_for():
    out = run("""
        import sys, styrax as jax
        float(jax.jit(lambda x: x + 1)(1.0)), jax.devices(), jax.devices("cpu")
        print(sorted(name for name in sys.modules if "pjrt" in name))
    """)
    assert out == "[]\n"


def test_arrays_of_a_backend_that_was_used_before_the_default_one():
    out = run("""
        import numpy as np, styrax as jax, styrax.numpy as jnp
        from styrax.core.types.avals import ShapedArray
        device = jax.devices("xla_cpu")[0]
        source = np.arange(6, dtype=np.float32)
        x = device.client.adopt(source.ctypes.data, ShapedArray((6,), source.dtype), source, device).placed(None)
        print(jnp.sum(x), *jnp.sum(x).devices())
    """)
    assert out == "15.0 xla_cpu:0\n"


@pytest.mark.parametrize(("setting", "default", "others"), [
    ("xla_cpu", "xla_cpu", "cpu"), ("xla_cpu,cpu", "xla_cpu", "cpu"), ("cpu,xla_cpu", "cpu", "cpu xla_cpu"),
    ("cpu", "cpu", "cpu"), ("", "cpu", "cpu xla_cpu")])
def test_the_settings_choose(setting, default, others):
    """Platforms of plugins that the setting does not name are not looked for; the project's own is always there."""
    out = run("""
        import styrax as jax
        print(jax.default_backend(), *(jax.numpy.ones(3) + 1).devices())
        for name in ("cpu", "xla_cpu", "gpu"):
            try:
                print(jax.devices(name))
            except RuntimeError as error:
                print(error)
    """, JAX_PLATFORMS=setting)
    lines = out.splitlines()
    assert lines[0] == f"{default} {default}:0" and lines[1] == "[CpuDevice(id=0)]"
    known = "xla_cpu" in others.split() or default == "xla_cpu"
    assert lines[2] == ("[XlaCpuDevice(id=0)]" if known else "Unknown backend xla_cpu. Available backends are ['cpu']")
    if discovery.find("cuda"):
        return  # installed, whether there are GPUs or not
    assert lines[3].startswith("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
                               "present. Platforms present are: cpu")


def test_names_that_stand_for_several_platforms(monkeypatch):
    """As `gpu` does for CUDA's and ROCm's."""
    monkeypatch.setitem(discovery.INSTANCES, "host", ("nowhere", "xla_cpu"))
    assert jax.devices("host") == jax.devices("xla_cpu")
    assert discovery.serves("xla_cpu", ["host"]) and discovery.serves("host", ["cpu", "xla_cpu"])
    assert not discovery.serves("cuda", ["host"])


def test_a_setting_that_no_plugin_serves():
    out = run("""
        import styrax as jax
        try:
            jax.numpy.ones(3)
        except RuntimeError as error:
            print(error)
    """, JAX_PLATFORMS="nowhere")
    assert out.startswith("Unable to initialize backend 'nowhere': Backend 'nowhere' is not in the list of known")


def test_several_devices():
    out = run("""
        import numpy as np, styrax as jax, styrax.numpy as jnp
        jax.config.update("jax_num_cpu_devices", 3)
        devices = jax.devices("xla_cpu")
        x = jax.device_put(np.arange(4.0, dtype=np.float32), devices[2])
        f = jax.jit(lambda x: jnp.sin(x) * 2)
        y = f(x)
        assert y.devices() == {devices[2]} and (x + y).devices() == {devices[2]} and jnp.cos(y).device is devices[2]
        z = jax.device_put(y, devices[1])
        assert f(z).devices() == {devices[1]} and z.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
        np.testing.assert_allclose(np.asarray(z), np.sin(np.arange(4)) * 2, rtol=1e-6)
        assert f(np.ones(4)).devices() == {jax.devices()[0]}
        try:
            y + z
        except ValueError as error:
            print(error)
        print(len(devices), jax.default_backend())
    """, JAX_PLATFORMS="xla_cpu")
    assert "with device ids [2] on platform XLA_CPU" in out and out.endswith("3 xla_cpu\n")


def test_doctor(tmp_path):
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    done = subprocess.run([sys.executable, "-m", "styrax", "doctor"], capture_output=True, text=True, timeout=120,
                          cwd=tmp_path, env={**os.environ, discovery.VARIABLE: f"broken:{broken}"})
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ", 1) for line in reversed(done.stdout.splitlines()) if ": " in line)
    assert "does not load: the PJRT plugin" in lines["broken"]
    assert lines["xla_cpu"].endswith("lammps_jax_pjrt_cpu: PJRT 0.115, StableHLO 1.20.0, 1 device (cpu)")
    assert "not used: another one comes first" in done.stdout and lines["tpu"] == "no plugin; install libtpu"
    assert done.stdout.endswith("programs run on cpu\n")


# -- what they are told --------------------------------------------------------------------------------


def test_options_are_never_empty():
    """A plugin ends the process on empty options, and on ones without a device assignment."""
    assignment = "4a08 0801 1001 1a02 0805"  # one replica, one computation, on device 5
    assert options.compile_options([5]) == bytes.fromhex("1a19 08ffffffffffffffffff01 2001 2801" + assignment)
    assert options.compile_options([0], {"name": True})[-10:] == bytes.fromhex("3a0a 0a04 6e616d65 1202 1001")[-10:]


def test_options_of_programs(device):
    """Debug options by name reach the compiler, which refuses unknown ones."""
    client = device.client
    text = "module @m { func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> } }"
    for overrides in ({}, {"xla_cpu_enable_fast_math": True}, {"xla_backend_optimization_level": 1}):
        loaded = client._compile(text, options.compile_options([device.id], overrides))
        client.plugin.call("LoadedExecutable_Destroy", handle=loaded)
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        client._compile(text, options.compile_options([device.id], {"xla_no_such_option": True}))


def test_options_of_clients(monkeypatch):
    assert options.of_client("xla_cpu", 3) == {"cpu_device_count": 3}
    assert options.of_client("cuda", 0) == {}
    config.config.update("jax_cuda_visible_devices", "1,3")
    assert options.of_client("cuda", 0) == {"visible_devices": [1, 3]} and options.of_client("rocm", 0) == {}
    config.config.update("jax_cuda_visible_devices", "all")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    assert options.of_client("cuda", 0) == {"preallocate": False, "memory_fraction": 0.5, "allocator": "platform"}
    assert options.of_client("tpu", 0) == {}
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "nonsense")
    with pytest.raises(RuntimeError, match="XLA_PYTHON_CLIENT_ALLOCATOR env var must be"):
        options.of_client("rocm", 0)


def test_options_that_a_plugin_does_not_know():
    newer = jax.devices("xla_cpu")[0].client.plugin
    before = config.config.jax_pjrt_client_create_options
    config.config.update("jax_pjrt_client_create_options", {"no_such_option": 1})
    try:
        with pytest.raises(jax.errors.JaxRuntimeError, match="no_such_option"):
            PluginBackend("xla_cpu", newer)
    finally:
        config.config.update("jax_pjrt_client_create_options", before)


# -- forks -----------------------------------------------------------------------------------------------


def test_a_forked_child_is_refused():
    """It would wait for threads that it does not have."""
    out = run("""
        import os, signal, warnings
        warnings.simplefilter("ignore")
        import numpy as np, styrax as jax
        device = jax.devices("xla_cpu")[0]
        f = jax.jit(lambda x: x + 1)
        x = jax.device_put(np.ones(3, np.float32), device)
        y = f(x)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            uses = [lambda: f(x), lambda: jax.device_put(np.ones(3), device), lambda: jax.jit(lambda x: x * 2)(x),
                    lambda: x.unsafe_buffer_pointer()]
            for use in uses:
                try:
                    use()
                except RuntimeError as error:
                    assert "forked" in str(error) and "'spawn'" in str(error), error
                else:
                    os._exit(1)
            assert float(jax.jit(lambda x: x + 1)(1.0)) == 2  # the CPU's programs run
            del x, y
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(f(y)[0]))
    """)
    assert out == "0 3.0\n"
