"""JAX's FAQ: NaN gradients with `where`, and zero gradients of functions based on sort order."""

from __future__ import annotations

from tests.documents.sessions import follow, play
from tests.documents.test_faq_jit import IMPORTS


def test_gradients_through_where():
    follow([(IMPORTS, None), ("""
def my_log(x):
  return jnp.where(x > 0., jnp.log(x), 0.)
print(my_log(0.))  # Ok
print(jax.grad(my_log)(0.))
""", "0.0 nan"), ("""
def safe_for_grad_log(x):
  return jnp.log(jnp.where(x > 0., x, 1.))
print(safe_for_grad_log(0.))  # Ok
print(jax.grad(safe_for_grad_log)(0.))  # Ok
""", "0.0 0.0"), ("""
def my_log_or_y(x, y):
  \"\"\"Return log(x) if x > 0 or y\"\"\"
  return jnp.where(x > 0., jnp.log(jnp.where(x > 0., x, 1.)), y)
print(my_log_or_y(0., 3.), my_log_or_y(2., 3.))
print(*jax.grad(my_log_or_y, (0, 1))(0., 3.), *jax.grad(my_log_or_y, (0, 1))(2., 3.))
""", "3.0 0.6931472 0.0 1.0 0.5 0.0"), ("""
print(jit(jax.grad(my_log))(0.), jit(jax.grad(safe_for_grad_log))(0.))
print(jax.vmap(jax.grad(my_log))(jnp.array([-1., 0., 2.])))
print(jax.vmap(jax.grad(safe_for_grad_log))(jnp.array([-1., 0., 2.])))
print(jax.jvp(my_log, (0.,), (1.,)), jax.jvp(safe_for_grad_log, (0.,), (1.,)))
""", None)])


def test_step_function():
    _, ran = play("""
import jax
import numpy as np
import jax.numpy as jnp

def f(x):
  return (x > 0).astype(float)

df = jax.vmap(jax.grad(f))

x = jnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])

print(f"f(x)  = {f(x)}")
print(f"df(x) = {df(x)}")
""", exact=True)
    assert ran[0].output == "f(x)  = [0. 0. 0. 1. 1.]\ndf(x) = [0. 0. 0. 0. 0.]\n"


def test_sigmoid_in_its_place():
    _, ran = play("""
import jax
import numpy as np
import jax.numpy as jnp

def g(x):
  return jax.nn.sigmoid(x)

dg = jax.vmap(jax.grad(g))

x = jnp.array([-10.0, -1.0, 0.0, 1.0, 10.0])

with np.printoptions(suppress=True, precision=2):
  print(f"g(x)  = {g(x)}")
  print(f"dg(x) = {dg(x)}")
""", exact=True)
    assert ran[0].output == "g(x)  = [0.   0.27 0.5  0.73 1.  ]\ndg(x) = [0.   0.2  0.25 0.2  0.  ]\n"


def test_other_functions_of_order_and_their_smooth_kin():
    follow([(IMPORTS + "x = jnp.array([-3.0, -1.0, 0.0, 1.0, 3.0])", None), ("""
for f in jnp.argmax, jnp.sign, jax.nn.relu, jnp.argsort:
  print(f(x))
for f in jax.nn.softmax, jax.nn.soft_sign, jax.nn.softplus, jax.nn.squareplus:
  print(f(x))
""", None), ("""
for f in jnp.sign, jax.nn.relu, jax.nn.soft_sign, jax.nn.softplus, jax.nn.squareplus:
  print(jax.vmap(jax.grad(f))(x))
print(jax.jacobian(jax.nn.softmax)(x))
print(jax.grad(lambda x: x[jnp.argmax(x)])(x), jax.grad(jnp.max)(x))
print(jax.grad(lambda x: jnp.sort(x)[0])(x), jax.jacobian(lambda x: jnp.argsort(x).astype(float))(x))
""", None)], rtol=1e-5)
