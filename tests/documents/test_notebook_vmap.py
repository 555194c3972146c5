"""The tutorial "Yet another JAX" (pyprobml, MIT licence): setup, devices and `vmap`."""

from __future__ import annotations

import numpy as np

from tests.documents.sessions import OURS, Session, assert_prints, close, errors, follow

SETUP = """
from functools import partial
import os
import time
import numpy as np
np.set_printoptions(precision=3)
from typing import Tuple, NamedTuple
import jax
import jax.numpy as jnp
from jax import random, vmap, jit, grad, value_and_grad, hessian, jacfwd, jacrev

"""


def test_setup_names_the_backend():
    session = Session(OURS)
    ran = session.run(SETUP + """
print("jax version {}".format(jax.__version__))
# Check the jax backend
print("jax backend {}".format(jax.default_backend()))
""")
    version, backend = ran.output.splitlines()
    assert version.startswith("jax version ") and backend == "jax backend cpu"
    assert_prints(session.run("jax.local_devices()").text, "[CpuDevice(id=0)]")


def test_matrix_product_on_the_cpu():
    _, ran = follow([(SETUP + """
size = int(1e2)
def f(x=None):
    if not isinstance(x, np.ndarray):
        x = np.ones((size, size), dtype=np.float32)
    return np.dot(x, x.T)
%timeit f()
""", None), ("""
def jf(x=None):
    if not isinstance(x, jnp.ndarray):
        x = jnp.ones((size, size), dtype=jnp.float32)
    return jnp.dot(x, x.T)
f_cpu = jit(jf, backend="cpu")
%timeit f_cpu()
%timeit f_cpu().block_until_ready()
print(np.allclose(f(), f_cpu()))
""", "True"), ("""
from jax import device_put
x = np.ones((size, size)).astype(np.float32)
print(type(x))
y = f(x)
x = device_put(x)
print(isinstance(x, jax.Array))
print(np.allclose(jf(x), y))
""", "<class 'numpy.ndarray'> True True")])


CONVOLVE = """
x = jnp.arange(5)
w = jnp.array([2.0, 3.0, 4.0])

def convolve(x, w):
    output = []
    for i in range(1, len(x) - 1):
        output.append(jnp.dot(x[i - 1 : i + 2], w))
    return jnp.array(output)

convolve(x, w)
"""


def test_convolution_by_hand_and_by_vmap():
    follow([
        (SETUP, None),
        (CONVOLVE, "DeviceArray([11., 20., 29.], dtype=float32)"),
        ("""
xs = jnp.stack([x, x])
ws = jnp.stack([w, w])

def manually_batched_convolve(xs, ws):
    output = []
    for i in range(xs.shape[0]):
        output.append(convolve(xs[i], ws[i]))
    return jnp.stack(output)

manually_batched_convolve(xs, ws)
""", "DeviceArray([[11., 20., 29.], [11., 20., 29.]], dtype=float32)"),
        ("""
def manually_vectorised_convolve(xs, ws):
    output = []
    for i in range(1, xs.shape[-1] - 1):
        output.append(jnp.sum(xs[:, i - 1 : i + 2] * ws, axis=1))
    return jnp.stack(output, axis=1)

manually_vectorised_convolve(xs, ws)
""", "DeviceArray([[11., 20., 29.], [11., 20., 29.]], dtype=float32)"),
        ("""
auto_batch_convolve = jax.vmap(convolve)
auto_batch_convolve(xs, ws)
""", "DeviceArray([[11., 20., 29.], [11., 20., 29.]], dtype=float32)"),
        ("jax.vmap(convolve, in_axes=[0, None])(xs, w)",
         "DeviceArray([[11., 20., 29.], [11., 20., 29.]], dtype=float32)"),
        ("""
print(xs.shape)
xst = jnp.transpose(xs)
print(xst.shape)
wst = jnp.transpose(ws)
auto_batch_convolve_v2 = jax.vmap(convolve, in_axes=1, out_axes=1)
auto_batch_convolve_v2(xst, wst)
""", "(2, 5) (5, 2) DeviceArray([[11., 11.], [20., 20.], [29., 29.]], dtype=float32)"),
    ])


LOGISTIC = """
np.random.seed(0)
D = 2
N = 3
w = np.random.normal(size=(D,))
X = np.random.normal(size=(N, D))

def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2.0) + 1)

def predict_single(x):
    return sigmoid(jnp.dot(w, x))  # <(D) , (D)> = (1) # inner product
"""


def test_logistic_regression_of_one_example_and_of_a_batch():
    session, _ = follow([
        (SETUP + LOGISTIC, None),
        ("print(predict_single(X[0, :]))  # works", None),
        ("""
def predict_batch(X):
    return sigmoid(jnp.dot(X, w))  # (N,D) * (D,1) = (N,1) # matrix-vector multiply

print(predict_batch(X))
""", None),
        ("print(vmap(predict_single)(X))", None),
    ])
    w, x = session["w"], session["X"]
    close(session.run("vmap(predict_single)(X)").value, 1 / (1 + np.exp(-x @ w)))


def test_shapes_that_do_not_fit():
    ours, theirs = errors(SETUP, LOGISTIC, "print(predict_single(X))  # fails")
    assert isinstance(ours, TypeError)
    assert "(2,)" in str(ours) and "(3, 2)" in str(ours)


EXAMPLE = """
def example_fun(length, val=4):
    return jnp.sum(jnp.ones((length,)) * val)

xs = jnp.arange(1, 10)
"""


def test_python_map_where_shapes_differ():
    follow([(SETUP + EXAMPLE + """
# Python map works fine
v = list(map(example_fun, xs))
print(v)
""", "[" + ", ".join(f"DeviceArray({4 * n}., dtype=float32)" for n in range(1, 10)) + "]")])


def test_vmap_refuses_a_shape_that_depends_on_a_value():
    ours, theirs = errors(SETUP, EXAMPLE, "v = vmap(example_fun)(xs)\nprint(v)")
    for error in ours, theirs:
        assert "Shapes must be 1D sequences of concrete values of integer type" in str(error)
