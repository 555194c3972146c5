"""Operations of Mosaic kernels: arithmetic on indices, and names of what needs a GPU."""

from __future__ import annotations

from ...core.arrays.array import Array
from ...core.hooks import lax, numpy
from .accelerators import only_on

_GPU = "a GPU"


def find_swizzle(minor_dim_bits: int, what: str = "") -> int:
    """The most bytes among which lines of memory of a width can be exchanged: 128, 64, 32 or 16.

    Args:
      minor_dim_bits: the width.
      what: what it is the width of, for messages.

    Raises:
      ValueError: the width is no multiple of 16 bytes.
    """
    for swizzle in (128, 64, 32, 16):
        if minor_dim_bits % (8 * swizzle) == 0:
            return swizzle
    raise ValueError(f"No valid {what + ' ' if what else ''}swizzle: minor dimension has {minor_dim_bits} bits, which "
                     "is not a multiple of 128 (16 bytes)")


def planar_snake(lin_idx: Array, shape: tuple[int | Array, int | Array], minor_dim: int,
                 tile_width: int) -> tuple[Array, Array]:
    """Where a walk through a plane stands that goes up one strip and down the next.

    Args:
      lin_idx: the number of the step, an int32 scalar.
      shape: the sizes of the plane.
      minor_dim: the dimension that strips cut; the walk crosses a strip along it before it goes on.
      tile_width: how wide strips are; the last one can be narrower.

    Returns:
      the position along the two dimensions.
    """
    minor, major = shape[minor_dim], shape[1 - minor_dim]
    strip = lax.div(lin_idx, numpy.int32(tile_width * major))
    inside = lin_idx - strip * (tile_width * major)
    width = numpy.minimum(tile_width, minor - strip * tile_width)
    across, along = strip * tile_width + lax.rem(inside, width), lax.div(inside, width)
    along = numpy.where(strip % 2 == 0, along, major - 1 - along)
    return (across, along) if minor_dim == 0 else (along, across)

as_torch_kernel = only_on(_GPU, "as_torch_kernel", "fn")
async_copy_scales_to_tmem = only_on(_GPU, "async_copy_scales_to_tmem", "smem_ref tmem_ref collective_axis=None")
async_copy_smem_to_tmem = only_on(_GPU, "async_copy_smem_to_tmem", "smem_ref tmem_ref collective_axis=None")
async_copy_sparse_metadata_to_tmem = only_on(
    _GPU, "async_copy_sparse_metadata_to_tmem",
    "smem_ref tmem_ref collective_axis=None")
async_load_tmem = only_on(_GPU, "async_load_tmem", "src * layout=None")
async_prefetch = only_on(_GPU, "async_prefetch", "ref * collective_axes=None leader_tracked=None")
async_store_smem = only_on(
    _GPU, "async_store_smem",
    "src ref barrier * cluster_idx cluster_dim optimized=True atomic=None")
async_store_tmem = only_on(_GPU, "async_store_tmem", "ref value")
atomic_add = only_on(_GPU, "atomic_add", "ref val")
atomic_and = only_on(_GPU, "atomic_and", "ref val")
atomic_max = only_on(_GPU, "atomic_max", "ref val")
atomic_min = only_on(_GPU, "atomic_min", "ref val")
atomic_or = only_on(_GPU, "atomic_or", "ref val")
atomic_xor = only_on(_GPU, "atomic_xor", "ref val")
barrier_arrive = only_on(_GPU, "barrier_arrive", "barrier")
barrier_test = only_on(_GPU, "barrier_test", "barrier")
barrier_wait = only_on(_GPU, "barrier_wait", "barrier")
broadcasted_iota = only_on(_GPU, "broadcasted_iota", "dtype shape dimension * layout=None")
cluster_ref = only_on(_GPU, "cluster_ref", "ref block_id")
commit_smem = only_on(_GPU, "commit_smem")
commit_smem_to_gmem_group = only_on(_GPU, "commit_smem_to_gmem_group")
commit_tmem = only_on(_GPU, "commit_tmem")
copy_gmem_to_smem = only_on(
    _GPU, "copy_gmem_to_smem",
    "src dst barrier * collective_axes=None leader_tracked=None oob_mode=None")
copy_smem_to_gmem = only_on(_GPU, "copy_smem_to_gmem", "src dst predicate=None * commit_group=True reduction_op=None")
dynamic_scheduling_loop = only_on(
    _GPU, "dynamic_scheduling_loop",
    "grid_names thread_axis=None cluster_axes=() init_carry=None")
emit_pipeline = only_on(
    _GPU, "emit_pipeline",
    "body * grid in_specs=() out_specs=() max_concurrent_steps=1 init_carry=None")
emit_pipeline_warp_specialized = only_on(
    _GPU, "emit_pipeline_warp_specialized",
    "body * grid memory_registers in_specs=() out_specs=() max_concurrent_steps=2 wg_axis num_compute_wgs "
    "pipeline_state=None manual_consumed_barriers=False compute_context=None memory_thread_idx=None")
format_tcgen05_sparse_metadata = only_on(_GPU, "format_tcgen05_sparse_metadata", "meta operand_dtype")
griddepcontrol_launch_dependents = only_on(_GPU, "griddepcontrol_launch_dependents")
griddepcontrol_wait = only_on(_GPU, "griddepcontrol_wait")
inline_mgpu = only_on(_GPU, "inline_mgpu", "* arg_types=() return_type=None")
kernel = only_on(
    _GPU, "kernel",
    "body=None out_shape=None * out_type=None scratch_types=None scratch_shapes=None compiler_params=None "
    "grid=() grid_names=() cluster=() cluster_names=() num_threads=None thread_name=None interpret=None "
    "**mesh_kwargs")
layout_cast = only_on(_GPU, "layout_cast", "x new_layout")
load = only_on(_GPU, "load", "src idx * layout=None optimized=True")
multicast_ref = only_on(_GPU, "multicast_ref", "ref collective_axes")
multimem_load_reduce = only_on(_GPU, "multimem_load_reduce", "ref * collective_axes reduction_op")
multimem_store = only_on(_GPU, "multimem_store", "source ref collective_axes")
nd_loop = only_on(_GPU, "nd_loop", "grid * collective_axes tiling=None init_carry=None")
print_layout = only_on(_GPU, "print_layout", "fmt x")
query_cluster_cancel = only_on(_GPU, "query_cluster_cancel", "result_ref grid_names")
remote_ref = only_on(_GPU, "remote_ref", "ref device_id device_id_type=None")
semaphore_signal = only_on(_GPU, "semaphore_signal", "semaphore inc=1 * device_id=None memory_scope='sys'")
semaphore_signal_multicast = only_on(_GPU, "semaphore_signal_multicast", "semaphore value=1 * collective_axes")
semaphore_signal_parallel = only_on(_GPU, "semaphore_signal_parallel", "*signals")
semaphore_wait = only_on(_GPU, "semaphore_wait", "semaphore value=1 * decrement=True memory_scope='sys'")
set_max_registers = only_on(_GPU, "set_max_registers", "n * action")
tcgen05_commit_arrive = only_on(_GPU, "tcgen05_commit_arrive", "barrier collective_axis=None")
tcgen05_mma = only_on(
    _GPU, "tcgen05_mma",
    "acc a b barrier=None * a_scale=None b_scale=None a_sparse_metadata=None accumulate=True "
    "collective_axis=None")
transform_ref = only_on(_GPU, "transform_ref", "ref transform")
transpose_ref = only_on(_GPU, "transpose_ref", "ref permutation")
try_cluster_cancel = only_on(_GPU, "try_cluster_cancel", "result_ref barrier")
wait_load_tmem = only_on(_GPU, "wait_load_tmem")
wait_smem_to_gmem = only_on(_GPU, "wait_smem_to_gmem", "n wait_read_only=False")
warp_map = only_on(_GPU, "warp_map", "f")
wgmma = only_on(_GPU, "wgmma", "acc a b")
wgmma_accumulator_load = only_on(_GPU, "wgmma_accumulator_load", "acc * wait_n=0")
wgmma_wait = only_on(_GPU, "wgmma_wait", "n")
