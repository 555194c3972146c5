"""Checks of derivatives, and of values by the precision of their dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.trees import tree
from ...core.types import dtypes
from ...test_util import Tolerance, check_grads, check_jvp, check_vjp

_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6,
               "complex128": 1e-15}


def _tolerance(given: Tolerance | None, *values: Any) -> float:
    """The tolerance for the coarser of the dtypes: the given one, or the table's with what is given by dtype."""
    if given is not None and not isinstance(given, Mapping):
        return given
    bounds = {**_TOLERANCES, **{np.dtype(dtype).name: bound for dtype, bound in (given or {}).items()}}
    return max(bounds.get(dtypes.dtype(v).name, 0.0) for v in values)


def check_close(xs: Any, ys: Any, atol: Tolerance | None = None, rtol: Tolerance | None = None,
                err_msg: str = "") -> None:
    """Checks that the leaves of two trees are close, by default to within the coarser of their dtypes' precisions;
    tolerances, one for all or by dtype, count for each element, so that more elements may be further off.

    Raises AssertionError where they are not, or where their shapes differ.
    """
    def check(x: Any, y: Any) -> None:
        assert np.shape(x) == np.shape(y), f"{np.shape(x)} is not {np.shape(y)}"
        wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
        np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), err_msg=err_msg,
                                   atol=_tolerance(atol, x, y) * np.size(x), rtol=_tolerance(rtol, x, y) * np.size(y))

    tree.tree_map(check, xs, ys)


__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]
