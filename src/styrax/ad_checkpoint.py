"""What reverse-mode differentiation keeps and what it computes again."""

from __future__ import annotations

from .transforms.checkpoint import checkpoint, print_saved_residuals, saved_residuals
from .transforms.checkpoint_names import checkpoint_name, name_p
from .transforms.checkpoint_policies import checkpoint_policies
from .transforms.partial import Offloadable, Recompute, Saveable

remat = checkpoint
checkpoint_name_fwd = checkpoint_name  # names what the forward pass computes; tangents and cotangents have no names

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_name_fwd",
    "checkpoint_policies", "name_p",
    "print_saved_residuals", "remat", "saved_residuals",
]
