"""The documents' code as scripts that say `import jax`, run by `python -m styrax` in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import styrax
from tests.documents.sessions import assert_prints
from tests.documents.test_faq_jit import CLASS, IMPORTS, IMPURE, LOG_EXP, LOG_SQRT
from tests.documents.test_notebook_jit import BRANCH
from tests.documents.test_notebook_vmap import CONVOLVE, SETUP


def output_of(script: str, folder: Path) -> str:
    path = folder / "script.py"
    path.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(Path(styrax.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-m", "styrax", str(path)], capture_output=True, text=True, env=env,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_faq(tmp_path):
    script = IMPORTS + IMPURE.format(jit="@jit") + LOG_SQRT + "print(f(x))\nprint(jit(f)(x))\n" + LOG_EXP + """
print(f(x))
print(jit(f)(x))
""" + CLASS.format(decorator="@partial(jit, static_argnums=0)") + """
c = CustomClass(2, True)
print(c.calc(3))

def func(x):
  print(x)
  return jnp.cos(x)

res = jax.jit(func)(0.)
print(res)

def my_log(x):
  return jnp.where(x > 0., jnp.log(x), 0.)

print(my_log(0.), jax.grad(my_log)(0.))

def f(x):
  return (x > 0).astype(float)

df = jax.vmap(jax.grad(f))
x = jnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])
print(f"df(x) = {df(x)}")

z = jax.jit(lambda x, y: x + y, donate_argnums=(1,))(x, y := x * 2)
print(z, y.is_deleted())
"""
    assert_prints(output_of(script, tmp_path), """
Inside: 0 Result: 0 Result: 1 Result: 2
0.572365 0.5723649 inf 100.0
6
JitTracer(~float32[]) 1.0
0.0 nan
df(x) = [0. 0. 0. 0. 0.]
[-3. -1.5 0. 1.5 3.] True
""")


def test_notebook(tmp_path):
    script = SETUP + 'print("jax backend {}".format(jax.lib.xla_bridge.get_backend().platform))' + CONVOLVE + """
print(repr(jax.vmap(convolve)(jnp.stack([x, x]), jnp.stack([w, w]))))
""" + BRANCH + """
try:
    f_jit(3.0)
except jax.errors.ConcretizationTypeError as error:
    print(type(error).__module__, type(error).__name__)
t1 = [1, {"k1": 2, "k2": (3, 4)}, 5]
print(jax.tree_leaves(t1), jax.tree_map(lambda x: x * x, t1))
print(jax.tree_util.tree_flatten(t1)[1])
print(jax.lax.scan(lambda c, x: (c + x, c * x), 1.0, jnp.arange(4.0))[1])
print(jnp.zeros((2, 2)).at[1, :].set(42.0))
"""
    assert_prints(output_of(script, tmp_path), """
jax backend cpu
Array([[11., 20., 29.], [11., 20., 29.]], dtype=float32)
3.0
styrax.errors TracerBoolConversionError
[1, 2, 3, 4, 5] [1, {'k1': 4, 'k2': (9, 16)}, 25]
PyTreeDef([*, {'k1': *, 'k2': (*, *)}, *])
[0. 1. 4. 12.]
[[ 0. 0.] [42. 42.]]
""")
