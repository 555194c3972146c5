"""The tutorial "Yet another JAX" (pyprobml, MIT licence): pytrees, linear regression, a small network."""

from __future__ import annotations

import numpy as np

from tests.documents.sessions import follow, play
from tests.documents.test_notebook_vmap import SETUP

# The document's `jax.tree_map` and `jax.tree_leaves` left JAX in 2024; today's spelling is in `jax.tree_util`.
TREES = """
from jax import tree_util
tree_map, tree_leaves = tree_util.tree_map, tree_util.tree_leaves
"""


def test_leaves():
    follow([(SETUP + TREES, None), ("""
# a simple pytree
t1 = [1, {"k1": 2, "k2": (3, 4)}, 5]
print("tree", t1)
leaves = tree_leaves(t1)
print("num leaves", len(leaves))
print(leaves)
t4 = [jnp.array([1, 2, 3]), "foo"]
print("tree", t4)
leaves = tree_leaves(t4)
print("num leaves", len(leaves))
print(leaves)
""", """tree [1, {'k1': 2, 'k2': (3, 4)}, 5] num leaves 5 [1, 2, 3, 4, 5]
tree [DeviceArray([1, 2, 3], dtype=int32), 'foo'] num leaves 2 [DeviceArray([1, 2, 3], dtype=int32), 'foo']""")])


def test_map():
    follow([(SETUP + TREES, None), ("""
t1 = [1, {"k1": 2, "k2": (3, 4)}, 5]
print(t1)
t2 = tree_util.tree_map(lambda x: x * x, t1)
print("square each element", t2)
t3 = tree_util.tree_map(lambda x, y: x + y, t1, t2)
print("t1+t2", t3)
""", """[1, {'k1': 2, 'k2': (3, 4)}, 5] square each element [1, {'k1': 4, 'k2': (9, 16)}, 25]
t1+t2 [2, {'k1': 6, 'k2': (12, 20)}, 30]"""), ("""
data = [dict(t=1, obs="a", val=-1), dict(t=2, obs="b", val=-2), dict(t=3, obs="c", val=-3)]
data2 = tree_map(lambda d0, d1, d2: list((d0, d1, d2)), data[0], data[1], data[2])
print(data2)
def join_trees(list_of_trees):
    d = tree_map(lambda *xs: list(xs), *list_of_trees)
    return d
print(join_trees(data))
""", """{'obs': ['a', 'b', 'c'], 't': [1, 2, 3], 'val': [-1, -2, -3]}
{'obs': ['a', 'b', 'c'], 't': [1, 2, 3], 'val': [-1, -2, -3]}""")])


def test_flatten_and_unflatten():
    follow([(SETUP + TREES, None), ("""
t1 = [1, {"k1": 2, "k2": (3, 4)}, 5]
print(t1)
leaves, treedef = jax.tree_util.tree_flatten(t1)
print(leaves)
print(treedef)
t2 = jax.tree_util.tree_unflatten(treedef, leaves)
print(t2)
""", """[1, {'k1': 2, 'k2': (3, 4)}, 5] [1, 2, 3, 4, 5]
PyTreeDef([*, {'k1': *, 'k2': (*, *)}, *]) [1, {'k1': 2, 'k2': (3, 4)}, 5]""")])


MODEL = """
# Create the predict function from a set of parameters
def make_predict_pytree(params):
    def predict(x):
        return jnp.dot(params["W"], x) + params["b"]
    return predict

# Create the loss from the data points set
def make_mse_pytree(x_batched, y_batched):  # returns fn(params)->real
    def mse(params):
        # Define the squared loss for a single pair (x,y)
        def squared_error(x, y):
            y_pred = make_predict_pytree(params)(x)
            return jnp.inner(y - y_pred, y - y_pred) / 2.0
        # We vectorize the previous to compute the average of the loss on all samples.
        return jnp.mean(jax.vmap(squared_error)(x_batched, y_batched), axis=0)
    return jax.jit(mse)  # And finally we jit the result.
"""

DATA = """
# Set problem dimensions
N = 20
xdim = 10
ydim = 5
# Generate random ground truth W and b
key = random.PRNGKey(0)
Wtrue = random.normal(key, (ydim, xdim))
btrue = random.normal(key, (ydim,))
params_true = {"W": Wtrue, "b": btrue}
true_predict_fun = make_predict_pytree(params_true)
# Generate data with additional observation noise
X = random.normal(key, (N, xdim))
Ytrue = jax.vmap(true_predict_fun)(X)
Y = Ytrue + 0.1 * random.normal(key, (N, ydim))
# Generate MSE for our samples
mse_fun = make_mse_pytree(X, Y)
"""

START = """
# Initialize estimated W and b with zeros.
params = {"W": jnp.zeros_like(Wtrue), "b": jnp.zeros_like(btrue)}
mse_pytree = make_mse_pytree(X, Y)
print(mse_pytree(params_true))
print(mse_pytree(params))
print(jax.grad(mse_pytree)(params))
"""

STEPS = """
alpha = 0.3  # Gradient step size
print('Loss for "true" W,b: ', mse_pytree(params_true))
for i in range(101):
    gradients = jax.grad(mse_pytree)(params)
    params = tree_map(lambda old, grad: old - alpha * grad, params, gradients)
    if i % 10 == 0:
        print("Loss step {}: ".format(i), mse_pytree(params))
"""


def test_linear_regression(old_random_bits):
    follow([
        (SETUP + TREES, None), (MODEL, None), (DATA, None),
        (START, """0.022292053 24.97824
{'W': DeviceArray([[-0.039, 0.755, 0.542, 0.36 , 0.224, 1.651, 1.534, -1.342, -0.15 , -1.638],
 [-0.324, 0.141, -0.402, 0.498, 1.829, 4.308, 2.138, -2.43 , -0.381, -2.178],
 [ 1.7 , -0.707, -0.656, -0.568, 1.824, -2.194, -0.477, 0.96 , 1.622, 1.408],
 [-0.862, 0.321, -0.388, -0.74 , -0.82 , 0.441, 0.772, -1.713, -1.592, -0.557],
 [ 1.338, -0.632, -0.968, -1.127, 1.775, 0.323, 1.405, -0.638, 1.077, -0.739]], dtype=float32),
 'b': DeviceArray([ 0.036, 1.092, -0.413, -1.389, -0.862], dtype=float32)}"""),
        (STEPS, """Loss for "true" W,b: 0.022292053 Loss step 0: 6.5597453 Loss step 10: 0.17232798
Loss step 20: 0.04339735 Loss step 30: 0.024473602 Loss step 40: 0.017078908 Loss step 50: 0.013489487
Loss step 60: 0.011695375 Loss step 70: 0.010795272 Loss step 80: 0.010343453 Loss step 90: 0.01011666
Loss step 100: 0.010002809"""),
        ("print(tree_map(lambda x, y: np.allclose(x, y, atol=1e-1), params, params_true))", "{'W': True, 'b': True}"),
    ], rtol=1e-5, document_rtol=1e-5)


def test_linear_regression_with_separate_arguments(old_random_bits):
    """What the document only sketches, with the model's loss as a function of two arguments."""
    follow([(SETUP + TREES + MODEL + DATA, None), ("""
mse = lambda W, b: mse_fun({"W": W, "b": b})
What, bhat = jnp.zeros_like(Wtrue), jnp.zeros_like(btrue)
alpha = 0.3
for i in range(21):
    grad_W = jax.grad(mse, 0)(What, bhat)
    grad_b = jax.grad(mse, 1)(What, bhat)
    What = What - alpha * grad_W
    bhat = bhat - alpha * grad_b
    if (i % 10 == 0):
        print("Loss step {}: ".format(i), mse(What, bhat))
""", "Loss step 0: 6.5597453 Loss step 10: 0.17232798 Loss step 20: 0.04339735")], rtol=1e-5, document_rtol=1e-5)


def test_network():
    session, ran = play(SETUP + TREES, """
# define the model
def init_mlp_params(layer_widths):
    params = []
    for n_in, n_out in zip(layer_widths[:-1], layer_widths[1:]):
        params.append(
            dict(weights=np.random.normal(size=(n_in, n_out)) * np.sqrt(2 / n_in), biases=np.ones(shape=(n_out,))))
    return params

def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["weights"] + layer["biases"])
    return x @ last["weights"] + last["biases"]

def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)
""", """
# MLP with 2 hidden layers and linear output
np.random.seed(0)
params = init_mlp_params([1, 128, 128, 1])
tree_map(lambda x: x.shape, params)
""", """
LEARNING_RATE = 0.0001
@jax.jit
def update(params, x, y):
    grads = jax.grad(loss_fn)(params, x, y)
    return tree_map(lambda p, g: p - LEARNING_RATE * g, params, grads)

np.random.seed(0)
xs = np.random.normal(size=(200, 1))
ys = xs**2
for _ in range(100):
    params = update(params, xs, ys)
print(loss_fn(params, xs, ys))
""", rtol=1e-3)
    assert ran[2].value == [{"biases": (128,), "weights": (1, 128)}, {"biases": (128,), "weights": (128, 128)},
                            {"biases": (1,), "weights": (128, 1)}]
    assert session.run("loss_fn(params, xs, ys)").value < np.var(session["ys"])
