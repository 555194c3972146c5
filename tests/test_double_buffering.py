"""Carries that turns read after they have begun to make the next ones: two memories in turns, against NumPy."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from tests.lax.harness import ENGINES, execute, stage

N = 40  # 6400 bytes as float32: large enough that memories are exchanged
X = np.linspace(-1, 2, N * N, dtype=np.float32).reshape(N, N)
TURNS = [0, 1, 2, 3, 7, 10]


@pytest.fixture(autouse=True, params=["whole", "outlined"])
def outlined(request, monkeypatch):
    """In programs whose nests are functions of their own, too."""
    if request.param == "outlined":
        monkeypatch.setattr("styrax.cpu.outlining.MANY", 0)


def blur(x, j=jnp):
    return (j.roll(x, 1, 0) + j.roll(x, -1, 0) + j.roll(x, 1, 1) + x) * np.float32(0.25)


def blurred(x, turns):
    for _ in range(turns):
        x = blur(x, np)
    return x


def exchanges(f, *args):
    return jax.jit(f).lower(*args).compile().as_text().count("exchange ")


def close(found, wanted, **tolerance):
    np.testing.assert_allclose(np.asarray(found), wanted, **{"rtol": 1e-5, "atol": 1e-6, **tolerance})


@pytest.mark.parametrize("turns", TURNS)
def test_scan(turns):
    def f(x):
        return lax.scan(lambda c, _: (blur(c), c[0, 0]), x, None, length=turns)

    out, seen = jax.jit(f)(X)
    close(out, blurred(X, turns))
    close(seen, [blurred(X, k)[0, 0] for k in range(turns)])
    assert exchanges(f, X) == (turns > 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("turns", [3, 4])
def test_engines(engine, turns):
    closed = stage(lambda x: lax.fori_loop(0, turns, lambda i, c: blur(c), x), [X])
    close(execute(engine, closed, [X])[0], blurred(X, turns))


@pytest.mark.parametrize("turns", TURNS)
def test_loops_of_unknown_length(turns):
    @jax.jit
    def f(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, blur(c[1])), (0, x))[1] + 1

    close(f(X, turns), blurred(X, turns) + 1)


@pytest.mark.parametrize("turns", TURNS)
def test_predicates_that_read_what_is_exchanged(turns):
    first = np.abs(X).sum()

    @jax.jit
    def f(x):
        return lax.while_loop(lambda c: (jnp.abs(c[1]).sum() > 0) & (c[0] < turns),
                              lambda c: (c[0] + 1, blur(c[1])), (0, x))[1]

    assert first > 0
    close(f(X), blurred(X, turns))


def test_several_carries():
    def f(u, v):
        def turn(c, _):
            u, v, w = c
            v = v + blur(u) - u
            return (u + v * 0.5, v, w + 1), u.sum()

        return lax.scan(turn, (u, v, jnp.zeros(3)), None, length=9)

    (u, v, w), seen = jax.jit(f)(X, X * 0)
    a, c = X, X * 0
    sums = []
    for _ in range(9):
        sums.append(a.sum())
        c = c + blur(a, np) - a
        a = a + c * np.float32(0.5)
    close(u, a, rtol=1e-4, atol=1e-4)
    close(v, c, rtol=1e-4, atol=1e-4)
    close(w, [9, 9, 9])
    close(seen, sums, rtol=1e-3, atol=1e-2)
    assert exchanges(f, X, X) == 1


@pytest.mark.parametrize("outer", [1, 2, 5])
def test_loops_in_loops(outer):
    def f(x):
        def turn(c, _):
            return lax.fori_loop(0, 3, lambda i, c: blur(c), blur(c) + c), None

        return lax.scan(turn, x, None, length=outer)[0]

    wanted = X
    for _ in range(outer):
        wanted = blurred(blur(wanted, np) + wanted, 3)
    close(jax.jit(f)(X), wanted, rtol=1e-4)


def test_carries_that_move_on():
    """Each carry takes the place of the next."""
    def f(x, y):
        return lax.fori_loop(0, 5, lambda i, c: (blur(c[1]), c[0], c[1]), (x, y, x))

    a, c, d = X, X[::-1], X
    for _ in range(5):
        a, c, d = blur(c, np), a, c
    for found, wanted in zip(jax.jit(f)(X, X[::-1].copy()), (a, c, d), strict=True):
        close(found, wanted)


def rotated(carries, turns, step):
    for _ in range(turns):
        carries = (step(carries, np), *carries[:-1])
    return carries


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("memories", [2, 3, 4])
@pytest.mark.parametrize("turns", TURNS)
def test_values_that_move_on(turns, memories, dtype):
    """Methods of several steps: what one carry holds is the next one's value; memories change their roles."""
    def step(carries, j):
        total = j.roll(carries[0], 3, 0)
        for c in carries[1:]:
            total = total - c[::-1]
        return total

    with jax.enable_x64(True):
        given = [(X * 8 + k).astype(dtype) for k in range(memories)]
        wanted = rotated(tuple(given), turns, step)

        def counted(*carries):
            return lax.fori_loop(0, turns, lambda i, c: (step(c, jnp), *c[:-1]), carries)

        def scanned(*carries):
            return lax.scan(lambda c, _: ((step(c, jnp), *c[:-1]), c[-1][0, 0]), carries, None, length=turns)

        def until(n, *carries):
            return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, (step(c[1], jnp), *c[1][:-1])),
                                  (0, carries))[1]

        outs, seen = jax.jit(scanned)(*given)
        donated = jax.jit(counted, donate_argnums=tuple(range(memories)))(*map(jnp.array, given))
        for found in (jax.jit(counted)(*given), outs, jax.jit(until)(turns, *given), donated):
            for x, y in zip(found, wanted, strict=True):
                assert x.dtype == dtype
                close(x, y)
        close(seen, [rotated(tuple(given), k, step)[-1][0, 0] for k in range(turns)])
        if turns > 1:
            text = jax.jit(counted).lower(*given).compile().as_text()
            assert text.count(" with ") == min(memories, 2), text


def test_values_that_move_on_within_loops():
    """Loops in loops, whose carries begin as parts of others; the first is a result, too."""
    def turn(c, j):
        return j.roll(c[0], 1, 1) * np.float32(0.5) + c[1][::-1], c[0]

    def f(u, v):
        def outer(c, _):
            c = lax.fori_loop(0, 3, lambda i, c: turn(c, jnp), (c[0] + 1, c[1][::-1]))
            return (c[1], c[0]), c[0].sum()

        return lax.scan(outer, (u, v), None, length=4)

    (u, v), seen = jax.jit(f)(X, X[::-1].copy())
    a, b, sums = X, X[::-1], []
    for _ in range(4):
        a, b = a + 1, b[::-1]
        for _ in range(3):
            a, b = turn((a, b), np)
        a, b = b, a
        sums.append(b.sum())
    close(u, a, rtol=1e-4, atol=1e-4)
    close(v, b, rtol=1e-4, atol=1e-4)
    close(seen, sums, rtol=1e-3, atol=1e-2)


def test_slopes_of_values_that_move_on():
    def f(u, v):
        return lax.scan(lambda c, _: ((1.5 * jnp.roll(c[0], 1, 0) - 0.9 * c[1], c[0]), None), (u, v), None,
                        length=6)[0][0].sum()

    found = jax.jit(jax.vmap(jax.grad(f, (0, 1))))(jnp.stack([X, X]), jnp.stack([X, X + 1]))
    a, b = np.ones_like(X), np.zeros_like(X)
    for _ in range(6):
        a, b = 1.5 * np.roll(a, -1, 0) + b, -0.9 * a
    for x, y in zip(found, (a, b), strict=True):
        close(x, np.stack([y, y]), rtol=1e-4, atol=1e-4)


def test_branches():
    def f(x):
        return lax.fori_loop(0, 7, lambda i, c: lax.cond(i % 3 == 1, lambda c: c[::-1] * 2, blur, c), x)

    wanted = X
    for i in range(7):
        wanted = wanted[::-1] * 2 if i % 3 == 1 else blur(wanted, np)
    close(jax.jit(f)(X), wanted)


def test_slopes():
    def f(x):
        return jnp.sum(lax.scan(lambda c, _: (blur(jnp.sin(c)), None), x, None, length=4)[0] ** 2)

    x = X.astype(np.float64)
    with jax.enable_x64(True):
        slope = np.asarray(jax.jit(jax.grad(f))(x))
        for place in ((0, 0), (7, 31)):
            ahead, behind = x.copy(), x.copy()
            ahead[place] += 1e-5
            behind[place] -= 1e-5
            assert slope[place] == pytest.approx(float(f(ahead) - f(behind)) / 2e-5, rel=1e-5, abs=1e-8)


def test_donated_and_mapped():
    def f(x):
        return lax.fori_loop(0, 5, lambda i, c: blur(c), x)

    close(jax.jit(f, donate_argnums=0)(jnp.array(X)), blurred(X, 5))
    stack = np.stack([X, X.T, -X])
    close(jax.jit(jax.vmap(f))(stack), np.stack([blurred(x, 5) for x in stack]))


def test_complex_and_integers():
    z = (X + 1j * X[::-1]).astype(np.complex64)
    close(jax.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.roll(c, 1, 0) * 0.5 + c, x))(z), _rolled(z, 0.5))
    k = np.arange(N * N, dtype=np.int32).reshape(N, N)
    np.testing.assert_array_equal(
        jax.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.roll(c, 1, 0) * 3 + c, x))(k), _rolled(k, 3))


def _rolled(x, factor):
    for _ in range(5):
        x = np.roll(x, 1, 0) * x.dtype.type(factor) + x
    return x


def test_small_carries_are_copied():
    assert exchanges(lambda x: lax.fori_loop(0, 5, lambda i, c: blur(c), x), X[:4, :4]) == 0
