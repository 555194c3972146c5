"""What a workload is: a program, the arguments that it gets at a shape, and its other forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Draw = Callable[[np.random.Generator], Shape]


class Workload:
    """One program to measure.

    Args:
      program: the function to call, in JAX's terms; jitted unless eager work is what is measured.
      arguments: `arguments(shape, rng)` gives NumPy arrays or trees of them.
      shapes: shapes to measure at, the first also with `--quick`.
      draw: gives one more shape from a random generator.
      numpy: the same in NumPy, where NumPy can do it.
      torch: the same in PyTorch.
      tolerance: the largest difference of results allowed, relative to their largest element.
      place: puts the arguments where the program wants them, before time is taken.
      block: whether each call waits for its result; otherwise only the last of a series does.
    """

    __slots__ = (
        "arguments", "block", "draw", "family", "name", "numpy", "place", "program", "shapes", "tolerance", "torch",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        program: Callable[..., Any],
        arguments: Callable[[Shape, np.random.Generator], Sequence[Any]],
        shapes: Sequence[Shape],
        draw: Draw | None = None,
        *,
        numpy: Callable[..., Any] | None = None,
        torch: Callable[..., Any] | None = None,
        tolerance: float = 1e-4,
        place: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
        block: bool = True,
    ):
        self.name = name
        self.family = ""  # the module that defines it
        self.program = program
        self.arguments = arguments
        self.shapes = [tuple(s) for s in shapes]
        self.draw = draw
        self.numpy = numpy
        self.torch = torch
        self.tolerance = tolerance
        self.place = place
        self.block = block

    def shapes_to_run(self, seed: int, quick: bool) -> list[Shape]:
        """The shapes, and one drawn with `seed` unless `quick`."""
        if quick:
            return self.shapes[:1]
        if self.draw is None:
            return self.shapes
        rng = np.random.default_rng([seed, *self.name.encode()])
        return [*self.shapes, tuple(int(n) for n in self.draw(rng))]


def floats(*shapes: Shape, rng: np.random.Generator) -> list[np.ndarray]:
    """Standard normal arrays in single precision."""
    return [rng.standard_normal(s, dtype=np.float32) for s in shapes]


def one_array(shape: Shape, rng: np.random.Generator) -> list[np.ndarray]:
    return floats(shape, rng=rng)


def between(low: int, high: int, number: int = 1) -> Draw:
    """Draws `number` sizes from `low` to `high`."""
    return lambda rng: tuple(rng.integers(low, high + 1, number))
