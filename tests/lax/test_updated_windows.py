"""Scatters of one window, `x.at[a:b].add(y)` say: they are computed where they go, in place in loops, and may be made
of what they replace."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

N = 11
VALUES = np.array([0.5, -0.0, np.nan, np.inf, -np.inf, 3, -2, 1e-30, 7, -8, 2], np.float32)
OPERATIONS = {
    "set": lambda old, new: new,
    "add": lambda old, new: old + new,
    "subtract": lambda old, new: old - new,
    "multiply": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}
DTYPES = ["float32", "bfloat16", "int8", "uint32", "complex64"]


def operand(dtype: str) -> np.ndarray:
    x = np.arange(N * 6).reshape(N, 6) % 13 - 4
    if dtype in ("float32", "bfloat16"):
        x = x + VALUES[:, None]
    elif dtype == "complex64":
        x = x + 1j * x[::-1]
    return np.asarray(jnp.asarray(x.astype("float32") if dtype == "bfloat16" else x, dtype))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in OPERATIONS for dtype in DTYPES if dtype != "complex64" or name not in ("min", "max")])
def test_slices_like_numpy(name: str, dtype: str, jitted: bool) -> None:
    x = operand(dtype)
    update = np.asarray(jnp.asarray(x[::-1] * 2))[2:9, 1:5]
    for window in [np.s_[2:9, 1:5], np.s_[:7, :4], np.s_[4:, 2:]]:
        expected = x.copy()
        with np.errstate(all="ignore"):
            expected[window] = OPERATIONS[name](x[window], update)
        f = lambda x, u: getattr(x.at[window], name)(u)  # noqa: B023
        found = (jax.jit(f) if jitted else f)(jnp.asarray(x), jnp.asarray(update))
        np.testing.assert_array_equal(np.asarray(found).astype(np.complex128), expected.astype(np.complex128))


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_rows_and_columns_at_indices_of_the_call(name: str, mode: str) -> None:
    x = operand("float32")
    rows = jax.jit(lambda x, i, u: getattr(x.at[i], name)(jnp.exp2(u), mode=mode))
    columns = jax.jit(lambda x, i, u: getattr(x.at[:, i], name)(jnp.exp2(u), mode=mode))
    elements = jax.jit(lambda x, i, u: getattr(x.at[i, 2], name)(u[0], mode=mode))
    u = np.array([1, -2, 3, 0, -1, 2, 5, 1, -4, 2, 0], np.float32)
    for i in [0, 3, N - 1, -1, -N, N, N + 40, -N - 1]:
        if mode == "promise_in_bounds" and not -N <= i < 6:
            continue
        for f, size, index, new in [(rows, N, lambda k: np.s_[k], np.exp2(u[:6])),
                                    (columns, 6, lambda k: np.s_[:, k], np.exp2(u)),
                                    (elements, N, lambda k: np.s_[k, 2], u[0])]:
            place = i + size if i < 0 else i
            if mode == "promise_in_bounds" and not 0 <= place < size:
                continue
            if mode == "clip":
                place = min(max(place, 0), size - 1)
            expected = x.copy()
            if 0 <= place < size:
                with np.errstate(all="ignore"):
                    expected[index(place)] = OPERATIONS[name](x[index(place)], new)
            np.testing.assert_array_equal(np.asarray(f(x, jnp.int32(i), u[:6] if f is rows else u)), expected)


SELVES = {
    "the same elements": (lambda x: x.at[2:9].set(x[2:9] * 2 + 1), lambda x, y: y[2:9] * 2 + 1),
    "those before": (lambda x: x.at[2:9].set(x[1:8] - x[2:9]), lambda x, y: y[1:8] - y[2:9]),
    "those after, added": (lambda x: x.at[2:9].add(x[3:10] + x[2:9]), lambda x, y: y[2:9] + (y[3:10] + y[2:9])),
    "turned round": (lambda x: x.at[2:9].set(x[2:9][::-1]), lambda x, y: y[2:9][::-1]),
}


@pytest.mark.parametrize("kind", SELVES)
@pytest.mark.parametrize("looped", [False, True])
def test_windows_made_of_what_they_replace(kind: str, looped: bool) -> None:
    f, expected = SELVES[kind]
    x = (np.arange(N * 40).reshape(N, 40) % 17).astype(np.float32)
    turns = 4 if looped else 1
    y = x.copy()
    for _ in range(turns):
        y[2:9] = expected(x, y.copy())
    g = jax.jit(lambda x: lax.fori_loop(0, 4, lambda _, x: f(x), x)) if looped else jax.jit(f)
    np.testing.assert_array_equal(np.asarray(g(x)), y)
    np.testing.assert_array_equal(np.asarray(jax.vmap(g)(np.stack([x, x + 1]))[0]), y)


@pytest.mark.parametrize("size", [6, 70])
def test_fields_that_update_each_other_in_a_scan(size: int) -> None:
    """Maxwell's equations in two dimensions on a staggered grid (Yee, 1966)."""
    rng = np.random.default_rng(0)
    ez, hx, hy = rng.standard_normal((3, size, size)).astype(np.float32)

    def turn(fields: tuple, t: jax.Array) -> tuple:
        ez, hx, hy = fields
        hx = hx.at[:, :-1].add(-0.5 * (ez[:, 1:] - ez[:, :-1]))
        hy = hy.at[:-1].add(0.5 * (ez[1:] - ez[:-1]))
        ez = ez.at[1:-1, 1:-1].add(0.5 * (hy[1:-1, 1:-1] - hy[:-2, 1:-1] - hx[1:-1, 1:-1] + hx[1:-1, :-2]))
        return (ez.at[size // 2, size // 2].set(t), hx, hy), ez[1, 2]

    times = np.arange(8, dtype=np.float32)
    expected = ez.astype(np.float64), hx.astype(np.float64), hy.astype(np.float64)
    seen = []
    for t in times:
        e, x, y = expected
        x[:, :-1] -= 0.5 * (e[:, 1:] - e[:, :-1])
        y[:-1] += 0.5 * (e[1:] - e[:-1])
        e[1:-1, 1:-1] += 0.5 * (y[1:-1, 1:-1] - y[:-2, 1:-1] - x[1:-1, 1:-1] + x[1:-1, :-2])
        seen.append(e[1, 2])
        e[size // 2, size // 2] = t
    run = jax.jit(lambda *fields: lax.scan(turn, fields, times))
    found, probes = run(ez, hx, hy)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(np.asarray(probes), seen, rtol=2e-5, atol=2e-5)
    slope = jax.grad(lambda e: (run(e, hx, hy)[0][0] ** 2).sum())(ez)
    step = 1e-2 * np.sign(np.asarray(slope))
    up, down = (float((run(ez + s, hx, hy)[0][0].astype(np.float32) ** 2).sum()) for s in (step, -step))
    assert (up - down) / 2 == pytest.approx(float((slope * step).sum()), rel=1e-2)


@pytest.mark.parametrize("shape", [(3, 1), (3, 2, 1), (5, 4), (40, 33)])
def test_what_is_made_of_updated_windows(shape: tuple[int, ...]) -> None:
    """An update reads what it replaces: who computes with its result must not make it once more."""
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)

    def f(numpy: object, add: object, x: object) -> list:
        whole, part, twice = add(x, np.s_[..., 0], 4), add(x, np.s_[1:], 5), add(add(x, np.s_[:2], 1), np.s_[:2], 2)
        return [whole, numpy.where(x < 7, whole, 9), part * 2 + x, (part * part).sum(0), twice + whole, twice]

    def added(x: np.ndarray, index: tuple, value: int) -> np.ndarray:
        y = x.copy()
        y[index] += value
        return y

    found = jax.jit(lambda x: f(jnp, lambda x, index, value: x.at[index].add(value), x))(x)
    for a, b in zip(found, f(np, added, x), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)
