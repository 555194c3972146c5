"""Eager operations: compiled once for all shapes.

An operation is traced on sizes that record what is asked of them (`core.types.dims`). The program is kept with its
guards under the operation, its static parameters and its arguments' types and ranks, and serves every shape that
would have been traced alike. Where a trace turns out to need plain integers (`NotGeneric`), it is compiled for the
shape at hand; so is an operation on which, at one shape, as much time was spent as that would take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.arrays.array import Array
from ..core.arrays.backends import params_key
from ..core.arrays.explicit import Committed, tells_sharding
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.settings.flags import trace_context
from ..core.tracing.invalid_values import Watched, watching
from ..core.tracing.staging import trace_to_jaxpr
from ..core.types.avals import AbstractToken, ShapedArray, shaped
from ..core.types.dims import Dim, NotGeneric, Recorder, evaluate, tracing
from .executable import Executable

COMPILATION = 0.02  # seconds that it takes at least to compile a program that no disk has (measured: 15 to 40 ms)
FOREVER = 1 << 62  # calls


class Kernel:
    """A generic program: the compiled code, its guards, its results' shapes, the seconds that it took to make."""

    __slots__ = ("code", "recorder", "out_avals", "extra", "seconds")

    def __init__(self, code: Any, recorder: Recorder, out_avals: Sequence[Any], extra: Any, seconds: float):
        self.code = code
        self.recorder = recorder
        self.out_avals = out_avals
        self.extra = extra  # what the tracer of a composite function wants to keep (the results' structure)
        self.seconds = seconds

    def bind(self, values: Sequence[int], specialise: Callable[[], None]) -> Bound:
        complete = self.recorder.complete(values)
        outs = [a if all(type(d) is int for d in a.shape) else
                shaped(tuple(evaluate(d.terms, complete) if type(d) is Dim else d for d in a.shape), a.dtype,
                       a.weak_type)
                for a in self.out_avals]
        return Bound(self, outs, tuple(values), specialise)


class Bound:
    """A generic program for certain sizes.

    It keeps account of the time that is spent in it: its first call is timed, to the end of its work, and then ever
    fewer, which stand for those before them. Once the sum reaches the price of a program for these sizes alone,
    `specialise` is called, which is to put one in its place: whatever such a program saves, the two together cost at
    most twice the better choice.
    """

    __slots__ = ("code", "out_avals", "sizes", "out_bytes", "extra", "price", "run", "skipped", "left", "specialise")

    def __init__(self, kernel: Kernel, out_avals: Sequence[Any], sizes: tuple[int, ...],
                 specialise: Callable[[], None]):
        self.code = kernel.code
        self.out_avals = out_avals
        self.sizes = sizes
        self.out_bytes = [a.size * a.dtype.itemsize for a in out_avals]
        self.extra = kernel.extra
        self.price = max(kernel.seconds, COMPILATION)
        self.run: Callable[..., list[Any]] | None = None  # what calls the program, found at the first call
        self.skipped = 0  # calls between the last one that was timed and the next
        self.left = 0  # of those, the ones to come
        self.specialise = specialise

    def __call__(self, *args: Any) -> list[Any]:
        if self.left:
            self.left -= 1
            return self.run(*args)  # type: ignore[misc]
        return self._timed(args)

    def _timed(self, args: Sequence[Any]) -> list[Any]:
        _wait(args)
        if self.run is None:
            self.run = self.code.sized(args, self.out_avals, self.out_bytes, self.sizes)
        start = time.perf_counter()
        outs = self.run(*args)
        _wait(outs)
        seconds = time.perf_counter() - start
        self.price -= seconds * (1 + self.skipped)
        if self.price <= 0:
            self.left = FOREVER
            self.specialise()
        else:
            self.skipped = self.left = min(2 * self.skipped + 1, int(self.price / max(seconds, 1e-9)))
        return outs


class Relabelled:
    """An operation that gives its operand another shape: the result has the same memory."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __call__(self, x: Array) -> list[Any]:
        return [Array(self.aval, x.buffer or x._live(), x.committed)]


def _wait(values: Sequence[Any]) -> None:
    for x in values:
        if isinstance(x, Array):  # what has no memory is NumPy's
            x.block_until_ready()


class Sizes:
    """The sizes of a call in a fixed order: those of the arguments, then those among the parameters."""

    __slots__ = ("values", "skeleton")

    def __init__(self) -> None:
        self.values: list[int] = []
        self.skeleton: list[Any] = []

    def take(self, d: int) -> int | None:
        """Notes a size; its symbol, or None for 0, 1 and negative ones, which are part of the structure."""
        if type(d) is not int or d < 2:
            self.skeleton.append(d)
            return None
        self.skeleton.append("size")
        self.values.append(d)
        return len(self.values) - 1


def _sized_param(sizes: Sizes, value: Any) -> Any:
    """The parameter with symbol numbers in place of sizes, as nested tuples ("size", k) | value."""
    if type(value) in (tuple, list):
        return [_sized_param(sizes, v) for v in value]
    if type(value) is int:
        k = sizes.take(value)
        return ("size", k) if k is not None else value
    sizes.skeleton.append(value)
    return value


def _with_dims(value: Any, recorder: Recorder) -> Any:
    if type(value) is tuple and len(value) == 2 and value[0] == "size":
        return recorder.symbol(value[1])
    if type(value) is list:
        return tuple(_with_dims(v, recorder) for v in value)
    return value


class Eager:
    """The compiled operations of a backend."""

    def __init__(self, compile: Callable[..., Any]):
        self.compile = compile
        self.exact: dict[Any, Any] = {}
        self.kernels: dict[Any, list[Kernel]] = {}
        self.refused: set[Any] = set()
        self.compiled = 0  # programs compiled, for those who count

    def primitive(self, primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """The program that runs a primitive on arrays of these types."""
        key: tuple[Any, ...] = (primitive, *[x.aval for x in arrays], *params.items(), trace_context())
        try:
            found = self.exact.get(key)
        except TypeError:  # a parameter without a hash
            key = (primitive, *[x.aval for x in arrays], params_key(params), trace_context())
            found = self.exact.get(key)
        if found is None:
            if len(self.exact) > 8192:
                self.exact.clear()
            found = self._keep(key, self._primitive(key, primitive, [x.aval for x in arrays], params))
        return found

    def _keep(self, key: tuple[Any, ...], code: Any) -> Any:
        if watching():
            code = Watched(code, key[0].name)
        elif isinstance(code, Executable):
            code = code.direct()
        self.exact[key] = code
        return code

    def _primitive(self, exact_key: tuple[Any, ...], primitive: Any, avals: Sequence[ShapedArray],
                   params: dict[str, Any]) -> Any:
        if not primitive.has_abstract_eval:
            raise NotImplementedError(f"Evaluation rule for '{primitive.name}' not implemented")

        ordered = primitive.traits.ordered
        if (ordered(params) if callable(ordered) else ordered) and not tells_sharding(avals, params.values()):
            out, _ = primitive.abstract_eval(*avals, **params)
            if out.size == avals[0].size and isinstance(out.dtype, np.dtype):
                return Relabelled(out)

        def fun(given: dict[str, Any]) -> Callable[..., list[Any]]:
            def run(*tracers: Any) -> list[Any]:
                out = primitive.bind(*tracers, **given)
                return list(out) if primitive.multiple_results else [out]

            return run

        def exact() -> Any:
            self.compiled += 1
            closed = trace_to_jaxpr(fun(params), avals)
            code = self.compile(closed, name=primitive.name)
            return Committed(code) if any(a.given_sharding is not None for a in closed.out_avals) else code

        if primitive.generic_in_sizes and not tells_sharding(avals, params.values()) and not any(
                isinstance(a, AbstractToken) for a in avals):
            sizes = Sizes()
            sized = [tuple(map(sizes.take, a.shape)) for a in avals]
            plain, with_sizes = {}, {}
            for name, value in params.items():
                if name in primitive.traits.sizes:
                    with_sizes[name] = _sized_param(sizes, value)
                else:
                    plain[name] = value
            key = (primitive, tuple((a.dtype, a.weak_type, a.ndim) for a in avals), tuple(sizes.skeleton),
                   params_key(plain), trace_context())

            def trace(recorder: Recorder) -> tuple[ClosedJaxpr, None]:
                given = {**plain, **{n: _with_dims(v, recorder) for n, v in with_sizes.items()}}
                return trace_to_jaxpr(fun(given), [_generic_aval(a, s, recorder)
                                                   for a, s in zip(avals, sized, strict=True)]), None

            bound = self.generic(key, sizes.values, trace, primitive.name, lambda: self._keep(exact_key, exact()))
            if bound is not None:
                return bound
        return exact()

    def function(self, fun: Any, key: tuple[Any, ...], name: str,
                 trace: Callable[[tuple[Any, ...]], tuple[ClosedJaxpr, Any]],
                 specialise: Callable[[], None]) -> Bound | None:
        """A composite function's program for a call, or None where it cannot be generic.

        Args:
          fun: the function.
          key: what distinguishes its calls, with the abstract values of its arguments.
          name: the function's name.
          trace: gives the program for a key whose abstract values have generic sizes, and something to keep with it.
          specialise: is called when a program for these sizes alone would have paid.
        """
        sizes = Sizes()
        sized = [tuple(map(sizes.take, a.shape)) if type(a) is ShapedArray else None for a in key]
        full = (fun, *[a if s is None else (a.dtype, a.weak_type, a.ndim) for a, s in zip(key, sized, strict=True)],
                *sizes.skeleton)

        def on_generic_sizes(recorder: Recorder) -> tuple[ClosedJaxpr, Any]:
            return trace(tuple([a if s is None else _generic_aval(a, s, recorder)
                                for a, s in zip(key, sized, strict=True)]))

        return self.generic(full, sizes.values, on_generic_sizes, name, specialise)

    def generic(self, key: Any, values: Sequence[int], trace: Callable[[Recorder], tuple[ClosedJaxpr, Any]],
                name: str, specialise: Callable[[], None]) -> Bound | None:
        """A program under `key` that admits these sizes; traced and compiled if there is none yet."""
        if key in self.refused:
            return None
        known = self.kernels.setdefault(key, [])
        for kernel in known:
            if kernel.recorder.admits(kernel.recorder.complete(values)):
                return kernel.bind(values, specialise)
        if len(known) >= 16:
            return None  # its traces differ with every shape: nothing generic about it
        start = time.perf_counter()
        recorder = Recorder(values)
        before, tracing.active = tracing.active, True
        try:
            closed, extra = trace(recorder)
            if closed.consts and any(hasattr(c, "_trace") for c in closed.consts):
                raise NotGeneric("captures a tracer")
            code = self.compile(closed, name=name, sizes=recorder)
        except NotGeneric:
            self.refused.add(key)
            return None
        finally:
            tracing.active = before
        self.compiled += 1
        kernel = Kernel(code, recorder, closed.out_avals, extra, time.perf_counter() - start)
        known.append(kernel)
        return kernel.bind(values, specialise)


def _generic_aval(aval: ShapedArray, sizes: Sequence[int | None], recorder: Recorder) -> ShapedArray:
    """The abstract value with generic sizes where `sizes` has the numbers of symbols."""
    return ShapedArray(tuple(d if k is None else recorder.symbol(k) for d, k in zip(aval.shape, sizes, strict=True)),
                       aval.dtype, aval.weak_type)
