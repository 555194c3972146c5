"""Programs begin as code that LLVM generates quickly and go on as optimised code, with the same bits."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.cpu import effort, llvm, microkernels, runtime, tiers
from styrax.cpu.executable import Executable

RNG = np.random.default_rng(7)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def edges(dtype: Any) -> np.ndarray:
    return np.array([0.0, -0.0, np.inf, -np.inf, 1e-40, -3.5, 7.0] * 30, dtype)


def three_by_three(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)) @ v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: jnp.tanh(x) * jnp.exp(-x * x) + jnp.log1p(jnp.abs(x)), (floats(700),)),
    "edges": (lambda x: (jnp.sqrt(x), 1 / x, jnp.maximum(x, 0.5), jnp.sin(x) - x, jnp.floor(x)), (edges(np.float32),)),
    "softmax": (lambda x: jax.nn.softmax(x, 0) + jax.nn.log_softmax(x), (floats(40, 53),)),
    "sums of products": (lambda x, y: ((x * y).sum(0), jnp.cumsum(x * y - x, 1), (x * y + y * x).sum()),
                         (floats(37, 41), floats(37, 41))),
    "product": (lambda x, y: x @ y + 1, (floats(33, 29), floats(29, 45))),
    "gradient": (jax.grad(lambda w: jnp.tanh(jnp.tanh(floats(9, 20) @ w) @ w.T).sum()), (floats(20, 8),)),
    "convolution": (three_by_three, (floats(2, 9, 9, 5), floats(3, 3, 5, 7))),
    "attention": (attention, (floats(2, 17, 8), floats(2, 17, 8), floats(2, 17, 8))),
    "scan": (lambda x: lax.scan(lambda c, y: (c * 0.9 + y, jnp.sin(c)), jnp.zeros(6), x), (floats(50, 6),)),
    "sorting": (lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x)), (floats(300),)),
    "transform": (lambda x: jnp.fft.fft(x), (floats(6, 60) + 1j * floats(6, 60),)),
    "many transforms": (lambda x: jnp.fft.rfft(x), (floats(64, 128),)),
    "complex": (lambda x: x * x.conj() + jnp.exp(x) / x, ((floats(90) + 1j * floats(90)).astype(np.complex64),)),
    "bfloat16": (lambda x: (x * x + x).sum(0) * jnp.exp(x), (jnp.asarray(floats(30, 31), "bfloat16"),)),
    "float16": (lambda x: (x @ x.T) / (1 + x[:, :1] ** 2), (jnp.asarray(floats(30, 31), "float16"),)),
    "integers": (lambda x: (x // 7, x % 5, x << 2, jnp.cumsum(x), lax.population_count(x)),
                 (RNG.integers(-1000, 1000, 500).astype(np.int32),)),
    "bytes": (lambda x: jnp.dot(x, x.T, preferred_element_type="int32"), (RNG.integers(-99, 99, (40, 64), np.int8),)),
    "random numbers": (lambda x: jax.random.normal(jax.random.key(3), (400,)) * x, (floats(400),)),
    "gather": (lambda x, i: x[i] + x.at[i].add(1.0).sum(), (floats(50, 3), RNG.integers(0, 50, 80))),
    "small matrices": (lambda x: jnp.linalg.cholesky(x @ x.mT + 5 * jnp.eye(5)), (floats(20, 5, 5),)),
    "empty": (lambda x: (x.sum(), jnp.concatenate([x, x])), (floats(0),)),
}


def bits(outs: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(outs)]


def named(name: str) -> Executable:
    """The code of the latest program of a name."""
    return [x for x in gc.get_objects() if isinstance(x, Executable) and x.name == name][-1]


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found compiled."""
    monkeypatch.setenv("STYRAX_CACHE", "0")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = runtime.num_threads()
    runtime.set_num_threads(request.param)
    yield
    runtime.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_do_not_depend_on_the_tier(name: str, threads: None) -> None:
    function, args = PROGRAMS[name]
    args = jax.tree.map(jnp.asarray, args)
    compiled = jax.jit(lambda *a: function(*a))
    first = bits(compiled(*args))
    compiled(*args)
    tiers.settle()
    assert bits(compiled(*args)) == first


def test_hot_programs_are_optimised() -> None:
    @jax.jit
    def tier_once(x: Any) -> Any:
        return jnp.tanh(x * 3.25).sum() + x

    x = jnp.arange(5000.0)
    want = np.tanh(np.arange(5000.0) * 3.25).sum() + np.arange(5000.0)
    tier_once(x)
    tiers.settle()
    code = named("tier_once")
    assert code.promotion is not None and code.promotion.calls == 1
    quick = code.library
    np.testing.assert_allclose(tier_once(x), want, rtol=1e-5)
    tiers.settle()
    assert code.promotion is None and code.library is not quick and code.library.source[1] == 1
    np.testing.assert_allclose(tier_once(x), want, rtol=1e-5)


def test_long_calls_begin_optimised() -> None:
    @jax.jit
    def tier_long(x: Any) -> Any:
        return lax.fori_loop(0, 1_000_000, lambda i, c: c * 0.99 + jnp.sin(c), x)

    tier_long(jnp.ones(1000)).block_until_ready()
    assert named("tier_long").promotion is None


@pytest.mark.parametrize("donated", [False, True])
def test_loops_of_unknown_length_that_turn_for_long_are_optimised(donated: bool) -> None:
    @partial(jax.jit, donate_argnums=(0,) if donated else ())
    def tier_unknown(x: Any, bound: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < bound, lambda c: c + 1, x)

    assert tier_unknown(jnp.zeros(100), 10)[1] == 10
    code = named("tier_unknown")
    assert (code.promotion is None) == donated
    assert tier_unknown(jnp.zeros(100), 2_000_000)[1] == 2_000_000
    assert code.promotion is None and code.library.source[1] == 1


def test_operations_for_all_shapes_are_tiered() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    got = [np.asarray(jax.scipy.special.xlogy(x[:k + 1] + 1.5, x[:k + 1] + 2.5)) for k in range(3)]
    tiers.settle()
    got.append(np.asarray(jax.scipy.special.xlogy(x + 1.5, x + 2.5)))
    for k, y in enumerate(got):
        np.testing.assert_allclose(y, (x + 1.5)[:k + 1] * np.log((x + 2.5)[:k + 1]), rtol=1e-5)


def test_code_that_is_at_hand_is_taken() -> None:
    def program(x: Any) -> Any:
        return jnp.tanh(x * 7.75).sum(0) + x[0]

    program.__name__ = "tier_again"
    x = jnp.arange(6000.0).reshape(3, 2000)
    for _ in range(2):
        jax.jit(program)(x)
        jax.jit(program)(x)
    before = named("tier_again")
    tiers.settle()
    jax.clear_caches()
    jax.jit(program)(x)
    assert before.library.source[1] == 1 and named("tier_again").library is before.library


def test_the_debugger_can_ask_for_optimised_code() -> None:
    @jax.jit
    def tier_off(x: Any) -> Any:
        return jnp.tanh(x * 4.25).sum() + x

    before = jax.config.read("styrax_debug")
    jax.config.update("styrax_debug", f"{before},-tiers")
    try:
        tier_off(jnp.arange(5000.0))
    finally:
        jax.config.update("styrax_debug", before)
    code = named("tier_off")
    assert code.promotion is None and code.library.source[1] == 1


def test_explanations_are_of_optimised_code() -> None:
    @jax.jit
    def tier_told(x: Any) -> Any:
        return jnp.tanh(x * 5.25).sum() + x

    tier_told.explain(jnp.arange(5000.0))
    assert named("tier_told").library.source[1] == 1


def test_code_for_other_processes_is_optimised() -> None:
    @jax.jit
    def tier_sent(x: Any) -> Any:
        return jnp.tanh(x * 6.25).sum() + x

    tier_sent(jnp.arange(5000.0))
    code = named("tier_sent")
    assert code.promotion is not None and code.machine_code()
    assert code.promotion is None and code.library.source[1] == 1


def test_donated_arguments_and_many_threads() -> None:
    @partial(jax.jit, donate_argnums=0)
    def tier_step(state: Any, x: Any) -> Any:
        return state * 0.5 + jnp.sin(x).sum()

    def run(out: list[Any]) -> None:
        state = jnp.zeros(3000)
        for k in range(60):
            state = tier_step(state, jnp.full(200, k / 10))
        out.append(bits(state))

    found: list[Any] = []
    workers = [threading.Thread(target=run, args=(found,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    state = np.zeros(3000)
    for k in range(60):
        state = state * 0.5 + 200 * np.sin(k / 10)
    assert all(f == found[0] for f in found)
    np.testing.assert_allclose(np.frombuffer(found[0][0], np.float32), state, rtol=1e-4)


ENDS = """
import os, sys
import styrax as jax, styrax.numpy as jnp
x = jnp.arange(5000.)
for k in range(30):
    f = jax.jit(lambda x: jnp.tanh(x * (k + 0.5)).sum() + jnp.sort(jnp.sin(x)))
    f(x); f(x)
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        os._exit(0 if float(f(x)[0]) == float(f(x)[0]) else 3)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("how", ["exit", "fork"])
def test_processes_end_and_fork_while_code_is_optimised(how: str) -> None:
    # from Python 3.12 on, Python warns of forks where native threads are
    quietly = ["-W", "ignore:This process:DeprecationWarning"]
    done = subprocess.run([sys.executable, *quietly, "-c", ENDS, how], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


TEXT = """define void @sums(ptr %p, i64 %n) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
{carried}
  %at = getelementptr float, ptr %p, i64 %i
{added}
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %next, label %end
end:
{stored}
  ret void
}}
"""


def sums(number: int) -> str:
    """Sums that a loop carries; no other text is the same."""
    lines = range(3 + number % 4)
    return TEXT.format(
        carried="\n".join(f"  %s{k} = phi <4 x float> [ zeroinitializer, %entry ], [ %t{k}, %next ]" for k in lines),
        added="\n".join(f"  %x{k} = load <4 x float>, ptr %at, align 4\n  %t{k} = fadd <4 x float> %s{k}, %x{k}"
                        for k in lines),
        stored="\n".join(f"  store <4 x float> %t{k}, ptr %p, align 4" for k in lines)) + f"; {number}\n"


def test_fast_register_allocation_is_for_those_who_ask() -> None:
    """Whatever other threads have compiled meanwhile."""
    levels = (llvm.BRIEFEST, llvm.BRIEF, 1)
    alone = {(n, level): llvm.compile_object(sums(n), level) for n in range(4) for level in levels}
    assert all(len({alone[n, level] for level in levels}) == 3 for n in range(4))
    found: dict[tuple[int, int], set[bytes]] = {key: set() for key in alone}

    def compile_some(level: int) -> None:
        for k in range(60):
            found[k % 4, level].add(llvm.compile_object(sums(k % 4), level))

    workers = [threading.Thread(target=compile_some, args=(level,)) for level in levels]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for n in range(4):
        assert found[n, 1] == {alone[n, 1]}
        assert found[n, llvm.BRIEF] == {alone[n, llvm.BRIEF]}
        assert found[n, llvm.BRIEFEST] <= {alone[n, llvm.BRIEFEST], alone[n, llvm.BRIEF]}


def test_effort_for_the_first_calls() -> None:
    """The more a program computes, the more is worth its code."""
    def level(size: int) -> int:
        compiled = jax.jit(lambda x: jnp.tanh(x) * x + 1).lower(
            jax.ShapeDtypeStruct((size,), "float32")).compile()
        return effort.first_level(compiled.runtime_executable().program)

    assert [level(n) for n in (10, 5000, 6_000_000, 200_000_000)] == [llvm.BRIEF, llvm.BRIEFEST, llvm.BRIEF, 1]


def test_large_products_call_optimised_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where quick code is much slower than they are, they alone take LLVM's time."""
    monkeypatch.setattr(effort, "is_avx512", lambda vector_bytes: False)

    def level(n: int) -> int:
        x = jax.ShapeDtypeStruct((n, n), "float32")
        compiled = jax.jit(lambda x, y: jnp.tanh(x @ y)).lower(x, x).compile()
        return effort.first_level(compiled.runtime_executable().program)

    if "f32" in microkernels.kernels():
        assert level(2048) == llvm.CALLING
        assert level(128) <= llvm.BRIEF
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, (1024, 1024)).astype(np.float32) for _ in range(2))
    f = jax.jit(lambda x, y: x @ y + 1)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(f(x, y)), x @ y + 1)
