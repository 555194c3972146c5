"""Types, numbers and arrays as MLIR writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ELEMENT_TYPES = {
    "bool": "i1",
    "int2": "i2",
    "int4": "i4",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint2": "ui2",
    "uint4": "ui4",
    "uint8": "ui8",
    "uint16": "ui16",
    "uint32": "ui32",
    "uint64": "ui64",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float0": "i1",
}


_LISTED = 100  # so many elements are listed; of larger arrays the bytes are
_SIGNIFICANDS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}  # bits


def element_type(dtype: Any) -> str:
    """MLIR's name of a dtype's elements, such as `f32` or `complex<f64>`."""
    name = "float0" if dtype == np.dtype([("float0", "V")]) else getattr(dtype, "name", str(dtype))
    try:
        return ELEMENT_TYPES[name]
    except KeyError:
        pass
    if isinstance(dtype, np.dtype) and dtype.itemsize == 0:
        return "i1"
    raise TypeError(f"arrays of {dtype} have no StableHLO type")


def dense_text(array: np.ndarray) -> str:
    """The `dense<…>` text of an array's elements; an array of equal elements is printed once."""
    if array.size == 0:
        return "dense<>"
    if array.size > 1:
        flat = np.ascontiguousarray(array).reshape(-1)
        raw = flat.view(np.uint8).reshape(flat.size, -1) if array.dtype.itemsize else None
        if raw is not None and (raw == raw[0]).all():
            array = flat[0]
        elif array.size <= _LISTED and array.dtype.itemsize:
            return f"dense<{_nested(array)}>"
        else:
            return f'dense<"0x{flat.tobytes().hex().upper()}">'
    return f"dense<{_scalar_text(array.reshape(()))}>"


def layout_text(dims: Sequence[int]) -> str:
    return f"{dense_text(np.asarray(dims, np.int64))} : tensor<{len(dims)}xindex>"


def attribute_text(value: Any) -> str:
    """A value as an MLIR attribute: of a number with its type, of an array `dense`, of a dictionary in braces.

    Raises TypeError for what has no such form.
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode()
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {attribute_text(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(attribute_text, value)) + "]"
    if isinstance(value, np.ndarray):
        shape = "".join(f"{d}x" for d in value.shape)
        array = value if value.dtype.itemsize else np.zeros(value.shape, np.bool_)
        return f"{dense_text(array)} : tensor<{shape}{element_type(array.dtype)}>"
    if isinstance(value, (int, float, np.generic)):
        array = np.asarray(value)
        return f"{_scalar_text(array)} : {element_type(array.dtype)}"
    raise TypeError(f"No attribute handler defined for type: {type(value)}")


_NOTES = "mhlo.frontend_attributes = "


def with_frontend_attributes(line: str, notes: Mapping[str, str | int | float | bool]) -> str:
    """An operation's text with notes for compilers added to its attributes."""
    head, _, types = line.rpartition(" : (")
    before, noted, old = head.rpartition(_NOTES)
    kept = re.findall(r'[{ ]("?[^"=]+"?) = ("(?:[^"\\]|\\.)*")', old[:old.index("}") + 1]) if noted else []
    texts = {name if name.isidentifier() else attribute_text(name):
             attribute_text(str(note).lower() if isinstance(note, bool) else str(note)) for name, note in notes.items()}
    listed = ", ".join(f"{name} = {text}" for name, text in sorted({**dict(kept), **texts}.items()))
    if noted:
        head = f"{before}{_NOTES}{{{listed}}}{old[old.index('}') + 1:]}"
    elif head.endswith("}"):
        head = f"{head[:-1]}, {_NOTES}{{{listed}}}}}"
    else:
        head = f"{head} {{{_NOTES}{{{listed}}}}}"
    return f"{head} : ({types}"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _scalar_text(array)
    return "[" + ", ".join(_nested(a) for a in array) + "]"


def _scalar_text(array: np.ndarray) -> str:
    name = array.dtype.name
    if name == "bool":
        return "true" if array else "false"
    if array.dtype.kind == "c":
        return f"({_scalar_text(array.real)},{_scalar_text(array.imag)})"
    if "int" in name:
        return str(int(array))
    number = float(array)
    if np.isfinite(number):
        digits, first = _digits(number, 6)
        short = f"{'-' * (str(number)[0] == '-')}{digits[0]}.{digits[1:]:0<6}e{first:+03d}"
        if array.dtype.type(float(short)) == array:
            return short
        if name in _SIGNIFICANDS and (decimal := _decimal(number, 2 + _SIGNIFICANDS[name] * 59 // 196)):
            return decimal
    return "0x" + array.tobytes()[::-1].hex().upper()


def _digits(number: float, count: int) -> tuple[str, int]:
    """At most so many digits of a number, and the power of ten of the first: rounded as LLVM does, which cuts most of
    what is too much off before it rounds."""
    numerator, denominator = abs(number).as_integer_ratio()
    halves = denominator.bit_length() - 1
    whole, last = numerator * 5**halves, -halves  # whole * 10**last is the number
    if (more := whole.bit_length() - (count * 196 + 58) // 59) > 0:
        whole, last = whole // 10**(more * 59 // 196), last + more * 59 // 196
    text = str(whole)
    if (more := len(text) - count) > 0:
        text, last = str(int(text[:count]) + (text[count] >= "5")), last + more
    return text.rstrip("0") or "0", last + len(text) - 1


def _decimal(number: float, count: int) -> str | None:
    """A number with so many digits that they tell it exactly, in the form that LLVM gives it; None for whole ones."""
    sign, (digits, first) = "-" * (number < 0), _digits(number, count)
    last = first - len(digits) + 1
    if last > 3 or first < -3:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{first:+d}"
    if last >= 0:
        return None
    whole = digits[:first + 1] if first >= 0 else "0"
    return f"{sign}{whole}.{'0' * (-first - 1)}{digits[max(first + 1, 0):]}"
