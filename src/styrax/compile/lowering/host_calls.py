"""Calls of Python functions from inside a compiled program.

The program calls a native symbol, `hostcall_<number of pointers>`, with the number of a `HostCall` of this process and
the addresses of operands and results. What the symbol is, the backend says (see `cpu.host_symbols`). Code that is kept
on disk holds the number, never an address; the number's meaning is that of the process that lowered the program.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.types.dims import NotGeneric
from ..ir.values import Stored, Value, is_empty

_numbers = itertools.count()
calls: weakref.WeakValueDictionary[int, HostCall] = weakref.WeakValueDictionary()


class HostCall:
    """One call in a program: the function, and the shapes and dtypes of its operands and results.

    A function that works `in_place` is given the lists of operands and results, and writes the results.
    """

    __slots__ = ("__weakref__", "function", "in_place", "ins", "number", "outs")

    def __init__(self, function: Callable[..., Any], ins: Sequence[tuple], outs: Sequence[tuple],
                 in_place: bool = False):
        self.function = function
        self.in_place = in_place
        self.ins = list(ins)
        self.outs = list(outs)
        self.number = next(_numbers)
        calls[self.number] = self


def host_call(b: Any, function: Callable[..., Any], outs: Sequence[tuple], inputs: Sequence[Value],
              in_place: bool = False) -> list[Value]:
    """See `Builder.host_call`. Raises NotGeneric where sizes are known only at run time."""
    if any(type(d) is not int for shape, *_ in (*((v.shape,) for v in inputs), *outs) for d in shape):
        raise NotGeneric("a call of a function of arrays, whose sizes must be known")
    call = HostCall(function, [(v.shape, v.dtype) for v in inputs],
                    [(tuple(out[0]), np.dtype(out[1])) for out in outs], in_place)
    b.host_calls.append(call)
    filled = [(*spec, *out[2:]) for spec, out in zip(call.outs, outs, strict=True) if not is_empty(spec[0])]
    given = [v for v in inputs if not is_empty(v.shape)]

    def body(n: Any, targets: list[Stored], sources: list[Stored]) -> None:
        n.call(f"hostcall_{len(sources) + len(targets)}", [call.number, *sources, *targets], reads=sources,
               writes=targets)

    results = iter(b.nest(filled, body, given))
    return [b.value(s, d, lambda _, d=d: b.const(0, d)) if is_empty(s) else next(results) for s, d in call.outs]
