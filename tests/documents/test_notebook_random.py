"""The tutorial "Yet another JAX" (pyprobml, MIT licence): random numbers.

Its numbers are those of the threefry generator before it was made partitionable, which is still a flag.
"""

from __future__ import annotations

import pytest

from tests.documents.sessions import follow
from tests.documents.test_notebook_vmap import SETUP

KEY = "key = random.PRNGKey(0)"

NUMPY = """
def bar():
    return np.random.uniform(size=(3))

def baz():
    return np.random.uniform(size=(3))

def foo(seed):
    np.random.seed(seed)
    return bar() + 2 * baz()

def foo1(seed):
    np.random.seed(seed)
    a = bar()
    b = 2 * baz()
    return a + b

def foo2(seed):
    np.random.seed(seed)
    a = 2 * baz()
    b = bar()
    return a + b

seed = 0
print(foo(seed))
print(foo1(seed))
print(foo2(seed))
"""

SAME_KEY = """
key = random.PRNGKey(0)
print(random.normal(key, shape=(3,)))
print(random.normal(key, shape=(3,)))  ## identical results
"""

SPLIT = """
# To make a new key, we split the current key into two pieces.
key, subkey = random.split(key)
print(random.normal(subkey, shape=(3,)))
# We can continue to split off new pieces from the global key.
key, subkey = random.split(key)
print(random.normal(subkey, shape=(3,)))
"""

ORDER = """
def bar(key):
    return jax.random.uniform(key, shape=(3,))

def baz(key):
    return jax.random.uniform(key, shape=(3,))

def foo(key):
    subkey1, subkey2 = random.split(key, num=2)
    return bar(subkey1) + 2 * baz(subkey2)

def foo1(key):
    subkey1, subkey2 = random.split(key, num=2)
    a = bar(subkey1)
    b = 2 * baz(subkey2)
    return a + b

def foo2(key):
    subkey1, subkey2 = random.split(key, num=2)
    a = 2 * baz(subkey2)
    b = bar(subkey1)
    return a + b

key = random.PRNGKey(0)
key, subkey = random.split(key)
print(foo(subkey))
print(foo1(subkey))
print(foo2(subkey))
"""

AT_ONCE = """
key = random.PRNGKey(42)
subkeys = random.split(key, 3)
sequence = np.stack([jax.random.normal(subkey) for subkey in subkeys])
print("individually:", sequence)
key = random.PRNGKey(42)
print("all at once: ", jax.random.normal(key, shape=(3,)))
"""

NUMPY_AT_ONCE = """
np.random.seed(0)
sequence = np.stack([np.random.normal() for i in range(3)])
print("individually:", sequence)
np.random.seed(0)
print("all at once: ", np.random.normal(size=(3,)))
"""


def test_as_the_document_prints(old_random_bits):
    follow([
        (SETUP, None),
        (NUMPY, "[1.639 1.562 1.895] [1.639 1.562 1.895] [1.643 1.854 1.851]"),
        (SAME_KEY, "[ 1.816 -0.483  0.34 ] [ 1.816 -0.483  0.34 ]"),
        ("random.normal(key, shape=(3,)).tolist()", None),
        (SPLIT, "[ 1.138 -1.221 -0.592] [-0.066  0.167  1.178]"),
        (ORDER, "[2.079 2.002 1.089] [2.079 2.002 1.089] [2.079 2.002 1.089]"),
        (AT_ONCE, "individually: [-0.048 0.108 -1.223] all at once: [ 0.187 -1.281 -1.559]"),
        (NUMPY_AT_ONCE, "individually: [1.764 0.4 0.979] all at once: [1.764 0.4 0.979]"),
    ])


def test_to_all_digits_in_the_comments(old_random_bits):
    follow([(SETUP + "np.set_printoptions(precision=8)" + SAME_KEY, """
[ 1.81608593 -0.48262325  0.33988902]
[ 1.81608593 -0.48262325  0.33988902]
"""), (SPLIT, """
[ 1.1378783 -1.22095478 -0.59153646]
[-0.06607265 0.16676566 1.17800343]
""")], document_rtol=2e-6)


@pytest.mark.parametrize("cell", [SAME_KEY, KEY + SPLIT, ORDER, AT_ONCE])
def test_with_the_bits_of_today(cell):
    follow([(SETUP, None), (cell, None)])


def test_uniform_bits_are_the_same():
    follow([(SETUP + KEY, None), (
        "np.asarray(random.uniform(key, (1000,))).view(np.uint32).tolist()", None), (
        "np.asarray(random.split(key, 5)).tolist()", None)])


def test_log_density_of_a_diagonal_normal(old_random_bits):
    """The example with distrax, which is not needed for it: the sample and its density are written out."""
    follow([(SETUP + """
key = jax.random.PRNGKey(1234)
mu = jnp.array([-1.0, 0.0, 1.0])
sigma = jnp.array([0.1, 0.2, 0.3])
samples = mu + sigma * jax.random.normal(key, (3,))
print(jnp.sum(-0.5 * ((samples - mu) / sigma) ** 2 - jnp.log(sigma) - 0.5 * jnp.log(2 * jnp.pi)))
""", "1.7750063")], rtol=1e-6, document_rtol=1e-6)
