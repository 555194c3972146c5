"""What is said of kernels for TPUs: memory, semaphores, grids with scalars fetched before, parameters."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...core.types.avals import AbstractRef
from .accelerators import needs, only_on
from .semaphores import counters, semaphore
from .specs import BlockSpecTree, Grid, GridSpec, MemoryRef, ScratchShapeTree, SpaceNames, no_block_spec

_TPU = "a TPU"


class MemorySpace(SpaceNames):
    """The memories of a TPU. On CPUs there is one memory, and they are names for it."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __repr__(self) -> str:
        return self.name


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


class SemaphoreType(enum.Enum):
    """Kinds of semaphores: one stands for itself among scratch shapes, `SemaphoreType.DMA((3,))` for an array."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: tuple[int, ...]) -> MemoryRef:  # type: ignore[override]
        return counters(shape)

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to one semaphore."""
        return counters(()).get_ref_aval()

    def get_array_aval(self) -> Any:
        return counters(()).get_array_aval()


class dma_semaphore(semaphore):
    """What semaphores of copies count in."""


class GridDimensionSemantics(enum.Enum):
    """In what order the points of a grid may run along a dimension. CPUs keep their order."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics.SUBCORE_PARALLEL, GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """What a kernel may do besides writing its results."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class BufferType(enum.Enum):
    """What a pipeline's buffer is for."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4


class CoreType(enum.Enum):
    """Kinds of cores."""

    TC = 0
    SC_SCALAR_SUBCORE = 1
    SC_VECTOR_SUBCORE = 2

    def __repr__(self) -> str:
        return self.name


class Tiling(enum.Enum):
    """How arrays are cut into tiles in memory."""

    COMPACT = 1
    SPARSE_CORE = 2


class ChipVersion(enum.Enum):
    """Generations of TPUs."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class CompilerParams:
    """What is said to the compiler for TPUs. Accepted and without effect on CPUs."""

    dimension_semantics: Sequence[GridDimensionSemantics | str] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def replace(self, **changes: Any) -> CompilerParams:
        """The same parameters but for `changes`."""
        return replace(self, **changes)

    def __hash__(self) -> int:
        return hash((tuple(self.dimension_semantics or ()), self.vmem_limit_bytes, self.collective_id))


@dataclass(frozen=True)
class InterpretParams:
    """How TPU kernels are to be interpreted. CPUs compile them, with results as by default."""

    detect_races: bool = False
    out_of_bounds_reads: Literal["raise", "uninitialized"] = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: Literal["nan", "zero"] = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: Literal["eager", "on_wait"] = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: Literal["logical", "padded"] = "logical"


@dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """What a TPU has."""

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: Any = None


class LoweringException(Exception):
    """The compiler for TPUs cannot compile a kernel."""


class BufferedRefBase:
    """A reference to the buffers of a pipeline. Pipelines written by hand need a TPU."""

    def __init__(self, *args: Any, **kwargs: Any):
        needs(type(self).__name__, _TPU)


class BufferedRef(BufferedRefBase):
    """A reference to the buffers that a pipeline keeps of a block."""


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps read scalars.

    The first `num_scalar_prefetch` operands are passed to the kernel whole, before all others, and to index maps as
    references, after the grid's indices.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> from styrax.experimental.pallas import tpu as pltpu
      >>> def kernel(order_ref, x_ref, o_ref):
      ...     o_ref[...] = x_ref[...]
      >>> spec = pltpu.PrefetchScalarGridSpec(
      ...     num_scalar_prefetch=1, grid=(2,), in_specs=[pl.BlockSpec((2,), lambda i, order: order[i])],
      ...     out_specs=pl.BlockSpec((2,), lambda i, order: i))
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), grid_spec=spec, interpret=True)(
      ...     jnp.array([1, 0]), jnp.arange(4))
      Array([2, 3, 0, 1], dtype=int32)
    """

    def __init__(self, num_scalar_prefetch: int, grid: Grid = (), in_specs: BlockSpecTree = no_block_spec,
                 out_specs: BlockSpecTree = no_block_spec, scratch_shapes: ScratchShapeTree = ()):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def is_tpu_device() -> bool:
    """Whether the default device is a TPU: it is a CPU."""
    return False


def get_tpu_info() -> TpuInfo:
    """What the TPU has that runs kernels.

    Raises:
      ValueError: there is none.
    """
    raise ValueError("Unsupported TPU device kind: cpu")


get_tpu_info_for_chip = only_on(_TPU, "get_tpu_info_for_chip", "chip_version num_tensor_cores_per_logical_device")
create_tensorcore_mesh = only_on(_TPU, "create_tensorcore_mesh", "axis_name devices=None num_cores=None")


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> Iterator[None]:
    """Within it, TPU kernels are interpreted. CPUs compile them all the time."""
    yield


def set_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> None:
    """Has TPU kernels interpreted from now on. CPUs compile them all the time."""


def reset_tpu_interpret_mode_state() -> None:
    """Forgets what interpretation has left behind: nothing."""


