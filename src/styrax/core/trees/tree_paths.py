"""Functions of pytrees with key paths, registration of classes with named children, and prefix trees."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ..types.typing import Object, PyTree
from .differences import equality_errors as equality_errors
from .differences import equality_errors_pytreedef as equality_errors_pytreedef
from .differences import not_a_prefix as not_a_prefix
from .differences import prefix_errors as prefix_errors
from .differences import raise_prefix_error
from .key_paths import DictKey as DictKey
from .key_paths import FlattenedIndexKey as FlattenedIndexKey
from .key_paths import GetAttrKey, KeyEntry, KeyPath, keyed_children
from .key_paths import SequenceKey as SequenceKey
from .key_paths import keystr as keystr
from .registry import default_registry, none_leaf_registry, unfold
from .tree import Class, Leaf, register_pytree_node, tree_flatten, tree_structure
from .treedef import Node, PyTreeDef


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[KeyPath, Leaf]], PyTreeDef]:
    """The ``(key path, leaf)`` pairs of a pytree, and its structure.

    Args:
      is_leaf: a predicate of a node, or of its key path and the node with ``is_leaf_takes_path=True``.
    """

    def parts(item: tuple[KeyPath, Any]) -> tuple[Node, Any, Iterable[tuple[KeyPath, Any]]] | None:
        path, x = item
        stop = is_leaf is not None and (is_leaf(path, x) if is_leaf_takes_path else is_leaf(x))
        node = None if stop else default_registry.node(type(x))
        if node is None:
            return None
        pairs, data = keyed_children(node, x)
        return node, data, [((*path, k), c) for k, c in pairs]

    found: list[tuple[KeyPath, Any]] = []
    return found, unfold(((), tree), parts, found)


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Leaf]]:
    """The ``(key path, leaf)`` pairs of a pytree.

    Example:
      >>> import styrax as jax
      >>> jax.tree.leaves_with_path({'a': 1, 'b': [2]})
      [((DictKey(key='a'),), 1), ((DictKey(key='b'), SequenceKey(idx=0)), 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


generate_key_paths = tree_leaves_with_path


def tree_map_with_path(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> PyTree:
    """As ``tree_map``, with the key path as the first argument of ``f``.

    Example:
      >>> import styrax as jax
      >>> jax.tree.map_with_path(lambda path, x: jax.tree_util.keystr(path), {'a': [1, 2]})
      {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [list(c) for c in zip(*pairs)] if pairs else [[], []]
    for other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError as error:
            predicate = None if is_leaf_takes_path else is_leaf
            raise_prefix_error("tree_map_with_path tree", tree, other, predicate, error)
    return treedef.unflatten([f(*row) for row in zip(*columns)])


def flatten_one_level_with_keys(tree: PyTree) -> tuple[Iterable[tuple[KeyEntry, PyTree]], Hashable]:
    """The ``(key, child)`` pairs of the outermost node and its static data. ``ValueError`` for a leaf."""
    node = default_registry.node(type(tree))
    if node is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    pairs, data = keyed_children(node, tree)
    return pairs, type(tree) if node.kind == "namedtuple" else data  # type: ignore[return-value]


def register_pytree_with_keys(nodetype: type[Any],
                              flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
                              unflatten_func: Callable[[Any, Iterable[Any]], Any],
                              flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None) -> None:
    """Makes a class a node whose children have names.

    Args:
      flatten_with_keys: takes a value, gives ``((key, child) pairs, static data)``.
      unflatten_func: takes the static data and the children, gives a value.
      flatten_func: the same as ``flatten_with_keys`` without the keys, where that is faster.
    """
    if flatten_func is None:

        def flatten_func(x: Any) -> tuple[list[Any], Any]:
            pairs, data = flatten_with_keys(x)
            return [c for _, c in pairs], data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Class decorator for classes with ``tree_flatten_with_keys`` and ``tree_unflatten(aux, children)``."""
    plain = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, plain)
    return cls


def register_dataclass(nodetype: Class, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()) -> Class:
    """Makes a dataclass a node: some fields are children, the others static data. Also a decorator.

    Args:
      data_fields: names of the fields that are children. Without these two, fields whose metadata say
        ``static=True`` are static and the others are children.
      meta_fields: names of the static fields: hashable, compared by ``==``.
      drop_fields: fields that are neither.

    Returns:
      ``nodetype``.

    Raises:
      TypeError: one of the two lists is missing.
      ValueError: the lists overlap, or are not the fields of the class.

    Example:
      >>> import styrax as jax
      >>> import dataclasses
      >>> @jax.tree_util.register_dataclass
      ... @dataclasses.dataclass
      ... class Point:
      ...     x: float
      ...     y: float
      >>> jax.tree.map(lambda v: v + 1, Point(1.0, 2.0))
      Point(x=2.0, y=3.0)
    """
    import dataclasses

    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got data_fields={data_fields!r} meta_fields={meta_fields!r}."
        )
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None:
        if not is_dataclass:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not a "
                f"dataclass. Got nodetype={nodetype!r}."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    assert meta_fields is not None
    data_names, meta_names = tuple(data_fields), tuple(meta_fields)
    overlap = set(data_names) & set(meta_names)
    if overlap:
        raise ValueError(f"data_fields and meta_fields must not overlap. Overlapping fields: {overlap}.")
    if is_dataclass:
        init = {f.name for f in dataclasses.fields(nodetype) if f.init}
        given = {*data_names, *meta_names}
        missing, unexpected = init - given - set(drop_fields), given - init
        if missing or unexpected:
            message = (
                "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only "
                "them."
            )
            if missing:
                message += f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
            if unexpected:
                message += f" Unexpected fields: {unexpected}."
            raise ValueError(message)

    def flatten(x: Any) -> tuple[list[Any], tuple]:
        return [getattr(x, n) for n in data_names], tuple([getattr(x, n) for n in meta_names])

    def build(meta: tuple, data: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(meta_names, meta)), **dict(zip(data_names, data)))

    def keyed(x: Any) -> tuple[list[tuple[Any, Any]], tuple]:
        pairs = [(GetAttrKey(n), getattr(x, n)) for n in data_names]
        return pairs, tuple([getattr(x, n) for n in meta_names])

    node = Node(nodetype, flatten, build, keyed, "dataclass", data_names)
    if nodetype in default_registry.nodes:
        raise ValueError(f"Duplicate custom dataclass PyTreeDef type registration for {nodetype}.")
    default_registry.add(node)
    none_leaf_registry.add(node)
    return nodetype


def static(**kwargs: Object) -> Object:
    """A dataclass field that ``register_dataclass`` takes as static: ``name: str = static(default="a")``."""
    import dataclasses

    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


# Prefixes: a tree whose leaves stand for whole subtrees of another.

def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of ``prefix_tree``, each repeated for every leaf of ``full_tree`` that it stands for: ``is_leaf`` says
    what a leaf of the prefix is.

    Raises:
      ValueError: the one tree is no prefix of the other; the message names the place.
    """
    leaves, _, subtrees = _parts(prefix_tree, full_tree, is_leaf)
    return [leaf for leaf, subtree in zip(leaves, subtrees) for _ in range(tree_structure(subtree).num_leaves)]


def _parts(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None
) -> tuple[list[Any], PyTreeDef, list[Any]]:
    """The leaves of the prefix, its structure, and the subtrees that the leaves stand for."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    try:
        return leaves, treedef, treedef.flatten_up_to(full_tree)
    except ValueError as error:
        raise_prefix_error("broadcast_prefix prefix_tree", prefix_tree, full_tree, is_leaf, error)


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """``prefix_tree`` spread to the structure of ``full_tree``; ``ValueError`` as ``broadcast_prefix``."""
    leaves, treedef, subtrees = _parts(prefix_tree, full_tree, is_leaf)
    spread = []
    for leaf, subtree in zip(leaves, subtrees):
        structure = tree_structure(subtree, is_leaf)
        spread.append(structure.unflatten([leaf] * structure.num_leaves))
    return treedef.unflatten(spread)
