"""`ffi_call`: calls of foreign functions in programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types.avals import AbstractToken, ShapedArray
from ..core.types.effects import Effect, Effects, control_flow_allowed_effects, lowerable_effects, no_effects
from ..core.types.physical import physical_aval, physicals
from ..core.types.typing import PyTree
from ..transforms.callbacks import VMAP_METHODS, batched_call
from . import call_frames, targets
from .static_values import hashable, plain

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder

TYPED_API = 4  # the custom call version whose functions take a call frame


class FfiEffect(Effect):
    """The program calls a foreign function that acts on the outside world."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "FfiEffect"


ffi_effect = FfiEffect()
lowerable_effects.add_type(FfiEffect)
control_flow_allowed_effects.add_type(FfiEffect)

ffi_call_p = Primitive("ffi_call", multiple_results=True)
ffi_call_p.declare(distinct=True)
ffi_call_p.generic_in_sizes = False


def ffi_call(target_name: str, result_shape_dtypes: PyTree, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Sequence[int] | None] | None = None,
             output_layouts: PyTree = None, input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = TYPED_API,
             legacy_backend_config: str | None = None) -> Callable[..., PyTree]:
    """A foreign function as a function of arrays.

    Args:
      target_name: the name that it is registered by (`register_ffi_target`).
      result_shape_dtypes: an object with `shape` and `dtype` for the result, or a sequence of such.
      has_side_effect: whether the call stays in programs that do not use its results.
      vmap_method: what `vmap` does, see `pure_callback`.
      input_layouts, output_layouts: for each operand and result the order of its dimensions in memory, the slowest
        first; None for the usual one.
      input_output_aliases: number of an operand -> number of the result that begins as its value, in the same memory.
      custom_call_api_version: 4 for functions of a call frame; below that, of plain addresses.
      legacy_backend_config: a text for functions of older versions.

    Returns:
      A function of arrays, and of attributes by name: numbers, texts, arrays, and dictionaries of them. It gives the
      result, or a sequence of them like `result_shape_dtypes`.

    Raises:
      ValueError: an unknown `vmap_method`; a result without shape and dtype; from a call: aliases or layouts that do
        not fit; differentiation.
      TypeError: from a call: an attribute of another type.
      JaxRuntimeError: from a call: no such function is registered, or it returned an error.
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {list(VMAP_METHODS)}, but got: {vmap_method}")
    several = isinstance(result_shape_dtypes, Sequence)
    wanted = list(result_shape_dtypes) if several else [result_shape_dtypes]
    result_avals = tuple(_result_aval(x, i) for i, x in enumerate(wanted))
    if custom_call_api_version >= TYPED_API and legacy_backend_config is not None:
        legacy_error = ValueError("The use of the legacy_backend_config parameter requires custom_call_api_version < "
                                  f"{TYPED_API}; got {custom_call_api_version}.")
    else:
        legacy_error = None

    def ffi_call_(*args: Any, **kwargs: Any) -> PyTree:
        if legacy_error is not None:
            raise legacy_error
        if kwargs and custom_call_api_version < TYPED_API:
            raise ValueError("The use of ffi_call attributes requires a custom call API version of at least 4; got "
                             f"api_version={custom_call_api_version}.")
        attributes = tuple((name, hashable(name, value)) for name, value in sorted(kwargs.items()))
        for _, value in attributes:
            call_frames._Memory().attribute(plain(value))  # raises for what is none

        def call(*operands: Any) -> list[Any]:
            avals = list(map(_aval, operands))
            outs_layouts = output_layouts if several or output_layouts is None else [output_layouts]
            return ffi_call_p.bind(
                *operands, result_avals=result_avals, target_name=target_name, has_side_effect=has_side_effect,
                vmap_method=vmap_method, input_layouts=_layouts(input_layouts, avals, "input arguments", "input"),
                output_layouts=_layouts(outs_layouts, result_avals, "outputs", "output"),
                input_output_aliases=_aliases(input_output_aliases, avals, result_avals),
                custom_call_api_version=custom_call_api_version, legacy_backend_config=legacy_backend_config,
                attributes=attributes)

        outs = call(*args)
        if not several:
            return outs[0]
        return outs if isinstance(result_shape_dtypes, list) else tuple(outs)

    ffi_call_.__name__ = ffi_call_.__qualname__ = "ffi_call"
    return ffi_call_


def _aval(x: Any) -> Any:
    try:
        return get_aval(x)
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


def _result_aval(x: Any, position: int) -> Any:
    if isinstance(x, AbstractToken):
        return x
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise ValueError("All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
                         f"{x} at position {position}.")
    return ShapedArray(x.shape, x.dtype)


def _layouts(given: Any, avals: Sequence[Any], what: str, name: str) -> tuple[Any, ...]:
    """The orders of dimensions, fastest first, as programs hold them; given are such with the slowest first."""
    if given is None:
        return tuple(tuple(range(len(getattr(physical_aval(a), "shape", ()))))[::-1] for a in avals)
    if len(given) != len(avals):
        raise ValueError(f"The number of {what} ({len(avals)}) must equal the number of {name} layouts ({len(given)}).")
    found = []
    for layout, aval in zip(given, avals):
        dims = tuple(range(len(physical_aval(aval).shape)))
        order = dims if layout is None else tuple(getattr(layout, "major_to_minor", layout))
        if tuple(sorted(order)) != dims:
            raise ValueError(f"incorrect layout {order} for {aval}: the layout must be a permutation of {dims}")
        found.append(order[::-1])
    return tuple(found)


def _aliases(given: Mapping[int, int] | None, ins: Sequence[Any], outs: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    for i, k in (given or {}).items():
        where = f"input_output_aliases contains the mapping '{i}:{k}'"
        if not 0 <= i < len(ins):
            raise ValueError(f"{where} with input index {i} outside the range [0, {len(ins)}).")
        if not 0 <= k < len(outs):
            raise ValueError(f"{where} with output index {k} outside the range [0, {len(outs)}).")
        if (ins[i].shape, ins[i].dtype) != (outs[k].shape, outs[k].dtype):
            raise ValueError(f"{where} referring to an input with abstract value {ins[i]} and an output with a "
                             f"different abstract value {outs[k]}.")
    return tuple(sorted((given or {}).items()))


@ffi_call_p.def_effectful_abstract_eval
def _abstract(*_: Any, result_avals: Sequence[Any], has_side_effect: bool, **params: Any) -> tuple[list[Any], Effects]:
    return list(result_avals), frozenset({ffi_effect}) if has_side_effect else no_effects


# -- lowering --------------------------------------------------------------------------------------------------


def in_order(x: np.ndarray, layout: Sequence[int]) -> np.ndarray:
    """A view with the dimensions as `layout` has them, contiguous for it."""
    return np.ascontiguousarray(x.transpose(layout))


def _loops(b: Builder, *xs: Any, target_name: str, result_avals: Sequence[Any], input_layouts: Sequence[Any],
           output_layouts: Sequence[Any], input_output_aliases: Sequence[tuple[int, int]],
           custom_call_api_version: int, attributes: Sequence[tuple[str, Any]], **params: Any) -> list[Any]:
    target = targets.find(target_name)
    given = {name: plain(value) for name, value in attributes}
    typed = custom_call_api_version >= TYPED_API
    context = call_frames.Context()
    if typed:
        call_frames.invoke(target, "instantiate", context, (), (), given)

    def run(ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        ins = [_stored(x, layout[::-1]) for x, layout in zip(ins, input_layouts, strict=True)]
        places = [_stored(x, layout[::-1]) for x, layout in zip(outs, output_layouts, strict=True)]
        for i, k in input_output_aliases:
            ins[i] = places[k]
        if typed:
            for stage in ("prepare", "initialize", "execute"):
                call_frames.invoke(target, stage, context, ins, places, given)
        else:
            call_frames.invoke_untyped(target, ins, places)
        for out, place, order in zip(outs, places, output_layouts, strict=True):
            layout = order[::-1]
            if not _usual(layout):
                out[...] = place.reshape([out.shape[d] for d in layout]).transpose(np.argsort(layout))

    starts = {k: xs[i] for i, k in input_output_aliases}
    specs = [(a.shape, a.dtype, starts[k]) if k in starts else (a.shape, a.dtype) for k, a in enumerate(result_avals)]
    return b.host_call(run, specs, xs, in_place=True)


def _usual(layout: Sequence[int]) -> bool:
    return list(layout) == sorted(layout)


def _stored(x: np.ndarray, layout: Sequence[int]) -> np.ndarray:
    """The array as a foreign function finds it: its shape, with elements in the order of the layout."""
    return x if _usual(layout) else in_order(x, layout).reshape(x.shape)


def _stablehlo(m: Any, *xs: Any, target_name: str, result_avals: Sequence[Any], has_side_effect: bool,
               input_layouts: Sequence[Any], output_layouts: Sequence[Any],
               input_output_aliases: Sequence[tuple[int, int]], custom_call_api_version: int,
               legacy_backend_config: str | None, attributes: Sequence[tuple[str, Any]], **params: Any) -> list[Any]:
    given = {name: plain(value) for name, value in attributes}
    legacy = custom_call_api_version < TYPED_API
    return m.foreign_call(
        target_name, xs, result_avals, None if legacy else given, has_side_effect=has_side_effect,
        api_version=custom_call_api_version if legacy else 1,
        operand_layouts=input_layouts,
        result_layouts=output_layouts, aliases=input_output_aliases,
        backend_config=legacy_backend_config or "")


def _refuse(*_: Any, target_name: str, **params: Any) -> Any:
    raise ValueError(f"The FFI call to `{target_name}` cannot be differentiated. You can use `jax.custom_jvp` or "
                     "`jax.custom_vjp` to add support.")


def _batch(args: Sequence[Any], dims: Sequence[int | None], *, input_layouts: Sequence[Any],
           output_layouts: Sequence[Any], vmap_method: str | None, **params: Any) -> tuple[list[Any], list[int]]:
    whole = vmap_method is not None and not vmap_method.startswith("sequential")
    leading = lambda layout: (*(d + 1 for d in layout), 0)
    if whole:
        every = vmap_method != "legacy_vectorized"
        input_layouts = tuple(leading(x) if every or d is not None else x for x, d in zip(input_layouts, dims))
        output_layouts = tuple(map(leading, output_layouts))
    return batched_call(ffi_call_p, args, dims, vmap_method=vmap_method, input_layouts=input_layouts,
                        output_layouts=output_layouts, **params)


rules.loops[ffi_call_p] = _loops
rules.stablehlos[ffi_call_p] = _stablehlo
rules.jvps[ffi_call_p] = _refuse
rules.transposes[ffi_call_p] = _refuse
rules.batchers[ffi_call_p] = _batch
physicals[ffi_call_p] = lambda _, *args, result_avals, **params: ffi_call_p.bind(
    *args, result_avals=tuple(map(physical_aval, result_avals)), **params)


def ffi_lowering(call_target_name: str, *, operand_layouts: Sequence[Any] | None = None,
                 result_layouts: Sequence[Any] | None = None, backend_config: Mapping[str, Any] | str | None = None,
                 skip_ffi_layout_processing: bool = False, **lowering_args: PyTree) -> Callable[..., Any]:
    """A lowering rule (`mlir.register_lowering`) that calls a foreign function.

    Args:
      call_target_name: the name that it is registered by.
      operand_layouts, result_layouts: orders of dimensions, the slowest first; None for the usual ones.
      backend_config: attributes by name, besides the primitive's parameters.
      skip_ffi_layout_processing: whether layouts are given as MLIR has them, the fastest dimension first.
      lowering_args: `has_side_effect`, `operand_output_aliases`, `api_version`.

    Returns:
      A rule `(context, *operands, **attributes) -> results`.
    """
    def order(layout: Any) -> Any:
        if layout is None:
            return None
        dims = tuple(getattr(layout, "major_to_minor", layout))
        return tuple(reversed(dims)) if skip_ffi_layout_processing else dims

    def rule(ctx: Any, *operands: Any, **params: Any) -> list[Any]:
        given = {**(backend_config if isinstance(backend_config, Mapping) else {}), **params}
        version = lowering_args.get("api_version", TYPED_API)
        avals = list(map(physical_aval, ctx.avals_in)), list(map(physical_aval, ctx.avals_out))
        layouts = [None if given is None else [order(x) for x in given] for given in (operand_layouts, result_layouts)]
        call = dict(
            result_avals=tuple(avals[1]), target_name=call_target_name,
            has_side_effect=lowering_args.get("has_side_effect", False), vmap_method=None,
            input_layouts=_layouts(layouts[0], avals[0], "input arguments", "input"),
            output_layouts=_layouts(layouts[1], avals[1], "outputs", "output"),
            input_output_aliases=_aliases(lowering_args.get("operand_output_aliases"), *avals),
            custom_call_api_version=version,
            legacy_backend_config=backend_config if isinstance(backend_config, str) else None,
            attributes=tuple((name, hashable(name, value)) for name, value in sorted(given.items())))
        closed = trace_to_jaxpr(lambda *xs: ffi_call_p.bind(*xs, **call), avals[0])
        return ctx.inline(closed, *operands)

    return rule


def build_ffi_lowering_function(call_target_name: str, *, operand_layouts: Sequence[Any] | None = None,
                                result_layouts: Sequence[Any] | None = None,
                                backend_config: Mapping[str, Any] | str | None = None,
                                skip_ffi_layout_processing: bool = False,
                                **lowering_args: PyTree) -> Callable[..., Any]:
    """`ffi_lowering`, under the name by which rules call it inside: it gives what the call gives."""
    return ffi_lowering(call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts,
                        backend_config=backend_config, skip_ffi_layout_processing=skip_ffi_layout_processing,
                        **lowering_args)
