"""Arguments of functions with rules of their own: as positional ones, and which of them are differentiated."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..core import hooks
from ..core.arrays.array import Array
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree
from ..core.types.avals import as_bound
from .naming import function_name


def _unresolved(fun: Callable, what: str, reason: str) -> TypeError:
    return TypeError(f"The input arguments to the {what}-decorated function {function_name(fun)} could not be resolved "
                     f"to positional-only arguments. Binding failed with the error:\n{reason}")


def resolve_kwargs(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], what: str) -> tuple[Any, ...]:
    """All arguments as positional ones, defaults included.

    Raises TypeError where they do not fit the function.
    """
    if not kwargs and len(args) == _arity(fun):
        return tuple(args)
    import inspect

    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise
        return tuple(args)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise _unresolved(fun, what, str(error)) from error
    bound.apply_defaults()  # before, what follows a gap counts as given by name
    if passed := [name for name in bound.kwargs if name in kwargs]:
        names = ", ".join(passed)
        raise _unresolved(fun, what, f"The following keyword arguments could not be resolved to positions: {names}")
    return bound.args  # without keyword-only parameters, which keep their defaults


_arities: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _arity(fun: Callable) -> int:
    """How many positional arguments a function takes at most; -1 where it takes any number or keywords alone."""
    try:
        return _arities[fun]
    except (KeyError, TypeError):
        pass
    import inspect

    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return -1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = len(parameters) if all(p.kind in positional for p in parameters) else -1
    try:
        _arities[fun] = found
    except TypeError:  # a callable that cannot be referenced weakly
        pass
    return found


def positions(fun: Callable, nondiff_argnums: Any, nondiff_argnames: Any) -> tuple[int, ...]:
    """The positions of the arguments that are not differentiated, those given by name included."""
    nums = [nondiff_argnums] if isinstance(nondiff_argnums, int) else list(nondiff_argnums)
    names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
    if names:
        import inspect

        parameters = list(inspect.signature(fun).parameters)
        for name in names:
            if name not in parameters:
                raise ValueError(f"Invalid nondiff_argnames: {name} is no parameter of {function_name(fun)}")
            nums.append(parameters.index(name))
    return tuple(dict.fromkeys(nums))


def split(args: Sequence[Any], nondiff: Sequence[int]) -> tuple[list[Any], tuple[Any, ...], list[tuple[int, Any]]]:
    """The non-differentiable arguments, the others, and the former with their positions, in order.

    Raises IndexError for positions that the call does not have.
    """
    at = [range(len(args))[i] for i in nondiff]
    dynamic = tuple(a for i, a in enumerate(args) if i not in at)
    return [args[i] for i in at], dynamic, [(i, a) for i, a in enumerate(args) if i in at]


def without_tangents(args: Sequence[Any], nondiff: Sequence[int]) -> tuple[Any, ...]:
    """The arguments; what is differentiated among those that are not to be is held constant."""
    at = [range(len(args))[i] for i in nondiff]
    hold = lambda x: hooks.lax.stop_gradient(x) if isinstance(x, Tracer) else x
    return tuple(tree.tree_map(hold, a) if i in at else a for i, a in enumerate(args))


def check_leaves(leaves: Sequence[Any], what: str = "") -> None:
    """Raises TypeError for what is no array; it says that this was an argument of `what`, if that is given."""
    for i, x in enumerate(leaves):
        try:
            get_aval(x)
        except TypeError:
            if not what:
                raise
            raise TypeError(f"Error interpreting argument to {what} as a JAX value. The problematic value is of type "
                            f"{type(x)} and was passed to {what} at position {i}.\n") from None


def call_eagerly(fun: Callable, values: Sequence[Any], nondiff: Sequence[int], what: str = "",
                 check: Callable[..., None] | None = None) -> Any:
    """Calls a function without regard to its rules, as where nothing is transformed. Numbers and NumPy's arrays come
    with the dtypes of arrays, for which it may ask. `check` gets arguments that are not all arrays, flattened."""
    _, dynamic, fixed = split(values, nondiff)
    leaves, in_tree = tree.tree_flatten(dynamic)
    if all(isinstance(x, Array) for x in leaves):
        return fun(*values)
    if check is not None:
        check(leaves, in_tree, fixed)
    check_leaves(leaves, what)
    args = list(in_tree.unflatten(map(as_bound, leaves)))
    for i, x in fixed:
        args.insert(i, x)
    return fun(*args)
