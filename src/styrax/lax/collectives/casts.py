"""What is said of values on the devices of a mesh: that they differ, are equal, or are still to be summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core import hooks
from styrax.core.arrays.mesh import told_by_types
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.settings import config
from styrax.core.tracing.trace import get_aval, state
from styrax.core.trees import tree
from styrax.core.types import avals
from styrax.core.types.effects import Effects, no_effects
from styrax.core.types.manual_axes import Sums
from styrax.core.types.typing import AxisName, PyTree
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData
from styrax.transforms.marks import Mark, marks_of

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


# What is known of values along axes is changed, and nothing else. Of what is equal along them each device has a copy
# from there on, so that their cotangents are told apart.
recast_p = Primitive("recast")
recast_p.declare(movement=True)
recast_p.def_impl(lambda x, **_: x)
batching.axis_names_of[recast_p] = lambda params: params["axes"]
marks_of[recast_p] = lambda name, params: params["to"] if name in params["axes"] else None
_OF_COTANGENTS = {None: None, Mark.VARYING: Mark.VARYING, Mark.UNREDUCED: Mark.REDUCED, Mark.REDUCED: Mark.UNREDUCED}


@recast_p.def_effectful_abstract_eval
def _recast_aval(x: Any, *, axes: tuple, source: Mark | None, to: Mark) -> tuple[Any, Effects]:
    told = {Mark.VARYING: x.vma.difference(axes), Mark.UNREDUCED: x.mat.unreduced.difference(axes),
            Mark.REDUCED: x.mat.reduced.difference(axes)}
    told[to] |= set(axes)
    sums = Sums(told[Mark.UNREDUCED], told[Mark.REDUCED])
    return x.update(sharding=x.given_sharding, vma=told[Mark.VARYING], sums=sums if any(sums) else None), no_effects


def _recast_batch(axis_data: AxisData, args: Any, dims: Any, *, axes: tuple, source: Mark | None, to: Mark) -> Any:
    (x,), (d,) = args, dims
    rest = tuple(n for n in axes if n != axis_data.name)
    if d is None and len(rest) < len(axes):
        x, d = batching.bdim_at_front(x, None, axis_data.size), 0
    return (recast_p.bind(x, axes=rest, source=source, to=to) if rest else x), d


def _recast_transpose(ct: Any, x: Any, *, axes: tuple, source: Mark | None, to: Mark) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ct]
    before = _OF_COTANGENTS[source]
    if before is not None:
        return [recast_p.bind(ct, axes=axes, source=_OF_COTANGENTS[to], to=before)]
    return [summed(ct, axes)]


rules.fancy_batchers[recast_p] = _recast_batch
rules.loops[recast_p] = rules.same_value
rules.stablehlos[recast_p] = lambda _, x, **params: x
ad.deflinear2(recast_p, _recast_transpose)


def recast(x: Any, axes: Sequence[AxisName], source: Mark | None, to: Mark) -> Any:
    """A value of which something else is known along axes; `source` None: it is equal along them."""
    return recast_p.bind(x, axes=tuple(axes), source=source, to=to) if axes else x


def summed(x: Any, axes: Sequence[AxisName]) -> Any:
    """The sum of a value that is still to be summed along axes."""
    x = recast(x, axes, Mark.UNREDUCED, Mark.VARYING)
    return hooks.psum_invariant_p.bind(x, axes=tuple(axes), axis_index_groups=None)


def known_along(aval: Any, name: AxisName) -> Mark | None:
    """What a type tells along an axis; None: values are equal along it."""
    for axes, mark in ((aval.vma, Mark.VARYING), (aval.mat.unreduced, Mark.UNREDUCED),
                       (aval.mat.reduced, Mark.REDUCED)):
        if name in axes:
            return mark
    return None


def varying(x: Any, axes: Sequence[AxisName], spread: bool = False) -> Any:
    """A value that varies along axes, as far as types tell of it."""
    aval = get_aval(x)
    missing = tuple(n for n in told_by_types(axes) if n not in aval.vma)
    for kind, told in zip(("unreduced", "reduced"), aval.sums or (), strict=False):
        if told.intersection(missing):
            raise ValueError(f"pvary cannot accept args which are {kind}. Got {aval.str_short(True)} and "
                             f"axes={set(missing)}")
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
    return [x if t == every else varying(_told_apart(x, axes), axes) for x, t in zip(args, told, strict=True)]


def _told_apart(x: Any, axes: Sequence[AxisName]) -> Any:
    """A value that varies along those axes along which it was summed."""
    sums = get_aval(x).sums
    return x if sums is None else recast(x, [n for n in axes if n in sums.reduced], Mark.REDUCED, Mark.VARYING)


_CASTS: dict[Mark | None, tuple[str, ...]] = {
    None: ("varying", "reduced"), Mark.VARYING: ("unreduced",), Mark.REDUCED: ("varying",), Mark.UNREDUCED: ()}


def pcast(x: PyTree, axis_name: AxisName | tuple[AxisName, ...], *, to: str) -> PyTree:
    """The same values, said to vary along axes of a `shard_map`'s mesh, or to be equal or unsummed along them.

    Args:
      x: a tree of arrays.
      axis_name: the axes.
      to: "varying", "reduced" or "unreduced".

    Returns:
      the same values.

    Raises:
      ValueError: another `to`, an axis that none of the maps around has, or values of which something else is said.
      NameError: there is no map around, in a program.
      TypeError: axes that are neither a name nor a tuple.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: {'varying', 'reduced', 'unreduced'}")
    if axis_name is None:
        axis_name = ()
    if not isinstance(axis_name, (tuple, str)):
        raise TypeError(f"{axis_name=} must be a tuple or a str. Got {axis_name}")
    names: tuple[Any, ...] = _names(axis_name)
    if to == "varying":
        names = told_by_types(names)
    unbound = [name for name in names if name not in state.axis_sizes]
    if unbound and to == "unreduced":
        raise ValueError(f"Unsupported pcast from=invarying, to={to!r}")
    if unbound:
        what = "pvary" if to == "varying" else "preduced"
        if state.axis_sizes or state.trace.is_eval:
            raise ValueError(f"{what} should be called under jax.shard_map.")
        raise NameError(f"Found an unbound axis name: {unbound[0]}. To fix this, please call {what} under "
                        "`jax.shard_map`.")
    if not avals.manual:
        return x

    def one(leaf: Any) -> Any:
        known = {known_along(get_aval(leaf), name) for name in names}
        if len(known) > 1 and to != "varying":
            raise ValueError("jax.lax.pcast can only accept axis_name which corresponds to one of varying, unreduced, "
                             f"reduced or invarying state of the input. Got input type: {get_aval(leaf)}, axes: "
                             f"{names}")
        if not known:
            return leaf
        source = Mark.VARYING if Mark.VARYING in known else known.pop()
        if to not in _CASTS[source]:
            raise ValueError(f"Unsupported pcast from={'invarying' if source is None else source.value}, to={to!r}")
        return varying(leaf, names, spread=True) if source is None and to == "varying" else recast(
            leaf, names, source, Mark(to))

    return tree.tree_map(one, x)


__all__ = ["known_along", "pcast", "pvary_p", "recast", "recast_p", "stage_p", "summed", "vary_alike", "varying"]
