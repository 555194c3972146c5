"""Where the time of a compiled function goes: its nests, each with what it moves and computes, against what the machine
can do (the roofline model of Williams, Waterman and Patterson, 2009)."""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from ..core.arrays import backends
from ..core.arrays.array import Array
from ..core.programs.places import Place
from ..core.settings.config import enable_x64
from ..core.tracing.source import SourceInfo
from ..core.types.typing import PyTree
from ..transforms import stages

SECONDS = 0.3  # for the calls of one program
MOST_CALLS = 1000
SHOWN = 0.002  # the part of the time from which on a nest is printed


@dataclass(frozen=True)
class Nest:
    """A loop nest of a compiled function, or a loop or branch around such nests.

    Attributes:
      depth: how many loops and branches with rows of their own are around it.
      form: "loop", "while", "call" (of a library), "copy", "if" or "switch".
      primitives: names of the operations whose results it writes; what is fused into them is not named.
      lines: where these stand in the user's program, as "file.py:12:8 (function)".
      executions: of one call.
      leaf: whether it is no loop or branch around others.
      seconds: of one call, all executions together; around others, what these leave.
      bytes: that one call moves at least: what is read or written of a buffer counts once for an execution.
      operations: arithmetic operations of one call; a transcendental function counts as its instructions.
      limit: "memory" or "arithmetic", whichever takes the machine longer; "" where neither is known.
      share: the time that the machine needs for it, as a part of `seconds`; not a number where neither is known.
    """

    depth: int
    form: str
    primitives: tuple[str, ...]
    lines: tuple[str, ...]
    leaf: bool
    executions: float
    seconds: float
    bytes: float
    operations: float
    limit: str
    share: float


@dataclass(frozen=True)
class Explanation:
    """What `jit(f).explain(x)` gives: `print` it.

    Attributes:
      name: of the function.
      seconds: of one call, the best of `calls`, from the caller's side.
      calls: how many were timed.
      nests: in the order of the program.
    """

    name: str
    seconds: float
    calls: int
    nests: tuple[Nest, ...]

    def __str__(self) -> str:
        inside = sum(n.seconds for n in self.nests)
        head = (f"{self.name}: {_time(self.seconds)} a call (best of {self.calls}), "
                f"{_time(inside)} of it in {len(self.nests)} nests")
        shown = [n for n in self.nests if n.seconds >= SHOWN * inside]
        lines = [head, f"{'time':>8} {'of all':>7} {'bytes':>9} {'operations':>10}  of the machine's",
                 *(line for n in shown for line in self._row(n, inside))]
        rest = len(self.nests) - len(shown)
        if rest:
            lines.append(f"and {rest} nests that take less than {100 * SHOWN:g} % each")
        return "\n".join(lines)

    def _row(self, n: Nest, inside: float) -> list[str]:
        share = "" if math.isnan(n.share) else f"{100 * n.share:3.0f} % {n.limit}"
        what = ", ".join(n.primitives) if n.leaf and n.primitives else n.form
        if n.executions != 1:
            what += f" × {n.executions:g}"
        left = (f"{_time(n.seconds):>8} {100 * n.seconds / (inside or 1):5.1f} % {_count(n.bytes):>9} "
                f"{_count(n.operations):>10}  {share:<17}{'  ' * n.depth}")
        lines = n.lines[:4] if n.leaf else n.lines[-1:]
        where = f"  {lines[0]}" if lines else ""
        return [f"{left}{what}{where}", *(f"{'':{len(left)}}  and {line}" for line in lines[1:])]


def explain(compiled: stages.Compiled, call: Callable[..., PyTree], leaves: Sequence[Any]) -> Explanation:
    """Runs a compiled function with clock calls between its nests.

    Args:
      compiled: of whose machine code the nests are.
      call: calls that code with arrays, and gives its results.
      leaves: the arrays.

    Raises:
      NotImplementedError: the program was compiled by a backend that does not tell its nests.
    """
    seconds, calls, timed = _timed(compiled, call, leaves)
    return Explanation(compiled.fun_name, seconds, calls, tuple(_nest(*row) for row in timed))


def _timed(compiled: stages.Compiled, call: Callable[..., PyTree], leaves: Sequence[Any]
           ) -> tuple[float, int, list[tuple[Place, float, int]]]:
    """Seconds of the best call, the number of calls, and of each place that was reached in the best one its seconds
    and executions."""
    code = compiled.runtime_executable()
    if not hasattr(code, "clocked"):
        raise NotImplementedError("explain() times the nests of programs that Styrax' own compiler has made; this one "
                                  "is another's. jax.profiler.trace records what runs where.")
    donated = compiled.donate_argnums
    wait = backends.get().barrier
    best, calls = math.inf, 0
    with code.clocked() as (places, clock):
        end = time.perf_counter() + SECONDS
        while calls < 3 or calls < MOST_CALLS and time.perf_counter() < end:
            given = [x.copy() if k in donated and isinstance(x, Array) else x for k, x in enumerate(leaves)]
            wait()
            clock.reset()
            start = time.perf_counter()
            call(*given)
            wait()
            spent = time.perf_counter() - start
            calls += 1
            if spent < best and calls > 1:  # the first call warms up
                best, rows = spent, clock.rows()
    timed = []
    for place, (nanoseconds, executions) in zip(places, rows, strict=True):
        if place.around is not None:
            nanoseconds += rows[place.around][0]
        if executions and not place.turns:
            timed.append((place, nanoseconds * 1e-9, executions))
    return best, calls, timed


def _nest(place: Place, seconds: float, executions: int) -> Nest:
    lines = dict.fromkeys(_line(info) for _, info in place.origins if info is not None and info.code is not None)
    moved, operations = place.bytes * executions, place.flops * executions
    limit, share = "", math.nan
    # of a library's function that is no product, nobody knows what it does
    if seconds > 0 and (operations or moved and place.form != "call"):
        limit, least = _machine().least(moved, operations, place.bytes, place.dtype)
        share = least / seconds
    return Nest(place.depth, place.form, tuple(dict.fromkeys(name for name, _ in place.origins)), tuple(lines),
                place.around is None, executions, seconds, moved, operations, limit, share)


def _line(info: SourceInfo) -> str:
    text = info.summary()
    return text.replace(os.getcwd() + os.sep, "")


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def _count(n: float) -> str:
    if not n:
        return ""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n:.0f}"


# -- the machine -------------------------------------------------------------------------------------------

SIZES = tuple(1 << k for k in range(14, 27, 2))  # bytes that a measured nest moves


class Machine(NamedTuple):
    """What this machine does in a second, measured by programs of our own: bytes that a sum of an array and a number
    moves, by how many it moves at all, and operations of a product of matrices, by dtype."""

    bandwidths: tuple[float, ...]
    operations: dict[str, float]

    def least(self, moved: float, operations: float, footprint: float, dtype: str) -> tuple[str, float]:
        """What limits some work, and the seconds that it takes at least; `footprint` decides on the cache."""
        size = min(bisect_left(SIZES, footprint), len(SIZES) - 1)
        memory = moved / self.bandwidths[size]
        arithmetic = operations / self.operations.get(dtype, self.operations["float32"])
        return ("memory", memory) if memory >= arithmetic else ("arithmetic", arithmetic)


@cache
def _machine() -> Machine:
    from .. import numpy as jnp
    from ..transforms.jit import jit

    def fastest(fun: Callable[..., Any], *args: Any) -> float:
        compiled = jit(fun).lower(*args).compile()
        return max(seconds for _, seconds, _ in _timed(compiled, compiled, args)[2])

    bandwidths = tuple(size / fastest(lambda x: x + 1, jnp.zeros(size // 8, jnp.float32)) for size in SIZES)
    operations = {}
    with enable_x64():
        for dtype in ("float32", "float64"):
            x = jnp.ones((512, 512), dtype)
            operations[dtype] = 2 * 512**3 / fastest(jnp.matmul, x, x)
    return Machine(bandwidths, operations)
