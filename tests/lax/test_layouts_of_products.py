"""Products of two arrays over any dimensions in any order of memory, against NumPy: whole numbers, whose sums are exact
in any order."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

LETTERS = "abcdefghij"
SIZES = (1, 2, 3, 5, 8, 13, 20, 33)
DTYPES = (np.float32, np.int32, np.complex64, np.float64)


def drawn(seed):
    """A text for `einsum`, and its operands: dimensions that both share, that are summed over, and of one alone."""
    rng = np.random.default_rng(seed)
    batch, terms = int(rng.integers(0, 3)), int(rng.integers(1, 4))
    left, right = (int(v) for v in rng.integers(0, 3, 2))
    groups, rest = [], LETTERS
    for count in (batch, terms, left, right):
        groups.append(rest[:count])
        rest = rest[count:]
    size = {c: int(rng.choice(SIZES)) for c in "".join(groups)}
    while np.prod([float(n) for n in size.values()]) > 1e6:
        size[max(size, key=lambda c: size[c])] = 4
    both, summed, mine, theirs = groups
    texts = ["".join(rng.permutation(list(t))) for t in (both + summed + mine, both + summed + theirs,
                                                         both + mine + theirs)]
    dtype = DTYPES[seed % len(DTYPES)]
    operands = [rng.integers(-3, 4, [size[c] for c in t]).astype(dtype) for t in texts[:2]]
    return f"{texts[0]},{texts[1]}->{texts[2]}", operands


@pytest.mark.parametrize("seed", range(120))
def test_values(seed):
    text, (x, y) = drawn(seed)
    wanted = np.einsum(text, x, y)

    def product(x, y):
        return jnp.einsum(text, x, y)

    with jax.enable_x64(True):
        for f in (product, jax.jit(product)):
            found = f(jnp.asarray(x), jnp.asarray(y))
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
        if seed % 4 == 0:
            np.testing.assert_array_equal(jax.jit(jax.vmap(product, (None, 0)))(x, np.stack([y, 2 * y]))[1], 2 * wanted)
            in_a_loop = jax.jit(lambda x, ys: jax.lax.scan(lambda c, y: (c + product(x, y), None), 0 * wanted, ys)[0])
            np.testing.assert_array_equal(in_a_loop(x, np.stack([y, y, y])), 3 * wanted)
            if x.dtype.kind == "f":
                slope = jax.jit(jax.grad(lambda x: product(x, y).sum()))(x)
                left, right, out = text.replace("->", ",").split(",")
                np.testing.assert_array_equal(slope, np.einsum(f"{out},{right}->{left}", np.ones(wanted.shape), y))
