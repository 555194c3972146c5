"""Abstract values: what is known of a value before the program runs.

An open class: arrays, references, tokens, and the types that users define.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import hooks
from . import dtypes
from .dims import Dim
from .manual_axes import ManualAxisType, Sums

if TYPE_CHECKING:
    from ..arrays.shardings import NamedSharding


class AbstractValue:
    """Base of all abstract values."""

    __slots__ = ()
    is_high = False
    has_qdd = False
    given_sharding: NamedSharding | None = None  # how arrays of the type are spread, where explicit sharding is in use

    def to_tangent_aval(self) -> AbstractValue:
        raise TypeError(f"{self} has no tangent space")

    def to_ct_aval(self) -> AbstractValue:
        """The type of cotangents."""
        return self.to_tangent_aval()

    def to_cotangent_aval(self) -> AbstractValue:
        """The type of cotangents, by its longer name."""
        return self.to_ct_aval()

    def at_least_vspace(self) -> AbstractValue:
        """The type of tangents, by its older name."""
        return self.to_tangent_aval()

    def strip_weak_type(self) -> AbstractValue:
        return self

    def normalize(self) -> AbstractValue:
        """The type of a value that programs are kept for: no weak one."""
        return self.strip_weak_type()

    # What stands for a value in a program of arrays: for most types the value itself

    def lo_ty(self) -> list[AbstractValue]:
        """The types of the arrays that a value consists of."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays that a value consists of."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that consists of these arrays."""
        (value,) = lo_vals
        return value

    def update(self, **changes: Any) -> AbstractValue:
        raise TypeError(f"{self} cannot be updated")

    def str_short(self, short_dtypes: bool = True, **_: Any) -> str:
        return str(self)


def _dim(d: Any) -> Any:
    """A dimension as it stands in shapes: a plain int, or a symbolic size left as it is."""
    if type(d) is int or type(d) is Dim:
        return d
    try:
        return int(d) if isinstance(d, (np.integer, bool)) else d.__index__()
    except Exception:
        return d


class ShapedArray(AbstractValue):
    """An array of a shape and dtype.

    `weak_type` marks values that came from Python scalars and yield to other dtypes in promotion.
    `given_sharding`, `vma` (varying mesh axes) and `memory_space` are None outside explicit sharding. `sums` are the
    axes of a `shard_map`'s mesh along which sums are still to be made, or were made; None where there are none.
    """

    __slots__ = ("shape", "dtype", "weak_type", "given_sharding", "vma", "sums", "memory_space", "_hash")

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        vma: frozenset = frozenset(),
        memory_space: Any = None,
        sums: Sums | None = None,
        manual_axis_type: ManualAxisType | None = None,
    ):
        self.shape = tuple(shape) if all(type(d) is int for d in shape) else tuple(map(_dim, shape))
        self.dtype: Any = dtype if isinstance(dtype, (np.dtype, dtypes.ExtendedDType)) else np.dtype(dtype)
        self.weak_type = weak_type
        self.given_sharding = None if sharding is None else _of_type(sharding, self.shape)
        self.vma = vma if manual_axis_type is None else manual_axis_type.varying
        self.sums = sums if manual_axis_type is None else manual_axis_type.sums
        self.memory_space = memory_space
        self._hash: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        n: Any = 1
        for d in self.shape:
            n = n * d
        return n

    @property
    def sharding(self) -> NamedSharding:
        """The sharding that was given, else: replicated over the mesh in force."""
        given = self.given_sharding
        return hooks.by_default(self.ndim) if given is None else given

    @property
    def mat(self) -> ManualAxisType:
        """What is known along axes of a `shard_map`."""
        if self.sums is None:
            return ManualAxisType(varying=self.vma)
        return ManualAxisType(varying=self.vma, unreduced=self.sums.unreduced, reduced=self.sums.reduced)

    manual_axis_type = mat

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapedArray:
        """The type with some of its parts replaced; that of another shape tells no sharding unless it is given."""
        fields = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": None if "shape" in changes else self.given_sharding,
            "vma": self.vma,
            "sums": self.sums,
            "memory_space": self.memory_space,
        }
        fields.update(changes)
        return ShapedArray(**fields)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        return self.update(weak_type=weak_type)

    def to_tangent_aval(self) -> ShapedArray:
        tangent = tangent_dtype(self.dtype)
        if tangent == self.dtype:
            return self
        return ShapedArray(self.shape, tangent, False, sharding=self.given_sharding, vma=self.vma, sums=self.sums)

    at_least_vspace = to_tangent_aval

    @property
    def cotangent_sharding(self) -> NamedSharding | None:
        """That of cotangents: along axes along which sums were made, they are still to be made, and the other way."""
        told = self.given_sharding
        if told is None or not (told.spec.unreduced or told.spec.reduced):
            return told
        return told.update(spec=told.spec.update(unreduced=told.spec.reduced, reduced=told.spec.unreduced))

    def to_ct_aval(self) -> ShapedArray:
        tangent, told = self.to_tangent_aval(), self.cotangent_sharding
        if told is self.given_sharding and self.sums is None:
            return tangent
        return tangent.update(sharding=told, sums=self.sums and Sums(self.sums.reduced, self.sums.unreduced))

    to_cotangent_aval = to_ct_aval

    def vspace_zero(self) -> Any:
        """The zero of the space of such arrays."""
        return hooks.zeros_like_aval(self)

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two such arrays."""
        return hooks.add_any(x, y)

    def dec_rank(self, size: Any, spec: int | None) -> AbstractValue:
        """The type of one example where axis `spec` is mapped."""
        return hooks.mapped_aval(spec, self)

    def inc_rank(self, size: Any, spec: int | None) -> AbstractValue:
        """The type of `size` examples along an axis `spec`."""
        return hooks.unmapped_aval(size, spec, self)

    def leading_axis_spec(self) -> int:
        """What stands for the first axis in `in_axes`."""
        return 0

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self.shape == other.shape  # type: ignore[attr-defined]
            and self.dtype == other.dtype  # type: ignore[attr-defined]
            and self.weak_type == other.weak_type  # type: ignore[attr-defined]
            and (self.given_sharding is other.given_sharding or _alike(self, other))  # type: ignore[attr-defined]
            and self.vma == other.vma  # type: ignore[attr-defined]
            and self.sums == other.sums  # type: ignore[attr-defined]
            and self.memory_space == other.memory_space  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        if self._hash is None:
            told = self.given_sharding
            if told is not None and hooks.is_replicated(told):
                told = None
            self._hash = hash((self.shape, self.dtype, self.weak_type, told, self.vma, self.sums))
        return self._hash

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False, **_: Any) -> str:
        name = dtypes.printed_dtype_name(self.dtype) if short_dtypes else _dtype_name(self.dtype)
        if getattr(self.memory_space, "name", None) == "Host":
            name += "<host>"
        told = self.given_sharding
        axes = "" if told is None and not self.vma and self.sums is None else self._axes_text()
        if told is None:
            return f"{name}[{','.join(map(str, self.shape))}]{axes}"
        mesh = f"({{Explicit: {told.mesh.explicit_axes}}})" if mesh_axis_types else ""
        return f"{name}[{','.join(hooks.sharding_text(told, self.shape))}]{axes}{mesh}"

    def _axes_text(self) -> str:
        """The axes along which values vary, are still to be summed, or were, as text: `{V:x, U:y}`."""
        unreduced, reduced = self.sums or Sums()
        if self.given_sharding is not None:
            spec = self.given_sharding.spec
            unreduced, reduced = unreduced | spec.unreduced, reduced | spec.reduced
        told = [f"{letter}:{hooks.axes_text(axes)}"
                for letter, axes in (("V", self.vma), ("U", unreduced), ("R", reduced)) if axes]
        return f"{{{', '.join(told)}}}" if told else ""

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short(short_dtypes=False)}"


def _of_type(sharding: Any, shape: tuple) -> NamedSharding | None:
    """What a type tells of a sharding; from the first time on, results of primitives are spread by their traits."""
    global explicit
    told = hooks.sharding_of_type(sharding, shape)
    if told is not None:
        explicit = True
    return told


manual = 0  # how many programs are being traced in which types tell along which mesh axes values vary
explicit = False  # whether explicit sharding is in use: some type tells a sharding, or a mesh with explicit axes is set


def _alike(x: Any, y: Any) -> bool:
    """Whether types tell the same of a sharding: which mesh an array is on says nothing where it is replicated."""
    x, y = x.given_sharding, y.given_sharding
    return x == y or hooks.is_replicated(x) and hooks.is_replicated(y)


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == dtypes.float0 else dtype.name


def tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents: itself for inexact ones, `float0` for integers and booleans."""
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.tangent_dtype() if hasattr(dtype, "tangent_dtype") else dtypes.float0
    return dtype if dtypes.issubdtype(dtype, np.inexact) else dtypes.float0


def stacked(aval: Any, size: Any, axis: int = 0, entry: Any = None) -> Any:
    """The type of `size` arrays along a new axis, which is spread over the mesh axes `entry`."""
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    told = getattr(aval, "given_sharding", None)
    if told is None:
        return aval.update(shape=shape)
    parts = told.spec.partitions
    return aval.update(shape=shape, sharding=told.update(
        spec=told.spec.update(partitions=(*parts[:axis], entry, *parts[axis:]))))


def unstacked(aval: Any, axis: int = 0) -> Any:
    """The type of one of the arrays along an axis."""
    shape = (*aval.shape[:axis], *aval.shape[axis + 1:])
    told = getattr(aval, "given_sharding", None)
    if told is None:
        return aval.update(shape=shape)
    parts = told.spec.partitions
    return aval.update(shape=shape, sharding=told.update(
        spec=told.spec.update(partitions=(*parts[:axis], *parts[axis + 1:]))))


class AbstractRef(AbstractValue):
    """A mutable reference to an array."""

    __slots__ = ("inner_aval", "memory_space", "kind")
    methods: dict[str, Callable[..., Any]] = {}  # of tracers of references: how they are indexed, read and written

    def __init__(self, inner_aval: AbstractValue, memory_space: Any = None, kind: Any = None):
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind

    @property
    def shape(self) -> tuple:
        return self.inner_aval.shape  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype  # type: ignore[attr-defined]

    @property
    def weak_type(self) -> bool:
        return False

    @property
    def is_high(self) -> bool:  # type: ignore[override]
        return self.inner_aval.is_high

    def lo_ty(self) -> list[AbstractValue]:
        return [AbstractRef(a, self.memory_space, self.kind) for a in self.inner_aval.lo_ty()]

    def lower_val(self, hi_val: Any) -> list[Any]:
        return self.inner_aval.lower_val(hi_val._refs) if self.is_high else [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        return hooks.Ref(self, self.inner_aval.raise_val(*lo_vals)) if self.is_high else lo_vals[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.inner_aval)  # type: ignore[arg-type]

    @property
    def size(self) -> Any:
        return self.inner_aval.size  # type: ignore[attr-defined]

    def to_tangent_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.to_tangent_aval(), self.memory_space, self.kind)

    to_cotangent_aval = to_ct_aval = at_least_vspace = to_tangent_aval

    def update(self, inner_aval: Any = None, memory_space: Any = None, **changes: Any) -> AbstractRef:
        inner = inner_aval if inner_aval is not None else self.inner_aval
        return AbstractRef(inner.update(**changes) if changes else inner,
                           memory_space if memory_space is not None else self.memory_space, self.kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AbstractRef)
            and self.inner_aval == other.inner_aval
            and self.memory_space == other.memory_space
        )

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def str_short(self, short_dtypes: bool = False, **_: Any) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.str_short(short_dtypes=short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)


class AbstractToken(AbstractValue):
    """The value that orders effectful equations."""

    __slots__ = ()

    def to_tangent_aval(self) -> AbstractToken:
        return self

    def str_short(self, short_dtypes: bool = True, **_: Any) -> str:
        return "Tok"

    __repr__ = str_short  # type: ignore[assignment]


abstract_token = AbstractToken()


class aval_property:
    """A property of traced values that their type has: a function of the value."""

    __slots__ = ("fget",)

    def __init__(self, fget: Callable[[Any], Any]):
        self.fget = fget


class aval_method:
    """A method of traced values that their type has: a function of the value and the arguments."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun


class MappingSpec:
    """What stands for mapped axes of a value of a library's own type, in `in_axes` and `out_axes`."""

    __slots__ = ()


# How a Python or NumPy value is seen by tracing: type -> function giving its abstract value.
aval_rules: dict[type, Callable[[Any], AbstractValue]] = {}

_shaped_cache: dict[Hashable, ShapedArray] = {}


def shaped(shape: tuple, dtype: Any, weak_type: bool = False) -> ShapedArray:
    """The interned `ShapedArray` of a shape of plain integers."""
    for d in shape:
        if type(d) is not int:
            return ShapedArray(shape, dtype, weak_type)
    key = (shape, dtype, weak_type)
    aval = _shaped_cache.get(key)
    if aval is None:
        if len(_shaped_cache) > 8192:
            _shaped_cache.clear()
        aval = _shaped_cache[key] = ShapedArray(shape, dtype, weak_type)
    return aval


narrow = frozenset(map(np.dtype, "?bBhHiIefF"))  # they are canonical with and without 64-bit types


def numpy_aval(x: Any) -> ShapedArray:
    """The abstract value of a NumPy array or scalar. TypeError where it has no numbers in it."""
    dtype = x.dtype
    if dtype in narrow:
        aval = _shaped_cache.get((x.shape, dtype, False))
        if aval is not None:
            return aval
    if dtype.kind in "OSUMmT":
        raise TypeError(f"Argument of dtype {dtype} is not a valid JAX type: it has no numbers in it.")
    dtypes.check_byte_order(dtype)
    return shaped(x.shape, dtypes.canonicalize_dtype(dtype))


def _python_scalar_aval(x: Any) -> ShapedArray:
    return shaped((), dtypes.python_scalar_dtype(type(x)), type(x) is not bool)


for _type in (bool, int, float, complex):
    aval_rules[_type] = _python_scalar_aval
numpy_types = frozenset((np.ndarray, *dtypes.numpy_scalar_types()))
for _dtype in (*numpy_types, np.void):  # (of void ones only float0)
    aval_rules[_dtype] = numpy_aval


def canonical_value(x: Any, *_: Any) -> np.ndarray:
    """A number or NumPy array in the dtype that it has as an array of ours."""
    aval: Any = aval_rules[type(x)](x)
    return np.asarray(x, dtype=aval.dtype)


# how values of a type become such; libraries that have types of their own add to this and to `aval_rules`
canonicalizers: dict[type, Callable[..., Any]] = dict.fromkeys(
    (bool, int, float, complex, np.ndarray, *dtypes.numpy_scalar_types()), canonical_value)


class TypedInt(int):
    """A weakly typed integer that a program holds, with the dtype that it had when it was traced."""

    dtype: np.dtype

    def __new__(cls, value: int, dtype: np.dtype) -> TypedInt:
        return _with_dtype(int.__new__(cls, value), dtype)


class TypedFloat(float):
    """A weakly typed real number that a program holds, with the dtype that it had when it was traced."""

    dtype: np.dtype

    def __new__(cls, value: float, dtype: np.dtype) -> TypedFloat:
        return _with_dtype(float.__new__(cls, value), dtype)


class TypedComplex(complex):
    """A weakly typed complex number that a program holds, with the dtype that it had when it was traced."""

    dtype: np.dtype

    def __new__(cls, value: complex, dtype: np.dtype) -> TypedComplex:
        return _with_dtype(complex.__new__(cls, value), dtype)


def _with_dtype(number: Any, dtype: np.dtype) -> Any:
    number.dtype = dtype
    return number


def typed_scalar(value: Any, dtype: np.dtype) -> Any:
    """A NumPy scalar as a Python number that is weakly typed and keeps its dtype."""
    kind: Any = TypedInt if dtype.kind in "iu" else TypedComplex if dtype.kind == "c" else TypedFloat
    return kind(value, dtype)


def typed(x: Any) -> Any:
    """A number as one that tells its dtype, for which functions of users may ask."""
    if type(x) not in (int, float, complex):
        return x
    aval: Any = aval_rules[type(x)](x)
    return typed_scalar(x, aval.dtype)


def as_bound(x: Any) -> Any:
    """A value as implementations of primitives get it: numbers and NumPy arrays have the dtypes that arrays have."""
    return canonical_value(x) if isinstance(x, (np.ndarray, np.generic)) else typed(x)


def _typed_repr(x: Any) -> str:
    return f"{type(x).__name__}({x}, dtype={x.dtype.name})"


def _typed_arguments(x: Any) -> tuple[Any, np.dtype]:
    plain: Any = type(x).__base__
    return plain(x), x.dtype  # for copies and pickles


for _typed in (TypedInt, TypedFloat, TypedComplex):
    aval_rules[_typed] = lambda x: shaped((), x.dtype, True)
    _typed.__repr__ = _typed_repr  # type: ignore[method-assign]
    setattr(_typed, "__getnewargs__", _typed_arguments)  # noqa: B010
TypedInt.__str__ = int.__repr__  # type: ignore[method-assign]
TypedFloat.__str__ = float.__repr__  # type: ignore[method-assign]
TypedComplex.__str__ = complex.__repr__  # type: ignore[method-assign]
