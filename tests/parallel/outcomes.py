"""What a row gives under the package that `jax` is: its value as plain data, or the class of its error."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

import jax


def public_name(kind: type[BaseException]) -> str:
    return next(c.__name__ for c in kind.__mro__
                if c.__module__ == "builtins" or getattr(jax.errors, c.__name__, None) is c)


def outcome(row: str, space: dict[str, Any], described: Callable[[Any], Any]) -> tuple[str, Any, str]:
    """Kind ("value" or "error"), the result as `described` or the class of the error, and a text to look at."""
    code = ast.parse(row)
    last: Any = code.body.pop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<row>", "exec"), space)
            result = eval(compile(ast.Expression(last.value), "<row>", "eval"), space)
            return "value", described(result), ""
        except Exception as error:
            return "error", public_name(type(error)), str(error)
