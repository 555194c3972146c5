"""Where complex values become real, the loss is told as JAX tells it."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import styrax

C = np.array([1 + 1j, 2], np.complex64)

CASTS: dict[str, Any] = {
    "convert": lambda m, x: m.lax.convert_element_type(x, np.float32),
    "convert to bool": lambda m, x: m.lax.convert_element_type(x, np.bool_),
    "astype": lambda m, x: x.astype(np.float32),
    "astype bool": lambda m, x: x.astype(bool),
    "array": lambda m, x: m.numpy.array(x, np.float32),
    "array of integers": lambda m, x: m.numpy.array(x, np.int32),
    "array of booleans": lambda m, x: m.numpy.array(x, np.bool_),
    "asarray": lambda m, x: m.numpy.asarray(x, np.float16),
    "of NumPy": lambda m, x: m.numpy.array(C, np.float32),
    "of NumPy to bool": lambda m, x: m.numpy.array(C, np.bool_),
    "type": lambda m, x: m.numpy.int32(x),
    "sum": lambda m, x: m.numpy.sum(x, dtype=np.float32),
    "prod": lambda m, x: m.numpy.prod(x, dtype=np.int32),
    "cumsum": lambda m, x: m.numpy.cumsum(x, dtype=np.float32),
    "mean": lambda m, x: m.numpy.mean(x, dtype=np.float32),
    "trace": lambda m, x: m.numpy.trace(m.numpy.outer(x, x), dtype=np.float32),
    "full": lambda m, x: m.numpy.full(2, x[0], np.float32),
    "full_like": lambda m, x: m.numpy.full_like(x, 1, np.float32),
    "linspace": lambda m, x: m.numpy.linspace(x, 3, 2, dtype=np.float32),
    "logspace": lambda m, x: m.numpy.logspace(x, 3, 2, dtype=np.int32),
    "geomspace": lambda m, x: m.numpy.geomspace(x, 3, 2, dtype=np.float16),
    "concatenate": lambda m, x: m.numpy.concatenate([x, x], dtype=np.float32),
    "insert": lambda m, x: m.numpy.insert(m.numpy.zeros(2), 0, x[0]),
    "write": lambda m, x: m.numpy.zeros(2).at[0].set(x[0]),
    "write of booleans": lambda m, x: m.numpy.zeros(2, bool).at[0].set(x[0]),
    "truth": lambda m, x: (m.numpy.all(x), m.numpy.logical_not(x), m.numpy.where(x, 1, 2), bool(x[0])),
    "select": lambda m, x: m.numpy.select([x], [1.0], 0),
    "parts": lambda m, x: (x.real, m.numpy.abs(x), m.numpy.var(x), m.numpy.linalg.norm(x), m.numpy.angle(x)),
    "vmap": lambda m, x: m.vmap(lambda y: m.numpy.array(y, np.float32))(x),
    "jvp": lambda m, x: m.jvp(lambda y: m.numpy.array(y, np.float32), (x,), (x,)),
    "grad": lambda m, x: m.grad(lambda y: m.numpy.array(y * x, np.float32).sum())(x.real),
    "scan": lambda m, x: m.lax.scan(lambda c, y: (c, m.numpy.array(y, np.float32)), 0.0, x)[1],
    "empty": lambda m, x: m.numpy.array(x[:0], np.float32),
}


def warned(m: Any, name: str) -> tuple[set[str], list[Any]]:
    m.clear_caches()
    x = m.numpy.asarray(C)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = CASTS[name](m, x)
    assert m is jax or {w.filename for w in found} <= {__file__}
    return {f"{w.category.__name__}: {w.message}" for w in found}, [np.asarray(v) for v in m.tree.leaves(out)]


@pytest.mark.parametrize("name", CASTS)
def test_lost_imaginary_parts_are_told(name: str) -> None:
    (ours, values), (theirs, expected) = warned(styrax, name), warned(jax, name)
    assert ours == theirs
    for a, b in zip(values, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)
