"""What is said of values on the devices of a mesh: that they differ, are equal, or are still to be summed."""

from __future__ import annotations

from typing import Any

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import state
from styrax.core.types.typing import AxisName, PyTree
from styrax.transforms import ad, batching

from .named_axes import _names

stage_p = Primitive("stage")  # a value that is to be written down where it is used
stage_p.def_impl(lambda x: x)
stage_p.def_abstract_eval(lambda x: x)
rules.loops[stage_p] = rules.same_value
rules.stablehlos[stage_p] = lambda _, x: x
ad.deflinear2(stage_p, lambda ct, _: [ct])
batching.defvectorized(stage_p)
rules.stagings[stage_p] = lambda trace, tracers, params: tracers[0]


def pcast(x: PyTree, axis_name: AxisName | tuple[AxisName, ...], *, to: str) -> PyTree:
    """The same values, said to vary along axes of a `shard_map`'s mesh, or to be equal or unsummed along them.

    Args:
      x: a tree of arrays.
      axis_name: the axes.
      to: "varying", "reduced" or "unreduced".

    Returns:
      `x` itself.

    Raises:
      ValueError: another `to`, or an axis that no `shard_map` around has.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: {'varying', 'reduced', 'unreduced'}")
    names: tuple[Any, ...] = _names(axis_name)
    if any(name not in state.axis_sizes for name in names):
        raise ValueError("pcast should be called under jax.shard_map.")
    return x  # the devices of a mesh are one: there is nothing in which they could differ


__all__ = ["pcast", "stage_p"]
