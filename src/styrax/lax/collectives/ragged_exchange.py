"""Exchanges of parts of differing sizes along a named axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types.effects import Effects
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData

from ..casting import as_array
from .communication import all_to_all
from .named_axes import AxisName, _check_bound, _collective, _effects, _groups, _names

ragged_all_to_all_p = _collective("ragged_all_to_all", lambda params: params["axis_name"])


@ragged_all_to_all_p.def_effectful_abstract_eval
def _aval(operand: Any, output: Any, *numbers: Any, axis_name: tuple, axis_index_groups: Any) -> tuple[Any, Effects]:
    _check_bound(axis_name, "ragged_all_to_all")
    return output, _effects(axis_name)


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, axis_name: tuple,
           axis_index_groups: Any) -> Any:
    if axis_data.name not in axis_name or len(axis_name) != 1 or axis_index_groups is not None:
        raise NotImplementedError("ragged_all_to_all under vmap along another axis, or in groups")
    size = axis_data.size
    operand, output, starts, sizes, targets, _ = (
        as_array(batching.bdim_at_front(x, d, size)) for x, d in zip(args, dims, strict=True))
    length, room = operand.shape[1], output.shape[1]
    place = lax.iota(np.int32, room)

    def receive(me: Any, mine: Any) -> Any:
        """What one example gets of each of the others, one after the other."""
        def take(sender: Any, out: Any) -> Any:
            number = lambda table: lax.convert_element_type(table[sender, me], np.int32)
            offset = lax.sub(place, number(targets))
            here = lax.bitwise_and(lax.ge(offset, np.int32(0)), lax.lt(offset, number(sizes)))
            source = lax.clamp(np.int32(0), lax.add(offset, number(starts)), np.int32(max(length - 1, 0)))
            found = operand[sender][source]
            here = lax.broadcast_in_dim(here, out.shape, (0,))
            return lax.select(here, found, out)

        return lax.fori_loop(0, size, take, mine)

    if not length or not room:
        return output, 0
    return lax.map(lambda pair: receive(*pair), (lax.iota(np.int32, size), output)), 0


rules.fancy_batchers[ragged_all_to_all_p] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    out = ragged_all_to_all_p.bind(*primals, **params)
    if all(type(t) is ad.Zero for t in tangents[:2]):
        return out, ad.Zero.from_primal_value(out)
    moving = [ad.instantiate_zeros(t) for t in tangents[:2]]
    return out, ragged_all_to_all_p.bind(*moving, *primals[2:], **params)


def _transpose(ct: Any, operand: Any, output: Any, starts: Any, sizes: Any, targets: Any, received: Any, *,
               axis_name: tuple, axis_index_groups: Any) -> list[Any]:
    """Each part goes back where it came from; what was not written over has its cotangent from the result."""
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval) if ad.is_undefined_primal(x) else None
                for x in (operand, output)] + [None] * 4
    params = dict(axis_name=axis_name, axis_index_groups=axis_index_groups)
    turned = [all_to_all(x, axis_name, 0, 0, tiled=True) for x in (starts, targets)]
    back = lost = None
    if ad.is_undefined_primal(operand):
        aval = operand.aval
        back = ragged_all_to_all_p.bind(ct, lax.full(aval.shape, 0, aval.dtype), turned[1], received, turned[0], sizes,
                                        **params)
    if ad.is_undefined_primal(output):
        aval = operand.aval if ad.is_undefined_primal(operand) else get_aval(operand)
        written = ragged_all_to_all_p.bind(
            lax.full(aval.shape, 1, np.int32), lax.full(output.aval.shape, 0, np.int32), starts, sizes, targets,
            received, **params)
        lost = lax.select(lax.eq(written, lax.full(written.shape, 0, np.int32)), ct, lax.full_like(ct, 0))
    return [back, lost, None, None, None, None]


rules.jvps[ragged_all_to_all_p] = _jvp
rules.transposes[ragged_all_to_all_p] = _transpose


def ragged_all_to_all(operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike, send_sizes: ArrayLike,
                      output_offsets: ArrayLike, recv_sizes: ArrayLike, *, axis_name: AxisName | Sequence[AxisName],
                      axis_index_groups: Sequence[Sequence[int]] | None = None) -> Array:
    """Sends a part of an array to each position of a named axis; the parts may differ in size.

    Args:
      operand: what is sent, parts of its leading axis.
      output: what the received parts are written into.
      input_offsets, send_sizes: by receiver, where the part begins in `operand` and how long it is.
      output_offsets: by receiver, where the part begins in its `output`.
        Derivatives that are taken inside of the map take it that no element is sent twice.
      recv_sizes: by sender, how long the part is that comes from it.
      axis_name: the axis.
      axis_index_groups: groups of positions that exchange among themselves.

    Returns:
      `output` with the received parts.

    Raises:
      ValueError: offsets and sizes are no vectors of integers of one length. NameError: there is no such axis.
    """
    numbers = (input_offsets, send_sizes, output_offsets, recv_sizes)
    avals = [get_aval(x) for x in numbers]
    for name, aval in zip(("input_offsets", "send_sizes", "output_offsets", "recv_sizes"), avals, strict=True):
        if not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"ragged_all_to_all {name} must be integer type.")
        if len(aval.shape) != 1 or aval.shape[0] < 1:
            raise ValueError(f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got shape "
                             f"{aval.shape}")
    if len({a.shape for a in avals}) != 1:
        raise ValueError(f"ragged_all_to_all offsets and sizes must have one shape, got {[a.shape for a in avals]}")
    return ragged_all_to_all_p.bind(operand, output, *numbers, axis_name=_names(axis_name),
                                    axis_index_groups=_groups(axis_index_groups))


__all__ = ["ragged_all_to_all", "ragged_all_to_all_p"]
