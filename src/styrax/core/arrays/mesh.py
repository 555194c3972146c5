"""Meshes: devices in a grid whose axes have names, and the mesh that is in force."""

from __future__ import annotations

import enum
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any, NoReturn, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from ..settings import config
from ..settings.flags import UNSET, State
from ..tracing.source import api_boundary
from ..tracing.trace import state as tracing
from ..types import avals
from ..types.typing import AxisName
from . import host_devices
from .devices import Device

P = ParamSpec("P")
R = TypeVar("R")


class AxisType(enum.Enum):
    """Who decides how arrays are laid out along a mesh axis: the compiler, the types of arrays, or the program."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _names(axis_names: Any) -> tuple:
    return (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)


def _types(axis_types: Any, axis_names: tuple, mesh: str) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(axis_names)
    if not isinstance(axis_types, tuple):
        axis_types = (axis_types,)
    if not all(isinstance(t, AxisType) for t in axis_types):
        raise TypeError(f"axis_types passed to {mesh} must be of type `jax.sharding.AxisType`. Got {axis_types} of "
                        f"type {tuple(map(type, axis_types))}")
    if len(axis_types) != len(axis_names):
        raise ValueError(f"Number of axis names should match the number of axis_types. Got {axis_names=} and "
                         f"{axis_types=}")
    return axis_types


class _Grid:
    """What meshes of devices and abstract ones have in common."""

    axis_names: tuple
    axis_types: tuple[AxisType, ...]

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        raise TypeError(f"{type(self).__name__} has no sizes")

    @property
    def shape(self) -> OrderedDict:
        """Axis name -> size."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        return 0 if self.empty else math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple:
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple:
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple:
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        return bool(self.axis_types) and all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        return bool(self.axis_types) and all(t is AxisType.Manual for t in self.axis_types)

    def _text(self) -> str:
        axes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple)
        return f"{axes}, axis_types={self.axis_types}"


class AbstractDevice:
    """A kind of device."""

    __slots__ = ("device_kind", "num_cores", "platform")

    def __init__(self, device_kind: str, num_cores: int | None, platform: str):
        self.device_kind = device_kind
        self.num_cores = num_cores
        self.platform = platform

    def _key(self) -> tuple:
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


def _of_devices(name: str) -> property:
    """What only a mesh of devices has."""
    def ask(self: AbstractMesh) -> NoReturn:
        raise ValueError(f"AbstractMesh does not implement {name}")

    return property(ask)


class AbstractMesh(_Grid):
    """A mesh without its devices: names, sizes and types of its axes."""

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[Any],
                 axis_types: AxisType | tuple[AxisType, ...] | None = None, *,
                 abstract_device: AbstractDevice | None = None):
        self.axis_names = _names(axis_names)
        self._sizes = tuple(axis_sizes)
        if len(self._sizes) != len(self.axis_names):
            raise ValueError(f"the number of axis sizes and names must be equal, got {axis_sizes} and {axis_names}")
        self.axis_types = _types(axis_types, self.axis_names, "AbstractMesh")
        self.abstract_device = abstract_device

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self._sizes

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None,
               **kwargs: Any) -> AbstractMesh:
        """The mesh with some of its parts replaced."""
        return AbstractMesh(self._sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types,
                            abstract_device=kwargs.get("abstract_device", self.abstract_device))

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """The mesh with other types of some axes."""
        return self.update(axis_types=tuple(name_to_type.get(n, t)
                                            for n, t in zip(self.axis_names, self.axis_types, strict=True)))

    devices = _of_devices("devices")
    device_ids = _of_devices("device_ids")
    local_mesh = _of_devices("local_mesh")
    local_devices = _of_devices("local_devices")
    is_multi_process = _of_devices("is_multi_process")

    def __enter__(self) -> NoReturn:
        raise ValueError("AbstractMesh does not implement __enter__")

    def __exit__(self, *_: Any) -> None:
        return None

    def _key(self) -> tuple:
        return self._sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.empty:
            return "AbstractMesh((), axis_types=())"
        device = "" if self.abstract_device is None else f", {self.abstract_device!r}"
        return f"AbstractMesh({self._text()}{device})"


class Mesh(_Grid):
    """Devices in a grid whose axes have names.

    Args:
      devices: an array of devices, one dimension for each axis.
      axis_names: their names.
      axis_types: their types; all `AxisType.Auto` by default.

    As a context manager, and with `set_mesh`, it is the mesh in force inside.

    Raises:
      ValueError: the dimensions and the names do not fit.
    """

    devices: np.ndarray

    @api_boundary
    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        self = object.__new__(cls)
        devices = np.array(devices)
        devices.flags.writeable = False
        self.__dict__.update(devices=devices, axis_names=_names(axis_names))
        if None in self.axis_names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {self.axis_names}")
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {self.devices.ndim} and len(axis_names) == "
                f"{len(self.axis_names)}.")
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"the axes of a mesh must have different names, got {self.axis_names}")
        self.__dict__.update(axis_types=_types(axis_types, self.axis_names, "Mesh"))
        return _meshes.setdefault(self._key(), self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"cannot assign to field {name!r}")

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def empty(self) -> bool:
        return self.devices.size == 0 or not self.axis_names and self.devices.flat[0] is None

    @property
    def _flat_devices_tuple(self) -> tuple[Any, ...]:  # as libraries that place arrays ask for it
        return tuple(self.devices.flat)

    @property
    def device_ids(self) -> np.ndarray:
        return np.array([d.id for d in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self.devices.flat}) > 1

    @property
    def local_mesh(self) -> Mesh:
        """The part of it that this process has. ValueError where that is no grid."""
        if host_devices.cohort is None:
            return self
        places = np.argwhere(self._is_local())
        block = self.devices[tuple(map(slice, places.min(0), places.max(0) + 1))]
        if block.size != len(places):
            raise ValueError("When passing host local inputs to pjit, devices connected to a single host must form a "
                             "contiguous subcube of the global device mesh")
        return Mesh(block, self.axis_names, self.axis_types)

    def _is_local(self) -> np.ndarray:
        own = set(host_devices.addressable(tuple(self.devices.flat)))
        return np.array([d in own for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        return list(self.devices[self._is_local()])

    @cached_property
    def abstract_mesh(self) -> AbstractMesh:
        device = None
        if self.devices.size and not self.empty:
            first = self.devices.flat[0]
            device = AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.devices.shape, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with some of its parts replaced."""
        return Mesh(self.devices if devices is None else devices, self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    def _key(self) -> tuple:
        return tuple(self.devices.flat), self.devices.shape, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, fun: Callable[P, R]) -> Callable[P, R]:
        """As a decorator: the function with the mesh in force."""
        @wraps(fun)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return fun(*args, **kwargs)

        return inside

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._text()})"

    def __enter__(self) -> Mesh:
        from ..tracing.source import warn

        warn("`with mesh:` context manager has been deprecated. Please use `with jax.set_mesh(mesh):` instead.",
             DeprecationWarning)
        state.entered.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        state.entered.pop()


_meshes: WeakValueDictionary[tuple[Any, ...], Mesh] = WeakValueDictionary()  # equal ones are one object
empty_mesh = Mesh(np.empty((), object), ())
empty_abstract_mesh = AbstractMesh((), ())


class _State(threading.local):
    """The mesh in force on a thread."""

    def __init__(self) -> None:
        self.concrete: Mesh = empty_mesh
        self.abstract: AbstractMesh = empty_abstract_mesh
        self.entered: list[Mesh] = []  # with `with mesh:`


state = _State()


class ResourceEnv:
    """The mesh in force by `with mesh:`; the empty one where there is none."""

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh."""
        return state.entered[-1] if state.entered else empty_mesh

    @property
    def resource_axes(self) -> set[AxisName]:
        """The names of its axes."""
        return set(self.physical_mesh.axis_names)

    @property
    def shape(self) -> dict[AxisName, int]:
        """The sizes of its axes."""
        return dict(self.physical_mesh.shape)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"ResourceEnv(mesh=Mesh({sizes}))"


class ThreadResources:
    """What is in force on a thread: `env`."""

    def __init__(self) -> None:
        self.env = ResourceEnv()


thread_resources = ThreadResources()
# What programs are kept under besides their arguments: the mesh in force where types depend on it.
_in_force = State("mesh", None, traced=True)


def _put_in_force(concrete: Mesh, abstract: AbstractMesh) -> None:
    matters = bool(abstract.explicit_axes)
    if matters or state.abstract.explicit_axes:
        _in_force.swap_local(abstract if matters else UNSET)
        avals.explicit = True
    state.concrete, state.abstract = concrete, abstract


class set_mesh:
    """Puts a mesh in force: at once, and as a context manager until its end."""

    __slots__ = ("before",)

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if not tracing.trace.is_eval:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        self.before = state.concrete, state.abstract
        if mesh is None:
            _put_in_force(empty_mesh, empty_abstract_mesh)
        else:
            _put_in_force(mesh, mesh.abstract_mesh)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        _put_in_force(*self.before)


class use_abstract_mesh:
    """Context manager: inside, an abstract mesh is in force."""

    __slots__ = ("before", "mesh")

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type {type(mesh)}")
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self.before = state.abstract
        _put_in_force(state.concrete, self.mesh)
        return self.mesh

    def __exit__(self, *_: Any) -> None:
        _put_in_force(state.concrete, self.before)


def told_by_types(names: Iterable[AxisName], sizes: Mapping[Any, int] | None = None) -> tuple[Any, ...]:
    """The axes that types tell of, of some: all, or those with several devices (`remove_size_one_mesh_axis_from_type`).

    Args:
      sizes: of the axes, by default those of the mesh in force.
    """
    if not config.remove_size_one_mesh_axis_from_type.value:
        return tuple(names)
    sizes = state.abstract.shape if sizes is None else sizes
    return tuple(n for n in names if sizes.get(n) != 1)


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` has put in force, an empty one if none."""
    return state.concrete


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force without its devices, an empty one if none."""
    return state.abstract


def current_mesh() -> Mesh:
    """The mesh in force, also one entered with `with mesh:`."""
    if not state.concrete.empty:
        return state.concrete
    return state.entered[-1] if state.entered else empty_mesh


def in_force() -> Mesh | AbstractMesh:
    """The mesh in force, the abstract one where it is another than the one with devices, or there is none."""
    mesh, abstract = current_mesh(), state.abstract
    return mesh if abstract.empty or mesh.abstract_mesh == abstract else abstract


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[AxisName],
              axis_types: tuple[AxisType, ...] | AxisType | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of the given shape over the devices there are.

    Args:
      axis_shapes: the sizes of its axes.
      axis_names: their names.
      axis_types: their types, all `AxisType.Explicit` by default.
      devices: the devices to take; by default those of the default platform.

    Raises:
      ValueError: sizes that are no numbers, or there are too few devices. IndexError: a size is 0.
    """
    if devices is None:
        from . import backends

        devices = backends.all_devices()
    if not all(isinstance(n, (int, float, np.integer)) for n in axis_shapes):
        raise ValueError(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {axis_shapes}")
    count = math.prod(axis_shapes)
    if count > len(devices):
        raise ValueError(f"Number of devices {len(devices)} must be >= the product of mesh_shape {tuple(axis_shapes)}")
    if not count:
        raise IndexError(f"a mesh of shape {tuple(axis_shapes)} has no devices")
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(_names(axis_names))
    grid = np.empty(count, object)
    grid[:] = list(devices)[:count]
    return Mesh(grid.reshape(tuple(axis_shapes)), axis_names, axis_types)
