"""Control flow in kernels: `when` and `loop`, as decorators of what is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...core.hooks import lax
from ...core.trees import tree
from ...core.types.typing import ArrayLike
from ...transforms import references
from .arithmetic import cdiv

T = TypeVar("T")


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Calls the decorated function if a condition holds.

    Args:
      condition: a boolean scalar. Where it is a Python boolean, nothing else is written down.

    Returns:
      a decorator for functions without arguments or results, which change references.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> def kernel(o_ref):
      ...     @pl.when(pl.program_id(0) == 0)
      ...     def _():
      ...         o_ref[...] = jnp.zeros_like(o_ref)
      ...     o_ref[...] += 1.0
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), grid=(3,), interpret=True)()
      Array([3., 3.], dtype=float32)
    """
    def decorate(do: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                do()
        else:
            lax.cond(condition, do, lambda: None)

    return decorate


def loop(lower: ArrayLike, upper: ArrayLike, *, init_carry: T | None = None, step: ArrayLike = 1,
         unroll: int | bool | None = None) -> Callable[[Callable[..., T | None]], T | None]:
    """Calls the decorated function for the integers from `lower` up to but not including `upper`.

    Args:
      lower, upper: integer scalars.
      init_carry: a tree of arrays that the function takes as its second argument and returns; without it, it takes the
        integer alone and returns None.
      step: the distance of one integer from the next, positive.
      unroll: see `lax.fori_loop`.

    Returns:
      a decorator that gives the carry after the last call, or None.

    Example:
      >>> from styrax.experimental import pallas as pl
      >>> @pl.loop(0, 7, step=3, init_carry=0)
      ... def total(i, carry):
      ...     return carry + i
      >>> total
      Array(9, dtype=int32, weak_type=True)
    """
    def decorate(body: Callable[..., T | None]) -> T | None:
        def turn(number: Any, carry: Any) -> Any:
            i = lower + number * step
            return body(i) if init_carry is None else body(i, carry)

        count: Any = cdiv(upper - lower, step)  # type: ignore[arg-type, operator]
        return lax.fori_loop(0, count, turn, init_carry, unroll=unroll)

    return decorate


def run_state(f: Callable[..., None]) -> Callable[[T], T]:
    """The function of a tree of arrays that gives their contents after `f` has changed references to them.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> def body(refs):
      ...     x_ref, y_ref = refs
      ...     y_ref[...] = 2 * x_ref[...]
      >>> pl.run_state(body)((jnp.ones(2), jnp.zeros(2)))[1]
      Array([2., 2.], dtype=float32)
    """
    def run(state: T) -> T:
        refs = tree.tree_map(references.new_ref, state)
        f(refs)
        return tree.tree_map(references.freeze, refs)

    return run
