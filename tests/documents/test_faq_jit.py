"""JAX's FAQ: `jit` and side effects, numerics, slow compiles, methods, microbenchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.documents.sessions import OURS, Session, assert_prints, close, errors, follow, play

IMPORTS = """
from functools import partial
import numpy as np
import jax
import jax.numpy as jnp
from jax import jit
"""

IMPURE = """
y = 0

{jit}  # Different behavior with jit
def impure_func(x):
  print("Inside:", y)
  return x + y

for y in range(3):
  print("Result:", impure_func(y))
"""


def test_side_effects_without_and_with_jit():
    _, ran = play(IMPORTS, IMPURE.format(jit=""), IMPURE.format(jit="@jit"), exact=True)
    assert ran[1].output == "Inside: 0\nResult: 0\nInside: 1\nResult: 2\nInside: 2\nResult: 4\n"
    assert ran[2].output == "Inside: 0\nResult: 0\nResult: 1\nResult: 2\n"


LOG_SQRT = """
from jax import jit
import jax.numpy as jnp
def f(x):
  return jnp.log(jnp.sqrt(x))
x = jnp.pi
"""

LOG_EXP = """
from jax import jit
import jax.numpy as jnp
def f(x):
  return jnp.log(jnp.exp(x))
x = 100.0
"""


def test_logarithms_without_jit():
    _, ran = play(LOG_SQRT, "print(f(x))", LOG_EXP, "print(f(x))", exact=True)
    assert ran[1].output == "0.572365\n"
    assert ran[3].output == "inf\n"


def test_logarithm_of_a_root_under_jit():
    _, ran = play(LOG_SQRT, "print(jit(f)(x))", exact=True)
    assert ran[1].output == "0.5723649\n"


def test_logarithm_of_an_exponential_under_jit():
    _, ran = play(LOG_EXP, "print(jit(f)(x))", exact=True)
    assert ran[1].output == "100.0\n"


def test_sum_and_difference():
    """The document of 2022 has 0.001 under `jit`; JAX 0.10.2 rounds there as it does without."""
    play(IMPORTS, """
def f(x, y):
  return x + y - x
x = jnp.array(1.0)
y = jnp.array(0.001)
print(f(x, y))
""", "print(jit(f)(x, y))", exact=True)


@pytest.mark.parametrize("numerics, printed", [
    ("strict", "0.572365 inf 0.0010000467"),
    ("default", "0.5723649 100.0 0.0010000467"),
    ("fast", "0.5723649 100.0 0.001"),
])
def test_numerics_of_jit_are_a_setting(numerics, printed):
    """What `jit` may rewrite: nothing, what JAX 0.10.2 does, or what the document of 2022 shows as well."""
    ran = Session(OURS).run(IMPORTS + f"""
jax.config.update("styrax_numerics", "{numerics}")
try:
  x, y = jnp.array(1.0), jnp.array(0.001)
  print(jit(lambda x: jnp.log(jnp.sqrt(x)))(jnp.pi))
  print(jit(lambda x: jnp.log(jnp.exp(x)))(100.0))
  print(jit(lambda x, y: x + y - x)(x, y))
finally:
  jax.config.update("styrax_numerics", "default")
""")
    assert ran.output.split() == printed.split()


def test_long_programs_and_their_remedies():
    """Unrolled loops run; `fori_loop` and `scan` say the same in a few lines; `where` masks padded arrays."""
    session, ran = play(IMPORTS + "from jax import lax", """
def unrolled(x):
  for i in range(300):
    x = jnp.sin(x) * 1.01 + i * 0.001
  return x
def looped(x):
  return lax.fori_loop(0, 300, lambda i, x: jnp.sin(x) * 1.01 + i * 0.001, x)
def scanned(x):
  return lax.scan(lambda x, i: (jnp.sin(x) * 1.01 + i * 0.001, None), x, jnp.arange(300))[0]
print(len(str(jax.make_jaxpr(unrolled)(0.5)).splitlines()) > 900)
print(len(str(jax.make_jaxpr(looped)(0.5)).splitlines()) < 40)
print(len(str(jax.make_jaxpr(scanned)(0.5)).splitlines()) < 40)
""", "print(jax.make_jaxpr(looped)(0.5))", """
jitted = jit(lambda x: jnp.sin(x) * 1.01)
def outside(x):
  for i in range(300):
    x = jitted(x) + i * 0.001
  return x
""")
    assert ran[1].output == "True\nTrue\nTrue\n"
    values = [float(session.run(f"{call}(0.5)").value) for call in
              ("jit(unrolled)", "jit(looped)", "jit(scanned)", "outside")]
    close(values, values[0], rtol=1e-4)
    follow([(IMPORTS, None), ("""
@jit
def mean_of_first(padded, n):
  return jnp.sum(jnp.where(jnp.arange(padded.size) < n, padded, 0.)) / n
print([mean_of_first(jnp.arange(8.), n) for n in (1, 4, 8)])
""", "[DeviceArray(0., dtype=float32), DeviceArray(1.5, dtype=float32), DeviceArray(3.5, dtype=float32)]")])


CLASS = """
class CustomClass:
  def __init__(self, x: jnp.ndarray, mul: bool):
    self.x = x
    self.mul = mul

  {decorator}
  def calc(self, y):
    if self.mul:
      return self.x * y
    return y
"""


def test_method_with_an_object_that_is_no_array():
    ours, theirs = errors(IMPORTS, CLASS.format(decorator="@jit  # <---- How to do this correctly?"),
                          "c = CustomClass(2, True)\nc.calc(3)")
    assert isinstance(ours, TypeError)
    for error in ours, theirs:
        assert "CustomClass" in str(error) and "path self" in str(error) and "static_argnums" in str(error)


def test_method_strategy_1_a_helper_function():
    follow([(IMPORTS, None), ("""
class CustomClass:
  def __init__(self, x: jnp.ndarray, mul: bool):
    self.x = x
    self.mul = mul

  def calc(self, y):
    return _calc(self.mul, self.x, y)

@partial(jit, static_argnums=0)
def _calc(mul, x, y):
  if mul:
    return x * y
  return y
""", None), ("c = CustomClass(2, True)\nprint(c.calc(3))", "6")])


def test_method_strategy_2_a_static_object_that_is_changed():
    follow([(IMPORTS, None), (CLASS.format(decorator="@partial(jit, static_argnums=0)"), None),
            ("c = CustomClass(2, True)\nprint(c.calc(3))", "6"),
            ("c.mul = False\nprint(c.calc(3))  # Should print 3", "6")])


def test_method_strategy_2_with_hash_and_equality():
    follow([(IMPORTS, None), (CLASS.format(decorator="@partial(jit, static_argnums=0)") + """
  def __hash__(self):
    return hash((self.x, self.mul))

  def __eq__(self, other):
    return (isinstance(other, CustomClass) and
            (self.x, self.mul) == (other.x, other.mul))
""", None), ("c = CustomClass(2, True)\nprint(c.calc(3))", "6"),
        ("print(CustomClass(2, True).calc(4), CustomClass(2, False).calc(3), CustomClass(5, True).calc(3))", "8 3 15")])


def test_method_strategy_3_a_pytree():
    follow([(IMPORTS, None), (CLASS.format(decorator="@jit") + """
  def _tree_flatten(self):
    children = (self.x,)  # arrays / dynamic values
    aux_data = {'mul': self.mul}  # static values
    return (children, aux_data)

  @classmethod
  def _tree_unflatten(cls, aux_data, children):
    return cls(*children, **aux_data)

from jax import tree_util
tree_util.register_pytree_node(CustomClass,
                               CustomClass._tree_flatten,
                               CustomClass._tree_unflatten)
""", None), ("c = CustomClass(2, True)\nprint(c.calc(3))", "6"),
        ("c.mul = False  # mutation is detected\nprint(c.calc(3))", "3"),
        ("c = CustomClass(jnp.array(2), True)  # non-hashable x is supported\nprint(c.calc(3))", "6")])


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_microbenchmark(size):
    session = Session(OURS)
    ran = session.run(f"""
import numpy as np
import jax.numpy as jnp
import jax

def f(x):  # function we're benchmarking (works in both NumPy & JAX)
  return x.T @ (x - x.mean(axis=0))

x_np = np.ones(({size}, {size}), dtype=np.float32)  # same as JAX default dtype
%timeit f(x_np)  # measure NumPy runtime

%time x_jax = jax.device_put(x_np)  # measure JAX device transfer time
f_jit = jax.jit(f)
%time f_jit(x_jax).block_until_ready()  # measure JAX compilation time
%timeit f_jit(x_jax).block_until_ready()  # measure JAX runtime
print(f_jit(x_jax).dtype, f_jit(x_jax).shape)
""")
    assert_prints(ran.output, f"float32 ({size}, {size})")
    close(session.run("f_jit(x_jax)").value, session.run("f(x_np)").value, atol=1e-4 * size)
    x = np.random.RandomState(0).randn(size, size).astype(np.float32)
    session.names["x"] = x
    close(session.run("f_jit(x)").value, x.astype(float).T @ (x - x.astype(float).mean(axis=0)), rtol=1e-4, atol=1e-3)
