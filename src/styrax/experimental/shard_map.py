"""`shard_map`, by its former name and with its former arguments."""

from __future__ import annotations

from collections.abc import Callable

from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.types.typing import PyTree
from ..parallel import shard_mapping


def shard_map(f: Callable[..., PyTree], mesh: Mesh | AbstractMesh, in_specs: PyTree, out_specs: PyTree,
              check_rep: bool = True) -> Callable[..., PyTree]:
    """As `jax.shard_map`, with the mesh by position and `check_rep` for what `check_vma` is today.

    Args:
      f: a function of trees of arrays.
      mesh: the mesh.
      in_specs, out_specs: how arguments are cut into parts, and results made up of them.
      check_rep: whether to check that results said to be equal on all devices are.

    Returns:
      a function of the same arguments.

    Raises:
      ValueError: a specification does not fit the mesh or an argument.
    """
    return shard_mapping.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


__all__ = ["shard_map"]
