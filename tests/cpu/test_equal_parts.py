"""Layers that are alike share functions, of what threads run and of other nests (identical code folding)."""

from __future__ import annotations

import re

import jax as real
import numpy as np
import pytest

import styrax
from styrax.core.settings.config import states
from styrax.cpu import libraries

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


def test_more_layers_have_no_more_functions(monkeypatch):
    monkeypatch.setattr(libraries, "vector_bytes", lambda: 64)  # (products are calls, whatever BLAS there is)
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


def small_network(j, layers, batch=8, width=32):
    def f(x, *ws):
        for w in ws:
            x = x + 0.1 * j.numpy.tanh(x @ w) + 0.01 * j.numpy.cos(x[:, ::-1]).mean(1, keepdims=True)
        return (x**2).sum()

    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(width, width)).astype(np.float32) / 6 for _ in range(layers)]
    return f, [rng.normal(size=(batch, width)).astype(np.float32), *ws]


@pytest.mark.parametrize("layers", [12, 40])
def test_small_layers(layers):
    """Nests for one thread, and in the longer program segments that call them."""
    f, args = small_network(styrax, layers)
    g, _ = small_network(real, layers)
    argnums = tuple(range(len(args)))
    derivative = styrax.jit(styrax.value_and_grad(f, argnums))
    value, slopes = derivative(*args)
    wanted, theirs = real.jit(real.value_and_grad(g, argnums))(*args)
    np.testing.assert_allclose(value, wanted, 1e-4)
    for x, y in zip(slopes, theirs, strict=True):
        np.testing.assert_allclose(x, y, 1e-3, 1e-4 * np.abs(y).max())
    text = derivative.lower(*args).compile().as_text("llvm")
    assert len(re.findall(r"^define [^@]*@part\d+\(", text, re.M)) < 20
    assert bool(re.search(r"^define [^@]*@segment0\(", text, re.M)) == (layers == 40)


# each pair differs in one respect, and has the same shapes
TWINS = {
    "sum": lambda j, x: x.sum(1),
    "product": lambda j, x: (1 + x / 64).prod(1),
    "largest": lambda j, x: x.max(1),
    "least": lambda j, x: x.min(1),
    "place of the largest": lambda j, x: x.argmax(1),
    "place of the least": lambda j, x: x.argmin(1),
    "constant": lambda j, x: x * 2,
    "other constant": lambda j, x: x * 3,
    "zero": lambda j, x: x + 0.0,
    "minus zero": lambda j, x: x + -0.0,
    "itself": lambda j, x: x * x,
    "another": lambda j, x: x * x[::-1],
    "turned": lambda j, x: x.T @ x,
    "not turned": lambda j, x: x @ x.T,
    "below": lambda j, x: j.numpy.tril(x),
    "above": lambda j, x: j.numpy.triu(x),
    "window": lambda j, x: j.lax.reduce_window(x, 0.0, j.lax.add, (3, 1), (1, 1), "SAME"),
    "window across": lambda j, x: j.lax.reduce_window(x, 0.0, j.lax.add, (1, 3), (1, 1), "SAME"),
    "running": lambda j, x: j.numpy.cumsum(x, 1),
    "running back": lambda j, x: j.lax.cumsum(x, 1, reverse=True),
    "clipped": lambda j, x: x.at[j.numpy.arange(96) * 2].get(mode="clip"),
    "filled": lambda j, x: x.at[j.numpy.arange(96) * 2].get(mode="fill", fill_value=1),
    "folded by a function": lambda j, x: j.lax.reduce(x / 64, 0.0, lambda a, b: a + b + a * b, (1,)),
    "folded by another": lambda j, x: j.lax.reduce(x / 64, 0.0, lambda a, b: a + b - a * b, (1,)),
    "whole numbers": lambda j, x: x.astype(int) + 1,
    "numbers without a sign": lambda j, x: abs(x).astype(np.uint32) + 1,
    "half as wide": lambda j, x: (x.astype(j.numpy.bfloat16) + 1).astype(float),
    "half": lambda j, x: (x.astype(j.numpy.float16) + 1).astype(float),
    "complex": lambda j, x: abs((x + 1j) * (x - 2j)),
    "conjugate": lambda j, x: abs((x + 1j) * (x + 2j)),
    "sorted": lambda j, x: j.numpy.sort(x, 1),
    "sorted down": lambda j, x: -j.numpy.sort(-x, 1),
    "halved until small": lambda j, x: j.vmap(
        lambda r: j.lax.while_loop(lambda r: abs(r).max() > 0.1, lambda r: r / 2, r))(x),
    "halved until smaller": lambda j, x: j.vmap(
        lambda r: j.lax.while_loop(lambda r: abs(r).max() > 0.05, lambda r: r / 2, r))(x),
}


def chain(j, looping):
    def step(x):
        outs, y = {}, x
        for name, twin in TWINS.items():
            outs[name] = twin(j, y)
            mean = j.numpy.tanh(outs[name].astype(x.dtype).mean())  # needs all of it: the next is another nest
            y = x[::-1] + 0.1 * mean
        return x[::-1], outs

    def f(x):
        if looping:
            return j.lax.scan(lambda x, _: step(x), x, None, 2)
        x, once = step(x)
        return step(x), once

    return f


@pytest.mark.parametrize("debug", ["verify", "bounds"])
@pytest.mark.parametrize("looping", [False, True])
def test_twins(looping, debug):
    x = np.random.default_rng(0).normal(size=(96, 96)).astype(np.float32)
    with states["styrax_debug"](debug):
        ours = styrax.jit(chain(styrax, looping))(x)
    theirs = real.jit(chain(real, looping))(x)
    styrax.tree.map_with_path(
        lambda path, a, b: np.testing.assert_allclose(
            np.asarray(a, float), np.asarray(b, float), 2e-2 if "half" in str(path[-1]) else 1e-3, 1e-3, str(path)),
        ours, theirs)


@pytest.mark.parametrize("layers", [20, 90])
def test_loops_of_unknown_length_in_segments(layers):
    """Each segment hands on the program's fuel."""
    def f(j, x, bound):
        for k in range(layers):
            x = j.vmap(lambda r: j.lax.while_loop(lambda r: abs(r).max() > bound, lambda r: r / 2, r))(x)
            x = j.numpy.roll(x, 1, 0) * (3 if k % 7 else 5)
        return x

    x = np.random.default_rng(0).normal(size=(12, 24)).astype(np.float32)
    ours = styrax.jit(lambda x, b: f(styrax, x, b))(x, np.float32(0.5))
    np.testing.assert_allclose(ours, real.jit(lambda x, b: f(real, x, b))(x, np.float32(0.5)), 1e-5)
