"""Reductions, contractions, cumulative operations: programs, values, derivatives, batching, errors."""

from __future__ import annotations

import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import styrax
import styrax.lax as slax
from styrax.transforms import api
from tests.lax.checks import Table, batch_axes, check_program, has_tangent, jvp_case, vjp_case, vmap_case
from tests.lax.harness import ENGINES, Case, canonical, stage

F = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -0.75]], np.float32)
TIES = np.array([[2.0, 2.0, -1.0], [2.0, 0.0, -1.0]], np.float32)
NANS = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, -0.0]], np.float32)
I = np.array([[3, -7, 2], [2**31 - 1, 5, -(2**31)]], np.int32)
U8 = np.array([[200, 100, 7], [1, 255, 3]], np.uint8)
B = np.array([[True, False, True], [True, True, False]])
C = np.array([[1 + 2j, -1j, 3], [1 - 2j, 1 + 1j, 0.5j]], np.complex64)
G = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11) * 0.25
H = (np.arange(40, dtype=np.float32).reshape(4, 2, 5) - 19) * 0.125
BF = F.astype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def case(name, function, *args, tolerance=1e-5):
    return Case(name, lambda lax: lambda *xs: function(lax, *xs), *args, tolerance=tolerance)


def _reductions():
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        for axes in ((0,), (1,), (0, 1), (1, 0), ()):
            yield case(f"{name}_{axes}", lambda lax, x, n=name, a=axes: getattr(lax, n)(x, a), F)
        yield case(f"{name}_3", lambda lax, x, n=name: getattr(lax, n)(x, (0, 2)), G)
        yield case(f"{name}_nan", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), NANS)
        yield case(f"{name}_i32", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), I)
        yield case(f"{name}_u8", lambda lax, x, n=name: getattr(lax, n)(x, (1,)), U8)
        yield case(f"{name}_c64", lambda lax, x, n=name: getattr(lax, n)(x, (1,)), C)
        yield case(f"{name}_bf16", lambda lax, x, n=name: getattr(lax, n)(x, (1,)), BF, tolerance=2e-2)
        yield case(f"{name}_empty", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), np.zeros((0, 3), np.float32))
        yield case(f"{name}_long", lambda lax, x, n=name: getattr(lax, n)(x, (0,)),
                   np.cos(np.arange(3000, dtype=np.float32)).reshape(1000, 3) + np.float32(0.5), tolerance=1e-3)
    for name in ("reduce_max", "reduce_min"):
        yield case(f"{name}_ties", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), TIES)
        yield case(f"{name}_ties_all", lambda lax, x, n=name: getattr(lax, n)(x, (0, 1)), TIES)
        yield case(f"{name}_bool", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), B)
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield case(f"{name}_bool", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), B)
        yield case(f"{name}_i32", lambda lax, x, n=name: getattr(lax, n)(x, (1,)), I)
        yield case(f"{name}_empty", lambda lax, x, n=name: getattr(lax, n)(x, (0,)), np.zeros((0, 3), np.int32))
    for name in ("argmax", "argmin"):
        infinite = np.full((2, 3), np.inf, np.float32)
        for label, x in (("f32", F), ("ties", TIES), ("nan", NANS), ("i32", I), ("u8", U8), ("bool", B),
                         ("bf16", BF), ("inf", infinite), ("ninf", -infinite)):
            yield case(f"{name}_{label}_0", lambda lax, x, n=name: getattr(lax, n)(x, 0, np.int32), x)
            yield case(f"{name}_{label}_1", lambda lax, x, n=name: getattr(lax, n)(x, 1, np.int8), x)
    for label, combine, init in (("add", "add", 0.0), ("mul", "mul", 1.0), ("max", "max", -np.inf),
                                 ("min", "min", np.inf), ("add1", "add", 1.0), ("max0", "max", 0.0)):
        yield case(f"reduce_{label}",
                   lambda lax, x, c=combine, i=init: lax.reduce(x, np.float32(i), getattr(lax, c), (0,)), F)
    yield case("reduce_or_bool", lambda lax, x: lax.reduce(x, np.bool_(False), lax.bitwise_or, (0,)), B)
    yield case("reduce_linear", lambda lax, x: lax.reduce(
        x, np.float32(0), lambda a, b: lax.add(a, lax.mul(b, np.float32(1))), (1,)), F)
    yield case("reduce_logsumexp", lambda lax, x: lax.reduce(
        x, np.float32(-np.inf), lambda a, b: lax.log(lax.add(lax.exp(a), lax.exp(b))), (0, 1)), F)
    yield case("reduce_pair", lambda lax, x, y: lax.reduce(
        (x, y), (np.float32(0), np.int32(1)), lambda a, b: (lax.add(a[0], b[0]), lax.mul(a[1], b[1])), (0,)), F, I)
    yield case("reduce_init", lambda lax, x, i: lax.reduce(x, i, lax.add, (1,)), F, np.float32(10))


def _cumulative():
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        for axis in (0, 1):
            for reverse in (False, True):
                yield case(f"{name}_{axis}_{reverse}",
                           lambda lax, x, n=name, a=axis, r=reverse: getattr(lax, n)(x, a, reverse=r), F)
        yield case(f"{name}_middle", lambda lax, x, n=name: getattr(lax, n)(x, 1), G)
        yield case(f"{name}_nan", lambda lax, x, n=name: getattr(lax, n)(x, 1), NANS)
        yield case(f"{name}_bf16", lambda lax, x, n=name: getattr(lax, n)(x, 1), BF, tolerance=2e-2)
        yield case(f"{name}_c64", lambda lax, x, n=name: getattr(lax, n)(x, 1), C, tolerance=1e-4)
        if name != "cumlogsumexp":
            yield case(f"{name}_i32", lambda lax, x, n=name: getattr(lax, n)(x, 1), I)
    yield case("cumsum_long", lambda lax, x: lax.cumsum(x, 0), np.sin(np.arange(500, dtype=np.float32)) + 2)


def _contractions():
    def dot_general(name, x, y, numbers, **params):
        return case(name, lambda lax, a, b: lax.dot_general(a, b, numbers, **params), x, y)

    yield dot_general("matmul", F, F, (((1,), (1,)), ((), ())))
    yield dot_general("matmul_0", F, F, (((0,), (0,)), ((), ())))
    yield dot_general("outer", F, F, (((), ()), ((), ())))
    yield dot_general("inner", F, F, (((0, 1), (0, 1)), ((), ())))
    yield dot_general("inner_crossed", F, F.T.copy(), (((0, 1), (1, 0)), ((), ())))
    yield dot_general("batched", G, H, (((2,), (0,)), ((0,), (1,))))
    yield dot_general("batched_all", F, F, (((), ()), ((0, 1), (0, 1))))
    yield dot_general("batched_swapped", G, np.swapaxes(G, 0, 2).copy(), (((1,), (1,)), ((2, 0), (0, 2))))
    yield dot_general("i32", I, I, (((1,), (1,)), ((), ())))
    yield dot_general("bool", B, B, (((1,), (1,)), ((), ())))
    yield dot_general("c64", C, C, (((1,), (1,)), ((), ())))
    yield dot_general("preferred_f32", BF, BF, (((1,), (1,)), ((), ())), preferred_element_type=np.float32)
    yield dot_general("preferred_i32", U8, U8, (((1,), (1,)), ((), ())), preferred_element_type=np.int32)
    for kind, x in {"f32": F, "bf16": BF}.items():  # (a sum of floats, and then an integer)
        for preferred in (np.int8, np.uint32, np.bool_):
            yield dot_general(f"{kind}_preferred_{np.dtype(preferred).name}", x, x, (((1,), (1,)), ((), ())),
                              preferred_element_type=preferred)
    yield case("bf16", lambda lax, x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))), BF, BF, tolerance=1e-2)
    yield case("mixed", lambda lax, x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))), BF, F, tolerance=1e-2)
    yield dot_general("highest", F, F, (((1,), (1,)), ((), ())), precision="highest")
    yield case("dot_vv", lambda lax, x, y: lax.dot(x, y), F[0], F[1])
    yield case("dot_mv", lambda lax, x, y: lax.dot(x, y), F, F[1])
    yield case("dot_mm", lambda lax, x, y: lax.dot(x, y), F, F.T.copy())
    yield case("batch_matmul", lambda lax, x, y: lax.batch_matmul(x, y), G, np.swapaxes(G, 1, 2).copy())
    rng = np.random.default_rng(0)
    yield case("large", lambda lax, x, y: lax.dot(x, y), rng.standard_normal((40, 50)).astype(np.float32),
               rng.standard_normal((50, 30)).astype(np.float32), tolerance=1e-3)
    yield case("empty", lambda lax, x, y: lax.dot(x, y), np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32))


CASES = [*_reductions(), *_cumulative(), *_contractions()]
TABLE = Table(CASES)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_value(case, engine):
    TABLE.check_value(case, engine)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_program(case):
    check_program(case)


def _smooth(case):
    skip = ("nan", "empty", "long", "bf16", "large", "reduce_pair", "highest")
    return has_tangent(case) and not any(s in case.name for s in skip) and case.args[0].dtype.kind in "fc"


SMOOTH = [c for c in CASES if _smooth(c)]
JVPS = Table([jvp_case(c) for c in SMOOTH], 2e-6)
VJPS = Table([vjp_case(c) for c in SMOOTH], 2e-6)
SECOND = Table([jvp_case(jvp_case(c)) for c in SMOOTH if "c64" not in c.name], 1e-5)
EXACT = ("reduce_sum", "reduce_max_", "reduce_min_", "cumsum", "matmul", "outer", "inner", "batched", "dot", "c64")


@pytest.mark.parametrize("case", [c for c in JVPS.cases if c.name.startswith(EXACT)], ids=repr)
def test_jvp_program(case):
    check_program(case)


@pytest.mark.parametrize("case", [c for c in VJPS.cases if c.name.startswith(EXACT)], ids=repr)
def test_vjp_program(case):
    check_program(case)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", JVPS.cases, ids=repr)
def test_jvp_value(case, engine):
    JVPS.check_value(case, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", VJPS.cases, ids=repr)
def test_vjp_value(case, engine):
    VJPS.check_value(case, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", SECOND.cases, ids=repr)
def test_second_jvp_value(case, engine):
    SECOND.check_value(case, engine)


def _mapped():
    for case in CASES:
        if "nan" in case.name or "long" in case.name:
            continue
        # Of one argument the axis in front is the easy one, and tested with several arguments.
        ways = batch_axes(case)
        for k, axes in enumerate(ways if len(case.args) > 1 else ways[1:]):
            mapped = vmap_case(case, axes)
            mapped.name = f"{case.name}_map{k}"
            yield mapped


MAPPED = Table(list(_mapped()))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", MAPPED.cases, ids=repr)
def test_vmap_value(case, engine):
    MAPPED.check_value(case, engine)


@pytest.mark.parametrize("case", [c for c in MAPPED.cases if c.name.startswith(("matmul", "batched", "dot"))], ids=repr)
def test_vmap_program(case):
    check_program(case)


@pytest.mark.parametrize(
    "name, args",
    [
        ("reduce_sum", (F, (2,))),
        ("reduce_sum", (F, (0, 0))),
        ("reduce_sum", (F, (-1,))),
        ("reduce_sum", (F, 0)),
        ("reduce_sum", (B, (0,))),
        ("reduce_prod", (B, (0,))),
        ("reduce_and", (F, (0,))),
        ("argmax", (F, 0, np.float32)),
        ("argmax", (F, 2, np.int32)),
        ("argmax", (F, -1, np.int32)),
        ("argmax", (F[:0], 0, np.int32)),
        ("argmax", (F, (0, 1), np.int8)),
        ("reduce", ((F, F), (0.0,), lambda a, b: a, (0,))),
        ("reduce", (F, F[0], slax.add, (0,))),
        ("cumsum", (F, 2)),
        ("cumsum", (F, -1)),
        ("cumsum", (B, 0)),
        ("cummax", (B, 0)),
        ("dot", (F, F)),
        ("dot", (F, 1.0)),
        ("dot", (F[None], F[0])),
        ("dot_general", (F, F, (((0,), (1,)), ((), ())))),
        ("dot_general", (F, F, (((0,), ()), ((), ())))),
        ("dot_general", (F, F, (((0, 0), (0, 0)), ((), ())))),
        ("dot_general", (F, F, (((0,), (0,)), ((0,), (0,))))),
        ("dot_general", (F, F, (((2,), (0,)), ((), ())))),
        ("dot_general", (F, F, (((1,), (1,)), ((0,), (1,))))),
        ("dot_general", (F, F, (((-1,), (1,)), ((0,), (0,))))),
        ("dot_general", (F, F, (((1,), (1,)), ((), ())), "foo")),
        ("batch_matmul", (F, F[0])),
    ],
)
def test_error_class(name, args):
    ours_args = args
    if name == "reduce" and args[2] is slax.add:
        args = (*args[:2], jax.lax.add, *args[3:])
    with pytest.raises(Exception) as theirs:
        getattr(jax.lax, name)(*args)
    with pytest.raises(type(theirs.value)):
        api.make_jaxpr(lambda: getattr(slax, name)(*ours_args))()


@pytest.mark.parametrize("name", ["and", "or", "xor", "max", "min", "sum", "prod"])
@pytest.mark.parametrize("axes", [(), (0,)])
def test_weak_types(name, axes):
    def weak(package):
        x = package.numpy.broadcast_to(3, (2,)) if axes else 3
        return getattr(package.lax, f"reduce_{name}")(x, axes).weak_type

    assert weak(styrax) == weak(jax)


def test_reduce_finds_named_reductions():
    closed = stage(lambda x: slax.reduce(x, np.float32(0), slax.add, (0,)), [F])
    assert [e.primitive.name for e in closed.eqns] == ["reduce_sum"]
    assert "reduce_sum" in canonical(closed.jaxpr)[0]


def test_cumulative_logsumexp_shares_derivatives_of_equal_elements():
    for x in ([1, 1, 1], [2, 2, 0, 3, 3], [1, -np.inf, 2]):
        x = np.array(x, np.float32)
        for derivative in (lambda m: m.jacrev, lambda m: m.jacfwd, lambda m: m.hessian):
            ours, theirs = (derivative(m)(m.lax.cumlogsumexp)(x) for m in (styrax, jax))
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[-np.inf, -np.inf, 1], [np.inf, 1, 2], [1, np.inf, np.inf], [np.nan, 1, 2], [1e30, 1e30],
                               [2, 2, 2, 2]], ids=str)
def test_slopes_of_cumulative_logsumexp_at_the_edges(x, reverse):
    x = np.array(x, np.float32)
    for derivative in ("jacrev", "jacfwd", "hessian"):
        ours, theirs = (getattr(m, derivative)(lambda x, m=m: m.lax.cumlogsumexp(x, reverse=reverse))(x)
                        for m in (styrax, jax))
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
@pytest.mark.parametrize("dtype", ["bool", "int2", "uint2", "int4", "uint4", "int8", "uint16", "int32", "uint32",
                                   "float32", "bfloat16", "complex64"])
def test_dtypes_of_bits(name, dtype):
    def told(j):
        try:
            return getattr(j.lax, name)(j.numpy.ones((2, 3), dtype), (1,)).tolist()
        except TypeError as error:
            return str(error)

    assert told(styrax) == told(jax)
