"""Collectives over axes by position, over none, and over names that are not in scope: JAX's answers and errors."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import styrax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
AXES: list[Any] = [0, 1, -1, 5, "i", (0, 1), ("i", 0), ()]
CALLS: dict[str, Any] = {
    "array": lambda m, f: f(m.numpy.asarray(X)),
    "float": lambda m, f: f(2.0),
    "int": lambda m, f: f(2),
    "container": lambda m, f: f({"a": m.numpy.asarray(X), "b": m.numpy.arange(3)}),
    "jit": lambda m, f: m.jit(f)(X),
    "vmap": lambda m, f: m.vmap(f)(X),
    "vmap of the name": lambda m, f: m.vmap(f, axis_name="i")(X),
    "grad": lambda m, f: m.grad(lambda x: m.numpy.sum(f(x)))(X),
}


def outcome(m: Any, call: str, name: str, axes: Any) -> Any:
    try:
        return [np.asarray(v) for v in m.tree.leaves(CALLS[call](m, lambda x: getattr(m.lax, name)(x, axes)))]
    except (TypeError, ValueError, NameError) as error:
        # Whether the type is weak apart, and whether JAX's caches had the same axes as NumPy's numbers before.
        return type(error), re.sub(r"np\.int64\((\d+)\)", r"\1", str(error).replace("~", ""))


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "all_gather"])
def test_reductions(name: str, axes: Any) -> None:
    for call in CALLS:
        if name == "pmax" and call == "grad":
            continue  # has no derivative
        ours, theirs = outcome(styrax, call, name, axes), outcome(jax, call, name, axes)
        assert type(ours) is type(theirs), (call, ours, theirs)
        if isinstance(theirs, tuple):
            assert ours == theirs, call
            continue
        for a, b in zip(ours, theirs, strict=True):
            assert a.dtype == b.dtype, call
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axes", [0, (0, 1), "i", ("i", 0)], ids=str)
def test_sizes(axes: Any) -> None:
    def size(m: Any) -> str:
        with pytest.raises((NameError, ValueError)) as error:
            m.lax.axis_size(axes)
        return f"{error.typename}: {error.value}"

    assert size(styrax) == size(jax)


@pytest.mark.parametrize("axes", [0, ()], ids=str)
def test_nothing_is_evaluated_over_no_names(axes: Any) -> None:
    for m in (styrax, jax):
        with pytest.raises(NotImplementedError, match="Evaluation rule for 'ppermute' not implemented"):
            m.lax.ppermute(X, axes, [(0, 0)])
        assert m.lax.psum_scatter(X, ()) is X
