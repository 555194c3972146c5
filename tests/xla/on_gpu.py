"""What needs a real GPU: the plugins' tests on one, exchange of arrays with other libraries, and programs' times beside
JAX's. Prints one table; ends with status 1 if something failed.

    PYTHONPATH=src:. python tests/xla/on_gpu.py [--platform cuda] [--quick]

It needs a GPU's PJRT plugin, pytest and JAX (whose version is printed); PyTorch and CuPy where they are installed.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROUNDS = 7  # of which the median counts


# -- tests -------------------------------------------------------------------------------------------


class Outcomes:
    """What became of the tests, by the file and the function."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or not report.passed:
            name = report.nodeid.partition("[")[0].rpartition("/")[2]
            self.counts.setdefault(name, Counter())[report.outcome] += 1


def tests(platform: str) -> Iterator[tuple[str, str, bool]]:
    import pytest

    os.environ["STYRAX_TEST_PLATFORM"] = platform
    outcomes = Outcomes()
    files = [str(HERE / "pjrt" / f"test_{name}.py") for name in ("arrays", "programs", "callbacks", "operations")]
    several = ["-n", "8"] if importlib.util.find_spec("xdist") else []
    pytest.main([*several, "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:benchmark", *files],
                plugins=[outcomes])
    for name, counts in outcomes.counts.items():
        yield name, ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), not counts["failed"]


# -- exchange ------------------------------------------------------------------------------------------


def exchange(platform: str) -> Iterator[tuple[str, str, bool]]:
    import styrax as jax
    import styrax.numpy as jnp

    device = jax.devices(platform)[0]
    source = np.arange(12, dtype=np.float32).reshape(3, 4)

    def check(name: str, run: Callable[[], bool]) -> tuple[str, str, bool]:
        try:
            good = run()
            return name, "equal" if good else "differs", good
        except Exception as error:
            return name, f"{type(error).__name__}: {error}".splitlines()[0][:100], False

    def refused(run: Callable[[], object]) -> bool:
        try:
            run()
        except (BufferError, RuntimeError, TypeError):
            return True
        return False

    yield check("DLPack to NumPy is refused", lambda: refused(lambda: np.from_dlpack(jax.device_put(source, device))))
    if importlib.util.find_spec("torch"):
        import torch

        def to_torch() -> bool:
            x = jax.device_put(source, device)
            y = torch.from_dlpack(x)
            z = jax.jit(lambda x: x + 1, donate_argnums=0)(x)  # what others see is not taken
            return y.is_cuda and bool((y.cpu().numpy() == source).all()) and bool((np.asarray(z) == source + 1).all())

        def from_torch() -> bool:
            y = torch.arange(1 << 24, device="cuda", dtype=torch.float32).reshape(4096, 4096)
            y = (y @ y.T) * 0 + 3  # under way when it is handed over
            x = jnp.from_dlpack(y)
            same = x.unsafe_buffer_pointer() == y.data_ptr() and x.devices() == {device}
            del y
            return same and float(jnp.max(x)) == float(jnp.min(x)) == 3

        def bfloat16() -> bool:
            x = jnp.from_dlpack(torch.full((5, 7), 1.5, device="cuda", dtype=torch.bfloat16))
            return x.dtype == jnp.bfloat16 and bool(jnp.all(x == 1.5))

        yield check("DLPack to PyTorch", to_torch)
        yield check("DLPack from PyTorch", from_torch)
        yield check("bfloat16 from PyTorch", bfloat16)
        yield check("a transposed tensor is refused", lambda: refused(
            lambda: jnp.from_dlpack(torch.ones((3, 4), device="cuda").T)))
    if importlib.util.find_spec("cupy"):
        import cupy

        yield check("CuPy by __cuda_array_interface__",
                    lambda: bool((cupy.asarray(jax.device_put(source, device)).get() == source).all()))
        yield check("DLPack from CuPy",
                    lambda: bool((np.asarray(jnp.from_dlpack(cupy.asarray(source))) == source).all()))


# -- processes -------------------------------------------------------------------------------------------


def processes(platform: str) -> Iterator[tuple[str, str, bool]]:
    """Programs over two processes, each with a GPU where there are two."""
    import socket

    import styrax as jax

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    several = int(jax.local_device_count(platform) > 1)
    jobs = [subprocess.Popen([sys.executable, "-m", "tests.xla.processes_on_gpus", platform, str(i), address,
                              str(i * several), str(several)], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for i in range(2)]
    try:
        ends = [job.communicate(timeout=240) for job in jobs]
    except subprocess.TimeoutExpired:
        yield "two processes", "did not end", False
        return
    finally:
        for job in jobs:
            job.kill()
    lines = [line for line in ends[0][0].splitlines() if line.startswith("[[")]
    if not lines:
        yield "two processes", (ends[0][1].strip() or "nothing was told").splitlines()[-1][:100], False
    yield from json.loads(lines[0]) if lines else ()
    if not several:
        yield "communication", "not tried: there is one GPU", True


# -- factorisations ------------------------------------------------------------------------------------

SHAPES = ((5, 5), (1, 1), (3, 7, 7), (2, 3, 4, 4), (9, 4), (4, 9), (2, 60, 40), (300, 300), (1300, 1100), (1100, 1300))


def factorisations(platform: str) -> Iterator[tuple[str, str, bool]]:
    """Products of the factors against the matrices: the largest difference by the matrix's norm, in epsilons."""
    import styrax as jax
    import styrax.numpy as jnp
    from styrax.lax import linalg

    device = jax.devices(platform)[0]
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    dagger = lambda x: np.conj(np.swapaxes(x, -1, -2))
    rng = np.random.default_rng(0)

    def lu(a: Any) -> Any:
        packed, _, order = linalg.lu(a)
        k = min(a.shape[-2:])
        lower = jnp.tril(packed[..., :k], -1) + jnp.eye(a.shape[-2], k, dtype=a.dtype)
        return lower @ jnp.triu(packed[..., :k, :]), order

    def svd(a: Any, full: bool = False) -> Any:
        u, s, vh = jnp.linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        return (u[..., :k] * s[..., None, :].astype(a.dtype)) @ vh[..., :k, :]

    def eigh(a: Any) -> Any:
        w, v = jnp.linalg.eigh(a)
        return (v * w[..., None, :].astype(a.dtype)) @ jnp.conj(jnp.swapaxes(v, -1, -2))

    def qr(a: Any) -> Any:
        q, r = jnp.linalg.qr(a)
        return q @ r

    def cholesky(a: Any) -> Any:
        factor = jnp.linalg.cholesky(a)
        return factor @ jnp.conj(jnp.swapaxes(factor, -1, -2))

    def pivoted(found: Any, a: Any) -> Any:
        rows = np.take_along_axis(a, np.asarray(found[1])[..., None], -2)
        return np.asarray(found[0]), rows

    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        worst: dict[str, float] = {}

        def note(name: str, found: Any, wanted: Any, dtype: Any = dtype, worst: dict[str, float] = worst) -> None:
            error = np.abs(np.asarray(found) - wanted).max() / np.linalg.norm(wanted, axis=(-2, -1)).max()
            worst[name] = max(worst.get(name, 0.0), float(error / np.finfo(dtype).eps))

        for shape in SHAPES:
            a = rng.normal(size=shape)
            a = (a + 1j * rng.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else a).astype(dtype)
            put = jax.device_put(a, device)
            note("lu", *pivoted(jax.jit(lu)(put), a))
            note("qr", jax.jit(qr)(put), a)
            note("svd", jax.jit(svd)(put), a)
            if max(shape) < 100:
                note("full svd", jax.jit(functools.partial(svd, full=True))(put), a)
            s = jax.jit(lambda a: jnp.linalg.svd(a, compute_uv=False))(put)
            note("singular values", np.asarray(s)[..., None], np.linalg.svd(a, compute_uv=False)[..., None])
            if shape[-1] == shape[-2]:
                own, there = a + dagger(a), jax.device_put(a + dagger(a), device)
                note("eigh", jax.jit(eigh)(there), own)
                positive = a @ dagger(a) + shape[-1] * np.eye(shape[-1], dtype=dtype)
                note("cholesky", jax.jit(cholesky)(jax.device_put(positive, device)), positive)
                note("solve", a @ np.asarray(jax.jit(jnp.linalg.solve)(put, put)), a)
        bad = jax.device_put(-np.eye(3, dtype=dtype), device)
        worst["cholesky of a negative matrix is no number"] = 0.0 if np.isnan(np.asarray(jnp.linalg.cholesky(bad))[
            np.tril_indices(3)]).all() else np.inf
        for name, error in worst.items():
            yield f"{name}, {np.dtype(dtype).name}", f"{error:.1f} ε", error < 1000
    jax.config.update("jax_enable_x64", False)


# -- times -----------------------------------------------------------------------------------------------


def programs(jax: Any) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Programs of users' kinds and their arguments, the same for both implementations."""
    jnp, lax = jax.numpy, jax.lax
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)

    def layers(sizes: tuple[int, ...]) -> list[Any]:
        return [(normal(m, n) / np.float32(m) ** 0.5, np.zeros(n, np.float32)) for m, n in zip(sizes, sizes[1:])]

    def network(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = jax.nn.gelu(x @ w + b)
        w, b = params[-1]
        return x @ w + b

    def step(params: Any, x: Any, y: Any) -> Any:
        loss = lambda p: -jnp.mean(jnp.sum(jax.nn.log_softmax(network(p, x)) * y, axis=-1))
        value, slopes = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def recurrence(w: Any, xs: Any) -> Any:
        def turn(h: Any, x: Any) -> Any:
            h = jnp.tanh(h @ w + x)
            return h, jnp.sum(h)

        return lax.scan(turn, jnp.zeros((64, 256)), xs)

    spd = normal(512, 512)
    spd = spd @ spd.T + 512 * np.eye(512, dtype=np.float32)
    half = normal(4096, 4096).astype(jnp.bfloat16)
    return {
        "scalar add": (lambda x: x + 1, [np.float32(1)]),
        "a chain on 10⁷": (lambda x: jnp.sum(jnp.sin(x) * jnp.exp(-x * x)), [normal(10_000_000)]),
        "product 4096², bfloat16": (lambda x: x @ x, [half]),
        "product 2048², float32": (lambda x: x @ x, [normal(2048, 2048)]),
        "training step, 784-1024-1024-10": (step, [layers((784, 1024, 1024, 10)), normal(512, 784),
                                                   np.eye(10, dtype=np.float32)[rng.integers(0, 10, 512)]]),
        "attention, gradient": (jax.grad(lambda q, k, v: jnp.sum(attention(q, k, v) ** 2)),
                                [normal(8, 512, 8, 64) for _ in range(3)]),
        "recurrent layer of 200": (recurrence, [normal(256, 256) / 16, normal(200, 64, 256)]),
        "convolution": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
                        [normal(32, 64, 56, 56), normal(64, 64, 3, 3)]),
        "sort of 10⁶": (jnp.sort, [normal(1_000_000)]),
        "cumulative sum of 10⁶": (jnp.cumsum, [normal(1_000_000)]),
        "normal numbers, 10⁷": (lambda seed: jnp.sum(jax.random.normal(jax.random.key(seed), (10_000_000,))),
                                [np.int32(0)]),
        "fft of 2¹⁸": (lambda x: jnp.abs(jnp.fft.fft(x)), [normal(1 << 18)]),
        "Cholesky, 512": (jnp.linalg.cholesky, [spd]),
        "solve, 512": (lambda a: jnp.linalg.solve(a, a[0]), [spd]),
        "eigh, 128": (lambda a: jnp.linalg.eigh(a)[0], [spd[:128, :128]]),
        "svd, 128": (lambda a: jnp.linalg.svd(a)[1], [spd[:128, :128]]),
        "qr, 256": (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), [spd[:256, :256]]),
        "scatter-add of 10⁶": (lambda x, i: jnp.zeros(1000).at[i].add(x),
                               [normal(1_000_000), rng.integers(0, 1000, 1_000_000)]),
    }


def times(name: str) -> None:
    """Prints the times of an implementation as JSON: first call, steady call in seconds, and sums of the results."""
    jax = importlib.import_module(name)
    importlib.import_module(f"{name}.numpy")
    told = {}
    for label, (function, args) in programs(jax).items():
        try:
            args = jax.device_put(args)
            run = jax.jit(function)
            start = time.perf_counter()
            out = jax.block_until_ready(run(*args))
            first = time.perf_counter() - start
            count = max(1, min(1000, int(0.05 / _timed(jax, run, args, 2))))
            steady = statistics.median(_timed(jax, run, args, count) for _ in range(ROUNDS))
            digest = [float(np.abs(np.asarray(x).astype(np.float64)).mean()) for x in jax.tree.leaves(out)]
            told[label] = {"first": first, "steady": steady, "digest": digest}
        except Exception as error:
            told[label] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    print(json.dumps({"version": jax.__version__, "programs": told}))


def _timed(jax: Any, run: Callable[..., Any], args: Any, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        out = run(*args)
    jax.block_until_ready(out)
    return (time.perf_counter() - start) / count


def beside_jax(platform: str) -> Iterator[tuple[str, str, bool]]:
    found = {}
    for peer in ("styrax", "jax"):
        done = subprocess.run([sys.executable, __file__, "--times", peer], capture_output=True, text=True,
                              env={**os.environ, "JAX_PLATFORMS": platform})
        if done.returncode:
            yield f"times of {peer}", done.stderr[-300:], False
            return
        found[peer] = json.loads(done.stdout.splitlines()[-1])
    yield "JAX's version", found["jax"]["version"], True
    ratios = []
    for label, theirs in found["jax"]["programs"].items():
        ours = found["styrax"]["programs"][label]
        if "error" in ours or "error" in theirs:
            yield label, f"ours: {ours.get('error', 'runs')}; JAX's: {theirs.get('error', 'runs')}", "error" not in ours
            continue
        close = np.allclose(ours["digest"], theirs["digest"], rtol=2e-2)
        ratios.append((ours["steady"] / theirs["steady"], ours["first"] / theirs["first"]))
        yield label, (f"{1e6 * ours['steady']:9.1f} µs, JAX {1e6 * theirs['steady']:9.1f}: {ratios[-1][0]:.2f}; first "
                      f"call {1e3 * ours['first']:6.0f} ms, JAX {1e3 * theirs['first']:6.0f}: {ratios[-1][1]:.2f}"
                      + ("" if close else f"; RESULTS DIFFER {ours['digest']} {theirs['digest']}")), close
    steady, first = np.exp(np.mean(np.log(ratios), axis=0))
    yield "geometric means", f"steady {steady:.2f}, first call {first:.2f}", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--quick", action="store_true", help="without the plugins' tests")
    parser.add_argument("--times", metavar="PEER", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.times:
        times(told.times)
        return 0
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several libraries share the GPU
    parts = [exchange, processes, factorisations, beside_jax]
    if not told.quick:
        parts.insert(0, tests)
    failed = 0
    rows = []
    for part in parts:
        rows.append((f"-- {part.__name__.replace('_', ' ')}", "", True))
        rows += part(told.platform)
    for label, text, good in rows:
        failed += not good
        print(f"{'  ' if good else '✗ '}{label:<44} {text}")
    print(f"{failed} failed" if failed else "all is well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
