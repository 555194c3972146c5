"""The examples in docstrings give what they show, here and in JAX."""

from __future__ import annotations

import doctest
import inspect

import pytest

import styrax as jax
from tests.test_annotations import MODULES, public_functions

OPTIONS = doctest.NORMALIZE_WHITESPACE
EXAMPLES = {f"{module}.{name}": doc for module in MODULES for name, function in public_functions(module)
            if ">>>" in (doc := inspect.getdoc(function) or "")}
EXAMPLES |= {f"styrax.{cls.__name__}": inspect.getdoc(cls) or "" for cls in (jax.custom_jvp, jax.custom_vjp)}


def run(name: str, text: str) -> str:
    """What differs from the text, as a report."""
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    assert not (report := run(name, EXAMPLES[name])), report


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_in_jax(name):
    text = EXAMPLES[name].replace("import styrax", "import jax").replace("from styrax", "from jax")
    assert not (report := run(name, text)), report


def test_there_are_enough():
    assert len(set(EXAMPLES.values())) >= 200


def test_wrong_examples_are_found():
    assert run("wrong", ">>> 1 + 1\n3\n")
