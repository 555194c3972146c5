"""Programs on several devices: the mesh that `with mesh:` puts in force, as libraries ask for it."""

from __future__ import annotations

from ..core.arrays.mesh import thread_resources

__all__ = ["thread_resources"]
