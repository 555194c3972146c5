"""Layers that are alike share the functions that threads run (identical code folding)."""

from __future__ import annotations

import re

import jax as real
import numpy as np
import pytest

import styrax

SHAPE = (512, 256)


def network(j, layers, step):
    def f(x, *ws):
        for w in ws:
            x = step(j, x, w)
        return x, x.sum(1)

    rng = np.random.default_rng(0)
    return f, [rng.normal(size=SHAPE).astype(np.float32) for _ in range(layers + 1)]


STEPS = {
    "alike": lambda j, x, w: j.numpy.tanh(x @ w[:256] / 16),  # with a library's work in between
    "in a loop": lambda j, x, w: j.lax.fori_loop(0, 2, lambda _, c: j.numpy.sin(c) * w, x),
    "gathered": lambda j, x, w: x[j.numpy.argsort(w[:, 0])] / 2,
}


def parts(f, args):
    text = styrax.jit(f).lower(*args).compile().as_text("llvm")
    return re.findall(r"^define [^@]*@part\d+\(", text, re.M), re.findall(r"@styrax_parallel_for\(ptr @(part\d+)", text)


@pytest.mark.parametrize("name", STEPS)
def test_values(name):
    f, args = network(styrax, 3, STEPS[name])
    g, _ = network(real, 3, STEPS[name])
    for ours, theirs in zip(styrax.jit(f)(*args), real.jit(g)(*args), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-4)


def test_more_layers_have_no_more_functions():
    f, args = network(styrax, 2, STEPS["alike"])
    few, calls = parts(f, args)
    g, more_args = network(styrax, 6, STEPS["alike"])
    many, more_calls = parts(g, more_args)
    assert len(many) == len(few) < len(calls) < len(more_calls)
    assert set(more_calls) == {re.search("part\\d+", define)[0] for define in many}


def test_what_differs_has_functions_of_its_own():
    def f(x, y):
        return x * 2.0 + y, x * 3.0 + y, y * 2.0 + x[:, ::-1]

    _, args = network(styrax, 1, STEPS["alike"])
    for ours, theirs in zip(styrax.jit(f)(*args), real.jit(f)(*args), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-6, 1e-6)  # which product is rounded with its sum is free


@pytest.mark.parametrize("threads", [1, 2])
def test_gradients(threads):
    from styrax.cpu import runtime

    before = runtime.num_threads()
    runtime.set_num_threads(threads)
    try:
        f, args = network(styrax, 3, STEPS["alike"])
        g, _ = network(real, 3, STEPS["alike"])
        ours = styrax.jit(styrax.grad(lambda *a: f(*a)[1].sum(), argnums=(0, 1, 2, 3)))(*args)
        theirs = real.jit(real.grad(lambda *a: g(*a)[1].sum(), argnums=(0, 1, 2, 3)))(*args)
    finally:
        runtime.set_num_threads(before)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, 1e-4, 1e-4)
