"""Where parts of a program are computed: on the device or on its host. On CPUs both are one."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.trees import tree, tree_paths
from ..core.types.typing import Function, Object, PyTree
from ..transforms.marked_calls import bind_marked, marked_call

compute_on_p = marked_call("compute_on")


def _check(compute_type: str) -> None:
    if not isinstance(compute_type, str):
        raise TypeError(f"`compute_on`'s compute_type argument must be a string, but got {compute_type!r}.")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not re.fullmatch(
            r"gpu_stream:\d+", compute_type):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, "
                         "`tpu_sparsecore`, and `gpu_stream:#`.")


@contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """What is traced inside is computed at the place of that name: a context manager, or a decorator.

    Raises:
      ValueError: on entry, for a name that stands for no place.
    """
    _check(compute_type)
    yield


def compute_on2(f: Function | None = None, *, compute_type: str, out_memory_spaces: PyTree,
                compiler_options: dict[str, Object] | None = None) -> Function:
    """A function that is computed at a place.

    Args:
      f: the function; without it, a decorator is returned.
      compute_type: the name of the place.
      out_memory_spaces: where the results are to be: a prefix of their tree.
      compiler_options: for the compiler of that place.
    """
    if f is None:
        return functools.partial(compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
                                 compiler_options=compiler_options)
    _check(compute_type)
    fun: Callable[..., Any] = f
    options = None if compiler_options is None else json.dumps(compiler_options, sort_keys=True)

    def spaces(results: tree.PyTreeDef) -> dict[str, Any]:
        whole = tree.tree_unflatten(results, range(results.num_leaves))
        return {"out_memory_spaces": tuple(tree_paths.broadcast_prefix(out_memory_spaces, whole))}

    @functools.wraps(fun)
    def computed(*args: Any) -> Any:
        return bind_marked(compute_on_p, fun, args, spaces, compute_type=compute_type, compiler_options_json=options)

    return computed


__all__ = ["compute_on", "compute_on2"]
