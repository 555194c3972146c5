"""What a row is: an operation, and the arguments that it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy
import jax.scipy.linalg
import jax.scipy.special

from .arguments import Argument, parse

HOMES = {
    "jnp": jax.numpy,
    "lax": jax.lax,
    "nn": jax.nn,
    "linalg": jax.numpy.linalg,
    "fft": jax.numpy.fft,
    "scipy.linalg": jax.scipy.linalg,
    "special": jax.scipy.special,
}


class Row:
    """An operation at a size.

    Args:
      label: what it does.
      function: of arrays, in JAX's terms.
      arguments: of `function`, as `arguments` describes them.
      fixed: whether the function needs these sizes.
      signless: whether results are determined up to their signs only.
      loose: by how much more results may differ than their type lets expect.
    """

    __slots__ = ("arguments", "fixed", "function", "label", "loose", "signless")

    def __init__(
        self,
        label: str,
        function: Callable[..., Any],
        arguments: list[Argument],
        fixed: bool = False,
        signless: bool = False,
        loose: float = 1.0,
    ):
        self.label = label
        self.function = function
        self.arguments = arguments
        self.fixed = fixed
        self.signless = signless
        self.loose = loose

    @property
    def name(self) -> str:
        sizes = [described(a) for a in self.arguments if a.kind != "seed"]
        return f"{self.label} [{', '.join(sizes)}]" if sizes else self.label

    def odd(self) -> Row:
        """The same at sizes that are primes."""
        arguments = self.arguments if self.fixed else [a.odd() for a in self.arguments]
        return Row(self.label, self.function, arguments, self.fixed, self.signless, self.loose)


class Family:
    """The rows of a module, in its order."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, label: str, function: Callable[..., Any], *arguments: str, **options: Any) -> None:
        """A row for each text of arguments; `options` are those of `Row`."""
        self.rows += [Row(label, function, parse(text), **options) for text in arguments]

    def each(self, home: str, names: str, *arguments: str, **options: Any) -> None:
        """Rows for functions of a module, each of which is looked up when it is called: where one is missing, the
        others still have their times."""
        for name in names.split():
            self.add(f"{home}.{name}", late(HOMES[home], name), *arguments, **options)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def late(module: Any, name: str) -> Callable[..., Any]:
    return lambda *arguments: getattr(module, name)(*arguments)


def described(argument: Argument) -> str:
    """An argument's shape, and its kind where it is a special one."""
    kind = argument.kind.partition("<")[0]
    text = "×".join(map(str, argument.shape)) or "scalar"
    return text if kind in ("normal", "shape") else f"{text} {kind}"
