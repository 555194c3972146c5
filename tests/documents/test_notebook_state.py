"""The tutorial "Yet another JAX" (pyprobml, MIT licence): state, mutation of arrays, lists as arrays."""

from __future__ import annotations

from tests.documents.sessions import errors, follow
from tests.documents.test_notebook_vmap import SETUP


def test_counter_with_hidden_state_and_without():
    follow([(SETUP, None), ("""
SEQUENCE = jnp.arange(0, 100, 2)
class Counter:
    def __init__(self):
        self.n = 0
    def count(self) -> int:
        res = SEQUENCE[self.n]
        self.n += 1
        return res
    def reset(self):
        self.n = 0

counter = Counter()
for _ in range(3):
    print(counter.count())
""", "0 2 4"), ("""
counter.reset()
fast_count = jax.jit(counter.count)
for _ in range(3):
    print(fast_count())
""", "0 0 0"), ("""
CounterState = int
Result = int
class CounterV2:
    def count(self, n: CounterState) -> Tuple[Result, CounterState]:
        return SEQUENCE[n], n + 1
    def reset(self) -> CounterState:
        return 0

counter = CounterV2()
state = counter.reset()
for _ in range(3):
    value, state = counter.count(state)
    print(value)
""", "0 2 4"), ("""
state = counter.reset()
fast_count = jax.jit(counter.count)
for _ in range(3):
    value, state = fast_count(state)
    print(value)
""", "0 2 4")])


def test_arrays_cannot_be_changed():
    follow([(SETUP, None), ("""
# You cannot assign directly to elements of an array.
A = jnp.zeros((3, 3), dtype=np.float32)
# In place update of JAX's array will yield an error!
try:
    A[1, :] = 1.0
except:
    print("must use index_update")
""", "must use index_update")])
    ours, theirs = errors(SETUP, "A = jnp.zeros((3, 3))\nA[1, :] = 1.0")
    assert isinstance(ours, TypeError) and ".at[" in str(ours)


def test_updated_copies():
    """The document's `jax.ops.index_update(A, index[1, :], 42.0)` is `A.at[1, :].set(42.0)` today."""
    twos = "original array: [[2. 2. 2.] [2. 2. 2.] [2. 2. 2.]]"
    follow([(SETUP, None), ("""
D = 3
A = 2 * jnp.ones((D, D))
print("original array:")
print(A)
A3 = A.at[1, :].set(42.0)  # A3=np.copy(A), A3[1,:] = 42
print("original array:")
print(A)  # unchanged
print("new array:")
print(A3)
A4 = A.at[1, :].mul(42.0)  # A4=np.copy(A), A4[1,:] *= 42
print("original array:")
print(A)  # unchanged
print("new array:")
print(A4)
""", f"""{twos} {twos} new array: [[ 2. 2. 2.] [42. 42. 42.] [ 2. 2. 2.]]
{twos} new array: [[ 2. 2. 2.] [84. 84. 84.] [ 2. 2. 2.]]""")])


def test_lists_are_not_cast_to_arrays():
    follow([(SETUP, None), ("""
# You cannot treat a list of numbers as a vector.
try:
    S = jnp.diag([1.0, 2.0, 3.0])
except:
    print("must convert indices to np.array")
""", "must convert indices to np.array"), ("""
# Instead you should explicitly construct the vector.
S = jnp.diag(jnp.array([1.0, 2.0, 3.0]))
S
""", "DeviceArray([[1., 0., 0.], [0., 2., 0.], [0., 0., 3.]], dtype=float32)")])
    ours, theirs = errors(SETUP, "jnp.diag([1.0, 2.0, 3.0])")
    assert "list" in str(ours)
