"""Symbolic shapes as users write them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.tracing.source import api_boundary
from ..core.trees import tree
from ..core.trees.differences import prefix_errors
from ..core.trees.tree_paths import broadcast_prefix
from ..core.types.typing import PyTree
from ..transforms.tracing import abstractify
from .bounds import lower_bound, upper_bound
from .scope import Parser, SymbolicScope
from .symbolic import SymbolicDim


def is_symbolic_dim(p: PyTree) -> bool:
    """Whether a size is symbolic rather than an integer."""
    return hasattr(p, "_is_symbolic_dim")


def symbolic_dim_bounds(p: int | SymbolicDim) -> tuple[int | float, int | float]:
    """The least and the greatest value that a size is known to take, for all values of its variables.

    Args:
      p: an integer or a symbolic size. Its variables are at least 1, and as the constraints of its scope say.

    Returns:
      `(lower, upper)`: integers, or -inf and inf where nothing is known.

    Raises:
      TypeError: `p` is no size.

    Example:
      >>> import styrax as jax
      >>> n, = jax.export.symbolic_shape("n", constraints=["n <= 10"])
      >>> jax.export.symbolic_dim_bounds(2 * n + 1)
      (3, 21)
    """
    if isinstance(p, SymbolicDim):
        return lower_bound(p.terms, p.scope), upper_bound(p.terms, p.scope)
    return operator.index(p), operator.index(p)


@api_boundary
def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (), scope: SymbolicScope | None = None,
                   like: Sequence[int | SymbolicDim] | None = None) -> tuple[Any, ...]:
    """A shape from its text.

    Args:
      shape_spec: sizes with commas between them, in parentheses or without: integers, variables, and what `+ - * ^`
        (with an integer), `floordiv(x, y)`, `mod(x, y)`, `max(x, y)` and `min(x, y)` make of them. `_` is a size of
        `like`, `...` all that remain; None is `like` itself.
      constraints: what holds for the variables, see `SymbolicScope`.
      scope: where the variables belong; without it, a new scope with the constraints.
      like: a shape that `_`, `...` and None refer to; its integers must agree with those of the text.

    Returns:
      A tuple of integers and symbolic sizes.

    Raises:
      ValueError: the text is no shape, or does not fit `like`; scope and constraints are given; a constraint is wrong.

    Example:
      >>> import styrax as jax
      >>> jax.export.symbolic_shape("batch, 2*n + 1, 3")
      (batch, 2*n + 1, 3)
    """
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec}.")
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return Parser(shape_spec, scope, like).shape()


def symbolic_args_specs(args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> PyTree:
    """Arguments' shapes and dtypes, with symbolic sizes, for tracing.

    Args:
      args: a tree of arrays, or of objects with `shape` and `dtype`.
      shapes_specs: a prefix of that tree with texts for `symbolic_shape`, or None, in place of the leaves.
      constraints, scope: see `symbolic_shape`.

    Returns:
      The tree with a `ShapeDtypeStruct` for each argument.

    Raises:
      ValueError: the specifications are no prefix of the arguments, or wrong.
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    leaves, structure = tree.tree_flatten(args)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):
        shapes_specs = tuple(shapes_specs)
    specs = _spread(shapes_specs, args)
    found = []
    for x, spec in zip(leaves, specs, strict=True):
        aval = abstractify(x)
        shape = symbolic_shape(spec, scope=scope, like=aval.shape)
        found.append(ShapeDtypeStruct(shape, aval.dtype))
    return tree.tree_unflatten(structure, found)


def _spread(prefix: PyTree, full: PyTree) -> list[Any]:
    is_leaf = lambda x: x is None
    try:
        return broadcast_prefix(prefix, full, is_leaf=is_leaf)
    except ValueError:
        for error in prefix_errors(prefix, full, is_leaf=is_leaf):
            raise error("export.symbolic_args_specs shapes_specs") from None
        raise
