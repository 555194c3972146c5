"""What is said of Mosaic kernels for GPUs, as plain data."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.types.avals import AbstractRef, shaped
from ...core.types.typing import DTypeLike
from . import specs
from .accelerators import needs
from .semaphores import counters
from .specs import MemoryRef, SpaceNames, scratch_dtype

_GPU = "a GPU"


class MemorySpace(SpaceNames):
    """The memories of a GPU."""

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"

    def __call__(self, shape: Sequence[int], dtype: DTypeLike, *, transforms: Sequence[Transform] = (),  # type: ignore[override]
                 packed: bool | None = None, collective: bool | None = None,
                 layout: TMEMLayout | None = None) -> MemoryRef:
        return MemoryRef(shaped(tuple(shape), scratch_dtype(dtype)), self)


GMEM, SMEM, TMEM, REGS = MemorySpace.GMEM, MemorySpace.SMEM, MemorySpace.TMEM, MemorySpace.REGS


class SemaphoreType(enum.Enum):
    """Kinds of semaphores."""

    REGULAR = "regular"
    BARRIER = "barrier"

    def __call__(self, shape: tuple[int, ...]) -> MemoryRef:  # type: ignore[override]
        return counters(shape)

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to one semaphore."""
        return counters(()).get_ref_aval()


class LoweringSemantics(enum.Enum):
    """For whom a kernel's program is written."""

    Lane = 1
    Warpgroup = 2


class TraceScope(enum.Enum):
    """For whom a profile is written."""

    WARP = "warp"
    WARPGROUP = "warpgroup"


class OOBFillMode(enum.Enum):
    """What is read outside of an array."""

    UNDEFINED = 0
    PROMISE_IN_BOUNDS = 1
    ZEROS = 2


class PipelinePipeline(enum.IntEnum):
    """Where one of several pipelines in a row stands."""

    START = 0
    STEADY = 1
    STOP = 2


class CopyPartition(enum.Enum):
    """How blocks of a cluster share a copy."""

    PARTITIONED = enum.auto()
    REPLICATED = enum.auto()


class Layout(enum.Enum):
    """How threads hold an array in their registers."""

    WGMMA = enum.auto()
    WGMMA_8BIT = enum.auto()
    WGMMA_UPCAST_2X = enum.auto()
    WGMMA_UPCAST_4X = enum.auto()
    WGMMA_TRANSPOSED = enum.auto()
    WG_SPLAT = enum.auto()
    WG_STRIDED = enum.auto()
    TILED = enum.auto()
    TCGEN05 = enum.auto()
    TCGEN05_TRANSPOSED = enum.auto()
    TCGEN05_M64_COLLECTIVE = enum.auto()
    TCGEN05_TMEM_NATIVE = enum.auto()
    TCGEN05_M64_COLLECTIVE_NATIVE = enum.auto()
    SMEM_GMEM_COPY = enum.auto()
    TMA_INDICES = enum.auto()
    TMA_INDICES_4 = enum.auto()


class TMEMLayout(enum.Enum):
    """How arrays lie in tensor memory."""

    SCALES_LAYOUT = enum.auto()
    SPARSE_METADATA_LAYOUT = enum.auto()
    M64_COLLECTIVE_LAYOUT = enum.auto()
    SCALES_M64_COLLECTIVE_LAYOUT = enum.auto()


class Transform:
    """A way to look at memory."""

    __slots__ = ()


@dataclass(frozen=True)
class TilingTransform(Transform):
    """Memory in tiles."""

    tiling: tuple[int, ...]


@dataclass(frozen=True)
class SwizzleTransform(Transform):
    """Memory whose lines are exchanged against conflicts of banks."""

    swizzle: int


@dataclass(frozen=True)
class PeerMemRef(Transform):
    """The memory of another device."""

    device_id: Any
    device_id_type: specs.DeviceIdType


@dataclass(frozen=True)
class Tiling:
    """Tiles within tiles."""

    tiles: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Replicated:
    """A dimension that each of `times` threads holds."""

    times: int


@dataclass(frozen=True)
class RefType:
    """A reference with ways to look at it."""

    transforms: tuple[Transform, ...] = ()


@dataclass(frozen=True)
class NDLoopInfo:
    """Where a loop over a grid stands."""

    index: tuple[Any, ...]
    local_index: Any
    num_local_steps: Any


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """The type of values in registers."""

    shape: tuple[int, ...]
    dtype: Any
    layout: Any


@dataclass(frozen=True)
class SemaphoreSignal:
    """What is added to a semaphore."""

    ref: Any
    device_id: Any = field(kw_only=True)
    inc: Any = field(default=1, kw_only=True)


@dataclass(frozen=True)
class ACC:
    """An accumulator of matrix products in registers."""

    shape: tuple[int, int]
    dtype: Any = np.dtype(np.float32)
    _init: Any = None


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """Barriers of the threads of a block."""

    num_arrivals: int = 1
    num_barriers: int | Sequence[int] = 1
    orders_tensor_core: bool = False

    def get_ref_aval(self) -> AbstractRef:
        needs("Barrier", _GPU)


@dataclass(frozen=True, kw_only=True)
class ClusterBarrier:
    """Barriers of the blocks of a cluster."""

    collective_axes: tuple[str | tuple[str, ...], ...]
    num_barriers: int | Sequence[int] = 1
    num_arrivals: int = 1
    orders_tensor_core: bool = False
    leader_tracked: bool = False

    def get_ref_aval(self) -> AbstractRef:
        needs("ClusterBarrier", _GPU)


class RefUnion:
    """References that share memory."""

    def __init__(self, *refs: Any):
        self.refs = refs

    def get_ref_aval(self) -> AbstractRef:
        needs("RefUnion", _GPU)


class TryClusterCancelResult:
    """Memory for answers of the scheduler of clusters."""

    def __init__(self, num_buffers: int | None = None):
        needs("TryClusterCancelResult", _GPU)


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """The blocks and threads that run a kernel."""

    grid: Sequence[int] = ()
    grid_names: Sequence[str] = ()
    cluster: Sequence[int] = ()
    cluster_names: Sequence[str] = ()
    num_threads: int | None = None
    thread_name: str | None = None
    kernel_name: str | None = None


@dataclass(frozen=True, kw_only=True)
class WarpMesh:
    """The warps of a warpgroup."""

    axis_name: str


@dataclass(frozen=True, kw_only=True)
class CompilerParams:
    """What is said to Mosaic's compiler for GPUs. Accepted and without effect on CPUs."""

    approx_math: bool = False
    dimension_semantics: Sequence[str] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: TraceScope = TraceScope.WARPGROUP
    lowering_semantics: LoweringSemantics = LoweringSemantics.Lane

    def replace(self, **changes: Any) -> CompilerParams:
        """The same parameters but for `changes`."""
        return replace(self, **changes)


class BlockSpec(specs.BlockSpec):
    """A block spec with ways to look at the block in memory, which CPUs leave as it is."""

    def __init__(self, block_shape: specs.BlockShape | None = None, index_map: Any = None,
                 pipeline_mode: specs.Buffered | None = None, transforms: Sequence[Transform] = (),
                 delay_release: int = 0, collective_axes: tuple[Any, ...] = (), *, memory_space: Any | None = None):
        super().__init__(block_shape, index_map, pipeline_mode, memory_space=memory_space)
        self.transforms = tuple(transforms)
        self.delay_release = delay_release
        self.collective_axes = collective_axes
