"""Numbers drawn again until they are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array

from .keys import split_apart
from .uniforms import uniform


def until_accepted(key: Any, like: Any, propose: Callable[[Any, Any], tuple[Any, Any]], steps: Any) -> Array:
    """Numbers of the shape and dtype of `like`; -1 where none was accepted in `steps` turns.

    `propose` makes numbers of two sets of uniform ones, and says which of them it accepts.
    """
    from styrax.numpy import any

    def body(carry: Any) -> Any:
        i, out, accepted, key = carry
        key, first, second = split_apart(key, 3)
        k, accept = propose(uniform(first, like.shape, like.dtype), uniform(second, like.shape, like.dtype))
        out, accepted = lax.select(accept, k, out), accepted | accept
        return i + 1, out, accepted, key

    def going(carry: Any) -> Any:
        i, _, accepted, _ = carry
        return any(~accepted) & (i < steps)

    start = (0, lax.full_like(like, -1), lax.full_like(like, False, dtype=np.bool_), key)
    return lax.while_loop(going, body, start)[1]
