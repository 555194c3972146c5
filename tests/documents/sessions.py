"""Runs the examples of a document twice, with Styrax and with the JAX that it is measured by.

A `Session` is a Python session in which `import jax` gives one or the other package, so an example stands in
a test as it stands in its document. `play` runs the same cells in both and compares what they print.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import io
import itertools
import linecache
import re
import sys
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

OURS, JAX = "styrax", "jax"
_numbers = re.compile(r"(?<![A-Za-z_0-9])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![A-Za-z_])")
_serial = itertools.count()


class Ran:
    """What a cell did: printed text, value of its last expression, exception and warnings."""

    def __init__(self) -> None:
        self.output = ""
        self.value: Any = None
        self.error: BaseException | None = None
        self.warnings: list[warnings.WarningMessage] = []

    @property
    def text(self) -> str:
        """What a notebook shows under the cell."""
        return self.output + ("" if self.value is None else f"{self.value!r}\n")

    def warned(self, pattern: str) -> list[str]:
        """The messages of the warnings that match a regular expression."""
        return [str(w.message) for w in self.warnings if re.search(pattern, str(w.message))]


def _magics(code: str) -> str:
    """IPython's `%timeit` and `%time`, as calls and as plain statements."""
    code = re.sub(r"^%timeit (.*?)(\s*#.*)?$", r"timeit(lambda: \1)", code, flags=re.MULTILINE)
    return re.sub(r"^%time (.*)$", r"\1", code, flags=re.MULTILINE)


class Session:
    """A namespace with a `jax` of our choice and the names that a notebook starts with."""

    def __init__(self, package: str):
        self.package = package
        self.numpy_random = np.random.get_state()
        self.names: dict[str, Any] = {"__name__": "document", "timeit": lambda call: call(),
                                      "__builtins__": {**vars(builtins), "__import__": self._import}}

    def _import(self, name: str, *args: Any) -> Any:
        if name.partition(".")[0] != JAX:
            return builtins.__import__(name, *args)
        module = importlib.import_module(self.package + name.removeprefix(JAX))
        # `from jax.numpy import x` wants the module itself, `import jax.numpy` the package.
        names = args[2] if len(args) > 2 else ()
        for each in names or ():
            if not hasattr(module, each):
                importlib.import_module(f"{module.__name__}.{each}")
        return module if names else sys.modules[self.package]

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def run(self, code: str, stop: bool = True) -> Ran:
        """Runs a cell. An exception is raised again unless `stop` is false; then it is in the result."""
        code = _magics(textwrap.dedent(code))
        filename = f"/documents/cell{next(_serial)}.py"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        tree = ast.parse(code, filename)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        ran = Ran()
        printed = io.StringIO()
        with warnings.catch_warnings(record=True) as ran.warnings, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            np.random.set_state(self.numpy_random)
            try:
                exec(compile(tree, filename, "exec"), self.names)
                if isinstance(last, ast.Expr):
                    ran.value = eval(compile(ast.Expression(last.value), filename, "eval"), self.names)
            except Exception as error:
                if stop:
                    raise
                ran.error = error
            finally:
                self.numpy_random = np.random.get_state()
        ran.output = printed.getvalue()
        return ran


def _split(text: str) -> tuple[str, list[str]]:
    """Text without blanks, each number a `#`; and the numbers."""
    text = text.replace("DeviceArray(", "Array(")
    # NumPy prints `1.` where the documents may have lost or gained blanks, and aligns columns by them.
    return re.sub(r"\s+", "", _numbers.sub("#", text)), _numbers.findall(text)


def _unit(number: str) -> float:
    """One unit in the last printed digit."""
    mantissa, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def assert_prints(text: str, expected: str, rtol: float = 0.0) -> None:
    """Text equals what a document prints: words exactly, numbers to the document's last digit.

    Blanks and line ends do not count, since the documents went through a formatter that loses them. Numbers
    may be `rtol` apart on top of that where the document has the digits of another machine.
    """
    words, numbers = _split(text)
    expected_words, expected_numbers = _split(expected)
    assert words == expected_words, f"printed:\n{text}\nexpected:\n{expected}"
    for x, y in zip(numbers, expected_numbers, strict=True):
        exact = re.fullmatch(r"[-+]?\d+", y)
        off = abs(float(x) - float(y))
        limit = 0.0 if exact else 1.0001 * _unit(y) + rtol * abs(float(y))
        assert off <= limit, f"printed {x}, expected {y}, in:\n{text}\nexpected:\n{expected}"


def play(*cells: str, rtol: float = 2e-6, exact: bool = False) -> tuple[Session, list[Ran]]:
    """Runs cells under both packages in sessions of their own and compares what they print.

    Returns our session and results. With `exact`, the texts have the same characters.
    """
    ours, theirs = Session(OURS), Session(JAX)
    results = []
    for cell in cells:
        expected = theirs.run(cell)
        result = ours.run(cell)
        assert type(result.error).__name__ == type(expected.error).__name__
        if exact:
            assert result.text == expected.text, f"printed:\n{result.text}\nexpected:\n{expected.text}"
        else:
            assert_prints(result.text, expected.text, rtol)
        results.append(result)
    return ours, results


def follow(cells: Sequence[tuple[str, str | None]], rtol: float = 2e-6, document_rtol: float = 0.0
           ) -> tuple[Session, list[Ran]]:
    """Plays the cells of a document and compares with what it prints under them, where that is given."""
    session, results = play(*[code for code, _ in cells], rtol=rtol)
    for ran, (_, printed) in zip(results, cells, strict=True):
        if printed is not None:
            assert_prints(ran.text, printed, document_rtol)
    return session, results


def errors(*cells: str) -> tuple[BaseException, BaseException]:
    """The exceptions that the last cell ends with, ours and JAX's; their classes have the same name."""
    raised = []
    for package in (OURS, JAX):
        session = Session(package)
        for cell in cells[:-1]:
            session.run(cell)
        ran = session.run(cells[-1], stop=False)
        assert ran.error is not None, f"{package} raised nothing and printed {ran.text!r}"
        raised.append(ran.error)
    ours, theirs = raised
    assert type(ours).__name__ == type(theirs).__name__, f"{ours!r}\nJAX: {theirs!r}"
    return ours, theirs


def close(x: Any, y: Any, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=atol)
