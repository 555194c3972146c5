"""References: arrays that a program changes in place.

A reference is read with `ref[i]`, written with `ref[i] = x` and added to with `ref.addupdate(x)` or
`ref[i] += x`. Reads and writes are primitives with effects on their first argument. Under
transformations a reference travels with another one that holds its tangent or cotangent, or gets a
mapped axis like any array (`ref_rules`); `discharge` turns programs with references into programs
without. Import all of it from `refs`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core import hooks
from ..core.arrays import backends
from ..core.arrays.array import Array
from ..core.arrays.moving import in_place_of
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, add_attributes_of_types, get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import AbstractRef, AbstractValue, ShapedArray, aval_rules
from ..core.types.effects import AccumEffect, Effects, ReadEffect, WriteEffect, no_effects
from ..core.types.typing import ArrayLike, DTypeLike, Index, PyTree, ShapeLike, SupportsShape
from .ref_indexing import NDIndexer, Transform, read, view_type, write
from .ref_views import BitcastTransform, ReshapeTransform, TransposeTransform

if TYPE_CHECKING:
    from ..core.programs.jaxpr import JaxprEqn
    from ..core.programs.layout import Doc
    from ..core.programs.text import Names, Settings


class _RefMeta(type):
    """`isinstance(x, jax.Ref)` holds for tracers of references, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or issubclass(type(instance), Tracer) and instance.is_ref()


class _Viewed:
    """What references and their views have in common: they are read, written, and looked at in other ways."""

    __slots__ = ()

    @property
    def at(self) -> _RefIndexer:
        return _RefIndexer(self)

    def __getitem__(self, index: Any) -> Any:
        return ref_get(self, index)  # type: ignore[arg-type]

    def __setitem__(self, index: Any, value: Any) -> None:
        ref_set(self, index, value)  # type: ignore[arg-type]

    def addupdate(self, value: Any, index: Any = ()) -> None:
        ref_addupdate(self, index if index != () else None, value)  # type: ignore[arg-type]

    def reshape(self, *shape: ShapeLike) -> TransformedRef:
        """A view in another shape, given as a tuple or as integers, of which one can be -1.

        Raises:
          TypeError: what is given is no shape.
          ValueError: one of another size.
        """
        sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return _viewed(self, lambda old, _: ReshapeTransform.make(sizes, old))

    def transpose(self, permutation: Sequence[int]) -> TransformedRef:
        """A view with the dimensions in another order. Raises ValueError for what is no permutation of them."""
        return _viewed(self, lambda shape, _: TransposeTransform.make(permutation, len(shape)))

    @property
    def T(self) -> TransformedRef:
        return _reversed(self)

    def bitcast(self, dtype: DTypeLike) -> TransformedRef:
        """A view of the bits as another dtype. Where that is narrower or wider, there are more or fewer rows.

        Raises:
          NotImplementedError: the width changes, and there are no rows.
          ValueError: the rows are not enough for whole elements.
        """
        return _viewed(self, lambda shape, old: BitcastTransform.make(dtype, shape, old))


class Ref(_Viewed, metaclass=_RefMeta):
    """A mutable array: `ref[...]` reads, `ref[...] = x` writes."""

    __slots__ = ("__weakref__", "_aval", "_value")
    __hash__ = object.__hash__

    def __init__(self, aval: AbstractRef, value: Any):
        self._aval = aval
        self._value = value

    @property
    def aval(self) -> AbstractRef:
        return self._aval

    @property
    def shape(self) -> tuple:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype

    @property
    def ndim(self) -> int:
        return len(self._aval.shape)

    @property
    def size(self) -> int:
        return self._aval.size

    @property
    def sharding(self) -> Any:
        return self._contents().sharding

    def _contents(self) -> Any:
        return self._value

    def _hold(self, value: Any) -> None:
        """New contents, as weakly typed as the first ones were, and spread as these."""
        weak = self._aval.inner_aval.weak_type  # type: ignore[attr-defined]
        if value.aval.weak_type != weak:
            value = hooks.lax.convert_element_type_p.bind(value, new_dtype=value.dtype, weak_type=weak, sharding=None)
        self._value = in_place_of(value, self._value) if backends.several else value

    @property
    def _refs(self) -> Any:
        """Where the contents are no array: the value of their type that consists of references."""
        return self._value

    def __len__(self) -> int:
        return len(self._aval.inner_aval)  # type: ignore[arg-type]

    def unsafe_buffer_pointer(self) -> int:
        return self._contents().unsafe_buffer_pointer()

    def __repr__(self) -> str:
        return "Ref" + repr(self._value).removeprefix("Array")


aval_rules[Ref] = lambda x: x._aval


class TransformedRef(_Viewed):
    """A view of a reference: `ref.at[i]`, `ref.reshape(-1)`, `ref.T`, `ref.bitcast(dtype)`, or several of these."""

    __slots__ = ("ref", "transforms")

    def __init__(self, ref: Any, transforms: Sequence[Transform]):
        self.ref = ref
        self.transforms = tuple(transforms)

    @property
    def type(self) -> AbstractRef:
        """The type of a reference to what the view shows."""
        aval = get_aval(self.ref)
        return aval.update(inner_aval=_shown(aval, self.transforms))

    @property
    def shape(self) -> tuple:
        return _shape_and_dtype(get_aval(self.ref), self.transforms)[0]

    @property
    def dtype(self) -> Any:
        return _shape_and_dtype(get_aval(self.ref), self.transforms)[1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def get(self, idx: Index = ()) -> Array:
        """What stands at an index."""
        return ref_get(self, idx)

    def set(self, value: ArrayLike, idx: Index = ()) -> None:
        """Writes at an index."""
        ref_set(self, idx, value)

    def swap(self, value: ArrayLike, idx: Index = ()) -> Array:
        """Writes at an index and gives what was there."""
        return ref_swap(self, idx, value)

    def __repr__(self) -> str:
        return f"TransformedRef(ref={self.ref!r}, transforms={self.transforms})"


def _no_aval(view: TransformedRef) -> NoReturn:
    raise TypeError(f"TransformedRefs are not allowed here: {view!r}. Pass the reference and take the view inside.")


aval_rules[TransformedRef] = _no_aval


class _RefIndexer:
    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref

    def __getitem__(self, index: Any) -> TransformedRef:
        ref, transforms = _view(self.ref, index)
        return TransformedRef(ref, transforms)


def _is_everything(index: Any) -> bool:
    if index is None or index is Ellipsis:
        return True
    return isinstance(index, tuple) and all(
        x is Ellipsis or (isinstance(x, slice) and x == slice(None)) for x in index)


def _parts(ref: Any) -> tuple[Any, AbstractRef, tuple[Transform, ...]]:
    """The reference itself, its type, and the transformations of a view."""
    base, transforms = (ref.ref, ref.transforms) if isinstance(ref, TransformedRef) else (ref, ())
    aval = get_aval(base)
    if not isinstance(aval, AbstractRef):
        raise ValueError(f"Can only read and write references, but got {base!r} of type {aval}.")
    return base, aval, transforms


def _shape_and_dtype(ref: AbstractRef, transforms: Sequence[Transform]) -> tuple[tuple[int, ...], Any]:
    """Of what a view shows. Types of libraries' own need no dtype."""
    inner: Any = ref.inner_aval
    return view_type(inner.shape, getattr(inner, "dtype", None), transforms)


def _view(ref: Any, index: Any) -> tuple[Any, tuple[Transform, ...]]:
    """The reference itself and the transformations of a view and one more index."""
    base, aval, transforms = _parts(ref)
    if _is_everything(index):
        return base, transforms
    return base, (*transforms, NDIndexer.make(index, _shape_and_dtype(aval, transforms)[0]))


def _viewed(ref: Any, make: Callable[[tuple, Any], Transform]) -> TransformedRef:
    """A view with one more transformation, which depends on the shape and dtype."""
    base, aval, transforms = _parts(ref)
    return TransformedRef(base, (*transforms, make(*_shape_and_dtype(aval, transforms))))


def _reversed(ref: Any) -> TransformedRef:
    return _viewed(ref, lambda shape, _: TransposeTransform(tuple(range(len(shape)))[::-1]))


# What users call


def new_ref(init_val: PyTree, *, memory_space: Hashable = None, kind: str | None = None) -> Ref:
    """A new reference that holds `init_val`.

    Args:
      init_val: an array or scalar.
      memory_space: where to keep it.
      kind: which kind of reference; None for an ordinary one.

    Raises:
      TypeError: the value is not an array.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> ref = jax.new_ref(jnp.zeros(2))
      >>> ref[0] = 5.0
      >>> ref[...]
      Array([5., 0.], dtype=float32)
    """
    if isinstance(get_aval(init_val), AbstractRef):
        raise TypeError("a reference cannot hold a reference")
    return new_ref_p.bind(init_val, memory_space=memory_space, kind=kind)


def empty_ref(ty: SupportsShape, memory_space: Hashable = None) -> Ref:
    """A new reference of the shape and dtype of `ty`; its contents are zeros until written."""
    if isinstance(ty, AbstractValue) and ty.is_high:
        return new_ref(_empty_value_p().bind(aval=ty), memory_space=memory_space)
    return new_ref(hooks.lax.full(ty.shape, 0, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """The contents of a reference, which must not be used afterwards."""
    return freeze_p.bind(ref)


def free_ref(ref: Ref) -> None:
    """Gives a reference's memory up; it must not be used afterwards."""
    freeze_p.bind(ref)


@api_boundary
def ref_get(ref: Ref | TransformedRef, idx: Index = None) -> Array:
    """Reads a reference (or view of one) at an index of integers, integer arrays and slices.

    Raises:
      ValueError: too many indices, or a concrete one out of bounds.
    """
    base, transforms = _view(ref, idx)
    leaves, structure = tree.tree_flatten(transforms)
    return get_p.bind(base, *leaves, tree=structure)


@api_boundary
def ref_swap(ref: Ref | TransformedRef, idx: Index, value: ArrayLike, _function_name: str = "ref_swap") -> Array:
    """Writes a reference (or view of one) at an index and returns what was there.

    Raises:
      ValueError: the value's shape or dtype is not that of what the index selects.
    """
    base, transforms = _view(ref, idx)
    leaves, structure = tree.tree_flatten(transforms)
    return swap_p.bind(base, _to_dtype(get_aval(base), transforms, value), *leaves, tree=structure)


@api_boundary
def ref_set(ref: Ref | TransformedRef, idx: Index, value: ArrayLike) -> None:
    """Writes a reference (or view of one) at an index; see `ref_swap`."""
    ref_swap(ref, idx, value, "ref_set")


@api_boundary
def ref_addupdate(ref: Ref | TransformedRef, idx: Index, x: ArrayLike) -> None:
    """Adds to a reference (or view of one) at an index; see `ref_swap`."""
    base, transforms = _view(ref, idx)
    leaves, structure = tree.tree_flatten(transforms)
    addupdate_p.bind(base, x, *leaves, tree=structure)


def _to_dtype(ref: AbstractRef, transforms: Sequence[Transform], value: Any) -> Any:
    """Weakly typed values, and all integers, take the dtype of what a view shows where that is of their kind."""
    aval = get_aval(value)
    if not isinstance(ref.inner_aval, ShapedArray) or aval.is_high or isinstance(aval, AbstractRef):
        return value
    _, dtype = _shape_and_dtype(ref, transforms)
    if dtype == aval.dtype and not aval.weak_type or isinstance(dtype, dtypes.ExtendedDType):
        return value
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating) if aval.weak_type else (np.integer,)
    if not any(dtypes.issubdtype(aval.dtype, k) and dtypes.issubdtype(dtype, k) for k in kinds):
        return value
    if type(value) in (bool, float, complex) or type(value) is int and dtypes.iinfo(dtype).min <= value <= dtypes.iinfo(
            dtype).max:
        return np.asarray(value, dtype)
    return hooks.lax.convert_element_type(value, dtype)


# The primitives

new_ref_p = Primitive("new_ref")
new_ref_p.ref_primitive = True
freeze_p = Primitive("freeze")
get_p = Primitive("get")
swap_p = Primitive("swap")
addupdate_p = Primitive("addupdate", multiple_results=True)
addupdate_p.ref_primitive = True


def _get_text(eqn: JaxprEqn, names: Names, settings: Settings) -> Doc:
    """`result <- ref[i]`"""
    from ..core.programs.text import concat, pp_indexed, pp_vars, text

    ref, *leaves = eqn.invars
    result = pp_vars(eqn.outvars, names, settings, results=True)
    return concat([result, text(" <- "), pp_indexed(ref, leaves, eqn.params["tree"], names)])


def _swap_text(eqn: JaxprEqn, names: Names, settings: Settings) -> Doc:
    """`ref[i] <- value`, or `old, ref[i] <- ref[i], value`"""
    from ..core.programs.text import concat, pp_atom, pp_indexed, pp_vars, text

    ref, value, *leaves = eqn.invars
    (old,) = eqn.outvars
    place = pp_indexed(ref, leaves, eqn.params["tree"], names)
    new = pp_atom(value, names)
    if names.of_result(old) == "_":
        return concat([place, text(" <- "), new])
    result = pp_vars([old], names, settings)
    return concat([result, text(", "), place, text(" <- "), place, text(", "), new])


def _addupdate_text(eqn: JaxprEqn, names: Names, settings: Settings) -> Doc:
    """`ref[i] += value`"""
    from ..core.programs.text import concat, pp_atom, pp_indexed, text

    ref, value, *leaves = eqn.invars
    place = pp_indexed(ref, leaves, eqn.params["tree"], names)
    return concat([place, text(" += "), pp_atom(value, names)])


rules.texts.update({get_p: _get_text, swap_p: _swap_text, addupdate_p: _addupdate_text})


@new_ref_p.def_effectful_abstract_eval
def _new_ref_aval(x: Any, *, memory_space: Any, kind: Any) -> tuple[Any, Effects]:
    return AbstractRef(x, memory_space, kind), no_effects


@freeze_p.def_effectful_abstract_eval
def _freeze_aval(ref: Any) -> tuple[Any, Effects]:
    return ref.inner_aval, frozenset({ReadEffect(0)})


def _shown(ref: AbstractRef, transforms: Sequence[Transform]) -> Any:
    """The type of what a view shows."""
    inner: Any = ref.inner_aval
    if not transforms:
        return inner
    shape, dtype = _shape_and_dtype(ref, transforms)
    return inner.update(shape=shape, dtype=dtype, sharding=None)


def _selected(ref: AbstractRef, avals: Sequence[Any], structure: tree.PyTreeDef) -> Any:
    transforms = tree.tree_unflatten(structure, avals)
    if transforms and ref.is_high:
        return ref.inner_aval.ref_get_abstract_eval(ref, *avals, tree=structure)[0]  # type: ignore[attr-defined]
    return _shown(ref, transforms)


@get_p.def_effectful_abstract_eval
def _get_aval(ref: Any, *idx: Any, tree: Any) -> tuple[Any, Effects]:
    _check_ref("get", ref)
    return _selected(ref, idx, tree), frozenset({ReadEffect(0)})


@swap_p.def_effectful_abstract_eval
def _swap_aval(ref: Any, value: Any, *idx: Any, tree: Any) -> tuple[Any, Effects]:
    out = _check_value("swap", ref, value, idx, tree)
    return out, frozenset({WriteEffect(0)})


@addupdate_p.def_effectful_abstract_eval
def _addupdate_aval(ref: Any, value: Any, *idx: Any, tree: Any) -> tuple[Any, Effects]:
    _check_value("addupdate", ref, value, idx, tree)
    return [], frozenset({AccumEffect(0)})


def _check_ref(name: str, ref: Any) -> None:
    if not isinstance(ref, AbstractRef):
        raise ValueError(f"`{name}` must be called on `Ref` types: {ref}.")


def _check_value(name: str, ref: Any, value: Any, idx: Sequence[Any], structure: Any) -> Any:
    _check_ref(name, ref)
    if ref.is_high:
        return _check_high_value(name, ref, value, idx, structure)
    if not isinstance(ref.inner_aval, ShapedArray):
        return _check_type(name, ref, value)
    out = _selected(ref, idx, structure)
    if out.shape != value.shape:
        raise ValueError(f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {out.shape}. Value "
                         f"shape: {value.shape}. Transforms: {tree.tree_unflatten(structure, idx)}. ")
    if out.dtype != value.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {out.dtype}. Value dtype: {value.dtype}. ")
    return out


def _check_high_value(name: str, ref: Any, value: Any, idx: Sequence[Any], structure: Any) -> Any:
    if idx or structure.num_nodes > 1:
        return ref.inner_aval.ref_swap_abstract_eval(ref, value, *idx, tree=structure)[0]
    return _check_type(name, ref, value)


def _check_type(name: str, ref: Any, value: Any) -> Any:
    if value != ref.inner_aval:
        raise ValueError(f"Invalid type for `{name}`. Ref type: {ref.inner_aval}. Value type: {value}.")
    return value


def _on_device(x: Any, aval: Any) -> Any:
    """An array of the backend's; others are copied, since their owner may change them."""
    return x if hasattr(x, "aval") else backends.get().put(np.asarray(x, aval.dtype), aval, None)


@new_ref_p.def_impl
def _new_ref(x: Any, *, memory_space: Any, kind: Any) -> Ref:
    aval = get_aval(x)
    if aval.is_high:  # a value that consists of references
        parts = [new_ref(y, memory_space=memory_space, kind=kind) for y in aval.lower_val(x)]
        return Ref(AbstractRef(aval, memory_space, kind), aval.raise_val(*parts))
    return Ref(AbstractRef(aval, memory_space, kind), _on_device(x, aval))


@freeze_p.def_impl
def _freeze(ref: Ref) -> Any:
    return _whole(ref, freeze) if ref._aval.is_high else ref._contents()


def _whole(ref: Ref, read_part: Callable[[Ref], Any]) -> Any:
    """The value of a type of a library's own that a reference holds, read part by part."""
    inner = ref._aval.inner_aval
    return inner.raise_val(*map(read_part, inner.lower_val(ref._refs)))


def _high_view(ref: Ref, transforms: Sequence[Transform]) -> tuple[Any, Transform]:
    """What a type's methods for references get: a reference, or a view of it, and an index."""
    return TransformedRef(ref, transforms[:-1]) if len(transforms) > 1 else ref, transforms[-1]


def _transforms(structure: tree.PyTreeDef, idx: Sequence[Any]) -> Sequence[Transform]:
    return structure.unflatten(idx)


@get_p.def_impl
def _get(ref: Ref, *idx: Any, tree: Any) -> Any:
    if not isinstance(ref, Ref):
        _check_ref("get", get_aval(ref))
    if ref._aval.is_high:
        transforms = _transforms(tree, idx)
        return ref._aval.inner_aval.ref_get_to_lojax(  # type: ignore[attr-defined]
            *_high_view(ref, transforms)) if transforms else _whole(ref, ref_get)
    return read(ref._contents(), _transforms(tree, idx))


@swap_p.def_impl
def _swap(ref: Ref, value: Any, *idx: Any, tree: Any) -> Any:
    _check_value("swap", get_aval(ref), get_aval(value), [get_aval(x) for x in idx], tree)
    transforms = _transforms(tree, idx)
    if ref._aval.is_high:
        return _swap_high(ref, value, transforms)
    old = ref._contents()
    selected = read(old, transforms) if transforms else old
    new = write(old, transforms, value)
    ref._hold(_on_device(new, ref._aval.inner_aval))
    return selected


def _swap_high(ref: Ref, value: Any, transforms: Sequence[Transform]) -> Any:
    inner: Any = ref._aval.inner_aval
    if transforms:
        view, index = _high_view(ref, transforms)
        return inner.ref_swap_to_lojax(view, value, index)
    parts = zip(inner.lower_val(ref._refs), inner.lower_val(value), strict=True)
    return inner.raise_val(*(ref_swap(part, None, x) for part, x in parts))


@addupdate_p.def_impl
def _addupdate(ref: Ref, value: Any, *idx: Any, tree: Any) -> list[Any]:
    _check_value("addupdate", get_aval(ref), get_aval(value), [get_aval(x) for x in idx], tree)
    if ref._aval.is_high:
        old = _get(ref, *idx, tree=tree)
        _swap(ref, ref._aval.inner_aval.vspace_add(old, value), *idx, tree=tree)  # type: ignore[attr-defined]
        return []
    ref._hold(write(ref._contents(), _transforms(tree, idx), value, add=True))
    return []


def _on_parts(primitive: Primitive) -> None:
    """In programs on arrays, references to values of libraries' own types are many references, as at the top."""
    def expansion(x: Any, *args: Any, **params: Any) -> Any:
        return primitive.impl(x, *args, **params) if get_aval(x).is_high else NotImplemented

    rules.expansions[primitive] = expansion


for _primitive in (new_ref_p, freeze_p, get_p, swap_p, addupdate_p):
    _on_parts(_primitive)


def _empty_value(*, aval: Any) -> Any:
    return aval.raise_val(*(hooks.lax.full(a.shape, 0, a.dtype) for a in aval.lo_ty()))


@functools.cache
def _empty_value_p() -> Primitive:
    """A value of a library's own type, of zeros."""
    made = Primitive("empty_value")
    made.composed = True
    made.def_abstract_eval(lambda *, aval: aval)
    made.def_impl(_empty_value)
    rules.expansions[made] = _empty_value
    return made


# Tracers of references


AbstractRef.methods.update({
    "__getitem__": ref_get, "__setitem__": ref_set, "addupdate": Ref.addupdate, "at": _RefIndexer,
    "reshape": Ref.reshape, "transpose": Ref.transpose, "T": _reversed, "bitcast": Ref.bitcast,
    "get": TransformedRef.get, "set": TransformedRef.set, "swap": TransformedRef.swap})
add_attributes_of_types(("addupdate", "bitcast", "get", "set", "swap"))

__all__ = [
    "Ref", "TransformedRef", "addupdate_p", "empty_ref", "free_ref", "freeze", "freeze_p", "get_p", "new_ref",
    "new_ref_p", "ref_addupdate", "ref_get", "ref_set", "ref_swap", "swap_p",
]
