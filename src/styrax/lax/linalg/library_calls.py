"""Factorisations in programs for XLA: how a client's library is called, and what programs of others do.

A client may know a library's routines by name (`Module.libraries`): "lapack" is JAX's for CPUs, "cusolver" NVIDIA's
for GPUs. For all other clients, and for what a library lacks, primitives are programs of other operations (`jacobi`,
`reflections`, `elimination`), or calls that XLA expands by itself on each platform.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.trees.tree import tree_map
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.transforms.mapping import vmap

from ..shaping.reshaping import reshape
from .matrices import LETTERS, is_complex, shape_of

Rule = Callable[..., Any]

def boolean(value: bool) -> str:
    return str(value).lower()


def _layout(rank: int, batch: int) -> str:
    """Matrices by columns, batches of them one after the other: dimensions from the fastest to the slowest."""
    order = [*range(batch, rank), *reversed(range(batch))]
    return f"dense<{order if order else ''}> : tensor<{rank}xindex>"


def call(m: Any, target: str, operands: Sequence[Any], results: Sequence[tuple[Sequence[int], Any]], batch: int, *,
         config: Mapping[str, str] | None = None, reused: Mapping[int, int] | None = None, by_rows: bool = False
         ) -> list[Any]:
    """Calls a routine on matrices and vectors of a batch of so many dimensions.

    Args:
      target: the routine's name.
      results: shapes and dtypes.
      config: its attributes, as MLIR writes them.
      reused: result -> operand whose memory it takes.
      by_rows: whether matrices lie by rows, not by columns.
    """
    avals = [ShapedArray(tuple(shape), dtype) for shape, dtype in results]
    inside = [] if len(avals) == 1 else [f"[{i}]" for i in range(len(avals))]
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {inside[i] if inside else '[]'}, "
        f"operand_index = {operand}, operand_tuple_indices = []>" for i, operand in (reused or {}).items())
    layouts = [", ".join(_layout(len(x.shape), len(x.shape) if by_rows else batch) for x in values)
               for values in (operands, avals)]
    return m.custom_call(
        target, operands, avals,
        ", ".join(f"{name} = {value}" for name, value in (config or {}).items()),
        [f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}', f"operand_layouts = [{layouts[0]}]",
         f"result_layouts = [{layouts[1]}]", f"output_operand_aliases = [{aliases}]"])


def unless(m: Any, failed: str, info: Any, value: Any) -> Any:
    """A value with NaN where a status compares so with 0 ("NE": any failure; "LT": a wrong argument)."""
    zero = m.full(0, info.aval)
    wrong = m.compare(failed, info, zero)
    spread = ShapedArray(value.shape, np.dtype(np.bool_))
    nan = complex(np.nan, np.nan) if is_complex(value.dtype) else np.nan
    return m.select(m.broadcast_in_dim(wrong, spread, range(len(info.shape))), m.full(nan, value.aval), value)


def _in_working_dtype(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for half precisions, too: LAPACK computes them in f32."""
    def lowered(m: Any, *operands: Any, **params: Any) -> Any:
        wanted = [a.dtype for a in m.avals_out]
        half = [x.dtype not in LETTERS and dtypes.issubdtype(x.dtype, np.inexact) for x in operands]
        single = np.dtype(np.float32)
        outs = rule(m, *(m.convert(x, single) if h else x for x, h in zip(operands, half, strict=True)), **params)
        if outs is NotImplemented:
            return outs
        return [m.convert(x, dtype) for x, dtype in zip(outs, wanted, strict=True)]

    return lowered


_calls: dict[tuple[str, Primitive], Rule] = {}


def by_library(library: str, primitive: Primitive) -> Callable[[Rule], Rule]:
    """Makes a function the rule of a primitive where the client knows a library. What it gives NotImplemented for, the
    rule for other clients does."""
    def enter(rule: Rule) -> Rule:
        _calls[library, primitive] = rule
        return rule

    return enter


def otherwise(primitive: Primitive, rule: Rule | None = None) -> None:
    """Makes a function the rule of a primitive for clients whose libraries lack it. None: these cannot compute it."""
    def chosen(m: Any, *operands: Any, **params: Any) -> Any:
        for library in m.module.libraries:
            called = _calls.get((library, primitive))
            outs = NotImplemented if called is None else called(m, *operands, **params)
            if outs is not NotImplemented:
                return outs
        if not any(math.prod(a.shape) for a in m.avals_out):  # nor does a program compute them
            return [m.const(0, a) for a in m.avals_out]
        return NotImplemented if rule is None else rule(m, *operands, **params)

    rules.stablehlos.setdefault(primitive, _in_working_dtype(chosen))


def program(function: Callable[..., Any], *ranks: int) -> Callable[..., Any]:
    """The rule that a primitive is a program of other operations. `ranks`: of the operands, if the function has no
    batches."""
    batched = _each(function, ranks) if ranks else function
    return lambda m, *operands, **params: m.call_program(batched, *operands, name=function.__name__, **params)


def _each(function: Callable[..., Any], ranks: Sequence[int]) -> Callable[..., Any]:
    """A function of arrays of so many dimensions, for batches of them."""
    def batched(*xs: Any, **params: Any) -> Any:
        batch = shape_of(xs[0])[:len(shape_of(xs[0])) - ranks[0]]
        one = functools.partial(function, **params)
        if not batch:
            return one(*xs)
        flat = (reshape(x, (math.prod(batch), *shape_of(x)[len(batch):])) for x in xs)
        return tree_map(lambda out: reshape(out, (*batch, *shape_of(out)[1:])), vmap(one)(*flat))

    return batched
