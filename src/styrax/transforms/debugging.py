"""Looking into running programs: `debug.print`, `debug.callback` and what is built on them.

These have no results, so that nothing can depend on them, and transformations leave them where they are: under
`grad` they see the primal values, under `vmap` they run once for each element.
"""

from __future__ import annotations

import logging
import string
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs.named import named

from ..core import hooks
from ..core.arrays.by_device import plainly
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing import source
from ..core.tracing.trace import valid_jaxtype
from ..core.trees import tree
from ..core.types.effects import (
    Effect,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    lowerable_effects,
    ordered_effects,
    per_device_effects,
    remat_allowed_effects,
)
from ..core.types.physical import physicals
from ..core.types.typing import PyTree
from .batch import AxisData, calls_of_devices
from .callbacks import as_arrays, told

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder

_logger = logging.getLogger("jax._src.debugging")  # the name by which tools know JAX's


class DebugEffect(Effect):
    """Somebody looks at a value, in any order."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Debug"


class OrderedDebugEffect(Effect):
    """Somebody looks at a value, in the order of the program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OrderedDebug"


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()

for _kind in (DebugEffect, OrderedDebugEffect):
    for _set in (lowerable_effects, control_flow_allowed_effects, custom_derivatives_allowed_effects,
                 remat_allowed_effects, per_device_effects):
        _set.add_type(_kind)
ordered_effects.add_type(OrderedDebugEffect)

debug_callback_p = Primitive("debug_callback", multiple_results=True)
debug_print_p = Primitive("debug_print", multiple_results=True)


class _Split:
    """Arguments of which some are arrays: takes those out and puts them back."""

    __slots__ = ("dynamic", "in_tree", "static")

    def __init__(self, args: tuple, kwargs: dict[str, Any]):
        leaves, self.in_tree = tree.tree_flatten((args, kwargs))
        self.static = tuple((i, x) for i, x in enumerate(leaves) if not valid_jaxtype(x))
        fixed = {i for i, _ in self.static}
        self.dynamic = [x for i, x in enumerate(leaves) if i not in fixed]


def _join(in_tree: Any, static: Sequence[tuple[int, Any]], dynamic: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
    leaves = list(dynamic)
    for i, x in static:
        leaves.insert(i, x)
    return tree.tree_unflatten(in_tree, leaves)


def debug_callback(callback: Callable[..., None] | None = None, *args: PyTree, ordered: bool = False,
                   partitioned: bool = False, **kwargs: PyTree) -> Callable[..., Any] | None:
    """Calls a Python function with the values that a program computes, for debugging.

    Args:
      callback: the function; what it returns is ignored. Without it, a function of the same name that takes it first.
      args, kwargs: its arguments: trees of arrays, and other values, which are passed as they are.
      ordered: whether the calls happen in the order of the program.
      partitioned: whether it sees the parts of arrays that are spread over devices, rather than whole ones.

    Raises:
      TypeError: `callback` is not callable. JaxRuntimeError: it raised in a compiled program.

    Example:
      >>> import styrax as jax
      >>> jax.debug.callback(print, 3)
      3
    """
    if callback is None:
        return lambda callback, *a, **k: debug_callback(callback, *a, ordered=ordered, partitioned=partitioned, **k)
    if not callable(callback):
        raise TypeError("first argument to jax.debug.callback must be callable, but got an object of type "
                        f"{type(callback)}")
    split = _Split(args, kwargs)

    def flat_callback(*dynamic: Any) -> tuple:
        given, named = _join(split.in_tree, split.static, dynamic)
        callback(*given, **named)
        return ()

    named(flat_callback, getattr(callback, "__name__", type(callback).__name__))
    debug_callback_p.bind(*split.dynamic, callback=flat_callback, partitioned=partitioned,
                          effect=ordered_debug_effect if ordered else debug_effect)
    return None


class _Checker(string.Formatter):
    """Tells which arguments a format uses."""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        unused = [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(f"Unused keyword arguments to `jax.debug.print`: {unused}. You may be passing an f-string "
                             "(i.e, "
                             '`f"{x}"`) into `jax.debug.print` and instead should pass in a regular string.')

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
        first = field_name.split(".")[0].split("[")[0]
        key: Any = int(first) if first.isdigit() else first
        return self.get_value(key, args, kwargs), key

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""  # the values are not known yet

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value


_checker = _Checker()


def debug_print(fmt: str | None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False,
                skip_format_check: bool = False, _use_logging: bool = False,
                **kwargs: PyTree) -> Callable[..., Any] | None:
    """Prints values that a program computes.

    Args:
      fmt: a format as for `str.format`, such as "x = {x}". Without it, a function of the same name that takes it first.
      args, kwargs: the values: trees of arrays, and others.
      ordered: whether the lines come in the order of the program.
      partitioned: whether it prints the parts of arrays that are spread over devices, rather than whole ones.
      skip_format_check: whether to leave out the check that the format uses all values.

    Raises:
      ValueError, IndexError, KeyError: the format and the values do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.debug.print('x = {}', jnp.arange(2))
      x = [0 1]
    """
    if fmt is None:
        return lambda fmt, *a, **k: debug_print(fmt, *a, ordered=ordered, partitioned=partitioned,
                                                skip_format_check=skip_format_check, _use_logging=_use_logging, **k)
    if not isinstance(fmt, str):
        raise TypeError(f"the format of debug.print must be a string, got {type(fmt).__name__}; write "
                        'debug.print("{}", x) to print a value')
    has_placeholders = True
    if skip_format_check:
        try:
            has_placeholders = any(field is not None for _, field, _, _ in _checker.parse(fmt))
        except ValueError:
            has_placeholders = False
    else:
        has_placeholders = any(field is not None for _, field, _, _ in _checker.parse(fmt))
        _checker.format(fmt, *args, **kwargs)
    split = _Split(args, kwargs)
    debug_print_p.bind(*split.dynamic, fmt=fmt, ordered=ordered, partitioned=partitioned, in_tree=split.in_tree,
                       static_args=split.static, np_printoptions=tuple(np.get_printoptions().items()),
                       has_placeholders=has_placeholders, logging_record=_record() if _use_logging else None)
    return None


def debug_log(fmt: str | None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False,
              skip_format_check: bool = False, _use_logging: bool = True,
              **kwargs: PyTree) -> Callable[..., Any] | None:
    """As `debug.print`, to the logger "jax._src.debugging" at level INFO: its records stand at the user's line."""
    return debug_print(fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
                       _use_logging=_use_logging, **kwargs)


def _record() -> logging.LogRecord:
    """A record without a text that comes from the user's line."""
    place = source.current()
    return _logger.makeRecord(_logger.name, logging.INFO, place.file_name, place.line, "", (), None)


def _print(dynamic: Sequence[Any], fmt: str, in_tree: Any, static_args: Any, np_printoptions: Any,
           has_placeholders: bool, logging_record: logging.LogRecord | None) -> None:
    args, kwargs = _join(in_tree, static_args, dynamic)
    with np.printoptions(**dict(np_printoptions)):
        if has_placeholders:
            text = fmt.format(*args, **kwargs)
        else:
            text = " ".join([fmt.format() if not args else fmt, *map(str, args)])
    if logging_record is not None:
        record = copy(logging_record)
        record.msg = text
        _logger.handle(record)
    else:
        print(text)


@debug_callback_p.def_effectful_abstract_eval
def _callback_avals(*_: Any, effect: Effect, **params: Any) -> tuple[list, frozenset]:
    return [], frozenset({effect})


@debug_print_p.def_effectful_abstract_eval
def _print_avals(*_: Any, ordered: bool, **params: Any) -> tuple[list, frozenset]:
    return [], frozenset({ordered_debug_effect if ordered else debug_effect})


def _call(args: Sequence[Any], *, callback: Callable, **params: Any) -> list[Any]:
    with told(_logger.name, "jax.debug.callback"), plainly():
        callback(*as_arrays(args))
    return []


def _call_print(args: Sequence[Any], *, ordered: bool, partitioned: bool, **params: Any) -> list[Any]:
    with told(_logger.name, "jax.debug.callback"), plainly():
        _print(as_arrays(args), **params)
    return []


def _batch(primitive: Primitive, axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None],
           params: dict[str, Any]) -> tuple[list, list]:
    """Once for each element, without a loop: what is printed comes in the order of the elements."""
    if axis_data.devices and axis_data.size > 1 and _ordered(params):
        raise ValueError("The following ordered effects are not supported for more than 1 device: "
                         f"[{ordered_debug_effect}]")
    for i in range(axis_data.size):
        primitive.bind(*(
            x if d is None else hooks.lax.index_in_dim(x, i, axis=d, keepdims=False)
            for x, d in zip(args, dims, strict=True)), **params)
    return [], []


def _ordered(params: dict[str, Any]) -> bool:
    return params["ordered"] if "ordered" in params else params["effect"] is ordered_debug_effect


def _no_transpose(*_: Any, **params: Any) -> Any:
    raise ValueError("Transpose doesn't support debugging callbacks.")


def _define(primitive: Primitive, call: Callable[..., list[Any]]) -> None:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list, list]:
        return primitive.bind(*primals, **params), []

    def loops(b: Builder, *xs: Any, **params: Any) -> list[Any]:
        return b.host_call(lambda *views: call(views, **params), [], xs)

    def stablehlo(m: Any, *xs: Any, **params: Any) -> list[Any]:
        return m.host_call(lambda *views: call(views, **params), [], xs, ordered=_ordered(params))

    primitive.def_impl(lambda *args, **params: call(args, **params))
    rules.loops[primitive] = loops
    rules.stablehlos[primitive] = stablehlo
    rules.jvps[primitive] = jvp
    rules.transposes[primitive] = _no_transpose
    rules.fancy_batchers[primitive] = lambda axis, args, dims, **params: _batch(primitive, axis, args, dims, params)
    calls_of_devices.add(primitive)
    physicals[primitive] = lambda _, *args, **params: primitive.bind(*args, **params)


_define(debug_callback_p, _call)
_define(debug_print_p, _call_print)


__all__ = [
    "DebugEffect", "OrderedDebugEffect", "debug_callback", "debug_callback_p", "debug_log", "debug_print",
    "debug_print_p",
]
