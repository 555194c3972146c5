"""What is traced and compiled, told to Python's loggers: with how long it took, and why it was necessary.

The loggers have the names by which tools know those of JAX. Messages are of level DEBUG, or WARNING with
`jax_log_compiles` on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.programs.jaxpr import JaxprEqn
from ..core.settings import config
from ..core.settings.flags import TraceContext, traced_flags
from ..core.settings.listeners import record_event_duration_secs
from ..core.tracing import source
from ..core.trees import tree_paths
from ..core.types.avals import AbstractValue
from .signature import Call, Key, Signature

_TIMES = "jax._src.dispatch"
_PROGRAMS = "jax._src.interpreters.pxla"
_MISSES = "jax._src.interpreters.partial_eval"
_CHECKPOINTS = "jax._src.ad_checkpoint"
TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
_seen: set[str] = set()  # where functions stand whose first tracing was explained


def _tell(logger: str, message: Callable[[], str], warning: bool) -> None:
    """Logs a message where somebody may hear it: a program that has not imported `logging` hears warnings alone."""
    if warning or "logging" in sys.modules:
        import logging

        log, level = logging.getLogger(logger), logging.WARNING if warning else logging.DEBUG
        if log.isEnabledFor(level):
            log.log(level, message())


class timed:
    """Context manager: tells how long what it encloses took, also those who listen to an event for a function."""

    __slots__ = ("_begin", "_event", "_fun_name", "_what")

    def __init__(self, what: str, event: str, fun_name: str):
        self._what = what
        self._event = event
        self._fun_name = fun_name

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            seconds = time.perf_counter() - self._begin
            record_event_duration_secs(self._event, seconds, fun_name=self._fun_name)
            _tell(_TIMES, lambda: f"Finished {self._what} in {seconds:.9f} sec", config.log_compiles.value)


def compiling(name: str, avals: Sequence[Any]) -> None:
    """Tells what is going to be compiled."""
    _tell(_PROGRAMS, lambda: f"Compiling jit({name}) with global shapes and types {tuple(avals)}.",
          config.log_compiles.value)


def saved_by_checkpoint(inputs: Sequence[AbstractValue], values: Sequence[tuple[AbstractValue, JaxprEqn]]) -> None:
    """Tells what the backward pass of a checkpoint keeps: arguments, and values with the equations that made them."""
    if inputs or values:
        _tell(_CHECKPOINTS, lambda: _saved(inputs, values), False)


def _saved(inputs: Sequence[AbstractValue], values: Sequence[tuple[AbstractValue, JaxprEqn]]) -> str:
    message = "remat-decorated function "
    if inputs:
        shapes = "\n  ".join(aval.str_short(short_dtypes=False) for aval in inputs)
        message += f"saving inputs with shapes:\n  {shapes}\n" + "and " * bool(values)
    if values:
        made = "\n  ".join(f"{aval.str_short(short_dtypes=False)} from output of {eqn.primitive.name} from "
                           f"{source.summarize(eqn.source_info)}" for aval, eqn in values)
        message += f"saving these intermediates:\n  {made}"
    return message


def explain_miss(fun: Callable[..., Any], signature: Signature, key: Key, known: Iterable[Key]) -> None:
    """Tells why a function is traced: what is new about a call, next to the earlier one that is most like it."""
    where = source.current_line().partition(": ")[0]
    if not where or source.is_ours(getattr(fun, "__code__", _differences.__code__)):
        return  # a function of ours, or a call
    lines = [f"TRACING CACHE MISS at {where}:"]
    reasons = [_differences(signature, key, old) for old in known]
    described = source.describe_function(fun)
    name, _, place = described.partition(" at ")
    if reasons:
        lines += [f"  for {name} defined at {place}",
                  "  all previously seen cache keys differ. For the closest previous key:", *min(reasons, key=len)]
    else:
        lines += ["  never seen function:", f"    {name} id={id(fun)} defined at {place}"]
        if place in _seen:
            lines += ["  but seen another function defined on the same line; maybe the function is",
                      "  being re-defined repeatedly, preventing caching?"]
        _seen.add(place)
    _tell(_MISSES, lambda: "\n".join(lines), True)


def _differences(signature: Signature, key: Key, old: Key) -> list[str]:
    now, before = signature.read(key), signature.read(old)
    if now.flat.in_tree != before.flat.in_tree:
        return ["  different input pytree:", *(
            f"  * at input path {tree_paths.keystr(path)}, now {a} and before {b}, so {why}"
            for path, b, a, why in tree_paths.equality_errors_pytreedef(before.flat.in_tree, now.flat.in_tree))]
    if (now.flat.fixed, now.flat.named) != (before.flat.fixed, before.flat.named):
        return ["  different value of static args:",
                f"  * now {_static(now)} and before {_static(before)}"]
    lines = []
    names = now.flat.info(now.avals).arg_names
    for name, a, b in zip(names, now.avals, before.avals):
        if a != b:
            now_type, before_type = (x.str_short(short_dtypes=True) for x in (a, b))
            if a.weak_type != b.weak_type:
                now_type += f"{{weak_type={a.weak_type}}}"
                before_type += (f"{{weak_type={b.weak_type}}} "
                                "https://docs.jax.dev/en/latest/type_promotion.html#weak-types")
            lines.append(f"  * at {name}, now {now_type} and before {before_type}")
    if lines:
        return ["  different input types:", *lines]
    contexts = [next((part for part in (k[0] if isinstance(k[0], tuple) else ()) if type(part) is TraceContext), k[0])
                for k in (key, old)]
    changed = [f"  * {flag.name} differs: now {a} and before {b}"
               for flag, a, b in zip(traced_flags(), *contexts) if a != b]
    return ["  Tracing context doesn't match, e.g. due to config or context manager.", *changed]


def _static(call: Call) -> str:
    values = [repr(value) for _, value in call.flat.fixed]
    return ", ".join([*values, *(f"{name}: {value!r}" for name, value in call.flat.named)])
