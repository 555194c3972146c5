"""Functions and objects that live on the hosts of devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.arrays import backends
from ...core.arrays.devices import Device
from ...core.arrays.mesh import Mesh
from ...core.trees import tree
from ...core.types.typing import Function, Object, PyTree
from ...transforms.callbacks import io_callback


def colocated_cpu_devices(devices_or_mesh: Sequence[Device] | Mesh) -> Sequence[Device] | Mesh:
    """The CPU devices on the hosts of devices, in their order; of a mesh, a mesh of them."""
    cpus = backends.get("cpu").devices()
    if isinstance(devices_or_mesh, Mesh):
        grid = np.empty(devices_or_mesh.devices.size, object)
        grid[:] = [cpus[d.id % len(cpus)] for d in devices_or_mesh.devices.flat]
        return Mesh(grid.reshape(devices_or_mesh.devices.shape), devices_or_mesh.axis_names,
                    axis_types=devices_or_mesh.axis_types)
    return [cpus[d.id % len(cpus)] for d in devices_or_mesh]


class ColocatedFunction:
    """A Python function of arrays, run on the host as it is written: it may do anything that Python can."""

    def __init__(self, fun: Function, out_specs_fn: Callable[..., Any] | None = None,
                 devices: Sequence[Device] | None = None):
        functools.update_wrapper(self, fun)
        self._fun, self._out_specs_fn, self._devices = fun, out_specs_fn, devices

    def specialize(self, in_specs: PyTree = None, out_specs_fn: Function | None = None,
                   devices: Sequence[Device] | None = None) -> ColocatedFunction:
        """The function with more known: `out_specs_fn(*in_specs)` gives its results' shapes and dtypes, which programs
        that are traced need.
        """
        return ColocatedFunction(self._fun, out_specs_fn or self._out_specs_fn, devices or self._devices)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._out_specs_fn is not None:
            return io_callback(self._fun, self._out_specs_fn(*args, **kwargs), *args, **kwargs)
        return tree.tree_map(jnp.asarray, self._fun(*args, **kwargs))


def colocated_python(fun: Function) -> ColocatedFunction:
    """A function that runs on the host, with arrays for arguments and results."""
    return ColocatedFunction(fun)


def colocated_python_class(cls: type[object]) -> type[object]:
    """A class whose objects live on the host, and whose methods run there."""

    def methods(of: type) -> dict[str, Object]:
        return {name: _method(value) for name, value in vars(of).items() if callable(value) and name[:1] != "_"}

    return type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__, **methods(cls)})


def _method(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return tree.tree_map(jnp.asarray, fun(self, *args, **kwargs))

    return call


__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
