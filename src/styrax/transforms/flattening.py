"""A function of trees as one of flat lists: what every trace of a user's function begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs.jaxpr import DebugInfo
from ..core.trees import tree
from .naming import LateInfo, check_results, function_name


class FlatFunction:
    """A function of trees as one of flat lists, which remembers the structure of its results.

    Args:
      fun: the function.
      in_tree: the structure of `(args, kwargs)`, without the arguments that are fixed.
      fixed: pairs of a position among all positional arguments and the value that is always passed there, in order.
      named: pairs of a name and the value that is always passed by it.
      traced_for: what the function is traced for, where results that are no arrays are refused; else None.

    Called with the leaves of `in_tree`, it gives the leaves of the results and keeps their structure as `out_tree`.
    """

    __slots__ = ("fixed", "fun", "in_tree", "named", "out_tree", "traced_for")

    def __init__(self, fun: Callable[..., Any], in_tree: tree.PyTreeDef, fixed: Sequence[tuple[int, Any]] = (),
                 named: Sequence[tuple[str, Any]] = (), traced_for: str | None = None):
        self.fun = fun
        self.in_tree = in_tree
        self.fixed = fixed
        self.named = named
        self.traced_for = traced_for
        self.out_tree: tree.PyTreeDef | None = None

    def arguments(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of the function with these leaves."""
        args, kwargs = self.in_tree.unflatten(leaves)
        if self.fixed:
            args = with_fixed(args, self.fixed)
        if self.named:
            kwargs = {**kwargs, **dict(self.named)}
        return args, kwargs

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = self.arguments(leaves)
        return self.flatten(self.fun(*args, **kwargs))

    def flatten(self, result: Any) -> list[Any]:
        """The leaves of what the function returned."""
        outs, self.out_tree = tree.tree_flatten(result)
        if self.traced_for is not None:
            check_results(self.traced_for, self.fun, outs, self.out_tree)
        return outs

    @property
    def structure(self) -> tree.PyTreeDef:
        """The structure of the results, after a call."""
        assert self.out_tree is not None
        return self.out_tree

    def info(self, avals: Sequence[Any]) -> DebugInfo:
        """Who is traced and what its arguments are called, for messages."""
        in_tree, leaves, absent = self.in_tree, list(avals), [(i, None) for i, _ in self.fixed]

        def arguments() -> tuple[Sequence[Any], dict[str, Any]]:
            args, kwargs = in_tree.unflatten(leaves)
            return with_fixed(args, absent), kwargs

        return LateInfo(self.traced_for or "", self.fun, arguments)

    @property
    def __name__(self) -> str:
        return function_name(self.fun)


_NO_KWARGS = tree.tree_structure({})


def positional(args_tree: tree.PyTreeDef) -> tree.PyTreeDef:
    """The structure of `(args, kwargs)` where there are positional arguments alone."""
    return tree.treedef_tuple((args_tree, _NO_KWARGS))


def with_fixed(args: Sequence[Any], fixed: Sequence[tuple[int, Any]]) -> list[Any]:
    """All positional arguments: the given ones, and fixed ones at their positions (ascending)."""
    found = list(args)
    for i, value in fixed:
        found.insert(i, value)
    return found
