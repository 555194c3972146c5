"""What transformations of functions of trees are made of, for libraries that write their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Signature
from typing import Any

from .core.programs.jaxpr import DebugInfo
from .core.tracing import source
from .core.trees import tree
from .core.trees.treedef import PyTreeDef
from .core.types.typing import Function, PyTree
from .extend.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from .transforms.flattening import FlatFunction, positional, with_fixed
from .transforms.mapping import flatten_axes as _flatten_axes
from .transforms.naming import argument_names
from .transforms.signature import inferred
from .transforms.tracing import abstractify as shaped_abstractify


def debug_info(traced_for: str, fun: Function, args: Sequence[Any], kwargs: dict[str, Any], *,
               static_argnums: Sequence[int] = (), static_argnames: Sequence[str] = (),
               result_paths_thunk: Callable[[], Sequence[str]] | None = None, sourceinfo: str | None = None,
               signature: Signature | None = None) -> DebugInfo:
    """Who is traced and what its arguments are called, for messages."""
    dynamic = [None if i in static_argnums else a for i, a in enumerate(args)]
    named = {k: v for k, v in kwargs.items() if k not in static_argnames}
    return DebugInfo(traced_for, sourceinfo or source.describe_function(fun), argument_names(fun, dynamic, named))


def _flat(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    flat = FlatFunction(f, in_tree)
    outs = flat(*leaves)
    store.store(flat.structure)
    return outs


def _flat_nokwargs(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    return _flat(f, store, positional(in_tree), *leaves)


def flatten_fun(fun: WrappedFun, *gen_static_args: PyTreeDef, use_eq_store: bool = False,
                unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of trees as one of leaves. `gen_static_args` is the structure of `(args, kwargs)`.

    Returns the new function and a function that gives the structure of its results after the call.
    """
    return transformation_with_aux2(_flat, fun, *gen_static_args)


def flatten_fun_nokwargs(fun: WrappedFun, *gen_static_args: PyTreeDef, use_eq_store: bool = False,
                         unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `flatten_fun`, for the structure of the positional arguments alone."""
    return transformation_with_aux2(_flat_nokwargs, fun, *gen_static_args)


class _Fixed:
    """An argument that is fixed; compared by value where it has a hash."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fixed) and type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _with_fixed(f: Callable, dynamic: tuple[int, ...], fixed: tuple[tuple[int, _Fixed], ...], *dynamic_args: Any,
                **kwargs: Any) -> Any:
    given = dict(zip(dynamic, dynamic_args, strict=True))
    return f(*with_fixed([given[i] for i in sorted(given)], [(i, x.value) for i, x in fixed]), **kwargs)


def argnums_partial(f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, tuple]:
    """Fixes all arguments but those at `dyn_argnums`: the new function, and the arguments that are left to it.

    Raises ValueError for a fixed argument without a hash, where one is required.
    """
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    dynamic = tuple(i % len(args) for i in nums)
    fixed = tuple((i, _Fixed(a)) for i, a in enumerate(args) if i not in dynamic)
    if require_static_args_hashable:
        for _, x in fixed:
            try:
                hash(x)
            except TypeError:
                raise ValueError(f"Non-hashable static argument: {x.value!r} of type {type(x.value)}") from None
    return transformation2(_with_fixed, f, dynamic, fixed), tuple(args[i] for i in dynamic)


def donation_vector(donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: PyTreeDef,
                    kws: bool = True) -> tuple[bool, ...]:
    """Which leaves of the arguments are donated. `in_tree` is the structure of `(args, kwargs)`, or without
    `kws` of args."""
    numbers, strings = set(donate_argnums), set(donate_argnames)
    args_tree = tree.treedef_children(in_tree)[0] if kws else in_tree
    marks: list[bool] = []
    for i, child in enumerate(tree.treedef_children(args_tree)):
        marks += [i in numbers] * child.num_leaves
    if kws:
        kwargs_tree = tree.treedef_children(in_tree)[1]
        _, names = kwargs_tree.node_data() or (dict, ())
        for name, child in zip(names, tree.treedef_children(kwargs_tree), strict=True):
            marks += [name in strings] * child.num_leaves
    return tuple(marks)


def infer_argnums_and_argnames(sig: Signature, argnums: int | Iterable[int] | None,
                               argnames: str | Iterable[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of chosen parameters: where one is None, inferred from the other."""
    return inferred(list(sig.parameters.values()), argnums, argnames)


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """Positions of donated arguments, counted without the static ones. ValueError for one that is both."""
    static = sorted(set(static_argnums))
    both = set(donate_argnums) & set(static)
    if both:
        raise ValueError(f"static_argnums and donate_argnums cannot intersect, {static_argnums=} and {donate_argnums=}")
    return tuple(sorted(d - sum(s < d for s in static) for d in donate_argnums))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: PyTree, *, kws: bool = False,
                 tupled_args: bool = False) -> list[Any]:
    """One entry of `axis_tree`, a prefix of the structure `treedef`, for each of its leaves."""
    return _flatten_axes(name, treedef, axis_tree)


def safe_map(f: Function, *sequences: Sequence[Any]) -> list[Any]:
    """`map` as a list, over sequences of equal length. ValueError for others."""
    return [f(*xs) for xs in zip(*sequences, strict=True)]


__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "infer_argnums_and_argnames", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]
