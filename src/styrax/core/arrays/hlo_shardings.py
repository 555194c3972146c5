"""Shardings as XLA writes them: tiles of an array and the number of the device that holds each.

A `NamedSharding` is such a sharding whose numbers follow from the axes of its mesh (`of_axes`); a `GSPMDSharding` says
nothing of axes.
"""

from __future__ import annotations

import enum
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...protocol_buffers import decode, encode, varint
from ..tracing.errors import JaxRuntimeError


class Type(enum.IntEnum):
    """What becomes of an array, or of the devices along a dimension of a grid of tiles."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6


# the fields of the message that are lists of numbers
_LISTS = {3: "tile_assignment_dimensions", 4: "tile_assignment_devices", 8: "last_tile_dims", 9: "iota_reshape_dims",
          10: "iota_transpose_perm"}


class OpSharding:
    """The message in which XLA's programs hold a sharding; its fields are attributes."""

    Type = Type

    def __init__(self) -> None:
        self.type = Type.REPLICATED
        self.replicate_on_last_tile_dim = False
        self.tuple_shardings: Sequence[OpSharding] = []
        self.tile_assignment_dimensions: Sequence[int] = []
        self.tile_assignment_devices: Sequence[int] = []
        self.last_tile_dims: Sequence[Type] = []
        self.iota_reshape_dims: Sequence[int] = []
        self.iota_transpose_perm: Sequence[int] = []

    def clone(self) -> OpSharding:
        """A message of the same contents."""
        out = OpSharding()
        out.ParseFromString(self.SerializeToString())
        return out

    def SerializeToString(self) -> bytes:
        """The message as it is stored."""
        fields: list[tuple[int, Any]] = [(1, int(self.type))] if self.type else []
        fields += [(5, inner.SerializeToString()) for inner in self.tuple_shardings]
        fields += [(6, 1)] if self.replicate_on_last_tile_dim else []
        fields += [(number, b"".join(map(varint, getattr(self, name)))) for number, name in _LISTS.items()
                   if len(getattr(self, name))]
        return encode(sorted(fields, key=lambda field: field[0]))

    def ParseFromString(self, data: bytes) -> None:
        """Takes the contents of a stored message. ValueError for what is none."""
        self.__init__()  # type: ignore[misc]
        for number, value in decode(data):
            if number == 1:
                self.type = Type(int(value))
            elif number == 5:
                inner = OpSharding()
                inner.ParseFromString(bytes(value))  # type: ignore[arg-type]
                self.tuple_shardings = [*self.tuple_shardings, inner]
            elif number == 6:
                self.replicate_on_last_tile_dim = bool(value)
            elif number in _LISTS:
                found = list(_numbers(value)) if isinstance(value, bytes) else [int(value)]
                setattr(self, _LISTS[number], [Type(n) for n in found] if number == 8 else found)

    def __repr__(self) -> str:
        return f"OpSharding({HloSharding.from_proto(self)!r})"


def _numbers(data: bytes) -> Any:
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number, shift = 0, 0


class HloSharding:
    """How an array is cut into tiles, and which device has which; made by its class methods.

    A grid of tiles has a dimension for each of the array's and further ones, whose devices have the same tiles: `types`
    tells what they do with them.
    """

    __slots__ = ("devices", "dims", "elements", "order", "type", "types")

    def __init__(self, type: Type, dims: tuple[int, ...] = (), devices: tuple[int, ...] = (),
                 types: tuple[Type, ...] = (), order: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
                 elements: tuple[HloSharding, ...] = ()):
        self.type = type
        self.dims = dims
        self.devices = devices
        self.types = types
        self.order = order  # the devices as a transposed grid of consecutive numbers: its shape, the permutation
        self.elements = elements

    @staticmethod
    def replicate() -> HloSharding:
        return HloSharding(Type.REPLICATED)

    @staticmethod
    def manual() -> HloSharding:
        return HloSharding(Type.MANUAL)

    @staticmethod
    def unknown() -> HloSharding:
        return HloSharding(Type.UNKNOWN)

    @staticmethod
    def unreduced() -> HloSharding:
        return HloSharding(Type.UNREDUCED)

    @staticmethod
    def tuple_sharding(elements: Sequence[HloSharding]) -> HloSharding:
        """Of several arrays."""
        return HloSharding(Type.TUPLE, elements=tuple(elements))

    @staticmethod
    def iota_tile(dims: Sequence[int], reshape_dims: Sequence[int] = (), transpose_perm: Sequence[int] = (),
                  subgroup_types: Sequence[Type] = ()) -> HloSharding:
        """Tiles on consecutive devices, or on those that a transposed grid of them gives. JaxRuntimeError for sizes
        that do not fit."""
        def show(sizes: Sequence[int]) -> str:
            return f"[{','.join(map(str, sizes))}]"

        if not dims:
            raise JaxRuntimeError("INVALID_ARGUMENT: `dims` should not be empty.")
        if len(reshape_dims) != len(transpose_perm):
            raise JaxRuntimeError("INVALID_ARGUMENT: `reshape_dims` and `transpose_perm` should have the same size, "
                                  f"saw {show(reshape_dims)} v.s. {show(transpose_perm)}")
        if reshape_dims and math.prod(reshape_dims) != math.prod(dims):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: Cannot reshape from `dims` {show(dims)} to `reshape_dims` "
                                  f"{show(reshape_dims)}.")
        if len(subgroup_types) > len(dims):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: `subgroup_types`({len(subgroup_types)}) should not have more "
                                  f"dimensions than `dims`({len(dims)}).")
        shape = tuple(reshape_dims) or (math.prod(dims),)
        order = _merged(shape, tuple(transpose_perm) or (0,))
        return _tiled(tuple(dims), _grid(order), tuple(subgroup_types), order)

    @staticmethod
    def subgroup_with_device_ordering(tile_assignment: np.ndarray, subgroup_types: Sequence[Type] = ()) -> HloSharding:
        """Tiles on the devices of a grid."""
        return _tiled(tile_assignment.shape, tuple(map(int, tile_assignment.flat)), tuple(subgroup_types))

    @staticmethod
    def from_proto(proto: OpSharding) -> HloSharding:
        """That of a message. JaxRuntimeError where it has not a device for each tile."""
        kind, dims = Type(proto.type), tuple(proto.tile_assignment_dimensions)
        if kind is Type.TUPLE:
            return HloSharding.tuple_sharding([HloSharding.from_proto(inner) for inner in proto.tuple_shardings])
        if kind is Type.MAXIMAL:
            return HloSharding(kind, (1,), tuple(proto.tile_assignment_devices))
        if kind is not Type.OTHER:
            return HloSharding(kind)
        types = (Type.REPLICATED,) if proto.replicate_on_last_tile_dim else tuple(map(Type, proto.last_tile_dims))
        if proto.iota_reshape_dims:
            return HloSharding.iota_tile(dims, proto.iota_reshape_dims, proto.iota_transpose_perm, types)
        if math.prod(dims) != len(proto.tile_assignment_devices):
            raise JaxRuntimeError(f"INTERNAL: {math.prod(dims)} tiles are on {len(proto.tile_assignment_devices)} "
                                  "devices")
        return _tiled(dims, tuple(proto.tile_assignment_devices), types)

    def to_proto(self) -> OpSharding:
        """The message."""
        out = OpSharding()
        out.type = self.type
        out.tuple_shardings = [x.to_proto() for x in self.elements]
        if self.type is Type.MAXIMAL:
            out.tile_assignment_devices = list(self.devices)
        if self.type is Type.OTHER:
            out.tile_assignment_dimensions = list(self.dims)
            if self.order is None:
                out.tile_assignment_devices = list(self.devices)
            else:
                out.iota_reshape_dims, out.iota_transpose_perm = map(list, self.order)
            out.replicate_on_last_tile_dim = self.replicate_on_last_tile_dim()
            out.last_tile_dims = self.subgroup_types()
        return out

    def is_replicated(self) -> bool:
        return self.type is Type.REPLICATED

    def is_maximal(self) -> bool:
        """Whether a device has all of an array."""
        return self.type in (Type.MAXIMAL, Type.REPLICATED)

    def is_manual(self) -> bool:
        return self.type is Type.MANUAL

    def is_unknown(self) -> bool:
        return self.type is Type.UNKNOWN

    def is_unreduced(self) -> bool:
        return self.type is Type.UNREDUCED

    def is_tiled(self) -> bool:
        return self.type is Type.OTHER

    def tuple_elements(self) -> list[HloSharding]:
        return list(self.elements)

    def num_devices(self) -> int:
        return len(self.devices)

    def num_dimensions(self) -> int:
        return len(self.tile_assignment_dimensions())

    def tile_assignment_dimensions(self) -> list[int]:
        return list(self.dims) or [0]

    def tile_assignment_devices(self) -> list[int]:
        return list(self.devices)

    def is_tile_assignment_iota(self) -> bool:
        return self.order is not None

    def replicate_on_last_tile_dim(self) -> bool:
        return self.types == (Type.REPLICATED,)

    def subgroup_types(self) -> list[Type]:
        """What the devices along the last dimensions do, where they do not only have the same tiles."""
        return [] if self.replicate_on_last_tile_dim() else list(self.types)

    def get_axis_sizes(self) -> list[int]:
        """The sizes of axes of a mesh of consecutive devices from which such tiles come, if they come from one."""
        if self.order is None:
            return [math.prod(self.dims)]
        shape, permutation = self.order
        cuts = set(itertools.accumulate(self.dims, operator.mul))
        parts: dict[int, list[int]] = {}
        begin = 1
        for d in permutation:
            inside = sorted(c // begin for c in cuts if begin < c < begin * shape[d] and c % begin == 0)
            ends = [*(c for c in inside if shape[d] % c == 0), shape[d]]
            parts[d] = [b // a for a, b in zip([1, *ends], ends, strict=False)]
            begin *= shape[d]
        return [n for d in sorted(parts) for n in parts[d] if n != 1]

    def _key(self) -> tuple[Any, ...]:
        return self.type, self.dims, self.devices, self.types, self.elements

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.type is Type.TUPLE:
            return f"{{{', '.join(map(repr, self.elements))}}}"
        if self.type is Type.MAXIMAL:
            return f"{{maximal device={self.devices[0]}}}"
        if self.type is not Type.OTHER:
            return f"{{{self.type.name.lower()}}}"
        if self.order is None:
            where = ",".join(map(str, self.devices))
        else:
            shape, permutation = self.order
            turned = f"T({','.join(map(str, permutation))})" if len(shape) > 1 else ""
            where = f"<=[{','.join(map(str, shape))}]{turned}"
        types = ", ".join(t.name.lower() for t in self.types)
        last = " last_tile_dim_replicate" if self.replicate_on_last_tile_dim() else (
            f" last_tile_dims={{{types}}}" if types else "")
        return f"{{devices=[{','.join(map(str, self.dims))}]{where}{last}}}"


def _merged(shape: tuple[int, ...], permutation: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same transposed grid with dimensions that stay together as one, and without those of size 1."""
    groups: list[list[int]] = []
    for d in permutation:
        if shape[d] == 1:
            continue
        if groups and all(shape[k] == 1 for k in range(groups[-1][-1] + 1, d)) and d > groups[-1][-1]:
            groups[-1].append(d)
        else:
            groups.append([d])
    if not groups:
        return (1,), (0,)
    ordered = sorted(groups)
    return tuple(math.prod(shape[d] for d in g) for g in ordered), tuple(ordered.index(g) for g in groups)


def _grid(order: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[int, ...]:
    shape, permutation = order
    return tuple(map(int, np.arange(math.prod(shape)).reshape(shape).transpose(permutation).flat))


_FIRST = (Type.MANUAL, Type.UNREDUCED, Type.REPLICATED)  # the order of further dimensions


def _tiled(dims: tuple[int, ...], devices: tuple[int, ...], types: tuple[Type, ...],
           order: tuple[tuple[int, ...], tuple[int, ...]] | None = None) -> HloSharding:
    """Tiles on devices, written in one of the ways in which the same can be: one further dimension of each type, none
    of size 1."""
    tiles = dims[:len(dims) - len(types)]
    further = dims[len(tiles):]
    ranked = sorted(range(len(types)), key=lambda i: _FIRST.index(types[i]))
    if ranked != list(range(len(types))):
        axes = (*range(len(tiles)), *(len(tiles) + i for i in ranked))
        devices, order = tuple(map(int, np.array(devices).reshape(dims).transpose(axes).flat)), None
    sizes = {t: math.prod(further[i] for i in ranked if types[i] is t) for t in _FIRST if t in types}
    kept = {t: n for t, n in sizes.items() if n != 1}
    if math.prod(tiles) == 1 and len(kept) <= 1:
        return HloSharding(next(iter(kept), Type.REPLICATED))
    return HloSharding(Type.OTHER, (*tiles, *kept.values()), devices, tuple(kept), order)


def of_axes(sizes: Mapping[Any, int], entries: Sequence[tuple[Any, ...]], manual: Sequence[Any] = (),
            unreduced: Sequence[Any] = ()) -> HloSharding:
    """The tiles of an array whose dimensions are spread over axes of a mesh of consecutive devices."""
    names = list(sizes)
    used = {n for e in entries for n in e}
    groups = {Type.MANUAL: [n for n in names if n in manual and n not in used],
              Type.UNREDUCED: [n for n in names if n in unreduced]}
    groups[Type.REPLICATED] = [n for n in names if n not in used and not any(n in g for g in groups.values())]
    dims = [math.prod(sizes[n] for n in e) for e in entries]
    dims += [math.prod(sizes[n] for n in g) for g in groups.values()]
    along = [n for e in entries for n in e] + [n for g in groups.values() for n in g]
    if not dims or math.prod(sizes.values()) == 1:
        return HloSharding.replicate()
    return HloSharding.iota_tile(dims, [sizes[n] for n in names] or [1], [names.index(n) for n in along] or [0],
                                 list(groups))


def entries_of(sharding: HloSharding, sizes: Mapping[Any, int]) -> list[tuple[Any, ...]]:
    """The axes of a mesh of consecutive devices by the dimensions of an array that has these tiles."""
    if not sharding.is_tiled():
        return []
    grid = np.array(sharding.devices).reshape(sharding.dims)
    shape = tuple(sizes.values())
    found = []
    for d in range(grid.ndim - len(sharding.types)):
        line = [np.array(np.unravel_index(k, shape)) for k in np.moveaxis(grid, d, 0).reshape(grid.shape[d], -1)[:, 0]]
        names: list[Any] = []
        step = 1
        while step < len(line):
            (axis,) = np.flatnonzero(line[step] != line[0])
            names.insert(0, list(sizes)[axis])
            step *= shape[axis]
        found.append(tuple(names))
    return found


class SdyArray:
    """How an array is spread over the axes of a mesh, as Shardy's dialect says it.

    `mesh_shape` holds the names and sizes of the axes; `dim_shardings`, for each dimension of the array, the names of
    those that it is spread over, None where nothing is said; `unreduced` those along which sums are still to be made.
    """

    __slots__ = ("dim_shardings", "mesh_shape", "unreduced")

    def __init__(self, mesh_shape: Sequence[tuple[Any, int]], dim_shardings: Sequence[tuple[Any, ...] | None],
                 unreduced: Sequence[Any] = ()):
        self.mesh_shape = tuple(mesh_shape)
        self.dim_shardings = tuple(dim_shardings)
        self.unreduced = tuple(unreduced)

    def __repr__(self) -> str:
        return f"SdyArray({self.mesh_shape}, {self.dim_shardings}, unreduced={self.unreduced})"


# -- what programs ask of them ---------------------------------------------------------------------


def is_hlo_sharding_replicated(hc: HloSharding) -> bool:
    """Whether all devices have all of an array."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: HloSharding, hc2: HloSharding) -> bool:
    """Whether devices have the same tiles."""
    return hc1 is hc2 or is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2) or hc1 == hc2


def get_num_ways_dim_sharded(hlo_sharding: HloSharding,
                             allow_partial_manual: bool = False) -> tuple[list[int], int]:
    """Into how many parts each dimension is cut, and how many devices have the same tile.

    Raises:
      AssertionError: the devices along some dimensions are a program's own business.
      NotImplementedError: those of several kinds of dimensions.
    """
    if hlo_sharding.is_replicated():
        return [], 1
    if hlo_sharding.is_manual() or hlo_sharding.is_unknown():
        raise AssertionError(f"{hlo_sharding} does not say which device has which tile")
    dims, types = hlo_sharding.tile_assignment_dimensions(), hlo_sharding.types
    if set(types) - {Type.REPLICATED} and not (allow_partial_manual and set(types) <= {Type.REPLICATED, Type.MANUAL}):
        raise NotImplementedError(f"Unhandled OpSharding type: {hlo_sharding}. Please open a bug report!")
    tiles = dims[:len(dims) - len(types)]
    return tiles, math.prod(dims[len(tiles):])


def op_sharding_to_numpy_indices(hlo_sharding: HloSharding, shape: Sequence[int], num_devices: int) -> np.ndarray:
    """For each device the slices of an array that it has, as an array of tuples."""
    out = np.empty(num_devices, object)
    whole = (slice(None),) * len(shape)
    parts, same = get_num_ways_dim_sharded(hlo_sharding)
    if is_hlo_sharding_replicated(hlo_sharding):
        out[:] = [whole] * num_devices
        return out
    if num_devices != hlo_sharding.num_devices() or len(parts) != len(shape):
        raise AssertionError((num_devices, hlo_sharding.num_devices(), len(parts), len(shape)))
    along = [[slice(None)] if n == 1 else [slice(k * (d // n), (k + 1) * (d // n)) for k in range(n)]
             for d, n in zip(shape, parts, strict=True)]
    devices = iter(hlo_sharding.devices)
    for index in itertools.product(*along):
        for _ in range(same):
            out[next(devices)] = tuple(index)
    return out


def op_sharding_to_indices(op_sharding: HloSharding, shape: Sequence[int],
                           num_devices: int) -> tuple[tuple[slice, ...], ...]:
    """For each device the slices of an array that it has."""
    return tuple(op_sharding_to_numpy_indices(op_sharding, shape, num_devices))


__all__ = ["HloSharding", "OpSharding", "SdyArray", "are_hlo_shardings_equal", "entries_of", "get_num_ways_dim_sharded",
           "is_hlo_sharding_replicated", "of_axes", "op_sharding_to_indices", "op_sharding_to_numpy_indices"]
