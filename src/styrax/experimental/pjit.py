"""`pjit`, which `jit` has become."""

from __future__ import annotations

from ..lax.collectives.placing import with_sharding_constraint
from ..transforms.jit import jit as pjit

__all__ = ["pjit", "with_sharding_constraint"]
