"""Where the devices of each process stand in a mesh."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.arrays.mesh import Mesh
from .cohort import current


class Places:
    """Where the devices of each process stand in a mesh.

    Attributes:
      own: axis -> the positions of this process's devices along it.

    Raises NotImplementedError where a process's devices are no grid of positions.
    """

    def __init__(self, mesh: Mesh):
        number = current().number
        process = np.array([d.process_index for d in mesh.devices.flat]).reshape(mesh.devices.shape)
        self.all: dict[int, dict[Hashable, tuple[int, ...]]] = {}
        for p in np.unique(process).tolist():
            places = np.argwhere(process == p)
            each = [np.unique(column).tolist() for column in places.T]
            if np.prod([len(e) for e in each]) != len(places):
                raise NotImplementedError(f"the devices of process {p} do not form a grid in {mesh}: a mesh over "
                                          "several processes needs that of each")
            self.all[p] = dict(zip(mesh.axis_names, map(tuple, each), strict=True))
        if number not in self.all:
            raise ValueError(f"process {number} has no device in {mesh}")
        self.own = self.all[number]

    @classmethod
    def of(cls, mesh: Any) -> Places:
        """Those of a mesh."""
        return _of(mesh)

    def along(self, name: Hashable) -> dict[int, tuple[int, ...]]:
        """The processes whose devices stand along an axis with those of this one: their positions."""
        return {p: each[name] for p, each in self.all.items()
                if all(each[n] == self.own[n] for n in each if n != name)}


@lru_cache(maxsize=256)
def _of(mesh: Mesh) -> Places:
    return Places(mesh)


__all__ = ["Places"]
