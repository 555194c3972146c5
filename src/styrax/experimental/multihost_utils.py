"""Agreement between the processes of a program: there is one, which agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import distributed
from ..core.arrays.array import Array
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import NamedSharding
from ..core.arrays.shardings import PartitionSpec as P
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.trees import tree
from ..core.types.avals import ShapedArray
from ..core.types.typing import ArrayLike, PyTree
from ..lax.collectives.placing import device_put
from ..transforms import ad
from ..transforms.batching import AxisData


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here."""


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The first process's values, in all."""
    return tree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The values of all processes, stacked, or with `tiled` put together along their first axis."""
    return tree.tree_map(lambda x: np.asarray(x) if tiled or np.ndim(x) and not getattr(x, "is_fully_addressable", True)
                         else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Checks that all processes have the same values."""


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes should save their state because one of them is to be stopped."""
    return False


class ProcessFailureError(Exception):
    """A process failed while others were in a `live_devices` block."""

    def __init__(self, failed_devices: set[Device]):
        super().__init__(f"devices failed: {failed_devices}")
        self.failed_devices = failed_devices


@contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[Sequence[Device]]:
    """The devices that are at hand while a block runs: one process, which runs, has all of its own.

    Raises:
      RuntimeError: `distributed.initialize` was not called.
      ValueError: there is no device of this process.
    """
    if not distributed.is_initialized():
        raise RuntimeError("Distributed JAX not initialized.")
    if not devices:
        raise ValueError("No local devices provided.")
    yield list(devices)


def _conversion(name: str) -> Primitive:
    """A conversion between the parts of an array and the whole: with one process, an identity with a sharding."""
    prim = Primitive(name)
    rules.loops[prim] = rules.same_value
    rules.stablehlos[prim] = lambda m, x, **_: x
    ad.deflinear2(prim, lambda ct, x, *, global_mesh, pspec: [prim.bind(ct, global_mesh=global_mesh, pspec=pspec)])
    return prim


host_local_array_to_global_array_p = _conversion("host_local_array_to_global_array")
global_array_to_host_local_array_p = _conversion("global_array_to_host_local_array")


@host_local_array_to_global_array_p.def_abstract_eval
def ltg_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: P) -> ShapedArray:
    """The type of the whole array, from that of the process's part."""
    return arr


@global_array_to_host_local_array_p.def_abstract_eval
def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: P) -> ShapedArray:
    """The type of the process's part, from that of the whole array."""
    return arr


@host_local_array_to_global_array_p.def_impl
def host_local_array_to_global_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: P) -> Array:
    """The process's part as the whole array."""
    return device_put(arr, NamedSharding(global_mesh, P() if pspec is None else pspec))


@global_array_to_host_local_array_p.def_impl
def global_array_to_host_local_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: P) -> Array:
    """The process's part of the whole array."""
    return device_put(arr, NamedSharding(global_mesh, P() if pspec is None else pspec))


def ltg_batcher(insert_axis: bool | None, axis_data: AxisData, vals_in: Sequence[Array], dims_in: Sequence[int | None],
                global_mesh: Mesh, pspec: P) -> tuple[Array, int | None]:
    """The batching rule: the mapped axis is spread over the mesh axis of `spmd_axis_name`, or not at all."""
    (x,), (dim,) = vals_in, dims_in
    entries = list(pspec)
    if dim is not None and dim <= len(entries):
        entries.insert(dim, axis_data.spmd_name)
    return host_local_array_to_global_array_p.bind(x, global_mesh=global_mesh, pspec=P(*entries)), dim


def _gtl_batcher(axis_data: AxisData, vals_in: Sequence[Array], dims_in: Sequence[int | None], *, global_mesh: Mesh,
                 pspec: P) -> tuple[Array, int | None]:
    (x,), (dim,) = vals_in, dims_in
    entries = list(pspec)
    if dim is not None and dim <= len(entries):
        entries.insert(dim, axis_data.spmd_name)
    return global_array_to_host_local_array_p.bind(x, global_mesh=global_mesh, pspec=P(*entries)), dim


rules.fancy_batchers[host_local_array_to_global_array_p] = (
    lambda axis_data, vals, dims, **params: ltg_batcher(None, axis_data, vals, dims, **params))
rules.fancy_batchers[global_array_to_host_local_array_p] = _gtl_batcher


def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree) -> PyTree:
    """The processes' parts as one array."""
    return _with_specs(host_local_array_to_global_array_p, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree) -> PyTree:
    """This process's part of an array."""
    return _with_specs(global_array_to_host_local_array_p, global_inputs, global_mesh, pspecs)


def _with_specs(prim: Primitive, values: Any, mesh: Any, pspecs: Any) -> Any:
    from ..core.trees import tree_paths

    leaves, treedef = tree.tree_flatten(values)
    specs = [pspecs] * len(leaves) if isinstance(pspecs, P) else tree_paths.broadcast_prefix(
        pspecs, values, is_leaf=lambda s: isinstance(s, P))
    return tree.tree_unflatten(treedef, [
        prim.bind(x, global_mesh=mesh, pspec=s) for x, s in zip(leaves, specs, strict=True)])


__all__ = [
    "P", "ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "global_array_to_host_local_array_impl", "global_array_to_host_local_array_p", "gtl_abstract_eval",
    "host_local_array_to_global_array", "host_local_array_to_global_array_impl", "host_local_array_to_global_array_p",
    "live_devices", "ltg_abstract_eval", "ltg_batcher", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]
