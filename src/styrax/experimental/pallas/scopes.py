"""Memory that lives as long as a part of a kernel: `run_scoped`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ...core.arrays.array import Array
from ...core.hooks import lax
from ...core.trees import tree
from ...core.types.avals import AbstractRef
from ...core.types.typing import DTypeLike, PyTree, Shape, ShardingLike
from ...transforms.references import Ref, new_ref_p
from .loop_nests import initial_contents
from .specs import MemoryRef, ScratchShape

T = TypeVar("T")


def run_scoped(f: Callable[..., T], *types: ScratchShape, collective_axes: Hashable | tuple[Hashable, ...] = (),
               **kw_types: ScratchShape) -> T:
    """Calls a function with references to memory of its own.

    Args:
      f: function of references, in the order and by the names of the types. It may return arrays, and no references.
      types: shapes, dtypes and places in memory: `MemorySpace.ANY((8,), jnp.float32)`; also trees of them.
      collective_axes: axes whose programs share the memory. On CPUs there is one program.
      kw_types: types by name.

    Returns:
      what `f` returns.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> def kernel(x_ref, o_ref):
      ...     def scope(total_ref):
      ...         total_ref[...] = x_ref[...] + 1.0
      ...         o_ref[...] = total_ref[...]
      ...     pl.run_scoped(scope, pl.MemorySpace.ANY((2,), jnp.float32))
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)(jnp.ones(2))
      Array([2., 2.], dtype=float32)
    """
    args, kwargs = tree.tree_map(_new, (types, kw_types), is_leaf=lambda x: hasattr(x, "get_ref_aval"))
    return f(*args, **kwargs)


def _new(ty: ScratchShape) -> Ref:
    aval: AbstractRef = ty.get_ref_aval()
    return new_ref_p.bind(initial_contents(aval), memory_space=aval.memory_space, kind=aval.kind)


def with_scoped(*types: ScratchShape, collective_axes: Hashable | tuple[Hashable, ...] = (),
                **kw_types: ScratchShape) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """`run_scoped` as a decorator: the function's own arguments come first, then the references."""
    def decorate(f: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(f)
        def scoped(*args: Any, **kwargs: Any) -> T:
            return run_scoped(functools.partial(f, *args, **kwargs), *types, collective_axes=collective_axes,
                              **kw_types)

        return scoped

    return decorate


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """An array of which only shape and dtype matter."""
    return lax.empty(shape, dtype, out_sharding=out_sharding)


def empty_like(x: PyTree) -> PyTree:
    """A tree of arrays of which only shapes and dtypes matter, those of the leaves of `x`."""
    return tree.tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: MemoryRef | AbstractRef) -> Ref:
    """A new reference of the shape, dtype and place in memory of `x`.

    Raises:
      ValueError: `x` is no place in memory.
    """
    if isinstance(x, MemoryRef):
        return _new(x)
    if isinstance(x, AbstractRef):
        return new_ref_p.bind(initial_contents(x), memory_space=x.memory_space, kind=x.kind)
    raise ValueError(f"empty_ref_like does not support {type(x)}")


