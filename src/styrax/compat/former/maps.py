"""Meshes, by their former module."""

from ...core.arrays.mesh import Mesh

__all__ = ["Mesh"]
