"""How many threads a process has unless it asks for others."""

from __future__ import annotations

import os


def threads() -> int:
    """As many as the environment's ``STYRAX_NUM_THREADS`` says, or as there are processors for this process."""
    named = os.environ.get("STYRAX_NUM_THREADS", "")
    if named.isdigit() and int(named) > 0:
        return min(int(named), 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

