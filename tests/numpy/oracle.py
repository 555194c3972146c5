"""Expressions evaluated by Styrax and by JAX: jaxprs, values, dtypes, weak types and errors compared.

A table is a text with one expression per line, in which `jax`, `jnp`, `nn`, `lax`, `jsp` and `np` are modules
and the names of `ARGUMENTS` are arrays. A line that starts with `!` needs concrete arguments.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import jax
import jax.nn
import jax.numpy
import jax.ops
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import jax.scipy.stats
import numpy as np

import styrax
import styrax.lax
import styrax.nn
import styrax.numpy
import styrax.ops
import styrax.scipy

ARGUMENTS: dict[str, Any] = {
    "x": np.array([1.5, -2, 0.3], np.float32),
    "y": np.array([0.5, 2, -1], np.float32),
    "p": np.array([0.2, 0.7, 0.5], np.float32),
    "i": np.array([1, -1, 0], np.int32),
    "b": np.array([True, False, True]),
    "c": np.array([1 + 2j, -1j, 2 - 1j], np.complex64),
    "m": np.array([[1.5, -2, 0.3], [0, 2, 1]], np.float32),
    "u": np.array([1, 0, 2], np.uint8),
    "h": np.array([1, -2, 0.5], np.float16),
    "t": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "s": np.array([[4, 1, 0], [1, 3, 0.5], [0, 0.5, 2]], np.float32),
    "w": 1.5,
    "n": 2,
}
THEIRS = {"jax": jax, "jnp": jax.numpy, "nn": jax.nn, "lax": jax.lax, "jsp": jax.scipy, "np": np}
OURS = {"jax": styrax, "jnp": styrax.numpy, "nn": styrax.nn, "lax": styrax.lax, "jsp": styrax.scipy, "np": np}


def rows(table: str) -> list[str]:
    """The expressions of a table."""
    lines = (line.strip() for line in table.strip().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def function(expression: str, modules: dict[str, Any], ours: bool) -> Any:
    """The expression as a function of `ARGUMENTS`."""
    names = ", ".join(ARGUMENTS)
    return eval(f"lambda {names}: ({expression.lstrip('! ')})", dict(modules))


def arguments(module: Any) -> list[Any]:
    return [module.asarray(v) if isinstance(v, np.ndarray) else v for v in ARGUMENTS.values()]


def text(module: Any, fun: Any) -> str:
    """The jaxpr of a function of `ARGUMENTS`, or the class of the error that tracing raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.sub(r"\s+", " ", str(module.make_jaxpr(fun)(*ARGUMENTS.values())))
    except Exception as error:
        return type(error).__name__


def outcome(fun: Any, args: list[Any]) -> Any:
    """What a function gives for concrete arguments, or the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fun(*args)
    except Exception as error:
        return error


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def assert_same(ours: Any, theirs: Any, label: str, rtol: float, atol: float) -> None:
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, Exception) and isinstance(theirs, Exception), f"{label}: {ours!r} against {theirs!r}"
        assert type(ours).__name__ == type(theirs).__name__, f"{label}: {ours!r} against {theirs!r}"
        return
    mine, yours = leaves(ours), leaves(theirs)
    assert len(mine) == len(yours), f"{label}: {len(mine)} results against {len(yours)}"
    for a, b in zip(mine, yours, strict=True):
        assert getattr(a, "dtype", type(a)) == getattr(b, "dtype", type(b)), (
            f"{label}: {getattr(a, 'dtype', a)} against {getattr(b, 'dtype', b)}")
        weak = bool(getattr(a, "weak_type", False)), bool(getattr(b, "weak_type", False))
        assert weak[0] == weak[1], f"{label}: weak types {weak}"
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"{label}: {a.shape} against {b.shape}"
        if b.dtype.kind in "fc" or "float" in b.dtype.name:
            wide = np.complex128 if b.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, err_msg=label)
        else:
            np.testing.assert_array_equal(a, b, err_msg=label)


def check_values(table: str, rtol: float = 2e-5, atol: float = 1e-6) -> None:
    """Compares the values of all expressions: ours one by one, JAX's (but for lines with `!`) as one program."""
    expressions = rows(table)
    theirs = {e: function(e, THEIRS, False) for e in expressions}
    args = arguments(jax.numpy)
    results: dict[str, Any] = {}
    together = [e for e in expressions if not e.startswith("!") and text(jax, theirs[e]).startswith(("{", "let"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results.update(zip(together, jax.jit(lambda *xs: [theirs[e](*xs) for e in together])(*args), strict=True))
    for e in expressions:
        if e not in results:
            results[e] = outcome(theirs[e], args)
    mine = arguments(styrax.numpy)
    failures = []
    for e in expressions:
        try:
            assert_same(outcome(function(e, OURS, True), mine), results[e], e, rtol, atol)
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


def check_texts(table: str) -> None:
    """Compares the jaxprs of all expressions, and the classes of the errors that tracing raises."""
    failures = []
    for e in rows(table):
        ours, theirs = text(styrax, function(e, OURS, True)), text(jax, function(e, THEIRS, False))
        if ours != theirs:
            failures.append(f"{e}\n  ours   {ours}\n  theirs {theirs}")
    assert not failures, "\n".join(failures)
