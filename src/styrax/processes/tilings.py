"""How an array is cut into blocks over the devices of several processes, and what must go where."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..core.arrays.devices import Device
from ..core.arrays.shardings import NamedSharding
from ..core.arrays.shards import bounds
from .cohort import current
from .peers import COMBINE

Bounds = tuple[tuple[int, int], ...]  # begin and end in each dimension


class Tiling:
    """An array of a shape under a sharding: a process keeps its devices' different blocks as rows of one array.

    Attributes:
      block: the shape of a block.
      places: process -> where its blocks lie, in the order of its rows.
      row: device -> which row of its process holds its block.
    """

    def __init__(self, sharding: NamedSharding, shape: tuple[int, ...]):
        self.sharding, self.shape = sharding, shape
        self.block = sharding.shard_shape(shape)
        self.row: dict[Device, int] = {}
        self.places: dict[int, list[Bounds]] = {}
        for device, index in sharding.devices_indices_map(shape).items():
            rows = self.places.setdefault(device.process_index, [])
            place = bounds(index, shape)
            if place not in rows:
                rows.append(place)
            self.row[device] = rows.index(place)
        if current().number not in self.places:
            raise ValueError(f"process {current().number} has no device of {sharding}")

    @property
    def own(self) -> list[Bounds]:
        """Where the blocks of this process lie."""
        return self.places[current().number]

    @cached_property
    def owner(self) -> dict[Bounds, int]:
        """Block -> the first process that has it."""
        found: dict[Bounds, int] = {}
        for process, places in sorted(self.places.items()):
            for place in places:
                found.setdefault(place, process)
        return found

    @cached_property
    def copies(self) -> int:
        """How many processes have a block."""
        return sum(map(len, self.places.values())) // len(self.owner)


@lru_cache(maxsize=4096)
def tiling(sharding: NamedSharding, shape: tuple[int, ...]) -> Tiling:
    """The tiling of arrays of a shape."""
    return Tiling(sharding, shape)


class Plan:
    """What one process does when all of them move or combine rows: `run` takes and gives rows.

    Attributes:
      rows: the number of rows of the result, None where `run` gives the shape (`result_shape`).
    """

    name = "plan"

    def run(self, rows: np.ndarray) -> np.ndarray:
        """The new rows."""
        raise NotImplementedError

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for an operand of a shape."""
        raise NotImplementedError


class Combination(Plan):
    """Rows with labels `(key, part)` become rows for keys: the combination of a key's parts, whoever has them.

    Args:
      labels: process -> the labels of its rows. Rows with one label are equal: the first process's is taken.
      wanted: process -> the keys of its result, in order.
      how: what combines parts, a key of `COMBINE`; None where each key has one part.
    """

    name = "combination"

    def __init__(self, labels: Mapping[int, Sequence[tuple[Hashable, Hashable]]],
                 wanted: Mapping[int, Sequence[Hashable]], how: str | None):
        self.labels, self.wanted, self.how = labels, wanted, how
        me = self._me = current().number
        owner: dict[tuple[Hashable, Hashable], int] = {}
        for process, found in sorted(labels.items()):
            for label in found:
                owner.setdefault(label, process)
        # process -> key -> its rows that count
        given: dict[int, dict[Hashable, list[int]]] = {p: {} for p in labels}
        for process, found in labels.items():
            seen = set()
            for row, label in enumerate(found):
                if owner[label] == process and label not in seen:
                    given[process].setdefault(label[0], []).append(row)
                    seen.add(label)
        self._own = given[me]
        self._mine = list(wanted[me])
        self._group: list[int] | None = None
        alike = [p for p in sorted(wanted) if list(given[p]) == self._mine and list(wanted[p]) == self._mine]
        givers = {p for p, keys in given.items() if any(k in keys for k in self._mine)}
        takers = {p for p, keys in wanted.items() if any(k in self._own for k in keys)}
        once = len(set(self._mine)) == len(self._mine)
        if how is not None and once and me in alike and set(alike) == givers == takers:
            self._group = alike
        self._sends: dict[int, list[Hashable]] = {}
        self._receives: dict[int, list[Hashable]] = {}
        for other in sorted(labels):
            if other != me:
                sent = [k for k in dict.fromkeys(wanted[other]) if k in self._own]
                got = [k for k in dict.fromkeys(self._mine) if k in given[other]]
                if sent:
                    self._sends[other] = sent
                if got:
                    self._receives[other] = got

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return len(self._mine), *shape[1:]

    def transposed(self) -> Combination:
        """How cotangents go back: the sum of what all that want a key have, to all rows with the key."""
        return Combination({p: [(k, (p, i)) for i, k in enumerate(keys)] for p, keys in self.wanted.items()},
                           {p: [k for k, _ in labels] for p, labels in self.labels.items()}, "sum")

    def run(self, rows: np.ndarray) -> np.ndarray:
        peers, what = current().peers, f"{self.how or 'gather'} of {rows.dtype}{list(rows.shape[1:])}"
        own = {key: self._summed([rows[i] for i in found]) for key, found in self._own.items()}
        if self._group is not None:
            if not self._mine:
                return np.empty(self.result_shape(rows.shape), rows.dtype)
            block = np.stack([own[k] for k in self._mine])
            return block if len(self._group) == 1 else peers.reduce(what, block, self._group, self.how or "sum")
        sends = {p: np.stack([own[k] for k in keys]) for p, keys in self._sends.items()}
        got = {p: np.empty((len(keys), *rows.shape[1:]), rows.dtype) for p, keys in self._receives.items()}
        peers.exchange(what, sends, got)
        parts: dict[Hashable, list[np.ndarray]] = {}
        for process in sorted({*got, self._me}):
            here = own.items() if process == self._me else zip(self._receives[process], got[process], strict=True)
            for key, part in here:
                parts.setdefault(key, []).append(part)
        out = np.zeros(self.result_shape(rows.shape), rows.dtype)
        for i, key in enumerate(self._mine):
            if key in parts:  # nothing arrives there otherwise
                out[i] = self._summed(parts[key])
        return out

    def _summed(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        out = parts[0]
        for part in parts[1:]:
            out = COMBINE[self.how or "sum"](out, part)
        return out


class Move(Plan):
    """The blocks of one tiling become those of another."""

    name = "move"

    def __init__(self, source: Tiling, target: Tiling):
        me = current().number
        self._target = target
        # pieces: where from (row, slices), where to (row, slices)
        self._local: list[tuple[Any, Any]] = []
        self._sends: dict[int, list[Any]] = {}
        self._receives: dict[int, list[Any]] = {}
        for process, places in target.places.items():
            there = {place: row for row, place in enumerate(source.places.get(process, ()))}
            for row, place in enumerate(places):
                for block, owner in source.owner.items():
                    common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(place, block, strict=True)]
                    if any(a >= b for a, b in common):
                        continue
                    to = row, *(slice(a - c, b - c) for (a, b), (c, _) in zip(common, place, strict=True))
                    inside = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, block, strict=True))
                    if block in there:
                        if process == me:
                            self._local.append(((there[block], *inside), to))
                    elif process == me:
                        self._receives.setdefault(owner, []).append(to)
                    elif owner == me:
                        mine = source.own.index(block)
                        self._sends.setdefault(process, []).append((mine, *inside))

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return len(self._target.own), *self._target.block

    def run(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty(self.result_shape(rows.shape), rows.dtype)
        sends = {p: np.concatenate([rows[i].reshape(-1) for i in found]) for p, found in self._sends.items()}
        got = {p: np.empty(sum(out[i].size for i in found), rows.dtype) for p, found in self._receives.items()}
        current().peers.exchange(f"move to {self._target.sharding.spec} of {rows.dtype}{list(self._target.shape)}",
                                 sends, got)
        for where, to in self._local:
            out[to] = rows[where]
        for process, found in self._receives.items():
            at = 0
            for to in found:
                size = math.prod(out[to].shape)
                out[to] = got[process][at:at + size].reshape(out[to].shape)
                at += size
        return out


@lru_cache(maxsize=4096)
def move(source: NamedSharding, target: NamedSharding, shape: tuple[int, ...]) -> Move:
    """What brings arrays of a shape from one sharding to another."""
    return Move(tiling(source, shape), tiling(target, shape))


__all__ = ["Combination", "Move", "Plan", "Tiling", "move", "tiling"]
