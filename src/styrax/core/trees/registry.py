"""Which classes are nodes of pytrees, with JAX's rules, and how trees are taken apart.

None, tuples, lists, dicts (keys sorted), named tuples, OrderedDict, defaultdict and registered classes
are nodes, found by exact type; everything else is a leaf.
"""

from __future__ import annotations

import copyreg
import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any
from weakref import ref

from .treedef import DEEP, Node, PyTreeDef, caches, intern_treedef, leaf_treedef, postorder, same_data

_MISSING: Any = object()
Flattener = Callable[..., "PyTreeDef"]  # of a value, the list of leaves, the table, and how deep the value stands


# Taking trees apart. A table maps types to flatteners, which append the leaves of `x` and return its
# structure; it maps types that are known to be leaves to None.


def _resolve(cls: Any, table: dict) -> Flattener | None:
    flattener = None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        flattener = _flattener(_namedtuple_node(cls))
    if len(table) > 20_000:
        for known in [k for k, v in table.items() if v is None]:
            del table[known]
    table[cls] = flattener
    return flattener


class _Table(dict[Any, "Flattener | None"]):
    """A registry's flatteners by type."""

    __slots__ = ("registry",)
    registry: Registry


def _children(values: Iterable[Any], leaves: list, table: _Table, depth: int) -> tuple[PyTreeDef, ...]:
    if depth > DEEP:
        return tuple([unfold(x, table.registry.parts, leaves) for x in values])
    found = []
    for x in values:
        flattener = table.get(type(x), _MISSING)
        if flattener is _MISSING:
            flattener = _resolve(type(x), table)
        if flattener is None:
            leaves.append(x)
            found.append(leaf_treedef)
        else:
            found.append(flattener(x, leaves, table, depth))
    return tuple(found)


def unfold(item: Any, parts: Callable[[Any], tuple[Node, Any, Iterable[Any]] | None], leaves: list) -> PyTreeDef:
    """Takes a tree of any depth apart: ``parts(item)`` is a node, its static data and its children, or None."""
    unfinished: list[tuple[Node | None, Any, Iterator[Any], list[PyTreeDef]]] = []
    node: Node | None = None
    data, items = None, iter((item,))
    done: list[PyTreeDef] = []
    while True:
        for item in items:
            found = parts(item)
            if found is not None:
                unfinished.append((node, data, items, done))
                node, data, children = found
                items, done = iter(children), []
                break
            leaves.append(item)
            done.append(leaf_treedef)
        else:
            if node is None:
                return done[0]
            treedef = intern_treedef(node, data, tuple(done))
            node, data, items, done = unfinished.pop()
            done.append(treedef)


def only_leaves(values: Any, table: dict) -> bool:
    get = table.get
    for cls in set(map(type, values)):
        flattener = get(cls, _MISSING)
        if flattener is not None and (flattener is not _MISSING or _resolve(cls, table) is not None):
            return False
    return True


def _sequence_flattener(node: Node) -> Flattener:
    leafy: dict[int, PyTreeDef] = {}  # the structures of sequences of leaves, by length

    def flatten(x: Any, leaves: list, table: _Table, depth: int = 0) -> PyTreeDef:
        n = len(x)
        if n < 4:
            get = table.get
            for child in x:
                if get(type(child), _MISSING) is not None:
                    break
            else:
                leaves.extend(x)
                return leafy.get(n) or leafy.setdefault(n, intern_treedef(node, None, (leaf_treedef,) * n))
        elif only_leaves(x, table):
            leaves.extend(x)
            return leafy.get(n) or leafy.setdefault(n, intern_treedef(node, None, (leaf_treedef,) * n))
        return intern_treedef(node, None, _children(x, leaves, table, depth + 1))

    return flatten


def _nothing() -> None:
    return None


class _Keys:
    """What is known of dicts with certain keys: their order, and the structure that was last seen."""

    __slots__ = ("getter", "keys", "last", "leafy", "misses")

    def __init__(self, keys: tuple):
        self.keys = keys
        getter: Any = operator.itemgetter(*keys) if len(keys) > 1 else lambda x: tuple(x.values())
        self.getter = getter
        self.leafy = intern_treedef(_dict_node, keys, (leaf_treedef,) * len(keys))
        self.last: Callable[[], PyTreeDef | None] = _nothing  # weak, for it may hold large static data
        self.misses = 0


_leaf_dicts: dict[tuple, _Keys] = {}
caches.append(_leaf_dicts)


def sorted_keys(x: dict) -> tuple:
    """The keys of a dict node in the order of its children."""
    try:
        return tuple(sorted(x))
    except TypeError as error:
        raise ValueError("Comparator raised exception while sorting pytree dictionary keys.") from error


def _values(x: dict) -> tuple[tuple, tuple]:
    keys = sorted_keys(x)
    return tuple([x[k] for k in keys]), keys


def _flatten_dict(x: dict, leaves: list, table: _Table, depth: int = 0) -> PyTreeDef:
    if not x:
        return _empty_dict
    known = _leaf_dicts.get(tuple(x))
    if known is None:
        known = _Keys(sorted_keys(x))
        # Only strings: other keys can be equal and yet print differently.
        if known.leafy._strong and set(map(type, known.keys)) == {str}:
            if len(_leaf_dicts) > 10_000:
                _leaf_dicts.clear()
            _leaf_dicts[tuple(x)] = known
    values = known.getter(x)
    if only_leaves(values, table):
        leaves.extend(values)
        return known.leafy
    last = known.last()
    if last is not None and last._matcher is not None and table is default_registry.table:
        found = last._matcher(x, table)
        if found is not None:
            leaves += found
            return last
        known.misses += 1
    treedef = intern_treedef(_dict_node, known.keys, _children(values, leaves, table, depth + 1))
    if known.misses < 16:
        if treedef is last:
            expect(treedef)
        else:
            known.last = ref(treedef)
    else:
        known.last = _nothing  # such dicts have too many structures to guess
    return treedef


def _bad_flatten(result: Any) -> ValueError:
    where = "where 'children' is iterable, " if type(result) is tuple and len(result) == 2 else ""
    return ValueError(
        "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
        f"{' ' if where else ', '}{where}got {result!r}"
    )


def _taken_apart(node: Node, x: Any) -> tuple[tuple | list, Any]:
    result = node.flatten(x)
    if type(result) is not tuple or len(result) != 2:
        raise _bad_flatten(result)
    children, data = result
    if type(children) is not tuple and type(children) is not list:
        try:
            children = tuple(children)
        except TypeError:
            raise _bad_flatten(result) from None
    return children, data


def _flattener(node: Node) -> Flattener:
    def flatten(x: Any, leaves: list, table: _Table, depth: int = 0) -> PyTreeDef:
        children, data = _taken_apart(node, x)
        return intern_treedef(node, data, _children(children, leaves, table, depth + 1))

    return flatten


@functools.cache
def _namedtuple_node(cls: Any) -> Node:
    return Node(cls, lambda x: (x, None), lambda _, children: cls(*children), None, "namedtuple", cls._fields)


_none_node = Node(NoneType, lambda x: ((), None), lambda _, children: None, None, "None")
tuple_node = Node(tuple, lambda x: (x, None), lambda _, children: children, None, "tuple")
_list_node = Node(list, lambda x: (x, None), lambda _, children: list(children), None, "list")
_dict_node = Node(dict, _values, lambda keys, children: dict(zip(keys, children)), None, "dict")


_empty_dict = intern_treedef(_dict_node, (), ())


class Registry:
    """The classes that are nodes. ``default_registry`` is the one that everything uses."""

    def __init__(self, none_is_node: bool = True):
        self.nodes: dict[Any, Node] = {tuple: tuple_node, list: _list_node, dict: _dict_node}
        self.table = _Table(
            {
                tuple: _sequence_flattener(tuple_node),
                list: _sequence_flattener(_list_node),
                dict: _flatten_dict,
            }
        )
        self.table.registry = self
        if none_is_node:
            self.nodes[NoneType] = _none_node
            none = intern_treedef(_none_node, None, ())
            self.table[NoneType] = lambda x, leaves, table, depth=0: none

    def add(self, node: Node) -> None:
        """Makes a class a node. Raises ``ValueError`` if it is one already."""
        if node.type in self.nodes:
            raise ValueError(f"Duplicate custom PyTreeDef type registration for {node.type}.")
        self.nodes[node.type] = node
        self.table[node.type] = _flattener(node)

    def node(self, cls: Any) -> Node | None:
        """What is known of the class, or None if its values are leaves."""
        found = self.nodes.get(cls)
        if found is None and isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return _namedtuple_node(cls)
        return found

    def flatten(self, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
        """The leaves of ``tree`` and its structure."""
        if is_leaf is not None:
            leaves: list[Any] = []
            return leaves, unfold(tree, lambda x: None if is_leaf(x) else self.parts(x), leaves)
        table = self.table
        cls = type(tree)
        flattener = table.get(cls, _MISSING)
        if flattener is _MISSING:
            flattener = _resolve(cls, table)
        if flattener is None:
            return [tree], leaf_treedef
        leaves = []
        return leaves, flattener(tree, leaves, table)

    def parts(self, x: Any) -> tuple[Node, Any, Iterable[Any]] | None:
        """The node, its static data and its children; None for a leaf."""
        node = self.node(type(x))
        if node is None:
            return None
        children, data = _taken_apart(node, x)
        return node, data, children

    def is_node(self, cls: Any) -> bool:
        return self.node(cls) is not None

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None:
        """The children of the outermost node and its static data; None for a leaf."""
        node = self.node(type(tree))
        if node is None:
            return None
        children, data = node.flatten(tree)
        return children, type(tree) if node.kind == "namedtuple" else data


default_registry = Registry()
none_leaf_registry = Registry(none_is_node=False)


def match(treedef: PyTreeDef, tree: Any) -> list[Any] | None:
    """The leaves of ``tree`` if it has exactly this structure, else None.

    For callers that expect the structure they saw last: where it is right, this is several times
    faster than flattening.
    """
    matcher = treedef._matcher
    if matcher is None:
        expect(treedef)
        leaves, found = default_registry.flatten(tree)
        return leaves if found is treedef else None
    return matcher(tree, default_registry.table)


def expect(treedef: PyTreeDef) -> None:
    """Notes that trees of this structure come again and again, so that ``match`` gets its own code."""
    treedef._matches += 1
    if treedef._matches == 4 and treedef.num_nodes <= 5_000 and treedef._depth <= DEEP:
        from .tree_code import compile_matcher

        treedef._matcher = compile_matcher(treedef, only_leaves, same_data)


def _add_builtin(cls: Any, flatten: Any, build: Any) -> None:
    node = Node(cls, flatten, build)
    default_registry.add(node)
    none_leaf_registry.add(node)


def _flatten_defaultdict(x: defaultdict) -> tuple[tuple, tuple]:
    values, keys = _values(x)
    return values, (x.default_factory, keys)


_add_builtin(
    OrderedDict,
    lambda x: (tuple(x.values()), tuple(x.keys())),
    lambda keys, values: OrderedDict(zip(keys, values)),
)
_add_builtin(
    defaultdict,
    _flatten_defaultdict,
    lambda data, values: defaultdict(data[0], zip(data[1], values)),
)


def _reduced(treedef: PyTreeDef) -> tuple[Callable[..., PyTreeDef], tuple[Any]]:
    # Flat, for pickles of nested structures would recurse.
    nodes = [None if d._node is None else (d.type, d._data, len(d._children)) for d in postorder(treedef)]
    return _rebuild, (nodes,)


def _rebuild(nodes: list[tuple[Any, Any, int] | None]) -> PyTreeDef:
    """The structure that ``_reduced`` took apart."""
    made: list[PyTreeDef] = []
    for parts in nodes:
        if parts is None:
            made.append(leaf_treedef)
            continue
        cls, data, count = parts
        node = default_registry.node(cls)
        if node is None:
            raise ValueError(f"Unrecognized data type: {cls}")
        first = len(made) - count
        made[first:] = [intern_treedef(node, data, tuple(made[first:]))]
    return made[0]


copyreg.pickle(PyTreeDef, _reduced)
