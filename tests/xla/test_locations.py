"""Programs as text and as objects: where operations come from, notes on them, and what tools read off a module."""

import io
import re

import pytest

import styrax as sx
from styrax import lax
from styrax import numpy as jnp
from styrax.experimental.xla_metadata import set_xla_metadata


def f(x):
    with sx.named_scope("foo"):
        return jnp.sin(x) * 2


def located(fun, *args):
    return sx.jit(fun).lower(*args).as_text(debug_info=True)


@pytest.mark.parametrize("fun, paths", [
    (f, ["jit(f)/foo/sin", "jit(f)/foo/mul"]),
    (sx.value_and_grad(f), ["jit(f)/jvp(foo)/sin", "jit(f)/jvp(foo)/cos", "jit(f)/transpose(jvp(foo))/mul"]),
    (sx.jvp, []),
    (sx.checkpoint(f), ["jit(f)/checkpoint"]),
])
def test_operations_tell_scopes_and_transformations(fun, paths):
    if fun is sx.jvp:
        fun, paths = lambda x: sx.jvp(sx.jit(f), (x,), (x,)), ["jit(<lambda>)/jvp(jit(f))"]
    text = located(fun, 1.0)
    assert all(f'loc("{path}"' in text for path in paths), text
    assert f'"{__file__}":' in text
    assert "loc(" not in sx.jit(fun).lower(1.0).as_text()


def test_operations_in_regions_tell_which_one():
    def loop(x):
        with sx.named_scope("foo"):
            return lax.while_loop(lambda x: x < 3, sx.named_scope("step")(lambda x: x * x), x)

    text = located(loop, 2.0)
    assert 'loc("jit(loop)/foo/while/cond/lt"' in text and 'loc("jit(loop)/foo/while/body/step/mul"' in text
    text = located(lambda x: lax.cond(x > 1, jnp.sin, jnp.cos, x), 2.0)
    assert "cond/branch_0_fun/cos" in text and "cond/branch_1_fun/sin" in text
    text = located(sx.named_scope("foo")(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)), 2.0)
    assert "/foo/while/body/" in text


def test_notes_are_attributes_of_the_operations_that_make_the_results():
    @set_xla_metadata(a="b")
    @sx.jit
    def noted(x):
        with set_xla_metadata(c=True, a=None):
            y = jnp.cos(x)
        return jnp.sin(y)

    text = noted.lower(1.0).as_text()
    (cosine,) = [line for line in text.splitlines() if "stablehlo.cosine" in line]
    (sine,) = [line for line in text.splitlines() if "stablehlo.sine" in line]
    assert '{mhlo.frontend_attributes = {c = "true"}}' in cosine
    assert '{mhlo.frontend_attributes = {a = "b"}}' in sine
    assert [e.ctx.xla_metadata for e in noted.trace(1.0).jaxpr.eqns] == [{"c": True}, {"a": "b"}]
    assert 'a = "b"' not in noted.__wrapped__.lower(1.0).as_text()
    gradient = sx.jit(sx.grad(noted)).lower(1.0).as_text()
    assert all("frontend_attributes" in line for line in gradient.splitlines() if "sine" in line)
    value = sx.jit(lambda x: set_xla_metadata(jnp.exp(x), k=1)).lower(1.0).as_text("hlo")
    assert value.count('exponential(%arg0), frontend_attributes={k="1"}') == 1


def test_notes_are_part_of_what_a_function_is_compiled_for():
    fun = sx.jit(lambda x: x + 1)
    assert "frontend" not in fun.lower(1).as_text()
    with set_xla_metadata(a=1):
        assert 'frontend_attributes = {a = "1"}' in fun.lower(1).as_text()
        assert int(fun(1)) == 2
    assert "frontend" not in fun.lower(1).as_text()


def test_a_module_shows_operations_and_attributes():
    lowered = sx.jit(lambda x: sx.ffi.ffi_call("unknown", x)(x, n=3, name="a, b")).lower(jnp.ones(3))
    module = lowered.compiler_ir()
    assert str(module) == lowered.as_text()
    (function,) = module.body.operations
    (block,) = function.body.blocks
    call, last = block.operations
    assert (call.name, last.name) == ("stablehlo.custom_call", "func.return")
    config = call.attributes["mhlo.backend_config"]
    assert isinstance(config, sx.interpreters.mlir.ir.DictAttr) and set(config) == {"n", "name"}
    assert (str(config["n"]), str(config["name"])) == ("3 : i64", '"a, b"')
    assert [v.type for v in (*call.operands, *call.results)] == ["tensor<3xf32>"] * 2
    out = io.StringIO()
    module.operation.print(file=out, enable_debug_info=True)
    assert 'loc("jit(<lambda>)/ffi_call"' in out.getvalue()
    with pytest.raises(ValueError, match="unknown dialect"):
        lowered.compiler_ir("no such")


def test_hlo_text_names_operations():
    text = sx.jit(lambda x: jnp.matmul(x, x) + 1).lower(jnp.ones((2, 2))).compiler_ir("hlo").as_hlo_text()
    assert text.startswith("HloModule ") and "f32[2,2] dot(" in text and "f32[2,2] add(" in text


@pytest.mark.parametrize("other", [jnp.square, lambda x: x * x, lambda x: x ** 2])
def test_hlo_text_tells_what_is_computed_and_the_module_where(other):
    def body(f):
        text = f.lower(jnp.ones(3)).compiler_ir("hlo").as_hlo_text()
        assert "metadata=" not in text
        return text[text.index("ENTRY"):]

    assert body(sx.jit(jnp.square)) == body(sx.jit(other)) != body(sx.jit(jnp.sin))
    module = sx.jit(jnp.square).lower(jnp.ones(3)).compiler_ir("hlo").as_hlo_module()
    assert 'op_name="jit(square)/' in module.to_string()
    assert 'op_name="jit(square)/' in sx.jit(jnp.square).lower(jnp.ones(3)).as_text("hlo", debug_info=True)


@pytest.mark.parametrize("precision", [None, "default", "high", "highest", ("high", "highest"), ("default", "highest")])
def test_hlo_text_tells_precisions(precision):
    import jax

    def told(module):
        x = module.numpy.ones((1, 1, 3, 3))
        f = lambda v: module.lax.conv(v, v, (1, 1), "SAME", precision=precision) + module.numpy.matmul(
            v[0, 0], v[0, 0], precision=precision)
        return re.findall("operand_precision=[{].*?[}]", module.jit(f).lower(x).as_text("hlo"))

    assert told(sx) == told(jax)
