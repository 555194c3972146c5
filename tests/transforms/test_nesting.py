"""Every ordered pair of transformations, and some triples, over small programs, against JAX."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, styrax

point = np.array([0.5, -0.25], np.float32)


def with_jvp(j, f):
    g = j.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), j.jvp(f, primals, tangents)[1] * 2))
    return g


def with_vjp(j, f):
    g = j.custom_vjp(f)
    g.defvjp(lambda x: j.vjp(f, x), lambda pull, ct: pull(ct * 2))
    return g


# each makes a function of a vector, with a vector of its shape as the result, of another such function
TRANSFORMATIONS = {
    "jit": lambda j, f: j.jit(f),
    "grad": lambda j, f: j.grad(lambda x: (f(x) * x).sum()),
    "jvp": lambda j, f: lambda x: sum(j.jvp(f, (x,), (x * 2,))),
    "vjp": lambda j, f: lambda x: j.vjp(f, x)[1](x)[0],
    "linearize": lambda j, f: lambda x: j.linearize(f, x)[1](x),
    "vmap": lambda j, f: lambda x: j.vmap(f, in_axes=1, out_axes=1)(j.numpy.stack([x, x * 2], 1)).sum(1),
    "checkpoint": lambda j, f: j.checkpoint(f),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "scan": lambda j, f: lambda x: j.lax.scan(lambda c, y: (f(c) * y, c.sum()), x, point)[0],
    "cond": lambda j, f: lambda x: j.lax.cond(x.sum() > 0.1, f, lambda x: x * 3, x),
    "while": lambda j, f: lambda x: j.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "hessian": lambda j, f: lambda x: j.hessian(lambda x: (f(x) * x).sum())(x)[0],
}


def in_place(j, x):
    ref = j.new_ref(x * 2)
    ref[0] = j.numpy.sin(ref[1])
    ref[...] += x
    return ref[...]


PROGRAMS = {
    "elementwise": lambda j, x: j.numpy.sin(x) * x,
    "reduction": lambda j, x: x / (1 + (x * x).sum()),
    "product": lambda j, x: j.numpy.array([[1.0, 2.0], [0.5, -1.0]]) @ j.numpy.tanh(x),
    "linear": lambda j, x: x[::-1] * 3,
    "constant": lambda j, x: j.numpy.ones_like(x),
    "identity": lambda j, x: x,
    "indexed": lambda j, x: j.numpy.zeros(2, x.dtype).at[j.numpy.argmax(x)].add(x[0] * x[1]),
    "sorted": lambda j, x: j.numpy.sort(x) * x,
    "selected": lambda j, x: j.numpy.where(x > 0, x * x, j.lax.stop_gradient(x)),
    "cumulative": lambda j, x: j.numpy.cumsum(j.numpy.cos(x)),
    "padded": lambda j, x: j.numpy.pad(x * x, 1)[1:3],
    "joined": lambda j, x: j.numpy.concatenate([x[1:] ** 2, x[:1]]),
    "rounded": lambda j, x: x * j.numpy.round(x).astype(int),
    "closing over": lambda j, x: j.lax.fori_loop(0, 2, lambda i, c: c * x + i, x),
    "in place": in_place,
}

pairs = list(itertools.product(TRANSFORMATIONS, TRANSFORMATIONS))
triples = random.Random(0).sample(list(itertools.product(TRANSFORMATIONS, repeat=3)), 6)
NESTS = pairs + triples
BUNDLES = 8


def compare(program, nest):
    def run(package):
        def f(x):
            return PROGRAMS[program](package, x)

        for name in reversed(nest):
            f = TRANSFORMATIONS[name](package, f)
        return f(point)

    try:
        expected = run(jax)
    except Exception as error:
        expected = error
    try:
        got = run(styrax)
    except Exception as error:
        got = error
    if isinstance(expected, Exception):
        # JAX lacks more than Styrax does: what it cannot do may work, or be refused in words
        if isinstance(got, Exception):
            assert isinstance(got, (TypeError, ValueError, NotImplementedError)), (nest, program, got, expected)
        return
    if isinstance(got, Exception):
        raise AssertionError(f"{program} under {nest}") from got
    assert_same(lambda package: expected if package is jax else got, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bundle", range(BUNDLES))
def test_nested_transformations(bundle):
    """Each nest with one of the programs, so that all programs and nests take part."""
    programs = list(PROGRAMS)
    for i, nest in list(enumerate(NESTS))[bundle::BUNDLES]:
        compare(programs[i % len(programs)], nest)
