"""Elementwise functions and operators."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import mpmath
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from tests.numpy import oracle

UNARY = ("abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil "
         "conj "
         "conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor i0 imag iscomplex isfinite isinf isnan isneginf "
         "isposinf isreal log log10 log1p log2 logical_not modf nan_to_num negative positive rad2deg radians real "
         "reciprocal rint round sign signbit sin sinc sinh sqrt square tan tanh trunc bitwise_count invert").split()
BINARY = ("add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power maximum "
          "minimum fmax "
          "fmin equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and "
          "bitwise_or bitwise_xor left_shift right_shift arctan2 copysign divmod gcd heaviside hypot lcm logaddexp "
          "logaddexp2 nextafter").split()
PAIRS = ("x, y", "i, i + 2", "b, ~b", "c, 2 * c", "u, u + 1", "h, h", "x, i", "i, u", "x, n", "n, x", "i, w", "u, h",
         "b, i", "x, m", "x[:, None], y")


@pytest.mark.parametrize("operand", ["x", "i", "b", "c", "u", "h", "w", "n"])
def test_unary_values(operand: str) -> None:
    oracle.check_values("\n".join(f"jnp.{name}({operand})" for name in UNARY), atol=2e-6 if operand != "h" else 2e-3,
                        rtol=2e-5 if operand != "h" else 2e-3)


@pytest.mark.parametrize("operand", ["x", "i", "b", "c", "u"])
def test_unary_jaxprs(operand: str) -> None:
    oracle.check_texts("\n".join(f"jnp.{name}({operand})" for name in UNARY))


@pytest.mark.parametrize("pair", PAIRS)
def test_binary_values(pair: str) -> None:
    loose = "h" in pair
    oracle.check_values("\n".join(f"jnp.{name}({pair})" for name in BINARY), rtol=2e-3 if loose else 2e-5,
                        atol=2e-3 if loose else 2e-6)


@pytest.mark.parametrize(
    "pair", ["x, y", "i, i", "b, b", "c, c", "u, u", "x, i", "x, n", "i, 2", "x, 2.5", "2, x", "m, x"]
)
def test_binary_jaxprs(pair: str) -> None:
    skip = {"gcd", "lcm"} if pair in ("i, 2", "2, x") else set()
    oracle.check_texts("\n".join(f"jnp.{name}({pair})" for name in BINARY if name not in skip))


OPERATORS = """
x + y
x - 1
2 * x
x / 3
i / 2
i // 2
x // 0.5
i % 2
-7 % i
x ** 2
x ** -1
x ** 0.5
i ** 2
2 ** x
x ** i
-x
+i
abs(i)
~i
~b
i & 1
i | u
i ^ i
b & b
i << 1
u >> 1
1 << i
x < y
x <= 0
x == 1.5
x != y
x > w
i >= 0
divmod(i, 2)
divmod(7, u)
round(x)
round(x, 1)
m @ m.T
m @ x
x + np.float32(1)
x + np.ones(3, np.float64)
i + np.float16(1.5)
True + i
w + x
x * 1j
"""


def test_operators() -> None:
    oracle.check_values(OPERATORS)


def test_operator_jaxprs() -> None:
    oracle.check_texts(OPERATORS)


def test_operators_defer() -> None:
    class Other:
        def __radd__(self, other: object) -> str:
            return "radd"

        def __eq__(self, other: object) -> bool:
            return True

    x = jnp.arange(3)
    assert x + Other() == "radd"
    assert (x == Other()) is True
    assert (x == None) is False  # noqa: E711
    assert (x == "a") is False
    for bad in ([1, 2, 3], None, "a"):
        with pytest.raises(TypeError):
            x + bad
        with pytest.raises(TypeError):
            bad * x


def test_numpy_arrays_defer_to_ours() -> None:
    x = jnp.ones(3)
    for value in (np.ones(3) + x, np.float32(2) * x, np.ones((3, 3)) @ x):
        assert isinstance(value, styrax.Array)


ERRORS = """
jnp.sin('a')
jnp.add(x, [1, 2, 3])
jnp.add(x, None)
jnp.ones(3) + jnp.ones(4)
jnp.ones((2, 3)) + jnp.ones(4)
jnp.subtract(b, b)
jnp.negative(b)
jnp.bitwise_and(x, x)
jnp.left_shift(x, 1)
jnp.floor(c)
jnp.signbit(c)
jnp.gcd(x, x)
i ** -1
jnp.add(x, x, out=3)
jnp.add(x, x, where=b)
jnp.add(x)
x + 2 ** 40
"""


def test_errors() -> None:
    oracle.check_values(ERRORS)


INTEGERS = """
jnp.array([7, -7, 0], 'int8') // jnp.array([0, 0, 0], 'int8')
jnp.array([7, -7, 0], 'int32') % 0
jnp.array([-128], 'int8') // -1
jnp.array([250], 'uint8') + 10
jnp.array([1], 'uint8') - 2
jnp.array([1], 'uint8') + 300
jnp.array([100], 'int8') * 2
jnp.array([1, -1], 'int32') << 40
jnp.array([-8], 'int32') >> 1
jnp.array([3], 'uint8') ** 2
jnp.array([3, 0, 2], 'int32') ** jnp.array([2, 0, 3], 'int32')
jnp.float_power(i, 2)
jnp.abs(jnp.array([-128], 'int8'))
"""


def test_integer_edges() -> None:
    oracle.check_values(INTEGERS)


def test_ufunc_methods() -> None:
    oracle.check_values("""
        jnp.add.reduce(m)
        jnp.add.reduce(m, axis=None)
        jnp.add.reduce(m, axis=1, keepdims=True, initial=2)
        jnp.multiply.accumulate(m, axis=1)
        jnp.maximum.reduce(m, axis=1)
        jnp.maximum.accumulate(m)
        jnp.subtract.reduce(x)
        jnp.subtract.accumulate(x)
        jnp.logical_and.reduce(b)
        jnp.bitwise_or.reduce(i)
        jnp.logaddexp.reduce(x)
        jnp.add.outer(x, y)
        jnp.subtract.outer(m, x)
        jnp.add.at(x, jnp.array([0, 0]), 1., inplace=False)
        jnp.multiply.at(x, 0, 2., inplace=False)
        jnp.add.at(x, 0, 1.)
        jnp.add.reduceat(x, jnp.array([0, 2]))
        jnp.negative.reduce(x)
        jnp.frompyfunc(lambda a, b: a * b, 2, 1)(x, y)
        jnp.frompyfunc(lambda a, b: a * b, 2, 1, identity=1).reduce(x)
    """)
    assert repr(jnp.add) == "<jnp.ufunc 'add'>"
    assert (jnp.add.nin, jnp.add.nout, jnp.add.nargs, jnp.add.identity) == (2, 1, 2, 0)


HALVES = "jnp.frompyfunc(lambda a, b: a + b / 2, 2, 1, identity=0)"


def test_methods_of_ufuncs_that_change_the_dtype() -> None:
    oracle.check_values(f"""
        jnp.logical_xor.reduce(i)
        jnp.logical_xor.accumulate(x)
        jnp.logical_and.accumulate(i)
        jnp.logical_xor.at(i, jnp.array([0, 0, 2]), 2, inplace=False)
        jnp.logical_or.reduceat(i, jnp.array([0, 2]))
        jnp.logaddexp.accumulate(i)
        jnp.logaddexp.at(u, jnp.array([0, 0]), 2, inplace=False)
        jnp.logaddexp2.reduce(i)
        jnp.logaddexp2.accumulate(b)
        {HALVES}.reduce(i)
        {HALVES}.reduce(i, axis=None, initial=1.5)
        {HALVES}.reduce(i[:0])
        {HALVES}.accumulate(i)
        {HALVES}.accumulate(i[:0])
        {HALVES}.reduceat(x, jnp.array([0, 2]))
        {HALVES}.at(b, jnp.array([0, 0]), jnp.array([2, 3]), inplace=False)
        jnp.maximum.at(i, 0, 2.5, inplace=False)
        jnp.minimum.at(b, jnp.array([0, 2]), jnp.array([-3, 4]), inplace=False)
        jnp.add.at(b, jnp.array([0, 1]), jnp.array([False, True]), inplace=False)
        jnp.multiply.at(b, jnp.array([0, 1]), jnp.array([False, True]), inplace=False)
        jnp.subtract.accumulate(x, axis=None)
        jnp.subtract.accumulate(m, axis=(0, 1))
        jnp.add.reduceat(x, jnp.array([0, 2]), axis=None)
    """)
    # JAX's loops stop at these, whose types change on the way
    np.testing.assert_allclose(jnp.logaddexp.reduceat(jnp.arange(3), jnp.array([0, 2])),
                               np.logaddexp.reduceat(np.arange(3.0), [0, 2]), rtol=1e-6)
    assert jnp.ufunc(lambda a, b: a, 2, 1, reduceat=lambda a, indices, axis, dtype: a + axis).reduceat(1, 0) == 1


def test_gradients() -> None:
    oracle.check_values("""
        jax.grad(lambda z: jnp.logaddexp(z, 0.).sum())(x)
        jax.grad(lambda z: jnp.sinc(z).sum())(x)
        jax.grad(jax.grad(lambda z: jnp.sinc(z)))(0.)
        jax.grad(lambda z: jnp.where(z > 0, z, 0.).sum())(x)
        jax.grad(lambda z: jnp.i0(z).sum())(x)
        jax.grad(lambda z: (z ** 2).sum())(x)
        jax.grad(lambda z: jnp.abs(z).sum())(x)
        jax.grad(lambda z: jnp.hypot(z, 2.).sum())(x)
    """)


NARROW = """
jnp.sign(jnp.asarray(q))
jnp.max(q)
jnp.sort(q)
jnp.argmin(q)
q - jnp.asarray(q[::-1])
jnp.asarray(q).astype(int)
jnp.asarray(q)[1:]
lax.convert_element_type(q, np.float32)
lax.fori_loop(0, 3, lambda k, y: y + jnp.asarray(q), jnp.zeros_like(q))
"""


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_narrow_integers_from_numpy(name: str) -> None:
    """ml_dtypes leaves the upper half of the byte of a negative number clear."""
    dtype = getattr(ml_dtypes, name)
    q = np.arange(ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max + 1).repeat(5)[::-1].astype(dtype)
    for line in oracle.rows(NARROW):
        ours, theirs = (np.asarray(eval(line, {**modules, "q": q})) for modules in (oracle.OURS, oracle.THEIRS))
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes(), line


WEAK = """
jnp.round(w, 1)
jnp.round(h[0], 1)
jnp.round(w + 1j, 1)
jnp.add(2.5, np.arange(3))
jnp.divide(np.arange(3), 2.5)
jnp.maximum(2.5, np.int8(3))
jnp.logaddexp(2.5, i)
jnp.logaddexp2(2.5, u)
jnp.arctan2(u, -1)
jnp.arctan2(300, u)
jnp.arctan2(np.int8(3), 300)
"""


def test_numbers_that_meet_integer_arrays() -> None:
    oracle.check_values(WEAK)


@pytest.mark.parametrize("name", ["sinh", "cosh", "tanh", "sin", "cos", "tan", "arcsinh", "arcsin", "arccos", "arctan",
                                  "arctanh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_infinities(name: str, dtype: str) -> None:
    """Of real numbers and of those with an infinite part; NumPy knows the values at branch cuts' ends, too."""
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf]
    z = np.array([complex(re, im) for re in parts for im in parts
                  if re == 0 or im == 0 or np.isinf(re) or np.isinf(im)])
    if name.removeprefix("arc") == name:  # these have no limit along this axis
        z = z[np.isfinite(z.imag if name.endswith("h") else z.real)]
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(z)
    with styrax.enable_x64(True):
        found = np.asarray(getattr(jnp, name)(z.astype(dtype)))
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_allclose(a, b.astype(a.dtype), rtol=tolerance, atol=tolerance, err_msg=str(z))


@pytest.mark.parametrize("name", ["sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_extremes(name: str, dtype: str) -> None:
    """Where squares overflow or vanish, and close to the singular points ±1 and ±i."""
    limits = np.finfo(dtype)
    top, tiny = float(limits.max), float(limits.tiny)
    sizes = [0.0, tiny, top**-0.25, 0.5, 1.0, 3.0, 3 * top**0.5, top / 8, top]
    signed = [s * x for x in sizes for s in (1, -1)]
    z = np.array([complex(re, im) for re in signed for im in signed], dtype)
    z = z[(z != 1) & (z != -1) & (z != 1j) & (z != -1j)]
    with styrax.enable_x64(True):
        found = np.asarray(styrax.jit(getattr(styrax.lax, name))(z))
    with mpmath.workprec(2200 if dtype == "complex128" else 320):  # holds 1 - x² of the smallest
        for x, y in zip(z, found, strict=True):
            wanted = getattr(mpmath, name)(mpmath.mpc(complex(x)))
            # mpmath has one zero: on a branch cut it takes one side, and NumPy's, and ours, is the sign's
            sides = [wanted, *([wanted.conjugate()] if x.imag == 0 else []),
                     *([-wanted.conjugate()] if x.real == 0 else [])]
            error = min(abs(mpmath.mpc(complex(y)) - side) for side in sides)
            assert error <= max(12 * limits.eps * abs(wanted), 2 * tiny), (x, y, wanted)  # or parts are subnormal


@pytest.mark.parametrize("exponent", [
    np.int32(3), np.int64(3), np.uint8(3), np.int64(0), np.int64(-1), np.array(3, "int16"), np.array([3], "int32"),
    np.bool_(True), True, 3], ids=lambda y: f"{type(y).__name__}-{getattr(y, 'dtype', '')}-{y}")
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64", "bfloat16", "float32", "complex64", "bool", "int"])
@pytest.mark.parametrize("x64", [False, True])
def test_powers_by_known_integers(dtype: str, exponent: Any, x64: bool) -> None:
    """Known integers do not take part in promotion; those in arrays do."""
    def outcomes(package: Any) -> Any:
        x: Any = 2 if dtype == "int" else package.numpy.asarray([2, 1], dtype)
        power = package.numpy.power
        calls = [lambda: power(x, exponent), lambda: package.jit(lambda x: power(x, exponent))(x),
                 lambda: package.vmap(lambda x: power(x, exponent))(package.numpy.asarray(x)[None])]
        if dtype != "int":
            calls.append(lambda: x**exponent)
        for call in calls:
            try:
                found = call()
                yield str(found.dtype), getattr(found, "weak_type", None), np.asarray(found)
            except TypeError:
                yield "TypeError", None, np.zeros(())

    with styrax.enable_x64(x64), jax.enable_x64(x64):
        for found, wanted in zip(outcomes(styrax), outcomes(jax), strict=True):
            assert found[:2] == wanted[:2]
            np.testing.assert_allclose(found[2].astype(complex), wanted[2].astype(complex), rtol=1e-6)
