"""Where results are: on the devices of the committed arguments, spread as sharding propagation finds.

Used where the host's processors are several devices (`backends.several`). Their memory is one, so a program runs as it
does on one device; what differs is what its results tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import backends, mesh, moving
from ..arrays.array import Array
from ..arrays.devices import Device, ManyDevices, Sharding, SingleDeviceSharding
from ..arrays.explicit import on_devices, sharding_of_type
from ..arrays.gspmd_sharding import GSPMDSharding
from ..arrays.mesh import AbstractMesh, Mesh, empty_mesh
from ..arrays.refined_meshes import refined, told_by, told_in
from ..arrays.shardings import NamedSharding, PartitionSpec, as_named, axes_of
from ..settings import config
from ..types import avals
from . import mixed_meshes
from .dead_code import dce_jaxpr
from .jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from .propagation import Propagated, of_equation, propagate, told_sharding
from .spreading import check_not_captured

Where = Sharding | Device | None  # of a result: a sharding that it is committed to, a device, or the first device


def sharding_of(x: Any) -> Sharding | None:
    """The sharding that an argument is committed to."""
    return x.sharding if isinstance(x, Array) and x.committed and x.buffer is not None else None


def put(outs: Sequence[Any], where: Sequence[Where]) -> None:
    """Has the new arrays `outs` be there."""
    for x, place in zip(outs, where, strict=True):
        if not isinstance(x, Array):
            continue
        if place is None:
            x.committed = False
            continue
        if isinstance(place, Device):
            x.buffer = x.buffer.on(place)
            continue
        x.buffer = x.buffer.on(place._device_assignment[0])
        x.committed = True
        if not isinstance(place, SingleDeviceSharding):
            x._sharding = place


def beside(outs: Sequence[Any], args: Sequence[Any]) -> None:
    """Has new arrays that the host made of `args` be where these are: on their device, or whole on all of a mesh."""
    if not backends.several:
        return
    told = next((s for s in map(sharding_of, args) if s is not None and _devices(s)[0].client.shared_memory), None)
    if told is not None:
        put(outs, [NamedSharding(told.mesh, PartitionSpec()) if isinstance(told, NamedSharding) else told] * len(outs))


def _apart(x: Any) -> Any:
    """An array in place of one on a single device, whose memory a donating program leaves alone."""
    return x if x.committed or x.buffer is None else type(x)(x.aval, x.buffer, x.committed)


class Following:
    """Code whose results are where its arguments are, or where `out_shardings` say.

    Args:
      code: a function of arrays, which gives new arrays.
      closed: what it was compiled from.
      in_shardings, out_shardings: what was said of arguments and results; what is no sharding says nothing.
      donates: whether it takes the memory of arguments.
    """

    __slots__ = ("closed", "code", "in_shardings", "known", "moved", "name", "out_shardings", "needed", "asked")

    def __init__(self, code: Callable[..., list[Any]], closed: ClosedJaxpr, name: str,
                 in_shardings: Sequence[Any] = (), out_shardings: Sequence[Any] = (), donates: bool = False):
        self.code = code
        self.closed = closed
        self.name = name
        self.asked: list[tuple[Callable[[Any], None], Sharding]] = []  # callbacks, and what they are to be told
        self.needed: tuple[ClosedJaxpr, list[int]] | None = None
        self.in_shardings = in_shardings or (None,) * len(closed.in_avals)
        self.out_shardings = out_shardings or (None,) * len(closed.out_avals)
        # Arguments of donating code that are cut into parts first: what is given away are the parts.
        self.moved = [i for i, s in enumerate(in_shardings)
                      if donates and isinstance(s, Sharding) and not s.is_fully_replicated]
        self.known: dict[Any, tuple[list[Where] | None, Mesh]] = {}  # with the mesh that was in force

    def __call__(self, *args: Any) -> list[Any]:
        around = mesh.state.concrete
        key = (*map(sharding_of, args), config.config.jax_default_device, id(around))
        try:
            where, _ = self.known[key]
        except KeyError:
            where = self.where(key[:-2])
            for callback, sharding in self.asked:
                callback(sharding)
            self.known[key] = where, around
        if self.moved:
            args = tuple(_apart(x) if i in self.moved else x for i, x in enumerate(args))
        outs = self.code(*args)
        if where is not None:
            put(outs, where)
        if avals.explicit:
            for x, said in zip(outs, self.out_shardings, strict=True):
                if isinstance(said, NamedSharding) and isinstance(x, Array):
                    x.aval = x.aval.update(sharding=sharding_of_type(said, x.aval.shape))
        return outs

    def arguments(self, given: Sequence[Sharding | None], default: Sharding, unused: bool) -> list[Sharding | None]:
        """Where arguments are expected that are committed so.

        Args:
          default: where a program runs of which nothing is said.
          unused: whether arguments are passed that no equation uses; for these None stands otherwise.
        """
        found = self._found(given)
        said = [s if isinstance(s, Sharding) else None for s in self.out_shardings]
        named, single = self._home(found, said, given)
        read = self._read()
        chosen: Sequence[Any] = [single or default] * len(found)
        if named is not None and named.mesh.size > 1:
            meshes, fine, propagated = self._propagated(named, found, said)
            chosen = [_first_named(meshes, fine, a, e)
                      for a, e in zip(self.closed.in_avals, propagated.arguments, strict=True)]
            if not any(isinstance(s, NamedSharding) for s in found):  # then no argument tells of a mesh
                chosen = [GSPMDSharding(s._device_assignment, s._to_xla_hlo_sharding(len(getattr(a, "shape", ()))))
                          for s, a in zip(chosen, self.closed.in_avals, strict=True)]
        elif named is not None:
            chosen = [SingleDeviceSharding(named._device_assignment[0])] * len(found)
        return [s or c if unused or i in read else None for i, (s, c) in enumerate(zip(found, chosen, strict=True))]

    def _needed(self) -> tuple[ClosedJaxpr, list[int]]:
        """What is needed of the program, and the numbers of the arguments that it reads."""
        if self.needed is None:
            jaxpr, used = dce_jaxpr(self.closed.jaxpr, [True] * len(self.closed.jaxpr.outvars))
            self.needed = ClosedJaxpr(jaxpr, self.closed.consts), [i for i, u in enumerate(used) if u]
        return self.needed

    def _read(self) -> list[int]:
        return self._needed()[1]

    def _found(self, given: Sequence[Sharding | None]) -> list[Sharding | None]:
        """Where arguments are; None for those of which nothing is said or which are not used."""
        found: list[Sharding | None] = []
        for said, own in zip(self._on_devices(self.in_shardings, given), given, strict=True):
            at = said if isinstance(said, Sharding) else own
            found.append(as_named(at) if isinstance(at, GSPMDSharding) else at)
        read = self._read()
        found = [s if i in read or isinstance(said, Sharding) else None
                 for i, (s, said) in enumerate(zip(found, self.in_shardings, strict=True))]
        self._check(found, given)
        return found

    def _on_devices(self, said: Sequence[Any], given: Sequence[Sharding | None]) -> Sequence[Any]:
        """What is said of arguments or results, over the devices of what is given or said of others where it is said
        over a mesh without devices. ValueError where there are none."""
        if not any(isinstance(s, NamedSharding) and not _names_devices(s) for s in said):
            return said
        known = next((s for s in (*given, *self.in_shardings, *self.out_shardings) if isinstance(s, Sharding)
                      and _names_devices(s)), None)
        around = mesh.state.concrete
        devices = tuple(around.devices.flat) if not around.empty else () if known is None else _devices(known)
        if not devices:
            raise ValueError("Passing lowering_platforms via jax.export or jit(f).trace(*args).lower(lowering_platforms"
                             "=...) is required when only AbstractMesh exists in a jitted computation. Got context "
                             f"mesh: {around}")
        return [_over(s, devices) if isinstance(s, NamedSharding) and not _names_devices(s) else s for s in said]

    def check(self, given: Sequence[Sharding | None]) -> None:
        """Raises ValueError for arguments that are committed so where they do not fit each other or what is said."""
        found = self._found(given)
        self._home(found, [s if isinstance(s, Sharding) else None for s in self.out_shardings], given)

    def where(self, given: Sequence[Sharding | None]) -> list[Where] | None:
        """Where the results are for arguments that are committed so; None where nothing is to be done."""
        found = self._found(given)
        if mixed_meshes.told():
            mixed_meshes.check_program(self.closed, [mixed_meshes.mesh_of(s) for s in found],
                                       [mixed_meshes.mesh_of(sharding_of(c)) for c in self.closed.consts])
        said = [s if isinstance(s, Sharding) else None for s in self._on_devices(self.out_shardings, given)]
        named, single = self._home(found, said, given)
        if named is None:
            self.asked = [(eqn.params["callback"], _alone(single)) for eqn in _asking(self._needed()[0].jaxpr)]
            if single is not None:
                return [s or single for s in said]
            return _by_default(len(said)) or ([None] * len(said) if any(given) else None)
        meshes, fine, propagated = self._propagated(named, found, said)
        self.asked = [(eqn.params["callback"], _first_named(meshes, fine, eqn.invars[0].aval, e))
                      for eqn, e in propagated.asked]
        first = next(iter(self._read()), None)
        like = found[first] if first is not None and given[first] not in (None, self.in_shardings[first]) else None
        ndim = None if first is None else len(getattr(self.closed.in_avals[first], "shape", ()))
        return [s or _written_like(_first_named(meshes, fine, aval, e), aval, like, ndim)
                for s, aval, e in zip(said, self.closed.out_avals, propagated.results, strict=True)]

    def _propagated(self, named: NamedSharding, found: Sequence[Sharding | None], said: Sequence[Sharding | None]
                    ) -> tuple[list[Mesh], AbstractMesh, Propagated]:
        """What propagation finds, over a mesh in which those that the program names are told."""
        needed, read = self._needed()
        meshes, fine = _in_one(named, [*found, *said, *_inside(needed.jaxpr)])
        given = _told(found, self.closed.in_avals, fine)
        propagated = propagate(needed, fine, [given[i] for i in read], _told(said, self.closed.out_avals, fine))
        arguments: list[Any] = [()] * len(found)
        for i, e in zip(read, propagated.arguments, strict=True):
            arguments[i] = e
        return meshes, fine, Propagated(arguments, propagated.results, propagated.asked)

    def _home(self, found: Sequence[Sharding | None], said: Sequence[Sharding | None],
              given: Sequence[Sharding | None]) -> tuple[NamedSharding | None, Sharding | None]:
        """A sharding over the mesh that the program runs on, and the first one that is said of anything."""
        inside = list(_inside(self._needed()[0].jaxpr))
        inner = next(filter(_names_devices, inside), inside[0] if inside else None)
        first = next((i for i, s in enumerate(found) if s is not None), None)
        if first is not None and _names_devices(inner) and _devices(found[first]) != _devices(inner):
            raise ValueError("Received incompatible devices for jitted computation. Got "
                             f"{self._argument(first, found[first])} and sharding_constraint inside jit with "
                             f"device ids {_ids(inner)} on platform {_platform(inner)}")
        wanted = next((s for s in said if s is not None), None)
        if first is None and wanted is not None and _names_devices(inner) and _devices(wanted) != _devices(inner):
            raise ValueError("Received incompatible devices for jitted computation. Got explicit output sharding with "
                             f"device ids {_ids(wanted)} on platform {_platform(wanted)} and sharding_constraint "
                             f"inside jit with device ids {_ids(inner)} on platform {_platform(inner)}")
        if first is not None and wanted is not None and _devices(found[first]) != _devices(wanted):
            raise ValueError("Received incompatible devices for jitted computation. Got "
                             f"{self._argument(first, found[first])} and explicit output sharding with device ids "
                             f"{_ids(wanted)} on platform {_platform(wanted)}")
        named = next((s for s in (*found, *said, inner) if isinstance(s, NamedSharding)), None)
        if named is not None and named is inner and not _names_devices(inner):  # then what is not needed may tell
            named = inner = next((s for s in given if isinstance(s, NamedSharding) and _names_devices(s)), inner)
        if named is not None and named is inner and not _names_devices(inner) and mesh.state.concrete.empty and (
                not inner.mesh.explicit_axes):
            named = inner = None  # the compiler chooses where there is one device
        if named is not None and named is inner and inner.mesh.size > 1 and not isinstance(inner.mesh, Mesh) and (
                mesh.state.concrete.empty):
            raise ValueError(f"Length of device assignment 1 is not equal to the size of the mesh {inner.mesh.size}. "
                             "Please enter your `jit` into a mesh context via `jax.set_mesh`.")
        if named is not None and not isinstance(named.mesh, Mesh):
            named = on_devices(named, backends.get().devices()[0])
        single = next((s for s in (*found, *said, inner) if s is not None), None)
        if named is None:
            named = _around(single, lambda: self._argument(found.index(single), single))
        return named, single

    def _check(self, found: Sequence[Sharding | None], given: Sequence[Sharding | None]) -> None:
        """Raises ValueError for arguments on different devices."""
        first: int | None = None
        read = self._read()
        for i, s in enumerate(found):
            if s is None:
                continue
            if s is not given[i] and given[i] is not None and not spread_alike(
                    s, given[i], len(getattr(self.closed.in_avals[i], "shape", ()))):
                raise ValueError("Sharding passed to jit does not match the sharding on the respective arg. Got jit "
                                 f"sharding: {s},\narg sharding: {given[i]} for arg type: "
                                 f"{self.closed.in_avals[i].str_short()}")
            if i not in read:
                continue
            if first is None:
                first = i
            elif _devices(s) != _devices(found[first]):
                raise ValueError("Received incompatible devices for jitted computation. Got "
                                 f"{self._argument(first, found[first])} and {self._argument(i, s)}")

    def _argument(self, i: int, sharding: Any) -> str:
        names = self.closed.jaxpr.debug_info.arg_names
        called = names[i] if i < len(names) else "xyzuvwabcdefghijklmnopqrst"[i % 26]
        return (f"argument {called} of {self.name} with shape {self.closed.in_avals[i].str_short()} and with "
                f"device ids {_ids(sharding)} on platform {_platform(sharding)}")


def _inside(jaxpr: Jaxpr) -> Iterator[Sharding]:
    """The shardings over meshes and devices that a program tells results of."""
    for eqn in jaxpr.eqns:
        told = told_sharding(eqn.params)
        if told is not None and told.mesh.axis_names and not told.mesh.manual_axes:
            yield told
        elif isinstance(eqn.params.get("sharding"), SingleDeviceSharding):
            yield eqn.params["sharding"]
        for inner in jaxprs_in_params(eqn.params):
            yield from _inside(inner)


def _asking(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a program that ask how values are spread."""
    if not jaxpr.effects:
        return
    for eqn in jaxpr.eqns:
        if eqn.primitive.asks_sharding:
            yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _asking(inner)


def _alone(single: Sharding | None) -> Sharding:
    """Where values are of a program on one device."""
    devices = backends.get().devices()[:1] if single is None else single._device_assignment
    return GSPMDSharding.get_replicated(devices)


def _names_devices(sharding: Sharding | None) -> bool:
    return sharding is not None and isinstance(getattr(sharding, "mesh", empty_mesh), Mesh)


def _over(sharding: NamedSharding, devices: Sequence[Device]) -> NamedSharding:
    """A sharding over a mesh of devices in place of one without. ValueError where these are not as many."""
    grid = sharding.mesh
    if grid.size != len(devices):
        raise ValueError(f"Length of device assignment {len(devices)} is not equal to the size of the mesh {grid.size}")
    found = np.empty(len(devices), object)
    found[:] = devices
    return sharding.update(mesh=Mesh(found.reshape(grid.axis_sizes), grid.axis_names, grid.axis_types))


def read_arguments(closed: ClosedJaxpr) -> list[int]:
    """The numbers of the arguments that a program needs."""
    _, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return [i for i, u in enumerate(used) if u]


def home(closed: ClosedJaxpr, said: tuple[Sequence[Any], Sequence[Any]]) -> Device | ManyDevices | None:
    """Where a program runs by the devices that it names, or that are said of its arguments and results; None where the
    default device will do."""
    for told in (*said[0], *said[1], *_inside(closed.jaxpr)):
        if isinstance(told, NamedSharding) and isinstance(told.mesh, Mesh) and not told.mesh.empty:
            return moving.home(told._device_assignment)
    return None


def _by_default(count: int) -> list[Where] | None:
    """Of what depends on nothing that is committed: the default device, which does not commit them."""
    device = config.config.jax_default_device
    return [device] * count if isinstance(device, Device) else None


def of_primitive(primitive: Any, args: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> None:
    """The same for the results of one operation that ran at once."""
    if avals.explicit and mesh.state.abstract.manual_axes:
        for x in args:
            check_not_captured(getattr(x, "aval", None))
    found = [sharding_of(x) for x in args]
    first = next((i for i, s in enumerate(found) if s is not None), None)
    if first is None and mesh.state.concrete.empty:
        where = _by_default(len(outs))
        if where is not None:
            put(outs, where)
        return

    def argument(k: int) -> str:
        return (f"argument {'xyzuvw'[k % 6]} of {primitive.name} with shape {args[k].aval.str_short()} and with device "
                f"ids {_ids(found[k])} on platform {_platform(found[k])}")

    for i, s in enumerate(found):
        if s is not None and first is not None and _devices(s) != _devices(found[first]):
            raise ValueError("Received incompatible devices for jitted computation. Got "
                             f"{argument(first)} and {argument(i)}")
    if mixed_meshes.told():
        mixed_meshes.check_operands(primitive.name, [mixed_meshes.mesh_of(s) for s in found], [x.aval for x in args],
                                    at_once=True)
    named = next((s for s in found if isinstance(s, NamedSharding)), None)
    if named is None:
        named = _around(None if first is None else found[first], lambda: argument(first or 0))
    if named is None:
        assert first is not None
        put(outs, [found[first]] * len(outs))
        return
    types = [x.aval for x in args]
    meshes, fine = _in_one(named, found)
    results = of_equation(primitive, types, _told(found, types, fine), [x.aval for x in outs], params, fine)
    like, ndim = (found[0], args[0].ndim) if args else (None, 0)
    put(outs, [_written_like(_first_named(meshes, fine, x.aval, e), x.aval, like, ndim)
               for x, e in zip(outs, results, strict=True)])


def _around(single: Sharding | None, argument: Callable[[], str]) -> NamedSharding | None:
    """The mesh in force, for what is on no other. ValueError for an argument that is committed to a device."""
    around = mesh.state.concrete
    if around.empty:
        return None
    if single is not None and _devices(single) != tuple(around.devices.flat):
        raise ValueError(f"Received incompatible devices for jitted computation. Got {argument()} and jit's context "
                         f"mesh with device ids {[d.id for d in around.devices.flat]}")
    return NamedSharding(around, PartitionSpec())


def _in_one(named: NamedSharding, every: Sequence[Sharding | None]) -> tuple[list[Mesh], AbstractMesh]:
    """The meshes over the devices of `named` that shardings name, each once; and a mesh of which all are made."""
    meshes = list(dict.fromkeys(s.mesh for s in (named, *every) if isinstance(s, NamedSharding) and isinstance(
        s.mesh, Mesh) and s._device_assignment == named._device_assignment))
    fine = refined(meshes) if len(meshes) > 1 else None
    return (meshes[:1], meshes[0].abstract_mesh) if fine is None else (meshes, fine)


def _told(shardings: Sequence[Sharding | None], types: Sequence[Any], fine: AbstractMesh
          ) -> list[tuple[Any, ...] | None]:
    """How arrays are spread, in the axes of a mesh; None where nothing is said."""
    return [None if s is None else told_in(_entries(s, a), getattr(s, "mesh", fine), fine)
            for s, a in zip(shardings, types, strict=True)]


def _entries(sharding: Sharding | None, aval: Any) -> tuple[Any, ...]:
    ndim = len(getattr(aval, "shape", ()))
    spec = sharding.spec.partitions if isinstance(sharding, NamedSharding) else ()
    return (*spec, *(None,) * (ndim - len(spec)))[:ndim]


def _named(grid: Mesh, aval: Any, entries: tuple[Any, ...]) -> NamedSharding:
    told = getattr(aval, "given_sharding", None)
    if told is not None:
        if told.spec.unreduced or told.spec.reduced:  # which explicit axes alone can tell
            grid = Mesh(grid.devices, grid.axis_names, told.mesh.axis_types)
        if any(entries) and told.mesh.auto_axes and told.mesh == grid.abstract_mesh:
            return NamedSharding(grid, _with_automatic(told, entries))
        return NamedSharding(grid, told.spec)
    if grid.explicit_axes:
        entries = entries or (None,) * len(getattr(aval, "shape", ()))
    while entries and entries[-1] is None and not grid.explicit_axes:
        entries = entries[:-1]
    return NamedSharding(grid, PartitionSpec(*entries))


def _written_like(found: NamedSharding, aval: Any, first: Sharding | None, ndim: int | None) -> NamedSharding:
    """The first argument's sharding as it was written, where a result of its rank is spread as that is: propagation
    tells nothing of axes with one device. Types over explicit axes tell all."""
    if (isinstance(first, NamedSharding) and first.mesh == found.mesh and not found.mesh.explicit_axes
            and len(getattr(aval, "shape", ())) == ndim and _parted(first) == _parted(found)):
        return first
    return found


def _parted(sharding: NamedSharding) -> list[tuple[Any, ...]]:
    """The axes with several devices by dimension, up to the last that has one."""
    sizes = sharding.mesh.shape
    entries = [tuple(n for n in axes_of(e) if sizes[n] > 1) for e in sharding.spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _with_automatic(told: NamedSharding, entries: tuple[Any, ...]) -> PartitionSpec:
    """What a type tells of explicit axes, with what was found of the others."""
    automatic = set(told.mesh.auto_axes)
    return told.spec.update(partitions=tuple(
        (*axes_of(e), *(n for n in axes_of(found) if n in automatic)) or None
        for e, found in zip(told.spec, (*entries, *(None,) * len(told.spec)), strict=False)))


def _first_named(meshes: Sequence[Mesh], fine: AbstractMesh, aval: Any, entries: tuple[Any, ...]) -> NamedSharding:
    """The sharding of a result over the first mesh that can tell it."""
    told = getattr(aval, "given_sharding", None)
    for grid in meshes:
        found = told_by(entries, grid, fine)
        if found is not None and (told is None or told.mesh == grid.abstract_mesh):
            return _named(grid, aval, found)
    grid = meshes[0]
    if told is not None and told.mesh.shape_tuple != grid.shape_tuple and told.mesh.size == grid.size:
        grid = Mesh(grid.devices.reshape(told.mesh.axis_sizes), told.mesh.axis_names, told.mesh.axis_types)
    return _named(grid, aval, ())


def spread_alike(a: Any, b: Any, ndim: int) -> bool:
    """Whether two shardings give devices the same parts, whichever devices these are."""
    if isinstance(a, SingleDeviceSharding) or isinstance(b, SingleDeviceSharding):
        return bool(a.is_fully_replicated and b.is_fully_replicated)
    return bool(a._to_xla_hlo_sharding(ndim) == b._to_xla_hlo_sharding(ndim))


def _devices(sharding: Any) -> tuple[Device, ...]:
    return sharding._device_assignment


def _ids(sharding: Any) -> list[int]:
    return [d.id for d in _devices(sharding)]


def _platform(sharding: Any) -> str:
    return _devices(sharding)[0].platform.upper()


__all__ = ["Following", "beside", "home", "of_primitive", "put", "read_arguments", "sharding_of", "spread_alike"]
