"""Eager operations: compiled once for all shapes.

An operation is traced on sizes that record what is asked of them (`core.dims`). The program is kept with its
guards under the operation, its static parameters and its arguments' types and ranks, and serves every shape that
would have been traced alike. Where a trace turns out to need plain integers (`NotGeneric`), it is compiled for the
shape at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compile.lowering.products import by_library
from ..core import config
from ..core.avals import ShapedArray, shaped
from ..core.backends import params_key
from ..core.dims import Dim, NotGeneric, NotGenericHere, Recorder, evaluate, tracing
from ..core.invalid_values import Watched, watching
from ..core.jaxpr import ClosedJaxpr
from ..core.staging import trace_to_jaxpr


class Kernel:
    """A generic program: the compiled code, its guards, its results' shapes."""

    __slots__ = ("code", "recorder", "out_avals", "extra")

    def __init__(self, code: Any, recorder: Recorder, out_avals: Sequence[Any], extra: Any):
        self.code = code
        self.recorder = recorder
        self.out_avals = out_avals
        self.extra = extra  # what the tracer of a composite function wants to keep (the results' structure)

    def bind(self, values: Sequence[int]) -> Bound:
        complete = self.recorder.complete(values)
        outs = [a if all(type(d) is int for d in a.shape) else
                shaped(tuple(evaluate(d.terms, complete) if type(d) is Dim else d for d in a.shape), a.dtype,
                       a.weak_type)
                for a in self.out_avals]
        return Bound(self.code, outs, tuple(values), self.extra)


class Bound:
    """A generic program for certain sizes."""

    __slots__ = ("code", "out_avals", "sizes", "out_bytes", "calls", "extra")

    def __init__(self, code: Any, out_avals: Sequence[Any], sizes: tuple[int, ...], extra: Any):
        self.code = code
        self.out_avals = out_avals
        self.sizes = sizes
        self.out_bytes = [a.size * a.dtype.itemsize for a in out_avals]
        self.calls = 0
        self.extra = extra

    def __call__(self, *args: Any) -> list[Any]:
        return self.code.run_sized(args, self.out_avals, self.out_bytes, self.sizes)


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
        avals = [x.aval for x in arrays]
        key = (primitive, *avals, params_key(params), config.trace_context())
        found = self.exact.get(key)
        if found is None:
            if len(self.exact) > 8192:
                self.exact.clear()
            found = self._primitive(primitive, avals, params)
            if watching():
                found = Watched(found, primitive.name)
            self.exact[key] = found
        return found

    def _primitive(self, primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
        def fun(given: dict[str, Any]) -> Callable[..., list[Any]]:
            def run(*tracers: Any) -> list[Any]:
                out = primitive.bind(*tracers, **given)
                return list(out) if primitive.multiple_results else [out]

            return run

        if primitive.generic_in_sizes:
            sizes = Sizes()
            sized = [tuple(map(sizes.take, a.shape)) for a in avals]
            plain, with_sizes = {}, {}
            for name, value in params.items():
                if name in primitive.traits.sizes:
                    with_sizes[name] = _sized_param(sizes, value)
                else:
                    plain[name] = value
            key = (primitive, tuple((a.dtype, a.weak_type, a.ndim) for a in avals), tuple(sizes.skeleton),
                   params_key(plain), config.trace_context())

            def trace(recorder: Recorder) -> tuple[ClosedJaxpr, None]:
                given = {**plain, **{n: _with_dims(v, recorder) for n, v in with_sizes.items()}}
                return trace_to_jaxpr(fun(given), _generic_avals(avals, sized, recorder)), None

            bound = self.generic(key, sizes.values, trace, primitive.name)
            if bound is not None:
                return bound
        closed = trace_to_jaxpr(fun(params), avals)
        self.compiled += 1
        return self.compile(closed, name=primitive.name)

    def function(self, key: Any, avals: Sequence[ShapedArray], name: str,
                 trace_on: Callable[[Sequence[ShapedArray]], tuple[ClosedJaxpr, Any]]) -> Bound | None:
        """A composite function's program for arguments of these types, or None where it cannot be generic.

        `trace_on` gives the program on abstract arguments, and something to keep with it.
        """
        sizes = Sizes()
        sized = [tuple(map(sizes.take, a.shape)) for a in avals]
        full = (key, tuple((a.dtype, a.weak_type, a.ndim) for a in avals), tuple(sizes.skeleton),
                config.trace_context())
        return self.generic(full, sizes.values, lambda r: trace_on(_generic_avals(avals, sized, r)), name)

    def generic(self, key: Any, values: Sequence[int], trace: Callable[[Recorder], tuple[ClosedJaxpr, Any]],
                name: str) -> Bound | None:
        """A program under `key` that admits these sizes; traced and compiled if there is none yet."""
        if key in self.refused:
            return None
        known = self.kernels.setdefault(key, [])
        for kernel in known:
            if kernel.recorder.admits(kernel.recorder.complete(values)):
                return kernel.bind(values)
        if len(known) >= 16:
            return None  # its traces differ with every shape: nothing generic about it
        recorder = Recorder(values)
        before, tracing.active = tracing.active, True
        try:
            closed, extra = trace(recorder)
            if closed.consts and any(hasattr(c, "_trace") for c in closed.consts):
                raise NotGeneric("captures a tracer")
            if by_library(closed.jaxpr):
                raise NotGenericHere("BLAS is called with plain integers")
            code = self.compile(closed, name=name, sizes=recorder)
        except NotGenericHere:
            return None
        except NotGeneric:
            self.refused.add(key)
            return None
        finally:
            tracing.active = before
        self.compiled += 1
        kernel = Kernel(code, recorder, closed.out_avals, extra)
        known.append(kernel)
        return kernel.bind(values)


def _generic_avals(avals: Sequence[ShapedArray], sized: Sequence[tuple], recorder: Recorder) -> list[ShapedArray]:
    return [ShapedArray(tuple(d if k is None else recorder.symbol(k) for d, k in zip(a.shape, ks, strict=True)),
                        a.dtype,
                        a.weak_type) for a, ks in zip(avals, sized, strict=True)]
