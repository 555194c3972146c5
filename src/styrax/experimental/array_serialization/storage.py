"""Single arrays in storage, by TensorStore: where they lie, and how their parts are written and read.

TensorStore is imported when an array is written or read: what else a module of checkpoints does works without it.
"""

from __future__ import annotations

import asyncio
import operator
import os
import re
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ...core.arrays.array import Array
from ...core.arrays.devices import Sharding
from ...core.arrays.layouts import Format
from ...core.arrays.shape_struct import ShapeDtypeStruct
from ...core.arrays.shards import bounds
from ...core.types.typing import DTypeLike, Object, Shape
from ...placement import make_array_from_callback

Spec = dict[str, Any]
Placed = Sharding | Format | ShapeDtypeStruct
R = TypeVar("R")


class Future(Protocol):
    """What TensorStore says of something that it does in the background."""

    def result(self, timeout: float | None = None) -> Object: ...


class Transaction(Protocol):
    """TensorStore's: what is written in it is seen when all of it is."""

    def commit_async(self) -> Future: ...


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False, process_idx: int | None = None,
                         arr: Array | None = None, driver: str = "zarr") -> Spec:
    """TensorStore's specification of an array at a path, which may begin with `gs://` or `s3://`.

    Args:
      ckpt_path: where the array lies.
      ocdbt: whether all arrays of the folder share one database.
      process_idx: of the process whose folder it is, where each has its own.
      arr: an array of that shape and sharding, by which the parts are chosen.
      driver: `zarr` or `zarr3`.

    Raises:
      ValueError: for a relative path, or one without a folder, in a database.
    """
    path = os.path.normpath(os.fspath(ckpt_path)).replace("gs:/", "gs://").replace("s3:/", "s3://")
    if process_idx is not None:
        folder, name = os.path.split(path)
        path = f"{folder}/process_{process_idx}/{name}"
    remote = re.fullmatch(r"(gs|s3)://([^/]+)/(.+)", path)
    if ocdbt and not remote and path.startswith(("gs://", "s3://")) or remote and ocdbt and "/" not in remote[3]:
        raise ValueError(f"Using OCDBT requires the bucket name, the directory name and the array name, your path is: "
                         f"{path}")
    folder, name = os.path.split(remote[3] if remote else path)
    if ocdbt and not remote and not os.path.isabs(folder):
        raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
    drivers = {"gs": "gcs", "s3": "s3"}
    place: Spec = {"driver": drivers[remote[1]], "bucket": remote[2]} if remote else {"driver": "file"}
    place["path"] = folder if ocdbt else os.path.join(folder, name)
    spec: Spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": place, "path": name} if ocdbt else place}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _metadata(array: Array, driver: str) -> Spec:
    """What the storage holds of an array as a whole: one part of it for each shard."""
    parts = [max(1, d) for d in array.sharding.shard_shape(array.shape)]
    if driver == "zarr3":
        return {"codecs": [], "shape": array.shape, "data_type": array.dtype.name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": parts}}}
    return {"compressor": {"id": "zstd"}, "shape": array.shape, "chunks": parts}


async def async_serialize(arr_inp: Array, tensorstore_spec: Spec, commit_future: MutableSequence[Future] | None = None,
                          *, replica_id: int = 0, transaction: Transaction | None = None) -> None:
    """Writes the shards of this process, one replica of each.

    Args:
      arr_inp: the array.
      tensorstore_spec: where it goes.
      commit_future: gets what says when a write is done; without it all are when the coroutine ends.
      replica_id: of the replica that is written.
      transaction: TensorStore's, of which the writes are part.
    """
    import tensorstore

    spec = {"dtype": arr_inp.dtype.name, **tensorstore_spec}
    spec.setdefault("metadata", _metadata(arr_inp, spec.get("driver", "zarr")))
    store = await tensorstore.open(tensorstore.Spec(spec), create=True, open=True, transaction=transaction)
    writes = [store[shard.index].write(np.asarray(shard.data)) for shard in arr_inp.addressable_shards
              if shard.replica_id == replica_id]
    for write in writes:
        await write.copy
    commits = [write.commit for write in writes]
    if commit_future is None:
        await asyncio.gather(*commits)
    else:
        commit_future.extend(commits)


async def async_deserialize(in_type: Placed, tensorstore_spec: Spec, global_shape: Shape | None = None,
                            dtype: DTypeLike | None = None) -> Array:
    """Reads the shards of this process.

    Args:
      in_type: how the array is to be sharded.
      tensorstore_spec: where it lies.
      global_shape: of the result: what is stored is cut, or filled with zeros. By default what is stored.
      dtype: of the result, by default what is stored.

    Raises:
      ValueError: if there is no array, or its sharding is not told.
    """
    import tensorstore

    sharding = in_type if isinstance(in_type, Sharding) else in_type.sharding
    if not isinstance(sharding, Sharding):
        raise ValueError(f"sharding passed to deserialization should be specified, got {in_type}")
    store = await tensorstore.open(tensorstore.Spec(tensorstore_spec), open=True)
    shape = tuple(map(operator.index, store.shape if global_shape is None else global_shape))
    kind = np.dtype(store.dtype.numpy_dtype if dtype is None else dtype)
    reads = {}
    for index in sharding.addressable_devices_indices_map(shape).values():
        place = bounds(index, shape)
        there = tuple(slice(min(low, d), min(high, d)) for (low, high), d in zip(place, store.shape))
        reads[place] = store[there].read()
    parts = {}
    for place, read in reads.items():
        stored = await read
        parts[place] = np.zeros([high - low for low, high in place], kind)
        parts[place][tuple(map(slice, stored.shape))] = stored
    return make_array_from_callback(shape, sharding, lambda index: parts[bounds(index, shape)], dtype=kind)


def _together(one: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of a coroutine for many arguments, all at the same time."""
    async def run() -> list[Any]:
        return await asyncio.gather(*[one(*row) for row in rows])

    return asyncio.run(run())


def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Spec],
                      commit_futures: Sequence[MutableSequence[Future]] | None = None) -> None:
    """Writes arrays, all at the same time."""
    futures = commit_futures if commit_futures is not None else [None] * len(arrays)
    _together(async_serialize, list(zip(arrays, tensorstore_specs, futures, strict=True)))


def run_deserialization(shardings: Sequence[Placed], tensorstore_specs: Sequence[Spec],
                        global_shapes: Sequence[Shape] | None = None, dtypes: Sequence[DTypeLike] | None = None,
                        concurrent_gb: int = 32) -> list[Array]:
    """Reads arrays, all at the same time.

    `concurrent_gb`, JAX's limit for hosts with little memory, is not kept.
    """
    none = [None] * len(shardings)
    return _together(async_deserialize, list(zip(shardings, tensorstore_specs, global_shapes or none, dtypes or none,
                                                 strict=True)))
