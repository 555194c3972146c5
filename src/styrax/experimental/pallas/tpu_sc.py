"""Names of JAX's kernels for the sparse cores of TPUs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from .accelerators import needs, only_on

_CORE = "a TPU's sparse core"


class PackFormat(enum.Enum):
    """How two vectors stand in one."""

    COMPRESSED = "compressed"
    INTERLEAVED = "interleaved"


@dataclass(frozen=True)
class Indices:
    """Positions to gather from or scatter to, and the one that is left out."""

    values: Any
    ignored_value: int | None = None


class ScalarSubcoreMesh:
    """The scalar subcores of a chip."""

    def __init__(self, *, axis_name: str, num_cores: int = 1):
        needs("ScalarSubcoreMesh", _CORE)


class VectorSubcoreMesh:
    """The vector subcores of a chip."""

    def __init__(self, *, core_axis_name: str, subcore_axis_name: str, num_cores: int = 1, num_subcores: int = 1):
        needs("VectorSubcoreMesh", _CORE)


addupdate = only_on(_CORE, "addupdate", "ref x")
addupdate_compressed = only_on(_CORE, "addupdate_compressed", "ref x * mask")
addupdate_scatter = only_on(_CORE, "addupdate_scatter", "ref indices x * mask=None")
all_reduce_ffs = only_on(_CORE, "all_reduce_ffs", "x * reduce=1")
all_reduce_population_count = only_on(_CORE, "all_reduce_population_count", "x * reduce=1")
bitcast = only_on(_CORE, "bitcast", "x dtype")
cummax = only_on(_CORE, "cummax", "x * mask=None")
cumsum = only_on(_CORE, "cumsum", "x * mask=None")
fetch_and_add = only_on(_CORE, "fetch_and_add", "x_ref value * subcore_id")
get_sparse_core_info = only_on(_CORE, "get_sparse_core_info")
load_expanded = only_on(_CORE, "load_expanded", "ref * mask")
load_gather = only_on(_CORE, "load_gather", "ref indices * mask=None")
pack = only_on(_CORE, "pack", "a b * format preferred_element_type=None")
parallel_loop = only_on(_CORE, "parallel_loop", "lower upper step=1 * unroll=1 carry=None")
scan_count = only_on(_CORE, "scan_count", "x mask=None")
sort_key_val = only_on(_CORE, "sort_key_val", "keys values * mask=None descending=False")
store_compressed = only_on(_CORE, "store_compressed", "ref x * mask")
store_scatter = only_on(_CORE, "store_scatter", "ref indices x * mask=None")
subcore_barrier = only_on(_CORE, "subcore_barrier")
unpack = only_on(_CORE, "unpack", "ab * format preferred_element_type=None")
