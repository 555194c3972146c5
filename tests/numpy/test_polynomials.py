"""Polynomials, convolution of vectors, windows."""

from __future__ import annotations

from tests.numpy import oracle

TABLE = """
jnp.polyval(x, y)
jnp.polyval(i, 2)
jnp.polymul(x, y)
jnp.convolve(x, y)
jnp.convolve(x, y[:2], mode='same')
jnp.convolve(i, i, mode='valid')
jnp.convolve(y[:2], x, mode='valid')
jnp.correlate(x, y)
jnp.correlate(x, y[:2], mode='full')
jnp.correlate(c, c, mode='full')
jnp.poly(x)
jnp.polymul(i, i)
jnp.polyval(x, y, unroll=2)
jnp.bartlett(5)
jnp.blackman(5)
jnp.hamming(5)
jnp.hanning(5)
jnp.kaiser(5, 2.0)
"""

# JAX composes these of other primitives.
VALUES = """
jnp.polyadd(x, y[:2])
jnp.polysub(x, y[:2])
jnp.polydiv(x, y[:2])
jnp.polyder(x)
jnp.polyder(x, 2)
jnp.polyint(x)
jnp.polyint(x, 2, k=1)
jnp.correlate(y[:2], x, mode='same')
jnp.polyfit(jnp.array([0., 1, 2, 3]), jnp.array([1., 3, 2, 5]), 1)
jnp.polyfit(jnp.array([0., 1, 2, 3]), jnp.array([1., 3, 2, 5]), 1, full=True)
jnp.roots(jnp.array([1., 3, 2]), strip_zeros=False)
!jnp.roots(jnp.array([0., 1, 3, 2]))
jnp.trim_zeros(jnp.array([0., 1, 0]))
jnp.hanning(1)
jnp.hanning(0)
jnp.hanning(-1)
jnp.kaiser(-1, 2.)
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES, rtol=1e-4, atol=1e-5)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)
