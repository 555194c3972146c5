"""Runs a function of ours as a program, on XLA:CPU by its StableHLO text and on our own CPU compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.core.types.physical import lower
from tests import xla_cpu


def program(fun: Any, *args: Any) -> tuple[Any, Any]:
    """The jaxpr of a function of arrays, and the tree of its results."""
    trees = []

    def flat(*xs: Any) -> list[Any]:
        leaves, treedef = tree.tree_flatten(fun(*xs))
        trees.append(treedef)
        return leaves

    closed = trace_to_jaxpr(flat, [get_aval(x) for x in args])
    return closed, trees[0]


def on_xla(closed: Any, *args: Any) -> list[np.ndarray]:
    return xla_cpu.run(closed, *args)


def on_cpu(closed: Any, *args: Any) -> list[np.ndarray]:
    backend = backends.get("cpu")
    run = backend.compile(lower(closed))
    return [np.asarray(x) for x in run(*(backend.put(np.asarray(x), get_aval(x), None) for x in args))]


PLATFORMS = {"xla": on_xla, "cpu": on_cpu}


def results(platform: str, fun: Any, *args: Any) -> Any:
    closed, treedef = program(fun, *args)
    return tree.tree_unflatten(treedef, PLATFORMS[platform](closed, *args))


def check(platform: str, fun: Any, reference: Any, *args: Any, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    """Compares our function on a platform with a function of JAX's on the same arrays."""
    import jax

    closed, _ = program(fun, *args)
    ours = PLATFORMS[platform](closed, *args)
    theirs = jax.tree.leaves(reference(*args))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        y = np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype, (x.shape, x.dtype, y.shape, y.dtype)
        if y.dtype.kind in "fc" or "float" in y.dtype.name:
            wide = np.complex128 if y.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(x, y)
