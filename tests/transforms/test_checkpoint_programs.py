"""What checkpoints save and compute again, as programs: counted against JAX's, and what XLA is told."""

from __future__ import annotations

import importlib
import logging

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, styrax

POLICIES = {
    "nothing": lambda package: package.checkpoint_policies.nothing_saveable,
    "everything": lambda package: package.checkpoint_policies.everything_saveable,
    "dots": lambda package: package.checkpoint_policies.dots_saveable,
    "cosines": lambda package: lambda primitive, *_, **__: str(primitive) == "cos",
    "sines": lambda package: lambda primitive, *_, **__: str(primitive) == "sin",
}


def layers(package, w):
    def f(x):
        for _ in range(3):
            x = package.numpy.sin(package.numpy.dot(x, w))
        return x

    return f


def in_cond(package, w, x):
    return package.lax.cond(x.sum() > 0, layers(package, w), lambda x: x * 2, x)


def in_switch(package, w, x):
    branches = [lambda x: package.numpy.sin(x @ w), lambda x: package.numpy.cos(x) @ w, lambda x: x]
    return package.lax.switch(x.astype("int32").sum() % 3, branches, x)


def in_scan(package, w, x):
    f = layers(package, w)
    return package.lax.scan(lambda c, _: (f(c), package.numpy.sin(c).sum()), x, None, length=2)


def of_scanned(package, w, x):
    def step(c, row):
        c = package.numpy.sin(c * row)
        return c, (c, package.numpy.cos(row))

    return package.lax.scan(step, x, w, reverse=True)


FUNCTIONS = {f.__name__: f for f in (in_cond, in_switch, in_scan, of_scanned)}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_policy_inside_of_control_flow(name, policy):
    def loss(package, policy):
        f = package.checkpoint(lambda w, x: FUNCTIONS[name](package, w, x), policy=POLICIES[policy](package))
        return lambda w, x: sum(package.numpy.sum(y) for y in package.tree_util.tree_leaves(f(w, x)))

    def program(package):
        w = package.numpy.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
        x = package.numpy.asarray(np.linspace(0.5, 1, 3, dtype=np.float32))
        f = loss(package, policy)
        grads = package.grad(f, (0, 1))
        return grads(w, x), package.jit(grads)(w, x), package.jit(package.hessian(f, 1))(w, x), package.vmap(
            grads, (None, 0))(w, package.numpy.stack([x, 2 * x]))

    assert_same(program, rtol=1e-4, atol=1e-5)

    def again(package):  # how often the backward pass computes
        w, x = package.numpy.ones((3, 3)), package.numpy.ones(3)
        _, pull = package.vjp(loss(package, policy), w, x)
        text = str(package.make_jaxpr(pull)(1.0))
        return [text.count(f" {name}") for name in ("sin ", "cos ", "dot_general[")]

    assert all(ours <= theirs for ours, theirs in zip(again(styrax), again(jax), strict=True))


def test_traced_once_for_the_same_types():
    def program(package):
        count = [0]

        def g(x, n, flag):
            count[0] += 1
            return package.numpy.sin(x) * n if flag else x

        f = package.checkpoint(g, static_argnums=(1, -1))
        counts = []
        for x, n, flag in ((1.0, 2, True), (2.0, 2, True), (1.0, 3, True), (1.0, 3, False), (1.0, 3, False),
                           (np.float32(1), 3, False), (np.ones(2, np.float32), 3, False)):
            f(x, n, flag)
            package.grad(lambda x, n=n, flag=flag: package.numpy.sum(f(x, n, flag)))(x)
            counts.append(count[0])
        package.jit(lambda x: f(x, 3, False))(1.0)
        return [*counts, count[0]]

    assert program(styrax) == program(jax)


def test_traces_that_capture_tracers_are_not_kept():
    def program(package):
        made = []

        def outer(y):
            if not made:
                made.append(package.checkpoint(lambda x: x * made[1]))
                made.append(y)
            made[1] = y
            return made[0](2.0)

        return package.jit(outer)(3.0), package.jit(lambda y: outer(y) + 1)(4.0), package.grad(outer)(5.0)

    assert [float(x) for x in program(styrax)] == [6.0, 9.0, 2.0]


def test_primitives_without_a_lowering_run_eagerly():
    def program(package):
        core = package.extend.core
        p = core.Primitive("twice_of_a_test")
        p.def_impl(lambda x: x * 2)
        p.def_abstract_eval(lambda x: x)
        from importlib import import_module

        ad = import_module(f"{package.__name__}.interpreters.ad")
        ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), tangents[0] * 2)
        f = package.checkpoint(lambda x: p.bind(package.checkpoint(p.bind)(x)))
        return package.numpy.asarray(f(3.0)), package.grad(f)(3.0)

    import importlib

    importlib.import_module("jax.extend.core"), importlib.import_module("styrax.extend.core")
    assert_same(program)


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_barriers_keep_xla_from_merging(prevent_cse):
    def program(package):
        f = package.checkpoint(lambda x: package.numpy.sin(package.numpy.sin(x)), prevent_cse=prevent_cse)
        texts = [package.jit(g).lower(2.0).as_text("hlo") for g in (f, package.grad(f))]
        return ["opt-barrier" in text for text in texts]

    assert program(styrax) == program(jax) == [False, prevent_cse]


@pytest.mark.parametrize("which", ["grad", "jvp", "vmap of grad", "grad of checkify", "grad of jit"])
@pytest.mark.parametrize("prevent_cse", [True, (False, {"x": True}), (True, {"x": False}), (False, False)])
def test_barriers_around_some_arguments(prevent_cse, which):
    def program(package):
        np = package.numpy

        def layer(w, d):
            return {"x": np.sin(d["x"] @ w) + np.array([1.0, 2.0, 3.0])}

        def loss(w, x):
            f = package.checkpoint(layer, prevent_cse=prevent_cse)
            if which == "grad of jit":
                f = package.jit(f)
            if which == "grad of checkify":
                checked = importlib.import_module(f"{package.__name__}.experimental.checkify").checkify(f)
                f = lambda *args: checked(*args)[1]
            return sum(f(w, f(w, {"x": x}))["x"] ** 2)

        g = package.grad(loss, (0, 1))
        if which == "jvp":
            g = lambda w, x: package.jvp(loss, (w, x), (w, x))
        elif which == "vmap of grad":
            g = package.vmap(g, (None, 0))
        x = np.ones((2, 3) if which == "vmap of grad" else 3)
        text = package.jit(g).lower(np.ones((3, 3)), x).as_text()
        return [line.partition(" : ")[2] for line in text.splitlines() if "optimization_barrier" in line]

    assert program(styrax) == program(jax)


def test_what_is_saved_is_logged(caplog):
    def program(package, policy):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "jax._src.ad_checkpoint"):
            f = package.checkpoint(lambda x: package.numpy.cos(package.numpy.sin(x).sum()), policy=policy)
            package.grad(f)(package.numpy.arange(3.0))
        return "".join(r.getMessage() for r in caplog.records).rstrip()

    for policy in (None, lambda *_, **__: True, lambda p, *_, **__: str(p) == "cos"):
        assert program(styrax, policy) == program(jax, policy)


def test_constants_of_inner_programs_are_residuals_themselves():
    from styrax.transforms.checkpoint import saved_residuals

    @styrax.jit
    def f(x):
        return styrax.numpy.sin(x) * np.array([3.0, 4.0], np.float32)

    assert [where for _, where in saved_residuals(f, 2.0)][0] == "from a constant"
    _, pull = styrax.vjp(f, 2.0)
    np.testing.assert_allclose(pull(styrax.numpy.ones(2))[0], np.cos(2.0) * 7, rtol=1e-6)
