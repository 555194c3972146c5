"""Types of values, how values are drawn, and how they print."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import ml_dtypes
import numpy as np

BOOL = ("bool",)
SIGNED = ("int4", "int8", "int16", "int32", "int64")
UNSIGNED = ("uint4", "uint8", "uint16", "uint32", "uint64")
INTS = (*SIGNED, *UNSIGNED)
TINY = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")
HALF = ("float16", "bfloat16")
FULL = ("float32", "float64")
FLOATS = (*HALF, *FULL)
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEX)
NUMBERS = (*INTS, *INEXACT)
ALL = (*BOOL, *NUMBERS, *TINY)
ONLY_X64 = ("int64", "uint64", "float64", "complex128")
# how often arguments of programs have a type
WEIGHTS = {
    "float32": 30,
    "float64": 24,
    "int32": 12,
    "bool": 5,
    "complex64": 5,
    "complex128": 4,
    "bfloat16": 6,
    "float16": 6,
}
DIMENSIONS = (0, 1, 1, 2, 2, 3, 3, 4, 5)
LARGEST_DRAWN = 20
LONG = (9, 17, 33, 70)  # longer than a vector, and no multiple of one
PARTS = {"complex64": "float32", "complex128": "float64"}
WIDER = {
    "float32": "float64",
    "float16": "float64",
    "bfloat16": "float64",
    "complex64": "complex128",
    **dict.fromkeys(TINY, "float64"),
}


@dataclass(frozen=True)
class Type:
    """What is known of a value before a program runs. `exact`: no rounding led to it, so that both libraries have
    the same value, and what jumps (floor, comparisons, casts) may be applied to it."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    exact: bool = True

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def inexact(self) -> bool:
        return self.dtype in INEXACT or self.dtype in TINY


def draw_shape(rng: Random, limit: int = 3, large: bool = False) -> tuple[int, ...]:
    """A shape of no more dimensions than `limit`; `large`: one of them may be long."""
    rank = rng.choices(range(limit + 1), [2, 4, 5, 2][: limit + 1])[0]
    shape = tuple(rng.choice(DIMENSIONS) for _ in range(rank))
    if 0 in shape and rng.random() < 0.6:
        shape = tuple(max(n, 1) for n in shape)
    shape = shape if np.prod(shape) <= LARGEST_DRAWN else tuple(min(n, 2) for n in shape)
    if large and shape and rng.random() < 0.7:
        at = rng.randrange(rank)
        shape = (*(min(n, 3) for n in shape[:at]), rng.choice(LONG), *(min(n, 3) for n in shape[at + 1 :]))
    return shape


def draw_dtype(rng: Random, x64: bool) -> str:
    names = [d for d in ALL if x64 or d not in ONLY_X64]
    return rng.choices(names, [WEIGHTS.get(d, 2) for d in names])[0]


def special(dtype: str) -> list[float]:
    info = ml_dtypes.finfo(dtype)
    big, small = float(info.max), float(info.smallest_normal)
    found = [0.0, -0.0, 1.0, -1.0, 0.5, big, -big, small, -small, 2.0, float("nan"), float("-nan")]
    if not dtype.startswith("float8") or dtype == "float8_e5m2":
        found += [float("inf"), float("-inf")]
    return [x for x in found if not dtype.endswith(("fnuz", "fn")) or np.isfinite(x) or x != x]


def _real(rng: Random, shape: tuple[int, ...], dtype: str, wild: bool) -> np.ndarray:
    size = int(np.prod(shape))
    mild = [rng.choice((rng.uniform(-2, 2), rng.uniform(0.1, 1), rng.randint(-3, 3))) for _ in range(size)]
    if wild:
        edges = special(dtype)
        mild = [rng.choice(edges) if rng.random() < 0.3 else x for x in mild]
    x = np.array(mild, np.float64).reshape(shape).astype(dtype)
    if wild and dtype in FULL:  # some NaN have more bits set than others
        bits = x.view(f"uint{8 * x.itemsize}")
        chosen = np.array([rng.random() < 0.3 for _ in mild], bool).reshape(shape)
        bits[np.isnan(x) & chosen] |= 5
    return x


def draw(rng: Random, shape: tuple[int, ...], dtype: str, wild: bool) -> np.ndarray:
    """An array: mild values or, if `wild`, NaN, infinities, zeros of both signs and extremes among them."""
    size = int(np.prod(shape))
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(size)], bool).reshape(shape)
    if dtype in INTS:
        info = ml_dtypes.iinfo(dtype)
        small = [x for x in range(-4, 8) if info.min <= x <= info.max]
        edges = [int(info.min), int(info.max), int(info.max) - 1, 0]
        drawn = [rng.choice(edges) if wild and rng.random() < 0.3 else rng.choice(small) for _ in range(size)]
        return np.array(drawn, object).reshape(shape).astype(np.int64 if dtype != "uint64" else np.uint64).astype(dtype)
    if dtype in PARTS:
        part = PARTS[dtype]
        real = _real(rng, shape, part, wild)
        out = np.empty(shape, dtype)
        out.real, out.imag = real, _real(rng, shape, part, wild and rng.random() < 0.5)
        return out
    return _real(rng, shape, dtype, wild)


def text(x: np.ndarray) -> str:
    """An array as Python text that gives it again."""
    name = x.dtype.name
    if name in FULL and (x != x).any():  # NumPy does not print which NaN
        unsigned = f"uint{8 * x.itemsize}"
        return f"np.array({x.view(unsigned).tolist()}, np.{unsigned}).view(np.{name}).reshape({x.shape})"
    if name in PARTS:  # NumPy prints NaN of one part so that the other is lost
        part = f"np.{PARTS[name]}"
        plain = np.stack([x.real, x.imag], -1).tolist()
        return f"np.array({plain_text(plain)}, {part}).view(np.{name}).reshape({x.shape})"
    wide = x if x.dtype.kind in "biu" else x.astype(np.int64 if "int" in name else np.float64)
    return f"np.array({plain_text(wide.tolist())}, jnp.dtype('{name}')).reshape({x.shape})"


def plain_text(plain: object) -> str:
    return repr(plain).replace("nan", "np.nan").replace("inf", "np.inf")
