"""Loops that are run element by element: the same values as JAX's, in one nest; and those that must not be."""

import zlib

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile.ir.loopir import Loop, While, statements

rng: np.random.Generator  # of the test that runs
DTYPES = ["float32", "int32", "int8", "uint8", "bool", "complex64", "int4", "float8_e4m3fn"]


@pytest.fixture(autouse=True)
def seeded(request):
    """A test's data do not depend on which tests ran before it."""
    global rng
    rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))


def values(shape, dtype):
    x = rng.integers(0, 5, shape) if dtype in ("int4", "uint8", "bool") else rng.normal(size=shape) * 2
    return real.numpy.asarray(x).astype(dtype)


def nests(f, *args):
    """How many loops over elements with turns inside a program has, and how many loops with elements inside."""
    compiled = styrax.jit(f).lower(*args).compile()
    outside = inside = 0
    for s in statements(compiled.runtime_executable().program.statements):
        if isinstance(s, Loop) and s.kind == "vector":
            outside += any(isinstance(x, (Loop, While)) for x in s.body)
        elif isinstance(s, (Loop, While)) and (isinstance(s, While) or s.kind == "serial"):
            inside += any(isinstance(x, Loop) and x.kind == "vector" for x in statements(s.bodies()[-1]))
    return outside, inside


def check(make, *args, by_element=True, rtol=1e-5):
    """`make(library)` gives a function; the results under both are compared."""
    ours, theirs = make(styrax), make(real)
    given = real.tree.map(lambda x: styrax.numpy.asarray(np.asarray(x)), args)
    got, want = styrax.jit(ours)(*given), real.jit(theirs)(*args)
    for x, y in zip(styrax.tree.leaves(got), real.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        wide = np.complex128 if y.dtype == np.complex64 else np.float64
        np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), rtol=rtol, atol=1e-5)
    assert nests(ours, *given) == ((1, 0) if by_element else (0, 1))


@pytest.mark.parametrize("shape", [(2,), (7,), (16,), (65,), (1000,), (3, 5), (1, 7), (4, 1, 33)])
def test_shapes(shape):
    def make(j):
        def f(x, y):
            return j.lax.fori_loop(
                0, 9, lambda i, c: (c[0] * 0.5 + j.numpy.sin(c[1] + i), c[1] * 0.5 - 0.1 * y * c[0]), (x, y))

        return f

    check(make, values(shape, "float32"), values(shape, "float32"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    def make(j):
        def step(c, k):
            x, y = c
            return ((x | y, x ^ k) if dtype == "bool" else (x + y, y * k - x)), None

        return lambda x, y, k: j.lax.scan(step, (x, y), k)[0]

    check(make, values((37,), dtype), values((37,), dtype), values((4,), dtype), rtol=2e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats_round_after_each_operation(dtype):
    def f(x, y, k):
        return styrax.lax.scan(lambda c, k: ((c[0] + c[1], c[1] * k - c[0]), None), (x, y), k)[0]

    x, y, k = (np.asarray(values((n,), dtype)) for n in (37, 37, 4))
    got = styrax.jit(f)(x, y, k)
    assert nests(f, x, y, k) == (1, 0)
    for factor in k:  # NumPy computes one operation at a time
        x, y = x + y, y * factor - x
    np.testing.assert_array_equal(got[0], x)
    np.testing.assert_array_equal(got[1], y)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_in_and_out(reverse):
    def make(j):
        return lambda c, xs, w: j.lax.scan(lambda c, x: (c * w + x[0] * x[1], j.numpy.tanh(c)), c, xs, reverse=reverse)

    check(make, values((20,), "float32"), (values((12, 20), "float32"), values((12,), "float32")),
          values((20,), "float32"))


@pytest.mark.parametrize("turns", [1, 6, 70])
def test_rows_of_any_length(turns):
    """A turn strides over pages: still less memory passes by than turn by turn."""
    def make(j):
        return lambda c, xs: j.lax.scan(lambda c, x: (c * 0.5 + x, c), c, xs)

    check(make, values((5000,), "float32"), values((turns, 5000), "float32"))


def test_gradient():
    def make(j):
        return j.grad(lambda x: j.lax.fori_loop(0, 5, lambda i, c: j.numpy.sin(c) * x, x).sum())

    ours, theirs = make(styrax), make(real)
    x = values((33,), "float32")
    np.testing.assert_allclose(styrax.jit(ours)(np.asarray(x)), real.jit(theirs)(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 5, 16, 40, 1000])
def test_batched_while(count):
    """Each element has its own number of turns, none among them."""
    def make(j):
        def one(x):
            return j.lax.while_loop(lambda c: (c[1] < 60) & (j.numpy.abs(c[0].real) > 1),
                                    lambda c: (c[0] * 0.5, c[1] + 1), (x, 0))

        return j.vmap(one)

    x = (2.0 ** rng.uniform(-3, 70, count) + 1j * rng.uniform(-1, 1, count)).astype(np.complex64)
    ours, theirs = make(styrax), make(real)
    (z, n), (z_want, n_want) = styrax.jit(ours)(x), real.jit(theirs)(x)
    np.testing.assert_array_equal(n, n_want)
    np.testing.assert_allclose(z, z_want, rtol=1e-6)
    if count > 1:
        assert nests(ours, x) == (1, 0)


def test_gcd_with_skewed_turns():
    def make(j):
        return j.vmap(j.vmap(lambda a, b: j.lax.while_loop(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1]), (a, b))))

    check(make, rng.integers(0, 5000, (7, 11)).astype(np.int32), rng.integers(0, 5000, (7, 11)).astype(np.int32))


def test_number_of_turns_known_at_run_time():
    def make(j):
        return lambda n, x: j.lax.fori_loop(0, n, lambda i, c: c + j.numpy.cos(c) * i, x)

    check(make, np.int32(5), values((50,), "float32"))
    check(make, np.int32(0), values((50,), "float32"))


def test_tables_are_read_where_elements_say():
    def make(j):
        def f(t, x):
            return j.lax.fori_loop(0, 4, lambda i, c: j.numpy.clip(t[c] + i, 0, 99), x)

        return f

    check(make, rng.integers(0, 100, 100).astype(np.int32), rng.integers(0, 100, (6, 9)).astype(np.int32))


OTHERS = {
    "transposition": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c.T * 0.5 + i, x),
    "roll": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + j.numpy.roll(c, 1), x),
    "reversal": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + c[::-1], x),
    "sum": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + c.sum() / 40, x),
    "one element": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + c[0, 0], x),
    "update": lambda j: lambda x: j.lax.fori_loop(0, 3, lambda i, c: c.at[i].add(c[i + 1]), x),
}


@pytest.mark.parametrize("name", OTHERS)
def test_loops_whose_elements_meet(name):
    x = values((6, 6), "float32")
    ours, theirs = OTHERS[name](styrax), OTHERS[name](real)
    np.testing.assert_allclose(styrax.jit(ours)(np.asarray(x)), real.jit(theirs)(x), rtol=1e-5, atol=1e-6)


def test_counter_that_is_wanted():
    def make(j):
        return lambda x: j.lax.while_loop(lambda c: c[0] < 7, lambda c: (c[0] + 2, c[1] * 0.5), (0, x))

    ours, theirs = make(styrax), make(real)
    x = values((9,), "float32")
    got, want = styrax.jit(ours)(np.asarray(x)), real.jit(theirs)(x)
    assert int(got[0]) == int(want[0]) == 8
    np.testing.assert_allclose(got[1], want[1])


PART_DTYPES = ["float32", "int32", "uint8", "complex64", "bfloat16"]


def parts_of(j, kind):
    """Loops whose elements are a few numbers each."""
    np_ = j.numpy

    def oscillator(y):
        def step(y, k):
            turned = np_.stack([y[1], (1 - y[0]) * y[1] - y[0]])
            return y + turned * k, y[0]

        return step

    def mixed(c):
        def step(c, k):
            a, m, s = c
            m = np_.stack([m[1] + a, m[0] * k])  # rows of a matrix change places
            return (a + m[0, 0], m, s + k), m[:, ::-1].T

        return step

    def shifted(c):
        def step(c, k):
            return np_.concatenate([c[1:], (c[:1] + c[-1:]) * k]), None

        return step

    return {"oscillator": oscillator, "mixed": mixed, "shifted": shifted}[kind]


@pytest.mark.parametrize("dtype", PART_DTYPES)
@pytest.mark.parametrize("count", [None, 1, 5, 70])
@pytest.mark.parametrize("kind", ["oscillator", "mixed", "shifted"])
def test_elements_of_several_numbers(kind, count, dtype):
    rows = {"oscillator": [(2,)], "mixed": [(), (2, 2), ()], "shifted": [(3,)]}[kind]
    lead = () if count is None else (count,)
    start = [values((*lead, *shape), dtype) for shape in rows]
    factors = np.asarray(values((4,), dtype))

    def make(j):
        def one(*start):
            c = start if len(start) > 1 else start[0]
            return j.lax.scan(parts_of(j, kind)(c), c, factors)

        return one if count is None else j.vmap(one)

    got = styrax.jit(make(styrax))(*map(np.asarray, start))
    want = make(real)(*start)  # one operation at a time: XLA's fused code rounds bfloat16 less often
    exact = dtype in ("int32", "uint8")
    for x, y in zip(styrax.tree.leaves(got), real.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        wide = np.complex128 if dtype == "complex64" else np.float64
        x, y = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
        # of oscillations that grow, the differences of large numbers are left: they round as these do
        largest = np.abs(y).max()
        np.testing.assert_allclose(
            x, y, rtol=0 if exact else 5e-2 if dtype == "bfloat16" else 1e-5,
            atol=0 if exact else 5e-2 * largest if dtype == "bfloat16" else max(1e-4, 1e-7 * largest))


def test_several_numbers_stay_in_registers():
    def step(y, _):
        return y + styrax.numpy.stack([y[1], -y[0]]) * 0.1, None

    def turns(y):
        return styrax.lax.scan(step, y, None, length=50)[0]

    assert nests(styrax.vmap(turns), np.ones((100, 2), np.float32)) == (1, 0)
    alone = styrax.jit(turns).lower(np.ones(2, np.float32)).compile().runtime_executable().program.statements
    (loop,) = [s for s in alone if isinstance(s, Loop)]
    assert not any(isinstance(s, Loop) for s in statements(loop.body))


@pytest.mark.parametrize("count", [None, 9])
def test_several_numbers_in_a_while(count):
    def make(j):
        def one(y, limit):
            def turn(c):
                y, n = c
                return j.numpy.stack([y[1], y[0] + y[1]]), n + 1

            return j.lax.while_loop(lambda c: c[0][1] < limit, turn, (y, 0))

        return one if count is None else j.vmap(one)

    y = rng.integers(1, 5, (2,) if count is None else (count, 2)).astype(np.int32)
    limit = rng.integers(0, 500, () if count is None else (count,)).astype(np.int32)
    for x, z in zip(styrax.jit(make(styrax))(y, limit), real.jit(make(real))(y, limit), strict=True):
        np.testing.assert_array_equal(x, z)


def test_derivative_of_several_numbers():
    def make(j):
        def loss(y):
            def step(y, _):
                return y + j.numpy.stack([y[1], -j.numpy.sin(y[0])]) * 0.1, y.sum()

            y, sums = j.lax.scan(step, y, None, length=20)
            return (y ** 2).sum() + sums.sum()

        return j.vmap(j.grad(loss))

    y = values((40, 2), "float32")
    np.testing.assert_allclose(styrax.jit(make(styrax))(np.asarray(y)), real.jit(make(real))(y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [None, 1, 33])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bfloat16"])
def test_small_products_in_turns(count, dtype):
    def make(j):
        def one(a, h, xs):
            def step(c, x):
                h, m = c
                return (a @ h + x, (m @ a).astype(m.dtype)), h[0] * m[1, 0]

            return j.lax.scan(step, (h, a), xs)

        return one if count is None else j.vmap(one)

    lead = () if count is None else (count,)
    args = [np.asarray(values((*lead, *shape), dtype) // 2 if dtype == "int32" else
                       (values((*lead, *shape), "float32") / 4).astype(dtype)) for shape in ((2, 2), (2,), (5, 2))]
    got, want = styrax.jit(make(styrax))(*args), make(real)(*args)
    for x, y in zip(styrax.tree.leaves(got), real.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        wide = np.complex128 if dtype == "complex64" else np.float64
        np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide),
                                   rtol=3e-2 if dtype == "bfloat16" else 1e-5,
                                   atol=3e-2 if dtype == "bfloat16" else 1e-5)


@pytest.mark.parametrize("size", [2, 3, 8, 9])
def test_products_with_all_elements(size):
    """No element can be had from itself alone."""
    def make(j):
        return lambda a, h: j.lax.scan(lambda h, _: (a @ h, h[0]), h, None, length=3)

    a, h = values((size, size), "float32"), values((size,), "float32")
    for x, y in zip(styrax.jit(make(styrax))(np.asarray(a), np.asarray(h)), make(real)(a, h), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-3)


def folds(j, dtype):
    """A turn that folds the numbers of an element in all ways."""
    np_ = j.numpy

    def turn(c, x):
        y, best, well = c
        total = y.sum() + y.prod() * 0 if dtype == "complex64" else y.sum() + y.max() - y.min() + y.prod() % 3
        number = (np_.abs(y) if dtype == "complex64" else y).argmax()
        y = y[::-1] + x * (number == 1).astype(y.dtype) - (total / 4).astype(y.dtype)
        return (y, best + number, well & np_.all(y == y) | np_.any(y == 2)), total

    return lambda y, xs: j.lax.scan(turn, (y, np_.int32(0), np_.bool_(True)), xs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("count", [None, 1, 6, 40])
def test_folds_of_an_elements_numbers(dtype, count):
    def make(j):
        return folds(j, dtype) if count is None else j.vmap(folds(j, dtype))

    lead = () if count is None else (count,)
    args = [np.array(values((*lead, *shape), "float32").astype(dtype)) for shape in ((3,), (7, 3))]
    if np.issubdtype(dtype, np.floating):
        args[0].reshape(-1)[:2] = np.nan, np.inf
    got, want = styrax.jit(make(styrax))(*args), real.jit(make(real))(*args)
    small = dtype in ("float16", "bfloat16")
    for x, y in zip(styrax.tree.leaves(got), real.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        wide = np.complex128 if dtype == "complex64" else np.float64
        np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide),
                                   rtol=5e-2 if small else 1e-4, atol=5e-2 if small else 1e-4)


@pytest.mark.parametrize("count", [None, 3, 100])
def test_a_while_that_asks_for_the_largest_number(count):
    def make(j):
        def step(c):
            y, h, n = c
            k = j.numpy.stack([y[1], -y[0] * (1 + y[0] ** 2)])
            error = j.numpy.abs(h * k).max()
            return j.numpy.where(error < 0.1, y + h * k, y), j.numpy.where(error < 0.1, h * 1.5, h * 0.4), n + 1

        def one(y):
            return j.lax.while_loop(lambda c: c[2] < 25, step, (y, y[0] * 0 + 0.3, 0))[:2]

        return one if count is None else j.vmap(one)

    y = np.asarray(values((2,) if count is None else (count, 2), "float32"))
    for a, b in zip(styrax.jit(make(styrax))(y), real.jit(make(real))(y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert nests(make(styrax), y)[1] == 0
