"""Looking for NaNs and infinities in what programs give: `jax_debug_nans` and `jax_debug_infs`.

Both settings are part of the trace context, so that a program that is watched is another one in every cache, and
programs that are not watched pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..arrays.summands import by_summands, summands
from ..programs.jaxpr import ClosedJaxpr, Literal
from ..settings import config
from ..types import dtypes
from . import source


def watching() -> bool:
    return config.config.jax_debug_nans or config.config.jax_debug_infs


class Watched:
    """A compiled program that raises FloatingPointError where a result is invalid.

    `search(*args)` is called before: it may run the program in smaller steps, and find the one to blame.
    """

    def __init__(self, code: Any, name: str, search: Callable[..., Any] | None = None):
        self._code = code
        self._name = name
        self._search = search

    def __call__(self, *args: Any) -> list[Any]:
        outs = self._code(*args)
        found = _invalid(np.asarray(summands(x) if by_summands(x) else x) for x in outs
                         if dtypes.issubdtype(x.dtype, np.inexact))
        if found is not None:
            print("Invalid nan value encountered in the output of a jax.jit function. Calling the de-optimized "
                  "version.")
            error = FloatingPointError(f"invalid value ({found}) encountered in {self._name}")
            if self._search is not None:
                self._search(*args)
                error = _of_no_operation(found, self._name)
            error.of_a_program = True  # type: ignore[attr-defined]
            error.found = found  # type: ignore[attr-defined]
            raise error
        return outs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._code, name)


def _of_no_operation(found: str, name: str) -> FloatingPointError:
    return FloatingPointError(
        f"invalid value ({found}) encountered in {name}. To tell the operation, the de-optimized function was run, but "
        "the de-optimized function did not give invalid values itself: they may come of optimizations of the whole "
        "program, or stand among its inputs or outputs as literals.")


def check_values(values: Iterable[np.ndarray], name: str) -> None:
    """Raises FloatingPointError for an invalid value among those of an operation that runs no program, while we are
    watching."""
    found = _invalid(v for v in values if dtypes.issubdtype(v.dtype, np.inexact)) if watching() else None
    if found is not None:
        raise FloatingPointError(f"invalid value ({found}) encountered in {name}")


@contextmanager
def of_devices() -> Iterator[None]:
    """Meanwhile an invalid value is told of all that devices compute; its cause is the error of the operation."""
    try:
        yield
    except FloatingPointError as error:
        found = getattr(error, "found", None)
        if found is None:
            raise
        raise FloatingPointError(f"Invalid value ({found}) encountered in sharded computation.") from error


def _invalid(floats: Iterable[np.ndarray]) -> str | None:
    return next(filter(None, map(_kind, floats)), None)


def _kind(values: np.ndarray) -> str | None:
    """What kind of values that are looked for is among these."""
    if config.config.jax_debug_nans and np.isnan(values).any():
        return "nan"
    if config.config.jax_debug_infs and np.isinf(values).any():
        return "inf"
    return None


def run_as_written(error: FloatingPointError, name: str, function: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> None:
    """Calls a Python function, whose program gave an invalid value, as it is written: the error of one of its
    operations stands in the user's lines. Nothing for errors of other kinds.

    Where it ends without one, Python's numbers are to blame: arguments and constants of which the program made arrays.
    """
    if getattr(error, "of_a_program", False):
        function(*args, **kwargs)
        raise _of_no_operation(error.found, f"jit({name})") from error  # type: ignore[attr-defined]


def run_in_steps(closed: ClosedJaxpr, args: Sequence[Any]) -> None:
    """Runs a program equation by equation; errors tell the user's line."""
    jaxpr = closed.jaxpr
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))
    for eqn in jaxpr.eqns:
        ins = [v.value if type(v) is Literal else env[v] for v in eqn.invars]
        try:
            out = eqn.primitive.bind(*ins, **eqn.primitive.get_bind_params(eqn.params))
        except FloatingPointError as error:
            error.add_note(f"In a compiled function, at {source.summarize(eqn.source_info)}.")
            raise
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
