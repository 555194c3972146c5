"""`jnp.fft`, `jax.scipy.fft` and spectra of signals against NumPy, SciPy and JAX."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
import scipy.fft
import scipy.signal

import styrax
import styrax.numpy as jnp
from styrax.scipy import named_windows as windows

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
COMPLEX = ("irfft", "hfft", "irfftn", "irfft2")


def draw(shape, name="", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(np.complex64) if name in COMPLEX else x.astype(np.float32)


def close(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype == {"f": np.float32, "c": np.complex64}[want.dtype.kind]
    np.testing.assert_allclose(got, want, rtol=0, atol=4e-6 * np.abs(want).max(initial=1))


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name):
    ours, reference = getattr(jnp.fft, name), getattr(np.fft, name)
    for norm, n, axis in itertools.product((None, "backward", "ortho", "forward"), (None, 5, 8), (-1, 0, 1)):
        x = draw((6, 7, 3), name)
        close(ours(x, n=n, axis=axis, norm=norm), reference(wide(x), n=n, axis=axis, norm=norm))
    x = draw((6, 7), name)
    close(styrax.jit(ours)(x), reference(wide(x)))
    close(styrax.vmap(ours, 1)(x), reference(wide(x.T)))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(name):
    ours, reference = getattr(jnp.fft, name), getattr(np.fft, name)
    x = draw((4, 6, 5), name)
    for norm, (s, axes) in itertools.product((None, "ortho", "forward"), [
            ((3, 8), (0, 1)), (None, (-1, 0)), (None, (2, 1)), ((7, 4), (-2, -1))]):
        close(ours(x, s=s, axes=axes, norm=norm), reference(wide(x), s=s, axes=axes, norm=norm))
    close(ours(x), reference(wide(x)))
    if not name.endswith("2"):
        x = draw((2, 3, 2, 4, 3), name)
        close(ours(x), reference(wide(x)))
        close(ours(x, axes=(1, 4, 0, 2)), reference(wide(x), axes=(1, 4, 0, 2)))


def outcome(module, name, *args, **kwargs):
    try:
        out = getattr(module, name)(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return out.shape, str(out.dtype)


KEYWORDS = {
    "one": [{"n": 0}, {"n": -1}, {"n": [1, 2]}, {"n": 2.5}, {"axis": [1, 1]}, {"axis": (0,)}, {"axis": None},
            {"norm": "x"}, {"n": 7}],
    "several": [{"s": (0, 2)}, {"s": (-1, 2)}, {"s": (4,)}, {"s": (4,), "axes": (0,)}, {"s": (4,), "axes": (0, 1)},
                {"s": 4}, {"axes": 1}, {"axes": [1, 1]}, {"axes": (-1, 1)}, {"axes": (0, 5)}, {"axes": ()},
                {"s": (2, 2, 2)}, {"axes": None}, {"axes": (0,)}, {"norm": "x"}, {"axes": (0, 1, 1)}],
}
ARGUMENTS = [np.ones((2, 3), np.complex64), np.ones((2, 3), int), np.ones((2, 3), bool), np.ones((2, 3), np.float16),
             [1.0, 2.0], np.ones((0, 3), np.float32), np.ones((3, 0), np.float32), np.ones((4,), np.float32),
             np.float32(1)]


@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_shapes_dtypes_and_errors(name):
    x = draw((2, 3), name)
    for kwargs in KEYWORDS["one" if name in ONE else "several"]:
        assert outcome(jnp.fft, name, x, **kwargs) == outcome(jax.numpy.fft, name, x, **kwargs), kwargs
    for a in ARGUMENTS:
        if name not in ("hfft", "ihfft") or np.ndim(a):  # (JAX looks at the axis of a scalar first)
            assert outcome(jnp.fft, name, a) == outcome(jax.numpy.fft, name, a), a


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name):
    for args, kwargs in [((5,), {}), ((8, 0.25), {}), ((5, 2), {}), ((0,), {}), ((1,), {}),
                         ((6,), {"dtype": "float16"}), ((6,), {"dtype": "complex64"}),
                         ((6,), {"dtype": "int32"}), ((4, np.float32(3)), {})]:
        got, want = getattr(jnp.fft, name)(*args, **kwargs), getattr(jax.numpy.fft, name)(*args, **kwargs)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got, np.complex64), np.asarray(want, np.complex64), rtol=1e-6)
    for args in [([5],), (5, [1, 2]), ((5,),)]:
        assert outcome(jnp.fft, name, *args) == outcome(jax.numpy.fft, name, *args) == "ValueError"


def test_shifts():
    x = draw((4, 5, 3))
    for axes in (None, 0, -1, (), (0, 2), [1, 1]):
        np.testing.assert_array_equal(jnp.fft.fftshift(x, axes), jax.numpy.fft.fftshift(x, axes))
        np.testing.assert_array_equal(jnp.fft.ifftshift(x, axes), jax.numpy.fft.ifftshift(x, axes))
    assert jnp.fft.fftshift(np.float32(2)) == 2


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosines(name):
    ours, reference = getattr(styrax.scipy.fft, name), getattr(scipy.fft, name)
    for shape, dtype, norm in itertools.product([(1,), (2,), (3,), (4, 7), (5, 8)], "fF", (None, "ortho")):
        x = draw(shape, "irfft").astype(dtype) if dtype == "F" else draw(shape)
        for length in (None, 2, 6):
            lengths = {} if length is None else {"s": (length,)} if name.endswith("n") else {"n": length}
            close(ours(x, norm=norm, **lengths), reference(wide(x), norm=norm, **lengths))
    x = draw((4, 5))
    close(ours(x.astype(int)), reference(x.astype(int).astype(float)))
    for kwargs in ({"type": 1}, {"type": 3}, {"norm": "forward"}, {"norm": "x"}):
        assert outcome(styrax.scipy.fft, name, x, **kwargs) == outcome(jax.scipy.fft, name, x, **kwargs)
    got = styrax.jit(styrax.vmap(styrax.grad(lambda x: (ours(x) ** 3).sum())))(x)
    want = jax.vmap(jax.grad(lambda x: (getattr(jax.scipy.fft, name)(x) ** 3).sum()))(x)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore:nperseg")
@pytest.mark.parametrize("kwargs", [
    {"detrend": "linear"}, {"nperseg": 64, "nfft": 100, "noverlap": 16}, {"return_onesided": False, "nperseg": 64},
    {"window": np.hanning(40).astype(np.float32), "nperseg": 40, "fs": 10.0},
    {"nperseg": 40.5, "nfft": 48.0, "noverlap": np.float32(8)}], ids=lambda kwargs: "-".join(kwargs))
def test_spectra(kwargs):
    ours, theirs = styrax.scipy.signal, jax.scipy.signal
    x, z = draw((2, 130)), draw((2, 130), "irfft")
    for f, args in (("stft", (x,)), ("welch", (x,)), ("csd", (x, x[:, ::-1])), ("csd", (z, None))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wants, gots = (getattr(module, f)(*args, **kwargs) for module in (theirs, ours))
        for got, want in zip(gots, wants, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5 * max(1, np.abs(want).max()))


@pytest.mark.parametrize("shape, axis", [((3, 60), -1), ((2, 50), 0)])
def test_signals_that_do_not_fit(shape, axis):
    for module in (jax, styrax):
        with pytest.raises(ValueError, match="x and y cannot be broadcast together"):
            module.scipy.signal.csd(np.ones((2, 60), np.float32), np.ones(shape, np.float32), axis=axis)


def test_inverse_spectra():
    x = draw((2, 256))
    for kwargs in ({"nperseg": 64}, {"nperseg": 64, "noverlap": 48}):
        *_, z = styrax.scipy.signal.stft(x, **kwargs)
        _, back = styrax.scipy.signal.istft(z, **kwargs)
        np.testing.assert_allclose(back, x, atol=1e-5)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution(mode):
    for first, second in [((20,), (7,)), ((7,), (20,)), ((5, 6), (3, 2)), ((1,), (1,))]:
        for name in ("", "irfft"):
            x, y = draw(first, name), draw(second, name, 1)
            close(styrax.scipy.signal.fftconvolve(x, y, mode), scipy.signal.fftconvolve(wide(x), wide(y), mode))
            close(styrax.scipy.signal.convolve(x, y, mode, method="fft"), scipy.signal.convolve(wide(x), wide(y), mode))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_with_single_elements(mode):
    """Where no axis has anything to add up it is a product, of all dtypes and sizes."""
    for first, second, axes in [((5,), (1,), None), ((5, 3), (1, 3), 0), ((1, 3), (5, 1), None), ((0,), (1,), None)]:
        for dtype in ("bfloat16", "float32", "int32"):
            got, want = (outcome(j.scipy.signal, "fftconvolve", j.numpy.ones(first, dtype) * 3,
                                 j.numpy.ones(second, dtype) * 2, mode, axes) for j in (styrax, jax))
            assert got == want


@pytest.mark.parametrize("axes", [2, -3, (0, 5), (0, 0), (1, -1), [1], 0, -1, (1, 0)], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (0,)], ids=str)
def test_axes_of_convolutions(shape, axes):
    """Those out of range are refused, repeated ones are one."""
    got, want = (outcome(j.scipy.signal, "fftconvolve", j.numpy.ones(shape), j.numpy.ones(shape), "full", axes)
                 for j in (styrax, jax))
    assert got == want


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex64"])
def test_frequencies_with_x64(dtype):
    """Frequencies and times have the precision of the spectra."""
    with jax.enable_x64(True), styrax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("stft", "welch"):
            wants, gots = (getattr(j.scipy.signal, name)(np.arange(16).astype(dtype), fs=3.0, nperseg=8)
                           for j in (jax, styrax))
            assert [x.dtype for x in gots] == [x.dtype for x in wants]
            np.testing.assert_allclose(gots[0], wants[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d", "correlate"])
def test_middles_of_planes(name):
    """The one of two candidates that JAX (and SciPy) take where sizes are even, whichever operand is the larger."""
    for first, second in [((1, 3), (1, 4)), ((2, 3), (4, 5)), ((3, 3), (3, 4)), ((5, 4), (2, 2)), ((4, 4), (4, 4))]:
        x, y = draw(first, "irfft"), draw(second, "irfft", 1)
        for mode in ("full", "same", "valid"):
            got, want = (getattr(j.scipy.signal, name)(x, y, mode) for j in (styrax, jax))
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_breaks_of_trends():
    x = draw((6,))
    for bp in (0, 3, [2, 4], 6, 7, -1, [3, -2]):
        assert outcome(styrax.scipy.signal, "detrend", x, bp=bp) == outcome(jax.scipy.signal, "detrend", x, bp=bp)


def test_complex_signals_have_both_sides():
    with pytest.warns(UserWarning, match="return_onesided=False"):
        styrax.scipy.signal.welch(draw((64,), "irfft"), nperseg=16)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 256])
@pytest.mark.parametrize("name", [*windows.COSINES, "bartlett", ("kaiser", 3.0)])
def test_named_windows_are_scipys(name, length):
    np.testing.assert_array_equal(windows.window(name, length), scipy.signal.get_window(name, length))


def test_spectra_with_common_windows_need_nothing_of_scipys_signal():
    code = ("import sys, numpy as np, styrax.scipy.signal as s\n"
            "s.istft(s.stft(np.ones(64, np.float32), nperseg=16)[2], nperseg=16)\n"
            "sys.exit('scipy.signal' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
