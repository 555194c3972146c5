"""Calls of Python functions from inside a compiled program.

The program calls a native symbol, `hostcall_<number of pointers>`, with the number of a `HostCall` of this process and
the addresses of operands and results. What the symbol is, the backend says (see `cpu.host_calls`). Code that is kept
on disk holds the number, never an address; the number's meaning is that of the process that lowered the program.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .values import Stored, Value

_numbers = itertools.count()
calls: weakref.WeakValueDictionary[int, HostCall] = weakref.WeakValueDictionary()


class HostCall:
    """One call in a program: the function, and the shapes and dtypes of its operands and results."""

    __slots__ = ("__weakref__", "function", "ins", "number", "outs")

    def __init__(self, function: Callable[..., Sequence[np.ndarray]], ins: Sequence[tuple], outs: Sequence[tuple]):
        self.function = function
        self.ins = list(ins)
        self.outs = list(outs)
        self.number = next(_numbers)
        calls[self.number] = self


def host_call(b: Any, function: Callable[..., Sequence[np.ndarray]], outs: Sequence[tuple],
              inputs: Sequence[Value]) -> list[Value]:
    """See `Builder.host_call`."""
    call = HostCall(function, [(v.shape, v.dtype) for v in inputs], [(tuple(s), np.dtype(d)) for s, d in outs])
    b.host_calls.append(call)

    def body(n: Any, targets: list[Stored], sources: list[Stored]) -> None:
        n.call(f"hostcall_{len(sources) + len(targets)}", [call.number, *sources, *targets], reads=sources, writes=targets)

    return b.nest(outs, body, inputs)
