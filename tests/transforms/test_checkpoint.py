"""checkpoint: same derivatives, less kept, as much computed again as the policy says."""

from __future__ import annotations

import contextlib
import functools
import io

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, matrix, styrax, vector

POLICIES = {
    "none": lambda j: None,
    "everything": lambda j: j.checkpoint_policies.everything_saveable,
    "nothing": lambda j: j.checkpoint_policies.nothing_saveable,
    "dots": lambda j: j.checkpoint_policies.dots_saveable,
    "dots without batch": lambda j: j.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "only a": lambda j: j.checkpoint_policies.save_only_these_names("a"),
    "any but a": lambda j: j.checkpoint_policies.save_any_names_but_these("a"),
    "all but a": lambda j: j.checkpoint_policies.save_anything_except_these_names("a"),
    "both": lambda j: j.checkpoint_policies.save_from_both_policies(
        j.checkpoint_policies.dots_saveable, j.checkpoint_policies.save_only_these_names("a")),
}


def network(package):
    name = package.ad_checkpoint.checkpoint_name

    def layer(w, x):
        h = name(package.numpy.sin(x @ w), "a")
        return name(package.numpy.cos(h * h), "b")

    return lambda w, x: layer(w, layer(w, x)).sum()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("inner_jit", [False, True])
def test_derivatives(policy, inner_jit):
    def program(package):
        f = network(package)
        f = package.checkpoint(package.jit(f) if inner_jit else f, policy=POLICIES[policy](package))
        g = package.grad(f)
        return g(matrix, matrix), package.jit(g)(matrix, matrix), package.vmap(g, in_axes=(None, 0))(
            matrix, np.stack([matrix, matrix]))

    assert_same(program, rtol=1e-4, atol=1e-5)


def count(text, what):
    return text.count(f" {what} ")


@pytest.mark.parametrize("policy", POLICIES)
def test_as_much_is_computed_again_as_in_jax(policy):
    def text(package):
        f = package.checkpoint(network(package), policy=POLICIES[policy](package))
        return str(package.make_jaxpr(package.grad(f))(matrix, matrix)).replace("dot_general[", "dot_general [ ")

    ours, theirs = text(styrax), text(jax)
    for what in ("sin", "cos", "dot_general"):
        assert count(ours, what) == count(theirs, what), (ours, theirs)


def test_second_derivatives_and_forward_mode():
    def program(package):
        f = package.checkpoint(lambda x: package.numpy.sin(package.numpy.sin(x)))
        return (package.grad(package.grad(f))(1.0), package.jvp(f, (1.0,), (1.0,)),
                package.jvp(package.grad(f), (1.0,), (1.0,)), package.vmap(package.grad(f))(vector),
                package.grad(package.checkpoint(package.checkpoint(f)))(1.0), package.hessian(
                    lambda x: f(x).sum())(vector), package.linearize(f, 2.0)[1](1.0))

    assert_same(program)


def test_in_and_around_scan():
    def program(package):
        body = package.checkpoint(lambda c: package.numpy.sin(c) * c)

        def inside(x):
            return package.lax.scan(lambda c, _: (body(c), body(c)), x, None, length=4)[0]

        around = package.checkpoint(inside)
        return (package.grad(inside)(1.0), package.grad(around)(1.0), package.vmap(package.grad(around))(vector),
                package.jit(package.grad(around))(1.0), package.grad(package.grad(around))(1.0))

    assert_same(program)


def test_static_arguments():
    def program(package):
        f = package.checkpoint(lambda x, flag: package.numpy.sin(x) if flag else x, static_argnums=(1,))
        g = package.checkpoint(lambda x, *, k: package.numpy.sin(x) * k, static_argnames="k")
        return f(1.0, True), f(1.0, False), package.grad(f)(1.0, True), package.grad(g)(1.0, k=2)

    assert_same(program)


def test_errors():
    with pytest.raises(NotImplementedError):
        styrax.checkpoint(lambda x: x, concrete=True)
    with pytest.raises(styrax.errors.TracerBoolConversionError):
        styrax.checkpoint(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(TypeError):
        styrax.checkpoint(lambda x: "a")(1.0)


def test_saved_residuals_are_told_as_jax_tells_them():
    def told(package):
        jnp, name = package.numpy, package.ad_checkpoint.checkpoint_name

        def f(x, y):
            z = name(jnp.sin(x) * y, "z")
            return jnp.cos(z) * z

        plain, by_name = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(plain):
            package.ad_checkpoint.print_saved_residuals(f, 1.0, 2.0)
        with contextlib.redirect_stdout(by_name):
            package.ad_checkpoint.print_saved_residuals(
                package.checkpoint(f, policy=package.checkpoint_policies.save_only_these_names("z")), 1.0, 2.0)
        return sorted(plain.getvalue().splitlines()), sorted(by_name.getvalue().splitlines())

    assert told(styrax) == told(jax)


def test_closed_over_values_are_differentiated():
    def program(package):
        return package.grad(lambda y: package.checkpoint(lambda x: package.numpy.sin(x * y))(2.0))(3.0)

    assert_same(program)


def test_references_inside():
    def f(x):
        ref = styrax.new_ref(x)
        ref[0] = styrax.numpy.sin(ref[1])
        return (ref[...] ** 2).sum()

    np.testing.assert_allclose(styrax.grad(styrax.checkpoint(f))(vector), styrax.grad(f)(vector), rtol=1e-6)


@pytest.mark.parametrize("policy", ["none", "everything", "dots"])
@pytest.mark.parametrize("around", ["grad", "jit", "vmap", "scan", "cond", "pullbacks"])
def test_what_is_printed_is_printed_again(policy, around):
    """Where a program is run again, so is the debugging in it."""

    def program(package):
        seen = []

        def f(x):
            y = package.numpy.sin(x)
            package.debug.callback(lambda y: seen.append(round(float(y), 3)), y)
            return package.numpy.cos(y)

        g = package.checkpoint(f, policy=POLICIES[policy](package))
        lax = package.lax
        runs = {
            "grad": lambda: package.grad(g)(1.0),
            "jit": lambda: package.jit(package.grad(g))(1.0),
            "vmap": lambda: package.vmap(package.grad(g))(vector),
            "scan": lambda: package.grad(lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0])(1.0),
            "cond": lambda: package.grad(lambda x: lax.cond(x > 0, g, lambda x: x, x))(1.0),
            "pullbacks": lambda: [package.vjp(g, 1.0)[1](ct) for ct in (1.0, 2.0)],
        }
        runs[around]()
        package.effects_barrier()
        return sorted(seen)

    assert program(styrax) == program(jax)


@pytest.mark.parametrize("transform", ["grad", "jit of grad", "vmap of grad"])
def test_a_saved_result_is_not_computed_again(transform):
    """A policy that keeps everything: what an inner program gave is a residual, and nothing binds it twice."""
    def program(package):
        @functools.partial(package.checkpoint, policy=lambda *_, **__: True)
        def f(x):
            y = package.numpy.ones(2)
            for _ in range(2):
                x = package.jit(lambda x=x: x * y)()
            a, b = package.jit(lambda: (x, package.numpy.sin(x)))()
            return (a * b).sum()

        g = package.grad(f)
        return {"grad": g, "jit of grad": package.jit(g), "vmap of grad": package.vmap(g)}[transform]

    x = np.arange(3.0, dtype=np.float32) if transform.startswith("vmap") else np.float32(3.0)
    with styrax.enable_checks(True):
        found = program(styrax)(x)
    np.testing.assert_allclose(found, program(jax)(x), rtol=1e-6)
