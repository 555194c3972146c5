"""A kernel on a grid as a program of loops, blocks being slices of arrays that the loops carry.

Results begin without a value (NaN, or the least integer), scratch memory likewise. Operands that the kernel only reads
are sliced where they lie. Arrays are padded to whole blocks; what is written to the padding is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.hooks import lax
from ...core.programs.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr
from ...core.tracing.staging import trace_to_jaxpr
from ...core.types import dtypes
from ...core.types.avals import AbstractRef, ShapedArray, shaped
from ...core.types.effects import AccumEffect, WriteEffect
from ...transforms.memo import per_jaxpr
from ...transforms.refs import discharge_closed
from .grids import BlockMapping, GridMapping
from .indices import num_programs_p, program_id_p
from .specs import SEMAPHORE, Blocked, Element, block_size


@per_jaxpr
def loop_nest(kernel: ClosedJaxpr, mapping: GridMapping, aliases: tuple[tuple[int, int], ...]) -> ClosedJaxpr:
    """The program of a call: takes the grid's sizes that are operands, the scalars and the operands; gives results."""
    nest = _Nest(kernel, mapping, aliases)
    avals = [*(shaped((), np.dtype(np.int32)) for d in mapping.grid if d is None),
             *(a.inner_aval for a in mapping.index_avals), *(m.array_aval for m in mapping.in_mappings)]
    return trace_to_jaxpr(nest.run, avals, kernel.debug_info)


def uninitialized(shape: Sequence[int], dtype: Any) -> Any:
    """An array of what stands for no value: NaN, the least integer, False."""
    if dtypes.issubdtype(dtype, np.inexact):
        value: Any = np.nan
    elif dtypes.issubdtype(dtype, np.integer):
        value = dtypes.iinfo(dtype).min
    elif dtype == np.bool_:
        value = False
    else:
        raise NotImplementedError(f"memory of dtype {dtype} has no value that stands for nothing written yet")
    return lax.full(shape, value, dtype)


def initial_contents(ref: AbstractRef) -> Any:
    """What memory holds at first: nothing (see `uninitialized`), and zero if it is a semaphore's."""
    if str(ref.memory_space) == SEMAPHORE:
        return lax.full(ref.shape, 0, ref.dtype)
    return uninitialized(ref.shape, ref.dtype)


def written_refs(kernel: ClosedJaxpr) -> frozenset[int]:
    """The numbers of a program's references that it writes."""
    offset = len(kernel.jaxpr.constvars)
    return frozenset(e.input_index - offset for e in kernel.effects if isinstance(e, (WriteEffect, AccumEffect)))


class _Nest:
    """One call's loops.

    The kernel's references are numbered: scalars fetched before, operands, results, scratch. Each has contents, which
    the loops carry if the kernel writes them and else read from outside.
    """

    def __init__(self, kernel: ClosedJaxpr, mapping: GridMapping, aliases: tuple[tuple[int, int], ...]):
        self.mapping = mapping
        self.sources = {out: given for given, out in aliases}  # operands are counted with the scalars
        self.kernel = _of_indices(discharge_closed(kernel), mapping)
        self.blocks: list[BlockMapping | None] = [
            *(None for _ in mapping.index_avals), *mapping.block_mappings, *(None for _ in mapping.scratch_avals)]
        written = written_refs(kernel)
        first_out = len(mapping.index_avals) + mapping.num_inputs
        self.carried = [i for i in range(len(self.blocks)) if i >= first_out or i in written]
        self.changed = written

    def run(self, *args: Any) -> list[Any]:
        mapping = self.mapping
        bounds = iter(args[:mapping.num_dynamic_grid_bounds])
        grid = [next(bounds) if d is None else d for d in mapping.grid]
        given = list(args[mapping.num_dynamic_grid_bounds:])
        contents = given + [self.initial(i, m.array_aval, given) for i, m in enumerate(mapping.out_mappings)]
        contents = [x if m is None else _padded(x, m) for x, m in zip(contents, self.blocks, strict=False)]
        contents += map(initial_contents, mapping.scratch_avals)
        carry = [contents[i] for i in self.carried]
        for i, x in zip(self.carried, self.loops(grid, 0, (), contents, carry), strict=True):
            contents[i] = x
        first = len(given)
        return [_cropped(x, m) for x, m in zip(contents[first:first + mapping.num_outputs], mapping.out_mappings,
                                               strict=True)]

    def initial(self, out: int, aval: ShapedArray, given: Sequence[Any]) -> Any:
        source = self.sources.get(out)
        return uninitialized(aval.shape, aval.dtype) if source is None else given[source]

    def loops(self, grid: Sequence[Any], axis: int, point: tuple[Any, ...], contents: Sequence[Any],
              carry: Sequence[Any]) -> Sequence[Any]:
        """Runs the dimensions of the grid from `axis` on."""
        if axis == len(grid):
            return self.step(grid, point, contents, carry)
        if isinstance(grid[axis], int) and grid[axis] == 1:
            return self.loops(grid, axis + 1, (*point, np.int32(0)), contents, carry)

        size = grid[axis]
        if not isinstance(size, int):
            return lax.fori_loop(np.int32(0), size, lambda i, carry: list(
                self.loops(grid, axis + 1, (*point, i), contents, carry)), list(carry))
        # the index as a scanned value: the compiler knows its bounds
        return lax.scan(lambda carry, i: (list(self.loops(grid, axis + 1, (*point, i), contents, carry)), None),
                        list(carry), lax.iota(np.int32, max(size, 0)))[0]

    def step(self, grid: Sequence[Any], point: tuple[Any, ...], contents: Sequence[Any],
             carry: Sequence[Any]) -> Sequence[Any]:
        """Runs the kernel at one point of the grid."""
        now = list(contents)
        for i, x in zip(self.carried, carry, strict=True):
            now[i] = x
        scalars = now[:self.mapping.num_index_operands]
        starts = [None if m is None or m.is_whole else _starts(m, point, scalars) for m in self.blocks]
        seen = [x if m is None or s is None else _block(x, m, s)
                for x, m, s in zip(now, self.blocks, starts, strict=True)]
        outside = [i for i in range(len(grid)) if i not in self.mapping.vmapped_dims]
        after = eval_jaxpr(self.kernel.jaxpr, self.kernel.consts, *(point[i] for i in outside),
                           *(grid[i] for i in outside if self.mapping.grid[i] is None), *seen)
        for i in self.carried:
            m, s = self.blocks[i], starts[i]
            if i in self.changed:
                now[i] = after[i] if m is None or s is None else _with_block(now[i], m, s, after[i])
        return [now[i] for i in self.carried]


def _of_indices(kernel: ClosedJaxpr, mapping: GridMapping) -> ClosedJaxpr:
    """The kernel with its indices, and the grid's sizes that are operands, as leading arguments."""
    jaxpr = kernel.jaxpr
    grid = mapping.kernel_grid
    dynamic = [axis for axis, d in enumerate(grid) if d is None]
    i32 = shaped((), np.dtype(np.int32))
    ids, sizes = [Var(i32) for _ in grid], [Var(i32) for _ in dynamic]
    known: dict[Any, Any] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is program_id_p:
            known[eqn.outvars[0]] = ids[eqn.params["axis"]]
        elif eqn.primitive is num_programs_p:
            known[eqn.outvars[0]] = sizes[dynamic.index(eqn.params["axis"])]
        else:
            if any(type(v) is Var and v in known for v in eqn.invars):
                eqn = eqn.replace(invars=[known.get(v, v) if type(v) is Var else v for v in eqn.invars])
            eqns.append(eqn)
    outvars = [known.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, [*ids, *sizes, *jaxpr.invars], outvars, eqns, None, jaxpr.debug_info),
                       kernel.consts)


def _padding(mapping: BlockMapping) -> list[tuple[int, int, int]]:
    """The elements before, after and between those of an array that make it one of whole blocks."""
    found = []
    for d, size in zip(mapping.block_shape, mapping.array_aval.shape, strict=True):
        low, high = d.padding if isinstance(d, Element) else (0, 0)
        block = block_size(d)
        whole = max(-(-(size + low + high) // block), 1) * block if block else size
        found.append((low, whole - size - low, 0))
    return found


def _padded(x: Any, mapping: BlockMapping) -> Any:
    padding = _padding(mapping)
    if not any(low or high for low, high, _ in padding):
        return x
    aval = mapping.array_aval
    return lax.pad(x, uninitialized((), aval.dtype), padding)


def _cropped(x: Any, mapping: BlockMapping) -> Any:
    padding = _padding(mapping)
    if not any(low or high for low, high, _ in padding):
        return x
    starts = [low for low, _, _ in padding]
    return lax.slice(x, starts, [low + n for low, n in zip(starts, mapping.array_aval.shape, strict=True)])


def _starts(mapping: BlockMapping, point: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
    """Where the block of a point begins."""
    closed = discharge_closed(mapping.index_map_jaxpr)
    indices = eval_jaxpr(closed.jaxpr, closed.consts, *point, *scalars)[:len(mapping.block_shape)]
    return [lax.mul(i, np.asarray(d.block_size, dtypes.dtype(i))) if isinstance(d, Blocked) else i
            for i, d in zip(indices, mapping.block_shape, strict=True)]


def _sizes(mapping: BlockMapping) -> list[int]:
    return [block_size(d) for d in mapping.block_shape]


def _block(x: Any, mapping: BlockMapping, starts: Sequence[Any]) -> Any:
    block = lax.dynamic_slice(x, starts, _sizes(mapping))
    return lax.reshape(block, mapping.ref_shape) if block.shape != mapping.ref_shape else block


def _with_block(x: Any, mapping: BlockMapping, starts: Sequence[Any], block: Any) -> Any:
    return lax.dynamic_update_slice(x, lax.reshape(block, _sizes(mapping)), starts)


