"""What the tests of `lax` share: cases, engines that run programs, comparison with JAX."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

import styrax.lax as slax
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.types.avals import ShapedArray
from tests import xla_cpu

ENGINES = ["xla"] + (["cpu"] if importlib.util.find_spec("styrax.cpu.client") else [])


class Case:
    """An operation on arguments: `function(lax)` gives a function of arrays, in either library."""

    __slots__ = ("args", "differentiable", "function", "grad_tolerance", "jaxpr", "name", "tolerance")

    def __init__(
        self,
        name: str,
        function: Callable[[Any], Callable[..., Any]],
        *args: Any,
        differentiable: bool = False,
        tolerance: float = 2e-6,
        jaxpr: bool = True,
    ):
        self.name = name
        self.function = function
        self.args = [np.asarray(a) for a in args]
        self.differentiable = differentiable
        self.tolerance = tolerance
        self.jaxpr = jaxpr

    def __repr__(self) -> str:
        return self.name


def avals(args: Sequence[Any]) -> list[ShapedArray]:
    return [ShapedArray(a.shape, a.dtype) for a in args]


def flat(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def stage(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The program of a function of Styrax at the types of NumPy arguments."""
    return trace_to_jaxpr(lambda *xs: flat(function(*xs)), avals(args))


def execute(engine: str, closed: Any, args: Sequence[Any]) -> list[np.ndarray]:
    if engine == "xla":
        return xla_cpu.run(closed, *args)
    from styrax.core.arrays import backends

    backend = backends.get("cpu")
    inputs = [backend.put(x, a, None) for x, a in zip(args, closed.in_avals, strict=True)]
    return [np.asarray(x) for x in backend.compile(closed)(*inputs)]


def run_all(engine: str, jobs: dict[str, tuple[Callable[..., Any], Sequence[Any]]]) -> dict[str, Any]:
    """Run many functions as one program, so that only one is compiled; one by one where that fails."""
    try:
        return _run_together(engine, jobs)
    except Exception:
        results: dict[str, Any] = {}
        for name, job in jobs.items():
            try:
                results.update(_run_together(engine, {name: job}))
            except Exception as error:
                results[name] = Failed(error)
        return results


class Failed:
    """In place of results: the error that running a function raised, raised again when they are asked for."""

    def __init__(self, error: Exception):
        self.error = error

    def __iter__(self) -> Any:
        raise self.error


def _run_together(engine: str, jobs: dict[str, tuple[Callable[..., Any], Sequence[Any]]]) -> dict[str, Any]:
    offsets, args = {}, []
    for name, (_, own) in jobs.items():
        offsets[name] = len(args)
        args += own
    counts = {}

    def everything(*xs: Any) -> list[Any]:
        outs = []
        for name, (function, own) in jobs.items():
            result = flat(function(*xs[offsets[name] : offsets[name] + len(own)]))
            counts[name] = len(result)
            outs += result
        return outs

    closed = stage(everything, args)
    values = iter(execute(engine, closed, args))
    return {name: [next(values) for _ in range(counts[name])] for name in jobs}


def canonical(jaxpr: Any) -> list[str]:
    """A program of either library as lines of text that can be compared."""
    names: dict[int, str] = {}

    def read(atom: Any) -> str:
        if hasattr(atom, "val"):
            value = np.asarray(atom.val).astype(np.complex128) if _numeric(atom.val) else atom.val
            return f"{value}:{short(atom.aval)}"
        return names.setdefault(id(atom), f"v{len(names)}")

    def short(aval: Any) -> str:
        weak = "~" if getattr(aval, "weak_type", False) else ""
        return f"{weak}{getattr(aval.dtype, 'name', aval.dtype)}{list(aval.shape)}"

    for v in (*jaxpr.constvars, *jaxpr.invars):
        read(v)
    lines = []
    for eqn in jaxpr.eqns:
        operands = " ".join(map(read, eqn.invars))
        outs = " ".join(f"{read(v)}:{short(v.aval)}" for v in eqn.outvars)
        lines.append(f"{outs} = {eqn.primitive.name}{_params(eqn.params)} {operands}")
    lines.append("return " + " ".join(map(read, jaxpr.outvars)))
    return lines


def _numeric(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "biufcV" and np.asarray(value).dtype.names is None


_IGNORED = {"sharding", "out_sharding", "accuracy", "computation", "jaxpr"}


def _params(params: dict[str, Any]) -> str:
    shown = {k: _plain(v) for k, v in sorted(params.items()) if k not in _IGNORED}
    return str(shown) if shown else ""


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(_plain, value))
    if isinstance(value, (np.integer, int)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    return str(value)


def jax_program(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    return jax.make_jaxpr(lambda *xs: flat(function(*xs)))(*args).jaxpr


def assert_same_program(function: Callable[[Any], Callable[..., Any]], args: Sequence[Any]) -> None:
    ours = canonical(stage(function(slax), args).jaxpr)
    theirs = canonical(jax_program(function(jax.lax), args))
    assert ours == theirs, "\n".join(["ours:", *ours, "JAX:", *theirs])


def assert_close(
    ours: Any, theirs: Any, tolerance: float, name: str = "", signs: bool = True, absolute: float = 1e-30
) -> None:
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype, (name, ours.dtype, theirs.dtype)
    assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
    if theirs.dtype.kind == "V" and theirs.dtype.names is None:
        tolerance = max(tolerance, float(ml_dtypes.finfo(theirs.dtype).eps) if "float" in theirs.dtype.name else 0)
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if theirs.dtype == np.float16:
        tolerance = max(tolerance, 1e-3)
    if theirs.dtype.kind in "fc":
        if theirs.dtype.kind == "c":
            assert_close(ours.real, theirs.real, tolerance, name, False, absolute)
            assert_close(ours.imag, theirs.imag, tolerance, name, False, absolute)
            return
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=absolute, err_msg=name)
        zeros = (theirs == 0) & (ours == 0) & signs  # signed zeros are values, too
        np.testing.assert_array_equal(np.signbit(ours[zeros]), np.signbit(theirs[zeros]), err_msg=name)
    elif theirs.dtype.names is None:
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
