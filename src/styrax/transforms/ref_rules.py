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
from .batch import AxisData, bdim_at_front, broadcast, moveaxis
from .linear import CotangentRef, UndefinedPrimal, cotangent_reference
from .partial import bind_linear
from .ref_indexing import batch_indexers
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
    return (out, out_dim) if order is None else (hooks.lax.transpose(out, order), 0)


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
            value = hooks.lax.transpose(bdim_at_front(value, value_dim, axis_data.size), _inverse(order))
        out = primitive.bind(ref, value, *leaves, tree=structure)
        if primitive.multiple_results:
            return [], []
        return (out, out_dim) if order is None else (hooks.lax.transpose(out, order), 0)

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
