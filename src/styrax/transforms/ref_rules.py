"""What transformations do to reads and writes of references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import hooks
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types import dtypes
from .batch import AxisData, broadcast, moveaxis
from .linear import CotangentRef, UndefinedPrimal, cotangent_reference
from .partial import bind_linear
from .ref_indexing import batch_view
from .ref_views import BitcastTransform
from .references import addupdate_p, freeze_p, get_p, new_ref_p, swap_p
from .zeros import Zero, instantiate_zeros

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


def _of_bits(structure: Any) -> bool:
    """Whether a view shows an array's bits, which have no slope."""
    return any(isinstance(x, BitcastTransform) for x in structure.unflatten([None] * structure.num_leaves))


def _jvp_get(primals: Any, tangents: Any, *, tree: Any) -> Any:
    out = get_p.bind(*primals, tree=tree)
    if type(tangents[0]) is Zero or _of_bits(tree):
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


def _clear(tangent: Any, value: Any, idx: Sequence[Any], structure: Any) -> None:
    """Tangents of what was written as bits: zeros."""
    if type(tangent) is not Zero:
        aval = get_aval(value)
        swap_p.bind(tangent, hooks.lax.full(aval.shape, 0, aval.dtype), *idx, tree=structure)


def _jvp_swap(primals: Any, tangents: Any, *, tree: Any) -> Any:
    if _of_bits(tree):
        out = swap_p.bind(*primals, tree=tree)
        _clear(tangents[0], primals[1], primals[2:], tree)
        return out, Zero.from_primal_value(out)
    carries = _tangent_of_ref(primals[0], tangents[0], tangents[1])
    out = swap_p.bind(*primals, tree=tree)
    if not carries:
        return out, Zero.from_primal_value(out)
    return out, swap_p.bind(tangents[0], instantiate_zeros(tangents[1]), *primals[2:], tree=tree)


def _jvp_addupdate(primals: Any, tangents: Any, *, tree: Any) -> Any:
    if _of_bits(tree):
        addupdate_p.bind(*primals, tree=tree)
        _clear(tangents[0], primals[1], primals[2:], tree)
        return [], []
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
    unread = _missing(ref)  # nothing reads what was written
    if unread and type(ct) is Zero:
        return [None, Zero(get_aval_of(value).to_cotangent_aval()), *nothing]
    if _of_bits(tree):  # zeros were written
        _clear(cotangent_reference(ref), value, idx, tree)
        return [None, None, *nothing]
    ct_value = swap_p.bind(cotangent_reference(ref), instantiate_zeros(ct), *idx, tree=tree)
    if not isinstance(value, UndefinedPrimal):
        return [None, None, *nothing]
    return [None, Zero(value.aval.to_cotangent_aval()) if unread else ct_value, *nothing]


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
    # in front, where loops that change the reference want it: it cannot be moved afterwards
    if d is None:
        x, d = broadcast(x, axis_data.size, 0), 0
    elif not get_aval(x).is_high:
        x, d = moveaxis(x, d, 0), 0
    return new_ref_p.bind(x, **params), d


def _batched_view(ref: Any, ref_dim: int | None, idx: Sequence[Any], dims: Sequence[Any], structure: Any,
                  size: Any) -> Any:
    """The leaves and the structure of a view with the mapped axis, and where that is in what it shows."""
    transforms = structure.unflatten(idx)
    if not transforms:
        return [], structure, ref_dim
    aval = get_aval(ref)
    shape = tuple(d for i, d in enumerate(aval.shape) if i != ref_dim)
    dtype = getattr(aval.inner_aval, "dtype", None)  # types of libraries' own need none
    new, dim = batch_view(transforms, shape, dtype, ref_dim, structure.unflatten(dims), size)
    return *tree.tree_flatten(new), dim


def _batch_get(axis_data: AxisData, args: Any, dims: Any, *, tree: Any) -> Any:
    ref, *idx = args
    leaves, structure, dim = _batched_view(ref, dims[0], idx, dims[1:], tree, axis_data.size)
    return get_p.bind(ref, *leaves, tree=structure), dim


def _batch_update(primitive: Primitive, operation: str) -> Callable:
    def rule(axis_data: AxisData, args: Any, dims: Any, *, tree: Any) -> Any:
        ref, value, *idx = args
        ref_dim, value_dim, *idx_dims = dims
        if ref_dim is None:
            alike = value_dim is None and all(d is None for d in idx_dims)
            if alike and (primitive is swap_p or axis_data.devices):
                out = primitive.bind(*args, tree=tree)
                return ([], []) if primitive.multiple_results else (out, None)
            raise Exception(  # additions count, so that those of all elements are not one
                f"performing {operation} operation with vmapped value on an unbatched array reference of type "
                f"{get_aval(ref).str_short(short_dtypes=False)}. Move the array reference to be an argument to the "
                "vmapped function?")
        leaves, structure, dim = _batched_view(ref, ref_dim, idx, idx_dims, tree, axis_data.size)
        value = broadcast(value, axis_data.size, dim) if value_dim is None else moveaxis(value, value_dim, dim)
        out = primitive.bind(ref, value, *leaves, tree=structure)
        return ([], []) if primitive.multiple_results else (out, dim)

    return rule


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
    new_ref_p: _batch_new_ref, get_p: _batch_get, swap_p: _batch_update(swap_p, "a set/swap"),
    addupdate_p: _batch_update(addupdate_p, "an addupdate"),
})
rules.batchers[freeze_p] = _batch_freeze
