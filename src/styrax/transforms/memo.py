"""Results of transformations, kept on the program that was transformed.

A transformed program is kept as long as the original lives, under everything that it depends on:
the transformation, its static arguments, the original's constants and the trace context.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.programs.check import maybe_check
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr
from ..core.settings import config
from ..core.tracing.trace import state

F = TypeVar("F", bound=Callable[..., Any])


def per_jaxpr(transform: F) -> F:
    """Caches `transform(closed_jaxpr, *static_args)` on the jaxpr; static arguments are hashable."""

    @functools.wraps(transform)
    def cached(closed: ClosedJaxpr, *static: Any) -> Any:
        consts = closed.consts
        key = (transform, static, tuple(map(id, consts)), config.trace_context(),
               tuple(state.axis_sizes.items()))
        cache = closed.jaxpr.cache
        try:
            found = cache.get(key)
        except TypeError:  # a static argument without a hash
            return transform(closed, *static)
        if found is None:
            result = transform(closed, *static)
            for part in result if isinstance(result, tuple) else (result,):
                if isinstance(part, (ClosedJaxpr, Jaxpr)):
                    maybe_check(part)
            # The constants are kept with the result, so that their ids stay theirs. A program that is kept with itself
            # would wait for the garbage collector.
            found = cache[key] = (None if result is closed else result, consts)
        return closed if found[0] is None else found[0]

    return cached  # type: ignore[return-value]
