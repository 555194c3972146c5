"""The dtypes and the lattice along which they are promoted.

Nodes of the lattice are dtypes and, for weak types, the Python types int, float and complex.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache, lru_cache
from typing import Any

import ml_dtypes
import numpy as np


class TypePromotionError(ValueError):
    """No implicit promotion leads from the given dtypes to a common one."""


class extended(np.generic):
    """Scalar type that all extended dtypes fall under; for ``issubdtype``."""

    __module__ = "styrax.dtypes"  # where programs find the class, and what they print


class prng_key(extended):
    """Scalar type of all PRNG key dtypes; for ``issubdtype``."""

    __module__ = "styrax.dtypes"


class ExtendedDType:
    """A dtype that NumPy does not have, such as that of PRNG keys.

    Subclasses are immutable and hashable and give ``name``, ``itemsize`` and ``type``, their scalar
    type, a subclass of ``extended``.
    """

    __slots__ = ()
    type: type = extended

    @property
    def name(self) -> str:
        raise TypeError(f"{type(self).__name__} has no name")

    @property
    def itemsize(self) -> int:
        raise TypeError(f"{type(self).__name__} has no size")

    def tangent_dtype(self) -> Any:
        """The dtype of tangents of arrays of this dtype."""
        return float0

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


float0: np.dtype = np.dtype([("float0", np.void, 0)])  # of tangents of integers: no bytes, no values

# One row per dtype: name, short name, kind, bits. ml_dtypes' types are taken from there.
_ROWS = (
    ("bool", "bool", "b", 8),
    ("uint1", "u1", "u", 1),
    ("uint2", "u2", "u", 2),
    ("uint4", "u4", "u", 4),
    ("uint8", "u8", "u", 8),
    ("uint16", "u16", "u", 16),
    ("uint32", "u32", "u", 32),
    ("uint64", "u64", "u", 64),
    ("int1", "i1", "i", 1),
    ("int2", "i2", "i", 2),
    ("int4", "i4", "i", 4),
    ("int8", "i8", "i", 8),
    ("int16", "i16", "i", 16),
    ("int32", "i32", "i", 32),
    ("int64", "i64", "i", 64),
    ("float4_e2m1fn", "f4_e2m1fn", "f", 4),
    ("float6_e2m3fn", "f6_e2m3fn", "f", 6),
    ("float6_e3m2fn", "f6_e3m2fn", "f", 6),
    ("float8_e3m4", "f8_e3m4", "f", 8),
    ("float8_e4m3", "f8_e4m3", "f", 8),
    ("float8_e8m0fnu", "f8_e8m0fnu", "f", 8),
    ("float8_e4m3b11fnuz", "f8_e4m3b11fnuz", "f", 8),
    ("float8_e4m3fn", "f8_e4m3fn", "f", 8),
    ("float8_e4m3fnuz", "f8_e4m3fnuz", "f", 8),
    ("float8_e5m2", "f8_e5m2", "f", 8),
    ("float8_e5m2fnuz", "f8_e5m2fnuz", "f", 8),
    ("bfloat16", "bf16", "f", 16),
    ("float16", "f16", "f", 16),
    ("float32", "f32", "f", 32),
    ("float64", "f64", "f", 64),
    ("complex64", "c64", "c", 64),
    ("complex128", "c128", "c", 128),
)

by_name: dict[str, np.dtype] = {}
short_names: dict[Any, str] = {float0: "float0"}
kinds: dict[np.dtype, str] = {}
bits_of: dict[np.dtype, int] = {}
ml_kinds: dict[type, str] = {}  # scalar types that NumPy does not have -> their kind
for _name, _short_name, _code, _width in _ROWS:
    _scalar = getattr(ml_dtypes, _name, None)
    if _scalar is not None:
        ml_kinds[_scalar] = _code
    elif not hasattr(np, _name):
        continue  # an ml_dtypes older than the type
    _dtype = np.dtype(_scalar if _scalar is not None else _name)
    by_name[_name] = _dtype
    short_names[_dtype] = _short_name
    kinds[_dtype] = _code
    bits_of[_dtype] = _width

all_dtypes: tuple[np.dtype, ...] = tuple(by_name.values())
valid = frozenset(all_dtypes)
string_dtype = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else None

bool_ = by_name["bool"]
int8, int16, int32, int64 = (by_name[n] for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (by_name[n] for n in ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = (by_name[n] for n in ("float16", "float32", "float64"))
complex64, complex128 = by_name["complex64"], by_name["complex128"]
bfloat16 = ml_dtypes.bfloat16
small_ints = frozenset(d for d, bits in bits_of.items() if bits < 8 and kinds[d] in "iu")
small_floats = frozenset(d for d, bits in bits_of.items() if bits <= 8 and kinds[d] == "f")

to_32 = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
scalars_64: dict[type, np.dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}
scalars_32: dict[type, np.dtype] = {bool: bool_, int: int32, float: float32, complex: complex64}
weak_scalars: dict[type, type] = {int: int, float: float, complex: complex}
python_scalars = (bool, int, float, complex)


def _edges(strict: bool, x64: bool) -> dict[Hashable, set[Hashable]]:
    """The promotion lattice: node -> the nodes next above. Weak types are the nodes int, float, complex."""
    by_kind = {code: [d for d in all_dtypes if kinds[d] == code] for code in "biufc"}
    edges: dict[Hashable, set[Hashable]] = {d: set() for d in all_dtypes}
    edges[int] = {float, *by_kind["i"], *by_kind["u"]}
    edges[float] = {complex, *by_kind["f"]}
    edges[complex] = set(by_kind["c"])
    if strict:
        return edges
    edges[int] = {uint8, int8, *small_ints}
    edges[float] = {complex, *small_floats, np.dtype(bfloat16), float16}
    edges[complex] = {complex64}
    edges.update({
        bool_: {int},
        uint8: {uint16, int16},
        uint16: {uint32, int32},
        uint32: {uint64, int64 if x64 else int32},
        uint64: {float},
        int8: {int16},
        int16: {int32},
        int32: {int64},
        int64: {float},
        np.dtype(bfloat16): {float32},
        float16: {float32},
        float32: {float64, complex64},
        float64: {complex128},
        complex64: {complex128},
    })
    return edges


@cache
def _upper_bounds(strict: bool, x64: bool) -> dict[Hashable, frozenset[Hashable]]:
    edges = _edges(strict, x64)
    bounds: dict[Hashable, frozenset[Hashable]] = {}

    def above(node: Hashable) -> frozenset[Hashable]:
        if node not in bounds:
            bounds[node] = frozenset((node,)).union(*(above(n) for n in edges[node]))
        return bounds[node]

    for node in edges:
        above(node)
    return bounds


def _node_names(nodes: Iterable[Hashable]) -> str:
    names = tuple(n.name if isinstance(n, (np.dtype, ExtendedDType)) else str(n) for n in nodes)
    return f"({', '.join(_quoted(n) for n in names)}{',' if len(names) == 1 else ''})"


def _quoted(name: str) -> str:
    return f'"{name}"' if "'" in name else f"'{name}'"


def float0_error(operation: str) -> TypeError:
    """What is raised where an operation is given a `float0` array."""
    return TypeError(
        f"Called {operation} with a float0 array. float0s do not support any operations by design because they are not "
        "compatible with non-trivial vector spaces: they are what derivatives with respect to integers are made of. "
        "`np.zeros_like(x, dtype=float)` is an array of zeros of the same shape.")


@lru_cache(maxsize=8192)
def join(nodes: tuple[Hashable, ...], strict: bool, x64: bool) -> Hashable:
    """The least node above all of ``nodes``."""
    bounds = _upper_bounds(strict, x64)
    for node in nodes:
        if node == float0:
            raise float0_error("an operation")
        if node not in bounds:
            raise ValueError(f"dtype={node!r} is not a valid dtype for JAX type promotion.")
    common = frozenset.intersection(*(bounds[n] for n in nodes))
    for node in common:
        if bounds[node] == common:
            return node
    unique = tuple(dict.fromkeys(nodes))
    if strict:
        raise TypePromotionError(
            f"Input dtypes {_node_names(unique)} have no available implicit dtype promotion path when "
            "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output type, or "
            "set jax_numpy_dtype_promotion=standard."
        )
    message = f"Input dtypes {_node_names(unique)} have no available implicit dtype promotion path."
    example = None
    if any(n in small_floats for n in unique):
        bits = max(bits_of[d] for d in small_floats if d in unique)
        message += f" To avoid unintended promotion, {bits}-bit floats do not support implicit promotion."
        example = "float32"
    elif any(n in small_ints for n in unique):
        message += (
            " To avoid unintended promotion, 1-bit, 2-bit and 4-bit integers do not support implicit "
            "promotion."
        )
        example = "int32"
    if example:
        message += (
            " If you'd like your inputs to be promoted to another type, you can do so explicitly using e.g. "
            f"x.astype('{example}')"
        )
    raise TypePromotionError(message)


_KINDS: dict[str, Any] = {"i": int, "u": int, "f": float, "c": complex}
_WEAK = {d: _KINDS.get(kinds[d], d) for d in all_dtypes}


def _default(dtype: Any, x64: bool) -> Any:
    if kinds.get(dtype) == "u" and dtype not in small_ints:
        return uint64 if x64 else uint32
    node = _WEAK.get(dtype, dtype)
    return (scalars_64 if x64 else scalars_32)[node] if isinstance(node, type) else dtype


@lru_cache(maxsize=8192)
def join_typed(typed: tuple[tuple[Any, bool], ...], strict: bool, x64: bool) -> tuple[Any, bool]:
    types = [d for d, _ in typed]
    if any(isinstance(d, ExtendedDType) for d in types):
        if all(d == types[0] for d in types):
            return types[0], False
        outside = [d for d in types if isinstance(d, ExtendedDType)][-1]
        raise ValueError(f"dtype={outside!r} is not a valid dtype for JAX type promotion.")
    if len(typed) == 1 and not typed[0][1]:
        return types[0], False
    if (len(typed) == 1 or not strict) and all(w for _, w in typed):
        # Nothing decides for a dtype: the default one of the kind they have in common.
        found = join(tuple(types), False, x64)
        return _default(found, x64), found != bool_
    nodes = tuple(_WEAK.get(d, d) if w else d for d, w in typed)
    found = join(nodes, strict, x64)
    if isinstance(found, type):
        return (scalars_64 if x64 else scalars_32)[found], True
    return found, False
