"""Where no cotangent comes from stays zero, though an infinite or undefined slope lies behind: loops and calls."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

X = np.array([0.3, 2.0, 3.0], np.float32)  # arc cosines are undefined from the second on, with their slopes


def stepped(j, c):
    return j.numpy.sin(c[0]), c[1] + j.numpy.sum(c[0])


def counted(j, x):
    return j.lax.fori_loop(0, 2, lambda i, c: stepped(j, c), (x, j.lax.acos(x)))


def swapped(j, x):
    return j.lax.fori_loop(0, 2, lambda i, c: (j.numpy.sin(c[1]) * c[0], c[1] * 2), (j.lax.acos(x), x))[::-1]


def scanned(j, x):
    (a, b), ys = j.lax.scan(lambda c, y: ((c[0] * y, c[1] * 2), y), (x, j.lax.acos(x)), j.numpy.stack([x, x]))
    return a + ys.sum(0), b


def captured(j, x):
    z = j.lax.acos(x)
    return j.lax.scan(lambda c, y: (c * y, z * 3), x, j.numpy.stack([x, x]))


def over_inputs(j, x):
    return j.lax.scan(lambda c, y: (c * y[0], y[1] ** 2), x, (j.numpy.stack([x, x]), j.lax.acos(j.numpy.stack([x, x]))))


def nested(j, x):
    def outer(c, _):
        return j.lax.fori_loop(0, 2, lambda i, c: stepped(j, c), c), None

    return j.lax.scan(outer, (x, j.lax.acos(x)), None, length=2)[0]


def pushed(j, x):
    return j.jvp(lambda x, y: j.lax.fori_loop(0, 2, lambda i, c: stepped(j, c), (x, y)),
                 (x, j.lax.acos(x)), (x, x))[1]


def linearized(j, x):
    return j.linearize(lambda x, y: j.lax.fori_loop(0, 2, lambda i, c: stepped(j, c), (x, y)),
                       x, j.lax.acos(x))[1](x, x)


def chosen(j, x):
    return j.lax.cond(x[0] > 0, lambda a, b: (a * a, b * 2), lambda a, b: (a, b), x, j.lax.acos(x))


def recomputed(j, x):
    return j.checkpoint(lambda a, b: counted(j, a)[:1] + (b * b,))(x, j.lax.acos(x))


def called(j, x):
    return j.jit(lambda a, b: (a * a, b * b))(x, j.lax.acos(x))


PROGRAMS = [counted, swapped, scanned, captured, over_inputs, nested, pushed, linearized, chosen, recomputed, called]
TRANSFORMATIONS = {
    "grad": lambda j, f: j.grad(f),
    "jit of grad": lambda j, f: j.jit(j.grad(f)),
    "vmap of grad": lambda j, f: lambda x: j.vmap(j.grad(f))(j.numpy.stack([x, x * 0.5])),
    "push of grad": lambda j, f: lambda x: j.linearize(j.grad(f), x)[1](x),
    "grad of grad": lambda j, f: j.grad(lambda x: j.numpy.sum(j.grad(f)(x))),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_paths_without_cotangents(program, transformation):
    def result(j):
        return np.asarray(TRANSFORMATIONS[transformation](j, lambda x: j.numpy.sum(program(j, x)[0]))(X))

    found, wanted = result(styrax), result(real)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_references_are_written_all_the_same():
    """A write whose value nobody asks for by a cotangent is an effect, not dead code."""
    def run(j):
        seen = j.new_ref(j.numpy.zeros(3))

        def f(x):
            def body(c, _):
                seen[...] += j.lax.stop_gradient(c[0])
                return (c[0] * 2, c[1] + c[0]), None

            return j.lax.scan(body, (x, j.lax.acos(x)), None, length=2)[0][0].sum()

        return np.asarray(j.grad(f)(X)), np.asarray(seen[...])

    for found, wanted in zip(run(styrax), run(real), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
