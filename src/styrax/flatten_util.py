"""Trees of arrays as one vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .core.arrays.array import Array
from .core.tracing.source import warn
from .core.trees import tree
from .core.types import dtypes
from .core.types.typing import PyTree


def ravel_pytree(pytree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """Flattens the arrays of a tree into one vector.

    Args:
      pytree: a tree of arrays and scalars.

    Returns:
      `(vector, unravel)`: the elements of all leaves one after the other, promoted to a common dtype, and a function
      from a vector of that shape and dtype to a tree like `pytree`, with each leaf's own shape and dtype. Leaves that
      all have one dtype get that of the vector.

    Example:
      >>> import styrax.flatten_util as flatten_util
      >>> import styrax.numpy as jnp
      >>> vector, unravel = flatten_util.ravel_pytree({'a': jnp.zeros(2), 'b': 1.0})
      >>> vector
      Array([0., 0., 1.], dtype=float32)
      >>> unravel(vector + 1)['b']
      Array(2., dtype=float32)
    """
    from . import numpy as jnp

    leaves, treedef = tree.tree_flatten(pytree)
    leaf_dtypes = [dtypes.dtype(x) for x in leaves]
    common = dtypes.result_type(*leaf_dtypes) if leaves else dtypes.dtype(float)
    unravel = Unravel(treedef, [np.shape(x) for x in leaves], leaf_dtypes, common)
    if not leaves:
        return jnp.zeros(0, common), unravel
    if any(d != common for d in leaf_dtypes):
        return jnp.concatenate([jnp.ravel(jnp.asarray(x).astype(common)) for x in leaves]), unravel
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)) for x in leaves]), unravel  # weakly typed where all leaves are


class Unravel:
    """From a vector to a tree. Those of trees with equal structure, shapes and dtypes are equal."""

    __slots__ = ("treedef", "shapes", "dtypes", "dtype")

    def __init__(self, treedef: Any, shapes: Sequence[tuple[int, ...]], leaf_dtypes: Sequence[Any], dtype: Any):
        self.treedef = treedef
        self.shapes = tuple(shapes)
        self.dtypes = tuple(leaf_dtypes)
        self.dtype = dtype

    def __call__(self, vector: Any) -> Any:
        from . import lax

        sizes = [math.prod(s) for s in self.shapes]
        shape, dtype = np.shape(vector), dtypes.dtype(vector)
        if shape != (sum(sizes),):
            raise ValueError(f"the unravel function was given an array of shape {shape}, but expects shape "
                             f"{(sum(sizes),)}: "
                             "the elements of all leaves")
        if all([d == self.dtype for d in self.dtypes]):
            common = dtype  # leaves of one dtype take that of the vector
        elif dtype == self.dtype:
            common = None
        else:
            raise TypeError(f"the unravel function was given an array of dtype {dtype}, but expected dtype "
                            f"{self.dtype}")
        parts, pieces = [], lax.split(vector, sizes) if sizes else ()
        for leaf_shape, own_dtype, part in zip(self.shapes, self.dtypes, pieces, strict=True):
            leaf_dtype = own_dtype if common is None else common
            part = part.reshape(leaf_shape)
            if leaf_dtype != dtype:
                if dtypes.issubdtype(self.dtype, np.complexfloating) and not dtypes.issubdtype(
                        leaf_dtype, np.complexfloating):
                    warn("the imaginary parts of a complex vector are dropped for leaves of the tree that are real",
                         np.exceptions.ComplexWarning)
                part = lax.convert_element_type(part, leaf_dtype)
            parts.append(part)
        return tree.tree_unflatten(self.treedef, parts)

    def _key(self) -> tuple:
        return self.treedef, self.shapes, self.dtypes, self.dtype

    def __eq__(self, other: object) -> bool:
        return type(other) is Unravel and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
