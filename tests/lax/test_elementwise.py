"""Elementwise operations: values, types, programs of derivatives, batching and errors, against JAX."""

from __future__ import annotations

import functools
import warnings

import jax
import numpy as np
import pytest

import styrax
import styrax.lax as slax
from styrax.core.settings import config
from styrax.transforms import api
from tests.lax.checks import Table, batch_axes, check_program, has_tangent, jvp_case, vjp_case, vmap_case
from tests.lax.harness import ENGINES, Case, jax_program, stage
from tests.lax.operations import CASES, F32, MILD

SMALL_TYPES = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_value(case: Case, engine: str):
    TABLE.check_value(case, engine)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_program(case: Case):
    check_program(case)


SMOOTH = [c for c in CASES if c.differentiable and has_tangent(c)]
TABLE = Table(CASES)
JVPS = Table([jvp_case(c) for c in SMOOTH], 2e-6)


@pytest.mark.parametrize("case", JVPS.cases, ids=repr)
def test_jvp_program(case: Case):
    check_program(case)


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_second_jvp_program(case: Case):
    check_program(jvp_case(jvp_case(case)))


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_vjp_program(case: Case):
    check_program(vjp_case(case))


BATCHED = [c for c in CASES if c.args and all(a.shape == c.args[0].shape for a in c.args) and "bf16" not in c.name]
# JAX maps these along a dimension that they split or join.
RESHAPING = {"bits_f32_int16", "bits_f32_uint8", "bits_join"}


@pytest.mark.parametrize("case", BATCHED, ids=repr)
def test_vmap_program(case: Case):
    """Rows of a batch in front, at the end, and some operands without a batch."""
    for axes in batch_axes(case)[: 1 if case.name in RESHAPING else None]:
        check_program(vmap_case(case, axes))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", JVPS.cases, ids=repr)
def test_jvp_value(case: Case, engine: str):
    JVPS.check_value(case, engine)


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


def _double_cases():
    from tests.lax.operations import BINARY, UNARY

    for table in (UNARY, BINARY):
        for name, (real, cplx) in table.items():
            op = lambda lax, name=name: getattr(lax, name)
            reals = real if isinstance(real, tuple) else (real,)
            yield Case(f"{name}_f64", op, *[a.astype(np.float64) for a in reals], tolerance=1e-12)
            if cplx is not None:
                parts = (cplx, cplx[::-1]) if table is BINARY else (cplx,)
                yield Case(f"{name}_c128", op, *[a.astype(np.complex128) for a in parts], tolerance=1e-11)


DOUBLE = Table(list(_double_cases()), 1e-14)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", DOUBLE.cases, ids=repr)
def test_double_precision(case: Case, engine: str):
    with config.enable_x64(True), jax.enable_x64(True):
        DOUBLE.check_value(case, engine)


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
def test_shifts_of_narrow_integers(name: str, dtype: str):
    """By less than the width, by the width and by more: the highest bit is the sign, of unsigned numbers, too."""
    bits = jax.numpy.iinfo(dtype).bits
    numbers = np.arange(2**bits, dtype=np.uint8).astype(dtype)
    x, y = np.meshgrid(numbers, numbers)
    for compiled in (lambda package, f: f, lambda package, f: package.jit(f)):
        found, expected = (compiled(p, getattr(p.lax, name))(p.numpy.array(x), p.numpy.array(y)) for p in (styrax, jax))
        np.testing.assert_array_equal(np.asarray(found, np.int32), np.asarray(expected, np.int32))


@pytest.mark.parametrize("old", [*SMALL_TYPES, "bool", "int8", "uint64", "float16", "complex64"])
@pytest.mark.parametrize("new", [*SMALL_TYPES, "uint64", "bfloat16"])
def test_constants_become_any_type(old: str, new: str):
    """Constants in a program are converted as arrays are, where NumPy has no cast, too."""
    with styrax.enable_x64(True), jax.enable_x64(True):
        x = np.array([0, 1, 2, 3]).astype(old)
        wanted = jax.jit(lambda x: jax.lax.convert_element_type(x, new))(x)
        for constant, expected in ((x, wanted), (x[2], wanted[2])):
            for found in (slax.convert_element_type(constant, new),
                          styrax.jit(functools.partial(slax.convert_element_type, constant, new))(),
                          styrax.vmap(lambda _, c=constant: slax.convert_element_type(c, new))(MILD)[0]):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
