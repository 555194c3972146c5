"""Jacobians: `jacfwd`, `jacrev` and `hessian`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import hooks
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.manual_axes import in_order
from ..core.types.typing import Function
from .calls import check_input, check_input_jacfwd, check_output, check_output_jacfwd
from .derivatives import jvp
from .mapping import vmap
from .naming import check_callable, split_arguments, wraps
from .pullbacks import vjp
from .zeros import is_float0


@api_boundary
def jacfwd(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Function:
    """The Jacobian of a function, column by column in forward mode.

    Args:
      fun: a function of arrays and containers of them.
      argnums: position or positions of the arguments to differentiate with regard to.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      holomorphic: whether `fun` is promised to be holomorphic.

    Returns:
      A function of the same arguments. For each array of the result (of shape `out`) and each of the
      differentiated arguments (of shape `in`) it gives an array of shape `out + in`: the structure of
      the results, with the structure of the arguments in place of each leaf. With `has_aux` a pair of
      that and the auxiliary part.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
      Array([[2., 0.],
             [0., 4.]], dtype=float32)
    """
    check_callable(fun)

    @wraps(fun, docstr=_JACOBIAN_DOC, argnums=argnums)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, single = _choose(fun, args, kwargs, argnums)
        leaves, in_tree = tree.tree_flatten(chosen)
        for x in leaves:
            check_input_jacfwd(holomorphic, x)

        def push(*tangents: Any) -> Any:
            return jvp(partial, chosen, tree.tree_unflatten(in_tree, tangents), has_aux=has_aux)

        basis = _basis(leaves)
        if has_aux:
            value, columns, aux = vmap(push, out_axes=(None, -1, None))(*basis)
        else:
            value, columns = vmap(push, out_axes=(None, -1))(*basis)
        for y in tree.tree_leaves(value):
            check_output_jacfwd(holomorphic, y)
        shapes = [get_aval(x).shape for x in leaves]

        def unravel(y: Any, column: Any) -> Any:
            aval = get_aval(column)
            shape = aval.shape[:-1]
            if aval.dtype == dtypes.float0:  # an integer result does not change
                column = hooks.lax.full(aval.shape, 0, get_aval(y).dtype)
            parts = _split(column, shapes, len(shape))
            result = tree.tree_unflatten(
                in_tree, [_as_weak_as(_reshape(p, shape + s), y) for p, s in zip(parts, shapes, strict=True)])
            return result[0] if single else result

        found = tree.tree_map(unravel, value, columns)
        return (found, aux) if has_aux else found

    return jacobian


_JACOBIAN_DOC = ("Jacobian of {fun} with respect to positional argument(s) {argnums}. Takes the same arguments as "
                 "{fun} but returns the jacobian of the output with respect to the arguments at positions {argnums}.")


@api_boundary
def jacrev(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Function:
    """The Jacobian of a function, row by row in reverse mode; see `jacfwd`.

    With `allow_int`, integer arguments are allowed; their Jacobians have dtype `float0`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.jacrev(lambda x: x.sum() * x)(jnp.array([1.0, 2.0]))
      Array([[4., 1.],
             [2., 5.]], dtype=float32)
    """
    check_callable(fun)

    @wraps(fun, docstr=_JACOBIAN_DOC, argnums=argnums)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, single = _choose(fun, args, kwargs, argnums)
        for x in tree.tree_leaves(chosen):
            check_input("jacrev", holomorphic, allow_int, x)
        value, pull, *aux = vjp(partial, *chosen, has_aux=has_aux)
        outs, out_tree = tree.tree_flatten(value)
        for y in outs:
            check_output("jacrev", holomorphic, y)
        rows = vmap(lambda *cts: pull(tree.tree_unflatten(out_tree, cts)))(*_basis(outs))
        rows = rows[0] if single else rows
        leaves, in_tree = tree.tree_flatten(rows)
        shapes = [get_aval(y).shape for y in outs]
        by_leaf = []
        for row, x in zip(leaves, tree.tree_leaves(chosen), strict=True):
            shape = get_aval(row).shape[1:]
            parts = _split(row, shapes, 0)
            by_leaf.append([_as_weak_as(_reshape(p, s + shape), x) for p, s in zip(parts, shapes, strict=True)])
        found = tree.tree_unflatten(out_tree, [
            tree.tree_unflatten(in_tree, [parts[k] for parts in by_leaf]) for k in range(len(outs))])
        return (found, aux[0]) if has_aux else found

    return jacobian


@api_boundary
def hessian(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Function:
    """The matrix of second derivatives of a function: `jacfwd` of `jacrev`, with their arguments.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([1.0, 2.0]))
      Array([[4., 2.],
             [2., 0.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _choose(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any],
            argnums: int | Sequence[int]) -> tuple[Callable, tuple, bool]:
    """The function of the chosen arguments alone, and those arguments."""
    at = split_arguments(args, argnums)

    def partial(*chosen: Any) -> Any:
        given = list(args)
        for i, x in zip(at, chosen, strict=True):
            given[i] = x
        return fun(*given, **kwargs)

    return partial, tuple(args[i] for i in at), isinstance(argnums, int)


def _size(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The unit vectors of a list of arrays: for each leaf an array with all of them in front."""
    avals = [get_aval(x) for x in leaves]
    total = sum(_size(a.shape) for a in avals)
    lax = hooks.lax
    found: list[Any] = []
    offset = 0
    for aval in avals:
        n = _size(aval.shape)
        if aval.to_tangent_aval().dtype == dtypes.float0:
            found.append(np.zeros((total, *aval.shape), dtypes.float0))
        else:
            rows = lax.broadcasted_iota(np.int32, (total, n), 0)
            columns = lax.broadcasted_iota(np.int32, (total, n), 1)
            ones = lax.eq(rows, lax.add(columns, np.int32(offset)))
            units = lax.convert_element_type_p.bind(
                ones, new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=None)
            axes = in_order(getattr(aval, "vma", ()))  # (references have none)
            found.append(hooks.varying(lax.reshape(units, (total, *aval.shape)), axes, spread=True))
        offset += n
    return found


def _split(x: Any, shapes: Sequence[tuple], axis: int) -> list[Any]:
    """Cuts an array along an axis in parts of the sizes of `shapes`."""
    if len(shapes) == 1:
        return [x]
    sizes = [_size(shape) for shape in shapes]
    return np.split(x, np.cumsum(sizes)[:-1], axis) if is_float0(x) else hooks.lax.split(x, sizes, axis)


def _reshape(x: Any, shape: tuple) -> Any:
    return x.reshape(shape) if is_float0(x) else hooks.lax.reshape(x, shape)


def _as_weak_as(x: Any, argument: Any) -> Any:
    """A part of a Jacobian, weakly typed where the argument is."""
    weak = get_aval(argument).weak_type
    if is_float0(x) or get_aval(x).weak_type == weak:
        return x
    return hooks.lax.convert_element_type_p.bind(x, new_dtype=get_aval(x).dtype, weak_type=weak, sharding=None)
