"""What the functions of linear algebra have in common: operands as matrices, their transposes and adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes

from ..complex_parts import conj
from ..conversion import asarray
from ..indexing import gather_elements
from ..promotion import arrays, promote_dtypes_inexact

HIGHEST = lax.Precision.HIGHEST


def matrices(name: str, *args: Any) -> list[Array]:
    """Arguments as floating point arrays."""
    return [asarray(x) for x in promote_dtypes_inexact(*arrays(f"jnp.linalg.{name}", *args))]


def transposed(x: Array) -> Array:
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Array) -> Array:
    return conj(transposed(x))


def check_square(name: str, a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name}() must have shape [..., n, n], got {a.shape}")


def real_dtype(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype if dtypes.issubdtype(dtype, np.complexfloating) else dtype


def permuted_rows(x: Any, permutation: Any) -> Any:
    if permutation.ndim == 1 and x.ndim == 2:
        return gather_elements(x, (permutation,))
    from ..selection import take_along_axis

    return take_along_axis(x, lax.expand_dims(permutation, (permutation.ndim,)), axis=-2)
