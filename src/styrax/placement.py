"""Where arrays live: devices, moving arrays to them and back, waiting for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .core.arrays import backends, host_devices
from .core.arrays.array import Array
from .core.arrays.devices import Device, Sharding
from .core.arrays.shards import bounds, whole
from .core.tracing.errors import UnexpectedTracerError
from .core.tracing.source import api_boundary
from .core.tracing.trace import Tracer, get_aval, state
from .core.trees import tree, tree_paths
from .core.types.avals import ShapedArray
from .core.types.dtypes import ExtendedDType
from .core.types.typing import DTypeLike, PyTree
from .lax.collectives.placing import device_put


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform (the default one if None), those of all processes. RuntimeError for an unknown one."""
    return list(backends.all_devices(backend))


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of this process, or of another. ValueError for a process that there is not."""
    number = host_id if process_index is None else process_index
    if number is None:
        return list(backends.get(backend).devices())
    if number not in process_indices():
        raise ValueError(f"Unknown process_index {number}")
    return [d for d in devices(backend) if d.process_index == number]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform, in all processes."""
    return len(backends.all_devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that work together. RuntimeError for an unknown backend."""
    if backend is not None:
        backends.get(backend)
    return 0 if host_devices.cohort is None else host_devices.cohort.number


def process_count(backend: str | None = None) -> int:
    """The number of processes that work together. RuntimeError for an unknown backend."""
    if backend is not None:
        backends.get(backend)
    return 1 if host_devices.cohort is None else host_devices.cohort.count


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes."""
    return list(range(process_count(backend)))


host_id, host_count, host_ids = process_index, process_count, process_indices


def default_backend() -> str:
    """The platform that programs run on by default: "cpu", "gpu" or "tpu"."""
    return backends.get().platform


def device_get(x: PyTree) -> PyTree:
    """The arrays of a tree as NumPy arrays; tracers and arrays of keys as they are.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.device_get(jnp.arange(3))
      array([0, 1, 2], dtype=int32)
    """
    def get(leaf: Any) -> Any:
        if isinstance(leaf, Tracer) or isinstance(getattr(leaf, "dtype", None), ExtendedDType):
            return leaf
        return np.asarray(leaf) if hasattr(leaf, "__array__") else leaf

    return tree.tree_map(get, x)


def block_until_ready(x: PyTree) -> PyTree:
    """Waits for all arrays of a tree, and returns it.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.block_until_ready({'a': jnp.arange(2)})
      {'a': Array([0, 1], dtype=int32)}
    """
    for leaf in tree.tree_leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: PyTree) -> PyTree:
    """Starts copying the arrays of a tree to the host's memory, where they need it."""
    for leaf in tree.tree_leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


@api_boundary
def make_array_from_callback(shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Any], Any],
                             dtype: DTypeLike | None = None) -> Array:
    """An array made of the parts that `data_callback(index)` gives, `index` a tuple of slices for each device."""
    if not isinstance(sharding, Sharding):
        raise TypeError(f"sharding should be an instance of `jax.sharding`. Got {sharding} of type {type(sharding)}")
    if not state.trace.is_eval:
        raise UnexpectedTracerError("jax.make_array_from_callback cannot be called within a traced context.")
    shape = tuple(shape)
    parts: dict[Device, Array] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        if not parts or not sharding.is_fully_replicated:
            part = data_callback(index)
            part = np.asarray(part, get_aval(part).dtype) if isinstance(part, (bool, int, float, complex)) else part
            get_aval(part)  # TypeError for what is no array
        parts[device] = device_put(part, device)
        if dtype is not None and parts[device].dtype != np.dtype(dtype):
            raise ValueError("If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of the "
                             f"addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={parts[device].dtype}`.")
    return _whole(shape, sharding, parts)


@api_boundary
def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *,
                                         dtype: DTypeLike | None = None) -> Array:
    """An array made of its parts, one for each device of the sharding. ValueError for parts that do not fit."""
    if not isinstance(arrays, (list, tuple)):
        raise TypeError("jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got "
                        f"{type(arrays)}.")
    for x in arrays:
        if not hasattr(x, "dtype"):
            raise AttributeError(f"{type(x).__name__!r} object has no attribute 'dtype': it is no array")
        if not isinstance(x, Array) or isinstance(x, Tracer):
            if isinstance(x, Tracer):
                raise ValueError("jax.make_array_from_single_device_arrays requires a list of concrete arrays as "
                                 f"input, but got types {set(map(type, arrays))}")
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}")
        if dtype is not None and np.dtype(dtype) != x.dtype:
            raise ValueError("If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it must match the "
                             f"dtype of the addressable shards. Got dtype={np.dtype(dtype)} and shard "
                             f"dtype={x.dtype}.")
        if len(x.devices()) > 1:
            raise ValueError("When making an array from single-device arrays the input arrays must have one shard "
                             f"each. An argument array had {len(x.devices())} shard(s).")
    if not arrays and dtype is None:
        raise ValueError("If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
                         "`jax.make_array_from_single_device_arrays`.")
    parts = {next(iter(x.devices())): x for x in arrays}
    if len(parts) < len(arrays) == len(sharding._addressable_device_assignment):
        raise ValueError("When making an array from single-device arrays, the input arrays must be from distinct "
                         f"devices, but got device IDs {[next(iter(x.devices())).id for x in arrays]}")
    return _whole(tuple(shape), sharding, parts, len(arrays))


def make_array_from_process_local_data(sharding: Sharding | Device, local_data: PyTree,
                                       global_shape: PyTree = None) -> PyTree:
    """Arrays from the parts of them that this process holds, which is all where there is one process.

    Args:
      sharding: where they go.
      local_data: an array or a container of arrays.
      global_shape: their shapes: one for all or a container of shapes. None: that which parts like this process's make
        up. Along each dimension the data have either all of an array or this process's part.

    Raises:
      ValueError: a global shape does not fit the data.
    """
    leaves, structure = tree.tree_flatten(local_data)
    shapes = tree_paths.broadcast_prefix(global_shape, local_data, is_leaf=_is_shape)
    found = []
    for x, shape in zip(map(np.asarray, leaves), shapes, strict=True):
        if not getattr(sharding, "is_fully_addressable", True):
            found.append(_of_process(sharding, x, shape))
            continue
        if shape is not None and tuple(shape) != x.shape:
            raise ValueError("When calling `make_array_from_process_local_data` on a single process, global_shape "
                             f"should be None or equal to local_data.shape. Got global_shape={shape} and "
                             f"local_data.shape={x.shape}.")
        found.append(device_put(x, sharding))
    return tree.tree_unflatten(structure, found)


def _of_process(sharding: Any, data: np.ndarray, shape: Sequence[int] | None) -> Array:
    """The array of which this process has `data`."""
    parts = sharding._parts(data.shape)
    units = [bounds(index, tuple(parts)) for index in sharding.addressable_devices_indices_map(tuple(parts)).values()]
    own = [sorted({place[i][0] for place in units}) for i in range(data.ndim)]  # along each dimension, which parts
    whole = tuple(d * n // len(o) for d, n, o in zip(data.shape, parts, own, strict=True)) if shape is None else (
        tuple(shape))
    rows = []
    for i, (d, n, o) in enumerate(zip(whole, parts, own, strict=True)):
        have = data.shape[i] if len(whole) == data.ndim else -1
        if have not in (d, d // n * len(o)):
            raise ValueError("Invalid host data, each dimension should match either global or process shape. In "
                             f"dimension {i}, the process data has {have} elements. Process addresses "
                             f"{d // n * len(o)} elements and global_shape={whole}.")
        rows.append({k * (d // n): k * (d // n) if have == d else j * (d // n) for j, k in enumerate(o)})

    def part(index: tuple[slice, ...]) -> np.ndarray:
        return data[tuple(slice(r[a], r[a] + b - a) for r, (a, b) in zip(rows, bounds(index, whole), strict=True))]

    return make_array_from_callback(whole, sharding, part)


def _is_shape(x: Any) -> bool:
    return x is None or isinstance(x, (tuple, list))


def _whole(shape: tuple[int, ...], sharding: Any, parts: dict[Device, Array], count: int | None = None) -> Array:
    """An array of its parts by devices. ValueError for parts that do not fit the sharding or each other."""
    held = set(sharding._addressable_device_assignment)
    if len(held) != (len(parts) if count is None else count):
        raise ValueError(f"Expected {len(held)} per-device arrays (this is how many devices are addressable by the "
                         f"sharding), but got {count}")
    if held != set(parts):
        raise ValueError("Addressable devices and per-device arrays devices do not match. Sharding contains devices "
                         f"{ {d.id for d in held - set(parts)} or '{}' } that are not present in per-device arrays. "
                         f"Per-device arrays contain devices { {d.id for d in set(parts) - held} or '{}' } that are "
                         "not present in the sharding.")
    local = sharding.shard_shape(shape)
    dtype = next(iter(parts.values())).dtype
    for x in parts.values():
        if x.dtype != dtype:
            raise ValueError(f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {dtype} for "
                             f"buffer: {x}")
        if x.shape != local:
            whole_type = ShapedArray(shape, dtype).str_short()
            raise ValueError(f"Expected shard shape {local} doesn't match the single device array shape {x.shape}. "
                             f"Shape of Array is {whole_type} with sharding {sharding}")
    return whole(shape, sharding, parts)


def effects_barrier() -> None:
    """Waits until the side effects of all running programs have happened."""
    backends.get().barrier()


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that are alive, of all platforms or of one. Raises RuntimeError for an unknown platform."""
    import gc

    if platform is not None:
        backends.get(platform)
    return [x for x in gc.get_objects() if type(x) is Array and x.buffer is not None]


def print_environment_info(return_string: bool = False) -> str | None:
    """Versions and devices, for bug reports."""
    import platform

    from . import __version__, version

    text = "\n".join([
        f"styrax: {__version__}",
        f"jax:    {version.JAX}",
        f"jaxlib: {version.JAX}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {devices()[0].device_kind}-{device_count()}, {local_device_count()} local devices",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ])
    if return_string:
        return text
    print(text)
    return None
