"""How distributions are put together: namespaces of functions, and functions derived from others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.numpy.promotion import convert, dtype_of, promote_args_inexact

Function = Callable[..., Any]


_ARGUMENTS = {
    "x": "points", "k": "counts", "q": "probabilities, from 0 to 1", "p": "probabilities, from 0 to 1",
    "n": "numbers of trials", "a": "the first parameter of the shape", "b": "the second parameter of the shape",
    "c": "how concentrated it is, between 0 and 1", "df": "degrees of freedom", "mu": "means",
    "kappa": "how concentrated it is", "alpha": "parameters of the shape, along the first axis", "beta": "the exponent",
    "loc": "a shift of the distribution", "scale": "what it is stretched by", "mean": "the mean, a number or vectors",
    "cov": "the variance, or covariance matrices", "allow_singular": "must be None",
}


def _with_arguments(function: Function, own: dict[str, str]) -> str:
    """A docstring with a line for each argument."""
    of = function
    while (wrapped := getattr(of, "__wrapped__", None)) is not None:
        of = wrapped
    code = of.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lines = "\n".join(f"      {n}: {own.get(n) or _ARGUMENTS[n]}." for n in names)
    summary = (function.__doc__ or "").rstrip()
    return f"{summary}\n\n    Args:\n{lines}\n\n    Numbers and arrays broadcast; the result is floating."


def namespace(name: str, doc: str, arguments: dict[str, str] | None = None, **functions: Function) -> ModuleType:
    """The module `styrax.scipy.stats.<name>` with the given functions.

    `arguments` says what those of this distribution mean, where it is not what they mean elsewhere.
    """
    module = ModuleType(f"styrax.scipy.stats.{name}", doc)
    for key, function in functions.items():
        named(function, key, _with_arguments(function, arguments or {}))
        setattr(module, key, function)
    sys.modules[module.__name__] = module
    return module


def _same_signature(function: Function, of: Function, doc: str) -> Function:
    function.__doc__ = doc
    function.__wrapped__ = of  # type: ignore[attr-defined]
    return function


def exp_of(function: Function, doc: str) -> Function:
    """exp(function(…)), with the same arguments: a density from its logarithm."""
    return _same_signature(lambda *args, **kwargs: lax.exp(function(*args, **kwargs)), function, doc)


def log_of(function: Function, doc: str) -> Function:
    """log(function(…)), with the same arguments."""
    return _same_signature(lambda *args, **kwargs: lax.log(function(*args, **kwargs)), function, doc)


def inexact(name: str, *args: Any) -> list[Array]:
    """Arguments as floats of one dtype and of ranks that broadcast."""
    return promote_args_inexact(name, *args)


def number(x: Any, like: Any) -> Array:
    """A constant of the dtype of an operand."""
    return convert(x, dtype_of(like))


def standardised(x: Any, loc: Any, scale: Any) -> Array:
    """(x - loc) / scale."""
    return lax.div(lax.sub(x, loc), scale)
