"""The tutorial "Yet another JAX" (pyprobml, MIT licence): `fori_loop`, `while_loop`, `scan`."""

from __future__ import annotations

from tests.documents.sessions import follow
from tests.documents.test_notebook_vmap import SETUP

EXACT = """
# sum from 1 to N = N*(N+1)/2
def sum_exact(N):
    return int(N * (N + 1) / 2)
"""


def test_fori_loop():
    follow([(SETUP + EXACT, None), ("""
def sum_slow(N):
    s = 0
    for i in range(1, N + 1):
        s += i
    return s
N = 10
assert sum_slow(N) == sum_exact(N)

def sum_fast(N):
    s = jax.lax.fori_loop(1, N + 1, lambda i, partial_sum: i + partial_sum, 0)
    return s
assert sum_fast(N) == sum_exact(N)
sum_fast(N)
""", "DeviceArray(55, dtype=int32, weak_type=True)"), ("""
N = 1000
%timeit sum_slow(N)
%timeit sum_fast(N)
print(sum_fast(N))
""", "500500")])


def test_fori_loop_with_a_product_in_each_step():
    follow([(SETUP + "key = random.PRNGKey(0)", None), ("""
# Let's do more compute per step of the for loop
D = 10
X = jax.random.normal(key, shape=(D, D))
def sum_slow(N):
    s = jnp.zeros_like(X)
    for i in range(1, N + 1):
        s += jnp.dot(X, X)
    return s
def sum_fast(N):
    s = jnp.zeros_like(X)
    s = jax.lax.fori_loop(1, N + 1, lambda i, s: s + jnp.dot(X, X), s)
    return s
N = 10
assert np.allclose(sum_fast(N), sum_slow(N))
print(sum_fast(N)[0])
""", None), ("""
N = 1000
%timeit sum_fast(N)
print(sum_fast(N)[0])
""", None)], rtol=1e-4)


def test_while_loop():
    follow([(SETUP + EXACT, None), ("""
def sum_slow_while(N):
    s = 0
    i = 0
    while i <= N:
        s += i
        i += 1
    return s

def sum_fast_while(N):
    init_val = (0, 0)
    def cond_fun(val):
        s, i = val
        return i <= N
    def body_fun(val):
        s, i = val
        s += i
        i += 1
        return (s, i)
    val = jax.lax.while_loop(cond_fun, body_fun, init_val)
    s2 = val[0]
    return s2
N = 10
assert sum_slow_while(N) == sum_exact(N)
assert sum_slow_while(N) == sum_fast_while(N)
sum_fast_while(N)
""", "DeviceArray(55, dtype=int32, weak_type=True)"), ("""
N = 1000
%timeit sum_slow_while(N)
%timeit sum_fast_while(N)
print(sum_fast_while(N))
""", "500500")])


SEMANTICS = """
def fori_loop(lower, upper, body_fun, init_val):
    val = init_val
    for i in range(lower, upper):
        val = body_fun(i, val)
    return val

def while_loop(cond_fun, body_fun, init_val):
    val = init_val
    while cond_fun(val):
        val = body_fun(val)
    return val

def scan(f, init, xs, length=None):
    if xs is None:
        xs = [None] * length
    carry = init
    ys = []
    for x in xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, np.stack(ys)
"""


def test_the_loops_mean_what_the_document_defines():
    follow([(SETUP + SEMANTICS, None), ("""
body = lambda i, x: x * 0.5 + i
print(fori_loop(2, 7, body, 1.0), jax.lax.fori_loop(2, 7, body, 1.0))
""", None), ("""
big, half = lambda x: x > 1, lambda x: x / 2
print(while_loop(big, half, 100.0), jax.lax.while_loop(big, half, 100.0))
""", "0.78125 0.78125"), ("""
step = lambda c, x: (c + x, c * x)
print(scan(step, 1.0, np.arange(4.0)))
print(jax.lax.scan(step, 1.0, jnp.arange(4.0)))
print(jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length=3))
""", None)])


def test_sampling_a_markov_chain(old_random_bits):
    cells = [(SETUP, None), ("""
init_dist = jnp.array([0.8, 0.2])
trans_mat = jnp.array([[0.9, 0.1], [0.5, 0.5]])
rng_key = jax.random.PRNGKey(0)
from jax.scipy.special import logit
seq_len = 15
initial_state = jax.random.categorical(rng_key, logits=logit(init_dist), shape=(1,))

def draw_state(prev_state, key):
    logits = logit(trans_mat[:, prev_state])
    state = jax.random.categorical(key, logits=logits.flatten(), shape=(1,))
    return state, state

rng_key, rng_state, rng_obs = jax.random.split(rng_key, 3)
keys = jax.random.split(rng_state, seq_len - 1)
final_state, states = jax.lax.scan(draw_state, initial_state, keys)
print(states)
""", "[[0] [0] [0] [0] [0] [0] [0] [1] [1] [1] [1] [1] [1] [1]]")]
    follow(cells)
