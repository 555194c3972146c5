"""Constants: arrays at once, or, while a program is written, literals of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.staging import StagingTrace, owner_of_constants
from ..tracing.trace import state
from ..types import dtypes
from ..types.avals import ShapedArray
from . import backends


def constant(value: Any, aval: ShapedArray) -> Any:
    """A NumPy value or a number as an array; a scalar as a literal of the program that is being written, if one is."""
    if not state.trace.is_eval and not aval.shape and aval.dtype != dtypes.float0:
        owner = owner_of_constants(state.trace)
        if isinstance(owner, StagingTrace):
            return owner.literal(np.asarray(value, aval.dtype)[()], aval)
    return backends.get().put(np.asarray(value, aval.dtype), aval, None)
