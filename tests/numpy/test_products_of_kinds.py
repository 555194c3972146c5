"""Products of complex arrays that are to be real: parts are taken of the sums, as JAX takes them."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import styrax

C = np.array([[1 + 2j, 3 - 1j], [2j, 1 + 1j]], np.complex64)
F = np.array([[1, 2], [3, 4]], np.float32)

PROGRAMS: dict[str, Any] = {
    **{f"einsum {text}": lambda m, t, text=text: m.numpy.einsum(text, *[C] * (1 + text.count(",")),
                                                                preferred_element_type=t)
       for text in ("ij,jk->ik", "ij,ij", "ij,kl->", "ij->i", "ii", "ii->i")},
    "with reals": lambda m, t: m.numpy.einsum("ij,jk->ik", F, C, preferred_element_type=t),
    **{name: lambda m, t, name=name: getattr(m.numpy, name)(C, C, preferred_element_type=t)
       for name in ("dot", "matmul", "vdot", "inner", "tensordot")},
    "dot_general": lambda m, t: m.lax.dot_general(C, C, (((1,), (0,)), ((), ())), preferred_element_type=t),
    "batches": lambda m, t: m.vmap(lambda x: m.numpy.dot(x, C, preferred_element_type=t))(C),
}


def refusal(m: Any, name: str, dtype: str) -> str | None:
    try:
        m.eval_shape(lambda: PROGRAMS[name](m, dtype))
    except TypeError as error:
        return str(error)
    return None


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_real_parts(name: str, dtype: str) -> None:
    refused = refusal(jax, name, dtype)
    assert refusal(styrax, name, dtype) == refused
    if refused is None:
        out = PROGRAMS[name](styrax, dtype)
        assert out.dtype == dtype
        np.testing.assert_allclose(out, np.real(PROGRAMS[name](jax, None)), rtol=1e-6)


SUMS = [("float32", "float16"), ("float16", "float32"), ("complex64", "float32"), ("bool", "float32"),
        ("int8", "int32")]


@pytest.mark.parametrize("kinds", SUMS)
def test_dtypes_of_sums(kinds: tuple[str, str]) -> None:
    def text(m: Any, subscripts: str) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(m.make_jaxpr(lambda x: m.numpy.einsum(subscripts, x, preferred_element_type=kinds[1]))(
                m.numpy.ones((2, 2), kinds[0])))

    for subscripts in ("ij->i", "ii", "ii->i"):
        assert text(styrax, subscripts) == text(jax, subscripts)
