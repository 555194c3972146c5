"""What transformations do to kernels' calls: forward mode, and batching, which adds a dimension to the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from ...core.hooks import lax
from ...core.programs import rules
from ...core.programs.jaxpr import ClosedJaxpr, Jaxpr, Var
from ...core.types.avals import ShapedArray, shaped
from ...transforms.batch import AxisData, broadcast, moveaxis
from ...transforms.jvp import jvp_jaxpr
from ...transforms.zeros import Zero, instantiate_zeros
from .calls import pallas_call_p
from .grids import BlockMapping, GridMapping
from .specs import squeezed

# Forward mode: tangents are further operands and results, with the blocks of what they belong to


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, grid_mapping: GridMapping,
         input_output_aliases: tuple[tuple[int, int], ...], out_avals: Sequence[ShapedArray], **params: Any) -> Any:
    if grid_mapping.num_dynamic_grid_bounds:
        raise NotImplementedError("forward mode of a kernel on a grid whose size is an operand")
    if grid_mapping.num_index_operands:
        raise NotImplementedError("forward mode of a kernel with scalars that are fetched before")
    if input_output_aliases:
        raise NotImplementedError("JVP with aliasing not supported.")
    nonzero = [type(t) is not Zero for t in tangents]
    ins, outs = grid_mapping.in_mappings, grid_mapping.out_mappings
    out_nonzero = [a.to_tangent_aval().dtype == a.dtype for a in out_avals]
    scratch_nonzero = [a.to_tangent_aval().dtype == a.dtype for a in grid_mapping.scratch_avals]
    tangent_of = [*nonzero, *out_nonzero, *scratch_nonzero]
    new, _ = jvp_jaxpr(jaxpr, tangent_of, False)
    n = len(tangent_of)
    refs, dots = new.jaxpr.invars[:n], iter(new.jaxpr.invars[n:])
    dot_of = [next(dots) if nz else None for nz in tangent_of]
    groups = (len(ins), len(outs), len(grid_mapping.scratch_avals))
    order: list[Var] = []
    at = 0
    for size in groups:
        order += refs[at:at + size]
        order += [v for v in dot_of[at:at + size] if v is not None]
        at += size
    old = new.jaxpr
    closed = ClosedJaxpr(Jaxpr(old.constvars, order, old.outvars, old.eqns, None, old.debug_info), new.consts)
    mapping = grid_mapping.replace(
        block_mappings=(*ins, *_chosen(ins, nonzero), *outs, *_chosen(outs, out_nonzero)),
        scratch_avals=(*grid_mapping.scratch_avals, *_chosen(grid_mapping.scratch_avals, scratch_nonzero)),
        num_inputs=len(ins) + sum(nonzero), num_outputs=len(outs) + sum(out_nonzero))
    results = pallas_call_p.bind(
        *primals, *(instantiate_zeros(t) for t, nz in zip(tangents, nonzero, strict=True) if nz), jaxpr=closed,
        grid_mapping=mapping, input_output_aliases=(), out_avals=(*out_avals, *_chosen(out_avals, out_nonzero)),
        **params)
    given = iter(results[len(outs):])
    return results[:len(outs)], [next(given) if nz else Zero.from_primal_value(x)
                                 for x, nz in zip(results, out_nonzero, strict=False)]


def _chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, f in zip(items, flags, strict=True) if f]


def _linearize(nonzero: Sequence[bool], *primals: Any, **params: Any) -> NoReturn:
    """Kernels write, and what they write cannot be taken apart into what is linear and what is not."""
    raise ValueError(
        "Linearization failed to produce known values for all output primals: kernels have no reverse mode. Give the "
        "function that calls the kernel a derivative with custom_vjp, whose rules can be kernels, too.")


# Batching


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, grid_mapping: GridMapping,
           input_output_aliases: tuple[tuple[int, int], ...], out_avals: Sequence[ShapedArray], **params: Any) -> Any:
    size = axis_data.size
    first = grid_mapping.num_dynamic_grid_bounds + grid_mapping.num_index_operands
    if any(d is not None for d in dims[:first]):
        return _one_by_one(args, dims, grid_mapping=grid_mapping, input_output_aliases=input_output_aliases,
                           out_avals=out_avals, **params)
    args, dims = list(args), list(dims)
    for given, _ in input_output_aliases:
        i = given + grid_mapping.num_dynamic_grid_bounds
        if dims[i] is None:
            args[i], dims[i] = broadcast(args[i], size, 0), 0
    ins = [_mapped(m, d, size, len(grid_mapping.index_avals))
           for m, d in zip(grid_mapping.in_mappings, dims[first:], strict=True)]
    outs = [_mapped(m, 0, size, len(grid_mapping.index_avals)) for m in grid_mapping.out_mappings]
    mapping = grid_mapping.replace(
        grid=(size, *grid_mapping.grid), block_mappings=(*ins, *outs),
        grid_names=None if grid_mapping.grid_names is None else (axis_data.name, *grid_mapping.grid_names),
        vmapped_dims=(0, *(d + 1 for d in grid_mapping.vmapped_dims)))
    results = pallas_call_p.bind(
        *args, grid_mapping=mapping, input_output_aliases=input_output_aliases,
        out_avals=tuple(shaped((size, *a.shape), a.dtype) for a in out_avals), **params)
    return results, [0] * len(results)


def _mapped(mapping: BlockMapping, dim: int | None, size: int, num_scalars: int) -> BlockMapping:
    """The blocks of an array with a mapped dimension, or of one that is the same for all examples, on a grid with one
    more dimension in front."""
    closed = mapping.index_map_jaxpr
    jaxpr = closed.jaxpr
    example = Var(shaped((), np.dtype(np.int32)))
    outvars = list(jaxpr.outvars)
    if dim is not None:
        outvars.insert(dim, example)
    new = ClosedJaxpr(Jaxpr(jaxpr.constvars, [example, *jaxpr.invars], outvars, jaxpr.eqns, None, jaxpr.debug_info),
                      closed.consts)
    if dim is None:
        return replace(mapping, index_map_jaxpr=new)
    shape, blocks = list(mapping.array_aval.shape), list(mapping.block_shape)
    shape.insert(dim, size)
    blocks.insert(dim, squeezed)
    return replace(mapping, index_map_jaxpr=new, block_shape=tuple(blocks),
                   array_aval=mapping.array_aval.update(shape=tuple(shape), sharding=None))


def _one_by_one(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    """Where the examples differ in their grids or in the scalars fetched before: a loop over them."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def one(_: None, given: Sequence[Any]) -> tuple[None, list[Any]]:
        examples = iter(given)
        return None, pallas_call_p.bind(*(x if d is None else next(examples) for x, d in zip(args, dims, strict=True)),
                                        **params)

    _, results = lax.scan(one, None, mapped)
    return results, [0] * len(results)


rules.jvps[pallas_call_p] = _jvp
rules.linearizations[pallas_call_p] = _linearize
rules.fancy_batchers[pallas_call_p] = _batch
