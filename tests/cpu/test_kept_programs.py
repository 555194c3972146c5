"""Programs that an earlier process compiled: found by their jaxprs, of the same bits, never where something differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import styrax
from styrax.cpu import kept_programs, store

SOURCE = Path(styrax.__file__).parent

# Prints digests of results, then whether the compiler was loaded.
PROGRAMS = """
import hashlib, sys
import numpy as np
import styrax as jax, styrax.numpy as jnp
from styrax import lax

def show(tree):
    for x in jax.tree.leaves(tree):
        x = np.asarray(x)
        print(x.dtype, x.shape, hashlib.sha1(np.ascontiguousarray(x).tobytes()).hexdigest())

x = jnp.asarray(np.random.default_rng(0).standard_normal((12, 12)).astype("float32"))
weights = np.random.default_rng(1).standard_normal((12, 3)).astype("float32")
show(jax.jit(lambda x: jax.nn.softmax(jnp.tanh(x @ x.T)))(x))
show(jax.jit(jax.grad(lambda x: jax.nn.relu(x @ weights).sum() + jnp.sin(x).mean()))(x))
show(jax.jit(jax.vmap(lambda r: jnp.cumsum(r) / (1 + r @ r)))(x))
show(jax.jit(lambda x: lax.while_loop(lambda c: c[1].sum() < 1e3, lambda c: (c[0] + 1, c[1] * 2), (0, abs(x))))(x))
show(jax.jit(lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x))(x))
show(jax.jit(lambda x: lax.cond(x.sum() > 0, jnp.exp, jnp.cos, x))(x))
show(jax.jit(lambda x: jnp.linalg.solve(x, x[:, :2]) + jnp.fft.fft(x).real[:, :2])(x))
show(jax.jit(lambda x: jnp.sort(x, axis=0)[jnp.argmax(x, axis=1)])(x))
show(jax.jit(lambda k: jax.random.normal(k, (5,)))(jax.random.key(3)))
show(jax.jit(lambda x: (x.astype("bfloat16") * 3, x.astype("float16"), x > 0, (100 * x).astype("int8")))(x))
show(jax.jit(lambda x: jnp.where(x > 0, float("nan"), x) + 1j)(x))
show(jax.jit(lambda x, y: (x + y, y), donate_argnums=0)(x + 0, x))
show(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x))
show([x + 1, x[2:5], x.mean(0), jnp.arange(7) * 2, jnp.zeros((0, 3)), jnp.dot(x, x), x.reshape(-1)[::5]])
show([y + 1, y.sum(1)] if (y := jnp.ones((4, 9))).size else [])
compiled = jax.jit(lambda x: jnp.exp(x) @ x).lower(x).compile()
print(len(compiled.as_text()) > 100, compiled.cost_analysis()["flops"] > 0, compiled.memory_analysis() is not None)
show(compiled(x))
"""
LOADED = "\nprint('compiler' if 'styrax.compile.pipeline' in sys.modules else 'disk')"


def run(code: str, cache: Path, source: Path = SOURCE.parent, **environment: str) -> list[str]:
    variables = {**os.environ, "STYRAX_DEBUG": "", "STYRAX_CACHE_DIR": str(cache), "PYTHONPATH": str(source),
                 **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_results_have_the_same_bits(tmp_path):
    first = run(PROGRAMS, tmp_path)
    assert run(PROGRAMS, tmp_path) == first == run(PROGRAMS, tmp_path, STYRAX_CACHE="0")


@pytest.mark.parametrize("x64", ["0", "1"])
def test_the_compiler_is_not_loaded(tmp_path, x64):
    # all but what asks for loops and costs
    code = PROGRAMS[: PROGRAMS.index("compiled =")] + LOADED
    first = run(code, tmp_path, JAX_ENABLE_X64=x64)
    assert first[-1] == "compiler"
    again = run(code, tmp_path, JAX_ENABLE_X64=x64)
    assert again[-1] == "disk"
    assert again[:-1] == first[:-1]


SMALL = """
import sys
import numpy as np
import styrax as jax, styrax.numpy as jnp
x = jnp.asarray(np.arange(6, dtype="float32"))
"""


def prints(expression: str) -> str:
    return f"{SMALL}{expression}{LOADED}"


@pytest.mark.parametrize("before, after", [
    ("c = np.ones(6, 'f4')\nprint(jax.jit(lambda x: x + c)(x))",
     "c = 2 * np.ones(6, 'f4')\nprint(jax.jit(lambda x: x + c)(x))"),
    ("print(jax.jit(lambda x: x * 2)(x))", "print(jax.jit(lambda x: x * 3)(x))"),
    ("print(jax.jit(lambda x: x * np.float32(0))(x))", "print(jax.jit(lambda x: x * np.float32(-0.))(x))"),
    ("n = np.uint32(0x7fc00000).view('f4')\nprint(np.asarray(jax.jit(lambda x: jnp.full(2, n))(x)).view('u4'))",
     "n = np.uint32(0xffc00001).view('f4')\nprint(np.asarray(jax.jit(lambda x: jnp.full(2, n))(x)).view('u4'))"),
    ("print(jax.jit(lambda x: jnp.sum(x))(x))", "print(jax.jit(lambda x: jnp.max(x))(x))"),
    ("print(jax.jit(lambda x: np.float32(0.1) / (x / 3))(x[1:]))",
     "jax.config.update('styrax_numerics', 'strict')\nprint(jax.jit(lambda x: np.float32(0.1) / (x / 3))(x[1:]))"),
    ("print(jax.jit(lambda x: x[1:3])(x))", "print(jax.jit(lambda x: x[2:4])(x))"),
])
def test_programs_that_differ_are_others(tmp_path, before, after):
    alone = run(prints(after), tmp_path / "other")
    run(prints(before), tmp_path)
    assert run(prints(after), tmp_path) == alone


def test_eager_operations_for_other_sizes(tmp_path):
    code = SMALL + "n = int(sys.argv[1]) if sys.argv[1:] else 0\n"
    sizes = [3, 17, 1, 200, 64]
    for n in sizes:
        text = code + f"n = {n}\ny = jnp.asarray(np.arange(2 * n, dtype='f4').reshape(n, 2))\nprint((y + 1).sum(), " \
                      "y.mean(0), (y @ y.T).shape, y[:, 1:].max(), y.reshape(2, -1)[0, :1])"
        assert run(text, tmp_path) == run(text, tmp_path / "none", STYRAX_CACHE="0")


def test_a_changed_module_makes_programs_void(tmp_path):
    package = tmp_path / "source" / "styrax"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = prints("print(jax.jit(jnp.sin)(x))")
    old = 1_600_000_000
    for file in package.rglob("*.py"):
        os.utime(file, (old, old))
    run(code, tmp_path, package.parent)
    assert run(code, tmp_path, package.parent)[-1] == "disk"
    rules = package / "lax" / "elementwise" / "families.py"
    os.utime(rules, (old + 1, old + 1))
    assert run(code, tmp_path, package.parent)[-1] == "compiler"


def test_modules_newer_than_the_process_are_not_trusted(tmp_path):
    package = tmp_path / "source" / "styrax"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    late = 4_000_000_000
    os.utime(package / "lax" / "casting.py", (late, late))
    code = prints("print(jax.jit(jnp.sin)(x))")
    run(code, tmp_path, package.parent)
    assert run(code, tmp_path, package.parent)[-1] == "compiler"


def test_copies_of_the_package_have_programs_of_their_own(tmp_path):
    code = "import sys, styrax as jax\nprint(jax.jit(lambda x: x + 1)(1.5))" + LOADED
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "styrax").symlink_to(SOURCE)
    cache = tmp_path / "cache"
    assert run(code, cache)[-1] == run(code, cache, copy)[-1] == "compiler"
    assert run(code, cache)[-1] == run(code, cache, copy)[-1] == "disk"


def test_other_threads_and_instructions_have_programs_of_their_own(tmp_path):
    code = prints("print(jax.jit(jnp.sin)(x))")
    run(code, tmp_path)
    assert run(code, tmp_path, STYRAX_NUM_THREADS="7")[-1] == "compiler"
    assert run(code, tmp_path, XLA_FLAGS="--xla_cpu_max_isa=SSE4_2")[-1] == "compiler"
    assert run(code, tmp_path)[-1] == "disk"


KERNELS = """
import sys
import numpy as np
import styrax as jax, styrax.numpy as jnp
x = np.random.default_rng(0).standard_normal((80, 90)).astype("float32")
w = np.ones((90, 1000), "float32")
f = jax.jit(lambda x: (jnp.fft.fft(x), x.astype("bfloat16") @ x.T.astype("bfloat16"), x[:3] @ w))
print([np.asarray(y).tobytes().hex()[:60] for y in f(x)])
print(sorted(name for name in ("butterflies", "microkernels", "turning") if f"styrax.cpu.{name}" in sys.modules))
"""


def test_functions_that_programs_call_are_found_without_their_text(tmp_path):
    first, homes = run(KERNELS, tmp_path)
    assert "butterflies" in homes and "microkernels" in homes
    assert run(KERNELS, tmp_path) == [first, "[]"]
    for file in tmp_path.iterdir():  # what of the code is gone is compiled again
        if file.is_file():
            file.unlink()
    assert run(KERNELS, tmp_path) == [first, homes]
    assert run(KERNELS, tmp_path) == [first, "[]"]


@pytest.mark.parametrize("program", [
    "f = jax.jit(lambda x: jax.pure_callback(lambda x: 2 * x, x, x))",
    "from styrax.extend.core import Primitive\nfrom styrax.interpreters import mlir\np = Primitive('p')\n"
    "p.def_abstract_eval(lambda x: x)\nmlir.register_lowering(p, mlir.lower_fun(lambda x: x * FACTOR, False))\n"
    "f = jax.jit(lambda x: p.bind(x))",
])
def test_programs_with_functions_of_the_user_are_compiled(tmp_path, program):
    for factor in (2, 3):
        code = prints(f"FACTOR = {factor}\n{program.replace('2 * x', f'{factor} * x')}\nprint(f(x)[1])")
        assert run(code, tmp_path)[-2:] == [f"{factor}.0", "compiler"]


MAPS = """
import sys
import numpy as np
import styrax as jax, styrax.numpy as jnp
from styrax.sharding import Mesh, NamedSharding, PartitionSpec as P
devices = np.array(jax.devices())[::STEP]
mesh = Mesh(devices, ("i",))
x = jax.device_put(np.arange(16.0).reshape(8, 2), NamedSharding(mesh, P("i")))
turn = [(k, (k + 1) % 4) for k in range(4)]
f = jax.jit(jax.shard_map(lambda x: jax.lax.ppermute(x, "i", turn) + jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"),
                          out_specs=P("i")))
y = f(x)
print(np.asarray(y).tolist(), [(s.device.id, s.data.tolist()) for s in y.addressable_shards])
print(jax.pmap(lambda x: jax.lax.pmean(x, "d"), axis_name="d")(np.arange(8.0).reshape(4, 2)).tolist())
"""


def test_programs_over_several_devices_are_kept(tmp_path):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    ahead, turned = (MAPS.replace("STEP", step) + LOADED for step in ("1", "-1"))
    first = run(ahead, tmp_path, **flags)
    assert first[-1] == "compiler"
    assert run(ahead, tmp_path, **flags) == [*first[:-1], "disk"]
    other = run(turned, tmp_path, **flags)
    assert other[0] != first[0] and other[1] == first[1]
    assert run(turned, tmp_path, **flags)[:-1] == other[:-1] == run(turned, tmp_path / "empty", **flags)[:-1]


def test_damaged_entries_do_no_harm(tmp_path):
    code = prints("print(jax.jit(jnp.sin)(x))")
    first = run(code, tmp_path)
    for file in (tmp_path / "programs").iterdir():
        file.write_bytes(file.read_bytes()[:-7] + b"damaged")
    assert run(code, tmp_path) == first
    assert run(code, tmp_path)[-1] == "disk"


def test_entries_of_another_version_are_not_read(tmp_path):
    code = prints("print(jax.jit(jnp.sin)(x))")
    first = run(code, tmp_path)
    kept = store.Store(str(tmp_path / "programs"))
    for file in (tmp_path / "programs").iterdir():
        for other in (b"", b"short", bytes(store.KEY_BYTES) + b"of another form"):
            kept.put(bytes.fromhex(file.name), other)
            again = run(code, tmp_path)
            assert again == first or file.name == kept_programs._USUAL.hex() and again[:-1] == first[:-1]


def test_eager_operations_that_unify_sizes_are_found(tmp_path):
    # whether rows and columns are as many is asked while the program is compiled, if not before
    code = prints("y = jnp.asarray(np.ones((5, 5), 'f4'))\nprint((y @ y + y.T).sum(), jnp.trace(y), (y + y[0]).max())")
    first = run(code, tmp_path)
    again = run(code, tmp_path)
    assert again[:-1] == first[:-1] and again[-1] == "disk"


def test_libraries_that_programs_call_are_opened_ahead(tmp_path):
    waits = ("\nfrom styrax.cpu import background, kept_programs, libraries\n"
             "for done in kept_programs._ahead: done.wait()\n"
             "with background._changed: background._changed.wait_for(lambda: not background._works, 20)\n"
             "print(len(libraries._opened))")
    start = prints("jnp.asarray(x)") + waits  # calls none
    assert run(prints("jax.jit(jnp.sin)(x)"), tmp_path)[-1] == "compiler"
    assert run(start, tmp_path)[-1] == "0"
    run(prints("jax.jit(lambda a: a @ a)(np.ones((300, 300), 'c8'))"), tmp_path)
    assert run(start, tmp_path)[-1] == "1"


def test_a_program_is_written_though_the_process_ends_at_once(tmp_path):
    code = prints("jax.jit(lambda x: jnp.sin(x) + jnp.cos(x))(x)")
    run(code, tmp_path)
    assert run(code, tmp_path)[-1] == "disk"


def test_unused_captures_are_freed(tmp_path):
    # code from the disk keeps nothing of its jaxpr alive through a cycle
    code = SMALL + """
import gc, weakref
gc.collect(); gc.disable()
def f():
    big = jnp.ones(50) * 3
    g = jax.jit(lambda x: x[0] + big)
    g(x).block_until_ready()
    return weakref.ref(big)
from styrax.cpu import kept_programs
r = f()
jax.clear_caches()
kept_programs.settle()  # who writes it has it in hand
print(r() is None)
"""
    assert run(code, tmp_path) == run(code, tmp_path) == ["True"]
