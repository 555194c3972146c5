"""`jax_check_tracer_leaks`: whether tracers are still held when their trace is over."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from ..settings import config
from .trace import Tracer


def checked(run: Callable[[list[Any]], Any], kind: str) -> Any:
    """What `run` gives; it puts the trace it makes into the list that it is given.

    Raises Exception where a tracer outlives the trace, and names it. Traces and tracers refer to each other, so
    that the garbage collector has to run: this is for looking for errors.
    """
    traces: list[Any] = []
    result = run(traces)
    if not config.check_tracer_leaks.value:
        return result
    ref = weakref.ref(traces.pop())
    if ref() is not None:
        gc.collect()
    trace = ref()
    if trace is None:
        return result
    held = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    raise Exception(f"Leaked trace {kind}. Leaked tracer(s):\n\n" + "\n".join(map(repr, held)))
