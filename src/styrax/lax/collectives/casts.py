"""What is said of values on the devices of a mesh: that they differ, are equal, or are still to be summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core import hooks
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.settings import config
from styrax.core.tracing.trace import get_aval, state
from styrax.core.trees import tree
from styrax.core.types import avals
from styrax.core.types.effects import Effects, no_effects
from styrax.core.types.typing import AxisName, PyTree
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData

from .named_axes import _names

stage_p = Primitive("stage")  # a value that is to be written down where it is used
stage_p.def_impl(lambda x: x)
stage_p.def_abstract_eval(lambda x: x)
rules.loops[stage_p] = rules.same_value
rules.stablehlos[stage_p] = lambda _, x: x
ad.deflinear2(stage_p, lambda ct, _: [ct])
batching.defvectorized(stage_p)
rules.stagings[stage_p] = lambda trace, tracers, params: tracers[0]


# Values that are equal along axes become ones that may differ: the derivative is summed along these axes. While a
# program runs for all devices at once such a value is not repeated, unless `spread` asks for it: then its type tells
# from there on that it varies.
pvary_p = Primitive("pvary")
pvary_p.declare(movement=True, printed=lambda params: {"axes": params["axes"]})
pvary_p.def_impl(lambda x, **_: x)
batching.axis_names_of[pvary_p] = lambda params: params["axes"]


@pvary_p.def_effectful_abstract_eval
def _pvary_aval(x: Any, *, axes: tuple, spread: bool) -> tuple[Any, Effects]:
    return x.update(sharding=x.given_sharding, vma=x.vma | set(axes)), no_effects


def _pvary_batch(axis_data: AxisData, args: Any, dims: Any, *, axes: tuple, spread: bool) -> Any:
    (x,), (d,) = args, dims
    rest = tuple(n for n in axes if n != axis_data.name)
    if spread and d is None and len(rest) < len(axes):
        x, d = batching.bdim_at_front(x, None, axis_data.size), 0
    return (pvary_p.bind(x, axes=rest, spread=spread) if rest else x), d


def _pvary_transpose(ct: Any, x: Any, *, axes: tuple, spread: bool) -> list[Any]:
    return [ct if type(ct) is ad.Zero else hooks.psum_invariant_p.bind(ct, axes=axes, axis_index_groups=None)]


rules.fancy_batchers[pvary_p] = _pvary_batch
rules.loops[pvary_p] = rules.same_value
rules.stablehlos[pvary_p] = lambda _, x, **params: x
ad.deflinear2(pvary_p, _pvary_transpose)


def varying(x: Any, axes: Sequence[AxisName], spread: bool = False) -> Any:
    """A value that varies along axes, as far as types tell of it."""
    missing = tuple(n for n in axes if n not in get_aval(x).vma)
    return pvary_p.bind(x, axes=missing, spread=spread) if missing else x


def vary_alike(name: str, args: Sequence[Any]) -> Sequence[Any]:
    """Operands of one operation, all of which vary along the axes along which one does. ValueError where the setting
    `jax_auto_pcast` is off and they do not."""
    told: list[frozenset[AxisName]] = [getattr(get_aval(x), "vma", frozenset()) for x in args]
    every: frozenset[AxisName] = frozenset().union(*told)
    if not every or all(t == every for t in told):
        return args
    if not config.auto_pcast.value:
        raise ValueError(f"Primitive {name} requires varying manual axes to match, but got {told}. As a temporary "
                         "workaround pass the check_vma=False argument to `jax.shard_map`")
    axes = [n for n in state.axis_sizes if n in every]
    return [x if t == every else varying(x, axes) for x, t in zip(args, told, strict=True)]


def pcast(x: PyTree, axis_name: AxisName | tuple[AxisName, ...], *, to: str) -> PyTree:
    """The same values, said to vary along axes of a `shard_map`'s mesh, or to be equal or unsummed along them.

    Args:
      x: a tree of arrays.
      axis_name: the axes.
      to: "varying", "reduced" or "unreduced".

    Returns:
      the same values.

    Raises:
      ValueError: another `to`, an axis that no `shard_map` around has, or values of which something else is said.
      TypeError: axes that are neither a name nor a tuple.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: {'varying', 'reduced', 'unreduced'}")
    if not isinstance(axis_name, (tuple, str)):
        raise TypeError(f"{axis_name=} must be a tuple or a str. Got {axis_name}")
    names: tuple[Any, ...] = _names(axis_name)
    if any(name not in state.axis_sizes for name in names):
        raise ValueError(f"{'pvary' if to == 'varying' else 'pcast'} should be called under jax.shard_map.")
    if not avals.manual:
        return x

    def one(leaf: Any) -> Any:
        varies = {name in get_aval(leaf).vma for name in names}
        if len(varies) > 1 and to != "varying":
            raise ValueError("jax.lax.pcast can only accept axis_name which corresponds to one of varying, unreduced, "
                             f"reduced or invarying state of the input. Got input type: {get_aval(leaf)}, axes: "
                             f"{names}")
        if varies and (to == "unreduced") != (True in varies):
            raise ValueError(f"Unsupported pcast from={'varying' if True in varies else 'invarying'}, to={to!r}")
        return varying(leaf, names, spread=True) if to == "varying" else leaf

    return tree.tree_map(one, x)


__all__ = ["pcast", "pvary_p", "stage_p", "vary_alike", "varying"]
