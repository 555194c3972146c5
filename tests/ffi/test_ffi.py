"""Foreign functions, compiled by the C compiler at hand, called from programs; and buffer callbacks."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import jax as oracle
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental.buffer_callback import ExecutionStage, buffer_callback
from styrax.ffi import targets as registry

X = np.arange(3, dtype=np.float32)
SPEC = jax.ShapeDtypeStruct((3,), np.float32)


OWN_HEADER = Path(registry.__file__).parent / "include"


@pytest.fixture(scope="module", autouse=True, params=[OWN_HEADER, jax.ffi.include_dir()], ids=["own header", "xla's"])
def targets(tmp_path_factory, request):
    registry.targets.clear()
    library = tmp_path_factory.mktemp("ffi") / "scale.so"
    source = Path(__file__).parent / "scale.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-I", request.param, source, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))
    for name in ("scale", "kinds", "increment"):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(loaded, name)), platform="cpu")
    jax.ffi.register_ffi_target("count", {"instantiate": jax.ffi.pycapsule(loaded.make_state),
                                          "execute": jax.ffi.pycapsule(loaded.count)})
    jax.ffi.register_ffi_target("plain", jax.ffi.pycapsule(loaded.plain), api_version=0)
    return loaded


def test_handlers_of_c_plus_plus(tmp_path):
    """The header in C++ checks the sizes of what it is given."""
    source, library = Path(__file__).parent / "scale.cc", tmp_path / "scale.so"
    subprocess.run(["c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-I", jax.ffi.include_dir(), source, "-o", library],
                   check=True)
    loaded = ctypes.CDLL(str(library))
    jax.ffi.register_ffi_target("scale_in_c_plus_plus", jax.ffi.pycapsule(loaded.Scale), platform="cpu")
    x = jnp.arange(3.0)
    call = jax.ffi.ffi_call("scale_in_c_plus_plus", jax.ShapeDtypeStruct((3,), np.float32))
    for f in (lambda x: call(x, k=np.float32(2)), jax.jit(lambda x: call(x, k=np.float32(2)))):
        np.testing.assert_array_equal(f(x), [0, 2, 4])


def scaled(x, factor=2.5, **options):
    return jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, np.float32), **options)(
        x, factor=np.float32(factor))


def test_calls():
    np.testing.assert_array_equal(scaled(X), 2.5 * X)
    np.testing.assert_array_equal(jax.jit(lambda x: scaled(x * 2, 3) + 1)(X), 6 * X + 1)
    np.testing.assert_array_equal(jax.lax.fori_loop(0, 3, lambda i, x: scaled(x, 2), X), 8 * X)
    assert scaled(np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert scaled(np.float32(2.0)) == 5
    pair = jax.ffi.ffi_call("scale", (SPEC, SPEC))(X)
    assert isinstance(pair, tuple) and len(pair) == 2
    np.testing.assert_array_equal(
        jax.ffi.ffi_call("plain", SPEC, custom_call_api_version=1)(X), 7 * X)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_vmap(method):
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    f = lambda x: scaled(x, vmap_method=method)
    np.testing.assert_array_equal(jax.vmap(f)(x), 2.5 * x)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(f), in_axes=1))(x), 2.5 * x.swapaxes(0, 1))


def test_attributes():
    call = jax.ffi.ffi_call("kinds", jax.ShapeDtypeStruct((5,), np.int32))
    given = dict(a=1, b=2.5, c=True, d="text", e=np.arange(3), f={"g": 1}, h=np.int8(3))
    np.testing.assert_array_equal(jax.jit(lambda: call(**given))(), [1, 1, 4, 1, 4])
    np.testing.assert_array_equal(call(d="other"), [0, 0, 0, 1, 5])
    np.testing.assert_array_equal(call(), [0] * 5)
    for wrong in ([1], None, object()):
        with pytest.raises(TypeError):
            call(a=wrong)


def test_memory_in_place():
    call = jax.ffi.ffi_call("increment", SPEC, input_output_aliases={0: 0})
    x = jnp.asarray(X)
    np.testing.assert_array_equal(call(x), X + 1)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(jax.jit(lambda x: call(call(x)) + x)(x), 2 * X + 2)


def test_state():
    call = jax.jit(jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), np.int32), has_side_effect=True))
    assert [int(call()) for _ in range(3)] == [11, 12, 13]


def test_layouts():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = scaled(x, 1, input_layouts=[(1, 0)])
    np.testing.assert_array_equal(np.ravel(found), np.ravel(x.T))  # the function sees columns first
    np.testing.assert_array_equal(scaled(x, 1, input_layouts=[(1, 0)], output_layouts=(1, 0)), x)
    for wrong in ([(0, 1), (0, 1)], [(0,)], [(0, 0)]):
        with pytest.raises(ValueError):
            scaled(x, input_layouts=wrong)


MISTAKES = {
    "nobody": lambda ffi, s: ffi.ffi_call("nobody", s)(X),
    "vmap": lambda ffi, s: (jax if ffi is jax.ffi else oracle).vmap(ffi.ffi_call("nobody", s))(np.ones((2, 3))),
    "grad": lambda ffi, s: (jax if ffi is jax.ffi else oracle).grad(lambda x: ffi.ffi_call("nobody", s)(x).sum())(X),
    "method": lambda ffi, s: ffi.ffi_call("nobody", s, vmap_method="bad")(X),
    "results": lambda ffi, s: ffi.ffi_call("nobody", (s, ()))(X),
    "alias in": lambda ffi, s: ffi.ffi_call("nobody", s, input_output_aliases={1: 0})(X),
    "alias out": lambda ffi, s: ffi.ffi_call("nobody", s, input_output_aliases={0: 1})(X),
    "config": lambda ffi, s: ffi.ffi_call("nobody", s, legacy_backend_config="x")(X),
    "old attributes": lambda ffi, s: ffi.ffi_call("nobody", s, custom_call_api_version=2)(X, a=1),
    "list": lambda ffi, s: ffi.ffi_call("nobody", s)(X, a=[1]),
    "none": lambda ffi, s: ffi.ffi_call("nobody", s)(X, a=None),
    "target": lambda ffi, s: ffi.register_ffi_target("wrong", 3),
    "layouts": lambda ffi, s: ffi.ffi_call("nobody", s, input_layouts=[(0,), (0,)])(X),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes(kind):
    found = []
    for library in (jax, oracle):
        with pytest.raises(Exception) as error:
            MISTAKES[kind](library.ffi, library.ShapeDtypeStruct((3,), np.float32))
        found.append((type(error.value).__name__, str(error.value)[:60]))
    assert found[0] == found[1]


def test_errors_of_functions():
    for call in (scaled, jax.jit(scaled, static_argnums=1)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="^INVALID_ARGUMENT: negative factor"):
            jax.block_until_ready(call(jnp.asarray(X), -1.0))


def test_programs_as_jax_prints_them():
    texts = []
    for library in (jax, oracle):
        call = library.ffi.ffi_call("nobody", library.ShapeDtypeStruct((3,), np.float32), input_output_aliases={0: 0})
        texts.append(str(library.make_jaxpr(lambda x, call=call: call(x, a=1, b="s", c=np.float32(2)))(X)))
    assert texts[0].split() == texts[1].split()


def test_stablehlo_parses():
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    call = jax.ffi.ffi_call("nobody", SPEC, input_output_aliases={0: 0}, has_side_effect=True)
    text = jax.jit(lambda x: call(x, a=1, b="s", c={"d": 2.5}, e=np.arange(3), f=True)).lower(X).as_text()
    with mlir.make_ir_context():
        module = str(ir.Module.parse(text))
    for part in ("f = true",
                 'a = 1 : i64', 'b = "s"', 'c = {d = 2.500000e+00 : f64}', 'e = dense<[0, 1, 2]> : tensor<3xi64>',
                 "has_side_effect = true", "operand_index = 0", "@nobody"):
        assert part in module


def test_lowering_rules():
    from styrax.extend.core import Primitive
    from styrax.interpreters import mlir

    scale_p = Primitive("test_scale")
    scale_p.def_abstract_eval(lambda x, factor: x)
    mlir.register_lowering(scale_p, lambda ctx, x, factor: jax.ffi.ffi_lowering("scale")(
        ctx, x, factor=np.float32(factor)), platform="cpu")
    np.testing.assert_array_equal(jax.jit(lambda x: scale_p.bind(x, factor=3))(X), 3 * X)
    np.testing.assert_array_equal(scale_p.bind(jnp.asarray(X), factor=2), 2 * X)


def test_types():
    number = ctypes.c_int64(0)
    capsule = jax.ffi.pycapsule(ctypes.addressof(number))
    jax.ffi.register_ffi_type("test_types.T", {"type_id": capsule})
    first = number.value
    number.value = 0
    jax.ffi.register_ffi_type_id("test_types.T", capsule)
    assert first > 0 and number.value == first
    with pytest.raises(ValueError):
        jax.ffi.register_ffi_type("test_types.U", {})


def test_buffers():
    def double(context, out, x, *, y=None):
        assert context.stage == ExecutionStage.EXECUTE and out.writeable and not x.writeable
        assert (out.shape, out.dtype, out.ndim) == ((3,), np.float32, 1)
        np.asarray(out)[...] = 2 * np.from_dlpack(x) + (0 if y is None else np.asarray(y))
        with pytest.raises(jax.errors.JaxRuntimeError, match="GPU context is not available"):
            assert context.stream

    call = buffer_callback(double, SPEC)
    np.testing.assert_array_equal(call(X), 2 * X)
    np.testing.assert_array_equal(jax.jit(lambda x: call(x, y=x) + 1)(X), 3 * X + 1)
    with pytest.raises(NotImplementedError, match="vmap is only supported for the buffer_callback primitive"):
        jax.vmap(call)(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="Buffer callbacks do not support JVP"):
        jax.grad(lambda x: call(x).sum())(X)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_buffers_under_vmap(method):
    def add(context, out, x, y):
        np.asarray(out)[...] = np.asarray(x) + np.asarray(y)

    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones(3, np.float32)
    f = jax.vmap(buffer_callback(add, SPEC, vmap_method=method), in_axes=(0, None))
    np.testing.assert_array_equal(f(x, y), x + y)


def test_buffers_in_place_and_their_failures():
    def same(context, out, x):
        assert np.asarray(x).ctypes.data == np.asarray(out).ctypes.data
        np.asarray(out)[0] = 9

    x = jnp.asarray(X)
    np.testing.assert_array_equal(buffer_callback(same, SPEC, input_output_aliases={0: 0})(x), [9, 1, 2])
    np.testing.assert_array_equal(x, X)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: Error when calling buffer callback.*\n.*") as error:
        buffer_callback(lambda *_: 1 / 0, SPEC)(x)
    assert "ZeroDivisionError" in str(error.value)
    called = []
    jax.jit(lambda: [buffer_callback(lambda *_: called.append(1), SPEC, has_side_effect=True)()].clear())()
    assert called == [1]
