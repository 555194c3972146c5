"""The same program under Styrax and under JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import jax.numpy
import jax.ref
import numpy as np

import styrax
import styrax.ad_checkpoint
import styrax.custom_batching
import styrax.custom_derivatives
import styrax.numpy
import styrax.ref
from styrax.core.programs.check import check_jaxpr

vector = np.arange(1, 4, dtype=np.float32)
matrix = np.arange(1, 10, dtype=np.float32).reshape(3, 3) / 3


def leaves(x: Any, package: Any) -> list[Any]:
    return package.tree_util.tree_leaves(x)


def assert_same(program: Callable[[Any], Any], rtol: float = 2e-5, atol: float = 1e-6) -> None:
    """Runs `program(package)` under both and compares structures, shapes, dtypes and values."""
    expected, got = program(jax), program(styrax)
    ours, theirs = leaves(got, styrax), leaves(expected, jax)
    assert str(styrax.tree_util.tree_structure(got)) == str(jax.tree_util.tree_structure(expected))
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        if hasattr(b, "dtype") and hasattr(a, "dtype"):
            assert np.dtype(a.dtype) == np.dtype(b.dtype)
        if getattr(b, "dtype", None) != jax.dtypes.float0:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


def outcome(expression: str, package: Any) -> tuple[str, Any]:
    """The value of an expression on `jax`, `jnp`, `lax`, `np`, or the class of what it raises."""
    names = dict(jax=package, jnp=package.numpy, lax=package.lax, np=np, x3=vector, x33=matrix,
                 float0=jax.dtypes.float0)
    try:
        return "value", eval(expression, names)
    except Exception as error:
        return "error", error


def assert_same_outcome(expression: str) -> None:
    """Both give equal values, or both raise errors of the same class."""
    kind, expected = outcome(expression, jax)
    our_kind, got = outcome(expression, styrax)
    assert our_kind == kind, (got, expected)
    if kind == "error":
        ours = [c.__name__ for c in type(got).__mro__]
        assert type(expected).__name__ in ours, (got, expected)
    else:
        for a, b in zip(leaves(got, styrax), leaves(expected, jax), strict=True):
            assert np.shape(a) == np.shape(b)
            if getattr(b, "dtype", None) == jax.dtypes.float0:
                assert a.dtype == jax.dtypes.float0
            elif not isinstance(b, str):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)


def text(program: Callable[[Any], Callable], package: Any, *args: Any, **options: Any) -> str:
    """The jaxpr of `program(package)`, printed; NumPy integers in it as plain ones."""
    import re

    printed = str(package.make_jaxpr(program(package), **options)(*args))
    return re.sub(r"\s+", " ", re.sub(r"np\.int64\((\d+)\)", r"\1", printed))


def assert_same_text(program: Callable[[Any], Callable], *args: Any, **options: Any) -> None:
    assert text(program, styrax, *args, **options) == text(program, jax, *args, **options)
    if "axis_env" not in options:
        with styrax.enable_checks(True):
            check_jaxpr(styrax.make_jaxpr(program(styrax))(*args))
