"""Primitives that are instances of a class of one's own: its parameters are attributes, its rules are methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types.avals import AbstractValue
from ..core.types.typing import Array, PyTree
from ..transforms import batching
from ..transforms.in_turn import by_device
from ..transforms.jvp import custom_lin_p
from ..transforms.linear import is_undefined_primal
from ..transforms.zeros import Zero, add_tangents, instantiate_zeros


class GradAccum:
    """What a pullback adds the cotangent of an argument to."""

    def __init__(self, aval: AbstractValue):
        self.aval = aval
        self.value: Any = Zero(aval)

    def accum(self, ct: Array) -> None:
        """Adds a part of the cotangent."""
        self.value = ct if type(self.value) is Zero else add_tangents(self.value, ct)

    def freeze(self) -> Array:
        """The sum of all parts."""
        return instantiate_zeros(self.value)


class NullAccum(GradAccum):
    """Stands for an argument whose cotangent nobody asks for."""

    def accum(self, ct: Array) -> None:
        pass


class VJPHiPrimitive:
    """A primitive whose instances are applied by calling them.

    A subclass sets `in_avals` (a tuple, one entry for each argument, containers of abstract values), `out_aval` (a
    container of them) and `params` (a dictionary; its entries become attributes), calls `super().__init__()`, and
    defines `expand(*args)`: what the primitive computes. Further methods say how transformations treat it:

    - `jvp(primals, tangents) -> (out, tangent)`
    - `vjp_fwd(nzs_in, *args) -> (out, residuals)` with either `vjp_bwd(residuals, ct, *accumulators)`, which adds
      cotangents with their `accum`, or `vjp_bwd_retval(residuals, ct)`, which returns one for each argument
    - `lin(nzs_in, *args) -> (out, residuals)` with `linearized(residuals, *tangents) -> tangent`
    - `transpose(ct, *args)`, for a linear primitive: an argument that it is linear in is an accumulator, which is given
      its cotangent; others are values
    - `batch(axis_data, args, in_dims) -> (out, out_dims)`, or `batch_dim_rule(axis_data, in_dims) -> out_dims`
    """

    in_avals: tuple[PyTree, ...]
    out_aval: PyTree
    params: dict[str, Any]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass {type(self).__name__} must set `self.{name}` before calling "
                                     "`super().__init__()`")
        kind = type(self)
        if all(getattr(kind, name) is not getattr(VJPHiPrimitive, name) for name in ("vjp_bwd", "vjp_bwd_retval")):
            raise AttributeError(f"{kind.__name__} defines both `vjp_bwd` and `vjp_bwd_retval`; it is to define one")
        self.in_avals_flat, self.in_tree = tree.tree_flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree.tree_flatten(self.out_aval)
        self.__dict__.update(self.params)

    def __call__(self, *args: PyTree) -> PyTree:
        leaves, in_tree = tree.tree_flatten(args)
        if in_tree != self.in_tree:
            raise TypeError(f"{type(self).__name__} takes arguments of structure {self.in_tree}, got {in_tree}")
        return self.out_tree.unflatten(_primitive_of(self).bind(*leaves, prim=self))

    def expand(self, *args: PyTree) -> PyTree:
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def jvp(self, primals: Sequence[PyTree], tangents: Sequence[PyTree]) -> tuple[PyTree, PyTree]:
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def vjp_fwd(self, nzs_in: Sequence[PyTree], /, *args: PyTree) -> tuple[PyTree, PyTree]:
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_fwd`")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: GradAccum) -> None:
        grads = self.vjp_bwd_retval(res, outgrad)
        for accumulator, grad in zip(tree.tree_leaves(arg_accums), tree.tree_leaves(grads), strict=True):
            accumulator.accum(grad)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Sequence[PyTree]:
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_bwd` or "
                                  "`vjp_bwd_retval`")

    def lin(self, nzs_in: Sequence[PyTree], *primals: PyTree) -> tuple[PyTree, PyTree]:
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin`")

    def linearized(self, residuals: PyTree, *tangents: PyTree) -> PyTree:
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `linearized`")

    def transpose(self, out_ct: PyTree, *maybe_accums: PyTree) -> None:
        raise NotImplementedError(f"for transpose support, subclass {type(self)} must implement `transpose`")

    def batch(self, axis_data: batching.AxisData, args: Sequence[PyTree], in_dims: Sequence[PyTree]
              ) -> tuple[PyTree, PyTree]:
        """By default `expand` is mapped, with the axis where `batch_dim_rule` wants it."""
        out_dim = self.batch_dim_rule(axis_data, in_dims)
        leaves, dims = tree.tree_leaves(args), tree.tree_leaves(in_dims, is_leaf=_is_none)
        outs, found = batching.batch_flat(self._expand_flat, leaves, dims, axis_data)
        wanted = tree.tree_leaves(out_dim, is_leaf=_is_none)
        if len(wanted) == 1:
            wanted *= len(outs)
        moved = [batching.matchaxis(axis_data.name, axis_data.size, d, w, x)
                 for x, d, w in zip(outs, found, wanted, strict=True)]
        return self.out_tree.unflatten(moved), self.out_tree.unflatten(wanted)

    def batch_dim_rule(self, axis_data: batching.AxisData, in_dims: Sequence[PyTree]) -> PyTree:
        raise NotImplementedError(f"for vmap support, subclass {type(self)} must implement `batch` or "
                                  "`batch_dim_rule`")

    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def _expand_flat(self, *leaves: Any) -> list[Any]:
        out, out_tree = tree.tree_flatten(self.expand(*self.in_tree.unflatten(leaves)))
        if out_tree != self.out_tree:
            raise TypeError(f"`expand` of {type(self).__name__} returned {out_tree}, `out_aval` says {self.out_tree}")
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]" if self.params else type(self).__name__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.in_avals_flat), tuple(self.params.items())))

    def __eq__(self, other: object) -> bool:
        return (type(other) is type(self) and self.in_avals_flat == other.in_avals_flat  # type: ignore[attr-defined]
                and self.in_tree == other.in_tree and self.params == other.params)  # type: ignore[attr-defined]


def _primitive_of(prim: VJPHiPrimitive) -> Primitive:
    return linearized_p if prim._defines("vjp_fwd") or prim._defines("lin") else differentiated_p


def _is_none(x: Any) -> bool:
    return x is None


def _lower(ctx: Any, *args: Any, prim: VJPHiPrimitive) -> list[Any]:
    return ctx.inline(trace_to_jaxpr(prim._expand_flat, prim.in_avals_flat), *args)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, prim: VJPHiPrimitive) -> tuple[list[Any], list[Any]]:
    given = [prim.in_tree.unflatten(list(map(instantiate_zeros, xs))) for xs in (primals, tangents)]
    out, tangent = prim.jvp(*given)
    return tree.tree_leaves(out), tree.tree_leaves(tangent)


def _transpose(cts: Sequence[Any], *args: Any, prim: VJPHiPrimitive) -> list[Any]:
    given = [GradAccum(x.aval.to_cotangent_aval()) if is_undefined_primal(x) else x for x in args]
    prim.transpose(prim.out_tree.unflatten(map(instantiate_zeros, cts)), *prim.in_tree.unflatten(given))
    return [x.value if type(x) is GradAccum else None for x in given]


def _batch(axis_data: batching.AxisData, args: Sequence[Any], dims: Sequence[int | None], *,
           prim: VJPHiPrimitive) -> tuple[list[Any], Sequence[int | None]]:
    if axis_data.devices and not (prim._defines("batch") or prim._defines("batch_dim_rule")):
        primitive = _primitive_of(prim)
        return by_device(axis_data, lambda *xs: primitive.bind(*xs, prim=prim), args, dims)
    out, out_dims = prim.batch(axis_data, prim.in_tree.unflatten(args), prim.in_tree.unflatten(dims))
    leaves = tree.tree_leaves(out)
    found = tree.tree_leaves(out_dims, is_leaf=_is_none)
    return leaves, found * len(leaves) if len(found) == 1 else found


def _linearize(nonzero: Sequence[bool], *primals: Any, prim: VJPHiPrimitive
               ) -> tuple[list[Any], list[bool], Any, Callable[..., list[Any]]]:
    nzs_in, args = prim.in_tree.unflatten(nonzero), prim.in_tree.unflatten(primals)
    by_map = prim._defines("lin")
    out, kept = prim.lin(nzs_in, *args) if by_map else prim.vjp_fwd(nzs_in, *args)
    outs = tree.tree_leaves(out)
    residuals, res_tree = tree.tree_flatten(kept)
    avals = [get_aval(x).to_tangent_aval() for x in primals]

    def pull(res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        sums = [(GradAccum if nz else NullAccum)(a) for nz, a in zip(nonzero, avals, strict=True)]
        prim.vjp_bwd(res_tree.unflatten(res), prim.out_tree.unflatten(cts), *prim.in_tree.unflatten(sums))
        return [s.value for s in sums]

    def linear(res: Sequence[Any], *tangents: Any) -> list[Any]:
        if by_map:
            given = prim.in_tree.unflatten(list(map(instantiate_zeros, tangents)))
            return tree.tree_leaves(prim.linearized(res_tree.unflatten(res), *given))
        return custom_lin_p.bind(
            *res, *(t for t in tangents if type(t) is not Zero), num_res=len(res), nonzero=tuple(nonzero), bwd=pull,
            symbolic_zeros=False, out_avals=tuple(get_aval(x).to_tangent_aval() for x in outs))

    return outs, [True] * len(outs), residuals, linear


def _primitive() -> Primitive:
    made = Primitive("call_hi_primitive", multiple_results=True)
    made.def_abstract_eval(lambda *_, prim: prim.out_avals_flat)
    made.def_impl(lambda *args, prim: prim._expand_flat(*args))
    made.composed = True
    rules.loops[made] = rules.stablehlos[made] = _lower
    rules.expansions[made] = lambda *args, prim: prim._expand_flat(*args)
    rules.jvps[made] = _jvp
    rules.transposes[made] = _transpose
    rules.fancy_batchers[made] = _batch
    return made


differentiated_p = _primitive()  # its derivative comes from `jvp` alone
linearized_p = _primitive()
rules.linearizations[linearized_p] = _linearize
