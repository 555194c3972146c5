"""Rules of libraries: constants and programs that they write, for loops and for StableHLO; MLIR's objects as text."""

from __future__ import annotations

import jax as oracle
import jax.extend.core as oracle_core
import jax.interpreters.mlir as oracle_mlir
import numpy as np
import pytest
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo as oracle_hlo

import styrax as jax
import styrax.lax as lax
import styrax.numpy as jnp
from styrax.compat.jaxlib.mlir.dialects import hlo
from styrax.core.programs import rules
from styrax.extend import core as jex_core
from styrax.extend.core import Primitive
from styrax.interpreters import mlir
from tests import xla_cpu

X = np.arange(3, dtype=np.float32)
SCALAR = jax.core.ShapedArray((), np.float32)


def runs_everywhere(primitive, wanted):
    """Eagerly, compiled, in a loop, and through StableHLO."""
    np.testing.assert_allclose(primitive.bind(jnp.asarray(X)), wanted(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(primitive.bind)(X), wanted(X), rtol=1e-6)
    twice = jax.jit(lambda x: lax.fori_loop(0, 2, lambda _, y: primitive.bind(y), x))(X)
    np.testing.assert_allclose(twice, wanted(wanted(X)), rtol=1e-6)
    (out,) = xla_cpu.run(jax.make_jaxpr(primitive.bind)(X), X)
    np.testing.assert_allclose(out, wanted(X), rtol=1e-6)


def primitive(name, rule):
    made = Primitive(f"test_mlir_{name}")
    made.def_abstract_eval(lambda x: x)
    mlir.register_lowering(made, rule)
    return made


def test_constants_and_functions_in_rules():
    def rule(ctx, x):
        factor = mlir.ir_constant(np.float32(3))
        times = mlir.lower_fun(lambda a, b: jnp.sin(a) * b, multiple_results=False)
        return times(ctx.replace(avals_in=[*ctx.avals_in, SCALAR]), x, factor)

    runs_everywhere(primitive("constants", rule), lambda x: 3 * np.sin(x))


def test_programs_in_rules():
    program = jax.make_jaxpr(lambda x: jnp.where(x > 1, x, -x) + np.float32(2))(X)

    def write(ctx, x):
        outs, tokens = mlir.jaxpr_subcomp(
            ctx.module_context, program.jaxpr, None, mlir.TokenSet(), [mlir.ir_constant(c) for c in program.consts], x,
            dim_var_values=(), const_lowering={}, outer_traceback=None)
        assert len(tokens) == 0
        return outs

    runs_everywhere(primitive("programs", write), lambda x: np.where(x > 1, x, -x) + 2)
    call = primitive("calls", lambda ctx, x: mlir.core_call_lowering(ctx, x, name="f", call_jaxpr=program))
    runs_everywhere(call, lambda x: np.where(x > 1, x, -x) + 2)


def test_handlers_of_constants():
    class Half:
        def __init__(self, value):
            self.value = value

    mlir.register_constant_handler(Half, lambda val, aval: mlir.ir_constants(np.float32(val.value / 2)))
    rule = lambda ctx, x: mlir.lower_fun(lambda a, b: a + b, False)(
        ctx.replace(avals_in=[*ctx.avals_in, SCALAR]), x, mlir.ir_constant(Half(3)))
    runs_everywhere(primitive("handlers", rule), lambda x: x + 1.5)
    with pytest.raises(RuntimeError, match="inside lowering rules"):
        mlir.ir_constant(1.0)


def test_platforms():
    with pytest.raises(NotImplementedError, match="unknown platform not_a_platform"):
        mlir.register_lowering(Primitive("test_mlir_nowhere"), lambda ctx, x: [x], platform="not_a_platform")
    elsewhere = Primitive("test_mlir_elsewhere")
    mlir.register_lowering(elsewhere, lambda ctx, x: [x], platform="tpu")
    assert elsewhere in rules.stablehlos and elsewhere not in rules.loops


@pytest.mark.parametrize("expression", [
    "i32_attr(3)", "i64_attr(-3)", "dense_int_array([1, 2])", "dense_int_array([])", "dense_int_elements([1, 2])",
    "ir_attribute(3)", "ir_attribute('text')", "ir_attribute(2.5)", "ir_attribute(True)", "ir_attribute([1, 2])",
    "ir_attribute(np.arange(3))", "ir_attribute(np.float16(1))", "ir_attribute({'a': 1})",
    "dtype_to_ir_type(np.dtype('bfloat16'))", "dtype_to_ir_type(np.dtype('complex64'))",
    "dtype_to_ir_type(np.dtype(bool))",
])
def test_types_and_attributes(expression):
    ours = str(eval(f"mlir.{expression}", {"mlir": mlir, "np": np}))
    with oracle_mlir.make_ir_context(), ir.Location.unknown():
        theirs = eval(f"mlir.{expression}", {"mlir": oracle_mlir, "np": np})
        kind = ir.Type if "type" in expression else ir.Attribute
        assert kind.parse(ours) == theirs


def test_types_of_values():
    key = jax.core.ShapedArray((2,), jax.random.key(0).dtype)
    assert str(mlir.aval_to_ir_type(None, jax.core.ShapedArray((3, 4), np.float32))) == "tensor<3x4xf32>"
    assert [str(t) for t in mlir.aval_to_ir_types(None, key)] == ["tensor<2x2xui32>"]
    assert mlir.aval_to_ir_type(None, jax.core.abstract_token) == mlir.token_type()[0]
    with pytest.raises(TypeError, match="No ir_type_handler for aval type"):
        mlir.aval_to_ir_types(None, object())
    assert mlir.flatten_ir_types([1, (2, 3)]) == mlir.flatten_ir_values([1, (2, 3)]) == [1, 2, 3]
    assert mlir.unflatten_ir_values_like_types([1, 2, 3], [0, (0, 0)]) == [1, (2, 3)]


def test_modules():
    program = jax.make_jaxpr(lambda x: jnp.where(x > 0, x, 1.0) + 1)(X)
    parameters = dict(in_avals=program.in_avals, ordered_effects=[], platforms=["cpu"], backend=None,
                      axis_context=mlir.ShardingContext(1), donated_args=[False],
                      lowering_parameters=mlir.LoweringParameters())
    first, second = (mlir.lower_jaxpr_to_module("m", program, **parameters).module for _ in range(2))
    (out,) = xla_cpu.compile_text(mlir.module_to_string(first)).execute_sharded(
        [oracle.device_put(X)]).disassemble_into_single_device_arrays()
    np.testing.assert_array_equal(np.asarray(out[0]), np.where(X > 0, X, 1) + 1)
    assert mlir.merge_mlir_modules(first, "main", second) == "main_0"
    assert first.names() == ["main", "_where", "main_0", "_where_0"]
    with mlir.make_ir_context(), oracle_mlir.make_ir_context():
        ir.Module.parse(mlir.module_to_bytecode(first))


def test_tokens():
    token = lax.create_token()
    _, out = jax.jit(lambda t, x: (lax.after_all(t, lax.create_token()), x + 1))(token, 1.0)
    assert out == 2 and repr(lax.after_all(token)) == repr(jax.jit(lambda: lax.create_token())())
    with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
        jax.jit(lax.after_all)(1.0)


@pytest.mark.parametrize("name", hlo.__all__)
def test_operations_of_dialects_are_those_of_the_bindings(name):
    assert hasattr(oracle_hlo, name)


def operands(arity, dtype=np.float32):
    return [np.array([0.3, -0.0, 0.75], dtype), np.array([0.5, 2.0, 0.25], dtype), np.array([1, 0.5, 3], dtype)][:arity]


OPERATIONS = {
    "abs": 1, "add": 2, "atan2": 2, "cbrt": 1, "ceil": 1, "clamp": 3, "complex": 2, "cosine": 1, "divide": 2,
    "exponential": 1, "exponential_minus_one": 1, "floor": 1, "is_finite": 1, "log_plus_one": 1, "logistic": 1,
    "maximum": 2, "minimum": 2, "multiply": 2, "negate": 1, "power": 2, "remainder": 2, "rsqrt": 1, "sign": 1,
    "sine": 1, "sqrt": 1, "subtract": 2, "tan": 1, "tanh": 1,
}  # fmt: skip


CORES = {jax: jex_core, oracle: oracle_core}


def lowered_to(package, dialect, name, given, result):
    """The results of a primitive of a library whose rule writes the operation, eagerly and compiled."""
    made = CORES[package].Primitive(f"test_dialect_{name}_{package.__name__}")
    made.def_abstract_eval(lambda *_: package.core.ShapedArray(given[0].shape, result))
    package.interpreters.mlir.register_lowering(made, lambda ctx, *xs: [getattr(dialect, name)(*xs)])
    return np.asarray(package.jit(made.bind)(*given))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_dialects(name):
    given = operands(OPERATIONS[name])
    result = np.dtype({"complex": np.complex64, "is_finite": bool}.get(name, np.float32))
    np.testing.assert_allclose(lowered_to(jax, hlo, name, given, result),
                               lowered_to(oracle, oracle_hlo, name, given, result), rtol=1e-6, equal_nan=True)


def test_classes_of_operations_nest():
    runs_everywhere(primitive("fma", lambda ctx, x: [hlo.AddOp(hlo.MulOp(x, x), x).result]), lambda x: x * x + x)
    runs_everywhere(primitive("rounds", lambda ctx, x: hlo.SubtractOp(hlo.exponential(x), x).results),
                    lambda x: np.exp(x) - x)


def test_what_a_primitive_lacks_is_told():
    def told(package):
        lacking = CORES[package].Primitive("test_lacking")
        without_lowering = CORES[package].Primitive("test_lacking")
        without_lowering.def_abstract_eval(lambda x: x)
        found = []
        for call in (lacking.bind, package.jit(lacking.bind), package.jit(without_lowering.bind)):
            with pytest.raises(NotImplementedError) as error:
                call(1.0)
            found.append(str(error.value).split(": register")[0])
        return found

    assert told(jax) == told(oracle)
