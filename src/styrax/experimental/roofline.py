"""Estimates of what a program costs: operations, and bytes moved to and from memory; nothing is run.

Each primitive has a rule, in the table that `register_roofline` fills. Costs come in two sums: "unfused", as if every
equation read its operands from memory and wrote its results there, and without that word, as if only matrix products
did and all else ran along with them (Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance
Model, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import lax
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from ..core.programs.primitive import Primitive
from ..core.programs.traits import Control
from ..core.tracing.trace import get_aval
from ..core.trees import tree, tree_paths
from ..core.types.avals import AbstractValue, ShapedArray
from ..core.types.typing import Function, Object, PyTree
from ..lax.reductions.convolution import conv_general_dilated_p
from ..lax.reductions.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from ..lax.reductions.reduce import reduce_sum_p
from ..transforms.looking import make_jaxpr
from . import interconnect


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand or result."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: AbstractValue) -> RooflineShape:
        """That of an abstract value, which has to be an array."""
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"Expected ShapedArray, got {type(aval)}.")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(math.prod(self.shape))

    @property
    def bytes(self) -> int:
        """The bytes of all elements; keys have none."""
        return self.size * self.dtype.itemsize if isinstance(self.dtype, np.dtype) else 0

    @classmethod
    def total_bytes(cls, avals: Sequence[AbstractValue]) -> int:
        """The bytes of all arrays."""
        return sum(cls.from_aval(a).bytes for a in avals)


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """Costs: operations, bytes to and from memory, bytes and hops between devices by mesh axis.

    `peak_hbm_bytes` is the most memory that values occupy at a time; of a sum it is the larger one.
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """No costs."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def joined(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
            return {axis: a.get(axis, 0) + b.get(axis, 0) for axis in {**a, **b}}

        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=joined(self.ici_bytes, other.ici_bytes),
            ici_latency=joined(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of its equation."""

    name_stack: Any
    primitive: Primitive
    avals_in: Sequence[AbstractValue]
    avals_out: Sequence[AbstractValue]
    jaxpr_eqn_ctx: Any
    mesh: Mesh | AbstractMesh | None
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


_rules: dict[Primitive, Callable[..., RooflineResult]] = {}


def register_roofline(prim: Primitive) -> Callable[[Function], Function]:
    """A decorator: gives a primitive its rule `rule(context, *shapes, **params) -> RooflineResult`."""

    def register(rule: Function) -> Function:
        _rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Says of a primitive that it costs nothing."""
    _rules[prim] = lambda *_, **__: RooflineResult.zeros()


# -- rules ----------------------------------------------------------------------------------------------

_CASTS = {lax.convert_element_type_p, lax.bitcast_convert_type_p, lax.reduce_precision_p, lax.copy_p}


def _moved(context: RooflineRuleContext) -> int:
    """The bytes of all operands and results."""
    return RooflineShape.total_bytes([*context.avals_in, *context.avals_out])


def _unfused(flops: int, moved: int) -> RooflineResult:
    return RooflineResult(unfused_flops=int(flops), unfused_hbm_bytes=int(moved))


def _elementwise(context: RooflineRuleContext, *_: RooflineShape, **__: Any) -> RooflineResult:
    return _unfused(sum(RooflineShape.from_aval(a).size for a in context.avals_out), _moved(context))


@register_roofline(lax.select_n_p)
def _select(context: RooflineRuleContext, which: RooflineShape, *cases: RooflineShape) -> RooflineResult:
    out = RooflineShape.from_aval(context.avals_out[0])
    return _unfused(out.size, which.bytes + out.bytes)


@register_roofline(lax.dot_general_p)
def _dot(context: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, dimension_numbers: Any,
         **_: Any) -> RooflineResult:
    (contracted, _rhs), _batch = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    flops = 2 * out.size * math.prod(lhs.shape[d] for d in contracted)
    moved = out.bytes + (0 if context.pin_lhs_in_vmem else lhs.bytes) + (0 if context.pin_rhs_in_vmem else rhs.bytes)
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _positions(size: int, window: int, out: int, stride: int, low: int, base: int, dilation: int) -> int:
    """How many elements of windows along one dimension are elements of the array, not padding or holes."""
    starts = np.arange(out, dtype=np.int64) * stride - low
    first = np.maximum(-(starts // dilation), 0)
    last = np.minimum(((size - 1) * base - starts) // dilation, window - 1)
    shared = math.gcd(dilation, base)
    period = base // shared  # of the taps that meet elements and not holes, beginning with `tap`
    tap = -starts // shared % period * pow(dilation // shared, -1, period) % period
    count = (last - tap) // period - (first - 1 - tap) // period
    return int(np.where((last >= first) & (starts % shared == 0), count, 0).sum())


@register_roofline(conv_general_dilated_p)
def _convolution(context: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, window_strides: Any,
                 padding: Any, lhs_dilation: Any, rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int,
                 batch_group_count: int, **_: Any) -> RooflineResult:
    """Counts products with elements of the array alone: neither with padding nor between dilated elements."""
    lhs_dims, rhs_dims, out_dims = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    count = (lhs.shape[lhs_dims[1]] // feature_group_count) * rhs.shape[rhs_dims[0]] * (
        lhs.shape[lhs_dims[0]] // batch_group_count)
    for i, (stride, (low, _high), base, dilation) in enumerate(
            zip(window_strides, padding, lhs_dilation, rhs_dilation, strict=True)):
        count *= _positions(lhs.shape[lhs_dims[2 + i]], rhs.shape[rhs_dims[2 + i]], out.shape[out_dims[2 + i]], stride,
                            low, base, dilation)
    return _unfused(2 * count, _moved(context))


@register_roofline(reduce_sum_p)
def _sum(context: RooflineRuleContext, x: RooflineShape, **_: Any) -> RooflineResult:
    return _unfused(x.size - RooflineShape.from_aval(context.avals_out[0]).size, _moved(context))


def _cumulative(context: RooflineRuleContext, x: RooflineShape, *, axis: int, **_: Any) -> RooflineResult:
    return _unfused(x.shape[axis] * (2 if context.primitive is cumlogsumexp_p else 1), _moved(context))


for _primitive in (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p):
    _rules[_primitive] = _cumulative


@register_roofline(lax.gather_p)
def _gather(context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, *, mode: Any, **_: Any
            ) -> RooflineResult:
    out = RooflineShape.from_aval(context.avals_out[0])
    checks = 0
    if lax.GatherScatterMode.from_any(mode) == lax.GatherScatterMode.FILL_OR_DROP:
        checks = 4 * indices.size + out.size  # compared with both bounds, both joined; then one choice for each element
    return _unfused(checks, 2 * out.bytes + indices.bytes)


def _scatter(context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, updates: RooflineShape, *,
             update_jaxpr: Jaxpr | None, **_: Any) -> RooflineResult:
    each = 0 if update_jaxpr is None else _costs(update_jaxpr, None, False, False).unfused_flops
    return _unfused(each * updates.size, 3 * updates.bytes + indices.bytes)


for _primitive in (lax.scatter_p, lax.scatter_add_p, lax.scatter_sub_p, lax.scatter_mul_p, lax.scatter_min_p,
                   lax.scatter_max_p):
    _rules[_primitive] = _scatter


# -- between devices ------------------------------------------------------------------------------------


def _between(context: RooflineRuleContext, names: Any, cost: Callable[[list[int]], interconnect.Cost],
             phases: int = 1) -> RooflineResult:
    """The costs of a collective over mesh axes, by the sizes of these: the same along each."""
    axes = names if isinstance(names, (tuple, list)) else (names,)
    axes = [n for n in axes if context.mesh is not None and n in context.mesh.shape]
    if not axes:
        return RooflineResult.zeros()
    moved, hops = cost([context.mesh.shape[n] for n in axes])  # type: ignore[union-attr]
    return RooflineResult(ici_bytes=dict.fromkeys(axes, phases * moved), ici_latency=dict.fromkeys(axes, phases * hops))


@register_roofline(lax.psum_p)
def _psum(context: RooflineRuleContext, x: RooflineShape, *, axes: Any, **_: Any) -> RooflineResult:
    """Sums are scattered, and gathered."""
    return _between(context, axes, lambda sizes: interconnect.ring(sizes, x.bytes // math.prod(sizes)), phases=2)


@register_roofline(lax.pmin_p)
@register_roofline(lax.pmax_p)
def _pmax(context: RooflineRuleContext, x: RooflineShape, *, axes: Any, **_: Any) -> RooflineResult:
    """As of one element."""
    return _between(context, axes, lambda sizes: interconnect.ring(sizes, x.dtype.itemsize))


@register_roofline(lax.all_gather_p)
def _all_gather(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any) -> RooflineResult:
    return _between(context, axis_name, lambda sizes: interconnect.ring(sizes, x.bytes))


@register_roofline(lax.reduce_scatter_p)
def _reduce_scatter(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any) -> RooflineResult:
    return _between(context, axis_name, lambda sizes: interconnect.ring(sizes, x.bytes // math.prod(sizes)))


@register_roofline(lax.all_to_all_p)
def _all_to_all(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any) -> RooflineResult:
    return _between(context, axis_name, lambda sizes: interconnect.exchange(sizes, x.bytes))


@register_roofline(lax.ppermute_p)
def _ppermute(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, perm: Any) -> RooflineResult:
    return _between(context, axis_name, lambda sizes: interconnect.permutation(sizes, x.bytes, perm))


# -- programs ---------------------------------------------------------------------------------------------


def _inner(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The programs that an equation runs; a loop's count once, as for one turn."""
    traits = eqn.primitive.traits
    if traits.program is not None:
        found = [traits.program(eqn.params)]
    elif traits.control is Control.COND:
        found = eqn.params["branches"]
    elif traits.control is not None or "jaxpr" in eqn.params:
        found = [v for v in eqn.params.values() if isinstance(v, (ClosedJaxpr, Jaxpr))]
    else:
        found = []
    yield from (p.jaxpr if isinstance(p, ClosedJaxpr) else p for p in found)


def _bytes(aval: AbstractValue) -> int:
    return RooflineShape.from_aval(aval).bytes if isinstance(aval, ShapedArray) else 0


def _equation(eqn: JaxprEqn, mesh: Any, pin_lhs: bool, pin_rhs: bool) -> RooflineResult:
    rule = _rules.get(eqn.primitive)
    if rule is None and eqn.primitive.traits.elementwise and eqn.primitive not in _CASTS:
        rule = _elementwise
    if rule is None and "callback" in eqn.params:
        avals = [*(v.aval for v in eqn.invars), *(v.aval for v in eqn.outvars)]
        return _unfused(0, sum(map(_bytes, avals)))
    if rule is None:
        total = RooflineResult.zeros()
        for jaxpr in _inner(eqn):
            total += _costs(jaxpr, mesh, pin_lhs, pin_rhs)
        return total
    context = RooflineRuleContext(
        name_stack=getattr(eqn.source_info, "name_stack", None), primitive=eqn.primitive,
        avals_in=[v.aval for v in eqn.invars], avals_out=[v.aval for v in eqn.outvars], jaxpr_eqn_ctx=eqn.ctx,
        mesh=mesh, pin_lhs_in_vmem=pin_lhs, pin_rhs_in_vmem=pin_rhs)
    return rule(context, *map(RooflineShape.from_aval, context.avals_in), **eqn.params)


def _costs(jaxpr: Jaxpr, mesh: Any, pin_lhs: bool, pin_rhs: bool) -> RooflineResult:
    """The costs of all equations, and the most that is alive between two of them."""
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if not isinstance(v, Literal)}
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)})
    alive = {v: _bytes(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)}
    total, peak = RooflineResult.zeros(), sum(alive.values())
    for i, eqn in enumerate(jaxpr.eqns):
        total += _equation(eqn, mesh, pin_lhs, pin_rhs)
        alive.update({v: _bytes(v.aval) for v in eqn.outvars})
        alive = {v: n for v, n in alive.items() if last.get(v, -1) > i}
        peak = max(peak, sum(alive.values()))
    return total + RooflineResult(peak_hbm_bytes=peak)


def _abstract(args: PyTree, dtype: Any = None) -> PyTree:
    """Arguments as shapes and dtypes, inexact ones of another dtype if one is given."""

    def one(x: Any) -> ShapeDtypeStruct:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return ShapeDtypeStruct(x.shape, x.dtype if dtype is None else dtype)
        aval = get_aval(x)
        return ShapeDtypeStruct(aval.shape, aval.dtype if dtype is None else dtype, weak_type=aval.weak_type)

    return tree.tree_map(one, args)


def roofline(f: Function, mesh: Mesh | AbstractMesh | None = None, in_specs: PyTree = None, out_specs: PyTree = None,
             *, pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, vjp: bool = False,
             print_jaxpr: bool = False) -> Callable[..., tuple[PyTree, RooflineResult]]:
    """A function of the same arguments, or of their shapes and dtypes, that gives what `f` costs.

    Args:
      f: a function of arrays.
      mesh, in_specs, out_specs: the mesh over which it runs, and how arguments and results are spread.
      pin_lhs_in_vmem, pin_rhs_in_vmem: whether the operands of matrix products are at hand and need not be read.
      vjp: whether the costs are those of pulling a cotangent back, in bfloat16.
      print_jaxpr: whether the program is printed.

    Returns:
      a function that gives `(shapes and dtypes of the results, costs)`.
    """

    def estimate(*args: Any) -> tuple[PyTree, RooflineResult]:
        local, axes, unused = _on_one_device(_abstract(args), mesh, in_specs, out_specs)
        closed, out = make_jaxpr(f, axis_env=axes, return_shape=True)(*local)
        if vjp:
            closed = _pullback(f, local, axes, unused)
        if print_jaxpr:
            print(closed)
        costs = _costs(closed.jaxpr, mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)
        return _on_all_devices(out, mesh, out_specs) if axes else out, costs

    return estimate


def _on_one_device(args: tuple[PyTree, ...], mesh: Any, in_specs: Any, out_specs: Any
                   ) -> tuple[tuple[PyTree, ...], list[tuple[Any, int]], list[tuple[Any, ...]]]:
    """The parts of arguments that a device has, the axes with their sizes, and for each leaf the axes that are used and
    along which it is the same: its cotangent is summed along these."""
    leaves, structure = tree.tree_flatten(args)
    if mesh is None or in_specs is None or out_specs is None:
        return args, [], [()] * len(leaves)
    specs = _by_leaf(in_specs, args)
    told = [s for s in tree.tree_leaves(out_specs) if isinstance(s, PartitionSpec)]
    own = [{n for e in s for n in axes_of(e)} for s in (*specs, *told)]
    used = [n for n in mesh.axis_names if any(n in names for names in own)]
    parts = [x.update(shape=NamedSharding(mesh, s).shard_shape(x.shape)) for x, s in zip(leaves, specs, strict=True)]
    unused = [tuple(n for n in used if n not in names) for names in own[:len(specs)]]
    return tree.tree_unflatten(structure, parts), list(mesh.shape.items()), unused


def _by_leaf(specs: Any, values: PyTree) -> list[PartitionSpec]:
    prefix = tuple(specs) if isinstance(specs, list) else specs
    found = tree_paths.broadcast_prefix(prefix, values, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec))
    return [PartitionSpec() if s is None else s for s in found]


def _on_all_devices(out: PyTree, mesh: Any, out_specs: Any) -> PyTree:
    """Results of which each device has such a part."""
    leaves, structure = tree.tree_flatten(out)
    whole = []
    for x, spec in zip(leaves, _by_leaf(out_specs, out), strict=True):
        parts = [math.prod(mesh.shape[n] for n in axes_of(e)) for e in spec]
        shape = [d * n for d, n in zip(x.shape, [*parts, *[1] * (x.ndim - len(parts))], strict=True)]
        whole.append(x.update(shape=tuple(shape), sharding=NamedSharding(mesh, spec)))
    return tree.tree_unflatten(structure, whole)


def _pullback(f: Function, args: tuple[PyTree, ...], axes: list[tuple[Any, int]], unused: list[tuple[Any, ...]]
              ) -> ClosedJaxpr:
    """The program from residuals and cotangents to cotangents."""
    from ..transforms.api import vjp

    found: list[ClosedJaxpr] = []

    def forward(*primals: Any) -> PyTree:
        outs, pull = vjp(f, *primals)

        def back(cts: PyTree) -> list[Any]:
            return [lax.psum(ct, names) if names else ct
                    for ct, names in zip(tree.tree_leaves(pull(cts)), unused, strict=True)]

        found.append(make_jaxpr(back, axis_env=axes)(_abstract(outs)))
        return outs

    make_jaxpr(forward, axis_env=axes)(*_abstract(args, np.dtype("bfloat16")))
    return found[0]


def roofline_and_grad(f: Function, mesh: Mesh | AbstractMesh, in_specs: PyTree, out_specs: PyTree, *,
                      pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, print_jaxpr: bool = False
                      ) -> Callable[..., tuple[PyTree, RooflineResult, RooflineResult]]:
    """As `roofline`, with the costs of the function and those of pulling a cotangent back."""
    options: dict[str, Object] = dict(pin_lhs_in_vmem=pin_lhs_in_vmem, pin_rhs_in_vmem=pin_rhs_in_vmem,
                                      print_jaxpr=print_jaxpr)

    def estimate(*args: Any) -> tuple[PyTree, RooflineResult, RooflineResult]:
        out, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        return out, forward, roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*args)[1]

    return estimate


__all__ = ["RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
           "register_standard_roofline", "roofline", "roofline_and_grad"]
