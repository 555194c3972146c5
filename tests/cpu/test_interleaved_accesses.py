"""Records of a few members: strided loads, reversed ones, and records that are written whole, against NumPy."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

COUNTS = (1, 5, 15, 16, 17, 33, 100)  # of records: fewer than lanes, as many, tails
SOME = range(0, 7, 2)  # of these counts, for each row others: every dtype meets all
DTYPES = ("float32", "float64", "float16", "int8", "int64", "bool", "int4", "complex64", "complex128")
rng = np.random.default_rng(0)


def numbers(shape, dtype):
    x = rng.integers(0, 2 if dtype == "bool" else 7, shape).astype(jnp.dtype(dtype))
    return x + 1j * rng.integers(0, 7, shape).astype(x.real.dtype) if x.dtype.kind == "c" else x


def same(f, *args):
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(*args)), np.asarray(f(*args)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", range(2, 10))
def test_members_that_are_read(step, dtype):
    with jax.enable_x64(True):
        for count in (COUNTS[(step + k) % len(COUNTS)] for k in SOME):
            x = numbers(count * step, dtype)
            for member in {0, 1, step - 1}:
                for end in (len(x), len(x) - step + member + 1):  # records that end with the buffer, or do not
                    same(lambda x, m=member: x[m::step] == x[m::step][0], x[:end])
            records = x.reshape(count, step)
            same(lambda r: r[:, 0] != r[:, -1], records)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("members", range(2, 10))
def test_records_that_are_written(members, dtype):
    with jax.enable_x64(True):
        for count in (COUNTS[(members + k) % len(COUNTS)] for k in SOME):
            rows = numbers((members, count), dtype)
            got = jax.jit(lambda rows: jnp.stack([row == row[0] for row in rows], 1))(rows)
            np.testing.assert_array_equal(got, np.stack([row == row[0] for row in rows], 1))
            np.testing.assert_array_equal(jax.jit(lambda rows: rows.T.copy())(rows), rows.T)
            images = numbers((3, members, count), dtype)
            np.testing.assert_array_equal(jax.jit(lambda x: x.transpose(0, 2, 1).copy())(images),
                                          images.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_last_first(dtype):
    with jax.enable_x64(True):
        for count in COUNTS:
            x = numbers((3, count), dtype)
            same(lambda x: x[:, ::-1] == x, x)
            same(lambda x: x.reshape(-1)[::-1] != x.reshape(-1), x)


def records(np, rows):
    return np.stack([row + k * rows[0].conj() for k, row in enumerate(rows)], 1)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("members", range(2, 7))
def test_complex_records_of_what_is_computed(members, dtype):
    with jax.enable_x64(True):
        for count in COUNTS:
            rows = numbers((members, count), dtype)
            batch = np.stack([rows, 2 * rows])
            expected = records(np, rows)
            np.testing.assert_array_equal(jax.jit(lambda x: records(jnp, x))(rows), expected)
            batched = jax.jit(jax.vmap(lambda x: records(jnp, x)))(batch)
            np.testing.assert_array_equal(batched, np.stack([expected, 2 * expected]))
            turns = jax.lax.scan(lambda c, x: (c, records(jnp, x)), 0, batch)[1]
            np.testing.assert_array_equal(turns, batched)


def test_complex_numbers_are_not_gathered_one_by_one():
    z = np.ones(64, np.complex64)
    for f in (lambda z: z[::-1] * 2, lambda z: z[::2] + z[1::2], lambda z: z[::4].real):
        assert "gather" not in jax.jit(f).lower(z).compile().as_text("llvm")


@pytest.mark.parametrize("count", COUNTS)
def test_records_in_loops_and_derivatives(count):
    x, y = (rng.normal(size=(count, 3)).astype(np.float32) for _ in range(2))
    turn = jax.jit(lambda x, y: jax.lax.fori_loop(0, 3, lambda _, c: jnp.cross(c, y), x))
    want = x
    for _ in range(3):
        want = np.cross(want, y)
    np.testing.assert_allclose(turn(x, y), want, rtol=1e-4, atol=1e-4)
    gradient = jax.jit(jax.vmap(jax.grad(lambda a, b: jnp.cross(a, b)[0])))(x, y)
    np.testing.assert_allclose(gradient, np.stack([0 * y[:, 0], y[:, 2], -y[:, 1]], 1), atol=1e-6)


def test_an_update_in_place_reads_before_it_writes():
    x = rng.normal(size=(100, 3)).astype(np.float32)
    f = jax.jit(lambda x: jnp.stack([x[:, 2], x[:, 0], x[:, 1]], 1), donate_argnums=0)
    np.testing.assert_array_equal(f(jnp.array(x)), x[:, [2, 0, 1]])
