"""Elementwise operations: values, types, programs of derivatives, batching and errors, against JAX."""

from __future__ import annotations

import functools
import warnings

import jax
import numpy as np
import pytest

import styrax.lax as slax
from styrax.transforms import api

from tests.lax.harness import (
    ENGINES,
    Case,
    assert_close,
    assert_same_program,
    flat,
    jax_program,
    run_all,
    stage,
)
from tests.lax.operations import CASES, EDGES, F32, MILD, POSITIVE

DIFFERENTIABLE = [c for c in CASES if c.differentiable]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@functools.cache
def _values(engine: str) -> dict:
    return run_all(engine, {c.name: (c.function(slax), c.args) for c in CASES})


@functools.cache
def _jax_values() -> dict:
    jobs = [(c.function(jax.lax), c.args) for c in CASES]
    outs = jax.jit(lambda args: [flat(f(*xs)) for (f, _), xs in zip(jobs, args)])([a for _, a in jobs])
    return {c.name: [np.asarray(o) for o in out] for c, out in zip(CASES, outs)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_value(case: Case, engine: str):
    for ours, theirs in zip(_values(engine)[case.name], _jax_values()[case.name], strict=True):
        assert_close(ours, theirs, case.tolerance, case.name)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_program(case: Case):
    assert_same_program(case.function, case.args)


def _jvp(case: Case, transform):
    """The forward derivative by all arguments that have one, at unit tangents given as arguments."""
    moving = [k for k, a in enumerate(case.args) if a.dtype.kind in "fc"]

    def in_library(lax):
        f = case.function(lax)

        def derivative(*xs):
            primals, tangents = xs[: len(case.args)], xs[len(case.args) :]

            def of_moving(*ys):
                full = list(primals)
                for k, y in zip(moving, ys):
                    full[k] = y
                return f(*full)

            return transform(lax)(of_moving, tuple(primals[k] for k in moving), tangents)[1]

        return derivative

    args = [*case.args, *[np.ones_like(case.args[k]) for k in moving]]
    return in_library, args


def _library_jvp(lax):
    return jax.jvp if lax is jax.lax else api.jvp


def _has_tangent(case: Case) -> bool:
    """Integer results have tangents of a type without values."""
    return jax.eval_shape(case.function(jax.lax), *case.args).dtype.kind in "fcV"


SMOOTH = [c for c in DIFFERENTIABLE if _has_tangent(c)]


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_jvp_program(case: Case):
    function, args = _jvp(case, _library_jvp)
    assert_same_program(function, args)


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_second_jvp_program(case: Case):
    first, args = _jvp(case, _library_jvp)
    second, args = _jvp(Case(case.name, first, *args), _library_jvp)
    assert_same_program(second, args)


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_vjp_program(case: Case):
    moving = [k for k, a in enumerate(case.args) if a.dtype.kind in "fc"]
    out = jax.eval_shape(case.function(jax.lax), *case.args)
    def in_library(lax):
        f = case.function(lax)
        vjp = jax.vjp if lax is jax.lax else api.vjp

        def derivative(ct, *xs):
            def of_moving(*ys):
                full = list(xs)
                for k, y in zip(moving, ys):
                    full[k] = y
                return f(*full)

            return vjp(of_moving, *[xs[k] for k in moving])[1](ct)

        return derivative

    assert_same_program(in_library, [np.ones(out.shape, out.dtype), *case.args])


BATCHED = [c for c in CASES if c.args and all(a.shape == c.args[0].shape for a in c.args) and "bf16" not in c.name]


@pytest.mark.parametrize("case", BATCHED, ids=repr)
def test_vmap_program(case: Case):
    """Rows of a batch in front, in the middle of one operand, and one operand without a batch."""
    stacked = [np.stack([a, a[::-1]]) for a in case.args]
    assert_same_program(
        lambda lax: (jax.vmap if lax is jax.lax else api.vmap)(case.function(lax)), stacked
    )
    if len(stacked) == 2 and case.args[0].ndim == 1:
        axes = (0, None)
        assert_same_program(
            lambda lax: (jax.vmap if lax is jax.lax else api.vmap)(case.function(lax), in_axes=axes),
            [stacked[0], case.args[1]],
        )
        assert_same_program(
            lambda lax: (jax.vmap if lax is jax.lax else api.vmap)(case.function(lax), in_axes=(0, 1)),
            [stacked[0], stacked[1].T],
        )


@functools.cache
def _derivative_values(engine: str) -> dict:
    jobs = {}
    for case in SMOOTH:
        function, args = _jvp(case, _library_jvp)
        jobs[case.name] = (function(slax), args)
    return run_all(engine, jobs)


@functools.cache
def _jax_derivative_values() -> dict:
    jobs = {c.name: _jvp(c, _library_jvp) for c in SMOOTH}
    functions = {name: function(jax.lax) for name, (function, _) in jobs.items()}
    outs = jax.jit(lambda args: {n: flat(functions[n](*xs)) for n, xs in args.items()})(
        {n: args for n, (_, args) in jobs.items()}
    )
    return {n: [np.asarray(o) for o in out] for n, out in outs.items()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_jvp_value(case: Case, engine: str):
    ours, theirs = _derivative_values(engine)[case.name], _jax_derivative_values()[case.name]
    for o, t in zip(ours, theirs, strict=True):
        assert_close(o, t, max(case.tolerance, 2e-5), case.name)


@pytest.mark.parametrize(
    "name, args",
    [
        ("add", (MILD, np.ones(6, np.int32))),
        ("add", (MILD, 1)),
        ("add", (MILD, MILD[:3])),
        ("add", (MILD, np.ones((2, 6), F32))),
        ("add", (True, True)),
        ("add", ("a", MILD)),
        ("add", ([1.0], MILD)),
        ("add", (None, MILD)),
        ("sin", (1,)),
        ("sin", (True,)),
        ("sin", ([1.0],)),
        ("neg", (True,)),
        ("abs", (True,)),
        ("floor", (1,)),
        ("floor", (1j,)),
        ("round", (1,)),
        ("round", (1.0, 3)),
        ("is_finite", (1,)),
        ("is_finite", (1j,)),
        ("bitwise_and", (MILD, MILD)),
        ("bitwise_not", (MILD,)),
        ("population_count", (MILD,)),
        ("population_count", (True,)),
        ("clz", (True,)),
        ("shift_left", (True, True)),
        ("nextafter", (1, 1)),
        ("square", (True,)),
        ("lt", (1j, 1j)),
        ("eq", (MILD, np.ones(6, np.int32))),
        ("rem", (1j, 2j)),
        ("atan2", (1, 1)),
        ("pow", (1, 2)),
        ("pow", (1, 2.0)),
        ("pow", (1.0, True)),
        ("integer_pow", (np.int32(2), -2)),
        ("select", (MILD > 0, MILD, MILD[:2])),
        ("select", (MILD > 0, MILD, np.ones(6, np.int32))),
        ("select", (MILD, MILD, MILD)),
        ("select", (np.array([True]), MILD, MILD)),
        ("select_n", (True, MILD, MILD, MILD)),
        ("select_n", (True,)),
        ("clamp", (MILD[:3], MILD, 1.0)),
        ("clamp", (1, MILD, 1.0)),
        ("convert_element_type", ("a", float)),
        ("bitcast_convert_type", (np.ones((2, 3), np.int16), np.int32)),
        ("bitcast_convert_type", (np.ones((2, 3), np.float32), np.complex64)),
        ("reduce_precision", (1, 5, 3)),
        ("reduce_precision", (1.0, 0, 3)),
        ("reduce_precision", (1.0, 5, -3)),
        ("complex", (MILD, np.ones(6, np.int32))),
        ("complex", (MILD.astype(np.float16), MILD.astype(np.float16))),
        ("real", (MILD,)),
        ("conj", (1,)),
        ("erf", (1,)),
        ("lgamma", (1j,)),
        ("igamma", (1.0, 1)),
        ("cbrt", (1j,)),
        ("exp2", (1,)),
    ],
)
def test_error_class(name, args):
    with pytest.raises(Exception) as theirs:
        getattr(jax.lax, name)(*args)
    with pytest.raises(type(theirs.value)):
        api.make_jaxpr(lambda: getattr(slax, name)(*args))()


def test_complex_to_real_warns():
    with pytest.warns(np.exceptions.ComplexWarning):
        stage(lambda x: slax.convert_element_type(x, np.float32), [np.ones(2, np.complex64)])


def test_convert_of_constants_leaves_no_equation():
    closed = stage(lambda: slax.convert_element_type(1, np.float32), [])
    assert not closed.eqns and closed.out_avals[0].dtype == np.float32


def test_convert_to_own_dtype_is_identity():
    closed = stage(lambda x: slax.convert_element_type(x, np.float32), [MILD])
    assert not closed.eqns


def test_differentiation_that_has_no_rule():
    with pytest.raises(NotImplementedError):
        api.jvp(slax.nextafter, (MILD, MILD), (MILD, MILD))


def test_every_program_of_a_weak_operand_stays_weak():
    ours = stage(lambda: [slax.sin(1.0), slax.square(2.0), slax.eq(1.0, 2.0)], []).out_avals
    theirs = jax_program(lambda: [jax.lax.sin(1.0), jax.lax.square(2.0), jax.lax.eq(1.0, 2.0)], []).outvars
    assert [a.weak_type for a in ours] == [v.aval.weak_type for v in theirs]


def test_edges_of_ties():
    _, tangent = api.jvp(lambda x: slax.max(x, F32(0)), (np.zeros(3, F32),), (np.ones(3, F32),))
    np.testing.assert_array_equal(np.asarray(tangent), 0.5)
    assert EDGES.size and POSITIVE.size
