"""Rows of the table: factorisations and solvers, random numbers. Factors are given up to what is not determined."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz.draw import Call, Draw
from tests.fuzz.rows import Row
from tests.fuzz.values import FULL

MATRICES = ("float32", "float64", "complex64", "complex128")


def of_square(primitive: str, code: str, dtypes: tuple[str, ...] = MATRICES, single: bool = False) -> Row:
    return Row(primitive, lambda d: Call(code, (d.square(dtypes),), single))


def triangular_solve(d: Draw) -> Call:
    a = d.square()
    t = d.type(a)
    left, n = d.flag(), t.shape[-1]
    b = d.shaped((*t.shape[:-2], *((n, 2) if left else (2, n))), t.dtype)
    flags = f"left_side={left}, lower={d.flag()}, transpose_a={d.flag()}, unit_diagonal={d.flag()}"
    return Call(f"lax.linalg.triangular_solve(shifted({{0}}), {{1}}, {flags})", (a, b))


def tridiagonal_solve(d: Draw) -> Call:
    x = d.value(FULL, least=1, most=2, extra=lambda t: t.size and t.shape[-1] > 1)
    t = d.type(x)
    b = d.shaped((*t.shape, 2), t.dtype)
    return Call(
        "lax.linalg.tridiagonal_solve(jnp.tanh({0}).at[..., 0].set(0), 4 + jnp.tanh({1}), "
        "jnp.tanh({2}).at[..., -1].set(0), moderate({3}))",
        (x, d.like(x), d.like(x), b),
    )


def cholesky_update(d: Draw) -> Call:
    a = d.square(FULL)
    a_type = d.type(a)
    w = d.shaped((a_type.shape[-1],), a_type.dtype)
    first = "{0}[0]" if a_type.rank == 3 else "{0}"
    return Call(f"absolute(jnp.triu(lax.linalg.cholesky_update(jnp.triu(shifted({first})), jnp.tanh({{1}}))))", (a, w))


def symmetric_product(d: Draw) -> Call:
    a = d.square(FULL)
    return Call("lax.linalg.symmetric_product({0}, {1}, alpha=0.5, beta=2.0, symmetrize_output=True)", (a, d.like(a)))


def ormqr(d: Draw) -> Call:
    a = d.square(MATRICES)
    t = d.type(a)
    taus = d.shaped((*t.shape[:-2], t.shape[-1]), t.dtype)
    return Call(f"lax.linalg.ormqr({{0}}, {{1}}, {{2}}, left={d.flag()})", (a, taus, d.like(a)))


def householder(d: Draw) -> Call:
    a = d.square(MATRICES)
    t = d.type(a)
    return Call("lax.linalg.householder_product({0}, {1})", (a, d.shaped((*t.shape[:-2], t.shape[-1]), t.dtype)))


def qr(d: Draw) -> Call:
    x = d.value(MATRICES, least=2)
    *batch, m, n = d.type(x).shape
    pivoting = d.type(x).exact and d.type(x).size > 0 and m >= n and not batch and d.flag()
    code = f"absolute(lax.linalg.qr(moderate({{0}}), pivoting={pivoting}, full_matrices=False)[1:])"
    return Call(code, (x,), single=False)


def custom_linear_solve(d: Draw) -> Call:
    a = d.square(FULL)
    t = d.type(a)
    return Call("solved(shifted({0}), {1})", (a, d.shaped((t.shape[-1],), t.dtype)))


ROUNDED_TOGETHER = "a Fourier transform rounds each element by what the largest is"


def fft(d: Draw) -> Call:
    kind = d.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    real = kind == "RFFT"
    x = d.value(FULL if real else MATRICES[2:], least=1, extra=lambda t: t.size and t.shape[-1] > 1)
    n = d.type(x).shape[-1]
    return Call(f"lax.fft(moderate({{0}}), '{kind}', ({2 * n - 2 if kind == 'IRFFT' else n},))", (x,))


def fft_of_two(d: Draw) -> Call:
    """Along the last two axes."""
    kind = d.choice(("FFT", "IFFT", "RFFT"))
    x = d.value(FULL if kind == "RFFT" else MATRICES[2:], least=2, full=True)
    return Call(f"lax.fft(moderate({{0}}), '{kind}', {d.type(x).shape[-2:]})", (x,))


DRAWN = (
    "jax.random.bits(k, (2,))",
    "jax.random.bits(k, (3,), 'uint8')",
    "jax.random.key_data(jax.random.split(k))",
    "jax.random.key_data(jax.random.fold_in(k, 7))",
    "jax.random.permutation(k, 4)",
    "jax.random.randint(k, (2,), -3, 5)",
    "jax.random.key_data(lax.cond(jax.random.bits(k) > 2**31, jax.random.clone, lambda j: jax.random.split(j)[1], k))",
)


def of_keys(d: Draw) -> Call:
    """Of an array of keys, under `vmap` or carried by a scan."""
    code = f"{d.choice(('many', 'chain'))}(lambda k: {d.choice(DRAWN)}, {d.integer(0, 3)})({{0}})"
    return Call(code, (d.value(KEY),))


KEY = ("int32", "uint8", "float32")
IMPLS = ("threefry2x32", "rbg", "philox4x32", "philox2x32", "threefry4x32", "unsafe_rbg")


def random(primitive: str, code: str, adds: tuple[str, ...] = (), single: bool = True) -> Row:
    return Row(primitive, lambda d: Call(code, (d.value(KEY),), single), "jump", adds=adds)


def of_implementation(d: Draw) -> Call:
    return Call(
        f"jax.random.bits(jax.random.key(count({{0}}), impl='{d.choice(IMPLS[:1] + IMPLS[2:5])}'), (3,))",
        (d.value(KEY),),
    )


def of_shape(d: Draw) -> Call:
    what = d.choice(("uniform", "normal", "bernoulli", "exponential", "gumbel"))
    return Call(
        f"jax.random.{what}(key({{0}}), shape={tuple(d.integer(0, 3) for _ in range(d.integer(0, 2)))})",
        (d.value(KEY),),
    )


def threefry(d: Draw) -> Call:
    a = d.shaped((), "uint32")
    return Call("jax.extend.random.threefry2x32_p.bind({0}, {1}, {2}, {3})", (a,) * 4, single=False)


ROWS = [
    replace(
        of_square("cholesky", "lax.linalg.cholesky(limited(definite(moderate({0}))))", single=True),
        limit="where a factorisation of infinities or NaN has NaN depends on the order of its operations",
    ),
    Row("cholesky_update", cholesky_update),
    of_square("eigh", "(lambda v, w: (w, jnp.abs(v)))(*lax.linalg.eigh(definite({0})))"),
    of_square(
        "eig",
        "(jnp.sort(jnp.abs(lax.linalg.eig({0}, compute_left_eigenvectors=False, "
        "compute_right_eigenvectors=False)[0])),)",
    ),
    of_square("hessenberg", "absolute(lax.linalg.hessenberg({0}))"),
    Row("householder_product", householder),
    of_square("lu", "lax.linalg.lu(shifted({0}))"),
    Row(
        "lu_pivots_to_permutation",
        lambda d: Call(
            "lax.linalg.lu_pivots_to_permutation(jnp.clip({0}, 0, 2), 4)",
            (d.shaped(d.choice(((3,), (2, 3))), "int32"),),
        ),
        "exact",
    ),
    Row("ormqr", ormqr),
    Row("qr", qr, limit="of empty matrices JAX has no pivots, and wrong slopes with pivots of wide ones and batches; "
                        "which column is longer is open if squares overflow"),
    of_square("schur", "absolute(lax.linalg.schur(definite({0})))"),
    Row(
        "svd",
        lambda d: Call("(lax.linalg.svd(limited({0}), compute_uv=False),)", (d.value(MATRICES, least=2),), False),
        limit="of infinities LAPACK's singular values do not end",
    ),
    of_square("svd", "(lambda u, s, vt: (s, jnp.abs(u), jnp.abs(vt)))(*lax.linalg.svd(limited(definite({0}))))"),
    Row("symmetric_product", symmetric_product),
    Row("triangular_solve", triangular_solve),
    of_square("tridiagonal", "absolute(lax.linalg.tridiagonal(definite({0}))[1:3])"),
    Row("tridiagonal_solve", tridiagonal_solve, limit="JAX takes subnormal factors of huge right-hand sides for zeros"),
    Row("fft", fft, limit=ROUNDED_TOGETHER),
    Row("fft", fft_of_two, "smooth", "fft of two axes", limit=ROUNDED_TOGETHER),
    Row("custom_linear_solve", custom_linear_solve),
    random("random_bits", "jax.random.bits(key({0}), (2,))"),
    random("random_seed", "jax.random.key_data(jax.random.key(count({0})))", ("random_unwrap",)),
    random("random_split", "jax.random.key_data(jax.random.split(key({0}), 2))"),
    random("random_fold_in", "jax.random.key_data(jax.random.fold_in(key({0}), 3))"),
    random("random_clone", "jax.random.key_data(jax.random.clone(key({0})))"),
    random("random_wrap", "jax.random.bits(jax.random.wrap_key_data(jax.random.key_data(key({0}))), (2,))"),
    Row("random_gamma", lambda d: Call("jax.random.gamma(key({0}), 1.5, (2,))", (d.value(KEY),)), "cut"),
    Row(
        "random_bits",
        of_implementation,
        "jump",
        "random_bits of implementations",
        adds=("philox2x32", "philox4x32", "threefry4x32"),
    ),
    Row("random_bits", of_keys, "jump", "random numbers of many keys"),
    Row("random_bits", of_shape, "cut", "random numbers"),
    Row(
        "rng_bit_generator",
        lambda d: Call(
            "lax.rng_bit_generator(bits(jax.random.key(count({0}), impl='rbg')), (2,))", (d.value(KEY),), False
        ),
        "jump",
    ),
    Row("threefry2x32", threefry, "exact"),
]
