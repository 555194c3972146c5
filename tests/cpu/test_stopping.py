"""Programs that end before their time: cancelled, interrupted, failed in a callback, refused memory."""

import os
import signal
import threading

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.ir.loopir import Scratch, statements
from styrax.cpu import llvm
from styrax.cpu.client import Executable
from styrax.cpu.code import generate

ENDLESS = {
    "scalars": lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 1.0, c[1] + 1), (x, 0)),
    "arrays": lambda x: lax.while_loop(lambda c: c[0, 0] >= 0, lambda c: jnp.sin(c @ c) ** 2, jnp.full((200, 200), x)),
    "inside a scan": lambda x: lax.scan(
        lambda c, _: (lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, c), None), x, None, length=10),
    "inside a branch": lambda x: lax.cond(x > 0, lambda: lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, x),
                                          lambda: x),
    "long scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) + c, None), x, None, length=2**31 - 1),
    "loop of loops": lambda x: lax.fori_loop(
        0, 10**5, lambda i, c: lax.fori_loop(0, 10**6, lambda j, c: jnp.sin(c) + c, c), x),
    "elements": lambda x: jax.vmap(lambda y: lax.while_loop(lambda c: c >= 0, lambda c: c * 1.0, y))(jnp.full(9999, x)),
    "long turns of elements": lambda x: lax.fori_loop(0, 2**31 - 1, lambda i, c: c * 0.5 + 1, jnp.full(9999, x)),
    "long parts": lambda x: lax.fori_loop(0, 10**8, lambda i, c: jnp.sin(c), jnp.full((300, 300), x)),
}


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
@pytest.mark.parametrize("name", ENDLESS)
def test_interrupt_ends_a_program(name):
    out = jax.jit(ENDLESS[name])(jnp.float32(1))
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jax.block_until_ready(out)
    timer.join()
    # the queue is free again, and what was cancelled never gives a value
    assert float(jax.jit(lambda x: x.sum())(jnp.ones((2000, 2000)))) == 4e6
    with pytest.raises(KeyboardInterrupt, match="cancelled"):
        jax.block_until_ready(out)


def test_failure_in_a_callback_ends_an_endless_loop():
    def host(x):
        if x > 3:
            raise ValueError("far enough")
        return np.float32(x + 1)

    def loop(x):
        return lax.while_loop(lambda c: c >= 0,
                              lambda c: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), c), x)

    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="far enough"):
            jax.jit(loop)(jnp.float32(0))


@pytest.mark.parametrize("shape", [(200, 200), (64, 200, 200)])
def test_memory_that_cannot_be_had(shape):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    code = jax.jit(jnp.linalg.qr).lower(x).compile().runtime_executable()
    avals = [aval for _, aval, *_ in code.results]

    def again(asked):
        """The program with other sizes of scratch memory."""
        ir = asked(generate(code.program).text())
        return Executable(code.interface, code.constants, llvm.load(ir, "qr"), code.device, avals,
                          lambda: (code.program, ir))(x)

    q, r = again(lambda ir: ir)
    np.testing.assert_allclose(q @ r, x, atol=1e-4)
    largest = max(s.buffer.nbytes for s in statements(code.program.statements) if isinstance(s, Scratch))

    def too_much(ir):
        before, call, after = ir.partition(f"@styrax_alloc(i64 {largest})")
        assert call
        return f"{before}@styrax_alloc(i64 {1 << 48}){after}"

    with pytest.raises(MemoryError, match="qr"):
        jax.block_until_ready(again(too_much))
