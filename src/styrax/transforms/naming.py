"""Names for what is traced: the function and its arguments, as messages and jaxprs show them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..core.programs.jaxpr import DebugInfo
from ..core.tracing import source
from ..core.tracing.source import boundary
from ..core.tracing.trace import valid_jaxtype
from ..core.trees import tree, tree_paths


def function_name(fun: Any) -> str:
    """The name of a callable, seen through partial applications."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", None) or type(fun).__name__


def parameters(fun: Any) -> tuple[list[str], str | None]:
    """The names of a function's positional parameters, and of the one that takes the others."""
    bound = 0
    while True:
        if isinstance(fun, functools.partial):
            bound += len(fun.args)
            fun = fun.func
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        elif hasattr(fun, "__func__"):
            bound += 1
            fun = fun.__func__
        else:
            break
    code = getattr(fun, "__code__", None)
    if code is None:
        code = getattr(getattr(type(fun), "__call__", None), "__code__", None)  # noqa: B004
        bound += 1
        if code is None:
            return [], "args"
    names = list(code.co_varnames[:code.co_argcount])[bound:]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 0x04 else None
    return names, rest


def argument_names(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """One name per leaf of the arguments: `x`, `params['w']`, `rest[0]`."""
    return _leaf_names(parameters(fun), args, kwargs)


def _leaf_names(parameters: tuple[list[str], str | None], args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    names, rest = parameters
    found: list[str] = []
    for i, arg in enumerate(args):
        if i < len(names):
            name = names[i]
        else:
            name = f"{rest or 'args'}[{i - len(names)}]"
        found += [name + tree_paths.keystr(path) for path, _ in tree_paths.tree_leaves_with_path(arg)]
    for key in sorted(kwargs):
        found += [key + tree_paths.keystr(path) for path, _ in tree_paths.tree_leaves_with_path(kwargs[key])]
    return found


def leaf_path(treedef: Any, index: int) -> str:
    """Where leaf number `index` stands in a tree, as `['a'][0]`; empty for a lone leaf."""
    numbered = tree.tree_unflatten(treedef, range(treedef.num_leaves))
    return tree_paths.keystr(tree_paths.tree_flatten_with_path(numbered)[0][index][0])


def check_results(traced_for: str, fun: Callable, outs: Sequence[Any], out_tree: Any) -> None:
    """Raises TypeError for a result of a traced function that is no array, and says where it is."""
    for i, x in enumerate(outs):
        if not valid_jaxtype(x):
            where = leaf_path(out_tree, i)
            if hasattr(fun, "stands_for"):
                traced_for, theirs, _ = fun.stands_for
                fun = theirs()
            raise TypeError(
                f"function {source.describe_function(fun)} traced for {traced_for} returned a value of type "
                f"{type(x)}{f' at output component {where}' if where else ''}, which is not a valid JAX type")


def debug_info(traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> DebugInfo:
    """Who is traced, for messages. Static arguments may be passed as None."""
    return DebugInfo(traced_for, source.describe_function(fun), argument_names(fun, args, kwargs))


class LateInfo(DebugInfo):
    """Who is traced, with the names of the arguments worked out when they are asked for.

    `arguments()` gives the arguments; of the function only what is said about it is kept.
    A function that wraps a user's may have an attribute `stands_for`, three things: what the user's function is traced
    for, a function without arguments that gives it, and names. Its arguments are then those that the wrapper's first
    one consists of, but for some behind the first one, which have these names.
    """

    __slots__ = ("_arguments", "_names", "_parameters")

    def __init__(self, traced_for: str, fun: Callable,
                 arguments: Callable[[], tuple[Sequence[Any], dict[str, Any]]]):
        stands_for = getattr(fun, "stands_for", None)
        more: Sequence[str] = ()
        if stands_for is not None:
            traced_for, theirs, more = stands_for
            fun, given = theirs(), arguments
            arguments = lambda: (given()[0][0], {})
        self.traced_for = traced_for
        self.func_src_info = source.describe_function(fun)
        self.result_paths = ()
        names, rest = parameters(fun)
        self._parameters = ([*names[:1], *more, *names[1:]], rest)
        self._arguments = arguments
        self._names: tuple[str, ...] | None = None

    @property
    def arg_names(self) -> tuple[str, ...]:  # type: ignore[override]
        if self._names is None:
            self._names = tuple(_leaf_names(self._parameters, *self._arguments()))
        return self._names


def wraps(wrapped: Callable, namestr: str | None = None, docstr: str | None = None,
          **kwargs: Any) -> Callable[[Callable], Callable]:
    """Gives a transformed function the name, documentation and attributes of the original; it is an entry point.

    `namestr` and `docstr` are formats with `{fun}` for the name and `{doc}` for the documentation.
    """

    def decorate(fun: Callable) -> Callable:
        fun = boundary(fun) if isinstance(fun, FunctionType) else fun  # objects have boundaries of their own
        name = function_name(wrapped)
        fun.__name__ = name if namestr is None else namestr.format(fun=name)
        doc = getattr(wrapped, "__doc__", None) or ""
        if docstr is None:
            fun.__doc__ = doc
        else:
            fun.__doc__ = docstr.format(fun=name, doc=doc, **kwargs)
        for attribute in ("__module__", "__annotations__", "__qualname__"):
            try:
                setattr(fun, attribute, getattr(wrapped, attribute))
            except (AttributeError, TypeError):
                continue
        try:
            fun.__dict__.update(getattr(wrapped, "__dict__", {}))
        except (AttributeError, TypeError, ValueError):
            pass
        fun.__wrapped__ = wrapped  # type: ignore[attr-defined]
        return fun

    return decorate


def check_callable(fun: Any) -> None:
    """Raises TypeError for what cannot be transformed."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    code = getattr(fun, "__code__", None)
    if code is not None and code.co_flags & 0x20:
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def split_arguments(args: Sequence[Any], argnums: int | Sequence[int],
                    what: str = "Positional argument indices, e.g. for `static_argnums`,") -> tuple[int, ...]:
    """Argument positions as non-negative integers.

    Raises ValueError for one that is out of range.
    """
    n = len(args)
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in nums:
        if not -n <= i < n:
            raise ValueError(f"{what} must have value greater than or equal to -len(args) and less than "
                             f"len(args), but got value {i} for len(args) == {n}.")
    return tuple(i % n for i in nums)
