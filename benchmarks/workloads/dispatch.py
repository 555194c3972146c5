"""What a call costs when there is little to compute, jitted and not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, floats, one_array


@jax.jit
def increment(x):
    return x + 1


@jax.jit
def increment_tree(tree):
    return jax.tree_util.tree_map(lambda x: x + 1, tree)


@jax.jit
def batch_loss(weights, rows, labels, rate):
    return jnp.mean((rows @ weights - labels) ** 2) * rate


def numpy_batch(weights):
    """A batch as loaders give it: in NumPy arrays, with a rate that is a number."""
    size = weights.shape[0]
    return batch_loss(weights, np.ones((32, size), np.float32), np.zeros(32, np.float32), 0.1)


def eager_add(x, y):
    return x + y


def eager_index(x):
    return x[2, 1:4]


def eager_softmax(x):
    return jax.nn.softmax(x)


def eager_var(x):
    return jnp.var(x, axis=0)


def eager_shapes(arrays):
    """The same three operations at many shapes."""
    return [jnp.tanh(x) * 2 + x.sum() for x in arrays]


def numpy_shapes(arrays):
    return [np.tanh(x) * 2 + x.sum() for x in arrays]


def tree_of_arrays(shape, rng):
    return [{f"array{i:02}": x for i, x in enumerate(floats(*[(10,)] * shape[0], rng=rng))}]


def many_shapes(shape, rng):
    return [floats(*[(3 + i, 5 + i % 7) for i in range(shape[0])], rng=rng)]


JIT_SCALAR = Workload("jit dispatch, scalar", increment, lambda s, rng: [np.float32(1)], [()], block=False)
JIT_TREE = Workload("jit dispatch, tree", increment_tree, tree_of_arrays, [(100,)], block=False)
JIT_NUMPY = Workload("jit dispatch, NumPy batch", numpy_batch, one_array, [(10,)], block=False)
EAGER_ADD = Workload(
    "eager add", eager_add, lambda s, rng: floats(s, s, rng=rng), [(10,)], block=False, numpy=np.add
)
EAGER_INDEX = Workload("eager indexing", eager_index, one_array, [(10, 10)], block=False, numpy=eager_index)
EAGER_SOFTMAX = Workload("eager softmax", eager_softmax, one_array, [(100,)], block=False)
EAGER_VAR = Workload(
    "eager var", eager_var, one_array, [(20, 30)], block=False, numpy=lambda x: np.var(x, axis=0)
)
EAGER_SHAPES = Workload("eager, 50 shapes", eager_shapes, many_shapes, [(50,)], numpy=numpy_shapes)
