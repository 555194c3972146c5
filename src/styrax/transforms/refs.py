"""References: arrays that a program changes in place.

A reference is read with `ref[i]`, written with `ref[i] = x` and added to with `ref.addupdate(x)` or
`ref[i] += x`. Reads and writes are primitives with effects on their first argument. Under
transformations a reference travels with another one that holds its tangent or cotangent, or gets a
mapped axis like any array. `discharge_closed` turns a program with references into one that threads
their contents as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import backends, dtypes, rules, tree
from ..core.avals import AbstractRef, ShapedArray, aval_rules
from ..core.effects import AccumEffect, Effects, ReadEffect, WriteEffect, no_effects
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, close_jaxpr
from ..core.primitive import Primitive
from ..core.staging import trace_to_jaxpr
from ..core.trace import Tracer, get_aval
from . import array_ops
from .batch import AxisData, bdim_at_front, broadcast, moveaxis
from .jit_rules import jit_p
from .linear import CotangentRef, UndefinedPrimal, cotangent_reference
from .memo import per_jaxpr
from .partial import bind_linear
from .ref_indexing import NDIndexer, Slice, batch_indexers, ds, read, transformed_shape, write
from .zeros import Zero, instantiate_zeros


class Ref:
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

    def __getitem__(self, index: Any) -> Any:
        return ref_get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        ref_set(self, index, value)

    def addupdate(self, value: Any, index: Any = ()) -> None:
        ref_addupdate(self, index if index != () else None, value)

    @property
    def at(self) -> _RefIndexer:
        return _RefIndexer(self)

    def __len__(self) -> int:
        return len(self._aval.inner_aval)

    def unsafe_buffer_pointer(self) -> int:
        return self._contents().unsafe_buffer_pointer()

    def __repr__(self) -> str:
        return "Ref" + repr(self._value).removeprefix("Array")

    def __str__(self) -> str:
        return str(self._value)


aval_rules[Ref] = lambda x: x._aval


class TransformedRef:
    """A view of a reference: `ref.at[i]`."""

    __slots__ = ("indexers", "ref")

    def __init__(self, ref: Any, indexers: Sequence[NDIndexer]):
        self.ref = ref
        self.indexers = tuple(indexers)

    @property
    def shape(self) -> tuple:
        return transformed_shape(get_aval(self.ref).shape, self.indexers)

    @property
    def dtype(self) -> Any:
        return get_aval(self.ref).dtype

    @property
    def at(self) -> _RefIndexer:
        return _RefIndexer(self)

    def __getitem__(self, index: Any) -> Any:
        return ref_get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        ref_set(self, index, value)

    def __repr__(self) -> str:
        return f"TransformedRef({self.ref!r}, {self.indexers})"


class _RefIndexer:
    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref

    def __getitem__(self, index: Any) -> TransformedRef:
        ref, indexers = _view(self.ref, index)
        return TransformedRef(ref, indexers)


def _is_everything(index: Any) -> bool:
    if index is None or index is Ellipsis:
        return True
    return isinstance(index, tuple) and all(
        x is Ellipsis or (isinstance(x, slice) and x == slice(None)) for x in index)


def _view(ref: Any, index: Any) -> tuple[Any, tuple[NDIndexer, ...]]:
    """The reference itself and the indexers of a view and one more index."""
    base, indexers = (ref.ref, ref.indexers) if isinstance(ref, TransformedRef) else (ref, ())
    aval = get_aval(base)
    if not isinstance(aval, AbstractRef):
        raise ValueError(f"Can only read and write references, but got {base!r} of type {aval}.")
    if _is_everything(index):
        return base, indexers
    return base, (*indexers, NDIndexer.make(index, transformed_shape(aval.shape, indexers)))


# What users call


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Any:
    """A new reference that holds `init_val`.

    Args:
      init_val: an array or scalar.
      memory_space: where to keep it.
      kind: which kind of reference; None for an ordinary one.

    Raises:
      TypeError: the value is not an array.
    """
    if isinstance(get_aval(init_val), AbstractRef):
        raise TypeError("a reference cannot hold a reference")
    return new_ref_p.bind(init_val, memory_space=memory_space, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Any:
    """A new reference of the shape and dtype of `ty`; its contents are zeros until written."""
    return new_ref(array_ops.lax.full(ty.shape, 0, ty.dtype), memory_space=memory_space)


def freeze(ref: Any) -> Any:
    """The contents of a reference, which must not be used afterwards."""
    return freeze_p.bind(ref)


def free_ref(ref: Any) -> None:
    """Gives a reference's memory up; it must not be used afterwards."""
    freeze_p.bind(ref)


def ref_get(ref: Any, idx: Any = None) -> Any:
    """Reads a reference (or view of one) at an index of integers, integer arrays and slices.

    Raises:
      ValueError: too many indices, or a concrete one out of bounds.
    """
    base, indexers = _view(ref, idx)
    leaves, structure = tree.tree_flatten(indexers)
    return get_p.bind(base, *leaves, tree=structure)


def ref_swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Writes a reference (or view of one) at an index and returns what was there.

    Raises:
      ValueError: the value's shape or dtype is not that of what the index selects.
    """
    base, indexers = _view(ref, idx)
    leaves, structure = tree.tree_flatten(indexers)
    return swap_p.bind(base, _to_dtype(base, value), *leaves, tree=structure)


def ref_set(ref: Any, idx: Any, value: Any) -> None:
    """Writes a reference (or view of one) at an index; see `ref_swap`."""
    ref_swap(ref, idx, value, "ref_set")


def ref_addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Adds to a reference (or view of one) at an index; see `ref_swap`."""
    base, indexers = _view(ref, idx)
    leaves, structure = tree.tree_flatten(indexers)
    addupdate_p.bind(base, _to_dtype(base, x), *leaves, tree=structure)


def _to_dtype(ref: Any, value: Any) -> Any:
    """Weakly typed values take the dtype of the reference where promotion allows it."""
    aval = get_aval(value)
    inner = get_aval(ref).inner_aval
    if not isinstance(inner, ShapedArray) or not aval.weak_type or isinstance(inner.dtype, dtypes.ExtendedDType):
        return value
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating)
    rank = [max(i for i, k in enumerate(kinds) if i == 0 or dtypes.issubdtype(d, k)) for d in (aval.dtype, inner.dtype)]
    if rank[0] > rank[1]:
        return value
    if type(value) in (bool, int, float, complex):
        return np.asarray(value, inner.dtype)
    return array_ops.lax.convert_element_type(value, inner.dtype)


# The primitives

new_ref_p = Primitive("new_ref")
new_ref_p.ref_primitive = True
freeze_p = Primitive("freeze")
get_p = Primitive("get")
swap_p = Primitive("swap")
addupdate_p = Primitive("addupdate", multiple_results=True)


@new_ref_p.def_effectful_abstract_eval
def _new_ref_aval(x: Any, *, memory_space: Any, kind: Any) -> tuple[Any, Effects]:
    return AbstractRef(x, memory_space, kind), no_effects


@freeze_p.def_effectful_abstract_eval
def _freeze_aval(ref: Any) -> tuple[Any, Effects]:
    return ref.inner_aval, frozenset({ReadEffect(0)})


def _selected(ref: AbstractRef, avals: Sequence[Any], structure: tree.PyTreeDef) -> ShapedArray:
    indexers = tree.tree_unflatten(structure, avals)
    inner = ref.inner_aval
    if not indexers:
        return inner  # type: ignore[return-value]
    return inner.update(shape=transformed_shape(inner.shape, indexers), sharding=None)


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
        raise ValueError(f"`{name}` must be called on a reference, but got {ref}.")


def _check_value(name: str, ref: Any, value: Any, idx: Sequence[Any], structure: Any) -> Any:
    _check_ref(name, ref)
    out = _selected(ref, idx, structure)
    if out.shape != value.shape:
        raise ValueError(f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {out.shape}. Value "
                         f"shape: {value.shape}. Transforms: {tree.tree_unflatten(structure, idx)}. ")
    if out.dtype != value.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value dtype: {value.dtype}. ")
    return out


def _on_device(x: Any, aval: Any) -> Any:
    """An array of the backend's; others are copied, since their owner may change them."""
    return x if hasattr(x, "aval") else backends.get().put(np.asarray(x, aval.dtype), aval, None)


@new_ref_p.def_impl
def _new_ref(x: Any, *, memory_space: Any, kind: Any) -> Ref:
    aval = get_aval(x)
    return Ref(AbstractRef(aval, memory_space, kind), _on_device(x, aval))


@freeze_p.def_impl
def _freeze(ref: Ref) -> Any:
    return ref._contents()


def _indexers(structure: tree.PyTreeDef, idx: Sequence[Any]) -> Sequence[NDIndexer]:
    return structure.unflatten(idx)


@get_p.def_impl
def _get(ref: Ref, *idx: Any, tree: Any) -> Any:
    return read(ref._contents(), _indexers(tree, idx))


@swap_p.def_impl
def _swap(ref: Ref, value: Any, *idx: Any, tree: Any) -> Any:
    _check_value("swap", ref._aval, get_aval(value), [get_aval(x) for x in idx], tree)
    indexers = _indexers(tree, idx)
    old = ref._contents()
    selected = read(old, indexers) if indexers else old
    new = write(old, indexers, value)
    ref._value = _on_device(new, ref._aval.inner_aval)
    return selected


@addupdate_p.def_impl
def _addupdate(ref: Ref, value: Any, *idx: Any, tree: Any) -> list[Any]:
    _check_value("addupdate", ref._aval, get_aval(value), [get_aval(x) for x in idx], tree)
    ref._value = write(ref._contents(), _indexers(tree, idx), value, add=True)
    return []


# Forward mode


def _jvp_new_ref(primals: Any, tangents: Any, *, memory_space: Any, kind: Any) -> Any:
    (x,), (t,) = primals, tangents
    ref = new_ref_p.bind(x, memory_space=memory_space, kind=kind)
    if get_aval(x).to_tangent_aval().dtype == dtypes.float0:
        return ref, Zero.from_primal_value(ref)
    # on a tape the tangent's reference belongs to the recorded program even while it holds zeros
    return ref, bind_linear(new_ref_p, instantiate_zeros(t), memory_space=memory_space, kind=kind)


def _jvp_freeze(primals: Any, tangents: Any) -> Any:
    out = freeze_p.bind(*primals)
    return out, Zero.from_primal_value(out) if type(tangents[0]) is Zero else freeze_p.bind(tangents[0])


def _jvp_get(primals: Any, tangents: Any, *, tree: Any) -> Any:
    out = get_p.bind(*primals, tree=tree)
    if type(tangents[0]) is Zero:
        return out, Zero.from_primal_value(out)
    return out, get_p.bind(tangents[0], *primals[1:], tree=tree)


def _tangent_of_ref(ref: Any, tangent: Any, value_tangent: Any) -> bool:
    """Whether the reference carries tangents. Raises where they would be lost."""
    if type(tangent) is not Zero:
        return True
    if type(value_tangent) is not Zero:
        raise Exception(
            "performing a set/swap operation with a differentiated value on a non-differentiated array reference of "
            f"type {get_aval(ref).str_short(short_dtypes=False)}. Move the array reference to be an argument of the "
            "differentiated function?")
    return False


def _jvp_swap(primals: Any, tangents: Any, *, tree: Any) -> Any:
    carries = _tangent_of_ref(primals[0], tangents[0], tangents[1])
    out = swap_p.bind(*primals, tree=tree)
    if not carries:
        return out, Zero.from_primal_value(out)
    return out, swap_p.bind(tangents[0], instantiate_zeros(tangents[1]), *primals[2:], tree=tree)


def _jvp_addupdate(primals: Any, tangents: Any, *, tree: Any) -> Any:
    carries = _tangent_of_ref(primals[0], tangents[0], tangents[1])
    addupdate_p.bind(*primals, tree=tree)
    if carries and type(tangents[1]) is not Zero:
        addupdate_p.bind(tangents[0], tangents[1], *primals[2:], tree=tree)
    return [], []


# Reverse mode: each operation on a tangent reference has its mirror on the cotangent reference


def _transpose_new_ref(ct: Any, init: Any, *, memory_space: Any, kind: Any) -> list[Any]:
    if not isinstance(init, UndefinedPrimal):
        return [None]
    return [Zero(init.aval.to_cotangent_aval()) if type(ct) is Zero else freeze_p.bind(ct)]


def _transpose_freeze(ct: Any, ref: Any) -> list[Any]:
    if type(ct) is not Zero:
        _accumulate(ref, ct, (), tree.tree_structure(()))
    return [None]


def _accumulate(ref: Any, ct: Any, idx: Sequence[Any], structure: Any) -> None:
    if getattr(ref, "exists", True) is False and not idx and structure.num_leaves == 0 and not len(
            structure.unflatten(())):
        ref.start(ct)
    else:
        addupdate_p.bind(cotangent_reference(ref), ct, *idx, tree=structure)


def _transpose_get(ct: Any, ref: Any, *idx: Any, tree: Any) -> list[Any]:
    if type(ct) is not Zero:
        _accumulate(ref, ct, idx, tree)
    return [None] * (1 + len(idx))


def _missing(ref: Any) -> bool:
    return getattr(ref, "exists", True) is False


def _transpose_swap(ct: Any, ref: Any, value: Any, *idx: Any, tree: Any) -> list[Any]:
    nothing = [None] * len(idx)
    if _missing(ref) and type(ct) is Zero:
        return [None, Zero(get_aval_of(value).to_cotangent_aval()), *nothing]
    ct_value = swap_p.bind(cotangent_reference(ref), instantiate_zeros(ct), *idx, tree=tree)
    return [None, ct_value if isinstance(value, UndefinedPrimal) else None, *nothing]


def _transpose_addupdate(cts: Any, ref: Any, value: Any, *idx: Any, tree: Any) -> list[Any]:
    nothing = [None] * len(idx)
    if not isinstance(value, UndefinedPrimal):
        return [None, None, *nothing]
    if _missing(ref):
        return [None, Zero(value.aval.to_cotangent_aval()), *nothing]
    return [None, get_p.bind(cotangent_reference(ref), *idx, tree=tree), *nothing]


def get_aval_of(x: Any) -> Any:
    return x.aval if isinstance(x, (UndefinedPrimal, CotangentRef)) else get_aval(x)


# Batching


def _batch_new_ref(axis_data: AxisData, args: Any, dims: Any, **params: Any) -> Any:
    (x,), (d,) = args, dims
    if d is None:
        x, d = broadcast(x, axis_data.size, 0), 0
    return new_ref_p.bind(x, **params), d


def _batched_index(ref_dim: int | None, idx: Sequence[Any], dims: Sequence[Any], structure: Any, size: Any) -> Any:
    indexers = structure.unflatten(idx)
    if not indexers:
        return [], structure, ref_dim, None
    new, out_dim, order = batch_indexers(indexers, ref_dim, structure.unflatten(dims), size)
    leaves, new_structure = tree.tree_flatten(tuple(new))
    return leaves, new_structure, out_dim, order


def _batch_get(axis_data: AxisData, args: Any, dims: Any, *, tree: Any) -> Any:
    ref, *idx = args
    leaves, structure, out_dim, order = _batched_index(dims[0], idx, dims[1:], tree, axis_data.size)
    out = get_p.bind(ref, *leaves, tree=structure)
    return (out, out_dim) if order is None else (array_ops.lax.transpose(out, order), 0)


def _batch_update(primitive: Primitive) -> Callable:
    def rule(axis_data: AxisData, args: Any, dims: Any, *, tree: Any) -> Any:
        ref, value, *idx = args
        ref_dim, value_dim, *idx_dims = dims
        if ref_dim is None:
            if value_dim is None and all(d is None for d in idx_dims):
                return primitive.bind(*args, tree=tree), None
            raise Exception(
                "performing a set/swap operation with vmapped value on an unbatched array reference of type "
                f"{get_aval(ref).str_short(short_dtypes=False)}. Move the array reference to be an argument to the "
                "vmapped function?")
        leaves, structure, out_dim, order = _batched_index(ref_dim, idx, idx_dims, tree, axis_data.size)
        if order is None:
            value = broadcast(value, axis_data.size, out_dim) if value_dim is None else \
                moveaxis(value, value_dim, out_dim)
        else:
            value = array_ops.lax.transpose(bdim_at_front(value, value_dim, axis_data.size), _inverse(order))
        out = primitive.bind(ref, value, *leaves, tree=structure)
        if primitive.multiple_results:
            return [], []
        return (out, out_dim) if order is None else (array_ops.lax.transpose(out, order), 0)

    return rule


def _inverse(order: Sequence[int]) -> list[int]:
    found = [0] * len(order)
    for i, p in enumerate(order):
        found[p] = i
    return found


def _batch_freeze(args: Any, dims: Any) -> Any:
    return freeze_p.bind(*args), dims[0]


rules.jvps.update({
    new_ref_p: _jvp_new_ref, freeze_p: _jvp_freeze, get_p: _jvp_get, swap_p: _jvp_swap, addupdate_p: _jvp_addupdate,
})
rules.transposes.update({
    new_ref_p: _transpose_new_ref, freeze_p: _transpose_freeze, get_p: _transpose_get, swap_p: _transpose_swap,
    addupdate_p: _transpose_addupdate,
})
rules.fancy_batchers.update({
    new_ref_p: _batch_new_ref, get_p: _batch_get, swap_p: _batch_update(swap_p),
    addupdate_p: _batch_update(addupdate_p),
})
rules.batchers[freeze_p] = _batch_freeze


# Discharging: references become values


def _discharge_get(in_avals: Any, out_avals: Any, x: Any, *idx: Any, tree: Any) -> Any:
    return [None] * (1 + len(idx)), read(x, tree.unflatten(idx))


def _discharge_swap(in_avals: Any, out_avals: Any, x: Any, value: Any, *idx: Any, tree: Any) -> Any:
    indexers = tree.unflatten(idx)
    return [write(x, indexers, value), None, *(None,) * len(idx)], read(x, indexers)


def _discharge_addupdate(in_avals: Any, out_avals: Any, x: Any, value: Any, *idx: Any, tree: Any) -> Any:
    return [write(x, tree.unflatten(idx), value, add=True), None, *(None,) * len(idx)], []


def _discharge_jit(in_avals: Any, out_avals: Any, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    new = discharge_closed(jaxpr)
    n = len(jaxpr.jaxpr.outvars)
    changed = [i for i, a in enumerate(jaxpr.in_avals) if isinstance(a, AbstractRef)]
    params = {
        **params,
        "out_shardings": params["out_shardings"] + tuple(params["in_shardings"][i] for i in changed),
        "out_layouts": params["out_layouts"] + tuple(params["in_layouts"][i] for i in changed),
    }
    outs = jit_p.bind(*args, jaxpr=new, **params)
    contents: list[Any] = [None] * len(args)
    for i, x in zip(changed, outs[n:], strict=True):
        contents[i] = x
    return contents, outs[:n]


rules.discharges.update({
    get_p: _discharge_get, swap_p: _discharge_swap, addupdate_p: _discharge_addupdate, jit_p: _discharge_jit,
})


@per_jaxpr
def discharge_closed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program without references.

    Each input that is a reference becomes its contents; after the results come the final contents of
    the inputs that are references, in order.
    """
    avals = [a.inner_aval if isinstance(a, AbstractRef) else a for a in closed.in_avals]
    if not has_refs(closed.jaxpr):
        return closed
    is_ref = [isinstance(a, AbstractRef) for a in closed.in_avals]

    def discharged(*args: Any) -> list[Any]:
        outs, contents = eval_discharged(closed.jaxpr, closed.consts, args)
        return [*outs, *(c for c, r in zip(contents, is_ref, strict=True) if r)]

    return trace_to_jaxpr(discharged, avals, closed.debug_info)


def has_refs(jaxpr: Jaxpr) -> bool:
    """Whether a program uses references at its own level or makes some, or passes some on."""
    found = jaxpr.cache.get("has_refs")
    if found is None:
        found = jaxpr.cache["has_refs"] = any(
            isinstance(v.aval, AbstractRef)
            for v in [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)])
        if not found:
            from ..core.jaxpr import subjaxprs

            found = jaxpr.cache["has_refs"] = any(map(has_refs, subjaxprs(jaxpr)))
    return found


def eval_discharged(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Runs a program on contents in place of references: its results, and every input's final contents."""
    env: dict[Var, Any] = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def value(a: Any) -> Any:
        return a.value if type(a) is Literal else env[a]

    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        ins = [value(a) for a in eqn.invars]
        if primitive is new_ref_p or primitive is freeze_p:
            env[eqn.outvars[0]] = ins[0]
            continue
        touches = any(isinstance(a.aval, AbstractRef) for a in eqn.invars)
        if touches or (primitive in rules.discharges and any(
                map(has_refs, _programs(eqn.params)))):
            rule = rules.discharges.get(primitive)
            if rule is None:
                raise NotImplementedError(f"No state discharge rule implemented for primitive: {primitive}")
            contents, out = rule([a.aval for a in eqn.invars], [v.aval for v in eqn.outvars], *ins, **eqn.params)
            for a, x in zip(eqn.invars, contents, strict=True):
                if x is not None:
                    env[a] = x
        else:
            funs, params = primitive.get_bind_params(eqn.params)
            out = primitive.bind(*funs, *ins, **params)
        if primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [value(a) for a in jaxpr.outvars], [env[v] for v in jaxpr.invars]


def _programs(params: dict[str, Any]) -> Any:
    from ..core.jaxpr import jaxprs_in_params

    return jaxprs_in_params(params)


def discharge_state(jaxpr: Jaxpr, consts: Sequence[Any], *,
                    should_discharge: bool | Sequence[bool] = True) -> tuple[Jaxpr, list[Any]]:
    """`discharge_closed` of a program and its constants, which may be abstract: `(new jaxpr, constants)`."""
    closed = discharge_closed(ClosedJaxpr(jaxpr, consts) if consts or jaxpr.constvars else close_jaxpr(jaxpr))
    return closed.jaxpr, closed.consts


# Compiled programs


def compile_with_contents(closed: ClosedJaxpr, compile_program: Callable[[ClosedJaxpr], Callable]) -> Callable:
    """A compiled program that takes references: it runs on their contents and puts new ones back."""
    program = compile_program(discharge_closed(closed))
    is_ref = [isinstance(a, AbstractRef) for a in closed.in_avals]
    num_outs = len(closed.jaxpr.outvars)

    def run(*args: Any) -> list[Any]:
        given = [x for x, r in zip(args, is_ref, strict=True) if r]
        if len({id(x) for x in given}) != len(given):
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but the same "
                f"reference appeared twice among the arguments of {closed.debug_info.func_src_info}.")
        outs = program(*(x._contents() if r else x for x, r in zip(args, is_ref, strict=True)))
        for ref, value in zip(given, outs[num_outs:], strict=True):
            ref._value = value
        return outs[:num_outs]

    return run


def check_results(closed: ClosedJaxpr, traced_for: str = "jit") -> None:
    """Raises ValueError where a traced function returns a reference."""
    jaxpr = closed.jaxpr
    for v in jaxpr.outvars:
        if isinstance(v.aval, AbstractRef):
            names = jaxpr.debug_info.arg_names
            where = "was created inside the function"
            if v in jaxpr.invars and jaxpr.invars.index(v) < len(names):
                where = f"was passed in as the argument {names[jaxpr.invars.index(v)]}"
            raise ValueError(
                f"function {jaxpr.debug_info.func_src_info} traced for {traced_for} returned a mutable array reference "
                f"of type {v.aval.str_short(short_dtypes=False)}, but mutable array references cannot be returned.\n\n"
                f"The returned mutable array {where}.")


# Tracers of references


def _tracer_addupdate(self: Any, value: Any, index: Any = None) -> None:
    ref_addupdate(self, index, value)


AbstractRef.methods.update({"__getitem__": ref_get, "__setitem__": ref_set, "at": _RefIndexer})
Tracer.addupdate = _tracer_addupdate  # type: ignore[attr-defined]

__all__ = [
    "AbstractRef", "NDIndexer", "Ref", "Slice", "TransformedRef", "addupdate_p", "discharge_closed", "discharge_state",
    "ds", "empty_ref", "free_ref", "freeze", "freeze_p", "get_p", "new_ref", "new_ref_p", "ref_addupdate", "ref_get",
    "ref_set", "ref_swap", "swap_p",
]
