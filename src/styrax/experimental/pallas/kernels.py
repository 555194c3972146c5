"""`pallas_call` with all its rules."""

from __future__ import annotations

from . import call_rules
from .calls import pallas_call, pallas_call_p

__all__ = ["call_rules", "pallas_call", "pallas_call_p"]
