"""The checks that hold for every case of a table; test files make tests of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import styrax.lax as slax
from styrax.transforms import api
from tests.lax.harness import Case, assert_close, assert_same_program, flat, run_all

# Programs of tests run once: compile them fast.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def of(lax: Any, name: str) -> Callable[..., Any]:
    """A transformation of the library that `lax` belongs to."""
    return getattr(jax if lax is jax.lax else api, name)


def inexact(a: Any) -> bool:
    return a.dtype.kind in "fc" or a.dtype.name.startswith(("bfloat", "float8"))


def jvp_case(case: Case) -> Case:
    """The forward derivative by all arguments that have one, at tangents given as further arguments."""
    moving = [k for k, a in enumerate(case.args) if inexact(a)]

    def in_library(lax: Any) -> Callable[..., Any]:
        f = case.function(lax)

        def derivative(*xs: Any) -> Any:
            primals, tangents = xs[: len(case.args)], xs[len(case.args) :]

            def of_moving(*ys: Any) -> Any:
                full = list(primals)
                for k, y in zip(moving, ys):
                    full[k] = y
                return f(*full)

            return of(lax, "jvp")(of_moving, tuple(primals[k] for k in moving), tuple(tangents))[1]

        return derivative

    tangents = [_direction(case.args[k]) for k in moving]
    return Case(case.name, in_library, *case.args, *tangents, tolerance=max(case.tolerance, 2e-5))


def _direction(a: np.ndarray) -> np.ndarray:
    steps = (np.arange(a.size) % 3 + 1).reshape(a.shape)
    return steps.astype(a.dtype)


def vjp_case(case: Case) -> Case:
    """The backward derivative by all arguments that have one, at cotangents given as leading arguments."""
    moving = [k for k, a in enumerate(case.args) if inexact(a)]
    outs = flat(jax.eval_shape(case.function(jax.lax), *case.args))

    def in_library(lax: Any) -> Callable[..., Any]:
        f = case.function(lax)

        def derivative(*xs: Any) -> Any:
            cts, rest = xs[: len(outs)], xs[len(outs) :]

            def of_moving(*ys: Any) -> Any:
                full = list(rest)
                for k, y in zip(moving, ys):
                    full[k] = y
                return f(*full)

            made, pullback = of(lax, "vjp")(of_moving, *[rest[k] for k in moving])
            return pullback(type(made)(cts) if isinstance(made, (list, tuple)) else cts[0])

        return derivative

    cts = [_direction(np.ones(o.shape, o.dtype)) for o in outs]
    return Case(case.name, in_library, *cts, *case.args, tolerance=max(case.tolerance, 2e-5))


def vmap_case(case: Case, axes: Sequence[int | None]) -> Case:
    """The case mapped over a batch of three along the given axes of its arguments."""
    args = [
        a if d is None else np.stack([a, np.roll(a, 1), a[..., ::-1] if a.ndim else a], d)
        for a, d in zip(case.args, axes, strict=True)
    ]
    return Case(
        case.name,
        lambda lax: of(lax, "vmap")(case.function(lax), in_axes=tuple(axes)),
        *args,
        tolerance=case.tolerance,
    )


def batch_axes(case: Case) -> list[tuple[int | None, ...]]:
    """Ways to map a case: all in front, all at the end, one at a time."""
    n = len(case.args)
    ways: list[tuple[int | None, ...]] = [(0,) * n, tuple(a.ndim for a in case.args)]
    if n > 1:
        ways += [tuple(0 if k == j else None for k in range(n)) for j in range(n)]
    return ways


def jax_can(case: Case) -> bool:
    try:
        jax.eval_shape(case.function(jax.lax), *case.args)
    except NotImplementedError:
        return False
    return True


class Table:
    """Cases whose values are computed together, each engine and JAX once."""

    def __init__(self, cases: Sequence[Case], absolute: float = 1e-30):
        self.cases = list(cases)
        self.absolute = absolute
        self._ours: dict[str, dict[str, Any]] = {}

    def ours(self, engine: str) -> dict[str, Any]:
        if engine not in self._ours:
            self._ours[engine] = run_all(engine, {c.name: (c.function(slax), c.args) for c in self.cases})
        return self._ours[engine]

    @functools.cached_property
    def theirs(self) -> dict[str, Any]:
        known = [c for c in self.cases if jax_can(c)]
        functions = [c.function(jax.lax) for c in known]
        everything = jax.jit(
            lambda args: [flat(f(*xs)) for f, xs in zip(functions, args)], compiler_options=QUICK
        )
        outs = everything([c.args for c in known])
        return {c.name: [np.asarray(o) for o in out] for c, out in zip(known, outs)}

    def check_value(self, case: Case, engine: str) -> None:
        if case.name not in self.theirs:
            pytest.skip("JAX lacks it")
        for ours, theirs in zip(self.ours(engine)[case.name], self.theirs[case.name], strict=True):
            assert_close(ours, theirs, case.tolerance, case.name, absolute=self.absolute)


def check_program(case: Case) -> None:
    assert_same_program(case.function, case.args)


def has_tangent(case: Case) -> bool:
    """Integer results have tangents of a type without values."""
    outs = flat(jax.eval_shape(case.function(jax.lax), *case.args))
    return all(o.dtype.kind in "fc" or o.dtype.name == "bfloat16" for o in outs)
