"""Functions of pytrees: flatten, map, reduce, transpose, register. `tree_paths` has those with key paths."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from ..tracing.source import hide_frames
from ..types.typing import PyTree
from .registry import default_registry, expect, match, none_leaf_registry, only_leaves, tuple_node
from .treedef import Node, PyTreeDef, intern_treedef, leaf_treedef

Leaf: TypeAlias = Any
"""What stands at the leaves of a tree: any object whose class is not a container."""

Class = TypeVar("Class", bound=type[Any])
_MISSING: Any = object()
_table = default_registry.table


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], PyTreeDef]:
    """The leaves of a pytree, in order, and its structure.

    Args:
      tree: any value; what is not a container is a single leaf.
      is_leaf: a predicate on every node; where it is true the node is a leaf.

    Example:
      >>> import styrax as jax
      >>> leaves, structure = jax.tree.flatten({'a': 1, 'b': [2, None]})
      >>> leaves
      [1, 2]
      >>> structure
      PyTreeDef({'a': *, 'b': [*, None]})
    """
    try:
        if is_leaf is not None:
            return default_registry.flatten(tree, is_leaf)
        cls = type(tree)
        flattener = _table.get(cls, _MISSING)
        if flattener is None:
            return [tree], leaf_treedef
        if flattener is _MISSING:
            return default_registry.flatten(tree)
        leaves: list[Any] = []
        return leaves, flattener(tree, leaves, _table)
    except Exception as error:
        hide_frames(error)
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Leaf]) -> PyTree:
    """The pytree of the structure ``treedef`` with the given leaves.

    Example:
      >>> import styrax as jax
      >>> structure = jax.tree.structure({'a': 0, 'b': [0]})
      >>> jax.tree.unflatten(structure, [1, 2])
      {'a': 1, 'b': [2]}
    """
    try:
        return treedef.unflatten(leaves)
    except Exception as error:
        hide_frames(error)
        raise


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Leaf]:
    """The leaves of a pytree, in order.

    Example:
      >>> import styrax as jax
      >>> jax.tree.leaves({'b': 1, 'a': (2, [3])})
      [2, 3, 1]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a pytree.

    Example:
      >>> import styrax as jax
      >>> jax.tree.structure({'a': 1, 'b': (2, 3)})
      PyTreeDef({'a': *, 'b': (*, *)})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree,
             is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """Applies ``f`` to the leaves of ``tree`` and the subtrees of ``rest`` at the same places.

    Args:
      f: takes one argument per tree.
      tree: decides for the structure of the result; ``rest`` may be deeper at its leaves.

    Raises:
      ValueError: a tree of ``rest`` has not the structure of ``tree``; the message names the place.

    Example:
      >>> import styrax as jax
      >>> jax.tree.map(lambda x, y: x + y, {'a': 1, 'b': (2, 3)}, {'a': 10, 'b': (20, 30)})
      {'a': 11, 'b': (22, 33)}
    """
    try:
        leaves, treedef = tree_flatten(tree, is_leaf)
        if not rest:
            return treedef.unflatten([f(x) for x in leaves])
        columns = [leaves]
        for other in rest:
            values = None
            if treedef._matcher is not None:
                values = match(treedef, other)
            else:  # what stands below the first tree's leaves is not looked at: it may even hold itself
                expect(treedef)
            if values is None:
                try:
                    values = treedef.flatten_up_to(other)
                except ValueError as error:
                    from .differences import raise_prefix_error

                    raise_prefix_error("tree_map tree", tree, other, is_leaf, error)
            columns.append(values)
        return treedef.unflatten(list(map(f, *columns)))
    except Exception as error:
        hide_frames(error)
        raise


def tree_reduce(function: Callable[[Any, Any], Any], tree: PyTree, initializer: PyTree = _MISSING,
                is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """Folds the leaves from the left. Raises ``TypeError`` without leaves and initializer.

    Example:
      >>> import styrax as jax
      >>> jax.tree.reduce(lambda total, x: total + x, [1, (2, 3)])
      6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: PyTree, *, identity: PyTree = _MISSING,
                            is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """Combines the leaves pairwise, in halves, with an associative operation."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _MISSING:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity

    def reduce(values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        middle = len(values) // 2
        return operation(reduce(values[:middle]), reduce(values[middle:]))

    return reduce(leaves)


def tree_all(tree: PyTree, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true.

    Example:
      >>> import styrax as jax
      >>> jax.tree.all({'a': True, 'b': False})
      False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree) -> PyTree:
    """Turns a tree of ``outer`` structure over ``inner`` ones into an ``inner`` one over ``outer`` ones.

    With ``inner_treedef=None`` the inner structure is that of the first subtree.

    Raises:
      TypeError: the tree has another structure.

    Example:
      >>> import styrax as jax
      >>> outer, inner = jax.tree.structure([0, 0]), jax.tree.structure({'a': 0})
      >>> jax.tree.transpose(outer, inner, [{'a': 1}, {'a': 2}])
      {'a': [1, 2]}
    """
    try:
        leaves, treedef = tree_flatten(pytree_to_transpose)
        if inner_treedef is None:
            inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
        inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
        expected = outer_treedef.compose(inner_treedef)
        if treedef.num_leaves != expected.num_leaves:  # static data may depend on what is below
            raise TypeError(f"Mismatch\n{treedef}\n != \n{expected}")
        rows = [leaves[i * inner_size : (i + 1) * inner_size] for i in range(outer_size)]
        columns = [outer_treedef.unflatten([row[j] for row in rows]) for j in range(inner_size)]
        return inner_treedef.unflatten(columns)
    except Exception as error:
        hide_frames(error)
        raise


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees."""
    return intern_treedef(tuple_node, None, tuple(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the direct children."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure has a single node."""
    return treedef.num_nodes == 1


def is_tree_node(typ: type[Any]) -> bool:
    """Whether values of the class are nodes."""
    return default_registry.is_node(typ)


def all_leaves(iterable: Iterable[Leaf], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether none of the values is a node."""
    if is_leaf is None:
        return only_leaves(list(iterable), _table)
    return all(is_leaf(x) or not is_tree_node(type(x)) for x in iterable)


def flatten_one_level(tree: PyTree) -> tuple[Iterable[PyTree], Hashable]:
    """The children of the outermost node and its static data. Raises ``ValueError`` for a leaf."""
    found = default_registry.flatten_one_level(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    children, data = found
    return (children if type(tree) in (tuple, list, dict, type(None)) else list(children)), data


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes a class a node.

    Args:
      flatten_func: takes a value, gives ``(children, static data)``.
      unflatten_func: takes the static data and the children, gives a value.
      flatten_with_keys_func: as ``flatten_func``, with ``(key, child)`` pairs.

    Raises:
      ValueError: the class is a node already.
    """
    try:
        if not callable(flatten_func) or not callable(unflatten_func):
            raise TypeError(f"register_pytree_node: the functions for {nodetype} must be callable")
        node = Node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
        default_registry.add(node)
        none_leaf_registry.add(node)
    except Exception as error:
        hide_frames(error)
        raise


def register_static(cls: Class) -> Class:
    """Class decorator: values are nodes without children, compared and hashed as static data."""
    register_pytree_node(cls, lambda x: ((), x), lambda data, _: data)
    return cls


def register_pytree_node_class(cls: Class) -> Class:
    """Class decorator for classes with methods ``tree_flatten`` and ``tree_unflatten(aux, children)``."""
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


class _Callable:
    """A partial as one static function: told apart by what it wraps, not by its arguments."""

    __slots__ = ("fun",)

    def __init__(self, fun: functools.partial):
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if type(other) is _Callable else other)

    def __repr__(self) -> str:
        return f"_HashableCallableShim({self.fun!r})"


@register_pytree_node_class
class Partial(functools.partial):
    """``functools.partial`` as a pytree: the bound arguments are children, the function is static.

    A partial given as the function stays one function: its own arguments are not children.
    """

    def __new__(cls, func: Callable, *args: Any, **kwargs: Any) -> Partial:
        if isinstance(func, functools.partial):
            # functools would merge the inner partial's arguments into this one's.
            func = _Callable(func)
        return super().__new__(cls, func, *args, **kwargs)

    def tree_flatten(self) -> tuple[tuple, Any]:
        return (self.args, self.keywords), self.func

    @classmethod
    def tree_unflatten(cls, func: Callable[..., Any], children: Sequence[Any]) -> Partial:
        args, keywords = children
        return cls(func, *args, **keywords)
