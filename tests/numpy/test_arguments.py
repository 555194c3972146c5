"""Functions of the libraries with many kinds of arguments: shapes, dtypes, weak types, classes of errors as JAX's."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import jax
import jax.nn
import jax.numpy
import jax.scipy.special
import ml_dtypes
import numpy as np
import pytest

import styrax
import styrax.nn
import styrax.numpy
import styrax.scipy.special

ARRAYS: dict[str, np.ndarray] = {
    **{dtype: np.ones(3, dtype) for dtype in ("int8", "uint8", "int32", "bool", "float16", "float32", "complex64")},
    "bfloat16": np.ones(3, ml_dtypes.bfloat16), "matrix": np.ones((2, 3), np.float32), "empty": np.zeros(0, np.float32),
    "square": np.ones((3, 3), np.int32),
}
OTHERS: dict[str, Any] = {"int": 2, "float": 0.5, "complex": 1 + 2j, "truth": True, "list": [1.0, 2.0], "none": None,
                          "text": "a", "scalar": np.float16(0.5)}
SECOND = ("int32", "float16", "int", "float")
KEYWORDS: list[dict[str, Any]] = [
    {"axis": -1}, {"axis": 0, "keepdims": True}, {"axis": (0, 1)}, {"axis": 5}, {"axis": None}, {"axis": -2},
    {"dtype": "int8"}, {"dtype": "float16"},
]
MODULES = ("numpy", "nn", "scipy.special")
# Functions of no arrays, and those that answer otherwise with good reason or not yet.
LEFT_OUT: dict[str, set[str]] = {module: set(listed.split()) for module, listed in {
    "numpy": """
        angle apply_along_axis arange argmax argmin array_equiv array_split astype average block choose compress
        concatenate corrcoef cov dot dsplit extract eye fill_diagonal fromfile fromfunction frompyfunc gradient
        heaviside histogram histogram2d histogram_bin_edges hsplit hstack hypot identity inner interp isdtype
        isin issubdtype ix_ lexsort linspace load logspace mean meshgrid nanargmax nanargmin nanmean nanquantile
        packbits percentile permute_dims piecewise place polyadd polyder polydiv polyfit polyint polymul polysub
        polyval promote_types put_along_axis quantile ravel_multi_index repeat roll roots save savez select
        split stack std swapaxes take take_along_axis tile trapezoid tri unique unravel_index unwrap var vecdot
        vecmat vsplit
    """,
    "nn": """
        dot_product_attention elu glu hard_silu hard_swish hard_tanh leaky_relu log1mexp log_sigmoid log_softmax
        mish one_hot scaled_dot_general scaled_matmul selu softmax sparse_plus standardize
    """,
    "scipy.special": """
        beta erfcx expn gamma gammasgn hyp1f1 hyp2f1 kl_div log_ndtr log_softmax loggamma ndtr ndtri owens_t
        poch polygamma rel_entr softmax sph_harm_y zeta
    """,
}.items()}


def member(package: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), package)


def names(module: str) -> list[str]:
    theirs = member(jax, module)
    return [n for n in sorted(dir(theirs)) if n[0] != "_" and callable(getattr(theirs, n))
            and not isinstance(getattr(theirs, n), type) and n not in LEFT_OUT.get(module, ())]


def calls(function: Callable[..., Any]) -> Iterator[tuple[str, tuple, dict[str, Any]]]:
    """What a function is called with: one kind of argument in all places, then two kinds, then keywords."""
    parameters = inspect.signature(function).parameters.values()
    count = max(1, sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                       for p in parameters))
    for name, value in {**ARRAYS, **OTHERS}.items():
        yield name, (value,) * count, {}
    if count == 2:
        for name in ("int8", "float32", "complex64", "empty"):
            for other in SECOND:
                yield f"{name}, {other}", (ARRAYS[name], {**ARRAYS, **OTHERS}[other]), {}
    for keywords in KEYWORDS:
        if keywords.keys() <= {p.name for p in parameters}:
            for name in ("float32", "matrix", "int8", "square", "bool", "empty"):
                yield f"{name}, {keywords}", (ARRAYS[name],) * count, keywords


def answer(package: Any, function: Callable[..., Any], args: tuple, keywords: dict[str, Any]) -> Any:
    """The types of what a function gives for traced arguments, or the class of its error."""
    traced = [i for i, a in enumerate(args) if not isinstance(a, (list, str)) and a is not None]

    def call(*xs: Any) -> Any:
        whole = list(args)
        for i, x in zip(traced, xs, strict=True):
            whole[i] = x
        out = function(*whole, **keywords)
        return [x for x in package.tree.leaves(out) if hasattr(x, "aval")]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = package.eval_shape(call, *(args[i] for i in traced))
    except Exception as error:
        return type(error).__name__
    return [(x.shape, str(x.dtype), bool(x.weak_type)) for x in out]


def differences(module: str, name: str) -> list[str]:
    ours, theirs = (getattr(member(package, module), name) for package in (styrax, jax))
    found = []
    try:
        inspect.signature(theirs)
    except ValueError:
        return []
    for label, args, keywords in calls(theirs):
        mine, expected = answer(styrax, ours, args, keywords), answer(jax, theirs, args, keywords)
        if mine != expected:
            found.append(f"{module}.{name}({label}): {mine} instead of {expected}")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_kinds_of_arguments(module: str) -> None:
    found = [line for name in names(module) for line in differences(module, name)]
    assert not found, "\n".join(found)
