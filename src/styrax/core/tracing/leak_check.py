"""`jax_check_tracer_leaks`: whether tracers are still held when their trace is over."""

from __future__ import annotations

import gc
from collections.abc import Callable

from .trace import Trace, Tracer


def refuse_leaks(ref: Callable[[], Trace | None], kind: str) -> None:
    """Raises Exception where a tracer outlives its trace, of which it is given a weak reference, and names it.

    Traces and tracers refer to each other, so that the garbage collector has to run: this is for looking for errors.
    """
    if ref() is not None:
        gc.collect()
    trace = ref()
    if trace is None:
        return
    held = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    raise Exception(f"Leaked trace {kind}. Leaked tracer(s):\n\n" + "\n".join(map(repr, held)))
