"""Devices in grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..core.arrays import backends

Handler: TypeAlias = Callable[..., np.ndarray | None]

device_kind_handler_dict: dict[str, Handler] = {}
"""Kind of device -> `handler(mesh_shape, devices, **options)`, which may arrange devices by their wires."""


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False) -> np.ndarray:
    """The devices in a grid of the given shape.

    Raises:
      ValueError: the number of devices is not that of the grid's places.
    """
    found = list(backends.all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    handler = device_kind_handler_dict.get(getattr(found[-1], "device_kind", "")) if found else None
    if handler is not None:
        arranged = handler(mesh_shape, found, contiguous_submeshes=contiguous_submeshes)
        if arranged is not None:
            return arranged
    grid = np.empty(len(found), object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int],
                              devices: Sequence[Any] | None = None, *, process_is_granule: bool = False,
                              should_sort_granules_by_key: bool = True,
                              allow_split_physical_axes: bool = False) -> np.ndarray:
    """The devices of several groups in a grid: each axis of size `dcn_mesh_shape[i] * mesh_shape[i]`.

    Raises ValueError unless processes are the groups, where devices do not tell their own (`slice_index`).
    """
    if not process_is_granule:
        for device in backends.all_devices() if devices is None else devices:
            if not hasattr(device, "slice_index"):
                raise ValueError(f"Device {device} does not have attribute slice_index. See `process_is_granule` "
                                 "option.")
    return create_device_mesh([a * b for a, b in zip(mesh_shape, dcn_mesh_shape, strict=True)], devices,
                              allow_split_physical_axes=allow_split_physical_axes)
