"""Whether results are those of JAX: types exactly, values as far as the program determines them.

A value that no rounding touched is compared bit by bit. Others first with a narrow tolerance; where that fails, the
program runs once more under JAX in a wider precision, as it is and with each rounded value moved by as much as
rounding may move it. What these runs differ in, JAX's own error, and some units in the last place are allowed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.fuzz import programs
from tests.fuzz.programs import Program, walk
from tests.fuzz.table import ROWS
from tests.fuzz.values import INEXACT, PARTS, TINY, WIDER

TRIALS = 5
FACTOR = 10.0
ULPS = 16.0
ALONE = 16  # more is moved where there is no wider precision, in which small differences are not seen


@dataclass(frozen=True)
class Leaf:
    """A result: its value and type."""

    value: np.ndarray
    weak: bool | None  # None where a result is no array of the library's

    @property
    def dtype(self) -> str:
        return self.value.dtype.name


def leaf(x: Any) -> Leaf:
    aval = getattr(x, "aval", None)
    return Leaf(np.asarray(x), None if aval is None else bool(aval.weak_type))


def eps(dtype: str) -> float:
    return float(ml_dtypes.finfo(PARTS.get(dtype, dtype)).eps)


def wide(x: np.ndarray) -> np.ndarray:
    """In double precision."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def rough(dtype: str) -> bool:
    return dtype in INEXACT or dtype in TINY


def types_differ(ours: Leaf, theirs: Leaf) -> str | None:
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    if ours.value.shape != theirs.value.shape:
        return f"shape {ours.value.shape}, not {theirs.value.shape}"
    if ours.weak is not None and theirs.weak is not None and ours.weak != theirs.weak:
        return f"weak type {ours.weak}, not {theirs.weak}"
    return None


def parts(x: np.ndarray) -> np.ndarray:
    """Real and imaginary parts side by side."""
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def suspicious(ours: np.ndarray, theirs: np.ndarray, exact: bool) -> np.ndarray:
    """Which elements are not the same at first sight."""
    if not rough(theirs.dtype.name):
        return ours != theirs
    unit, tiny = eps(theirs.dtype.name), float(ml_dtypes.finfo(PARTS.get(theirs.dtype.name, theirs.dtype.name)).tiny)
    a, b = parts(wide(ours)), parts(wide(theirs))
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not exact:
            scale = np.maximum(np.abs(a), np.abs(b))
            if theirs.dtype.kind == "c":
                scale = np.broadcast_to(np.max(scale, -1, keepdims=True, initial=0), a.shape)
            same |= np.abs(a - b) <= ULPS * unit * scale + 4 * tiny
    same = same.all(-1) if theirs.dtype.kind == "c" else same
    return ~same


def disturbed(program: Program) -> Callable[..., list[list[np.ndarray]]] | None:
    """The program's results in a wider precision: undisturbed, and disturbed `TRIALS` times. None where it has no
    meaning there."""
    narrow = {row.title for row in ROWS if row.narrow}
    able = not any(s.row in narrow for s in walk(program.main)) and program.args
    for widen in (True, False) if able else (False,):
        try:
            return _runs(program, widen)
        except Exception:
            continue
    return None


def _runs(program: Program, widen: bool) -> Any:
    types = program.types

    def noisy(name: str) -> bool:
        return name in types and types[name].inexact and not types[name].exact

    setting: list[Any] = [0.0, 0.0]

    def noise(name: str, x: Any) -> Any:
        if not types[name].inexact:
            return x
        unit = eps(types[name].dtype) * (1 if widen and types[name].dtype in WIDER else ALONE)
        seed = zlib.crc32(name.encode()) % 1000
        size = int(np.prod(np.shape(x)))
        phase = (np.arange(size) * 1.7 + seed).reshape(np.shape(x))
        moved = 1 + setting[0] * unit * jnp.cos(phase * (1 + setting[1]))
        return x * jax.lax.convert_element_type(moved, x.dtype)

    def other(name: str) -> Any:
        return jnp.dtype(WIDER.get(name, name) if widen else name)

    def constant(x: Any) -> Any:
        return x.astype(WIDER.get(x.dtype.name, x.dtype)) if widen and isinstance(x, np.ndarray) else x

    names = {"noise": noise, "dtype": other}
    if widen:
        names["constant"] = constant
    f = programs.build(program.main, "jax", noisy=noisy, **names)

    def run(amount: Any, seed: Any, *args: Any) -> Any:
        setting[:] = amount, seed
        return f(*args)

    with jax.enable_x64(True if widen else program.x64):
        args = [constant(x) if widen else x for x in program.args]
        compiled = jax.jit(run)
        return [
            [np.asarray(x) for x in compiled(a, s, *args)]
            for a, s in [(0.0, 0.0), *((1.0, 0.37 * k) for k in range(TRIALS))]
        ]


def verdict(ours: np.ndarray, theirs: np.ndarray, runs: Sequence[np.ndarray]) -> tuple[bool, bool]:
    """Whether all elements are as good as JAX's, and whether that could be said of all."""
    name = theirs.dtype.name
    unit, top = eps(name), float(ml_dtypes.finfo(PARTS.get(name, name)).max)
    tiny = float(ml_dtypes.finfo(PARTS.get(name, name)).tiny)
    a, b = parts(wide(ours)), parts(wide(theirs))
    truth, *moved = [parts(wide(r)) for r in runs]
    with np.errstate(all="ignore"):
        near = suspicious(ours, theirs, False)
        near = np.broadcast_to(near[..., None], a.shape) if theirs.dtype.kind == "c" else near
        spread = np.max([np.abs(m - truth) for m in moved], 0)
        large = np.abs(truth)
        if theirs.dtype.kind == "c":
            large = np.broadcast_to(np.max(large, -1, keepdims=True, initial=0), a.shape)
            spread = np.broadcast_to(np.max(spread, -1, keepdims=True, initial=0), a.shape)
        allowed = FACTOR * spread + FACTOR * np.abs(b - truth) + ULPS * unit * large + 4 * tiny
        good = ~near | (np.abs(a - truth) <= allowed)
        known = (
            np.isfinite(truth)
            & np.isfinite(b)  # what is too large on the way to a result is so in some orders of operations
            & np.all([np.isfinite(m) for m in moved], 0)
            & (large < top / 4)
            & (spread <= 0.25 * large + tiny)
        )
        # where a wider precision says nothing, nothing is claimed
        return bool(np.all(good | ~known)), bool(np.all(known | ~near))
