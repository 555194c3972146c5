"""Docstrings of public functions have sections for arguments, results and errors."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import styrax as jax
from tests.test_annotations import MODULES, public_functions

PACKAGES = ("styrax.numpy", "styrax.lax", "styrax.random", "styrax.scipy", "styrax.nn")


def sections(doc: str) -> dict[str, str]:
    """The sections of a docstring by their headings; sentences with "Raises ValueError", "Returns …" are such, too."""
    found = dict(re.findall(r"^(Args|Returns|Raises|Yields):\n(.*?)(?=^\S|\Z)", doc, re.M | re.S))
    for heading in re.findall(r"\b(Raises(?= \w*Error\b)|Returns(?= ))", doc):
        found.setdefault(heading, "")
    return found


def raises(function: Callable[..., Any]) -> bool:
    """Whether an error is raised in a function's own code."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(ast.parse(source)))
    except (OSError, TypeError, SyntaxError):  # made by another function
        return False


def lacking(function: Callable[..., Any]) -> set[str]:
    """The sections that a function's docstring lacks, and the arguments that it does not name."""
    found = sections(inspect.getdoc(function) or "")
    heads = re.findall(r"^ +(\*{0,2}\w+(?:, \*{0,2}\w+)*):", found.get("Args", ""), re.M)
    named = set(re.findall(r"\w+", " ".join(heads)))
    signature = inspect.signature(function)
    missing = {p for p in signature.parameters if p not in named and not p.startswith("_")}
    if "Returns" not in found and "Yields" not in found and signature.return_annotation not in (None, "None"):
        missing.add("Returns")
    if raises(function) and "Raises" not in found:
        missing.add("Raises")
    return missing


def functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    for module in MODULES:
        if module.startswith(PACKAGES):
            for name, function in public_functions(module):
                yield module, name, function


FUNCTIONS = {f"{module}.{name}": function for module, name, function in functions()}


def test_all_sections_are_there():
    assert len(FUNCTIONS) > 800
    missing = {name: found for name, function in FUNCTIONS.items() if (found := lacking(function))}
    assert not missing


def test_what_is_lacking_is_found():
    def partly(x: int, y: int) -> int:
        """Adds.

        Args:
          x: one.
        """
        if y:
            raise ValueError
        return x

    assert lacking(partly) == {"y", "Returns", "Raises"}
    assert not lacking(jax.nn.relu)
