"""The process around compiled programs: how it ends, forks, is interrupted, and what else it does meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

from ..compat.running import environment

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's")

PRELUDE = """
import atexit, os, signal, sys, threading, time
import numpy as np
import styrax as jax, styrax.numpy as jnp
from styrax import lax

def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
"""


def run(code: str, **extra: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", PRELUDE + code], env=environment(**extra), capture_output=True,
                          text=True, timeout=60)


# -- ending ---------------------------------------------------------------------------------------------------

PRODUCT = "big = jnp.ones((5000, 5000)); y = big @ big"
ENDLESS = "y = jax.jit(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, x))(1.0)"
SINGULAR = "y = jax.jit(lambda x: jnp.linalg.svd(x)[1])(jnp.ones((900, 900)) + jnp.eye(900))"
LOOPS = """
def work():
    big = jnp.ones((1500, 1500))
    f = jax.jit(lambda x: jnp.sin(x @ x).sum())
    while True:
        f(big).block_until_ready()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
CALLING = """
def work():
    def program(x):
        jax.debug.callback(lambda v: None, x)
        return lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, x)
    jax.jit(program)(1.0)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""
WORK = {"product": PRODUCT, "endless loop": ENDLESS, "LAPACK": SINGULAR, "threads": LOOPS, "calling program": CALLING}
ENDS = {"plain": ("", 0), "exit": ("sys.exit(3)", 3), "exception": ("raise ValueError('own')", 1)}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("end", ["plain", "exit", "exception"])
def test_process_ends_while_a_program_runs(work, end):
    if end != "plain" and work in ("LAPACK", "threads"):
        end = {"LAPACK": "exit", "threads": "exception"}[work]
    statement, code = ENDS[end]
    done = run(f"{WORK[work]}\n{statement}")
    assert done.returncode == code, done.stderr


@posix
@pytest.mark.parametrize("work", ["product", "endless loop", "LAPACK"])
def test_process_is_interrupted_while_a_program_runs(work):
    done = run(f"{WORK[work]}\ninterrupt_after(0.1)\ny.block_until_ready()\ntime.sleep(60)")
    assert done.returncode in (130, -signal.SIGINT), done.stderr
    assert "KeyboardInterrupt" in done.stderr


def test_programs_run_in_handlers_of_the_exit():
    code = """
import atexit
def last():
    print(float((jnp.ones((1000, 1000)) @ jnp.ones((1000, 1000))).sum()))
atexit.register(last)
import styrax.numpy as jnp
jnp.ones(3) + 1
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "1000000000.0"), done.stderr


@pytest.mark.parametrize("debug", ["verify", ""])
def test_programs_are_compiled_in_handlers_of_the_exit(tmp_path, debug):
    # from Python 3.12 on, no thread begins then
    code = """
def last():
    y = jnp.asarray(np.random.default_rng(0).standard_normal((300, 300)).astype("float32"))
    print(jax.jit(lambda y: jnp.fft.fft(y[0]).real)(y).shape, jax.jit(lambda y: jnp.linalg.inv(y) @ y)(y).shape)
    def layers(x):
        for i in range(30):
            x = jax.nn.softmax(jnp.tanh(x @ y * i)) + jnp.cumsum(x, 0)
        return x.sum()
    print(jax.jit(jax.grad(layers))(y).shape)
atexit.register(last)
jnp.ones(3) + 1
"""
    for _ in range(2):
        done = run(code, STYRAX_CACHE_DIR=str(tmp_path), STYRAX_DEBUG=debug)
        assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["(300,) (300, 300)", "(300, 300)"]), done.stderr
        assert not done.stderr


# -- forking --------------------------------------------------------------------------------------------------

CHILD = """
def child():
    signal.alarm(30)
    assert float((jnp.ones((600, 600)) @ jnp.ones((600, 600))).sum()) == 6e2 ** 3
    assert float(jnp.sin(jnp.zeros(5)).sum()) == 0
"""
FORK = CHILD + """
pid = os.fork()
if pid == 0:
    child()
    os._exit(0)
status = os.waitpid(pid, 0)[1]
child()
sys.exit(os.waitstatus_to_exitcode(status))
"""
COLD = {
    "imported": "",
    "LLVM is opened": "jax.devices()",
    "BLAS is opened": "from styrax.cpu import libraries; libraries.open_ahead()",
    # once before, in this thread: a module that another thread imports is closed to the child by Python itself
    "a thread compiles": CHILD + """
child()
def work():
    for i in range(20):
        jax.jit(lambda x: jnp.sin(x) * i)(1.0)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
}


@posix
@pytest.mark.parametrize("state", COLD)
@pytest.mark.parametrize("cache", ["0", "1"])
def test_fork_of_a_cold_process(state, cache):
    done = run(COLD[state] + FORK, STYRAX_CACHE=cache)
    assert done.returncode == 0, done.stderr


@posix
def test_multiprocessing_by_fork():
    done = run(CHILD + """
import multiprocessing
context = multiprocessing.get_context("fork")
jax.devices()
with context.Pool(2) as pool:
    assert pool.map(jnp.sin, [0.0, 0.0]) == [0.0, 0.0]
worker = context.Process(target=child)
worker.start()
worker.join()
sys.exit(worker.exitcode)
""")
    assert done.returncode == 0, done.stderr


# -- programs that call Python --------------------------------------------------------------------------------

SCALAR = "jax.ShapeDtypeStruct((), jnp.float32)"
CALLBACKS = {
    "in the loop": f"""
def program(x):
    return lax.while_loop(lambda c: c >= 0, lambda c: jax.pure_callback(lambda v: np.float32(v), {SCALAR}, c), x)""",
    "before the loop": """
def program(x):
    jax.debug.callback(lambda v: None, x)
    return lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, x)""",
    "rarely": """
def program(x):
    def body(c):
        lax.cond(c[1] % 1000 == 0, lambda: jax.debug.callback(lambda v: None, c[0]), lambda: None)
        return c[0] * 1.0, c[1] + 1
    return lax.while_loop(lambda c: c[0] >= 0, body, (x, 0))""",
    "in threads": """
def program(x):
    jax.debug.callback(lambda v: None, x)
    return jax.vmap(lambda y: lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, y))(jnp.full(99999, x))""",
    "nested": """
def inner(v):
    return jax.jit(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: jax.pure_callback(
        lambda v: np.float32(v), jax.ShapeDtypeStruct((), jnp.float32), c), x))(v)
def program(x):
    return jax.pure_callback(inner, jax.ShapeDtypeStruct((), jnp.float32), x)""",
}


@posix
@pytest.mark.parametrize("name", CALLBACKS)
def test_interrupt_of_a_program_that_calls_python(name):
    done = run(f"""{CALLBACKS[name]}
interrupt_after(1.0)
try:
    jax.block_until_ready(jax.jit(program)(jnp.float32(1)))
except KeyboardInterrupt:
    print("interrupted")
print(float(jax.pure_callback(lambda v: np.float32(v + 1), {SCALAR}, jnp.float32(1))))
""")
    assert done.stdout.split() == ["interrupted", "2.0"], done.stderr


@posix
def test_interrupt_that_a_called_function_sees_to_itself():
    def host(x):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            return np.float32(x + 1)
        return np.float32(0)

    def program(x):
        return lax.fori_loop(0, 3, lambda i, c: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), c), x)

    assert float(jax.jit(program)(jnp.float32(1))) == 4


@posix
def test_handlers_of_the_program_stay_in_force():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        def host(x):
            os.kill(os.getpid(), signal.SIGINT)
            return np.float32(x + 1)

        out = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: jax.pure_callback(
            host, jax.ShapeDtypeStruct((), jnp.float32), c), x))(jnp.float32(1))
        assert float(out) == 4 and len(seen) == 3
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(KeyboardInterrupt):  # the usual one is in place again
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


@pytest.mark.parametrize("in_main", [True, False])
def test_other_threads_go_on_while_a_calling_program_runs(in_main):
    """The program ends only because another thread, once the function has been called, lets it."""
    called, flag = threading.Event(), np.zeros(1, np.float32)

    def start(v):
        called.set()
        return np.float32(v)

    shape = jax.ShapeDtypeStruct((), jnp.float32)

    def program(x):
        x = jax.pure_callback(start, shape, x)
        return lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, x)

    def other():
        called.wait(20)
        flag[0] = 1
        from styrax.cpu import host_symbols

        while not host_symbols._runs:
            time.sleep(1e-3)
        for going in list(host_symbols._runs):
            going.fail(ValueError("enough"))

    compiled, caught = jax.jit(program), []

    def call():
        try:
            jax.block_until_ready(compiled(jnp.float32(1)))
        except jax.errors.JaxRuntimeError as error:
            caught.append(str(error))

    helper = threading.Thread(target=other)
    helper.start()
    if in_main:
        call()
    else:
        caller = threading.Thread(target=call)
        caller.start()
        caller.join(30)
    helper.join(30)
    assert flag[0] == 1 and len(caught) == 1 and "enough" in caught[0]
