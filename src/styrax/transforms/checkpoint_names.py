"""Names of values, by which the policies of `checkpoint` save or offload them."""

from __future__ import annotations

from typing import Any

from ..core.programs.primitive import Primitive
from ..core.programs.rules import batchers, jvps, loops, same_value, stablehlos
from ..core.trees import tree
from ..core.types.typing import PyTree

name_p = Primitive("name")
name_p.def_abstract_eval(lambda x, *, name: x)
name_p.def_impl(lambda x, *, name: x)


def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """Names the arrays of a pytree, for policies that save by name; their values stay as they are."""
    return tree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def _name_jvp(primals: Any, tangents: Any, *, name: str) -> Any:
    (x,), (t,) = primals, tangents
    return name_p.bind(x, name=name), t


jvps[name_p] = _name_jvp
batchers[name_p] = lambda args, dims, *, name: (name_p.bind(args[0], name=name), dims[0])
loops[name_p] = same_value
stablehlos[name_p] = lambda m, x, *, name: x
