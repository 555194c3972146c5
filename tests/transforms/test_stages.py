"""Ahead of time: what a compiled function takes, what it refuses, and results that are no arrays, as JAX's."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, matrix, styrax, vector


def scaled(package, **options):
    return package.jit(lambda x, n, *, m=1: x * n * m, **options)


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (1, -1)}])
def test_static_arguments_are_compiled_in(options):
    def program(package):
        lowered = scaled(package, **options).lower(2.0, 3)
        compiled = lowered.compile()
        trees = str(lowered.in_tree) + str(compiled.in_tree)
        assert trees == 2 * "PyTreeDef(((*,), {}))"
        return compiled(5.0), len(lowered.args_info[0])

    assert_same(program)


TRACED_CALLS = {
    "called": lambda j, f: f({"a": vector}, y=3.0),
    "other shapes": lambda j, f: f({"a": matrix}, y=3.0),
    "other types": lambda j, f: f({"a": vector.astype(np.int32)}, y=3.0),
    "another structure": lambda j, f: f({"a": vector}, 3.0),
    "grad": lambda j, f: j.grad(lambda y: f({"a": vector}, y=y)["b"].sum())(3.0),
    "vmap": lambda j, f: j.vmap(lambda y: f({"a": vector}, y=y))(vector),
    "jit": lambda j, f: j.jit(lambda y: f({"a": vector}, y=y))(3.0),
}


@pytest.mark.parametrize("name", TRACED_CALLS)
def test_traced_functions_are_called(name):
    def outcome(package):
        traced = package.jit(lambda x, y: {"b": x["a"] * y}).trace({"a": vector}, y=2.0)
        try:
            found = TRACED_CALLS[name](package, traced)
        except Exception as e:
            return type(e).__name__
        return package.tree.map(lambda x: (x.dtype.name, x.weak_type, np.asarray(x).tolist()), found)

    assert outcome(styrax) == outcome(jax)


def test_memory_of_the_host_apart():
    def sizes(package):
        stats = package.jit(lambda x: x + 1).lower(vector).compile().memory_analysis()
        return {name: getattr(stats, name) for name in dir(stats) if name.startswith("host_")}

    assert sizes(styrax) == sizes(jax) != {}


def test_static_keywords_are_compiled_in():
    assert_same(lambda package: scaled(package, static_argnames="m").lower(2.0, 3, m=4).compile()(5.0, 3))


CALLS = {
    "shape": lambda j: j.jit(lambda x: x).lower(matrix).compile()(vector),
    "dtype": lambda j: j.jit(lambda x, y: x).lower({"a": vector}, 1).compile()({"a": vector.astype(np.int32)}, 1.0),
    "many types": lambda j: j.jit(lambda *x: x).lower(*[1.0] * 7).compile()(*[vector] * 7),
    "dialect": lambda j: j.jit(lambda x: x).lower(1.0).as_text("foo"),
    "dialect of an object": lambda j: j.jit(lambda x: x).lower(1.0).compiler_ir("foo"),
    "number": lambda j: j.jit(lambda x: x).lower(vector).compile()(vector, vector),
    "tree": lambda j: j.jit(lambda x: x).lower({"a": vector}).compile()({"b": vector}),
    "keyword": lambda j: j.jit(lambda x, **k: x).lower(vector).compile()(vector, k=1),
    "static": lambda j: scaled(j, static_argnums=1).lower(2.0, 3).compile()(2.0, 3),
    "static keyword": lambda j: scaled(j, static_argnames="m").lower(2.0, 3, m=4).compile()(5.0, 3, m=4),
    "vmap": lambda j: j.vmap(j.jit(lambda x: x).lower(1.0).compile())(vector),
    "grad": lambda j: j.grad(j.jit(lambda x: x).lower(1.0).compile())(1.0),
    "jit": lambda j: j.jit(j.jit(lambda x: x).lower(1.0).compile())(1.0),
    "result": lambda j: j.jit(lambda x: "a")(1.0),
    "result in a tree": lambda j: j.jit(lambda x: {"a": [x, object]})(1.0),
    "result of checkpoint": lambda j: j.checkpoint(lambda x: (x, len))(1.0),
    "result of scan": lambda j: j.lax.scan(lambda c, x: (c, [x, "a"]), 0.0, vector),
    "unhashable": lambda j: scaled(j, static_argnums=1)(1.0, [1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_messages(name):
    """The same class; of the message what it says of types, places and structures."""
    with pytest.raises(Exception) as expected:
        CALLS[name](jax)
    with pytest.raises(Exception) as got:
        CALLS[name](styrax)
    assert got.type.__name__ == expected.type.__name__
    facts = re.compile(r"Argument '.*|\* at .*|returned a value .*|Cannot apply [^.]*|The .*mismatches"
                       r"|unknown dialect.*|^Non-hashable.*supported", re.M)
    assert facts.findall(str(got.value)) == facts.findall(str(expected.value)) != []


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_costs_count_arithmetic_of_any_number(dtype):
    x = np.ones(8, dtype)

    def flops(package):
        return package.jit(lambda x, y: 2 * x + y).lower(x, x).compile().cost_analysis()["flops"]

    assert flops(styrax) == flops(jax) == 16


@pytest.mark.parametrize("name", ["f", "g_2", "h_", "<lambda>"])
def test_modules_are_named_as_in_jax(name):
    def program(package):
        def f(x):
            return x

        f.__name__ = name
        return re.match(r"module @\w*", package.jit(f).lower(1.0).as_text()).group()

    assert program(styrax) == program(jax)


ABSTRACT = {
    "lower": lambda p, f, s: str(p.jit(f).lower(s).in_avals),
    "args_info": lambda p, f, s: p.jit(f).lower(s).args_info[0][0].dtype.name,
    "compile": lambda p, f, s: p.jit(f).lower(s).compile()(p.numpy.ones(s.shape, s.dtype)).dtype.name,
    "eval_shape": lambda p, f, s: str(p.eval_shape(f, s)),
    "eval_shape of jit": lambda p, f, s: str(p.eval_shape(p.jit(f), s)),
    "eval_shape of vmap": lambda p, f, s: str(p.eval_shape(p.vmap(f), s)),
    "given back": lambda p, f, s: str(p.eval_shape(lambda: s)),
    "make_jaxpr": lambda p, f, s: str(p.make_jaxpr(f)(s).in_avals),
    "typeof": lambda p, f, s: str(p.typeof(s)),
    "export": lambda p, f, s: str(p.export.export(p.jit(f))(s).in_avals),
    "linear_transpose": lambda p, f, s: str(p.linear_transpose(f, s)(p.numpy.ones(s.shape, s.dtype))[0].dtype),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128", "float32"])
@pytest.mark.parametrize("how", ABSTRACT)
def test_types_of_64_bits_as_arguments(how, dtype, x64):
    def outcome(package):
        with package.enable_x64(x64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = ABSTRACT[how](package, lambda x: x * 2, package.ShapeDtypeStruct((3,), np.dtype(dtype)))
            except TypeError:
                return "TypeError"
        return found

    assert outcome(styrax) == outcome(jax)


def test_what_has_the_shape_and_dtype_of_an_array_of_64_bits():
    class Described:
        shape, dtype = (2,), np.dtype("float64")

    assert styrax.eval_shape(lambda x: x, Described()).dtype == jax.eval_shape(lambda x: x, Described()).dtype
