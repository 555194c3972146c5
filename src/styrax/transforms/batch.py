"""Batching: one program on many examples, as the program runs.

A `BatchTrace` knows its mapped axis and gives every primitive's batching rule the arrays with the
positions of that axis in them. Values without the axis are left alone: they stay concrete, and what
is computed from them alone is computed once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays import by_device
from ..core.arrays.explicit import along
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.programs.rules import Table, batchers, fancy_batchers, not_mapped
from ..core.settings import config
from ..core.tracing.leak_check import refuse_leaks
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Trace, Tracer, eval_trace, extend_axis_env, get_aval, set_current_trace, state
from ..core.types import avals, dtypes
from ..core.types.avals import AbstractRef, AbstractToken, ShapedArray, as_bound, shaped, stacked, unstacked
from ..core.types.effects import NamedAxisEffect, per_device_effects
from ..core.types.typing import Dim, PyTree
from .alike import has_cotangents, keeps_alike, one_of
from .mapped_axis import AxisData
from .marks import Mark, mark_in, marked, marks_of_results, unmarked
from .memo import per_jaxpr
from .zeros import SymbolicZero, Zero

# Collectives: primitive -> function from its params to the names of the axes it works over.
axis_names_of: dict[Primitive, Callable[[dict[str, Any]], Sequence[Hashable]]] = {}

# Primitives that call Python: each device of a mesh does.
calls_of_devices: set[Primitive] = set()

# Primitives of functions with rules of the user's own, which may name mapped axes where the function does not.
custom_rules: set[Primitive] = set()

# Rules that want the axis even where no argument has it: (axis_size, axis_name, trace_type, args, dims, **params)
axis_batchers: Table = {}


class BatchTracer(Tracer):
    """A value that has the mapped axis at position `batch_dim` of `val`."""

    __slots__ = ("_aval", "batch_dim", "mark", "val")
    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, val: Any, batch_dim: int, mark: Mark = Mark.VARYING):
        self._trace = trace
        self.val = val
        self.batch_dim = batch_dim
        self.mark = mark
        self._aval: Any = None

    @property
    def aval(self) -> Any:
        aval = self._aval
        if aval is None:
            whole = get_aval(self.val)
            aval = self._aval = whole.dec_rank(self._trace.axis_data.size, self.batch_dim) if whole.is_high else (
                mapped_aval(self.batch_dim, whole))
            if self._trace.axis_data.varying:
                name, mark = self._trace.axis_data.name, self.mark
                if type(aval) is ShapedArray:
                    aval = self._aval = marked(aval, name, mark)
                elif isinstance(aval, AbstractRef) and type(aval.inner_aval) is ShapedArray:
                    aval = self._aval = aval.update(marked(aval.inner_aval, name, mark))
        return aval

    def origin(self) -> str:
        return self.val.origin() if isinstance(self.val, Tracer) else ""

    def __repr__(self) -> str:
        told = _by_device(self) if self._trace.axis_data.devices else None
        if told is not None:
            return told
        mapped = self.aval.str_short(short_dtypes=False)
        return f"VmapTracer(aval={mapped}, batched={get_aval(self.val).str_short(short_dtypes=False)})"


def _by_device(x: BatchTracer) -> str | None:
    """A value that is mapped over the devices of a mesh, as JAX shows it, where it is no other map's within."""
    inner: Any = x
    while type(inner) is BatchTracer and inner._trace.axis_data.devices:
        inner = inner.val
    if type(inner) is BatchTracer:
        return None
    if isinstance(inner, Tracer):
        return inner.shown_as(x.aval)
    return by_device.text(partial(_part, x)) if by_device.running.mesh is not None else None


def _part(x: Any, place: dict[Any, int]) -> Any:
    """What a device has of a value that runs at once, by its place along the axes."""
    if type(x) is not BatchTracer:
        return x
    with set_current_trace(eval_trace):
        return hooks.lax.index_in_dim(_part(x.val, place), place[x._trace.axis_data.name], x.batch_dim, keepdims=False)


def _has_custom_rules(jaxpr: Jaxpr) -> bool:
    """Whether a program calls functions with rules of the user's own."""
    found = jaxpr.cache.get(_has_custom_rules)
    if found is None:
        found = jaxpr.cache[_has_custom_rules] = any(
            eqn.primitive in custom_rules or any(map(_has_custom_rules, jaxprs_in_params(eqn.params)))
            for eqn in jaxpr.eqns)
    return found


def mapped_aval(axis: int | None, aval: Any) -> Any:
    """The abstract value of one example."""
    if axis is None:
        return aval
    if type(aval) is ShapedArray:
        shape = aval.shape[:axis] + aval.shape[axis + 1:]
        if aval.given_sharding is None and not aval.vma and aval.sums is None and aval.memory_space is None:
            return shaped(shape, aval.dtype, aval.weak_type)
        return unstacked(aval, axis)
    if isinstance(aval, AbstractRef):
        return aval.update(mapped_aval(axis, aval.inner_aval))
    return aval


def unmapped_aval(size: Any, axis: int | None, aval: Any, entry: Any = None) -> Any:
    """The abstract value of all examples, with the mapped axis at position `axis`, spread over mesh axes `entry`."""
    if axis is None or isinstance(aval, AbstractToken):
        return aval
    if isinstance(aval, AbstractRef):
        return aval.update(unmapped_aval(size, axis, aval.inner_aval, entry))
    if aval.is_high:
        return aval.inc_rank(size, axis)
    return stacked(aval, size, axis, entry)


class BatchTrace(Trace):
    """Runs batching rules on the `parent` trace."""

    __slots__ = ("axis_data", "parent", "tag", "_invalidated")

    def __init__(self, parent: Trace, axis_data: AxisData, tag: object = None):
        self.parent = parent
        self.axis_data = axis_data
        self.tag = object() if tag is None else tag  # what the traces of one `vmap` have in common
        self._invalidated = False

    def new_arg(self, val: Any, dim: int | None) -> Any:
        return val if dim is None else BatchTracer(self, val, dim)

    def to_pair(self, x: Any) -> tuple[Any, int | None]:
        """A value and the position of the mapped axis in it, None where it has none."""
        return self.to_marked(x)[:2]

    def to_marked(self, x: Any) -> tuple[Any, int | None, Mark]:
        """As `to_pair`, and what is known of the value along the axis."""
        if type(x) is BatchTracer and x._trace.tag is self.tag:
            return x.val, x.batch_dim, x.mark
        return x, None, Mark.VARYING

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        vals: list[Any] = []
        dims: list[int | None] = []
        mapped, alike = False, True
        tag = self.tag
        for x in args:
            if type(x) is BatchTracer and x._trace.tag is tag:
                vals.append(x.val)
                dims.append(x.batch_dim)
                mapped = True
                alike = alike and x.mark is Mark.REDUCED
            else:
                vals.append(x)
                dims.append(None)
        previous = state.trace
        state.trace = self.parent
        try:
            if not mapped and not primitive.ref_primitive and not self._names_axis(primitive, params):
                return self._noted(self.parent.process_primitive(primitive, tuple(vals), params))
            rule = batchers.get(primitive)
            across = self.axis_data.across
            if across is not None and primitive in axis_names_of and self._names_axis(primitive, params):
                out, out_dims = across.rule(self.axis_data, primitive, tuple(vals), tuple(dims), params)
            elif primitive in fancy_batchers:
                axis = self.axis_data._replace(alike=True) if mapped and alike else self.axis_data
                out, out_dims = fancy_batchers[primitive](axis, tuple(vals), tuple(dims), **params)
            elif primitive in axis_batchers:
                out, out_dims = axis_batchers[primitive](
                    self.axis_data.size, self.axis_data.name, None, tuple(vals), tuple(dims), **params)
            elif rule is not None:
                out, out_dims = rule(tuple(vals), tuple(dims), **params)
            elif self.axis_data.devices:
                out, out_dims = self._by_device(primitive, vals, dims, params)
            else:
                raise NotImplementedError(f"Batching rule for '{primitive}' not implemented")
        finally:
            state.trace = previous
        if self.axis_data.varying:
            marks = self._marks(primitive, args, params)
        elif mapped and alike and keeps_alike(primitive, params):
            return [*map(self._alike, out, out_dims)] if primitive.multiple_results else self._alike(out, out_dims)
        else:
            marks = Mark.VARYING
        if primitive.multiple_results:
            each = marks if isinstance(marks, list) else [marks] * len(out)
            return [self._noted(avals.typed(x)) if d is None else BatchTracer(self, x, d, m)
                    for x, d, m in zip(out, out_dims, each, strict=True)]
        return self._noted(avals.typed(out)) if out_dims is None else BatchTracer(self, out, out_dims, marks)

    def _noted(self, outs: Any) -> Any:
        """Results without the axis, which are known to be the devices' where these run at once."""
        if self.axis_data.devices and by_device.running.mesh is not None:
            for x in outs if isinstance(outs, list) else [outs]:
                by_device.note(x)
        return outs

    def _alike(self, x: Any, dim: int | None) -> Any:
        """A result that is the same for all examples: it has the axis if it may have cotangents, for their sake."""
        if dim is None or has_cotangents(get_aval(x)):
            return avals.typed(x) if dim is None else BatchTracer(self, x, dim, Mark.REDUCED)
        with set_current_trace(self.parent):
            return one_of(x, dim)

    def _marks(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        """What is known of all results along the axis; a list for those of programs."""
        mine = [x.mark if type(x) is BatchTracer and x._trace.tag is self.tag else None for x in args]
        return marks_of_results(primitive, self.axis_data.name, mine, args, params)

    def _by_device(self, primitive: Primitive, vals: Sequence[Any], dims: Sequence[int | None],
                   params: dict[str, Any]) -> tuple[Any, Any]:
        """A primitive that cannot be batched: on devices it need not be, each has an array as any other."""
        def call(*args: Any) -> Sequence[Any]:
            out = primitive.bind(*args, **params)
            return out if primitive.multiple_results else [out]

        out, out_dims = hooks.by_device(self.axis_data, call, vals, dims)
        return (out, out_dims) if primitive.multiple_results else (out[0], out_dims[0])

    def _names_axis(self, primitive: Primitive, params: dict[str, Any]) -> bool:
        """Whether a collective, or a program with collectives inside, works over the mapped axis.

        Over devices the same for calls of Python, and for rules of the user's own: a map is gone when they are run.
        """
        name, devices = self.axis_data.name, self.axis_data.devices
        if name is None and not devices:
            return False
        names = axis_names_of.get(primitive)
        if names is not None:
            return name in names(params)
        if devices and primitive in calls_of_devices:
            return True
        return primitive in fancy_batchers and any(
            NamedAxisEffect(name) in jaxpr.effects
            or devices and (per_device_effects.filter_in(jaxpr.effects) or _has_custom_rules(jaxpr))
            for jaxpr in jaxprs_in_params(params))

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        if self.parent.is_eval:
            return fun(*map(as_bound, args))
        vals, dims = self._unzip(args)
        mapped: list[Mark | None] = []
        with set_current_trace(self.parent):
            outs = self.parent.process_custom_jvp_call(
                primitive, self._batched(fun, dims, mapped), self._batched_jvp(jvp, dims, mapped), vals,
                symbolic_zeros=symbolic_zeros)
        return self._results(outs, mapped, args)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        if self.parent.is_eval:
            return fun(*map(as_bound, args))
        vals, dims = self._unzip(args)
        mapped: list[Mark | None] = []
        with set_current_trace(self.parent):
            outs = self.parent.process_custom_vjp_call(
                primitive, self._batched(fun, dims, mapped), self._batched_fwd(fwd, dims, mapped), bwd, vals,
                out_trees=out_trees, symbolic_zeros=symbolic_zeros)
        return self._results(outs, mapped, args)

    def _results(self, outs: Sequence[Any], mapped: Sequence[Mark | None], args: tuple) -> list[Any]:
        """The results of a custom rule; of operands that are all known to be alike along the axis they are, too."""
        marks = {x.mark for x in args if type(x) is BatchTracer and x._trace.tag is self.tag}
        known = marks.pop() if len(marks) == 1 else Mark.VARYING
        # types tell all there is to know, and of no examples none stands for the others
        untold = known is Mark.VARYING and not self.axis_data.varying and self.axis_data.size not in (0,)
        return [x if mark is None else self._alike(x, 0) if untold and mark is Mark.REDUCED
                else BatchTracer(self, x, 0, mark if untold else known) for x, mark in zip(outs, mapped, strict=True)]

    def one_of_alike(self, x: Any) -> Any:
        """A result of a custom rule that no mapped operand enters has the axis for its cotangents' sake: without it."""
        if type(x) is not BatchTracer or x._trace is not self or x.mark is not Mark.REDUCED or self.axis_data.varying:
            return x
        with set_current_trace(self.parent):
            return one_of(x.val, x.batch_dim)

    def _unzip(self, args: tuple) -> tuple[tuple, list[int | None]]:
        pairs = [self.to_pair(x) for x in args]
        return tuple(x for x, _ in pairs), [d for _, d in pairs]

    # A custom rule runs on the parent, in a trace that shares this one's tag: values of this trace that the rule
    # closes over are mapped there as well. Its results have the axis in front if any argument has it, so that each
    # example's cotangent reaches the rule; otherwise those have it that depend on such values. `mapped` is told which
    # (None: it has not), and which are alike along the axis.

    def _batched(self, fun: Callable, dims: Sequence[int | None], mapped: list[Mark | None]) -> Callable:
        """`fun` on arrays with the mapped axis at `dims`."""
        axis, tag = self.axis_data, self.tag

        def batched(*vals: Any) -> list[Any]:
            outs, out_dims, known = batch_marked(fun, vals, dims, axis, tag)
            mapped[:] = _spread(dims, out_dims, known, axis)
            return _in_front(outs, out_dims, mapped, axis.size)

        return _named_after(fun, batched)

    def _batched_jvp(self, jvp: Callable, dims: Sequence[int | None], mapped: list[Mark | None]) -> Callable:
        """A JVP rule, batched: a result and its tangent have the mapped axis together."""
        axis, tag = self.axis_data, self.tag

        def batched(*vals: Any) -> list[Any]:
            outs, out_dims, known = batch_marked(jvp, vals, [*dims, *dims], axis, tag)
            half = len(outs) // 2
            primals, tangents = (_spread(dims, out_dims[i:][:half], known[i:][:half], axis) for i in (0, half))
            mapped[:] = [t if p is None or t is Mark.VARYING else p for p, t in zip(primals, tangents, strict=True)]
            return _in_front(outs, out_dims, [*mapped, *mapped], axis.size)

        for name in ("num_consts", "reject_constants"):
            if hasattr(jvp, name):
                setattr(batched, name, getattr(jvp, name))
        return _named_after(jvp, batched)

    def _batched_fwd(self, fwd: Callable, dims: Sequence[int | None], mapped: list[Mark | None]) -> Callable:
        """The forward half of a custom VJP, batched; what it returns pulls batched cotangents back."""
        axis, tag = self.axis_data, self.tag

        def batched(nonzero: tuple[bool, ...], *vals: Any) -> tuple[list, list, Callable]:
            made: list[Any] = []

            def run(*args: Any) -> list[Any]:
                outs, residuals, pull_back = fwd(nonzero, *args)
                made.extend((len(outs), pull_back))
                return [*outs, *residuals]

            results, result_dims, known = batch_marked(run, vals, dims, axis, tag)
            num_outs, pull_back = made
            mapped[:] = _spread(dims, result_dims[:num_outs], known[:num_outs], axis)
            outs = _in_front(results[:num_outs], result_dims[:num_outs], mapped, axis.size)
            pulled_from = [*result_dims[num_outs:], *(None if mark is None else 0 for mark in mapped)]

            def batched_pull_back(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
                def run_back(*args: Any) -> Any:
                    return pull_back(args[:len(residuals)], args[len(residuals):])

                pulled, pulled_dims = batch_flat(run_back, [*residuals, *cts], pulled_from, axis, tag)
                return [_match_cotangent(x, d, dim, axis.size)
                        for x, d, dim in zip(pulled, pulled_dims, dims, strict=True)]

            return outs, results[num_outs:], batched_pull_back

        return _named_after(fwd, batched)

    def __repr__(self) -> str:
        return f"BatchTrace({self.axis_data.name}, {self.axis_data.size})"


def _spread(dims: Sequence[int | None], out_dims: Sequence[int | None], known: Sequence[Mark],
            axis: AxisData) -> list[Mark | None]:
    """Which results of a custom rule have the mapped axis, given where its arguments and results do; those that get it
    only because arguments have it are alike along it. Where types tell what varies, so do those of cotangents."""
    others = Mark.REDUCED if any(d is not None for d in dims) and not axis.varying else None
    return [others if d is None else mark for d, mark in zip(out_dims, known, strict=True)]


def _in_front(outs: Sequence[Any], dims: Sequence[int | None], mapped: Sequence[Mark | None], size: Any) -> list[Any]:
    return [x if m is None else SymbolicZero(unmapped_aval(size, 0, x.aval)) if type(x) is SymbolicZero
            else bdim_at_front(x, d, size) for x, d, m in zip(outs, dims, mapped, strict=True)]


def _named_after(fun: Callable, batched: Callable) -> Callable:
    batched.__name__ = getattr(fun, "__name__", "fun")
    if hasattr(fun, "debug_info"):
        batched.debug_info = fun.debug_info  # type: ignore[attr-defined]
    return batched


def _match_cotangent(ct: Any, dim: int | None, wanted: int | None, size: Any) -> Any:
    """Brings a cotangent to the axis position of its primal; over an argument without one, it sums."""
    if type(ct) is SymbolicZero or ct is None or type(ct) is Zero:
        return ct
    if wanted is None:
        return ct if dim is None else hooks.lax.reduce_sum(ct, (dim,))
    return broadcast(ct, size, wanted) if dim is None else moveaxis(ct, dim, wanted)


def batch_flat(fun: Callable[..., Sequence[Any]], vals: Sequence[Any], dims: Sequence[int | None],
               axis_data: AxisData, tag: object = None,
               marks: Sequence[Mark] | None = None) -> tuple[list[Any], list[int | None]]:
    """Runs a flat function on batched values: its results and where the mapped axis is in them.

    With a `tag`, values of the traces that have it are mapped, too. `marks`: what is known of values along the axis.
    """
    outs, out_dims, _ = batch_marked(fun, vals, dims, axis_data, tag, marks)
    return outs, out_dims


def batch_marked(fun: Callable[..., Sequence[Any]], vals: Sequence[Any], dims: Sequence[int | None],
                 axis_data: AxisData, tag: object = None, marks: Sequence[Mark] | None = None,
                 ) -> tuple[list[Any], list[int | None], list[Mark]]:
    """As `batch_flat`, and what is known of the results along the axis."""
    trace = BatchTrace(state.trace, axis_data, tag)
    scope = nullcontext() if axis_data.name is None else extend_axis_env(
        axis_data.name, axis_data.size if axis_data.across is None else axis_data.across.size)
    try:
        with scope, set_current_trace(trace):
            found = list(map(trace.to_marked, fun(*(
                x if d is None else
                SymbolicZero(mapped_aval(d, x.aval)) if type(x) is SymbolicZero else BatchTracer(trace, x, d, m)
                for x, d, m in zip(vals, dims, marks or (Mark.VARYING,) * len(dims), strict=True)
            ))))
    finally:
        trace.invalidate()
    if config.check_tracer_leaks.value:
        ref = weakref.ref(trace)
        del trace
        refuse_leaks(ref, "BatchTrace")
    return [x for x, _, _ in found], [d for _, d, _ in found], [mark for _, _, mark in found]


# Batching jaxprs


def batch_jaxpr(closed: ClosedJaxpr, axis_data: AxisData, in_batched: Sequence[bool],
                instantiate: bool | Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """A program batched along leading axes.

    Args:
      closed: the program.
      axis_data: the mapped axis.
      in_batched: which inputs have the axis (in front).
      instantiate: which results (or all) are to have it in any case.

    Returns:
      The new program, and which of its results have the axis (in front).
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(closed.jaxpr.outvars)
    wanted = tuple(0 if i else _FRONT for i in instantiate)
    new, out_dims = _batch_jaxpr(closed, axis_data, tuple(0 if b else None for b in in_batched), wanted)
    return new, [d is not None for d in out_dims]


def batch_jaxpr_axes(closed: ClosedJaxpr, axis_data: AxisData, in_axes: Sequence[int | None],
                     out_axes: Sequence[int | None]) -> tuple[ClosedJaxpr, list[int | None]]:
    """As `batch_jaxpr`, with axis positions; a result with `out_axes` None may have it in front."""
    return _batch_list(closed, axis_data, in_axes, [_FRONT if d is None else d for d in out_axes])


def batch_jaxpr2(closed: ClosedJaxpr, axis_data: AxisData,
                 in_axes: Sequence[int | None]) -> tuple[ClosedJaxpr, list[int | None]]:
    """A program batched with the axis anywhere: the new program and where its results have it."""
    return _batch_list(closed, axis_data, in_axes, [_ANYWHERE] * len(closed.jaxpr.outvars))


def _batch_list(closed: ClosedJaxpr, axis_data: AxisData, in_axes: Any, wanted: Any) -> Any:
    new, out_dims = _batch_jaxpr(closed, axis_data, tuple(in_axes), tuple(wanted))
    return new, list(out_dims)


_FRONT = "front"  # where a result has the axis at all, it has it in front
_ANYWHERE = "anywhere"


@per_jaxpr
def _batch_jaxpr(closed: ClosedJaxpr, axis_data: AxisData, in_axes: tuple,
                 wanted: tuple) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    made: list[tuple[int | None, ...]] = []
    marks = [mark_in(axis_data.name, getattr(a, "sums", None)) for a in closed.in_avals] if axis_data.varying else None

    def batched(*vals: Any) -> list[Any]:
        outs, dims = batch_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), vals, in_axes, axis_data, None, marks)
        out_dims: list[Any] = [d if w is _ANYWHERE else (None if d is None else 0) if w is _FRONT else w
                    for d, w in zip(dims, wanted, strict=True)]
        made.append(tuple(out_dims))
        return [
            x if d == w else broadcast(x, axis_data.size, w, axis_data.explicit_mesh_axis) if d is None
            else moveaxis(x, d, w)
            for x, d, w in zip(outs, dims, out_dims, strict=True)
        ]

    avals = [unmapped_aval(axis_data.size, d, unmarked(a, axis_data.name) if axis_data.varying else a,
                           axis_data.explicit_mesh_axis)
             for a, d in zip(closed.in_avals, in_axes, strict=True)]
    new = trace_to_jaxpr(batched, avals, closed.debug_info)
    return new, made[0]


# Moving axes


def canonicalize_axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def moveaxis(x: Any, src: int | None, dst: int) -> Any:
    """Moves axis `src` of an array to position `dst`."""
    if src is None or src == dst:
        return x
    ndim = get_aval(x).ndim
    src, dst = canonicalize_axis(src, ndim), canonicalize_axis(dst, ndim)
    if src == dst:
        return x
    order = [i for i in range(ndim) if i != src]
    order.insert(dst, src)
    return hooks.lax.transpose(x, order)


def broadcast(x: PyTree, sz: Dim, axis: int, mesh_axis: Hashable = None) -> PyTree:
    """Repeats an array `sz` times along a new axis at position `axis`, spread over mesh axes `mesh_axis`."""
    aval = get_aval(x)
    if isinstance(aval, AbstractToken):
        return x
    axis = canonicalize_axis(axis, aval.ndim + 1)
    shape = (*aval.shape[:axis], sz, *aval.shape[axis:])
    if aval.dtype == dtypes.float0:
        return np.zeros(shape, dtypes.float0)
    told = None if mesh_axis is None else stacked(aval, sz, axis, mesh_axis)
    if told is not None and told.given_sharding is None:  # a constant of the program
        told = told.update(sharding=along(axis, len(shape), mesh_axis))
    return hooks.lax.broadcast_in_dim(x, shape, tuple(i for i in range(len(shape)) if i != axis),
                                      out_sharding=None if told is None else told.given_sharding)


def bdim_at_front(x: PyTree, bdim: int | None, size: Dim, mesh_axis: Hashable = None) -> PyTree:
    """The array with its mapped axis in front, repeated along a new one if it has none."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else moveaxis(x, bdim, 0)


def all_at_front(args: Sequence[Any], dims: Sequence[int | None], size: Dim) -> list[Any]:
    """Arrays with their mapped axis in front; those that have none are repeated along one spread like the others'."""
    entry = mapped_entry(args, dims) if avals.explicit else None
    return [bdim_at_front(x, d, size, entry) for x, d in zip(args, dims, strict=True)]


def mapped_entry(args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The mesh axes that the mapped axis is spread over."""
    for x, d in zip(args, dims, strict=True):
        told = None if d is None else getattr(get_aval(x), "given_sharding", None)
        if told is not None:
            return told.spec[d]
    return None


def matchaxis(axis_name: Any, size: Any, src: int | None, dst: int | None, x: Any, sum_match: bool = False) -> Any:
    """Brings the mapped axis from position `src` to `dst`, either of which may be None.

    Raises ValueError where the axis would have to go and `sum_match` does not allow summing over it.
    """
    if src == dst:
        return x
    if dst is None:
        if sum_match:
            return hooks.lax.reduce_sum(x, (src,))
        raise ValueError(f"vmap has mapped output ({axis_name=}) but out_axes is None")
    return broadcast(x, size, dst) if src is None else moveaxis(x, src, dst)


__all__ = ["AxisData", "BatchTrace", "BatchTracer", "axis_names_of", "batch_flat", "batch_jaxpr", "not_mapped"]
