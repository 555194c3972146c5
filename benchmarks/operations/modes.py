"""What is measured of an operation: with which types, jitted or not, itself or its gradient or a batch of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .arguments import BFLOAT16, DOUBLE, HALF, SINGLE
from .rows import Row

MODES = {"f32": SINGLE, "x64": DOUBLE, "bf16": BFLOAT16, "f16": HALF, "grad": SINGLE, "eager": SINGLE, "vmap": SINGLE}
BATCH = 3


class LeftOut(Exception):
    """A row has no place in a mode."""


def prepared(row: Row, mode: str, rng: np.random.Generator) -> tuple[Callable[..., Any], list[Any]]:
    """What to call, and its arguments."""
    lead = (BATCH,) if mode == "vmap" else ()
    arguments = [jnp.asarray(a.draw(MODES[mode], rng, lead)) for a in row.arguments]
    if mode == "eager":
        return row.function, arguments
    if mode == "vmap":
        if not arguments:
            raise LeftOut("no arguments")
        return jax.jit(jax.vmap(row.function)), arguments
    if mode == "grad":
        return gradient(row.function, arguments, rng)
    return jax.jit(row.function), arguments


def inexact(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def gradient(
    function: Callable[..., Any], arguments: Sequence[Any], rng: np.random.Generator
) -> tuple[Callable[..., Any], list[Any]]:
    """The gradient of a sum of a function's results, weighted so that no two count the same."""
    positions = tuple(i for i, a in enumerate(arguments) if inexact(a))
    if not positions:
        raise LeftOut("no argument to differentiate in")
    results = [r for r in jax.tree_util.tree_leaves(jax.eval_shape(function, *arguments)) if inexact(r)]
    if not results:
        raise LeftOut("no result to differentiate")
    weights = [jnp.asarray(rng.uniform(0.5, 1.5, r.shape)).astype(r.dtype) for r in results]

    def weighted(weights: list[Any], *arguments: Any) -> Any:
        results = filter(inexact, jax.tree_util.tree_leaves(function(*arguments)))
        return sum(jnp.sum(r * w).real for r, w in zip(results, weights))

    return jax.jit(jax.grad(weighted, tuple(i + 1 for i in positions))), [weights, *arguments]


def structures(row: Row, mode: str) -> list[Any]:
    """The shapes and types of a row's arguments, without elements."""
    return [jax.ShapeDtypeStruct(a.shape, a.type(MODES[mode])) for a in row.arguments]
