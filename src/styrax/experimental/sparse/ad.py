"""Derivatives with respect to sparse arrays: those of their stored elements, at the same positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import styrax.numpy as jnp
from styrax.core.trees import tree
from styrax.core.types.typing import Function, PyTree
from styrax.transforms import api, naming

from .bcoo.array import BCOO
from .rules import is_sparse


def _of_data(fun: Callable[..., Any], argnums: int | Sequence[int], args: Sequence[Any],
             kwargs: dict[str, Any]) -> tuple[Callable[..., Any], list[Any], list[Any], tree.PyTreeDef]:
    """A function of the flat elements of some arguments, these, the arrays that they belong to, and their structure."""
    chosen = [argnums] if isinstance(argnums, int) else list(argnums)
    chosen = [i % len(args) if -len(args) <= i < len(args) else i for i in chosen]
    wanted: Any = tuple(args[i] for i in chosen)
    arrays, structure = tree.tree_flatten(wanted[0] if isinstance(argnums, int) else wanted, is_leaf=is_sparse)

    def of_data(*data: Any) -> Any:
        rebuilt = structure.unflatten([_with(x, d) for x, d in zip(arrays, data, strict=True)])
        full = list(args)
        for i, value in zip(chosen, [rebuilt] if isinstance(argnums, int) else rebuilt, strict=True):
            full[i] = value
        return fun(*full, **kwargs)

    return of_data, [x.data if is_sparse(x) else x for x in arrays], arrays, structure


def _with(x: Any, data: Any) -> Any:
    """A sparse array with other elements, or these alone."""
    if not is_sparse(x):
        return data
    _, aux = x.tree_flatten()
    return type(x).tree_unflatten(aux, (data, *x._bufs[1:]))


def value_and_grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   **kwargs: PyTree) -> Function:
    """`jax.value_and_grad`, with gradients of sparse arguments that are sparse, at the same positions.

    Args:
      fun: a function of arrays and containers of them whose result is a scalar.
      argnums: positions of the arguments to differentiate.
      has_aux: whether `fun` returns a pair of the scalar and something else.
      **kwargs: what else `jax.value_and_grad` takes.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import sparse
      >>> sparse.value_and_grad(lambda X, y: X @ y)(sparse.BCOO.fromdense(jnp.arange(6.0)), jnp.ones(6))
      (Array(15., dtype=float32), BCOO(float32[6], nse=5))
    """
    @naming.wraps(fun)
    def wrapped(*args: PyTree, **params: PyTree) -> PyTree:
        of_data, data, arrays, structure = _of_data(fun, argnums, args, params)
        value, grads = api.value_and_grad(of_data, tuple(range(len(data))), has_aux, **kwargs)(*data)
        return value, structure.unflatten([_with(x, g) for x, g in zip(arrays, grads, strict=True)])

    return wrapped


def grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: PyTree) -> Function:
    """`jax.grad`, with gradients of sparse arguments that are sparse; see `value_and_grad`.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import sparse
      >>> sparse.grad(lambda X, y: X @ y)(sparse.BCOO.fromdense(jnp.arange(6.0)), jnp.ones(6))
      BCOO(float32[6], nse=5)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @naming.wraps(fun)
    def wrapped(*args: PyTree, **params: PyTree) -> PyTree:
        value, grads = both(*args, **params)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def _jacobian(transform: Callable[..., Any], fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
              kwargs: dict[str, Any]) -> Callable[..., Any]:
    @naming.wraps(fun)
    def wrapped(*args: PyTree, **params: PyTree) -> PyTree:
        of_data, data, arrays, structure = _of_data(fun, argnums, args, params)
        out = transform(of_data, tuple(range(len(data))), has_aux=has_aux, **kwargs)(*data)
        jacobians, aux = out if has_aux else (out, None)
        # for each result the derivatives of all arguments stand in a tuple
        found = tree.tree_map(lambda each: structure.unflatten(
            [_jacobian_of(x, j) for x, j in zip(arrays, each, strict=True)]), jacobians,
            is_leaf=lambda x: isinstance(x, tuple) and len(x) == len(arrays) and not any(
                isinstance(y, (tuple, list, dict)) for y in x))
        return (found, aux) if has_aux else found

    return wrapped


def _jacobian_of(x: Any, jacobian: Any) -> Any:
    """Derivatives of a dense result with respect to an argument; of a BCOO array they are one with more batches."""
    if not is_sparse(x):
        return jacobian
    if not isinstance(x, BCOO):
        raise NotImplementedError(f"Jacobians with respect to {type(x).__name__} arrays")
    extra = jacobian.shape[:jacobian.ndim - x.data.ndim]
    indices = jnp.broadcast_to(x.indices, (*extra, *x.indices.shape))
    return BCOO((jacobian, indices), shape=(*extra, *x.shape), indices_sorted=x.indices_sorted,
                unique_indices=x.unique_indices)


def jacfwd(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: PyTree) -> Function:
    """`jax.jacfwd`, with Jacobians with respect to BCOO arrays that are BCOO arrays; results of `fun` are dense."""
    return _jacobian(api.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: PyTree) -> Function:
    """`jax.jacrev`, with Jacobians with respect to BCOO arrays that are BCOO arrays; results of `fun` are dense."""
    return _jacobian(api.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
