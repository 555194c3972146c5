"""The same program of kernels in both libraries: JAX interprets, Styrax compiles."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


class Library:
    """The modules that programs of kernels use. `interpret` is what they pass to `pallas_call`."""

    def __init__(self, name: str, interpret: bool):
        self.name = name
        self.interpret = interpret
        self.jax = importlib.import_module(name)
        self.lax = importlib.import_module(f"{name}.lax")
        self.jnp = importlib.import_module(f"{name}.numpy")
        self.pl = importlib.import_module(f"{name}.experimental.pallas")
        self.tpu = importlib.import_module(f"{name}.experimental.pallas.tpu")
        self.triton = importlib.import_module(f"{name}.experimental.pallas.triton")

    def call(self, kernel: Callable[..., None], shape: Any = (12,), dtype: Any = "float32",
             **options: Any) -> Callable[..., Any]:
        """`pallas_call` of a kernel with one result."""
        out = self.jax.ShapeDtypeStruct(shape, self.jnp.dtype(dtype))
        return self.pl.pallas_call(kernel, out, interpret=self.interpret, **options)

    def blocks(self, kernel: Callable[..., None], shape: Any = (12,), dtype: Any = "float32", size: int = 4,
               steps: int = 3, operands: int = 1, **options: Any) -> Callable[..., Any]:
        """The call of a kernel on vectors in blocks, one after the other."""
        spec = self.pl.BlockSpec((size,), lambda i: i)
        return self.call(kernel, shape, dtype, grid=(steps,), in_specs=[spec] * operands, out_specs=spec, **options)


ORACLE, OURS = Library("jax", True), Library("styrax", False)

Program = Callable[[Library], Any]


def results(program: Program) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What both libraries give, as NumPy arrays; small floats in float32."""
    def arrays(m: Library) -> list[np.ndarray]:
        leaves = m.jax.tree.leaves(program(m))
        values = [m.jnp.asarray(x) for x in leaves]
        return [np.asarray(x.astype("float32") if m.jnp.issubdtype(x.dtype, m.jnp.floating) else x) for x in values]

    return arrays(ORACLE), arrays(OURS)


def same(program: Program, tolerance: float = 0.0) -> None:
    """Both libraries give the same."""
    wanted, found = results(program)
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def same_error(program: Program) -> None:
    """Both libraries refuse, with errors of one class."""
    caught = []
    for m in (ORACLE, OURS):
        try:
            program(m)
        except Exception as error:
            caught.append(type(error).__name__)
    assert len(caught) == 2, "one of them does not refuse"
    assert caught[0] == caught[1]
