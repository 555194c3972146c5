"""Fourier and cosine transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

each("fft", "fft ifft", "16:complex", "256:complex", "1000:complex", "16384:complex", "100,64:complex",
    "300,200:complex")
each("fft", "rfft", "16", "256", "1000", "16384", "100,64", "300,200")
each("fft", "irfft", "129:complex", "501:complex", "100,33:complex", fixed=True)
each("fft", "fft", "64", "97:complex", "1013:complex", "50,101:complex")
each("fft", "hfft", "129:complex", fixed=True)
each("fft", "ihfft", "256")
each("fft", "fft2 ifft2 fftn", "16,16:complex", "64,64:complex", "100,80:complex")
each("fft", "rfft2 rfftn", "16,16", "64,64", "100,80")
each("fft", "irfft2", "64,33:complex", fixed=True)
each("fft", "fftn", "16,16,16:complex")
each("fft", "fftshift ifftshift", "1000", "100,80")
add("fft axis 0", lambda x: jnp.fft.fft(x, axis=0), "64,100:complex", "256,50:complex")
add("fft padded", lambda x: jnp.fft.fft(x, 512), "300:complex")
add("fft orthonormal", lambda x: jnp.fft.fft(x, norm="ortho"), "256:complex")
add("fftfreq", lambda x: jnp.fft.fftfreq(x.shape[0]), "1000:shape")
add("power spectrum", lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2, "1000", "8192", "20,256")
add("convolution by fft", lambda x, y: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(y)), "1024 1024", fixed=True)
add("derivative by fft", lambda x: jnp.fft.ifft(1j * jnp.fft.fftfreq(x.shape[0]) * jnp.fft.fft(x)).real, "1024")
add("poisson by fft", lambda x: jnp.fft.ifft2(jnp.fft.fft2(x) / (
    1 + jnp.arange(x.shape[0])[:, None] ** 2 + jnp.arange(x.shape[1]) ** 2)).real, "64,64")
add("low pass", lambda x: jnp.fft.irfft(jnp.fft.rfft(x).at[50:].set(0), x.shape[0]), "1000")
add("analytic signal", lambda x: jnp.fft.ifft(jnp.fft.fft(x) * (2 * (jnp.arange(x.shape[0]) < x.shape[0] // 2))),
    "1000")
add("dct", lambda x: jax.scipy.fft.dct(x), "256", "20,64")
add("idct", lambda x: jax.scipy.fft.idct(x), "256")
add("dctn", lambda x: jax.scipy.fft.dctn(x), "16,16", "64,64")
add("spectrogram", lambda x: jnp.abs(jnp.fft.rfft(x[jnp.arange(0, x.shape[0] - 64, 32)[:, None] + jnp.arange(
    64)] * jnp.hanning(64))), "2000")
add("vmap of fft", lambda x: jax.vmap(jnp.fft.fft)(x), "30,128:complex")
add("autocorrelation by fft", lambda x: jnp.fft.irfft(jnp.abs(jnp.fft.rfft(x, 2048)) ** 2), "1000")
