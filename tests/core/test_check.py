"""The type checker accepts what tracing and JAX produce and rejects what is not well formed."""

import numpy as np
import pytest

from styrax.core.programs.check import check_jaxpr, maybe_check
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Control
from styrax.core.settings import config
from styrax.core.tracing.errors import JaxprTypeError
from styrax.core.types.avals import AbstractRef, ShapedArray
from styrax.core.types.effects import ReadEffect

F32 = ShapedArray((3,), np.float32)
F64 = ShapedArray((3,), np.float64)
SCALAR = ShapedArray((), np.float32)
I32 = ShapedArray((), np.int32)
BOOL = ShapedArray((), np.bool_)

same = Primitive("same")
same.def_abstract_eval(lambda x, *_: x)
pair = Primitive("pair", multiple_results=True)
pair.def_abstract_eval(lambda x: [x, x])
picky = Primitive("picky")


@picky.def_abstract_eval
def picky_type(x):
    raise TypeError("picky likes nothing")


read = Primitive("read")
read.def_effectful_abstract_eval(lambda r: (r.inner_aval, {ReadEffect(0)}))


def program(ins, make, consts=()):
    """A program of the equations that ``make`` gives for its inputs, with the results it names."""
    eqns, outs = make(*consts, *ins)
    return Jaxpr(list(consts), list(ins), outs, eqns)


def test_good_program():
    a, b, c, d = (Var(F32) for _ in range(4))
    eqns = [JaxprEqn([a], [b], same, {}), JaxprEqn([b], [c, d], pair, {})]
    check_jaxpr(Jaxpr([], [a], [c, b, Literal(np.float32(1), SCALAR)], eqns))


@pytest.mark.parametrize(
    "message, make",
    [
        ("is not defined", lambda a: ([JaxprEqn([Var(F32)], [Var(F32)], same, {})], [a])),
        ("a result, is not defined", lambda a: ([], [Var(F32)])),
        ("already bound", lambda a: ([JaxprEqn([a], [a], same, {})], [a])),
        (r"has type f32\[3\], but f64\[3\]", lambda a: ([JaxprEqn([a], [Var(F64)], same, {})], [a])),
        ("There are 2 results of pair", lambda a: ([JaxprEqn([a], [Var(F32)], pair, {})], [a])),
        ("picky likes nothing", lambda a: ([JaxprEqn([a], [Var(F32)], picky, {})], [a])),
        ("is not a scalar", lambda a: ([], [Literal(np.ones(3, np.float32), F32)])),
        ("said to be of type", lambda a: ([], [Literal(np.float64(1), SCALAR)])),
    ],
)
def test_bad_programs(message, make):
    with pytest.raises(JaxprTypeError, match=message) as error:
        check_jaxpr(program([Var(F32)], make))
    assert "in the program:" in str(error.value)


def test_input_bound_twice():
    a = Var(F32)
    with pytest.raises(JaxprTypeError, match="already bound"):
        check_jaxpr(Jaxpr([], [a, a], [a], []))


def test_message_names_equation_and_line():
    from styrax.core.tracing import source

    a, b = Var(F32), Var(F64)
    eqn = JaxprEqn([a], [b], same, {}, source_info=source.current())
    with pytest.raises(JaxprTypeError, match="test_message_names_equation_and_line") as error:
        check_jaxpr(Jaxpr([], [a], [b], [eqn]))
    assert "a:f64[3] = same b" in str(error.value)


def test_effects():
    ref, out = Var(AbstractRef(F32)), Var(F32)
    good = JaxprEqn([ref], [out], read, {}, frozenset({ReadEffect(0)}))
    check_jaxpr(Jaxpr([], [ref], [out], [good]))
    with pytest.raises(JaxprTypeError, match="lacks effects of its primitive"):
        check_jaxpr(Jaxpr([], [ref], [out], [JaxprEqn([ref], [out], read, {})]))
    with pytest.raises(JaxprTypeError, match=r"lacks the effect Read<0>"):
        check_jaxpr(Jaxpr([], [ref], [out], [good], frozenset()))


def test_constants():
    a = Var(F32)
    check_jaxpr(ClosedJaxpr(Jaxpr([a], [], [a], []), [np.ones(3, np.float32)]))
    with pytest.raises(JaxprTypeError, match="A constant of type"):
        check_jaxpr(ClosedJaxpr(Jaxpr([a], [], [a], []), [np.ones(4, np.float32)]))


def closed(ins, outs):
    """A program from inputs to results of the given types."""
    variables = [Var(t) for t in ins]
    results = [Var(t) for t in outs]
    eqns = [JaxprEqn([], [v], constant(v.aval), {}) for v in results]
    return ClosedJaxpr(Jaxpr([], variables, results, eqns), [])


def constant(aval):
    primitive = Primitive("constant")
    primitive.def_abstract_eval(lambda: aval)
    return primitive


TRAITS = {
    "jit": {"program": lambda params: params["jaxpr"]},
    **{kind.value: {"control": kind} for kind in Control},
}


def caller(name, result_types):
    primitive = Primitive(name, multiple_results=True)
    primitive.def_abstract_eval(lambda *_, **__: list(result_types))
    primitive.declare(**TRAITS[name])
    return primitive


CALLS = [
    ("jit", [F32], {"jaxpr": closed([F32], [SCALAR])}, [SCALAR], True),
    ("jit", [F32], {"jaxpr": closed([F64], [SCALAR])}, [SCALAR], False),
    ("jit", [F32], {"jaxpr": closed([F32], [F32])}, [SCALAR], False),
    ("cond", [I32, F32], {"branches": (closed([F32], [SCALAR]), closed([F32], [SCALAR]))}, [SCALAR], True),
    ("cond", [I32, F32], {"branches": (closed([F32], [SCALAR]), closed([F32], [F32]))}, [SCALAR], False),
    ("cond", [I32, F32], {"branches": (closed([F32], [SCALAR]), closed([F64], [SCALAR]))}, [SCALAR], False),
    (
        "scan",
        [I32, SCALAR, F32],
        {"jaxpr": closed([I32, SCALAR, SCALAR], [SCALAR, I32]), "num_consts": 1, "num_carry": 1, "length": 3},
        [SCALAR, ShapedArray((3,), np.int32)],
        True,
    ),
    (
        "scan",
        [SCALAR, F32],
        {"jaxpr": closed([SCALAR, F32], [SCALAR]), "num_consts": 0, "num_carry": 1, "length": 3},
        [SCALAR],
        False,
    ),
    (
        "scan",
        [SCALAR, F32],
        {"jaxpr": closed([SCALAR, SCALAR], [SCALAR]), "num_consts": 0, "num_carry": 1, "length": 4},
        [SCALAR],
        False,
    ),
    (
        "while",
        [I32, F32, SCALAR],
        {
            "cond_jaxpr": closed([I32, SCALAR], [BOOL]),
            "body_jaxpr": closed([F32, SCALAR], [SCALAR]),
            "cond_nconsts": 1,
            "body_nconsts": 1,
        },
        [SCALAR],
        True,
    ),
    (
        "while",
        [SCALAR],
        {
            "cond_jaxpr": closed([SCALAR], [BOOL]),
            "body_jaxpr": closed([SCALAR], [F32]),
            "cond_nconsts": 0,
            "body_nconsts": 0,
        },
        [SCALAR],
        False,
    ),
]


@pytest.mark.parametrize("name, ins, params, outs, good", CALLS)
def test_inner_programs_fit(name, ins, params, outs, good):
    invars, outvars = [Var(t) for t in ins], [Var(t) for t in outs]
    jaxpr = Jaxpr([], invars, outvars, [JaxprEqn(invars, outvars, caller(name, outs), params)])
    if good:
        check_jaxpr(jaxpr)
    else:
        with pytest.raises(JaxprTypeError):
            check_jaxpr(jaxpr)


def test_inner_programs_are_checked():
    a = Var(F32)
    inner = ClosedJaxpr(Jaxpr([], [a], [Var(F32)], []), [])
    b, c = Var(F32), Var(F32)
    jaxpr = Jaxpr([], [b], [c], [JaxprEqn([b], [c], caller("jit", [F32]), {"jaxpr": inner})])
    with pytest.raises(JaxprTypeError, match="The program inside jit is wrong"):
        check_jaxpr(jaxpr)


def test_maybe_check():
    bad = Jaxpr([], [], [Var(F32)], [])
    with config.enable_checks(False):
        assert maybe_check(bad) is bad
    with config.enable_checks(True), pytest.raises(JaxprTypeError):
        maybe_check(bad)
