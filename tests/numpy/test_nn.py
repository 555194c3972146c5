"""Activations, softmax and its relatives, attention."""

from __future__ import annotations

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
