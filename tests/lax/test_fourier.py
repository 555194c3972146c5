"""Discrete Fourier transforms against NumPy's in double precision, and their rules against JAX's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import styrax
import styrax.numpy as own
from styrax import lax
from styrax.lax.fourier import lengths
from styrax.transforms.api import jvp, vjp, vmap
from tests.lax.oracle import check

RELATIVE = {"float32": 2e-6, "float64": 1e-14}
# of each way that lines are taken: a few points, one line as rows and columns, lines side by side (with a last block
# that overlaps the one before), one axis among others, and each of these by a convolution
SHAPES = [(1,), (2,), (3,), (13,), (16,), (100,), (1024,), (3, 8), (20, 8), (100, 7), (65, 24), (5, 1000), (300, 60),
          (17,), (97,), (509,), (67, 17), (40, 34), (37, 164), (3, 2 * 127), (67, 131), (40, 262), (0, 4), (2, 3, 5)]


def draw(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def close(got, want, dtype):
    got = np.asarray(got)
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= RELATIVE[dtype] * np.abs(want).max(initial=0)


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, dtype):
    wide = {"float32": "complex64", "float64": "complex128"}[dtype]
    with styrax.enable_x64(True):
        z, x, n = draw(shape, wide), draw(shape, dtype), shape[-1]
        run = styrax.jit(lambda z, x: (lax.fft(z, "FFT", (n,)), lax.fft(z, "IFFT", (n,)), lax.fft(x, "RFFT", (n,))))
        forward, inverse, half = run(z, x)
        assert forward.dtype == inverse.dtype == half.dtype == wide
        if z.size:
            close(forward, np.fft.fft(z.astype(complex)), dtype)
            close(inverse, np.fft.ifft(z.astype(complex)), dtype)
            close(half, np.fft.rfft(x.astype(float)), dtype)
        for m in (2 * n - 2, 2 * n - 1):
            if m > 0:
                back = lax.fft(z, "IRFFT", (m,))
                assert back.dtype == dtype
                if z.size:
                    close(back, np.fft.irfft(z.astype(complex), m), dtype)


@pytest.mark.parametrize("shape", [(7, 34, 12), (33, 12, 40), (4, 6, 1), (12, 1, 4), (5, 37, 2), (3, 1, 1)], ids=str)
def test_several_axes(shape):
    z, x = draw(shape, "complex64"), draw(shape)
    for count in (2, 3):
        axes = tuple(range(3 - count, 3))
        n = shape[3 - count:]
        close(lax.fft(z, "FFT", n), np.fft.fftn(z.astype(complex), axes=axes), "float32")
        close(lax.fft(z, lax.FftType.IFFT, n), np.fft.ifftn(z.astype(complex), axes=axes), "float32")
        close(lax.fft(x, "rfft", n), np.fft.rfftn(x.astype(float), axes=axes), "float32")
        for last in (2 * n[-1] - 2, 2 * n[-1] - 1):
            if last:
                want = np.fft.irfftn(z.astype(complex), (*n[:-1], last), axes)
                close(lax.fft(z, "IRFFT", (*n[:-1], last)), want, "float32")


def test_every_length():
    for n in (*range(1, 40), 49, 53, 81, 107, 113, 121, 125, 127, 128, 131, 169, 289, 361):
        z = draw((n,), "complex64", n)
        matrix = np.exp(-2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)
        close(styrax.jit(lambda z, n=n: lax.fft(z, "FFT", (n,)))(z), matrix @ z, "float32")


def test_lengths_are_taken_apart():
    for n in range(1, 3000):
        if lengths.is_smooth(n):
            assert np.prod(lengths.radices(n)) == n
            grid = lengths.split(n)
            assert grid is None or grid[0] * grid[1] == n and 4 <= grid[0] <= grid[1]
        else:
            m = lengths.convolution_length(n)
            assert lengths.is_smooth(m) and 2 * n - 1 <= m < 4 * n
            assert lengths.split(m) is not None


def test_a_line_depends_on_no_other():
    z = draw((37, 48), "complex64")
    whole = np.asarray(styrax.jit(lambda z: lax.fft(z, "FFT", (48,)))(z))
    z[5] = np.nan
    other = np.asarray(styrax.jit(lambda z: lax.fft(z, "FFT", (48,)))(z))
    np.testing.assert_array_equal(np.delete(whole, 5, 0), np.delete(other, 5, 0))
    assert np.isnan(other[5]).all()


RULES = [("FFT", (3, 8), (8,)), ("IFFT", (3, 8), (3, 8)), ("FFT", (2, 3, 17), (3, 17)), ("RFFT", (3, 8), (8,)),
         ("RFFT", (3, 7), (7,)), ("RFFT", (2, 4, 6), (4, 6)), ("IRFFT", (3, 5), (8,)), ("IRFFT", (3, 5), (9,)),
         ("IRFFT", (4, 5), (4, 8)), ("RFFT", (4, 1), (1,)), ("IRFFT", (4, 1), (1,))]


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("kind, shape, n", RULES, ids=str)
def test_rules(kind, shape, n, platform):
    x = draw(shape, "float32" if kind == "RFFT" else "complex64")
    t = draw(shape, x.dtype.name, 1)
    f, g = (lambda x: lax.fft(x, kind, n)), (lambda x: jax.lax.fft(x, kind, n))
    ct = np.asarray(g(t))
    check(platform, f, g, x, rtol=1e-5, atol=1e-5)
    check(platform, lambda x, t: jvp(f, (x,), (t,)), lambda x, t: jax.jvp(g, (x,), (t,)), x, t, rtol=1e-5, atol=1e-5)
    check(platform, lambda x, ct: vjp(f, x)[1](ct), lambda x, ct: jax.vjp(g, x)[1](ct), x, ct, rtol=1e-5, atol=1e-5)
    xs = np.stack([x, t, x + t], 1)
    check(platform, vmap(f, 1, 1), jax.vmap(g, 1, 1), xs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["FFT", "RFFT", "IRFFT"])
def test_compositions(kind):
    x = draw((6, 9), "float32" if kind == "RFFT" else "complex64")
    n = (16,) if kind == "IRFFT" else (9,)

    def loss(np_, fft):
        return lambda x: np_.sum(np_.abs(fft(x * (1 + np_.abs(x)), kind, n)) ** 2)

    ours, theirs = loss(styrax.numpy, lax.fft), loss(jnp, jax.lax.fft)
    pairs = [(styrax.vmap(styrax.grad(ours)), jax.vmap(jax.grad(theirs))),
             (styrax.grad(lambda x: styrax.vmap(ours)(x).sum()), jax.grad(lambda x: jax.vmap(theirs)(x).sum()))]
    if kind == "RFFT":
        pairs.append((styrax.jacfwd(styrax.grad(lambda x: ours(x[0]))), jax.jacfwd(jax.grad(lambda x: theirs(x[0])))))
    for f, g in pairs:
        want = np.asarray(g(x))
        for run in (f, styrax.jit(f)):
            np.testing.assert_allclose(run(x), want, rtol=2e-4, atol=1e-4 * np.abs(want).max())


def test_inside_loops():
    def f(jax, x):
        def step(c, w):
            c = jax.lax.fft(jax.lax.fft(c, "FFT", (24,)) * w, "IFFT", (24,))
            y = jax.lax.cond(jax.numpy.abs(c[0, 0]) > 1, lambda c: jax.lax.fft(c, "FFT", (24,)) / 24, lambda c: c, c)
            return y, jax.lax.fft(c.real, "RFFT", (24,))

        c, ys = jax.lax.scan(step, x, jax.numpy.linspace(0.5, 1, 5 * 24).reshape(5, 1, 24))
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jax.lax.fft(s[1], "IFFT", (24,)) * 3),
                                  (0, c))[1], ys

    x = draw((20, 24), "complex64")
    for got, want in zip(styrax.jit(lambda x: f(styrax, x))(x), f(jax, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


ERRORS = {
    "name": lambda lax, x: lax.fft(x, "dft", (6,)),
    "number": lambda lax, x: lax.fft(x, 3, (6,)),
    "none": lambda lax, x: lax.fft(x, None, (6,)),
    "length": lambda lax, x: lax.fft(x, "FFT", (5,)),
    "real length": lambda lax, x: lax.fft(x, "RFFT", (5,)),
    "other length": lambda lax, x: lax.fft(x, "IRFFT", (3, 6)),
    "rank": lambda lax, x: lax.fft(x, "FFT", (1, 4, 6)),
    "complex": lambda lax, x: lax.fft(x + 0j, "RFFT", (6,)),
    "half": lambda lax, x: lax.fft(x.astype(np.float16), "RFFT", (6,)),
    "nothing": lambda lax, x: lax.fft(np.ones((3, 0), np.float32), "RFFT", (0,)),
    "one length": lambda lax, x: lax.fft(x, "FFT", 6),
    "dtype": lambda lax, x: lax.fft_p.bind(x, fft_type=lax.FftType.FFT, fft_lengths=(6,)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    x = draw((4, 6))
    with pytest.raises((ValueError, TypeError)) as theirs:
        ERRORS[name](jax.lax, jnp.asarray(x))
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](lax, styrax.numpy.asarray(x))
    assert ours.type is theirs.type


def test_dtypes():
    for dtype in ("bool", "int8", "int32", "float16", "bfloat16"):
        x = styrax.numpy.ones((2, 4), dtype)
        got, want = lax.fft(x, "FFT", (4,)), jax.lax.fft(jnp.ones((2, 4), dtype), "FFT", (4,))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert [(k.name, int(k)) for k in lax.FftType] == [(k.name, int(k)) for k in jax.lax.FftType]
    x = draw((4, 6))
    assert str(styrax.make_jaxpr(lambda x: lax.fft(x, "RFFT", (6,)))(x)) == str(
        jax.make_jaxpr(lambda x: jax.lax.fft(x, "RFFT", (6,)))(x))


def test_nothing():
    assert lax.fft(np.ones((3, 0), np.complex64), "FFT", (0,)).shape == (3, 0)
    assert lax.fft(np.ones((0, 5), np.complex64), "IRFFT", (8,)).shape == (0, 8)
    assert lax.fft(np.ones((3, 1), np.complex64), "IRFFT", (0,)).shape == (3, 0)
    assert lax.fft(draw((3, 2)), "FFT", ()).dtype == "complex64"


@pytest.mark.parametrize("shape", [(32, 64), (40, 16), (64, 7), (33, 64)])
def test_results_are_made_where_they_stay(shape):
    """Lines that are turned in registers are written as floats, which are the complex numbers of the result."""
    compiled = styrax.jit(own.fft.fft).lower(styrax.ShapeDtypeStruct(shape, "complex64")).compile()
    assert compiled.memory_analysis().temp_size_in_bytes == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_memories_of_two_types_in_loops(dtype):
    """What is carried is read as complex numbers and made as floats."""
    with styrax.enable_x64(True):
        x = draw((48, 16), dtype)
        tolerance = 1e-4 if dtype == "complex64" else 1e-12

        def turn(c):
            return own.fft.ifft(own.fft.fft(c)[::-1] * 0.5)[:, ::-1] + c

        def expected(turns):
            c = x
            for _ in range(turns):
                c = np.fft.ifft(np.fft.fft(c)[::-1] * 0.5)[:, ::-1] + c
            return c

        looped = styrax.jit(lambda c: styrax.lax.fori_loop(0, 5, lambda _, c: turn(c), c))
        np.testing.assert_allclose(looped(x), expected(5), rtol=tolerance, atol=tolerance * 50)
        only = styrax.jit(lambda c: styrax.lax.fori_loop(0, 4, lambda _, c: own.fft.fft(c) * 0.25, c))
        c = x
        for _ in range(4):
            c = np.fft.fft(c) * 0.25
        np.testing.assert_allclose(only(x), c, rtol=tolerance, atol=tolerance)
        donated = styrax.jit(lambda c: (own.fft.fft(c), c.real), donate_argnums=0)
        spectrum, real = donated(own.array(x))
        np.testing.assert_allclose(spectrum, np.fft.fft(x), rtol=tolerance, atol=tolerance * 10)
        np.testing.assert_array_equal(real, x.real)
        _, stacked = styrax.lax.scan(lambda c, y: (c, own.fft.fft(y)), 0, own.stack([x, 2 * x, x + 1]))
        np.testing.assert_allclose(stacked, np.fft.fft(np.stack([x, 2 * x, x + 1])), rtol=tolerance,
                                   atol=tolerance * 10)
