"""Kernels and index maps as programs over references, kept for the functions that mean the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...core.programs.jaxpr import ClosedJaxpr, DebugInfo
from ...core.settings import config
from ...core.tracing import source
from ...core.tracing.staging import trace_to_jaxpr
from ...core.tracing.trace import get_aval, state
from ...core.trees import tree
from ...core.types import dtypes
from ...core.types.avals import AbstractRef, ShapedArray, shaped
from ...core.types.typing import Shape
from ...transforms.flattening import FlatFunction, positional
from .function_keys import function_key
from .grids import BlockMapping
from .indices import inside_kernel
from .specs import BlockSpec, BoundedSlice, Indirect, MemorySpace, as_block_dim

_programs: OrderedDict[Hashable, ClosedJaxpr] = OrderedDict()
_MOST = 2048


def _kept(key: Hashable, make: Callable[[], ClosedJaxpr]) -> ClosedJaxpr:
    """The program of a key, made at most once; the least recently used are dropped."""
    key = key, config.trace_context()
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = make()
        if len(_programs) > _MOST:
            _programs.popitem(last=False)
    else:
        _programs.move_to_end(key)
    return found


def trace_kernel(kernel: Callable[..., None], in_tree: tree.PyTreeDef, avals: Sequence[AbstractRef],
                 grid: Sequence[int | None]) -> ClosedJaxpr:
    """A kernel as a program of references.

    Args:
      kernel: the function, which returns None.
      in_tree: the structure of `(args, kwargs)`.
      avals: the types of its leaves.
      grid: the grid's sizes as the kernel counts them.

    Raises:
      ValueError: the kernel returns something, or captures arrays.
    """
    def make() -> ClosedJaxpr:
        flat = FlatFunction(kernel, in_tree)

        def inside(*refs: Any) -> list[Any]:
            with inside_kernel(state.trace, grid):
                return flat(*refs)

        info = flat.info(avals)
        closed = trace_to_jaxpr(inside, avals, DebugInfo("pallas_call", info.func_src_info, info.arg_names))
        who = f"The kernel function in the pallas_call {source.describe_function(kernel)}"
        if closed.jaxpr.outvars:
            raise ValueError(f"{who} should return None. It returns a PyTree: {flat.structure}")
        if closed.consts:
            captured = ", ".join(v.aval.str_short(short_dtypes=True) for v in closed.jaxpr.constvars)
            raise ValueError(f"{who} captures constants [{captured}]. You should pass them as inputs.")
        return closed

    return _kept(("kernel", function_key(kernel), in_tree, tuple(avals), tuple(a.memory_space for a in avals),
                  tuple(grid)), make)


def trace_index_map(index_map: Callable[..., Any] | None, grid_rank: int, index_avals: Sequence[AbstractRef],
                    index_tree: tree.PyTreeDef, origin: str, rank: int) -> ClosedJaxpr:
    """An index map as a program of the grid's indices and references to the scalars fetched before.

    Args:
      index_map: the function; None gives zeros.
      grid_rank: how many indices it takes.
      index_avals, index_tree: types and structure of the scalars, which it takes after the indices.
      origin: whose index map it is, for messages.
      rank: how many indices it must give.

    Raises:
      ValueError: it gives something else than `rank` integers, or captures arrays.
    """
    def make() -> ClosedJaxpr:
        avals = [*(shaped((), np.dtype(np.int32)) for _ in range(grid_rank)), *index_avals]
        if index_map is None:
            return trace_to_jaxpr(lambda *_: [0] * rank, avals)
        who = f"Index map function {source.describe_function(index_map)} for {origin}"

        def flat(*leaves: Any) -> list[Any]:
            found = index_map(*leaves[:grid_rank], *tree.tree_unflatten(index_tree, leaves[grid_rank:]))
            outs = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(outs) != rank:
                raise ValueError(f"{who} must return {rank} values to match its block shape. Currently returning "
                                 f"{len(outs)} values:")
            for i, x in enumerate(outs):
                aval = get_aval(x)
                if aval.shape != () or not dtypes.issubdtype(aval.dtype, np.integer):
                    raise ValueError(f"{who} must return integer scalars. Output[{i}] has type {aval}.")
            return outs

        closed = trace_to_jaxpr(flat, avals, FlatFunction(index_map, positional(tree.tree_structure(tuple(
            avals)))).info(avals))
        if closed.consts:
            raise ValueError(f"{who} must not capture constants: {list(closed.consts)}")
        return closed

    function = None if index_map is None else function_key(index_map)
    return _kept(("index map", function, grid_rank, tuple(index_avals), index_tree, rank), make)


def block_mapping(spec: BlockSpec, aval: ShapedArray, origin: str, grid_rank: int,
                  index_avals: Sequence[AbstractRef], index_tree: tree.PyTreeDef) -> BlockMapping:
    """A spec for an array of a type; the scalars fetched before are as `trace_index_map` takes them.

    Raises:
      ValueError: the block's rank is not the array's, its sizes are of a kind that accelerators alone have, or the
        index map is wrong (see `trace_index_map`).
    """
    given: Shape | Any = aval.shape if spec.block_shape is None else spec.block_shape
    shape = tuple(map(as_block_dim, given))
    if len(shape) != aval.ndim:
        raise ValueError(f"Block shape for {origin} (= {shape}) must have the same number of dimensions as the array "
                         f"shape {aval.shape}.")
    for d in shape:
        if isinstance(d, (BoundedSlice, Indirect)):
            raise ValueError(f"Unsupported block dim type: {type(d)}")
    closed = trace_index_map(spec.index_map, grid_rank, index_avals, index_tree, origin, len(shape))
    space = MemorySpace.DEFAULT if spec.memory_space is None else spec.memory_space
    return BlockMapping(shape, aval.strip_weak_type(), closed, space, spec.pipeline_mode, origin)
