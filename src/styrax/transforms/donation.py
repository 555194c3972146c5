"""Donation: arguments whose memory a compiled program may take for its results.

A donated argument is deleted by the call when a result fits into its memory. Where none does, a warning
names the argument, since giving it away achieves nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..core.arrays.array import Array
from ..core.programs.jaxpr import ClosedJaxpr, Literal
from ..core.tracing import errors, source
from ..core.types.avals import ShapedArray


class Donation:
    """What becomes of the donated arguments of a program.

    `exact` marks those of a result's shape and dtype, whose memory the compiler may write to; `consumed` are
    the numbers of all that are deleted by a call.
    """

    __slots__ = ("consumed", "exact", "names", "where")

    def __init__(self, closed: ClosedJaxpr, donated: Sequence[bool], name: str):
        info = closed.jaxpr.debug_info
        self.where = info.func_src_info if info.arg_names else name
        self.names = info.arg_names
        used = {v for eqn in closed.eqns for v in eqn.invars if type(v) is not Literal}
        used |= {v for v in closed.jaxpr.outvars if type(v) is not Literal}
        # An argument that the program does not read is not passed to it, so it is not given away either.
        given = [i for i, (v, d) in enumerate(zip(closed.jaxpr.invars, donated, strict=True))
                 if d and v in used and isinstance(v.aval, ShapedArray)]
        avals = closed.in_avals
        results = [a for a in closed.out_avals if isinstance(a, ShapedArray)]
        exact = _match(given, avals, results, lambda a: (a.shape, a.dtype))
        left = [i for i in given if i not in exact]
        same_size = _match(left, avals, results, lambda a: a.size * a.dtype.itemsize)
        self.exact = tuple(i in exact for i in range(len(avals)))
        self.consumed = tuple(sorted(exact | same_size))
        unusable = [i for i in left if i not in same_size]
        if unusable:
            arrays = ", ".join(f"{avals[i].str_short(short_dtypes=False)} ({self._argument(i)})" for i in unusable)
            source.warn(
                f"Some donated buffers were not usable: {arrays}.\nNo result of {self.where} is left whose shape and "
                "dtype are those of the donated array, so donating it saves no memory: leave it out of donate_argnums.")

    def _argument(self, i: int) -> str:
        return f"argument {self.names[i]}" if i < len(self.names) else f"argument number {i}"

    def prepare(self, arrays: list[Any]) -> list[Array]:
        """Readies the arguments of a call, in place; returns the arrays to delete after it.

        An array that NumPy looks into is neither taken nor deleted. Raises JaxRuntimeError where a donated array
        is passed a second time.
        """
        gone = []
        for i in self.consumed:
            x = arrays[i]
            for j, other in enumerate(arrays):
                if i != j and getattr(other, "buffer", None) is x.buffer is not None:
                    raise errors.JaxRuntimeError(
                        f"Attempt to donate an array that is passed twice to {self.where}: {self._argument(i)} and "
                        f"{self._argument(j)} are the same array, and its memory can be given away only once. Pass a "
                        "copy (jnp.copy) or do not donate it.")
            if x._numpy is not None and sys.getrefcount(x._numpy) > 2:  # the array's own, and that of this question
                arrays[i] = type(x)(x.aval, x.buffer, x.committed)
            else:
                x._numpy = None
                gone.append(x)
        return gone


def _match(arguments: Sequence[int], avals: Sequence[Any], results: list[Any], key: Any) -> set[int]:
    """The arguments that find a result with the same key; removes those results from the list."""
    matched = set()
    for i in arguments:
        found = next((k for k, r in enumerate(results) if key(r) == key(avals[i])), None)
        if found is not None:
            matched.add(i)
            del results[found]
    return matched


class Donating:
    """A program that deletes its donated arguments."""

    __slots__ = ("code", "plan")

    def __init__(self, code: Callable[..., list[Any]], plan: Donation):
        self.code = code
        self.plan = plan

    def __call__(self, *args: Any) -> list[Any]:
        arrays = list(args)
        gone = self.plan.prepare(arrays)
        outs = self.code(*arrays)
        for x in gone:
            x.delete()
        return outs


__all__ = ["Donating", "Donation"]
