"""Checks of derivatives, and of values by the precision of their dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.trees import tree
from ...core.types import dtypes
from ...test_util import check_grads, check_jvp, check_vjp

_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6,
               "complex128": 1e-15}


def check_close(xs: Any, ys: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Checks that the leaves of two trees are close, by default to within the coarser of their dtypes' precisions;
    tolerances count for each element, so that more elements may be further off.

    Raises AssertionError where they are not.
    """
    def check(x: Any, y: Any) -> None:
        finest = max(_TOLERANCES.get(dtypes.dtype(v).name, 0.0) for v in (x, y))
        wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
        np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), err_msg=err_msg,
                                   atol=(finest if atol is None else atol) * np.size(x),
                                   rtol=(finest if rtol is None else rtol) * np.size(y))

    tree.tree_map(check, xs, ys)


__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]
