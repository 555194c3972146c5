"""Grids and blocks with everything known: what a call is compiled from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...core.programs.jaxpr import ClosedJaxpr
from ...core.types.avals import AbstractRef, ShapedArray, shaped
from .specs import BlockDim, Element, Squeezed, block_size


@dataclass(frozen=True)
class BlockMapping:
    """The blocks of one operand or result.

    Attributes:
      block_shape: the size along each dimension of the array.
      array_aval: the array's type.
      index_map_jaxpr: program of the grid's indices and references to the scalars fetched before, that gives an index
        along each dimension.
      memory_space, pipeline_mode: as the `BlockSpec` says.
      origin: where the array stands among the operands or results, for messages.
    """

    block_shape: tuple[BlockDim, ...]
    array_aval: ShapedArray
    index_map_jaxpr: ClosedJaxpr
    memory_space: Any
    pipeline_mode: Any
    origin: str

    @property
    def ref_shape(self) -> tuple[int, ...]:
        """The shape that the kernel sees."""
        return tuple(block_size(d) for d in self.block_shape if not isinstance(d, Squeezed))

    @property
    def ref_aval(self) -> AbstractRef:
        return AbstractRef(shaped(self.ref_shape, self.array_aval.dtype), self.memory_space)

    @property
    def is_whole(self) -> bool:
        """Whether the array is one block."""
        return not any(isinstance(d, Squeezed) or isinstance(d, Element) and any(d.padding)
                       for d in self.block_shape) and self.ref_shape == self.array_aval.shape

    def __repr__(self) -> str:
        return f"BlockMapping(block_shape={self.block_shape})"


@dataclass(frozen=True)
class GridMapping:
    """A grid with the blocks of all operands and results.

    Attributes:
      grid: sizes; None for one that is an operand.
      vmapped_dims: dimensions that `vmap` has added, which kernels do not count.
      block_mappings: of the operands (without the scalars fetched before), then of the results.
      index_avals: types of the references to the scalars fetched before.
      scratch_avals: types of the references to scratch memory.
      num_inputs, num_outputs: how many operands and results there are.
    """

    grid: tuple[int | None, ...]
    grid_names: tuple[Any, ...] | None
    vmapped_dims: tuple[int, ...]
    block_mappings: tuple[BlockMapping, ...]
    index_avals: tuple[AbstractRef, ...]
    scratch_avals: tuple[AbstractRef, ...]
    num_inputs: int
    num_outputs: int

    @property
    def num_dynamic_grid_bounds(self) -> int:
        return sum(d is None for d in self.grid)

    @property
    def num_index_operands(self) -> int:
        return len(self.index_avals)

    @property
    def kernel_grid(self) -> tuple[int | None, ...]:
        """The grid as the kernel counts it."""
        return tuple(d for i, d in enumerate(self.grid) if i not in self.vmapped_dims)

    @property
    def in_mappings(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[:self.num_inputs]

    @property
    def out_mappings(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[self.num_inputs:]

    def replace(self, **changes: Any) -> GridMapping:
        return replace(self, **changes)

    def __repr__(self) -> str:
        grid = tuple(_Dynamic() if d is None else d for d in self.grid)
        return f"GridMapping(grid={grid}, block_mappings={self.block_mappings})"


class _Dynamic:
    """A size that is known only when the kernel runs, as jaxprs print it."""

    def __repr__(self) -> str:
        return "DynamicGridDim"
