"""What JAX refuses, when it is traced or not before it is compiled."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import styrax

X = np.arange(6, dtype=np.float32).reshape(2, 3)

CALLS: dict[str, Any] = {
    **{f"{name} of {q!r}": lambda m, name=name, q=q: getattr(m.numpy, name)(X, q)
       for name in ("quantile", "nanquantile", "percentile") for q in (1, True, np.array([0, 1]), np.uint8(1), 0.5)},
    "inverted_cdf": lambda m: m.numpy.quantile(X, 1, method="inverted_cdf"),
    "levels of rank 2": lambda m: m.numpy.quantile(X, np.ones((2, 2), int)),
    "another method": lambda m: m.numpy.quantile(X, 1, method="none"),
    "collapse of an int": lambda m: m.lax.collapse(2, 0),
    "collapse of a list": lambda m: m.lax.collapse([1, 2], 0, 1),
    "split by an int": lambda m: m.lax.split(X, 1),
    "split by an int along no axis": lambda m: m.lax.split(X, 1, 5),
    "split of an int": lambda m: m.lax.split(2, (1,)),
    "tile by an int": lambda m: m.lax.tile(X, 2),
    "tile by nothing": lambda m: m.lax.tile(X, None),
    "meshgrid of an int": lambda m: m.numpy.meshgrid(1),
    "meshgrid of a scalar": lambda m: m.numpy.meshgrid(m.numpy.arange(2), np.float32(1), indexing="ij"),
    "meshgrid of a matrix": lambda m: m.numpy.meshgrid(X, 1, sparse=True),
    "meshgrid of a list": lambda m: m.numpy.meshgrid([1, 2], indexing="none"),
    "meshgrid of vectors": lambda m: m.numpy.meshgrid(X[0], X[1]),
    **{name: lambda m, name=name: getattr(m.numpy, name)(X + 1j, axis=0)
       for name in ("argmax", "argmin", "nanargmax", "nanargmin")},
    **{f"{name} of a mask of floats": lambda m, name=name: getattr(m.numpy, name)(X, where=X)
       for name in ("sum", "mean", "var", "std", "max", "min", "nansum", "nanprod", "nanmean", "nanvar", "nanstd",
                    "nanmax", "nanmin")},
    **{f"{name} over no sharding": lambda m, name=name, given=given: getattr(m.numpy, name)(*given, out_sharding=7)
       for name, given in {"zeros": (2,), "ones": (2,), "full": (2, 1), "zeros_like": (X,),
                               "ones_like": (X,), "full_like": (X, 1), "array": (X,), "arange": (2,)}.items()},
    "arange of a list": lambda m: m.numpy.arange(0, [3]),
    **{f"pad by {widths}": lambda m, widths=widths: m.numpy.pad(X, widths)
       for widths in (None, (None, 1), ((1,), (2,)), (1, (1, 2)), 1.5, ((1, 2), (0, 1)), ((3, 4),))},
    "argmax in a program": lambda m: m.jit(m.numpy.argmin)(X + 1j),
}

COUNTS = [1.5, np.float32(2), np.array([2.0]), np.array([2]), np.array([[1, 2]]), np.array([1.0, 2.0]), True]


@pytest.mark.parametrize("count", COUNTS, ids=repr)
def test_one_count_of_repetitions_is_an_integer(count):
    expected, got = (outcome(m, lambda m: m.numpy.repeat(X, count, axis=0)) for m in (jax, styrax))
    np.testing.assert_equal(got[:1], expected[:1])


def outcome(m: Any, call: Any) -> Any:
    try:
        return [np.asarray(v) for v in m.tree.leaves(call(m))]
    except (AttributeError, TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CALLS)
def test_refusals(name: str) -> None:
    ours, theirs = (outcome(m, CALLS[name]) for m in (styrax, jax))
    if isinstance(theirs, tuple):
        assert ours == theirs
    else:
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["sin", "sqrt", "log2", "isfinite", "isposinf", "all", "mean", "sum", "reciprocal"])
@pytest.mark.parametrize("elements", [["a"], [None], ["2020-01-01"]], ids=["texts", "objects", "dates"])
def test_arrays_of_no_numbers(name: str, elements: list[Any]) -> None:
    array = np.array(elements, "datetime64[D]" if elements == ["2020-01-01"] else None)
    for m in (styrax, jax):
        with pytest.raises(TypeError):
            getattr(m.numpy, name)(array)


@pytest.mark.parametrize("arguments", [([2],), (2, [2]), (np.array([2]),)], ids=["rows", "columns", "a vector"])
def test_identity_of_no_size(arguments: Any) -> None:
    for m in (styrax, jax):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
            m.numpy.eye(*arguments)


TRACED: dict[str, Any] = {
    **{name: lambda m, name=name: m.make_jaxpr(lambda x: getattr(m.numpy, name)(x, axis=0))(X + 1j)
       for name in ("argmax", "argmin", "nanargmax")},
    "lax.argmax": lambda m: m.make_jaxpr(lambda x: m.lax.argmax(x, 0, np.int32))(X + 1j),
    **{name: lambda m, name=name: m.eval_shape(getattr(m.numpy.fft, name), X[:, :0]).shape
       for name in ("rfft", "rfft2", "rfftn")},
}


@pytest.mark.parametrize("name", TRACED)
def test_shapes_of_what_has_no_values(name: str) -> None:
    assert str(TRACED[name](styrax)) == str(TRACED[name](jax))


@pytest.mark.parametrize("name", ["rfft", "rfft2", "rfftn"])
def test_no_transform_of_length_zero(name: str) -> None:
    for m in (styrax, jax):
        for transform in (getattr(m.numpy.fft, name), m.jit(getattr(m.numpy.fft, name))):
            with pytest.raises(ValueError):
                transform(X[:, :0])


@pytest.mark.parametrize("operand", [np.array(["1", "2"]), np.array([None, None]), np.array([b"1", b"2"]),
                                     np.array(["2020-01-01"], "datetime64[D]"), np.array([3], "timedelta64[s]")],
                         ids=lambda x: str(x.dtype))
def test_what_is_no_number(operand: np.ndarray) -> None:
    """NumPy would read some of these as numbers."""
    for m in (styrax, jax):
        for function in (m.numpy.sin, m.numpy.exp2, m.numpy.mean, m.scipy.special.erf):
            with pytest.raises(TypeError):
                function(operand)
