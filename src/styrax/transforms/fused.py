"""Library functions that are one program where they are called eagerly, and their equations in programs of users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..core.arrays import backends, moving
from ..core.settings import config
from ..core.tracing.source import hide_frames
from ..core.tracing.trace import eval_trace, state
from ..core.types import dtypes
from .jit import LEAF, P, PjitFunction, R, Specialisation
from .naming import function_name
from .signature import Key

# what tracing raises for arguments that a function refuses, or takes in another way than as operands
NO_PROGRAM = (TypeError, ValueError, LookupError, ArithmeticError, NameError, NotImplementedError, backends.Elsewhere)


class FusedFunction(PjitFunction[P, R]):
    """A library function that under a trace is what it consists of, and eagerly one compiled program.

    Where there is no program for arguments, or one for all sizes, it runs step by step, and says itself what is wrong.
    """

    def __init__(self, fun: Callable[P, R], options: dict[str, Any]):
        super().__init__(fun, options, for_all_shapes=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if state.trace is eval_trace:
                try:
                    key, leaves = self._signature.of(args, kwargs, True)
                    program = self._programs.get(key) or self._prepared(key, leaves)
                    if program.code is not None:
                        outs = program.code(*leaves)
                        return outs[0] if program.single else program.out_tree.unflatten(outs)
                except NO_PROGRAM:
                    pass
            return self._fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _prepared(self, key: Key, leaves: Sequence[Any]) -> Specialisation:
        """The program of a key that is new; one without code, where functions run step by step."""
        backend = backends.get()
        code = None
        if not (config.config.jax_disable_jit or config.no_execution.value or _warns(key)
                or backends.apart and moving.elsewhere(leaves, backend)):
            code = self._code_for_all_shapes(key)
        name = function_name(self._fun)
        program = Specialisation(name, LEAF) if code is None else Specialisation(name, code.extra, code)
        self._keep(key, program)
        return program


def _warns(key: Key) -> bool:
    """Whether a static argument is a dtype that the settings shorten, of which every call is to warn."""
    for item in key:
        if type(item) is tuple and len(item) == 2 and isinstance(item[1], (str, type, np.dtype)):
            try:
                if dtypes.canonicalize_dtype(item[1]) != np.dtype(item[1]):
                    return True
            except TypeError:
                pass
    return False


@overload
def fused(fun: Callable[P, R], /) -> FusedFunction[P, R]: ...


@overload
def fused(*, static_argnames: Sequence[str]) -> Callable[[Callable[P, R]], FusedFunction[P, R]]: ...


def fused(fun: Any = None, /, *, static_argnames: Sequence[str] = ()) -> Any:
    """Makes a `FusedFunction` of a library's function."""
    if fun is None:
        return functools.partial(fused, static_argnames=static_argnames)
    return FusedFunction(fun, {"static_argnames": tuple(static_argnames)})


__all__ = ["FusedFunction", "fused"]
