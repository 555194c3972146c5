"""Arguments described in a line: `300,200 200:pos ():int<10` is a matrix, a vector of positive numbers, and an index.

Each is a shape and, after a colon, a kind; without one its elements are standard normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Rng = np.random.Generator
KEPT = 4  # dimensions up to this are what they are also where sizes are odd


class Types(NamedTuple):
    """The types of numbers that a mode computes with."""

    real: Any
    integer: Any
    complex: Any


SINGLE = Types(np.float32, np.int32, np.complex64)
DOUBLE = Types(np.float64, np.int64, np.complex128)
BFLOAT16 = Types(ml_dtypes.bfloat16, np.int32, np.complex64)
HALF = Types(np.float16, np.int32, np.complex64)


class Argument(NamedTuple):
    """A shape, and how its elements are drawn."""

    shape: tuple[int, ...]
    kind: str

    def type(self, types: Types) -> np.dtype:
        kind = self.kind.partition("<")[0]
        if kind in REALS:
            return np.dtype(types.real)
        of_mode = {"complex": types.complex, "int": types.integer, "permutation": types.integer}
        return np.dtype(of_mode[kind] if kind in of_mode else FIXED[kind])

    def draw(self, types: Types, rng: Rng, lead: tuple[int, ...] = ()) -> np.ndarray:
        """An array of it, with `lead` before its dimensions."""
        kind, _, bound = self.kind.partition("<")
        shape = lead + self.shape
        if kind == "int" and bound:
            drawn = rng.integers(0, int(bound), shape)
        else:
            drawn = DRAWN[kind](shape, rng)
        return np.asarray(drawn).astype(self.type(types))

    def odd(self) -> Argument:
        return Argument(tuple(map(next_prime, self.shape)), self.kind)


def parse(text: str) -> list[Argument]:
    found = []
    for word in text.split():
        shape, _, kind = word.partition(":")
        kind = kind or "normal"
        if kind.partition("<")[0] not in DRAWN:
            raise ValueError(f"there is no kind {kind!r} of arguments: {text!r}")
        found.append(Argument(tuple(map(int, filter(None, shape.strip("()").split(",")))), kind))
    return found


def next_prime(n: int) -> int:
    """The first prime from `n` on, where `n` is not so small that it counts something else than elements."""
    if n <= KEPT:
        return n
    while any(n % k == 0 for k in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


def positive_definite(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    a = rng.standard_normal(shape)
    return a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1])


def triangular(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    return np.tril(rng.standard_normal(shape)) / shape[-1] + np.eye(shape[-1])


def symmetric(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    a = rng.standard_normal(shape)
    return (a + np.swapaxes(a, -1, -2)) / 2


def with_nans(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    a = rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.1, np.nan, a)


def complex_normal(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def permutation(shape: tuple[int, ...], rng: Rng) -> np.ndarray:
    return rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)


Draw = Callable[[tuple[int, ...], Rng], Any]
REALS: dict[str, Draw] = {
    "normal": lambda shape, rng: rng.standard_normal(shape),
    "pos": lambda shape, rng: rng.uniform(0.5, 2.5, shape),
    "unit": lambda shape, rng: rng.uniform(0.01, 0.99, shape),
    "signed": lambda shape, rng: rng.uniform(-0.99, 0.99, shape),
    "wide": lambda shape, rng: rng.uniform(-50, 50, shape),
    "sorted": lambda shape, rng: np.sort(rng.standard_normal(shape), axis=-1),
    "nans": with_nans,
    "spd": positive_definite,
    "lower": triangular,
    "symmetric": symmetric,
}
FIXED = {"bits": np.uint32, "u8": np.uint8, "i8": np.int8, "seed": np.int32, "shape": np.uint8, "bool": np.bool_}
DRAWN: dict[str, Draw] = {
    **REALS,
    "complex": complex_normal,
    "int": lambda shape, rng: rng.integers(-100, 100, shape),
    "permutation": permutation,
    "bits": lambda shape, rng: rng.integers(0, 2**32, shape),
    "u8": lambda shape, rng: rng.integers(0, 256, shape),
    "i8": lambda shape, rng: rng.integers(-128, 128, shape),
    "seed": lambda shape, rng: rng.integers(0, 1000, shape),
    "shape": lambda shape, rng: np.zeros(shape),  # tells a function a size, and nothing else
    "bool": lambda shape, rng: rng.random(shape) < 0.5,
}
