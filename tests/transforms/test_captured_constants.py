"""Warnings of programs that hold many bytes of captured arrays: when, and what they say."""

import warnings

import jax as theirs
import numpy as np
import pytest

import styrax as ours

VECTOR = np.zeros(16, np.float32)
MATRIX = np.ones((16, 16), np.float32)

PROGRAMS = {
    "call": lambda of, y: of.jit(lambda x: x @ y)(VECTOR),
    "lower": lambda of, y: of.jit(lambda x: x @ y).lower(VECTOR),
    "lower and compile": lambda of, y: of.jit(lambda x: x @ y).lower(VECTOR).compile(),
    "trace": lambda of, y: of.jit(lambda x: x @ y).trace(VECTOR),
    "nested": lambda of, y: of.jit(lambda x: of.jit(lambda x: x @ y)(x) + 1)(VECTOR),
    "twice": lambda of, y: of.jit(lambda x: (x @ y) * y.sum())(VECTOR),
    "in a loop": lambda of, y: of.jit(lambda x: of.lax.scan(lambda c, _: (c @ y, None), x, None, length=2)[0])(VECTOR),
    "gradient": lambda of, y: of.jit(of.grad(lambda x: (x @ y).sum()))(VECTOR),
    "argument": lambda of, y: of.jit(lambda x, y: x @ y)(VECTOR, y),
    "eager": lambda of, y: of.numpy.asarray(VECTOR) @ y,
}


def _warned(of, program, limit, own):
    of.config.update("jax_captured_constants_warn_bytes", limit)
    try:
        y = of.numpy.asarray(MATRIX) if own else MATRIX
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            program(of, y)
        return [str(w.message) for w in found if w.category is UserWarning]
    finally:
        of.config.update("jax_captured_constants_warn_bytes", 2_000_000_000)


@pytest.mark.parametrize("own", [True, False], ids=["ours", "numpy"])
@pytest.mark.parametrize("limit", [MATRIX.nbytes, MATRIX.nbytes + 1, -1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_warnings(name, limit, own):
    assert _warned(ours, PROGRAMS[name], limit, own) == _warned(theirs, PROGRAMS[name], limit, own)


def test_report():
    ours.config.update("jax_captured_constants_report_frames", 1)
    try:
        (message,) = _warned(ours, PROGRAMS["call"], 100, True)
    finally:
        ours.config.update("jax_captured_constants_report_frames", 0)
    assert "Largest 1 allocation(s)" in message and "float32[16,16], 1.02KB captured at:" in message
    assert "test_captured_constants.py" in message


def test_once():
    f = ours.jit(lambda x: x @ MATRIX)
    assert len(_warned(ours, lambda of, y: [f(VECTOR), f(VECTOR), f.lower(VECTOR)], 100, True)) == 1
