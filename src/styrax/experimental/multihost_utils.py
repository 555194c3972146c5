"""Agreement between the processes of a program: there is one, which agrees with itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays.shardings import NamedSharding
from ..core.arrays.shardings import PartitionSpec as P
from ..core.trees import tree
from ..lax.collectives.placing import device_put


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here."""


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's values, in all."""
    return tree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, stacked, or with `tiled` put together along their first axis."""
    return tree.tree_map(lambda x: np.asarray(x) if tiled or np.ndim(x) and not getattr(x, "is_fully_addressable", True)
                         else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes have the same values."""


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes should save their state because one of them is to be stopped."""
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The processes' parts as one array."""
    return _with_specs(local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of an array."""
    return _with_specs(global_inputs, global_mesh, pspecs)


def _with_specs(values: Any, mesh: Any, pspecs: Any) -> Any:
    from ..core.trees import tree_paths

    leaves, treedef = tree.tree_flatten(values)
    specs = [pspecs] * len(leaves) if isinstance(pspecs, P) else tree_paths.broadcast_prefix(
        pspecs, values, is_leaf=lambda s: isinstance(s, P))
    return tree.tree_unflatten(treedef, [
        device_put(x, NamedSharding(mesh, s)) for x, s in zip(leaves, specs, strict=True)])


__all__ = [
    "P", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array", "host_local_array_to_global_array",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]
