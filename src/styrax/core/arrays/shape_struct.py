"""What stands for an array where only its type and place matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..tracing.source import api_boundary
from ..tracing.trace import Tracer, get_aval
from ..types import dtypes
from ..types.avals import AbstractRef, AbstractValue, ShapedArray, aval_rules
from ..types.manual_axes import ManualAxisType
from . import mesh
from .devices import Sharding
from .layouts import AutoLayout, Format
from .shardings import NamedSharding, PartitionSpec


class ShapeDtypeStruct:
    """A shape and dtype standing for an array, as `eval_shape` returns and `jit(f).lower` accepts.

    Args:
      shape: sequence of integers.
      dtype: dtype-like.
      sharding: a sharding, a format, or a `PartitionSpec` over the mesh in force.
      weak_type: whether the dtype yields to others.
      manual_axis_type: what is known along axes of a `shard_map`.
      is_ref: whether it stands for a reference.

    Raises:
      ValueError: no dtype, or a sharding of more dimensions than the shape, or none at all.
      TypeError: a shape or dtype that is none, or a `PartitionSpec` where no mesh is in force.
    """

    __slots__ = ("_layout", "_sharding", "dtype", "is_ref", "manual_axis_type", "shape", "weak_type")
    shape: tuple[Any, ...]
    dtype: Any
    weak_type: bool
    manual_axis_type: ManualAxisType | None
    is_ref: bool
    _layout: Any
    _sharding: Any

    @api_boundary
    def __init__(self, shape: Sequence[Any], dtype: Any, *, sharding: Any = None, weak_type: bool = False,
                 manual_axis_type: ManualAxisType | None = None, is_ref: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        put = object.__setattr__
        array = ShapedArray(shape, dtype)
        put(self, "shape", array.shape)
        put(self, "dtype", array.dtype)
        layout = None
        if isinstance(sharding, Format):
            layout, sharding = sharding.layout, sharding.sharding
            if isinstance(layout, AutoLayout):
                raise TypeError("`Layout.AUTO` cannot be used in place of a device-local layout in a "
                                "`ShapeDtypeStruct`.")
        put(self, "_sharding", _checked(sharding, len(array.shape)))
        put(self, "_layout", layout)
        put(self, "weak_type", weak_type)
        if manual_axis_type is not None and not isinstance(manual_axis_type, ManualAxisType):
            raise TypeError("`manual_axis_type` argument passed to ShapeDtypeStruct should be of type "
                            f"`jax.sharding.ManualAxisType`. Got type {type(manual_axis_type)}")
        put(self, "manual_axis_type", manual_axis_type)
        put(self, "is_ref", is_ref)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        if name in ShapeDtypeStruct.__slots__:
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def sharding(self) -> Any:
        """Where the array is. TypeError for a `PartitionSpec` where no mesh is in force."""
        said = self._sharding
        if not isinstance(said, PartitionSpec):
            return said
        current = mesh.in_force()
        if current.empty:
            raise TypeError("When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. "
                            "Please use `jax.set_mesh` to set the mesh context.")
        return NamedSharding(current, said)

    @property
    def format(self) -> Format:
        """How the array lies in memory, and where."""
        return Format(self._layout, self.sharding)

    @staticmethod
    def like(value: Any) -> ShapeDtypeStruct:
        """The type of an array, or of anything that has a shape and dtype, and where it is if that is certain.

        Raises:
          TypeError: a value without a dtype.
        """
        if isinstance(value, ShapeDtypeStruct):
            return value
        duck = isinstance(value, AbstractValue) or type(value) not in aval_rules and not isinstance(value, Tracer)
        if duck and not (hasattr(value, "shape") and hasattr(value, "dtype")):
            raise TypeError(f"Cannot interpret value of type {type(value)} as an abstract array; it does not have a "
                            "dtype attribute")
        aval = value if duck else get_aval(value)
        known = not isinstance(value, Tracer) and getattr(value, "committed", False)  # of what is traced, types tell
        mat = getattr(aval, "mat", None)
        return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False),
                                sharding=value.format if known else getattr(aval, "given_sharding", None),
                                manual_axis_type=None if mat is None or mat.empty else mat)

    @property
    def size(self) -> Any:
        n: Any = 1
        for d in self.shape:
            n = n * d
        return n

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def _fields(self) -> dict[str, Any]:
        return {"shape": self.shape, "dtype": self.dtype,
                "sharding": self._sharding if self._layout is None else self.format, "weak_type": self.weak_type,
                "manual_axis_type": self.manual_axis_type, "is_ref": self.is_ref}

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with some of its parts replaced. ValueError for a sharding in place of a format."""
        fields = self._fields()
        said = changes.get("sharding", fields["sharding"])
        if self._layout is not None and isinstance(said, (Sharding, PartitionSpec)):
            raise ValueError(f"You are updating ShapeDtypeStruct with a {type(said)} when the original "
                             f"ShapeDtypeStruct had a concrete layout {fields['sharding']}: update it with a Format")
        fields.update({k: v for k, v in changes.items() if k in fields})
        return ShapeDtypeStruct(**fields)

    def __reduce__(self) -> Any:
        return _made, (self._fields(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self._sharding, self.weak_type, self.is_ref))

    def __repr__(self) -> str:
        dtype = "float0" if self.dtype == dtypes.float0 else self.dtype.name
        told = "".join(f", {name}={value}" for name, value in (self._fields() | {"sharding": self.sharding}).items()
                       if name not in ("shape", "dtype")
                       and value is not None and value is not False)
        if self._layout is not None:
            told += f", format={self._layout}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtype}{told})"


def _made(fields: dict[str, Any]) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(**fields)


def _checked(sharding: Any, ndim: int) -> Sharding | PartitionSpec | None:
    """What is said of where an array is."""
    if sharding is None:
        return None
    if not isinstance(sharding, (Sharding, PartitionSpec)):
        raise ValueError("sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or "
                         f"`jax.experimental.layout.Format`. Got {sharding} of type {type(sharding)}.")
    if isinstance(sharding, PartitionSpec):
        if len(sharding) > ndim:
            raise ValueError(f"PartitionSpec {sharding} is only valid for values of rank at least {len(sharding)}, but "
                             f"was applied to a value of rank {ndim}.")
        return sharding
    if isinstance(sharding, NamedSharding):
        sharding.check_compatible_aval((1,) * ndim)
    return sharding


def _aval(s: ShapeDtypeStruct) -> AbstractValue:
    known = s.manual_axis_type
    array = ShapedArray(s.shape, dtypes.canonicalize_dtype(s.dtype, allow_extended_dtype=True), s.weak_type,
                        sharding=s.sharding, vma=frozenset() if known is None else known.varying)
    return AbstractRef(array) if s.is_ref else array


aval_rules[ShapeDtypeStruct] = _aval
