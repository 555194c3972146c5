"""Mapped axes by name: their sizes, where an example stands along them, and primitives that work over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.mesh import told_by_types
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.settings.config import states
from styrax.core.tracing.trace import state
from styrax.core.types import avals
from styrax.core.types.avals import shaped
from styrax.core.types.effects import Effects, NamedAxisEffect
from styrax.transforms import batching
from styrax.transforms.batching import AxisData

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

AxisName = Hashable


def axis_size(axis_name: AxisName) -> int:
    """The size of a mapped axis, or the product of those of several.

    Args:
      axis_name: name of the axis, or a tuple of names.

    Returns:
      a Python int.

    Raises:
      NameError: for a name that is not in scope.
      ValueError: for a position: the numbers that sizes are counted by have no axes.
    """
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    size = 1
    for name in names:
        try:
            size *= state.axis_sizes[name]
        except (KeyError, TypeError):
            if isinstance(name, int):
                raise ValueError(f"axis {name} is out of bounds for array of dimension 0") from None
            raise NameError(f"unbound axis name: {name}") from None
    return size


def _names(axis_name: Any) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def no_collectives() -> AbstractContextManager[None]:
    """A context in which devices do not communicate: what would have them do so is refused when it is traced.

    The name is of newer releases of JAX than those that this one is measured by; this is what it means here.
    Collectives over named axes are refused, and `reshard` of an array that is cut to begin with. What stays allowed
    needs no other device's data: to cut an array of which each device has all.

    Raises:
      ValueError: inside, by what communicates.
    """
    return states["styrax_no_collectives"](True)


def check_communication(what: str) -> None:
    """ValueError inside `no_collectives`."""
    if states["styrax_no_collectives"].value:
        raise ValueError(f"{what} has devices communicate, which `jax.sharding.no_collectives` rules out here")


def _check_bound(names: Sequence[Any], what: str) -> None:
    for name in names:
        if not isinstance(name, int) and name not in state.axis_sizes:
            raise NameError(f"Found an unbound axis name: {name}. To fix this, please call {what} under "
                            "`jax.shard_map`.")


def _effects(names: Sequence[Any]) -> Effects:
    return frozenset(NamedAxisEffect(n) for n in names if not isinstance(n, int))


def _groups(groups: Any) -> Any:
    return None if groups is None else tuple(tuple(map(int, g)) for g in groups)


class Communication(Primitive):
    """A primitive whose results need what other devices have."""

    def bind(self, *args: Any, **params: Any) -> Any:
        check_communication(self.name)
        return super().bind(*args, **params)


def _collective(name: str, names_of: Callable[[dict[str, Any]], Sequence[Any]]) -> Primitive:
    """A primitive that works over named axes."""
    primitive = Primitive(name) if name == "axis_index" else Communication(name)
    batching.axis_names_of[primitive] = lambda params: [n for n in names_of(params) if not isinstance(n, int)]

    def loops(b: Builder, *xs: Any, **params: Any) -> None:
        refuse_names(name, names_of(params))
        raise NotImplementedError(f"Evaluation rule for '{name}' not implemented")

    rules.loops[primitive] = loops  # a mapped axis has become a dimension, and no axis is left to name
    return primitive


def refuse_names(name: str, axes: Sequence[Any]) -> None:
    """NameError for a named axis where only positions can be meant."""
    named = [a for a in axes if not isinstance(a, int)]
    if named:
        raise NameError(f"unbound axis name: {named[0]} in {name}")


def _group_size(groups: Any, size: int) -> int:
    return size if groups is None else len(groups[0])


# Where an example is
axis_index_p = _collective("axis_index", lambda params: (params["axis_name"],))


@axis_index_p.def_effectful_abstract_eval
def _axis_index_aval(*, axis_name: Any) -> tuple[Any, Effects]:
    _check_bound((axis_name,), "axis_index")
    aval = shaped((), np.dtype(np.int32))
    return (aval.update(vma=frozenset((axis_name,))) if avals.manual else aval), _effects((axis_name,))


def _axis_index_batch(axis_data: AxisData, args: Any, dims: Any, *, axis_name: Any) -> Any:
    return lax.iota(np.int32, axis_data.size), 0


rules.fancy_batchers[axis_index_p] = _axis_index_batch


def axis_index(axis_name: AxisName) -> Array:
    """The position of the example along a mapped axis.

    Args:
      axis_name: name of the axis, or a tuple of names: then the position in the product of the axes, the last one
        varying fastest.

    Returns:
      an int32 scalar.

    Raises:
      NameError: for an axis that is not mapped.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.vmap(lambda x: x + jax.lax.axis_index('i'), axis_name='i')(jnp.array([10, 20]))
      Array([10, 21], dtype=int32)
    """
    if not isinstance(axis_name, (tuple, list)):
        _check_bound((axis_name,), "axis_index")
        if isinstance(axis_name, int) and axis_name not in state.axis_sizes:
            raise NameError(f"unbound axis name: {axis_name}")
        if avals.manual and not told_by_types((axis_name,)):
            return lax.full((), 0, np.int32)
        return axis_index_p.bind(axis_name=axis_name)
    index: Any = np.int32(0)
    stride = 1
    for name in reversed(axis_name):
        index = lax.add(index, lax.mul(axis_index(name), np.int32(stride)))
        stride *= axis_size(name)
    return index
