"""Python functions that work on the memory of arrays in place."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.errors import CallFailed, JaxRuntimeError
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import ShapedArray
from ..core.types.effects import Effects, no_effects
from ..core.types.physical import physicals
from ..core.types.typing import PyTree
from ..transforms.callbacks import VMAP_METHODS, batched_call, io_effect

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder


class ExecutionStage(enum.Enum):
    """What a program does when it calls."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """The circumstances of a call."""

    __slots__ = ()

    @property
    def stage(self) -> ExecutionStage:
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU. Raises JaxRuntimeError on other devices."""
        raise JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class Buffer:
    """The memory of an operand, or of a result, which can be written; valid during the call alone."""

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray):
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array if dtype is None and not copy else np.array(self._array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        array = self._array
        if not array.flags.writeable:  # whose memory others do not write either
            array = array.view()
            array.setflags(write=True)
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


buffer_callback_p = Primitive("buffer_callback", multiple_results=True)
buffer_callback_p.declare(distinct=True)
buffer_callback_p.generic_in_sizes = False


def buffer_callback(callback: Callable[..., None], result_shape_dtypes: PyTree, *, has_side_effect: bool = False,
                    vmap_method: str | None = None, input_output_aliases: dict[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., PyTree]:
    """A Python function on buffers as a function of arrays.

    Args:
      callback: `callback(context, results, *operands)`, which writes the results: trees of `Buffer`s, which are
        arrays for NumPy and by DLPack.
      result_shape_dtypes: a tree of objects with `shape` and `dtype`.
      has_side_effect: whether the call stays in programs that do not use its results.
      vmap_method: what `vmap` does, see `pure_callback`.
      input_output_aliases: number of an operand -> number of the result that has its memory, flat.
      command_buffer_compatible: for GPUs.

    Returns:
      A function of trees of arrays that gives a tree like `result_shape_dtypes`.

    Raises:
      ValueError: an unknown `vmap_method`, or aliases that do not fit; from a call: differentiation.
      JaxRuntimeError: from a call: the callback raised.

    Example:
      >>> import numpy as np
      >>> import styrax as jax
      >>> from styrax.experimental.buffer_callback import buffer_callback
      >>> def add_one(context, out, x):
      ...     np.asarray(out)[...] = np.asarray(x) + 1
      >>> buffer_callback(add_one, jax.ShapeDtypeStruct((), "int32"))(41)
      Array(42, dtype=int32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {list(VMAP_METHODS)}, but got: {vmap_method}")
    wanted, out_tree = tree.tree_flatten(result_shape_dtypes)
    result_avals = tuple(ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype)) for x in wanted)
    aliases = tuple(sorted((input_output_aliases or {}).items()))

    def wrapped_callback(*args: Any, **kwargs: Any) -> PyTree:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        for i, k in aliases:
            if not (0 <= i < len(leaves) and 0 <= k < len(wanted)):
                raise ValueError(f"input_output_aliases contains the mapping '{i}:{k}', which is out of range")
        outs = buffer_callback_p.bind(
            *leaves, callback=callback, result_avals=result_avals, in_tree=in_tree, out_tree=out_tree,
            vmap_method=vmap_method, has_side_effect=has_side_effect, input_output_aliases=aliases,
            command_buffer_compatible=command_buffer_compatible)
        return tree.tree_unflatten(out_tree, outs)

    return wrapped_callback


@buffer_callback_p.def_effectful_abstract_eval
def _abstract(*_: Any, result_avals: Sequence[ShapedArray], has_side_effect: bool,
              **params: Any) -> tuple[list[Any], Effects]:
    return list(result_avals), frozenset({io_effect}) if has_side_effect else no_effects


def _runner(callback: Callable[..., None], in_tree: Any, out_tree: Any, input_output_aliases: Sequence[tuple[int, int]],
            **params: Any) -> Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]:
    """The call on operands and results, which lie in memory."""
    def run(ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        operands = list(ins)
        for i, k in input_output_aliases:
            operands[i] = outs[k].view()
        for x in operands:
            x.setflags(write=False)
        args, kwargs = tree.tree_unflatten(in_tree, map(Buffer, operands))
        try:
            callback(ExecutionContext(), tree.tree_unflatten(out_tree, map(Buffer, outs)), *args, **kwargs)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            raise CallFailed(f"INTERNAL: Error when calling buffer callback: {text}") from error

    return run


def _loops(b: Builder, *xs: Any, result_avals: Sequence[ShapedArray], input_output_aliases: Sequence[tuple[int, int]],
           **params: Any) -> list[Any]:
    run = _runner(input_output_aliases=input_output_aliases, **params)
    starts = {k: xs[i] for i, k in input_output_aliases}
    specs = [(a.shape, a.dtype, starts[k]) if k in starts else (a.shape, a.dtype) for k, a in enumerate(result_avals)]
    return b.host_call(run, specs, xs, in_place=True)


def _stablehlo(m: Any, *xs: Any, result_avals: Sequence[ShapedArray], input_output_aliases: Sequence[tuple[int, int]],
               has_side_effect: bool, **params: Any) -> list[Any]:
    run, given = _runner(input_output_aliases=input_output_aliases, **params), {k: i for i, k in input_output_aliases}

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        outs = [np.array(arrays[given[k]]) if k in given else np.empty(a.shape, a.dtype)
                for k, a in enumerate(result_avals)]
        run(arrays, outs)
        return outs

    return m.host_call(call, [(a.shape, a.dtype) for a in result_avals], xs, side_effect=has_side_effect)


def _refuse(*_: Any, **params: Any) -> Any:
    raise ValueError("Buffer callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
                     "gradients.")


def _batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[list[Any], list[int]]:
    return batched_call(buffer_callback_p, args, dims, **params)


rules.loops[buffer_callback_p] = _loops
rules.stablehlos[buffer_callback_p] = _stablehlo
rules.jvps[buffer_callback_p] = _refuse
rules.transposes[buffer_callback_p] = _refuse
rules.batchers[buffer_callback_p] = _batch
physicals[buffer_callback_p] = lambda _, *args, **params: buffer_callback_p.bind(*args, **params)

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
