"""Programs of runtimes that are plugged in. There is none, so that the namespace of their makers is empty."""

from __future__ import annotations

from types import SimpleNamespace

ifrt_programs = SimpleNamespace()

__all__ = ["ifrt_programs"]
