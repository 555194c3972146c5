"""JAX's FAQ: the different kinds of JAX values, errors about abstract values, conversion to NumPy arrays."""

from __future__ import annotations

import jax
import pytest

import styrax
from tests.documents.sessions import OURS, Session, assert_prints, errors, follow, play
from tests.documents.test_faq_jit import IMPORTS

FUNC = """
def func(x):
  print(x)
  return jnp.cos(x)
"""


def test_what_print_shows_of_a_tracer():
    """Where the documents have `Traced<ShapedArray(float32[])>`, JAX 0.10.2 prints `JitTracer(~float32[])`."""
    _, ran = play(IMPORTS + FUNC, "res = jax.jit(func)(0.)\nprint(res)", exact=True)
    assert ran[1].output == "JitTracer(~float32[])\n1.0\n"


@pytest.mark.parametrize("call", [
    "jax.jit(func)(jnp.arange(4.))",
    "jax.make_jaxpr(func)(1.)",
    "jax.vmap(func)(jnp.arange(4.))",
    "jax.vmap(func, in_axes=1)(jnp.ones((2, 3)))",
    "jax.grad(func)(1.)",
    "jax.jvp(func, (1.,), (1.,))",
    "jax.linearize(func, 1.)[0]",
    "jax.lax.cond(True, func, func, 1.)",
    "jax.lax.fori_loop(0, 3, lambda i, x: func(x), 1.)",
    "jax.lax.while_loop(lambda x: x > 1, func, 1.)",
    "jax.lax.scan(lambda c, x: (func(c), x), 1., jnp.arange(3))",
    "jax.jit(jax.grad(func))(1.)",
    "jax.vmap(jax.grad(func))(jnp.arange(3.))",
    "jax.grad(lambda x: jax.vmap(func)(x).sum())(jnp.arange(3.))",
    "jax.jit(lambda x, n: func(x) * n, static_argnums=1)(1., 3)",
])
def test_tracers_of_each_transformation(call):
    ours, ran = play(IMPORTS + FUNC, call)
    assert "Tracer(" in ran[1].output


def test_what_is_known_of_a_tracer():
    follow([(IMPORTS, None), ("""
@jit
def f(x):
  print(x.shape, x.dtype, x.ndim, x.size, len(x), isinstance(x, jax.Array), isinstance(x, jax.core.Tracer))
  return x
f(jnp.ones((2, 3)))
""", None), ("print(jax.grad(lambda x: x * int(x) if bool(x > 1) else x.astype(float))(3.))", "3.0")])


DIVIDE = """
def divide(x, y):
  return x / y if y >= 1. else 0.
"""


def test_control_flow_on_concrete_values():
    follow([(IMPORTS + DIVIDE, None),
            ("print(jax.jit(divide, static_argnums=1)(3., 2.))", "1.5"),
            ("print(jax.jit(divide, static_argnums=1)(3., 0.5))", "0.0"),
            ("print(jax.grad(divide)(3., 2.))", "0.5")])


def test_control_flow_on_an_abstract_value():
    ours, theirs = errors(IMPORTS, DIVIDE, "jax.jit(divide)(3., 2.)")
    text = str(ours)
    assert "Attempted boolean conversion of traced array with shape bool[]" in text
    assert "depends on the value of the argument y" in text and "argument x" not in text
    assert "operation ge" in text and "x / y if y >= 1. else 0." in text and "tracing the function divide at" in text


@pytest.mark.parametrize("kind", ["bool", "int", "float", "complex"])
def test_conversions_of_an_abstract_value(kind):
    ours, theirs = errors(IMPORTS, DIVIDE.replace("y >= 1.", f"{kind}(y)"), "jax.jit(divide)(3., 2.)")
    text = str(ours)
    assert isinstance(ours, styrax.errors.ConcretizationTypeError)
    assert isinstance(theirs, jax.errors.ConcretizationTypeError)
    assert kind in text and "the argument y" in text and f"{kind}(y)" in text


def test_values_that_depend_on_several_arguments():
    ours, theirs = errors(IMPORTS, """
@jit
def f(a, b, c):
  d = a['x'] * c
  return 1 if d > 0 else 2
""", "f({'x': 1.}, 2., 3.)")
    for error in ours, theirs:
        assert "depends on the values of the arguments a['x'] and c" in str(error)


def test_index_of_a_list():
    ours, theirs = errors(IMPORTS, "jit(lambda i: [1, 2, 3][i])(1)")
    for error in ours, theirs:
        assert "__index__() method was called on traced array with shape int32[]" in str(error)
        assert "the argument i" in str(error)
    assert "[1, 2, 3][i]" in str(ours)


SPLIT = "jax.jit(jnp.split)(np.zeros(4), 2, 0)"


def test_split_with_abstract_sections():
    ours, theirs = errors(IMPORTS, SPLIT)
    for error in ours, theirs:
        assert "Abstract tracer value encountered where concrete value is expected" in str(error)
        assert "in jax.numpy.split argument" in str(error)
    assert SPLIT in str(ours)


def test_split_with_static_sections():
    halves = "[DeviceArray([0., 0.], dtype=float32), DeviceArray([0., 0.], dtype=float32)]"
    follow([(IMPORTS, None),
            ("jnp.split(jnp.zeros(2), 2, 0)  # works", "[DeviceArray([0.], dtype=float32), "
                                                       "DeviceArray([0.], dtype=float32)]"),
            ("jax.jit(jnp.split, static_argnums=(1, 2))(np.zeros(4), 2, 0)", halves),
            ("jax.jit(lambda arr: jnp.split(arr, 2, 0))(np.zeros(4))", halves)])


def test_the_class_of_a_tracer():
    """JAX's document prints `<class 'jax.interpreters.partial_eval.DynamicJaxprTracer'>`."""
    ran = Session(OURS).run(IMPORTS + """
@jax.jit
def f(x):
  print(type(x))
  print(isinstance(x, jax.core.Tracer), isinstance(x, jax.Array))
  return x

f(jnp.arange(5))
""")
    assert ran.output == "<class 'styrax.interpreters.partial_eval.DynamicJaxprTracer'>\nTrue True\n"
    assert_prints(repr(ran.value), "DeviceArray([0, 1, 2, 3, 4], dtype=int32)")


@pytest.mark.parametrize("call", ["np.asarray(x)", "np.sin(x)", "np.array([x, x])"])
def test_no_numpy_array_of_a_tracer(call):
    ours, theirs = errors(IMPORTS, f"@jax.jit\ndef f(x):\n  return {call}", "f(jnp.arange(5))")
    for error in ours, theirs:
        assert isinstance(error, TypeError)
        assert "__array__() was called on traced array with shape int32[5]" in str(error)
        assert "the argument x" in str(error)
    assert call in str(ours)


def test_looking_at_values_when_the_program_runs():
    follow([(IMPORTS, None), ("""
@jit
def f(x):
  jax.debug.print("x = {}", x)
  return x + 1
y = f(jnp.arange(3))
jax.effects_barrier()
print(y)
""", "x = [0 1 2] [1 2 3]"), ("""
@jit
def f(x):
  y = jax.pure_callback(lambda x: np.asarray(x) * 2, jax.ShapeDtypeStruct((3,), jnp.float32), x)
  return y + 1
print(f(jnp.arange(3.)))
""", "[1. 3. 5.]"), ("""
from jax.experimental import io_callback
log = []
@jit
def f(x):
  io_callback(lambda x: log.append(x.sum().item()), None, x)
  return x + 1
y = f(jnp.arange(3.)), f(jnp.arange(4.))
jax.effects_barrier()
print(log)
""", "[3.0, 6.0]")])


LEAK = """
kept = []
def f(x):
  y = x * 2
  kept.append(y)
  return y.sum()
{call}
"""


@pytest.mark.parametrize("use", ["kept[0] + 1", "jit(lambda z: z * kept[0])(2.)", "jax.grad(lambda z: z * kept[0])(2.)",
                                 "jnp.sin(kept[0])"])
@pytest.mark.parametrize("call", ["jit(f)(jnp.ones(()))", "jax.vmap(f)(jnp.ones(3))", "jax.grad(f)(1.)",
                                  "jax.lax.fori_loop(0, 3, lambda i, x: f(x), 1.)"])
def test_values_that_leak(call, use):
    ours, theirs = errors(IMPORTS, LEAK.format(call=call), use)
    assert isinstance(ours, styrax.errors.UnexpectedTracerError)
    text = str(ours)
    for each in text, str(theirs):
        assert "Encountered an unexpected tracer. A function transformed by JAX had a side effect" in each
        assert "intermediate value" in each and "float32[]" in each
    assert use in text
    if "jit" in call:
        assert "operation mul" in text and ":4:6 (f)" in text and "traced for jit" in text and "was f at" in text
