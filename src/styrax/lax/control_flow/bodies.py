"""What conditionals, loops and scans share: tracing a body once, and messages about its types.

A body is traced to a jaxpr that closes over nothing: captured arrays, tracers and references become
its leading arguments. The trace of a function is kept as long as the function lives, so that an
eager loop called again with the same function and types costs no tracing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

import styrax.transforms.jit  # noqa: F401  # runs eagerly what has programs inside
from styrax.core.arrays import backends
from styrax.core.hooks import lax
from styrax.core.programs.dead_code import dce_jaxpr
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from styrax.core.settings import config
from styrax.core.tracing import source
from styrax.core.tracing.staging import hoist_tracers, trace_to_jaxpr
from styrax.core.tracing.trace import Tracer, get_aval, state
from styrax.core.trees import tree_paths
from styrax.core.types import dtypes, effects
from styrax.core.types.avals import AbstractRef, as_bound
from styrax.core.types.typing import AxisName
from styrax.transforms import naming, refs
from styrax.transforms.aliasing import check_arguments, check_returned
from styrax.transforms.flattening import FlatFunction, positional

from ..collectives.casts import varying


class Body:
    """A traced function: its closed program, what it captured, and the tree of its results."""

    __slots__ = ("captured", "jaxpr", "out_tree")

    def __init__(self, jaxpr: ClosedJaxpr, captured: list[Any], out_tree: Any):
        self.jaxpr = jaxpr  # takes the captured values first
        self.captured = captured
        self.out_tree = out_tree

    @property
    def out_avals(self) -> list[Any]:
        return self.jaxpr.out_avals


_bodies: weakref.WeakKeyDictionary[Any, dict[Any, Body]] = weakref.WeakKeyDictionary()


def trace_body(construct: str, fun: Callable[..., Any], in_tree: Any, in_avals: Sequence[Any],
               leaves: Sequence[Any] = ()) -> Body:
    """Traces `fun`, whose positional arguments have the tree `in_tree` and the types `in_avals`; `leaves` are what is
    passed, if it is known."""
    key = (construct, in_tree, tuple(in_avals), config.trace_context(), tuple(state.axis_sizes.items()))
    known: dict[Any, Body] | None = None
    with suppress(TypeError):  # no weak reference to it, or no hash
        known = _bodies.setdefault(fun, {})
        if key in known:
            return known[key]
    flat = FlatFunction(fun, positional(in_tree), traced_for=construct)
    info = flat.info(in_avals)
    takes_refs = any(isinstance(a, AbstractRef) for a in in_avals)
    if takes_refs:
        check_arguments(leaves, (), construct, info)
    closed = trace_to_jaxpr(flat.__call__, in_avals, info)  # (a method: an object would cost a level of recursion more)
    check_returned(closed, flat.structure, construct)
    if takes_refs:
        check_arguments(leaves, closed.consts, construct, info)
    closed, captured = hoist_tracers(closed, everything=True)
    check_effects(construct, closed.effects)
    body = Body(closed, captured, flat.structure)
    if known is not None and not any(isinstance(c, Tracer) or isinstance(get_aval(c), AbstractRef) for c in captured):
        known[key] = body
    return body


def check_effects(construct: str, found: Iterable[Any]) -> None:
    """Raises NotImplementedError for effects that may not stand inside control flow."""
    forbidden = effects.control_flow_allowed_effects.filter_not_in(found)
    if forbidden:
        raise NotImplementedError(f"Effects not supported in `{construct}`: {set(forbidden)}")


# -- paths and types in messages ------------------------------------------------------------------


def first_argument(fun: Callable[..., Any]) -> str:
    """The name of the first argument that `fun` leaves to its caller."""
    return naming.argument_names(fun, (0,), {})[0]


def type_text(aval: Any) -> str:
    return aval.str_short(short_dtypes=False)


def same_type(a: Any, b: Any) -> bool:
    """Whether two abstract values are equal up to weak types."""
    return a is b or a.strip_weak_type() == b.strip_weak_type()


def _difference(a: Any, b: Any) -> str:
    """What of two types does not match, behind a comma; nothing where it is how they are spread."""
    if a.is_high or b.is_high:
        return ", so the types do not match"
    if _axes(a) != _axes(b):
        others = "" if a.update(vma=frozenset()) == b.update(vma=frozenset()) else f"{_plain_difference(a, b)}, and "
        return f", {others or 'so '}the manual axis types do not match"
    told = getattr(a, "given_sharding", None), getattr(b, "given_sharding", None)
    return "" if a.update(sharding=None) == b.update(sharding=None) and told[0] != told[1] else (
        f", {_plain_difference(a, b)}")


def _axes(aval: Any) -> frozenset[AxisName]:
    """The mesh axes along which a value varies."""
    return getattr(aval, "vma", frozenset())


def _pcast_hint(casts: Sequence[tuple[frozenset[AxisName], str]]) -> str:
    """What makes types vary along the same axes: which axes to add to what."""
    items = [f"applying `jax.lax.pcast(..., {tuple(n for n in state.axis_sizes if n in axes)}, to='varying')`{where}"
             for axes, where in casts if axes]
    if not items:
        return ""
    listed = f" {items[0]}." if len(items) == 1 else f":\n{_listing(items)}"
    return (f"\n\nThis might be fixed by{listed}\nSee https://docs.jax.dev/en/latest/notebooks/shard_map.html#scan-vma "
            "for more information.")


def _plain_difference(a: Any, b: Any) -> str:
    parts = [f"the {part}s do not match" for part in ("dtype", "shape")
             if getattr(a, part, None) != getattr(b, part, None)]
    return f"so {', and '.join(parts) or 'the types do not match'}"


def _listing(items: list[str]) -> str:
    """One sentence, or one bullet for each."""
    if len(items) == 1:
        return items[0][0].upper() + items[0][1:] + "."
    return ";\n".join(f"  * {item}" for item in items) + "."


def check_carry(
    construct: str,
    argument: str,
    in_tree: Any,
    in_avals: Sequence[Any],
    out_tree: Any,
    out_avals: Sequence[Any],
) -> None:
    """Raises TypeError unless a body gives back a carry of the tree and types that it takes."""

    def component(path: str) -> str:
        return f"the input carry {f'component {argument}{path}' if path else argument}"

    if in_tree != out_tree:
        differences = [
            f"{component(path)} is a {have} but the corresponding component of the carry output is a {got}, "
            f"so {why}"
            for path, have, got, why in tree_differences(in_tree, out_tree)
        ]
        detail = (
            _listing(differences)
            if differences
            else (f"the input tree structure is:\n{in_tree}\nthe output tree structure is:\n{out_tree}")
        )
        raise TypeError(
            f"{construct} function carry input and carry output must have the same pytree structure, but "
            f"they differ:\n\n{detail}\n\nRevise the function so that the carry output has the same pytree "
            "structure as the carry input."
        )
    differences = [
        f"{component(naming.leaf_path(in_tree, i))} has type {type_text(a)} but the corresponding output carry "
        f"component has type {type_text(b)}{_difference(a, b)}"
        for i, (a, b) in enumerate(zip(in_avals, out_avals, strict=True))
        if not same_type(a, b)
    ]
    if differences:
        casts = [(_axes(b) - _axes(a), ", to the initial carry value corresponding to "
                  + component(naming.leaf_path(in_tree, i)))
                 for i, (a, b) in enumerate(zip(in_avals, out_avals, strict=True)) if not same_type(a, b)]
        raise TypeError(
            f"{construct} function carry input and carry output must have equal types, but they differ:\n\n"
            f"{_listing(differences)}{_pcast_hint(casts)}\n\nRevise the function so that all output types match the "
            "corresponding input types."
        )


def check_branches(
    construct: str, names: tuple[str, str], funs: Sequence[Any], trees: Sequence[Any], avals: Sequence[Any]
) -> None:
    """Raises TypeError unless two branches give results of one tree and of the same types."""
    first, second = names
    who = "\n".join(f"{n} is {source.describe_function(f)}" for n, f in zip(names, funs, strict=True))
    if trees[0] != trees[1]:
        differences = [
            f"{first} output{f' at path {path}' if path else ''} is a {have} but {second} "
            f"output{f' at path {path}' if path else ''} is a {got}, so {why}"
            for path, have, got, why in tree_differences(*trees)
        ]
        detail = _sentences(differences) if differences else f"{first}: {trees[0]}\n{second}: {trees[1]}"
        raise TypeError(
            f"{construct} branch outputs must have the same pytree structure, but they differ:\n\n{who}\n\n"
            f"{detail}\n\nRevise {first} and/or {second} so that they have the same pytree structure."
        )
    differences, casts = [], []
    for i, (a, b) in enumerate(zip(*avals, strict=True)):
        if not same_type(a, b):
            path = naming.leaf_path(trees[0], i)
            at = f" at path {path}" if path else ""
            casts += [(_axes(b) - _axes(a), f" to the output of {first}{at}"),
                      (_axes(a) - _axes(b), f" to the output of {second}{at}")]
            differences.append(
                f"the output of {first}{at} has type {type_text(a)} but the "
                f"corresponding output of {second} has type {type_text(b)}{_difference(a, b)}"
            )
    if differences:
        raise TypeError(
            f"{construct} branches must have equal output types but they differ.\n\n{who}\n\n"
            f"{_listing(differences)}{_pcast_hint(casts)}\n\nRevise {first} and/or {second} so that all output types "
            "match."
        )


def _sentences(items: list[str]) -> str:
    """As `_listing`, for items that begin with a name."""
    return items[0] + "." if len(items) == 1 else _listing(items)


def tree_differences(a: Any, b: Any) -> Iterator[tuple[str, str, str, str]]:
    """Where two tree structures differ: `(path, what a has, what b has, why they do not match)`."""
    for path, have, got, why in tree_paths.equality_errors_pytreedef(a, b):
        yield tree_paths.keystr(path), _node_text(have), _node_text(got), why


def _node_text(text: str) -> str:
    return "pytree leaf" if text == "leaf" else text


# -- weak types -----------------------------------------------------------------------------------


def promote_inputs(
    body: Callable[..., Any], values: Sequence[Any], in_avals: Sequence[Any], out_avals: Sequence[Any]
) -> tuple[list[Any], bool]:
    """Carries that came from Python scalars take the dtype that the body gives them; those of our own functions vary
    along the mesh axes along which their results do, which users have to say.

    Returns the initial values and whether one has changed, so that the body must be traced again.
    """
    if len(in_avals) != len(out_avals):
        return list(values), False
    own = (getattr(body, "__module__", None) or "").startswith("styrax.")
    promoted, changed = [], False
    for x, a, b in zip(values, in_avals, out_avals, strict=True):
        axes: frozenset[AxisName] = getattr(b, "vma", frozenset()) - getattr(a, "vma", frozenset())
        if axes and own:
            x, changed = varying(x, tuple(axes), spread=True), True
            a = get_aval(x)
        if getattr(a, "weak_type", False) and not same_type(a, b):
            dtype = dtypes.result_type(x, b)
            x = lax.convert_element_type(x, dtype)
            changed = True
        promoted.append(x)
    return promoted, changed


# -- programs as data -----------------------------------------------------------------------------


def as_array(x: Any) -> Any:
    """A value that is passed on as a result: an array where it came as NumPy's or Python's, under a transformation
    one that tells its dtype."""
    if not isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        return x
    if not state.trace.is_eval:
        return as_bound(np.asarray(x) if type(x) is bool else x)
    aval = get_aval(x)
    return backends.get().put(np.asarray(x, aval.dtype), aval, None)


def split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Cuts a list into pieces of the given sizes and the rest."""
    pieces, start = [], 0
    for n in sizes:
        pieces.append(list(items[start : start + n]))
        start += n
    pieces.append(list(items[start:]))
    return pieces


def select_where(items: Sequence[Any], flags: Sequence[bool], wanted: bool = True) -> list[Any]:
    """The items whose flag is `wanted`."""
    return [x for x, f in zip(items, flags, strict=True) if bool(f) is wanted]


def merge(flags: Sequence[bool], where_false: Sequence[Any], where_true: Sequence[Any]) -> list[Any]:
    """The inverse of taking the items of one flag and of the other."""
    off, on = iter(where_false), iter(where_true)
    return [next(on) if f else next(off) for f in flags]


def forwarded_inputs(jaxpr: Jaxpr) -> list[int | None]:
    """For each result, the number of the argument that it is, or None."""
    index = {v: i for i, v in enumerate(jaxpr.invars)}
    return [None if type(v) is Literal else index.get(v) for v in jaxpr.outvars]


def rearranged(closed: ClosedJaxpr, invars: Sequence[Var], outvars: Sequence[Any]) -> ClosedJaxpr:
    """The same program with other arguments and results, which are its own variables."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, None, jaxpr.debug_info),
        closed.consts,
    )


def discharged(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with arrays in place of references, whose last contents come behind its results."""
    return refs.discharge_closed(closed)


def renumber_effects(found: Iterable[Any], index: Callable[[int], int]) -> frozenset[Any]:
    """Effects with `index` applied to the numbers of the references that they name."""
    return frozenset(e.replace(index(e.input_index)) if hasattr(e, "input_index") else e for e in found)


def rearranged_once(closed: ClosedJaxpr, invars: Sequence[Var], outvars: Sequence[Any]) -> ClosedJaxpr:
    """`rearranged`, giving the same object for the same program, so that it is compiled once."""
    key = ("rearranged", tuple(invars), tuple(map(id, outvars)))
    cache = closed.jaxpr.cache
    if key not in cache:
        cache[key] = rearranged(closed, invars, outvars)
    return cache[key]


def either(a: Sequence[bool], b: Sequence[bool]) -> list[bool]:
    """The flags that stand in one list or the other."""
    return [x or y for x, y in zip(a, b, strict=True)]


def needed_step(jaxpr: Jaxpr, used_outs: Sequence[bool], num_consts: int,
                num_carry: int) -> tuple[Jaxpr, list[bool], list[bool]]:
    """The part of a scan's step that the results marked in `used_outs` need in any number of steps.

    Returns:
      `(step, used_in, used_outs)`: which inputs it still has, and which results (a carry that is needed to compute
      another is a result). It is `jaxpr` itself where nothing can be dropped.
    """
    used_carry, used_ys = split_list(list(used_outs), [num_carry])
    num_xs = len(jaxpr.invars) - num_consts - num_carry
    while True:
        step, used_in = dce_jaxpr(
            jaxpr, used_carry + used_ys, [False] * num_consts + used_carry + [False] * num_xs
        )
        joined = either(used_carry, used_in[num_consts : num_consts + num_carry])
        if joined == used_carry:
            break
        used_carry = joined
    if all(used_in) and all(used_carry) and all(used_ys) and len(step.eqns) == len(jaxpr.eqns):
        step = jaxpr
    return step, used_in, used_carry + used_ys
