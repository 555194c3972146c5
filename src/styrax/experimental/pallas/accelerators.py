"""What needs an accelerator's compiler: names with their parameters, whose calls say that CPUs have none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import NoReturn

from ...core.types.typing import PyTree


def needs(what: str, backend: str = "an accelerator") -> NoReturn:
    """Raises NotImplementedError: `what` is done by the compiler of a backend."""
    raise NotImplementedError(f"`{what}` needs {backend}: on CPUs there is nothing that it could stand for")


def only_on(backend: str, name: str, parameters: str = "") -> Callable[..., NoReturn]:
    """A function whose calls raise NotImplementedError.

    Args:
      backend: what it would need.
      name: its name.
      parameters: their names with spaces between them, in order; `*` begins those that are passed by name, `*name` and
        `**name` take all others, and `name=value` has a default, a literal without spaces.
    """
    def fun(*args: PyTree, **kwargs: PyTree) -> NoReturn:
        needs(name, backend)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"Needs {backend}; raises NotImplementedError on CPUs."
    fun.__signature__ = Signature(list(_parameters(parameters.split())), return_annotation=NoReturn)  # type: ignore[attr-defined]
    return fun


def _parameters(words: list[str]) -> Iterator[Parameter]:
    by_name = False
    for word in words:
        name, has_default, default = word.partition("=")
        if name == "*":
            by_name = True
        elif name.startswith("**"):
            yield Parameter(name[2:], Parameter.VAR_KEYWORD, annotation="PyTree")
        elif name.startswith("*"):
            yield Parameter(name[1:], Parameter.VAR_POSITIONAL, annotation="PyTree")
            by_name = True
        else:
            value = ast.literal_eval(default) if has_default else Parameter.empty
            kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
            yield Parameter(name, kind, default=value, annotation="PyTree")


_ANY = "an accelerator"
core_map = only_on(_ANY, "core_map", "mesh * compiler_params=None interpret=False debug=False cost_estimate=None "
                   "name=None metadata=None scratch_shapes=()")
delay = only_on(_ANY, "delay", "nanos")
get_global = only_on(_ANY, "get_global", "what")
kernel = only_on(_ANY, "kernel", "body=None out_type=() * mesh scratch_types=() compiler_params=None interpret=False "
                 "cost_estimate=None debug=False name=None metadata=None")
lower_as_mlir = only_on(_ANY, "lower_as_mlir", "f *args dynamic_shapes=False device=None static_argnames=() "
                        "platforms=None **kwargs")
pallas_export_experimental = only_on(_ANY, "pallas_export_experimental", "dynamic_shapes")
select_ref = only_on(_ANY, "select_ref", "idx *refs")
