"""Looking into running programs."""

from __future__ import annotations

from .transforms.breakpoints import breakpoint
from .transforms.debugging import DebugEffect, OrderedDebugEffect
from .transforms.debugging import debug_callback as callback
from .transforms.debugging import debug_log as log
from .transforms.debugging import debug_print as print
from .transforms.drawings import visualize_array_sharding, visualize_sharding
from .transforms.sharding_inspection import inspect_array_sharding

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log", "print",
    "visualize_array_sharding", "visualize_sharding",
]
