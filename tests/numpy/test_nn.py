"""Activations, softmax and its relatives, attention."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import styrax
from tests.numpy import oracle

TABLE = """
nn.relu(x)
nn.relu6(x)
nn.sigmoid(x)
nn.silu(x)
nn.swish(x)
nn.softplus(x)
nn.sparse_plus(x)
nn.soft_sign(x)
nn.sparse_sigmoid(x)
nn.log_sigmoid(x)
nn.elu(x)
nn.selu(x)
nn.celu(x)
nn.gelu(x)
nn.gelu(x, approximate=False)
nn.leaky_relu(x)
nn.hard_tanh(x)
nn.hard_sigmoid(x)
nn.hard_silu(x)
nn.squareplus(x)
nn.mish(x)
nn.identity(x)
nn.tanh(x)
nn.log1mexp(x)
nn.softmax(x)
nn.softmax(m, axis=0)
nn.softmax(x, where=b)
nn.log_softmax(x)
nn.log_softmax(x, where=b)
nn.logsumexp(x)
nn.logsumexp(m, axis=1, keepdims=True)
nn.logsumexp(x, b=y)
nn.logsumexp(x, return_sign=True)
nn.logsumexp(x, where=b)
nn.logsumexp(i)
nn.logmeanexp(x)
nn.one_hot(i, 4)
nn.one_hot(i, 4, axis=0)
nn.one_hot(i[0], 4)
nn.one_hot(i, 4, dtype=int)
nn.standardize(m)
nn.standardize(x)
nn.relu(i)
nn.gelu(i)
nn.relu(w)
jax.grad(lambda z:nn.relu(z).sum())(x)
jax.grad(lambda z:nn.relu6(z).sum())(x)
jax.grad(lambda z:nn.logsumexp(z))(x)
jax.grad(lambda z:nn.log1mexp(z).sum())(x)
nn.softmax(h)
nn.softmax(m, axis=(0, 1))
nn.logsumexp(c)
nn.logsumexp(c, b=c)
nn.logmeanexp(x, where=b)
nn.silu(i)
nn.softplus(i)
nn.elu(i)
nn.gelu(h)
nn.standardize(m, where=b)
nn.standardize(m, algorithm='stable')
nn.standardize(m, mean=0., variance=1.)
nn.one_hot(2, 3)
nn.leaky_relu(i)
nn.leaky_relu(x, 0.2)
nn.celu(x, 2.)
nn.squareplus(x, 1.)
nn.log_softmax(m, axis=0)
"""

# JAX composes these of other primitives.
VALUES = """
nn.glu(np.ones((2, 4), np.float32))
jax.grad(lambda z:nn.softmax(z)[0])(x)
jax.grad(lambda z:nn.softplus(z).sum())(x)
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES, rtol=1e-4, atol=1e-5)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


@pytest.mark.parametrize("arguments, message", [
    ("q, q, q, mask=jnp.ones((2, 4, 3, 3), int)", "mask dtype should be bool"),
    ("q, q[:, :, :3], q[:, :, :3]", "multiple of key/value heads, but got 4 vs 3"),
    ("q, q, q[:, :2]", "value shape should be"),
    ("q, q[:1], q[:1]", "query shape should be"),
    ("q.astype('float16'), q, q", "query dtype should be float32"),
    ("q, q, q, query_seq_lengths=jnp.ones(3, int)", "query_seq_lengths shape should be"),
    ("q, q, q, key_value_seq_lengths=jnp.ones(2)", "key_value_seq_lengths dtype should be int32"),
    ("q, q, q, query_seq_lengths=jnp.ones((2, 1), int)", "query_seq_lengths ndim should be 1, but got 2"),
])
def test_operands_of_attention_that_do_not_fit(arguments: str, message: str) -> None:
    for package in (jax, styrax):
        with pytest.raises(ValueError, match=message):
            eval(f"package.nn.dot_product_attention({arguments})",
                 {"package": package, "jnp": package.numpy, "q": package.numpy.ones((2, 3, 4, 5))})


@pytest.mark.parametrize("arguments", [
    "q, q, q, mask=m", "q, q, q, mask=m[0]", "q, q, q, bias=1.0 * m", "q, q, q, query_seq_lengths=[1, 2]",
    "q[0], q[0], q[0], bias=m + 1.0", "q[0, 0], q[0], q[0]",
])
def test_operands_of_attention_of_lower_rank(arguments: str) -> None:
    def attend(package: Any) -> Any:
        return eval(f"package.nn.dot_product_attention({arguments})", {
            "package": package, "m": package.numpy.asarray(np.tri(3, dtype=bool)),
            "q": package.numpy.asarray(np.sin(np.arange(120.0)).reshape(2, 3, 4, 5).astype(np.float32))})

    oracle.assert_same(attend(styrax), attend(jax), arguments, 2e-5, 1e-6)


@pytest.mark.parametrize("function", [
    lambda m, y: m.nn.logsumexp(y, axis="i"), lambda m, y: m.nn.logsumexp(y, axis=(0, "i"), b=y - 1),
    lambda m, y: m.nn.logmeanexp(y, axis="i"), lambda m, y: m.nn.logmeanexp(y, axis=("i", 0), where=y > 1),
])
def test_sums_of_exponentials_over_mapped_axes(function: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    ours, theirs = (m.vmap(lambda y, m=m: function(m, y), axis_name="i")(x) for m in (styrax, jax))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_what_is_refused() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for m in (styrax, jax):
        with pytest.raises(ValueError, match="Unknown algorithm 'none'"):
            m.nn.standardize(x, algorithm="none")
        with pytest.raises(ValueError, match="must be a float"):
            m.nn.initializers.he_normal()(m.random.key(0), (2, 3), int)
