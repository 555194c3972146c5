"""Traces and profiles are what the tools of others read; JAX's own reader is one of them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import styrax
import styrax.numpy as jnp
from styrax.protocol_buffers import decode

# jaxlib makes a class when it first needs it, and ends the process where Python's warning about that is an error
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")


def record(folder: Path, **options: bool) -> Path:
    """Records two nested spans and gives the folder of the files."""
    with styrax.profiler.trace(folder, **options):
        with styrax.profiler.TraceAnnotation("outer", number=-3, share=0.25, word="a"):
            styrax.profiler.annotate_function(lambda: None, name="inner")()
    (found,) = Path(folder, "plugins", "profile").iterdir()
    return found


def described(data) -> list:
    return [(plane.name, line.name, event.name, dict(event.stats), event.duration_ns >= 0, event.start_ns >= 0)
            for plane in data.planes for line in plane.lines for event in line.events]


def test_a_trace_is_read_by_both(tmp_path):
    (file,) = record(tmp_path).glob("*.xplane.pb")
    ours = described(styrax.profiler.ProfileData.from_file(str(file)))
    assert ours == described(jax.profiler.ProfileData.from_file(str(file)))
    assert [(name, stats) for _, _, name, stats, *_ in ours] == [
        ("outer", {"number": -3, "share": 0.25, "word": "a"}), ("inner", {})]


def test_a_trace_of_jax_is_read_alike(tmp_path):
    with jax.profiler.trace(str(tmp_path)):
        with jax.profiler.TraceAnnotation("span", number=3):
            jax.numpy.ones(3).block_until_ready()
    (file,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    ours, theirs = (p.profiler.ProfileData.from_file(str(file)) for p in (styrax, jax))
    assert described(ours) == described(theirs)
    for plane in theirs.planes:
        assert dict(ours.find_plane_with_name(plane.name).stats) == dict(plane.stats)
    assert ours.find_plane_with_name("nothing") is theirs.find_plane_with_name("nothing") is None
    assert any(name == "span" for _, _, name, *_ in described(ours))


def test_options():
    ours, theirs = (p.profiler.ProfileOptions() for p in (styrax, jax))
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert [name for name in dir(ours) if not name.startswith("_")] == names
    for name in names:
        assert getattr(ours, name) == getattr(theirs, name)
        for value in (3, True, "a", {"a": 1}, None):
            outcomes = []
            for options in (ours, theirs):
                try:
                    setattr(options, name, value)
                    outcomes.append(getattr(options, name))
                except TypeError:
                    outcomes.append(TypeError)
            assert outcomes[0] == outcomes[1], (name, value)


def test_sessions_name_folders(tmp_path):
    for package in (styrax, jax):
        options = package.profiler.ProfileOptions()
        options.session_id = package.__name__
        with package.profiler.trace(str(tmp_path), profiler_options=options):
            pass
    assert sorted(path.parent.name for path in tmp_path.glob("plugins/profile/*/*.xplane.pb")) == ["jax", "styrax"]


def test_perfetto(tmp_path):
    found = record(tmp_path, create_perfetto_trace=True) / "perfetto_trace.json.gz"
    events = json.loads(gzip.decompress(found.read_bytes()))["traceEvents"]
    inner, outer = sorted((e for e in events if e["ph"] == "X"), key=lambda e: -e["ts"])
    assert (outer["name"], inner["name"]) == ("outer", "inner")
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_no_spans_without_the_host(tmp_path):
    options = styrax.profiler.ProfileOptions()
    options.host_tracer_level = 0
    with styrax.profiler.trace(tmp_path, profiler_options=options), styrax.profiler.TraceAnnotation("span"):
        pass
    (file,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert described(styrax.profiler.ProfileData.from_file(file)) == []


@pytest.mark.parametrize("data", [b"asdf", b"\x0a\xff", b"\x0a\x02\x08"])
def test_what_is_no_trace(data):
    for package in (jax, styrax):
        with pytest.raises(RuntimeError):
            package.profiler.ProfileData.from_serialized_xspace(data)


def test_memory(tmp_path):
    kept = jnp.zeros((7, 1013), jnp.float32)
    file = tmp_path / "memory.prof"
    styrax.profiler.save_device_memory_profile(file)
    fields: dict[int, list] = {}
    for number, value in decode(gzip.decompress(file.read_bytes())):
        fields.setdefault(number, []).append(value)
    words = [w.decode() for w in fields[6]]
    functions = {f[1]: words[f[2]] for f in (dict(decode(d)) for d in fields[5])}
    samples = {}
    for data in fields[2]:
        (_, where), (_, count), (_, size), *_ = decode(data)
        samples[functions[where]] = count, size
    assert samples[str(kept.aval)] == (1, kept.nbytes)
    assert [words[dict(decode(d))[1]] for d in fields[1]] == ["allocations", "space"]


def test_servers():
    server = styrax.profiler.start_server(0)
    try:
        with pytest.raises(ValueError, match="one profiler server"):
            styrax.profiler.start_server(0)
        assert server.port > 0
    finally:
        styrax.profiler.stop_server()
    with pytest.raises(ValueError, match="No active"):
        styrax.profiler.stop_server()
    with pytest.raises(RuntimeError, match="no profiler server"):
        styrax.profiler.register_subprocess(1, server.port)


CHILD = """
import sys, styrax.profiler as p
print(p.start_server(0).port, flush=True)
for _ in sys.stdin:
    with p.TraceAnnotation("child"):
        pass
    print("done", flush=True)
"""


def test_a_subprocess_is_recorded(tmp_path):
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={"PYTHONPATH": str(Path(styrax.__file__).parents[1])}) as child:
        unregister = styrax.profiler.register_subprocess(child.pid, int(child.stdout.readline()))
        try:
            with pytest.raises(RuntimeError, match="already"):
                styrax.profiler.register_subprocess(child.pid, 1)
            with styrax.profiler.trace(tmp_path):
                child.stdin.write("\n")
                child.stdin.flush()
                child.stdout.readline()
        finally:
            unregister()
            child.stdin.close()
    (file,) = tmp_path.glob(f"plugins/profile/*/*_{child.pid}.xplane.pb")
    assert [name for _, _, name, *_ in described(jax.profiler.ProfileData.from_file(str(file)))] == ["child"]
