"""Functions that compilers have to compute in one loop. The CPU compiler fuses what it can in any case."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.trees import tree
from ..core.types.typing import Function, Object
from ..transforms.marked_calls import bind_marked, marked_call

fused_p = marked_call("fused_call")


def fused(*, out_spaces: tuple[Object, ...]) -> Callable[[Function], Function]:
    """A decorator: the function is one fused operation.

    Args:
      out_spaces: the memory space of each of its results.

    Raises:
      ValueError: at a call, when there are more or fewer results.
    """

    def decorate(fun: Function) -> Function:
        def spaces(results: tree.PyTreeDef) -> dict[str, Any]:
            if results.num_leaves != len(out_spaces):
                raise ValueError(f"fused: there are {results.num_leaves} results but {len(out_spaces)} out_spaces")
            return {"out_spaces": tuple(out_spaces)}

        @functools.wraps(fun)
        def wrapped(*args: Any) -> Any:
            return bind_marked(fused_p, fun, args, spaces)

        return wrapped

    return decorate


__all__ = ["fused", "fused_p"]
