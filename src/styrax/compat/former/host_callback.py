"""Calls of functions on the host as they once were, by today's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styrax import debug, tree
from styrax.core.types.typing import PyTree
from styrax.placement import effects_barrier
from styrax.transforms.callbacks import pure_callback


class CallbackException(Exception):
    """A callback has failed."""


def call(callback_func: Callable[[PyTree], PyTree], arg: PyTree, *, result_shape: PyTree = None,
         call_with_device: bool = False, device_index: int = 0, callback_flavor: Any = None) -> PyTree:
    """`callback_func(arg)` on the host, with results of the shapes and dtypes of `result_shape` (None: no results).

    Args:
      call_with_device: whether the function also gets `device=`.
    """
    if result_shape is None:
        id_tap(lambda x, _: callback_func(x), arg)
        return None
    shapes = tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else _shape_of(leaf), result_shape)
    return pure_callback(_with_device(callback_func, call_with_device, device_index), shapes, arg,
                         vmap_method="sequential")


def id_tap(tap_func: Callable[..., Any], arg: PyTree, *, result: PyTree = None, tap_with_device: bool = False,
           device_index: int = 0, callback_flavor: Any = None, **kwargs: Any) -> PyTree:
    """Calls `tap_func(arg, transforms)` on the host, with no transforms; gives `result`, or `arg` for None."""
    call_tap = _with_device(tap_func, tap_with_device, device_index)
    debug.callback(lambda x: call_tap(x, ()), arg, ordered=True)
    return arg if result is None else result


def id_print(arg: PyTree, *, result: PyTree = None, tap_with_device: bool = False, device_index: int = 0,
             output_stream: Any = None, threshold: int | None = None, callback_flavor: Any = None,
             **kwargs: Any) -> PyTree:
    """Prints `arg` and the keyword arguments; gives `result`, or `arg` for None."""
    words = "".join(f" {name}: {value}" for name, value in sorted(kwargs.items()))

    def show(x: PyTree, _: Any) -> None:
        print(words.lstrip() + (" " if words else "") + str(x), file=output_stream)

    return id_tap(show, arg, result=result)


def barrier_wait(logging_name: str | None = None) -> None:
    """Waits for all callbacks."""
    effects_barrier()


def stop_outfeed_receiver() -> None:
    """Does nothing: there is no receiver."""


def _shape_of(leaf: Any) -> Any:
    from styrax.core.arrays.shape_struct import ShapeDtypeStruct
    from styrax.core.tracing.trace import get_aval

    aval = get_aval(leaf)
    return ShapeDtypeStruct(aval.shape, aval.dtype)


def _with_device(function: Callable[..., Any], wanted: bool, index: int) -> Callable[..., Any]:
    if not wanted:
        return function

    def with_device(*args: Any) -> Any:
        from styrax.placement import local_devices

        return function(*args, device=local_devices()[index])

    return with_device


__all__ = ["CallbackException", "barrier_wait", "call", "id_print", "id_tap", "stop_outfeed_receiver"]
