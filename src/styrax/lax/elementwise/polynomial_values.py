"""Values of polynomials, elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from ..shaping.filling import full_like
from .arithmetic import mul
from .families import INEXACT, NUMERIC, OPERATIONS, Operation, check_dtype, scalar_like, standard_primitive, unary

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def _one_minus_square_hlo(m: Any, x: Any) -> Any:
    one = m.full(1, x.aval)
    factors = [m.op1(f"stablehlo.{operation}", [one, x], x.aval) for operation in ("subtract", "add")]
    return m.op1("stablehlo.multiply", factors, x.aval)


def _one_minus_square_scalar(b: Builder, x: Any) -> Any:
    one = b.const(1, x.dtype)
    return b.mul(b.sub(one, x), b.add(one, x))


one_minus_square, one_minus_square_p = unary(
    "one_minus_square", INEXACT, "`1 - x²`, elementwise, as `(1 - x) (1 + x)`: exact to the last places near 1 and -1.",
    jvp=lambda t, ans, x: mul(t, mul(scalar_like(x, -2), x)),
    scalar=_one_minus_square_scalar,
    hlo=_one_minus_square_hlo,
    reference=lambda x: (1 - x) * (1 + x),
)  # fmt: skip


def _polynomial_dtype(x: Any, *, coefficients: tuple[complex, ...]) -> Any:
    check_dtype("polynomial", x, NUMERIC)
    if any(isinstance(c, complex) for c in coefficients) and x.dtype.kind != "c":
        raise TypeError(f"lax.polynomial of {x.str_short()} cannot have complex coefficients.")
    if any(isinstance(c, float) for c in coefficients) and x.dtype.kind in "iu":
        raise TypeError(f"lax.polynomial of {x.str_short()} cannot have floating coefficients.")
    return x.dtype


def _polynomial_scalar(b: Builder, x: Any, *, coefficients: tuple[complex, ...]) -> Any:
    value = b.const(coefficients[0] if coefficients else 0, x.dtype)
    for c in coefficients[1:]:
        value = b.add(b.mul(value, x), b.const(c, x.dtype))
    return value


def _polynomial_hlo(m: Any, x: Any, *, coefficients: tuple[complex, ...]) -> Any:
    value = m.full(coefficients[0] if coefficients else 0, x.aval)
    for c in coefficients[1:]:
        value = m.op1("stablehlo.multiply", [value, x], x.aval)
        value = m.op1("stablehlo.add", [value, m.full(c, x.aval)], x.aval)
    return value


polynomial_p = standard_primitive(
    "polynomial", lambda x, *, coefficients: x.shape, _polynomial_dtype, scalar=_polynomial_scalar, hlo=_polynomial_hlo)
batching.defvectorized(polynomial_p)


def _polynomial_jvp(t: Any, x: Any, *, coefficients: tuple[complex, ...]) -> Any:
    degree = len(coefficients) - 1
    if degree < 1:
        return full_like(t, 0)
    slopes = tuple(c * (degree - n) for n, c in enumerate(coefficients[:-1]))
    return mul(t, polynomial_p.bind(x, coefficients=slopes))


ad.defjvp(polynomial_p, _polynomial_jvp)


def polynomial(x: ArrayLike, coefficients: Sequence[complex]) -> Array:
    """The value of a polynomial at each element, by Horner's rule.

    Args:
      x: integer, floating or complex array.
      coefficients: Python numbers, from the highest power down.

    Returns:
      an array of the same shape and dtype; 0 where there are no coefficients.

    Raises:
      TypeError: for boolean arrays, and coefficients that are not of the array's kind.
    """
    return polynomial_p.bind(x, coefficients=tuple(np.asarray(c)[()].item() for c in coefficients))


OPERATIONS["polynomial"] = Operation("polynomial", polynomial_p, polynomial, "unary", 1, (NUMERIC,), np.polyval)

for _p in (one_minus_square_p, polynomial_p):
    _p.declare(nan=True)
