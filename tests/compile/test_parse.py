"""Loops as text: what a program prints is read back as the same program, and what is no program is refused."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.ir.parse import parse
from styrax.compile.ir.verify import verify
from styrax.compile.lowering.builder import Builder
from styrax.compile.program import Program
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr


def numbers(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape).astype(dtype)


PROGRAMS = {
    "scalar": (lambda x: jnp.sin(x) + 1, np.float32(3)),
    "softmax": (jax.nn.softmax, numbers(64, 48)),
    "product": (lambda a, b: jnp.maximum(a @ b, 0), numbers(24, 20), numbers(20, 32)),
    "product by a library": (lambda a, b: a @ b, numbers(256, 256), numbers(256, 256)),
    "factorisation by a library": (jnp.linalg.cholesky, 3 * np.eye(5, dtype=np.float32)),
    "Python function": (
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((5,), np.float32), x), numbers(5)),
    "transposition": (lambda x: x.T + 1, numbers(64, 48)),
    "two accumulators": (lambda x: jnp.argmax(x, 1), numbers(30, 40)),
    "passes over rows": (lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), numbers(32, 48)),
    "pieces of a sum": (lambda x: (x * x).sum(), numbers(1000, 100)),
    "sort": (jnp.sort, numbers(40)),
    "running sum": (jnp.cumsum, numbers(400)),
    "scatter": (lambda x, i: x.at[i].add(1.0), numbers(40, 5), numbers(7, dtype=np.int32)),
    "gather": (lambda x, i: x[i], numbers(40, 5), numbers(7, dtype=np.int32)),
    "update": (lambda x, i: lax.dynamic_update_slice(x, jnp.ones(3, np.float32), (i,)), numbers(50), np.int32(4)),
    "complex": (lambda x: jnp.exp(x) * x, numbers(40, dtype=np.complex64)),
    "guards": (lambda x: jnp.pad(x, 3), numbers(100, 100)),
    "cuts": (lambda x: jnp.roll(x, 1), numbers(1000)),
    "convolution": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), numbers(2, 3, 16, 16), numbers(4, 3, 3, 3)),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x), numbers(50)),
    "scan by element": (lambda c: lax.fori_loop(0, 20, lambda i, z: z * z + c, c), numbers(100, dtype=np.complex64)),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 2), (0, x)), numbers(5)),
    "batched while": (jax.vmap(lambda x: lax.while_loop(lambda v: v * v > x, lambda v: v * 0.5, x)), numbers(50)),
    "branches": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), np.int32(1), numbers(5)),
    "bool": (lambda x: (x > 3).any(0) & (x < 90).all(0), numbers(30, 20)),
    "int8": (lambda x: x * x // 3, numbers(20, 30, dtype=np.int8)),
    "int4": (lambda x: x + x, jnp.ones(5, jnp.int4)),
    "bfloat16": (lambda x: x.sum(0) * 2, jnp.ones((20, 30), jnp.bfloat16)),
}


def shown_again(text):
    builder = Builder()
    body, _ = parse(text, builder)
    verify(body)
    program = Program("again", ClosedJaxpr(Jaxpr([], [], [], [])))
    return program.replace(builder=builder, statements=body).show(declared=True)


def printed(fun, *args):
    return jax.jit(fun).lower(*args).compile().runtime_executable().program.show(declared=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_read(name):
    fun, *args = PROGRAMS[name]
    text = printed(fun, *args)
    assert "buffer out0" in text and "\n" in text
    assert shown_again(text) == text


def test_int64_and_float64():
    with jax.enable_x64(True):
        text = printed(
            lambda x, i: (x[i % 4] * 2.5, i // 3), numbers(4, dtype=np.float64), numbers(9, dtype=np.int64))
    assert "int64" in text and "2.5:float64" in text
    assert shown_again(text) == text


def test_sizes_known_at_run_time():
    text = """size n0
buffer arg0: float32 x (4*n0) arg
buffer t0: float32 x n0 once
buffer out0: float32 x (4*n0) out donated
for i0 < n0 vector(16):
  t0[i0] = arg0[(n0 + i0)]
copy out0[n0] <- t0[0] x n0"""
    assert shown_again(text) == text.replace("(n0 + i0)", "(i0 + n0)")


def test_declarations_name_what_is_used_alone():
    text = printed(lambda x: jax.nn.softmax(x), numbers(8, 9))
    for line in text.split("\n"):
        if line.startswith("buffer t"):
            assert text.count(line.split()[1].rstrip(":") + "[") > 0


def test_new_names_are_not_those_of_the_text():
    builder = Builder()
    parse("buffer t7: float32 x 4\nfor i3 < 4:\n  t7[i3] = 0.0:float32", builder)
    assert builder.name("i") == "i4" and builder.name("t") == "t8"


WRONG = {
    "no statement": ("frobnicate", "no such statement"),
    "unknown buffer": ("out0[0] = arg0[0]", "out0"),
    "unknown operand": ("buffer out0: float32 x 4 out\nout0[0] = x", "missing"),
    "unknown dtype": ("buffer out0: float33 x 4 out", "float33"),
    "buffer without size": ("buffer out0: float32 out", "no such buffer"),
    "loop without extent": ("for i0:\n  ", "no such loop"),
    "kind of loop": ("for i0 < 4 sideways(2):\n  ", "sideways"),
    "indentation": ("buffer out0: float32 x 4 out\n    out0[0] = 1.0:float32", "indentation"),
    "open bracket": ("buffer out0: float32 x 4 out\nout0[0] = sin(1.0:float32", "missing"),
    "ends early": ("buffer out0: float32 x 4 out\nout0[0] = add(", "missing"),
    "two values": ("buffer out0: float32 x 4 out\nout0[0] = 1.0:float32, 2.0:float32", "one expression"),
    "rubbish": ("buffer out0: float32 x 4 out\nout0[0] = 1.0:float32 ?", "cannot be read"),
    "accumulator": ("a0 add= 1.0:float32", "a0"),
    "copy": ("copy a <- b", "no such copy"),
    "call": ("call f", "no such call"),
    "while": ("var s0 = True:bool\nwhile:\n  v0 := s0", "without condition"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_program_is_refused(name):
    text, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        parse(text, Builder())
