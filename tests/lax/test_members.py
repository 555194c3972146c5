"""Coordinates, colours, quaternions: values whose members are read one by one, against NumPy's."""

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.jaxprs.inline import inline
from styrax.compile.lowering.reuse import count_uses
from styrax.compile.pipeline import compile_to_loops

SIZES = [0, 1, 15, 16, 33, 1000]


def hamilton(a, b, np=jnp):
    aw, ax, ay, az = (a[..., k] for k in range(4))
    bw, bx, by, bz = (b[..., k] for k in range(4))
    return np.stack([aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                     aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw], axis=-1)


def turned(q, v, np=jnp):
    q = q / np.sqrt((q * q).sum(-1, keepdims=True) + 1)
    p = np.concatenate([np.zeros_like(v[..., :1]), v], axis=-1)
    return hamilton(hamilton(q, p, np), q * np.asarray([1, -1, -1, -1]).astype(q.dtype), np)[..., 1:]


def boxes(a, b, np=jnp):
    """Intersection over union."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(high - low, 0)
    shared = sides[..., 0] * sides[..., 1]
    area = [np.abs((x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])) for x in (a, b)]
    return shared / (area[0][:, None] + area[1] - shared + 1)


def colours(x, np=jnp):
    y = np.where(x > 0, x * x, x / 3) * 2
    first, second, third = np.moveaxis(y, -1, 0)
    return np.maximum(first, second) - third, np.minimum(np.minimum(first, second), third), y.max(-1)


def halves(x, np=jnp):
    y = np.abs(x * x - x) + 1
    return y[:, : y.shape[1] // 2] / y[:, y.shape[1] // 2:], y[::2, 0] - 1


def stencil(x, np=jnp):
    y = np.abs(x * x - x)
    return y[:-2] + y[2:] - 2 * y[1:-1]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


PROGRAMS = {
    "quaternions": (turned, lambda n: (numbers(n, 4), numbers(n, 3, seed=1))),
    "boxes": (boxes, lambda n: (numbers(n, 4), numbers(7, 4, seed=1))),
    "colours": (colours, lambda n: (numbers(n, 5, 3),)),
    "halves": (halves, lambda n: (numbers(n, 32),)),
    "stencil": (stencil, lambda n: (numbers(n + 2, 3),)),
}


def close(found, wanted, tolerance):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x).astype(np.float64), y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    f, arguments = PROGRAMS[name]
    tolerance = 100 * float(jnp.finfo(dtype).eps)
    with jax.enable_x64(True):
        for n in SIZES:
            given = [a.astype(dtype) for a in arguments(n)]
            wanted = f(*[a.astype(np.float64) for a in given], np)
            found = jax.jit(f)(*given)
            assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(dtype)}
            close(found, wanted, tolerance)
            close(f(*map(jnp.asarray, given)), wanted, tolerance)
            many = jax.jit(jax.vmap(f))(*[np.stack([a, a]) for a in given])
            close(jax.tree.map(lambda x: x[1], many), wanted, tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_loops(name):
    """Slopes against central differences, inside a loop as well."""
    f, arguments = PROGRAMS[name]
    with jax.enable_x64(True):
        first, *others = arguments(6)
        weights = jax.tree.map(lambda x: numbers(*np.shape(x), seed=2), f(first, *others, np))

        def total(x, np):
            return sum((w * y).sum() for w, y in zip(jax.tree.leaves(weights), jax.tree.leaves(f(x, *others, np)),
                                                     strict=True))

        def turns(x):
            return lax.scan(lambda c, k: (c + total(x + k, jnp), None), 0.0, jnp.arange(3.0))[0]

        direction = numbers(*first.shape, seed=3)
        step = 1e-6 * direction
        slopes = jax.jit(jax.vmap(jax.grad(turns)))(first[None])[0]
        wanted = sum((total(first + k + step, np) - total(first + k - step, np)) / 2e-6 for k in range(3))
        np.testing.assert_allclose((slopes * direction).sum(), wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.complex64, bool])
def test_other_numbers(dtype):
    with jax.enable_x64(True):
        x = (numbers(40, 4) * 50).astype(np.int64).astype(dtype)
        y = (numbers(40, 4, seed=1) * 50).astype(np.int64).astype(dtype)

        def f(x, y, np=jnp):
            z = np.where(x == y, x, x * y)
            return z[:, 0] * z[:, 1] + z[:, 2] * z[:, 3], z[:, ::2] + z[:, 1::2], z[:, 3] * z[:, 0]

        for found, wanted in zip(jax.jit(f)(x, y), f(x, y, np), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_what_is_no_number():
    x = np.array([[np.nan, 1, 2], [np.inf, -np.inf, 0], [-0.0, 0.0, np.inf], [1e38, 3e38, -3e38]] * 8, np.float32)

    def f(x, np=jnp):
        y = np.abs(x) * 2 + x
        return y[:, 0] + y[:, 1], np.maximum(y[:, 1], y[:, 2]), y[:, 0] * y[:, 2]

    with np.errstate(all="ignore"):
        for found, wanted in zip(jax.jit(f)(x), f(x, np), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_one_loop():
    """What is computed of members shares a loop: nothing between is stored."""
    closed = jax.make_jaxpr(turned)(np.ones((100, 4), np.float32), np.ones((100, 3), np.float32))
    assert str(compile_to_loops(closed, "f")).count("for ") <= 2


COUNTS = {  # the first operand's uses: its own, those of an element, and the dimension that is read apart
    "disjoint": (lambda x: x[:, :3] + x[:, 3:], (2, 1, None)),
    "meeting": (lambda x: x[:, :4] + x[:, 2:], (2, 2, None)),
    "in phase": (lambda x: x[:, ::3] + x[:, 1::3] + x[:, 2::3], (3, 1, None)),
    "phases that meet": (lambda x: x[:, 1::2] * x[:, ::2] + x[:, 3:], (3, 3, None)),
    "members": (lambda x: [x[:, k] * x[:, 0] for k in range(1, 6)], (10, 5, 1)),
    "a whole": (lambda x: (x[:, 0] + x[:, 1], x), (3, 2, None)),
    "rows": (lambda x: [y + 1 for y in x], (4, 1, 0)),
    "pieces": (lambda x: sum(jnp.split(x, 2, 1)), (1, 1, None)),
    "members of what is moved": (lambda x: x.T[0] + x.T[5], (2, 2, 1)),
    "folded": (lambda x: x.max(1) + x[:, 0], (2, 2, 1)),
    "multiplied": (lambda x: x[:, :2] @ x[:2, 2:4], (2, 2, None)),
    "nothing": (lambda x: x[:, :0], (1, 0, None)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_uses(name):
    f, wanted = COUNTS[name]
    jaxpr = jax.make_jaxpr(f)(np.ones((4, 6), np.float32)).jaxpr
    assert tuple(count_uses(jaxpr)[jaxpr.invars[0]])[:3] == wanted


OFTEN = {  # whether an element of the first operand may be read again and again, by one reader
    "elementwise and folded": (lambda x: (x + 1, x.sum(0), jnp.tanh(x).max()), False),
    "times a vector": (lambda x: x @ jnp.ones(6), False),
    "times a matrix": (lambda x: x @ jnp.ones((6, 3)), True),
    "moved, then times a matrix": (lambda x: (x * 2).T @ jnp.ones((4, 2)), True),
    "folded, then times a matrix": (lambda x: x.sum(0, keepdims=True) @ jnp.ones((6, 2)), False),
    "broadcast": (lambda x: x[:, None] + jnp.ones((4, 5, 6)), True),
    "surrounded": (lambda x: jnp.pad(x, 1) * 2, False),
    "spread": (lambda x: jax.lax.pad(x, 0.0, ((0, 0, 0), (0, 0, 3))), True),
}


@pytest.mark.parametrize("name", OFTEN)
def test_what_is_read_often(name):
    f, wanted = OFTEN[name]
    jaxpr = inline(jax.make_jaxpr(f)(np.ones((4, 6), np.float32))).jaxpr
    assert count_uses(jaxpr)[jaxpr.invars[0]].often is wanted
