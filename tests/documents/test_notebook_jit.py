"""The tutorial "Yet another JAX" (pyprobml, MIT licence): `jit`, jaxprs, static arguments, side effects."""

from __future__ import annotations

import re

from tests.documents.sessions import errors, follow, play
from tests.documents.test_notebook_vmap import SETUP


def test_elementwise_operations_fused():
    follow([(SETUP, None), ("""
def slow_f(x):
    # Element-wise ops see a large benefit from fusion
    return x * x + x * 2.0

x = jnp.ones((500, 500))  # 5000 in the document
%timeit slow_f(x)
fast_f = jit(slow_f)
%timeit fast_f(x)
assert np.allclose(slow_f(x), fast_f(x))
print(fast_f(x)[:2, :2])
""", "[[3. 3.] [3. 3.]]"), ("""
@jit
def faster_f(x):
    return x * x + x * 2.0

%timeit faster_f(x)
assert np.allclose(faster_f(x), fast_f(x))
""", None)])


def test_jaxpr():
    session, ran = play(SETUP, """
def f(x):
    y = jnp.ones((1, 5)) * x
    return y
print(f(3.0))
""", "print(jax.make_jaxpr(f)(3.0))", """
f_jit = jit(f)
print(f_jit(3.0))
""", exact=True)
    assert ran[1].output == ran[3].output == "[[3. 3. 3. 3. 3.]]\n"
    assert re.findall(r"broadcast_in_dim|convert_element_type|mul", ran[2].output)[-1] == "mul"


BRANCH = """
def f(x):
    if x > 0:
        return x
    else:
        return 2 * x
print(f(3.0))
f_jit = jit(f)
"""


def test_branch_on_a_traced_value():
    follow([(SETUP, None), (BRANCH, "3.0")])
    for call in "f_jit(3.0)", "f_jit(3)":
        ours, theirs = errors(SETUP, BRANCH, f"print({call})")
        assert isinstance(ours, TypeError)
        text = str(ours)
        assert "Attempted boolean conversion of traced array with shape bool[]" in text
        assert "While" not in text.partition("\n")[0]
        assert "tracing the function f at" in text and "for jit" in text
        assert "depends on the value of the argument x" in text
        assert "operation gt" in text and "if x > 0:" in text


def test_the_error_can_be_caught_and_printed():
    session, ran = play(SETUP)
    ran = session.run("""
@jit
def f(x):
    if x > 0:
        return x
    else:
        return 2 * x
# This will fail!
try:
    print(f(3))
except Exception as e:
    print("ERROR:", e)
    assert isinstance(e, jax.errors.ConcretizationTypeError)
""")
    assert ran.output.startswith("ERROR: ") and "argument x" in ran.output


def test_static_argument():
    follow([(SETUP, None), ("""
def f(x):
    if x > 0:
        return x
    else:
        return 2 * x
f = jit(f, static_argnums=(0,))
print(f(3))
""", "3"), ("""
@partial(jit, static_argnums=(0,))
def f(x):
    if x > 0:
        return x
    else:
        return 2 * x
print(f(3))
""", "3")])


def test_static_argument_under_vmap():
    ours, theirs = errors(SETUP, """
xs = jnp.arange(5)
@partial(jit, static_argnums=(0,))
def f(x):
    if x > 0:
        return x
    else:
        return 2 * x
""", "ys = vmap(f)(xs)")
    for error in ours, theirs:
        assert isinstance(error, ValueError)
        assert "static arguments" in str(error).lower() and "BatchTracer" in str(error)


def test_side_effects_happen_once():
    _, ran = play(SETUP, """
def f(x):
    print("x", x)
    y = 2 * x
    print("y", y)
    return y

y1 = f(2)
print("f", y1)
print("\\ncall function a second time")
y1 = f(2)
print("f", y1)
print("\\njit version follows")
g = jax.jit(f)
y2 = g(2)
print("f", y2)
print("\\ncall jitted function a second time")
y2 = g(2)
print("f", y2)
""", exact=True)
    # The document's `Traced<ShapedArray(int32[], weak_type=True)>with<…>` in the words of JAX 0.10.2.
    assert ran[1].output == """x 2
y 4
f 4

call function a second time
x 2
y 4
f 4

jit version follows
x JitTracer(~int32[])
y JitTracer(~int32[])
f 4

call jitted function a second time
f 4
"""


def test_one_program_for_each_value_of_a_static_argument():
    follow([(SETUP, None), ("""
traced = []
@partial(jit, static_argnums=1)
def power(x, n):
    traced.append(n)
    return x ** n
g = jit(lambda x: power(x, 2))
print(power(3.0, 2), power(4.0, 2), power(3.0, 3), power(5.0, 2), traced)
""", "9.0 16.0 27.0 25.0 [2, 3]")])


def test_strings_are_no_arrays():
    cells = (SETUP, """
def f(x: int, y: str):
    if y == "add":
        return x + 1
    else:
        return x - 1
print(f(42, "add"))
print(f(42, "sub"))
fj = jax.jit(f)
""")
    follow([(cells[0], None), (cells[1], "43 41")])
    ours, theirs = errors(*cells, 'print(fj(42, "add"))')
    assert isinstance(ours, TypeError)
    for error in ours, theirs:
        assert "<class 'str'>" in str(error) and "path y" in str(error)
