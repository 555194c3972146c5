"""Functions traced on the abstract values of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import AbstractRef, ShapedArray, aval_rules
from ..core.types.dims import is_symbolic
from ..core.types.typing import Object, PyTree
from .aliasing import check_arguments, check_returned
from .flattening import FlatFunction
from .references import TransformedRef
from .views import flatten_arguments


def abstractify(x: PyTree) -> ShapedArray | AbstractRef:
    """The abstract value of an argument: an array, a scalar, or anything with a shape and dtype.

    Raises TypeError for anything else.
    """
    if isinstance(x, ShapeDtypeStruct):
        dtype: Any = x.dtype
        aval = ShapedArray(x.shape, dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True), x.weak_type,
                           sharding=x.sharding)
        return AbstractRef(aval) if x.is_ref else aval
    if isinstance(x, AbstractRef):
        return x
    if type(x) not in aval_rules and not isinstance(x, Tracer) and hasattr(x, "__jax_array__") and not is_symbolic(x):
        raise ValueError("Triggering __jax_array__() during abstractification is no longer supported. To avoid this "
                         "error, either explicitly convert your object using jax.numpy.array(), or register your "
                         "object as a pytree.")
    try:
        return get_aval(x)
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic, TransformedRef)):
            return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True),
                               getattr(x, "weak_type", False), sharding=getattr(x, "given_sharding", None))
        raise


def not_abstract(fun: Callable[..., Any], x: Any, name: str | None) -> TypeError:
    """What to raise for an argument that is no array."""
    path = "" if name is None else f" and was passed to the function at path {name}"
    return TypeError(
        f"Error interpreting argument to {fun} as an abstract array. The problematic value is of type "
        f"{type(x)}{path}.\nThis typically means that a jit-wrapped function was called with a non-array "
        "argument, and this argument was not marked as static using the static_argnums or "
        "static_argnames parameters of jax.jit.")


def check_hashable(x: Object) -> None:
    """Raises ValueError for a static argument without a hash."""
    try:
        hash(x)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to hash an "
            f"object of type {type(x)}, {x}. The error was:\nTypeError: {error}\n") from None


def abstract_arguments(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[int],
                       traced_for: str) -> tuple[FlatFunction, list[Any], list[Any]]:
    """The function as one of flat lists, the leaves of its arguments, and their abstract values.

    Arguments at positions `static` are passed as they are.
    """
    dynamic = tuple(a for i, a in enumerate(args) if i not in static)
    leaves, in_tree = flatten_arguments((dynamic, kwargs))
    flat = FlatFunction(fun, in_tree, [(i, args[i]) for i in sorted(set(static))], traced_for=traced_for)
    avals = []
    for i, x in enumerate(leaves):
        try:
            avals.append(abstractify(x))
        except TypeError:
            raise not_abstract(fun, x, flat.info(leaves).arg_names[i]) from None
    return flat, leaves, avals


def trace_function(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[int] = (),
                   traced_for: str = "jit") -> tuple[ClosedJaxpr, tree.PyTreeDef]:
    """Traces `fun(*args, **kwargs)` on the abstract values of its arguments.

    Arguments at positions `static` are passed as they are. Returns the program and the structure of
    the results.
    """
    flat, leaves, avals = abstract_arguments(fun, args, kwargs, static, traced_for)
    return trace_flat(flat, leaves, avals), flat.structure


def trace_flat(flat: FlatFunction, leaves: Sequence[Any], avals: Sequence[Any]) -> ClosedJaxpr:
    """The program of a function on these leaves, of which references must not be passed or returned twice."""
    traced_for = flat.traced_for or ""
    info = flat.info(avals)
    takes_refs = any(isinstance(a, AbstractRef) for a in avals)
    if takes_refs:
        check_arguments(leaves, (), traced_for, info)
    closed = trace_to_jaxpr(flat, avals, info)
    check_returned(closed, flat.structure, traced_for)
    if takes_refs:
        check_arguments(leaves, closed.consts, traced_for, info)
    return closed
