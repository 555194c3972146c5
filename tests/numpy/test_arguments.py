"""Functions of the libraries with many kinds of arguments: shapes, dtypes, weak types, classes of errors as JAX's."""

from __future__ import annotations

import array
import inspect
import re
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
        arange argmax argmin array_equiv average block choose compress concatenate corrcoef cov dot extract eye
        fromfunction frompyfunc gradient histogram histogram2d histogram_bin_edges hstack identity inner interp
        isdtype lexsort meshgrid nanargmax nanargmin nanquantile packbits percentile piecewise place polyadd
        polyder polydiv polyfit polyint polymul polysub polyval promote_types put_along_axis quantile
        ravel_multi_index repeat roll save savez stack swapaxes take tile trapezoid unique unravel_index unwrap vecdot
    """,
    "nn": """
        dot_product_attention log1mexp log_sigmoid log_softmax scaled_dot_general scaled_matmul softmax
    """,
    "scipy.special": """
        expn hyp1f1 hyp2f1 log_softmax ndtri owens_t polygamma softmax sph_harm_y zeta
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


VALUES = """
    nn.elu([1 + 2j, -3, 1j])
    nn.selu([1 + 2j, -3, 1j])
    nn.leaky_relu([1 + 2j, -3, 1j])
    nn.hard_tanh([1 + 2j, -3, 1j])
    nn.sparse_plus([1 + 2j, -3, 1j])
    nn.log1mexp([1 + 2j, -3 + 1j, 1j])
    jnp.select(c, choices)
    jnp.select(c[0], choices[0])
    jit(jnp.unravel_index)(jnp.arange(7), sizes)
    jnp.unravel_index(c[0], sizes)
    special.hyp1f1(*map(jnp.bfloat16, (0.5, 1.5, 0.5)))
    special.hyp2f1(*map(jnp.float16, (0.5, 1.5, 0.5, 0.5)))
    special.hyp1f1([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    special.hyp2f1([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [0.5, 0.25])
    special.expn([1, 2], [1.0, 2.0])
    nn.dot_product_attention([[[[1.0, 2.0]]]], [[[[1.0, 2.0]]]], [[[[1.0, 2.0]]]])
    jnp.pad(2.0, 3.0)
    jnp.roots(2.0)
    nn.one_hot([[0, 1], [2, 0]], 3)
    nn.one_hot((1,), 2)
    jit(lambda k: nn.one_hot([k, 1], 2))(0)
    jnp.vectorize(lambda x, y: x + y)([1, 2], 3)
    jnp.vectorize(jnp.dot, signature="(n),(n)->()")([[1, 2]], [3, 4])
    special.ndtr([1.0, 2.0])
    special.log_ndtr([1.0, 2.0])
    linalg.polar([[2.0, 1.0], [1.0, 3.0]])
    lax.full_like(np.float64(0.5), 2)
    lax.full_like(np.int64(3), 2, shape=(2,))
    initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=0)(key, (3,))
    initializers.glorot_normal(in_axis=0, out_axis=0)(key, (4,))
    initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=(), out_axis=())(key, ())
    jnp.asarray(2 in jnp.arange(3))
    jnp.array(memoryview(b"ab"))
    jnp.asarray(bytearray(b"ab"))
    jnp.array(memoryview(np.eye(2)), jnp.float16)
    jnp.array(memoryview(np.ones((), np.int8)))
    jnp.array(array("d", [1.5, 2]))
    jnp.array(bytearray())
    jnp.array((jnp.ones(2), memoryview(b"ab")))
    jnp.array(range(3))
    jnp.arange(6.0).at[-1].get(wrap_negative_indices=False)
    jnp.arange(6.0).at[None, -1].get(mode="clip", wrap_negative_indices=False)
    jnp.eye(3).at[:, -1].get(mode="fill", wrap_negative_indices=False)
    jit(lambda x: x.at[-2].get(wrap_negative_indices=False))(jnp.arange(6.0))
    vjp(lambda x: x[0] + x.sum(), jnp.arange(3.0))[1](1.0)
    vjp(lambda x: x + x * x, jnp.float32(2.0))[1](1.0)
"""

REFUSED = """
    2 in jnp.ones((2, 3))
    2 in jnp.array(2)
    None in jnp.arange(3)
    "a" in jnp.arange(3)
    initializers.glorot_normal()(key, (3,))
    initializers.glorot_normal()(key, ())
    nn.one_hot("a", 2)
    linalg.eigh(jnp.eye(2), b=jnp.eye(2))
    linalg.eigh(jnp.eye(2), type=2)
"""


def spaces(package: Any) -> dict[str, Any]:
    return {"nn": package.nn, "jnp": package.numpy, "special": package.scipy.special, "jit": package.jit,
            "linalg": package.scipy.linalg, "lax": package.lax, "np": np, "array": array.array, "vjp": package.vjp,
            "initializers": package.nn.initializers, "key": package.random.key(0)}


@pytest.mark.parametrize("row", [row.strip() for row in REFUSED.strip().splitlines()])
def test_odd_arguments_that_are_refused(row: str) -> None:
    with pytest.raises(Exception) as theirs:
        eval(row, spaces(jax))
    with pytest.raises(theirs.type, match=re.escape(str(theirs.value))):
        eval(row, spaces(styrax))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e20, 300.7, -1.5])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_floats_beyond_the_bounds_of_integers(value: float, dtype: str) -> None:
    """They are the next bound, and NaN is 0, wherever a number turns into an integer."""
    def found(jnp: Any) -> list[Any]:
        zeros = jnp.zeros(2, dtype)
        return [jnp.full((), value, dtype), jnp.full_like(zeros, value), jnp.max(zeros, initial=value),
                jnp.sum(zeros, initial=value), jnp.min(zeros, where=zeros > 0, initial=value),
                jnp.unique(zeros, size=2, fill_value=value), jnp.pad(zeros, 1, constant_values=value)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in zip(found(styrax.numpy), found(jax.numpy), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("row", [row.strip() for row in VALUES.strip().splitlines()])
def test_values_of_odd_arguments(row: str) -> None:
    def found(package: Any) -> Any:
        jnp = package.numpy
        space = {**spaces(package), "c": jnp.array([[True, False], [False, True]]),
                 "choices": jnp.array([[1, 2], [3, 4]]), "sizes": jnp.array([2, 3])}
        text = re.sub(r"nn\.(\w+)\((\[1 .*)\)", r"nn.\1(jnp.array(\2))", row)
        return package.tree.leaves(eval(text, space))

    for ours, theirs in zip(found(styrax), found(jax), strict=True):
        assert (ours.shape, str(ours.dtype), ours.weak_type) == (theirs.shape, str(theirs.dtype), theirs.weak_type)
        precision = 2e-2 if theirs.dtype.itemsize == 2 else 2e-6
        np.testing.assert_allclose(np.asarray(ours, complex), np.asarray(theirs, complex), precision, 1e-6)
