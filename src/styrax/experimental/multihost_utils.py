"""Agreement between the processes of a program. One process agrees with itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np

from .. import distributed
from ..core.arrays import host_devices
from ..core.arrays.array import Array
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import NamedSharding, axes_of
from ..core.arrays.shardings import PartitionSpec as P
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.trees import tree
from ..core.types.avals import ShapedArray
from ..core.types.dtypes import canonicalize_dtype
from ..core.types.typing import ArrayLike, PyTree
from ..lax.collectives.placing import device_put
from ..placement import make_array_from_process_local_data, make_array_from_single_device_arrays
from ..transforms import ad
from ..transforms.batching import AxisData


def _value(x: Any) -> np.ndarray:
    """A leaf of a tree as a NumPy array of a dtype that arrays have."""
    value = np.asarray(x)
    return value.astype(canonicalize_dtype(value.dtype), copy=False)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here.

    Raises AssertionError where they have come elsewhere, under another name.
    """
    assert_equal(np.uint32(crc32(name.encode())), f"sync_global_devices name mismatch ('{name}')")


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The values of one process, in all.

    Args:
      in_tree: a tree of arrays of the same shapes in all processes.
      is_source: whether this process is the one; by default the first is.

    Returns:
      A tree of NumPy arrays.
    """
    if host_devices.cohort is None:
        return tree.tree_map(np.asarray, in_tree)
    from ..processes.cohort import current, everyone

    peers = current().peers
    chosen = peers.number == 0 if is_source is None else is_source
    sources = [i for i, b in enumerate(peers.gather_bytes("who broadcasts", b"1" if chosen else b"0")) if b == b"1"]
    if len(sources) != 1:
        raise ValueError(f"one process has to be the source of a broadcast, got {sources}")

    def one(x: Any) -> np.ndarray:
        value = np.ascontiguousarray(_value(x)).reshape(np.shape(x))
        if chosen:
            peers.exchange("broadcast", {p: value for p in everyone() if p != peers.number}, {})
            return value
        out = np.empty_like(value)
        peers.exchange("broadcast", {}, {sources[0]: out})
        return out

    return tree.tree_map(one, in_tree)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The values of all processes.

    Args:
      in_tree: a tree of arrays. Those over several processes are gathered whole, which needs `tiled`.
      tiled: whether the processes' values are put together along their first axis, not along a new one.

    Returns:
      A tree of NumPy arrays.

    Raises ValueError for an array over several processes without `tiled`.
    """
    def one(x: Any) -> np.ndarray:
        if isinstance(x, Array) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError("Gathering global non-fully-addressable arrays only supports tiled=True")
            return np.asarray(device_put(x, NamedSharding(x.sharding.mesh, P())))
        if host_devices.cohort is None:
            return np.asarray(x) if tiled else np.asarray(x)[None]
        from ..processes.cohort import current, everyone

        value = np.ascontiguousarray(_value(x)).reshape(np.shape(x))
        found = current().peers.gather("all-gather", value, everyone())
        return np.concatenate(found) if tiled and value.ndim else np.stack(found)

    return tree.tree_map(one, in_tree)


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Checks that all processes have the same values. AssertionError, in all of them, where they have not."""
    if host_devices.cohort is None:
        return
    values = tree.tree_map(_value, in_tree)
    first = broadcast_one_to_all(values)
    same = all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
               for a, b in zip(tree.tree_leaves(first), tree.tree_leaves(values), strict=True))
    if not process_allgather(np.array(same)).all():
        raise AssertionError(f"{fail_message}. Expected: {first}; got: {in_tree}.")


_watching = False


def _watch() -> None:
    """From now on a request to end (SIGTERM) is one to save the state."""
    global _watching
    if _watching or threading.current_thread() is not threading.main_thread():
        return
    _watching = True

    def asked(*_: Any) -> None:
        coordinator = distributed.global_state.client
        if coordinator is not None:  # not from here, where the connection may be in use
            threading.Thread(target=coordinator.preempted, daemon=True).start()

    signal.signal(signal.SIGTERM, asked)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save their state at this step, because one of them has got SIGTERM.

    Raises RuntimeError where `distributed.initialize` was not called.
    """
    coordinator = distributed.global_state.client
    if coordinator is None:
        return False
    _watch()
    return coordinator.reached(step_id)


class ProcessFailureError(Exception):
    """A process failed while others were in a `live_devices` block."""

    def __init__(self, failed_devices: set[Device]):
        super().__init__(f"devices failed: {failed_devices}")
        self.failed_devices = failed_devices


@contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[Sequence[Device]]:
    """The devices among some whose processes live, while a block runs.

    Raises:
      RuntimeError: `distributed.initialize` was not called.
      ValueError: there is no device of this process.
      ProcessFailureError: at the block's end, where a process has died in it.
    """
    if not distributed.is_initialized():
        raise RuntimeError("Distributed JAX not initialized.")
    if not host_devices.addressable(tuple(devices)):
        raise ValueError("No local devices provided.")
    live = _live(devices)
    try:
        yield live
    finally:
        failed = set(live) - set(_live(live))
        if failed:
            raise ProcessFailureError(failed)


def _live(devices: Sequence[Device]) -> list[Device]:
    coordinator = distributed.global_state.client
    if coordinator is None or host_devices.cohort is None:
        return list(devices)
    there = coordinator.get_live_nodes(sorted({d.process_index for d in devices}))
    return [d for d in devices if d.process_index in there]


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
    return _scaled(arr, global_mesh, global_mesh.local_mesh, pspec)


@global_array_to_host_local_array_p.def_abstract_eval
def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: P) -> ShapedArray:
    """The type of the process's part, from that of the whole array."""
    return _scaled(arr, global_mesh.local_mesh, global_mesh, pspec)


def _scaled(arr: ShapedArray, to: Mesh, of: Mesh, pspec: P) -> ShapedArray:
    """A type with dimensions as many times as large as a mesh is along the axes that they are spread over."""
    shape = list(arr.shape)
    for i, entry in enumerate(pspec):
        for n in axes_of(entry):
            shape[i] = shape[i] * to.shape[n] // of.shape[n]
    return arr if tuple(shape) == arr.shape else arr.update(shape=tuple(shape))


@host_local_array_to_global_array_p.def_impl
def host_local_array_to_global_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: P) -> Array:
    """The process's part as the whole array."""
    if global_mesh.is_multi_process:
        if isinstance(arr, Array) and not arr.is_fully_addressable:
            return arr
        return make_array_from_process_local_data(NamedSharding(global_mesh, pspec), arr)
    return device_put(arr, NamedSharding(global_mesh, P() if pspec is None else pspec))


@global_array_to_host_local_array_p.def_impl
def global_array_to_host_local_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: P) -> Array:
    """The process's part of the whole array."""
    if isinstance(arr, Array) and not arr.is_fully_addressable:
        spread = device_put(arr, NamedSharding(global_mesh, pspec))
        whole = _scaled(spread.aval, global_mesh.local_mesh, global_mesh, pspec).update(sharding=None)
        sharding = NamedSharding(global_mesh.local_mesh, pspec)
        at = {s.device: s.data for s in spread.addressable_shards}
        return make_array_from_single_device_arrays(
            whole.shape, sharding, [at[d] for d in sharding._device_assignment])
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

    if any(s is None for s in tree.tree_leaves(pspecs, is_leaf=lambda s: s is None)):
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")
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
