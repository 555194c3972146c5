"""What a row of the table may ask for while it is drawn: values that are there, new ones, choices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np

from tests.fuzz import values
from tests.fuzz.values import Type

T = TypeVar("T")


class Nothing(Exception):
    """A row does not apply here."""


@dataclass(frozen=True)
class Call:
    """An operation on values: text with places for them, and whether it gives one value or a tuple of them."""

    code: str
    ins: tuple[str, ...] = ()
    single: bool = True


@dataclass
class Draw:
    """The state that one operation is drawn from. `fresh` makes a value of a type: an argument or a constant."""

    rng: Random
    env: dict[str, Type]
    x64: bool
    fresh: Callable[[tuple[int, ...], str], str]
    only_exact: bool = False
    axes: tuple[tuple[str, int], ...] = ()  # names and sizes
    large: bool = False

    def type(self, name: str) -> Type:
        return self.env[name]

    def choice(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def integer(self, least: int, most: int) -> int:
        return self.rng.randint(least, most)

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def axis(self, t: Type) -> int:
        return self.integer(0, t.rank - 1)

    def axes_of(self, t: Type, least: int = 1) -> tuple[int, ...]:
        found = tuple(sorted(self.rng.sample(range(t.rank), self.integer(least, t.rank))))
        return found

    def fits(self, t: Type, dtypes: Collection[str], rank: tuple[int, int], extra: Callable[[Type], bool]) -> bool:
        return t.dtype in dtypes and rank[0] <= t.rank <= rank[1] and (t.exact or not self.only_exact) and extra(t)

    def value(
        self,
        dtypes: Collection[str] = values.ALL,
        least: int = 0,
        most: int = 3,
        full: bool = False,
        extra: Callable[[Type], bool] = lambda t: True,
    ) -> str:
        """A value of one of the dtypes, of a rank between `least` and `most`; `full`: not empty."""

        def good(t: Type) -> bool:
            return self.fits(t, dtypes, (least, most), extra) and not (full and 0 in t.shape)

        there = [name for name, t in self.env.items() if good(t)]
        if there and self.rng.random() < 0.9:
            late = there[-4:]
            return self.choice(late if self.rng.random() < 0.6 else there)
        allowed = sorted(d for d in dtypes if self.x64 or d not in values.ONLY_X64)
        if not allowed:
            raise Nothing
        for _ in range(30):
            shape = values.draw_shape(self.rng, min(most, 3), self.large)
            if len(shape) < least:
                shape = shape + tuple(self.choice((1, 2, 3)) for _ in range(least - len(shape)))
            dtype = self.rng.choices(allowed, [values.WEIGHTS.get(d, 2) for d in allowed])[0]
            if good(Type(shape, dtype)):
                return self.fresh(shape, dtype)
        raise Nothing

    def shaped(self, shape: tuple[int, ...], dtype: str) -> str:
        """A value of exactly this shape and dtype."""
        there = [
            n for n, t in self.env.items() if t.shape == shape and t.dtype == dtype and (t.exact or not self.only_exact)
        ]
        if there and self.rng.random() < 0.85:
            return self.choice(there)
        return self.fresh(shape, dtype)

    def like(self, name: str) -> str:
        t = self.env[name]
        return self.shaped(t.shape, t.dtype)

    def square(
        self, dtypes: Collection[str] = ("float32", "float64", "complex64", "complex128"), least: int = 2
    ) -> str:
        """A stack of square matrices, not empty."""
        there = [
            n
            for n, t in self.env.items()
            if t.dtype in dtypes
            and least <= t.rank <= 3
            and t.shape[-1] == t.shape[-2]
            and t.size
            and (t.exact or not self.only_exact)
        ]
        if there and self.rng.random() < 0.7:
            return self.choice(there)
        allowed = sorted(d for d in dtypes if self.x64 or d not in values.ONLY_X64)
        n = self.choice((1, 2, 3))
        return self.fresh((*((2,) if self.rng.random() < 0.2 else ()), n, n), self.choice(allowed))

    def sizes(self, t: Type) -> list[int]:
        return list(t.shape)


def product(shape: Sequence[int]) -> int:
    return int(np.prod(shape))
