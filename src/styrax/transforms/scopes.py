"""Names for parts of a program, seen in profiles and messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ParamSpec, TypeVar

from ..core.programs import name_stack

P = ParamSpec("P")
R = TypeVar("R")


def named_scope(name: str) -> AbstractContextManager[None]:
    """Names the operations inside. TypeError if `name` is not a string.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> with jax.named_scope('layer'):
      ...     x = jnp.ones(2)
    """
    if not isinstance(name, str):
        raise TypeError("named_scope name argument must be a string.")
    return _scope(name)


@contextmanager
def _scope(name: str) -> Iterator[None]:
    with name_stack.extend_name_stack(name):
        yield


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` with its operations under a name, its own by default."""

    @functools.wraps(fun)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(name or fun.__name__):
            return fun(*args, **kwargs)

    return named
