"""One table of elementwise operations: their arguments, edge values among them, and what holds for them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.lax.harness import Case

F32 = np.float32
INF, NAN = np.inf, np.nan

EDGES = np.array(
    [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.5, 1e-30, -1e-30, 1e30, -1e30, 0.1, 0.9, 7.25, -8.0],
    F32,
)
PAIRS = tuple(v.ravel() for v in np.meshgrid(EDGES, EDGES, indexing="ij"))
MILD = np.array([0.3, -0.7, 0.9, 0.55, -0.2, 0.05], F32)
POSITIVE = np.array([0.3, 1.7, 2.9, 0.55, 5.2, 10.0], F32)
ABOVE_ONE = np.array([1.3, 1.7, 2.9, 4.55, 5.2, 10.0], F32)
COMPLEX = np.array([0.5 + 0.25j, -1.5 + 2j, 3 - 1j, -0.1 - 0.2j, 0j, 1 + 0j, 1j], np.complex64)
COMPLEX_MILD = np.array([0.5 + 0.25j, -0.5 + 0.3j, 0.3 - 0.1j, -0.1 - 0.2j], np.complex64)
INTS = np.array([0, 1, -1, 7, -8, 100, 2**31 - 1, -(2**31)], np.int32)
SMALL = np.array([0, 1, 2, 5, 127, 128, 200, 255], np.uint8)
INT_PAIRS = tuple(v.ravel() for v in np.meshgrid(INTS, INTS, indexing="ij"))
BYTE_PAIRS = tuple(v.ravel() for v in np.meshgrid(SMALL, SMALL, indexing="ij"))
SHIFTS = tuple(v.ravel() for v in np.meshgrid(INTS, np.array([0, 1, 5, 31, 32, 40, -1], np.int32), indexing="ij"))
BOOLS = np.array([True, False])
BOOL_PAIRS = np.array([True, True, False, False]), np.array([True, False, True, False])

# name -> arguments at which derivatives are compared, real and complex
UNARY = {
    "neg": (EDGES, COMPLEX), "sign": (EDGES, COMPLEX), "abs": (EDGES, COMPLEX), "floor": (EDGES, None),
    "ceil": (EDGES, None), "is_finite": (EDGES, None), "exp": (EDGES, COMPLEX), "exp2": (MILD, COMPLEX),
    "log": (EDGES, COMPLEX_MILD), "expm1": (EDGES, COMPLEX), "log1p": (EDGES, COMPLEX_MILD),
    "logistic": (EDGES, COMPLEX_MILD), "sqrt": (EDGES, COMPLEX_MILD), "rsqrt": (EDGES, COMPLEX_MILD),
    "cbrt": (EDGES, None), "square": (EDGES, COMPLEX), "sin": (MILD, COMPLEX), "cos": (MILD, COMPLEX),
    "tan": (MILD, COMPLEX), "asin": (MILD, COMPLEX_MILD), "acos": (MILD, COMPLEX_MILD),
    "atan": (EDGES, COMPLEX_MILD), "sinh": (MILD, COMPLEX), "cosh": (MILD, COMPLEX), "tanh": (EDGES, COMPLEX_MILD),
    "asinh": (EDGES, COMPLEX_MILD), "acosh": (ABOVE_ONE, COMPLEX_MILD), "atanh": (MILD, COMPLEX_MILD),
    "erf": (EDGES, None), "erfc": (EDGES, None), "erf_inv": (MILD, None), "lgamma": (POSITIVE, None),
    "digamma": (POSITIVE, None), "bessel_i0e": (EDGES, None), "bessel_i1e": (EDGES, None),
    "stop_gradient": (EDGES, COMPLEX), "reciprocal": (EDGES, COMPLEX_MILD),
}  # fmt: skip
BINARY = {
    "add": (PAIRS, COMPLEX), "sub": (PAIRS, COMPLEX), "mul": (PAIRS, COMPLEX), "div": (PAIRS, COMPLEX_MILD),
    "rem": (PAIRS, None), "max": (PAIRS, COMPLEX), "min": (PAIRS, COMPLEX), "pow": (PAIRS, COMPLEX_MILD),
    "atan2": (PAIRS, COMPLEX_MILD),
}  # fmt: skip


def _op(name, **params):
    return lambda lax: lambda *xs: getattr(lax, name)(*xs, **params)


def _cases():
    for name, (real, cplx) in UNARY.items():
        yield Case(f"{name}_f32", _op(name), real, differentiable=True, tolerance=2e-5 if name == "lgamma" else 5e-6)
        if cplx is not None:
            yield Case(f"{name}_c64", _op(name), cplx, differentiable=True, tolerance=2e-5)
        for dtype in (ml_dtypes.bfloat16, np.float16):
            yield Case(f"{name}_{np.dtype(dtype).name}", _op(name), MILD.astype(dtype) if name != "acosh" else
                       ABOVE_ONE.astype(dtype), tolerance=1e-2)
    for name, (pairs, cplx) in BINARY.items():
        # The sum of two huge products may be contracted: the derivative of products is compared at mild points.
        yield Case(f"{name}_f32", _op(name), *pairs, differentiable=name != "mul", tolerance=5e-6)
        yield Case(f"{name}_mild", _op(name), MILD, POSITIVE, differentiable=True, tolerance=5e-6)
        yield Case(f"{name}_bf16", _op(name), POSITIVE.astype(ml_dtypes.bfloat16), MILD.astype(ml_dtypes.bfloat16),
                   tolerance=1e-2)
        if cplx is not None:
            yield Case(f"{name}_c64", _op(name), cplx, cplx[::-1], differentiable=True, tolerance=2e-5)
        yield Case(f"{name}_scalar", lambda lax, name=name: lambda x: getattr(lax, name)(x, 2.0), MILD,
                   differentiable=True)
        yield Case(f"scalar_{name}", lambda lax, name=name: lambda x: getattr(lax, name)(2.0, x), MILD,
                   differentiable=True)
        yield Case(f"{name}_stretched", _op(name), MILD.reshape(1, 6), POSITIVE.reshape(6, 1),
                   differentiable=name != "rem")
        yield Case(f"{name}_weak", lambda lax, name=name: lambda: getattr(lax, name)(1.5, 2.0))
    for name in ("neg", "sign", "abs", "square", "bitwise_not", "population_count", "clz"):
        yield Case(f"{name}_i32", _op(name), INTS)
        if name != "abs":
            yield Case(f"{name}_u8", _op(name), SMALL)
    for name in ("add", "sub", "mul", "div", "rem", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor",
                 "eq", "ne", "lt", "le", "gt", "ge"):
        yield Case(f"{name}_i32", _op(name), *INT_PAIRS)
        yield Case(f"{name}_u8", _op(name), *BYTE_PAIRS)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne", "lt", "le", "gt", "ge", "max", "min"):
        yield Case(f"{name}_bool", _op(name), *BOOL_PAIRS)
    yield Case("bitwise_not_bool", _op("bitwise_not"), BOOLS)
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        yield Case(f"{name}_i32", _op(name), *SHIFTS)
        yield Case(f"{name}_u8", _op(name), *BYTE_PAIRS)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Case(f"{name}_f32", _op(name), *PAIRS, differentiable=True)
    for name in ("eq", "ne"):
        yield Case(f"{name}_c64", _op(name), COMPLEX, COMPLEX[::-1])
    for name in ("lt_to_p", "le_to_p", "eq_to_p"):
        yield Case(name, lambda lax, name=name: lambda x, y: getattr(lax, name).bind(x, y), *PAIRS)
    yield Case("nextafter_f32", _op("nextafter"), *PAIRS, tolerance=0)
    for y in (-3, -1, 0, 1, 2, 3, 5):
        yield Case(f"integer_pow_{y}", _op("integer_pow", y=y), EDGES, differentiable=True, tolerance=5e-6)
    yield Case("integer_pow_i32", _op("integer_pow", y=3), INTS)
    yield Case("integer_pow_c64", _op("integer_pow", y=3), COMPLEX, differentiable=True, tolerance=1e-5)
    yield Case("pow_integer", _op("pow"), POSITIVE, np.array([0, 1, 2, 3, -1, -2], np.int32), tolerance=1e-5)
    for method in (0, 1):
        yield Case(f"round_{method}", lambda lax, m=method: lambda x: lax.round(x, lax.RoundingMethod(m)),
                   np.concatenate([EDGES, np.array([1.5, 4.5, -1.5, 0.49999997], F32)]), differentiable=True)
    yield Case("real", _op("real"), COMPLEX, differentiable=True)
    yield Case("imag", _op("imag"), COMPLEX, differentiable=True)
    yield Case("conj", _op("conj"), COMPLEX, differentiable=True)
    yield Case("conj_f32", _op("conj"), EDGES, differentiable=True)
    yield Case("complex", _op("complex"), EDGES, EDGES[::-1], differentiable=True)
    yield Case("select", _op("select"), EDGES > 0, EDGES, EDGES[::-1], differentiable=True)
    yield Case("select_scalar", _op("select"), np.array(True), EDGES, EDGES[::-1], differentiable=True)
    yield Case("select_n_3", _op("select_n"), np.array([0, 1, 2, 5, -1, 1], np.int32), MILD, POSITIVE, ABOVE_ONE,
               differentiable=True)
    yield Case("clamp", _op("clamp"), MILD[::-1].copy(), POSITIVE - 2, MILD + 0.5, differentiable=True)
    yield Case("clamp_scalars", lambda lax: lambda x: lax.clamp(F32(-1), x, F32(2)), EDGES, differentiable=True)
    yield Case("clamp_i32", _op("clamp"), np.int32(-5), INTS, np.int32(50))
    numbers = np.array([NAN, INF, -INF, 0.0, -0.0, 1.6, -1.6, 300.7, -300.7, 1e20, -1e20, 0.4], F32)
    for dtype in (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16,
                  ml_dtypes.bfloat16, np.complex64):
        name = np.dtype(dtype).name
        yield Case(f"f32_to_{name}", _op("convert_element_type", new_dtype=dtype), numbers, differentiable=True)
        yield Case(f"i32_to_{name}", _op("convert_element_type", new_dtype=dtype), INTS)
        yield Case(f"u8_to_{name}", _op("convert_element_type", new_dtype=dtype), SMALL)
        yield Case(f"bool_to_{name}", _op("convert_element_type", new_dtype=dtype), BOOLS)
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        name = np.dtype(dtype).name
        yield Case(f"f32_to_{name}", _op("convert_element_type", new_dtype=dtype), MILD)
        yield Case(f"{name}_to_f32", _op("convert_element_type", new_dtype=F32), MILD.astype(dtype))
    powers = np.array([0x400000, 0x400001, 0x7FFFFF, 0x800000, 0xBFFFFF, 0xC00000, 0x7F3FFFFF, 0x7F400000], np.uint32)
    powers = np.concatenate([powers.view(F32), numbers, np.array([1, 3, 5, 0.75, 1e-45, -1e-45], F32)])
    yield Case("f32_to_float8_e8m0fnu", _op("convert_element_type", new_dtype=ml_dtypes.float8_e8m0fnu), powers)
    yield Case("i32_to_float8_e8m0fnu", _op("convert_element_type", new_dtype=ml_dtypes.float8_e8m0fnu), INTS)
    for dtype in (np.int32, np.uint32, np.int16, np.uint8):
        yield Case(f"bits_f32_{np.dtype(dtype).name}", _op("bitcast_convert_type", new_dtype=dtype), EDGES,
                   differentiable=True)
    yield Case("bits_join", _op("bitcast_convert_type", new_dtype=F32), np.arange(12, dtype=np.uint16).reshape(6, 2))
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (8, 23), (2, 1)):
        yield Case(f"reduce_precision_{exponent}_{mantissa}",
                   lambda lax, e=exponent, m=mantissa: lambda x: lax.reduce_precision(x, e, m),
                   np.concatenate([EDGES, MILD, np.array([65519.0, 65520.0, 6e-5, 5e-8], F32)]), differentiable=True)


CASES = list(_cases())
assert len({c.name for c in CASES}) == len(CASES)
