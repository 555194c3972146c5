"""Functions of trees, and how trees differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ... import tree_util as _public
from ...core.trees.differences import equality_errors, equality_errors_pytreedef, prefix_errors
from ...core.trees.registry import default_registry
from ...core.trees.tree_paths import broadcast_prefix


class _RegistryEntry(NamedTuple):
    """How a class of nodes is taken apart, and made again."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class _Registry(Mapping[type, _RegistryEntry]):
    """The classes of nodes that are registered."""

    def __getitem__(self, cls: type) -> _RegistryEntry:
        node = default_registry.nodes[cls]
        return _RegistryEntry(node.flatten, node.build)

    def __iter__(self) -> Iterator[type]:
        return iter(default_registry.nodes)

    def __len__(self) -> int:
        return len(default_registry.nodes)


_registry = _Registry()


def treedef_is_strict_leaf(treedef: _public.PyTreeDef) -> bool:
    """Whether it is that of a leaf, and not of None."""
    return treedef.num_nodes == treedef.num_leaves == 1


def broadcast_flattened_prefix_with_treedef(
    prefix_leaves: list[Any], prefix_treedef: _public.PyTreeDef, full_treedef: _public.PyTreeDef
) -> list[Any]:
    """The leaves of a prefix, each as often as the whole tree has leaves in its place. ValueError for what is none."""
    places = prefix_treedef.flatten_up_to(full_treedef.unflatten([0] * full_treedef.num_leaves))
    return [leaf for leaf, part in zip(prefix_leaves, places, strict=True)
            for _ in range(_public.tree_structure(part).num_leaves)]


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


__all__ = [
    "broadcast_flattened_prefix_with_treedef", "broadcast_prefix", "equality_errors", "equality_errors_pytreedef",
    "prefix_errors", "treedef_is_strict_leaf",
]
