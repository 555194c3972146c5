"""Jaxprs of transformed programs print as JAX's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same_text, matrix, vector

PROGRAMS = {}


def program(*args, **options):
    def register(make):
        PROGRAMS[make.__name__] = (make, args, options)
        return make

    return register


def nested_sin(jax):
    return lambda x: jax.numpy.sin(jax.numpy.sin(x))


def product(jax):
    return lambda x: x * jax.numpy.sin(x)


@program(2.0)
def grad(jax):
    return jax.grad(product(jax))


@program(2.0)
def grad_of_jit(jax):
    return jax.grad(jax.jit(product(jax)))


@program(2.0)
def grad_of_two_jits(jax):
    f = jax.jit(product(jax))
    return jax.grad(lambda x: f(x) * f(x * 2))


@program(2.0)
def grad_of_grad(jax):
    return jax.grad(jax.grad(product(jax)))


@program(2.0)
def grad_of_grad_of_jit(jax):
    return jax.grad(jax.grad(jax.jit(product(jax))))


@program(2.0)
def jvp_of_jit(jax):
    return lambda x: jax.jvp(jax.jit(product(jax)), (x,), (x,))


@program(2.0)
def jvp_of_grad(jax):
    return lambda x: jax.jvp(jax.grad(product(jax)), (x,), (1.0,))


@program(vector)
def vmap_of_jit(jax):
    return jax.vmap(jax.jit(product(jax)))


@program(vector)
def vmap_of_grad(jax):
    return jax.vmap(jax.grad(product(jax)))


@program(matrix)
def vmap_of_vmap(jax):
    return jax.vmap(lambda x: jax.vmap(lambda a, b: a * b, in_axes=(0, None))(x, x[0]))


@program(matrix)
def vmap_of_matmul(jax):
    return jax.grad(lambda x: jax.numpy.sum(jax.vmap(lambda y: jax.numpy.sin(y) @ y)(x)))


@program(matrix)
def vmap_axes(jax):
    return jax.vmap(lambda x: jax.numpy.sin(x), in_axes=1, out_axes=-1)


@program(2.0)
def linearize(jax):
    return lambda x: jax.linearize(product(jax), x)[1](x)


@program(2.0)
def vjp(jax):
    return lambda x: jax.vjp(product(jax), x)[1](x)


@program(2.0)
def zero_tangents(jax):
    return lambda x: jax.jvp(lambda x: (1.0, jax.numpy.ones(3)), (x,), (x,))


@program(vector)
def zero_gradient(jax):
    return jax.grad(lambda x: 1.0)


@program(vector)
def gradient_of_an_element(jax):
    return jax.grad(lambda x: x[0] * 2)


@program(2.0)
def grad_of_scan(jax):
    return jax.grad(lambda x: jax.lax.scan(lambda c, _: (product(jax)(c), None), x, None, length=3)[0])


@program(vector)
def vmap_of_grad_of_scan(jax):
    return jax.vmap(grad_of_scan(jax))


@program(vector)
def vmap_of_while(jax):
    return jax.vmap(lambda x: jax.lax.while_loop(lambda c: c < 10, lambda c: c * 2, x))


def with_jvp(jax):
    f = jax.custom_jvp(lambda x: jax.numpy.sin(x))
    f.defjvp(lambda p, t: (f(p[0]), t[0] * 2.0))
    return f


@program(2.0)
def custom_jvp(jax):
    return with_jvp(jax)


@program(2.0)
def grad_of_custom_jvp(jax):
    f = with_jvp(jax)
    return jax.grad(lambda x: f(x) * x)


@program(vector)
def vmap_of_custom_jvp(jax):
    return jax.vmap(with_jvp(jax))


def with_vjp(jax):
    f = jax.custom_vjp(lambda x: jax.numpy.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda r, g: (g * r,))
    return f


@program(2.0)
def custom_vjp(jax):
    return with_vjp(jax)


@program(2.0)
def grad_of_jit_of_custom_vjp(jax):
    return jax.grad(jax.jit(with_vjp(jax)))


@program(vector)
def vmap_of_custom_vjp(jax):
    return jax.vmap(with_vjp(jax))


@program(2.0)
def checkpoint_in_jit(jax):
    return jax.grad(jax.jit(jax.checkpoint(nested_sin(jax))))


@program(2.0)
def second_derivative_of_checkpoint(jax):
    return jax.grad(jax.grad(jax.checkpoint(nested_sin(jax))))


@program(2.0)
def checkpoint_by_name(jax):
    name = jax.ad_checkpoint.checkpoint_name
    return jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(name(jax.numpy.sin(x), "a")),
                                   policy=jax.checkpoint_policies.save_only_these_names("a")))


@program(2.0)
def checkpoint_in_scan(jax):
    body = jax.checkpoint(nested_sin(jax))
    return jax.grad(lambda x: jax.lax.scan(lambda c, _: (body(c), None), x, None, length=2)[0])


@program(2.0)
def jvp_of_checkpoint(jax):
    return lambda x: jax.jvp(jax.checkpoint(nested_sin(jax)), (x,), (x,))


@program(vector)
def vmap_of_checkpoint(jax):
    return jax.vmap(jax.checkpoint(nested_sin(jax)))


def through_a_reference(jax):
    def f(x):
        ref = jax.new_ref(0.0)
        ref[...] = x
        ref[...] = jax.numpy.sin(ref[...])
        ref[...] += x * ref[...]
        return ref[...]

    return f


@program(2.0)
def references(jax):
    return through_a_reference(jax)


@program(2.0)
def jvp_of_references(jax):
    return lambda x: jax.jvp(through_a_reference(jax), (x,), (x,))


@program(np.zeros((3, 3), np.float32))
def vmap_of_references(jax):
    def f(x):
        ref = jax.new_ref(x)
        ref[0] = x[1]
        return ref[...]

    return jax.vmap(f)


@program(np.zeros((3, 3), np.float32))
def psum_under_vmap(jax):
    return jax.vmap(lambda x: (jax.lax.psum(x, "i"), jax.lax.pmean(x, "i"), jax.lax.psum(1, "i")), axis_name="i")


@program(np.zeros((3, 3), np.float32), axis_env=[("i", 3)])
def collectives(jax):
    lax = jax.lax
    return lambda x: (lax.psum(x, "i"), lax.pmean(x, "i"), lax.pmax(x, "i"), lax.all_gather(x, "i"),
                      lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), lax.axis_index("i"),
                      lax.all_to_all(x, "i", 0, 1), lax.psum_scatter(x, "i"), lax.pbroadcast(x, "i", 0))


for _policy in (None, "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"):

    def checkpoint_of_matmul(jax, policy=_policy):
        chosen = policy and getattr(jax.checkpoint_policies, policy)
        return jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(x @ x).sum(), policy=chosen))

    PROGRAMS[f"checkpoint {_policy}"] = (checkpoint_of_matmul, (matrix,), {})


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name):
    make, args, options = PROGRAMS[name]
    assert_same_text(make, *args, **options)
