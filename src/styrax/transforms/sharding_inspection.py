"""How values of compiled programs are spread: callbacks that are told when a program is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.arrays import backends
from ..core.arrays.gspmd_sharding import GSPMDSharding
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.trace import Tracer
from ..core.trees import tree
from ..core.types.physical import physicals
from ..core.types.typing import PyTree
from .debugging import debug_effect

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder, Value

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True)
inspect_sharding_p.asks_sharding = True


def inspect_array_sharding(value: PyTree, *, callback: Callable[[Any], None]) -> None:
    """Calls `callback(sharding)` with where arrays live; in a program, when it is compiled."""
    for x in tree.tree_leaves(value):
        if isinstance(x, Tracer):
            inspect_sharding_p.bind(x, callback=callback)
        else:
            callback(x.sharding)


@inspect_sharding_p.def_effectful_abstract_eval
def _avals(*_: Any, callback: Callable[[Any], None]) -> tuple[list, frozenset]:
    return [], frozenset({debug_effect})


def _impl(x: Any, *, callback: Callable[[Any], None]) -> list[Any]:
    callback(x.sharding)
    return []


def _loops(b: Builder, x: Value, *, callback: Callable[[Any], None]) -> list[Any]:
    if not backends.several:  # (where there are, sharding propagation tells)
        callback(GSPMDSharding.get_replicated(backends.get().devices()[:1]))
    return []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list, list]:
    return inspect_sharding_p.bind(*primals, **params), []


def _batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[list, list]:
    return inspect_sharding_p.bind(*args, **params), []


inspect_sharding_p.def_impl(_impl)
rules.loops[inspect_sharding_p] = _loops
rules.stablehlos[inspect_sharding_p] = lambda m, x, *, callback: []
rules.jvps[inspect_sharding_p] = _jvp
rules.batchers[inspect_sharding_p] = _batch
physicals[inspect_sharding_p] = lambda _, *args, **params: inspect_sharding_p.bind(*args, **params)

__all__ = ["inspect_array_sharding", "inspect_sharding_p"]
