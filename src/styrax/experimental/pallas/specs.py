"""What is said about a kernel's grid and blocks: `BlockSpec`, `GridSpec`, sizes of blocks, memory spaces."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...core.types import dtypes
from ...core.types.avals import AbstractRef, AbstractValue, shaped
from ...core.types.typing import DTypeLike, PyTree


class NoBlockSpec:
    """The type of `no_block_spec`: the whole array, at each point of the grid."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


# How long blocks are along a dimension


@dataclass(frozen=True)
class Blocked:
    """Blocks of `block_size` side by side; the index map gives the number of the block. A plain integer means this."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclass(frozen=True)
class Squeezed:
    """Blocks of one element, whose dimension the kernel does not see. None means this."""


squeezed = Squeezed()


@dataclass(frozen=True)
class Element:
    """Blocks of `block_size`; the index map gives the position of the first element.

    The array gets `padding` elements before and after, which hold no value.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return f"Element({self.block_size}, padding={self.padding})"


@dataclass(frozen=True)
class BoundedSlice:
    """Blocks of at most `block_size`; the index map gives a `Slice`. Accelerators only."""

    block_size: int


@dataclass(frozen=True)
class Indirect:
    """`block_size` elements at the positions that the index map gives. Accelerators only."""

    block_size: int


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect
BlockShape = Sequence[BlockDim | int | None]


def as_block_dim(size: BlockDim | int | None) -> BlockDim:
    """The dimension of a block by its short form."""
    if size is None:
        return squeezed
    if isinstance(size, BlockDim):
        return size
    return Blocked(size)


def block_size(dim: BlockDim) -> int:
    """How many elements a block has along a dimension."""
    return 1 if isinstance(dim, Squeezed) else dim.block_size


class RevisitMode(enum.Enum):
    """Which blocks a pipeline may find still in place."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline keeps of a block. On CPUs blocks are used where they lie."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


# Memory


@dataclass(frozen=True)
class MemoryRef:
    """A place in memory to be: `MemorySpace.ANY((8,), jnp.float32)`, for scratch references."""

    inner_aval: AbstractValue
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype  # type: ignore[attr-defined]

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to it."""
        return AbstractRef(self.inner_aval, self.memory_space)

    def get_array_aval(self) -> AbstractValue:
        return self.inner_aval


class SpaceNames(enum.Enum):
    """Memory spaces; called with a shape and a dtype, a place there."""

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:  # type: ignore[override]
        return MemoryRef(shaped(tuple(shape), scratch_dtype(dtype)), self)


def scratch_dtype(dtype: DTypeLike) -> Any:
    """The dtype of scratch memory: canonical, or an extended one as it is."""
    return dtype if isinstance(dtype, dtypes.ExtendedDType) else dtypes.canonicalize_dtype(dtype)


class MemorySpace(SpaceNames):
    """Memory spaces that all backends know. On CPUs there is one memory, and they are names for it."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def from_type(self, ty: Any) -> MemoryRef:
        """A place here for values of a type."""
        return MemoryRef(ty, self)


SEMAPHORE = "semaphore_mem"  # the memory space of counters, which begin at zero
ANY = MemorySpace.ANY
HOST = MemorySpace.HOST

ScratchShape = Any  # a place in memory, or anything with `get_ref_aval`
ScratchShapeTree = PyTree  # of these: a sequence, or a mapping by the names of the kernel's parameters


class DeviceIdType(enum.Enum):
    """How devices are numbered: by coordinates in a mesh, or by one number."""

    MESH = "mesh"
    LOGICAL = "logical"


@runtime_checkable
class CompilerParams(Protocol):
    """What is said to one backend's compiler: an instance of that backend's `CompilerParams`."""

    __slots__ = ()


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for the scheduling of accelerators. On CPUs the compiler counts for itself."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """The estimate as JSON text."""
        return (f'{{"flops": {self.flops}, "transcendentals": {self.transcendentals}, "bytes_accessed": '
                f'{self.bytes_accessed}, "remote_bytes_transferred": {self.remote_bytes_transferred}}}').encode("ascii")


# Blocks and grids


@dataclass
class BlockSpec:
    """Which block of an array a kernel sees at each point of the grid.

    Args:
      block_shape: the block's size along each dimension of the array (see `BlockDim`); None for the whole array.
      index_map: function of the grid's indices that gives the block's number (or its position, see `Element`) along
        each dimension; a single one may stand for itself. None for zeros.
      pipeline_mode: see `Buffered`.
      memory_space: where the block is kept.
    """

    block_shape: BlockShape | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any | None = None
    pipeline_mode: Buffered | None = None

    def __init__(self, block_shape: BlockShape | None = None, index_map: Callable[..., Any] | None = None,
                 pipeline_mode: Buffered | None = None, *, memory_space: Any | None = None):
        if index_map is not None and not callable(index_map):
            raise TypeError(f"`index_map` must be a function or None, got {index_map!r}")
        self.block_shape = None if block_shape is None else tuple(block_shape)
        self.index_map = index_map
        self.pipeline_mode = pipeline_mode
        self.memory_space = memory_space

    def replace(self, **changes: Any) -> BlockSpec:
        """The same spec but for `changes`."""
        fields = dict(block_shape=self.block_shape, index_map=self.index_map, pipeline_mode=self.pipeline_mode,
                      memory_space=self.memory_space)
        return BlockSpec(**{**fields, **changes})

    def __hash__(self) -> int:
        return hash((self.block_shape, self.index_map, self.memory_space))


BlockSpecTree = PyTree
GridDim = Any  # an integer, or a traced one
TupleGrid = tuple[Any, ...]
Grid = Any  # a tuple of sizes, or one size; each can have a name


class GridSpec:
    """A grid, the blocks of the operands and results at its points, and scratch memory.

    Args:
      grid: how many points the grid has along each dimension; the last varies fastest. Sizes can be traced integers, or
        pairs of a name and a size.
      in_specs: `BlockSpec`s, or None or `no_block_spec` for whole arrays, in the structure of the operands.
      out_specs: the same for the results.
      scratch_shapes: places in memory that the kernel gets after the results, and that keep what is written there from
        one point of the grid to the next.
    """

    num_scalar_prefetch = 0

    def __init__(self, grid: Grid = (), in_specs: BlockSpecTree = no_block_spec,
                 out_specs: BlockSpecTree = no_block_spec, scratch_shapes: ScratchShapeTree = ()):
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        named = [isinstance(d, tuple) for d in sizes]
        if any(named) and not all(named):
            raise ValueError(f"either all dimensions of the grid have names, or none: {grid}")
        self.grid: TupleGrid = tuple(d[1] for d in sizes) if any(named) else sizes
        self.grid_names: tuple[Any, ...] | None = tuple(d[0] for d in sizes) if any(named) else None
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) else scratch_shapes

    def __repr__(self) -> str:
        prefetched = f"num_scalar_prefetch={self.num_scalar_prefetch}, " if self.num_scalar_prefetch else ""
        return (f"{type(self).__name__}({prefetched}grid={self.grid}, grid_names={self.grid_names}, in_specs="
                f"{self.in_specs}, out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})")
