"""Sends and receives between positions of a named axis, ordered by tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core.arrays.array import Array
from styrax.core.arrays.tokens import Token
from styrax.core.programs import rules
from styrax.core.trees import tree
from styrax.core.types.avals import AbstractToken, ShapedArray, abstract_token
from styrax.core.types.effects import Effects
from styrax.core.types.typing import AxisName, PyTree, SupportsShape
from styrax.transforms.batching import AxisData

from .named_axes import _check_bound, _collective, _effects, _names

psend_p = _collective("psend", lambda params: params["axis_name"])
precv_p = _collective("precv", lambda params: params["axis_name"])

@psend_p.def_effectful_abstract_eval
def _psend_aval(*_: Any, axis_name: tuple, perm: tuple) -> tuple[AbstractToken, Effects]:
    _check_bound(axis_name, "psend")
    return abstract_token, _effects(axis_name)


@precv_p.def_effectful_abstract_eval
def _precv_aval(*_: Any, out_shape: ShapedArray, axis_name: tuple, perm: tuple) -> tuple[ShapedArray, Effects]:
    _check_bound(axis_name, "precv")
    return out_shape, _effects(axis_name)


def _refuse(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], **_: Any) -> Any:
    raise NotImplementedError(f"a send or a receive along {axis_data.name!r}: that takes several devices")


rules.fancy_batchers[psend_p] = rules.fancy_batchers[precv_p] = _refuse


def _pairs(perm: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(a), int(b)) for a, b in perm)


def psend(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Token:
    """Sends an array along a named axis; `precv` with the token that it gives receives.

    Only accelerators that send to one another run it: elsewhere it raises NotImplementedError.

    Args:
      x: an array.
      axis_name: the axis, of a `shard_map`.
      perm: pairs of the positions that send and receive.

    Returns:
      a token.
    """
    leaves = tree.tree_leaves(x)
    return psend_p.bind(*leaves, axis_name=_names(axis_name), perm=_pairs(perm))


def precv(token: Token, out_shape: SupportsShape, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Array:
    """Receives what a `psend` along a named axis sent.

    Args:
      token: what comes before, as `psend` and `create_token` give it.
      out_shape: the shape and dtype of what is received.
      axis_name, perm: as in `psend`.

    Returns:
      an array of the shape and dtype of `out_shape`.
    """
    aval = ShapedArray(tuple(out_shape.shape), out_shape.dtype)
    return precv_p.bind(token, out_shape=aval, axis_name=_names(axis_name), perm=_pairs(perm))


__all__ = ["precv", "precv_p", "psend", "psend_p"]
