"""Jaxprs survive being written and parsed."""

import enum
import functools
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import styrax
from styrax import lax
from styrax.core.programs import rules
from styrax.core.programs.check import check_jaxpr
from styrax.core.programs.jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.serial import parse, to_text
from styrax.core.trees.tree import tree_structure
from styrax.core.types.avals import AbstractRef, ShapedArray, abstract_token
from styrax.core.types.effects import NamedAxisEffect, ReadEffect
from styrax.transforms import refs
from styrax.transforms.api import make_jaxpr

X = np.ones(3, np.float32)
M = np.ones((3, 3), np.float32)
F = np.float32

Point = namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1


class Box:
    __slots__ = ("content", "label")

    def __init__(self, content, label):
        self.content, self.label = content, label

    def __eq__(self, other):
        return (self.content, self.label) == (other.content, other.label)

    __hash__ = None


def module_function(x):
    return x


holder = Primitive("holder")
holder.def_abstract_eval(lambda *_, **__: F32)
rules.jvps[holder] = lambda primals, tangents, **params: (primals[0], tangents[0])
F32 = ShapedArray((3,), np.float32)


def use_reference(x):
    r = refs.new_ref(x)
    refs.ref_set(r, 0, F(3))
    refs.ref_addupdate(r, slice(1, 3), X[:2])
    return refs.ref_get(r, ...)


def loop(x):
    return lax.while_loop(
        lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.mul(c[1], F(2))), (0, x)
    )


def branch(x):
    return lax.cond(lax.gt(lax.reduce_sum(x, (0,)), F(0)), lambda x: x, lambda x: lax.mul(x, F(2)), x)


PROGRAMS = {
    "simple": (lambda x: lax.sin(x), X),
    "scan": (lambda x: lax.scan(lambda c, a: (lax.add(c, a), lax.mul(c, a)), F(0.0), x), X),
    "while": (loop, X),
    "cond": (branch, X),
    "jit": (styrax.jit(lambda x: lax.sin(x)), X),
    "constant": (lambda x: lax.add(x, np.arange(3, dtype=np.float32)), X),
    "references": (use_reference, X),
    "sort": (lambda x: lax.sort(x), X),
    "dot": (lambda m: lax.dot(m, m), M),
    "convert": (lambda x: lax.convert_element_type(x, np.int8), X),
    "weak": (lambda x: lax.add(x, 1), 2),
}


def traced(name):
    fun, *args = PROGRAMS[name]
    return make_jaxpr(fun)(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trip(name):
    program = traced(name)
    text = to_text(program)
    again = parse(text)
    check_jaxpr(again)
    assert str(again) == str(program)
    assert to_text(again) == text
    assert again.effects == program.effects
    assert [v.aval for v in again.jaxpr.invars] == [v.aval for v in program.jaxpr.invars]
    for a, b in zip(again.consts, program.consts):
        np.testing.assert_array_equal(a, b)
    assert to_text(parse(to_text(program.jaxpr))) == to_text(program.jaxpr)


def local(x):
    def inner(y):
        return x + y

    return inner


VALUES = [
    None,
    True,
    3,
    -2,
    1.5,
    -0.0,
    1e300,
    float("inf"),
    -float("inf"),
    2 + 3j,
    "text ' \" \n",
    b"bytes\x00",
    ...,
    (),
    (1,),
    (1, (2, "a")),
    [],
    [1, [2]],
    {},
    {"a": 1, (1, 2): [3]},
    {1, 2},
    frozenset({"a"}),
    slice(1, None, 2),
    np.dtype("float32"),
    np.dtype(ml_dtypes.bfloat16),
    np.float32(0.1),
    np.int8(-3),
    np.bool_(True),
    ml_dtypes.bfloat16(1.5),
    ml_dtypes.float8_e4m3fn(2),
    np.complex64(1 - 2j),
    Color.RED,
    Point(1, [2]),
    Box((1, 2), "b"),
    module_function,
    np.sin,
    max,
    dict,
    F32,
    ShapedArray((), np.int32, True),
    AbstractRef(F32),
    abstract_token,
    holder,
    tree_structure((1, {"a": [2, None]})),
    tree_structure(Point(1, 2)),
    ReadEffect(3),
    NamedAxisEffect("i"),
    local(3),
    functools.partial(max, 1),
    range(3),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:30])
def test_values(value):
    a, b = Var(F32), Var(F32)
    program = Jaxpr([], [a], [b], [JaxprEqn([a], [b], holder, {"value": value})])
    again = parse(to_text(program)).eqns[0].params["value"]
    assert type(again) is type(value)
    assert repr(again) == repr(value) or again == value
    if not isinstance(value, functools.partial):
        assert again == value


def test_nan_and_arrays():
    a, b = Var(F32), Var(F32)
    arrays = [np.arange(6, dtype=d).reshape(2, 3) for d in (np.int16, ml_dtypes.bfloat16, np.complex64)]
    params = {"nan": float("nan"), "arrays": arrays, "empty": np.zeros((0, 2), np.float32)}
    again = parse(to_text(Jaxpr([], [a], [b], [JaxprEqn([a], [b], holder, params)]))).eqns[0].params
    assert np.isnan(again["nan"])
    for x, y in zip([*again["arrays"], again["empty"]], [*arrays, params["empty"]]):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_sharing_effects_and_information_are_kept():
    a = Var(F32)
    inner = Jaxpr([], [a], [a], [], None, DebugInfo("jit", "f at x.py:1", ("x",), ("result",)))
    x, y, z = (Var(F32) for _ in range(3))
    effects = frozenset({NamedAxisEffect("i")})
    eqns = [
        JaxprEqn([x], [y], holder, {"one": inner, "two": ClosedJaxpr(inner)}, effects),
        JaxprEqn([y], [DropVar(F32)], holder, {"three": (inner,)}),
    ]
    program = Jaxpr([z], [x], [y, Literal(2.0, ShapedArray((), np.float32, True))], eqns, effects)
    again = parse(to_text(program))
    first, second = again.eqns
    assert first.params["one"] is first.params["two"].jaxpr is second.params["three"][0]
    assert first.params["one"].debug_info.func_src_info == "f at x.py:1"
    assert first.effects == effects == again.effects
    assert type(second.outvars[0]) is DropVar
    assert again.outvars[1].aval.weak_type and type(again.outvars[1].val) is float


def test_written_by_hand():
    program = parse(
        """
        # comments are left out
        { lambda c:f32[3]; a:f32[3] n:i32[]~. let
            b:f32[3] = add a c  # CHECK: add
            ; _:f32[3] = mul[out_dtype=None] b b;
          in (b, f32(2.0):f32[]) }
        """
    )
    assert [e.primitive.name for e in program.eqns] == ["add", "mul"]
    assert str(program).startswith("{ lambda a:f32[3]; b:f32[3] c:i32[]. let")


@pytest.mark.parametrize(
    "text, message",
    [
        ("{ lambda ; a:f32[3]. let b:f32[3] = nothing a; in (b,) }", "no primitive is called 'nothing'"),
        ("{ lambda ; a:f33[3]. let in (a,) }", "unknown dtype 'f33'"),
        ("{ lambda ; a:f32[3]. let in (b,) }", "expected a value, found 'b'"),
        ("{ lambda ; a:f32[3] a:f32[]. let in (a,) }", "a is bound twice"),
        ("{ lambda ; a:f32[3]. let in (a,) } more", "unexpected 'more'"),
        ("{ lambda ; a:f32[3]. let in (a,", "found ''"),
        ("{ lambda ; a:f32[3]. let b:f32[3] = add[x=local('gone')] a; in (b,) }", "'gone' is not known here"),
        ("{ lambda ; a:f32[3]. let b:f32[3] = add[x=@f] a; in (b,) }", "no program @f"),
        ("{ lambda ; a:f32[3]. ` }", "unexpected '`'"),
    ],
)
def test_errors(text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse(text)


ALL_PRIMITIVES = """
import importlib, pkgutil
from styrax import lax, random, transforms
from styrax.core.programs import rules
for package in (lax, random, transforms):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print(*sorted({p.name for table in rules.tables.values() for p in table}))
"""


def test_primitives_of_modules_not_loaded_yet():
    env = {**os.environ, "PYTHONPATH": str(Path(styrax.__file__).parent.parent)}
    names = subprocess.run([sys.executable, "-c", ALL_PRIMITIVES], check=True, capture_output=True, text=True,
                           env=env).stdout.split()
    assert {"remat2", "debug_print", "cholesky", "linear_call"} <= set(names)
    code = "import sys; from styrax.core.programs.serial import known_primitive as k; [k(n) for n in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", code, *names], check=True, env=env)


def test_programs_are_read_before_their_primitives_are_loaded():
    text = "{ lambda a:f32[2,2]; . let b:f32[2,2] = cholesky a; in (b,) }"
    code = "import sys; from styrax.core.programs.serial import parse; print(parse(sys.argv[1]))"
    path = str(Path(styrax.__file__).parent.parent)
    said = subprocess.run([sys.executable, "-c", code, text], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path}).stdout
    assert "cholesky a" in said


def test_references():
    function = lambda x: x
    program = parse(
        "{ lambda ; a:f32[3]. let b:f32[3] = add[f=local('mine')] a a; in (b,) }", {"mine": function}
    )
    assert program.eqns[0].params["f"] is function


def test_many_variables():
    """More than there are short names: none of them is one of the words of the format."""
    variables = [Var(F32)]
    eqns = []
    for _ in range(800):
        variables.append(Var(F32))
        eqns.append(JaxprEqn([variables[-2]], [variables[-1]], holder, {}))
    program = Jaxpr([], variables[:1], variables[-1:], eqns)
    assert str(parse(to_text(program))) == str(program)
