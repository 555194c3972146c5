"""What the derivatives share: functions of pytrees as flat ones, and checks of arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import AbstractRef, AbstractValue
from .flattening import FlatFunction, positional

Axes = Sequence[Any]


def check_argument(x: Any) -> None:
    try:
        get_aval(x)
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.") from None


def split_aux(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError("expected function with aux output to return a two-element tuple, but got type "
                        f"{type(result)} with value {result}")
    return result[0], result[1]


class FlatCall(FlatFunction):
    """A function of positional arguments as a flat one, whose auxiliary results come after the others."""

    __slots__ = ("aux_tree", "has_aux")

    def __init__(self, call: Callable, args_tree: tree.PyTreeDef, has_aux: bool):
        super().__init__(call, positional(args_tree))
        self.has_aux = has_aux

    @property
    def args_tree(self) -> tree.PyTreeDef:
        return self.in_tree.children()[0]

    def flatten(self, result: Any) -> list[Any]:
        if not self.has_aux:
            return super().flatten(result)
        result, aux = split_aux(result)
        outs = super().flatten(result)
        extra, self.aux_tree = tree.tree_flatten(aux)
        return outs + extra

    @property
    def num_outs(self) -> int:
        return self.structure.num_leaves

    def results(self, leaves: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.structure, leaves[:self.num_outs])

    def aux(self, leaves: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.aux_tree, leaves[self.num_outs:])


def tangent_dtype(t: Any, aval: Any) -> Any:
    return t.dtype if getattr(t, "dtype", None) == dtypes.float0 else aval.dtype


def check_tangent_type(expected: AbstractValue, found: AbstractValue) -> None:
    """Raises TypeError for a tangent of another type than its primal asks for, where one of them is no array."""
    if expected != found:
        raise TypeError("primal and tangent arguments do not match: expected a tangent of type "
                        f"{expected.str_short(short_dtypes=False)}, but got {found.str_short(short_dtypes=False)}.")


def check_outputs(outs: Sequence[Any]) -> None:
    for x in outs:
        try:
            get_aval(x)
        except TypeError:
            raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


def no_reduce_axes(reduce_axes: Axes) -> None:
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument is deprecated")


def check_input(what: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    check_argument(x)
    aval = get_aval(x)
    if isinstance(aval, AbstractRef):  # its derivative lies in a reference, and is none of the results
        raise ValueError(f"Expected cotangent type {aval} but got {aval.inner_aval}")
    if aval.is_high:
        return
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}.")
    elif isinstance(dtype, dtypes.ExtendedDType) or dtypes.issubdtype(dtype, np.integer) or \
            dtypes.issubdtype(dtype, np.bool_):
        if not allow_int:
            raise TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtype.name}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int "
                "to True.")
    elif not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"{what} requires numerical-valued inputs (input dtype that is a sub-dtype of np.bool_ or "
                        f"np.number), but got {dtype.name}.")


def check_output(what: str, holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.")
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            f"non-holomorphic functions involving complex outputs, use jax.vjp directly.")
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For differentiation of functions with integer outputs, use jax.vjp directly.")


def check_input_jacfwd(holomorphic: bool, x: Any) -> None:
    check_argument(x)
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError("jacfwd with holomorphic=True requires inputs with complex dtype, but got "
                            f"{dtype.name}.")
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex inputs or integer inputs, use jax.jvp directly.")


def check_output_jacfwd(holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(f"jacfwd with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.")
