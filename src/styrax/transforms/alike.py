"""Values that are the same for all examples, although they have the mapped axis for their cotangents' sake.

Results of custom rules that no mapped operand enters are; so is what is computed from such values alone. What has no
cotangents needs no axis then: a branch that such a value chooses is chosen once, and random bits from such a key are
drawn once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import hooks
from ..core.programs.jaxpr import Jaxpr, jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.programs.rules import fancy_batchers
from ..core.types import dtypes

# Primitives that may give examples different results of equal operands, besides collectives and what has effects:
# random bits of a batch are drawn at once, and rules of users may do anything.
tells_apart: set[Primitive] = set()


def keeps_alike(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether operands that are the same for all examples give results that are."""
    if primitive.ref_primitive or primitive in tells_apart:
        return False
    programs = list(jaxprs_in_params(params))
    return all(map(_each_keeps_alike, programs)) if programs else primitive not in fancy_batchers


def _each_keeps_alike(jaxpr: Jaxpr) -> bool:
    return not jaxpr.effects and all(keeps_alike(eqn.primitive, eqn.params) for eqn in jaxpr.eqns)


def has_cotangents(aval: Any) -> bool:
    """Whether values of a type have cotangents other than zero."""
    dtype = getattr(aval, "dtype", None)
    return dtype is None or bool(dtypes.issubdtype(dtype, np.inexact))


def one_of(x: Any, dim: int) -> Any:
    """An array without its mapped axis, along which it is the same."""
    return hooks.lax.index_in_dim(x, 0, dim, keepdims=False)


__all__ = ["has_cotangents", "keeps_alike", "one_of", "tells_apart"]
