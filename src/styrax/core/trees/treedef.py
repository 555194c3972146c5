"""Pytrees: containers as trees of leaves, with JAX's rules for what is a node.

None, tuples, lists, dicts (keys sorted), named tuples, OrderedDict, defaultdict and registered classes
are nodes, found by exact type; everything else is a leaf. Structures are interned: flattening two equal
containers gives the same ``PyTreeDef`` object wherever the static data allow it, so that comparing
structures is mostly comparing pointers.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any
from weakref import WeakValueDictionary, ref

_MISSING: Any = object()
Flattener = Callable[..., "PyTreeDef"]  # of a value, the list of leaves, the table, and how deep the value stands
_DEEP = 24  # what stands deeper is walked with a stack of our own, not Python's


class _Leaf:
    """Stands as the type of the structure of a leaf."""


class PyTreeDef:
    """The structure of a pytree: its containers and their static data, without the leaves.

    Structures compare equal and hash by their containers, and print as ``PyTreeDef({'a': *, 'b': (*,)})``.
    """

    __slots__ = (
        "__weakref__", "_children", "_code", "_data", "_depth", "_hash", "_matcher", "_matches", "_node", "_strong",
        "_uses", "num_leaves", "num_nodes", "type",
    )  # fmt: skip

    type: Any
    num_leaves: int
    num_nodes: int
    _node: Any  # a Node, None for a leaf
    _data: Any
    _children: tuple[PyTreeDef, ...]
    _uses: int
    _matches: int
    _strong: bool
    _depth: int
    _hash: int | None
    _code: Callable[[list], Any] | None
    _matcher: Callable[[Any, dict], list[Any] | None] | None

    def __init__(self) -> None:
        raise TypeError("PyTreeDef: no constructor defined! Use tree_structure.")

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree of this structure with the given leaves. Raises ``ValueError`` for a wrong number."""
        if type(leaves) is not list:
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            if len(leaves) > self.num_leaves:
                raise ValueError(f"Too many leaves for PyTreeDef; expected {self.num_leaves}.")
            raise ValueError(f"Too few leaves for PyTreeDef; expected {self.num_leaves}, got {len(leaves)}")
        code = self._code
        if code is not None:
            return code(leaves)
        self._uses += 1
        if self._uses == 4 and self.num_leaves <= 512 and self._depth <= _DEEP:
            from .tree_code import compile_builder

            self._code = compile_builder(self)
        if self._depth <= _DEEP:
            return _build(self, iter(leaves))
        return self.walk(None, None, leaves)

    def match(self, tree: Any) -> list[Any] | None:
        """The leaves of ``tree`` if it has exactly this structure, else None.

        For callers that expect the structure they saw last: where it is right, this is several times
        faster than flattening.
        """
        matcher = self._matcher
        if matcher is None:
            self.expect()
            leaves, found = default_registry.flatten(tree)
            return leaves if found is self else None
        return matcher(tree, default_registry.table)

    def expect(self) -> None:
        """Notes that trees of this structure come again and again, so that ``match`` gets its own code."""
        self._matches += 1
        if self._matches == 4 and self.num_nodes <= 5_000 and self._depth <= _DEEP:
            from .tree_code import compile_matcher

            self._matcher = compile_matcher(self, only_leaves, same_data)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` that stand where this structure has leaves.

        Raises:
          ValueError: this structure is not a prefix of the tree's.
        """
        from .prefixes import flatten_up_to

        return flatten_up_to(self, tree)

    def children(self) -> list[PyTreeDef]:
        """The structures of the direct children."""
        return list(self._children)

    def node_data(self) -> tuple[Any, Any] | None:
        """``(type, static data)`` of the outermost node, None for a leaf."""
        if self.type is _Leaf:
            return None
        return self.type, list(self._data) if self.type is dict else self._data

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with every leaf replaced by ``inner``."""

        def composed(d: PyTreeDef, parts: list[PyTreeDef]) -> PyTreeDef:
            return inner if d._node is None else intern_treedef(d._node, d._data, tuple(parts))

        return _fold(self, composed)

    def is_leaf(self) -> bool:
        return self.type is _Leaf

    def walk(self, f_node: Callable | None, f_leaf: Callable | None, leaves: Iterable[Any]) -> Any:
        """Folds from the leaves up: ``f_node(children's results, node data)`` and ``f_leaf(leaf)``.

        Without ``f_node``, nodes are built.
        """
        remaining = iter(leaves)

        def visit(d: PyTreeDef, parts: list[Any]) -> Any:
            if d._node is None:
                leaf = next(remaining)
                return leaf if f_leaf is None else f_leaf(leaf)
            if f_node is None:
                return d._node.build(d._data, tuple(parts))
            return f_node(tuple(parts), list(d._data) if d.type is dict else d._data)

        return _fold(self, visit)

    def from_iterable_tree(self, tree: Iterable[Any]) -> Any:
        """Builds the pytree from nested iterables of this structure's shape."""
        leaves, pending = [], [(self, tree)]
        while pending:
            treedef, part = pending.pop()
            if treedef.type is _Leaf:
                leaves.append(part)
            else:
                pending.extend(reversed(list(zip(treedef._children, part))))
        return self.unflatten(leaves)

    @staticmethod
    def from_node_data_and_children(
        registry: Registry, node_data: tuple[Any, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """The inverse of ``node_data`` and ``children``."""
        if node_data is None:
            return leaf_treedef
        cls, data = node_data
        node = registry.node(cls)
        if node is None:
            raise ValueError(f"Unrecognized data type: {cls}")
        return intern_treedef(node, tuple(data) if cls is dict else data, tuple(children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not PyTreeDef:
            return NotImplemented
        return _equal(self, other)

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = self._hash = _fold(self, _hashed)
        return found

    def __repr__(self) -> str:
        return f"PyTreeDef({_fold(self, _text)})"

    def __reduce__(self) -> tuple:
        # Flat, for pickles of nested structures would recurse.
        nodes = [None if d._node is None else (d.type, d._data, len(d._children)) for d in _postorder(self)]
        return _rebuild, (nodes,)

    def __copy__(self) -> PyTreeDef:
        return self

    def __deepcopy__(self, memo: dict) -> PyTreeDef:
        return self


class Node:
    """What is known of a class of nodes.

    ``flatten(x)`` gives ``(children, static data)``, ``build(data, children)`` undoes it, ``keys(x)`` gives
    ``(key, child)`` pairs and the static data.
    """

    __slots__ = ("build", "fields", "flatten", "keys", "kind", "type")

    def __init__(
        self, cls: Any, flatten: Any, build: Any, keys: Any = None, kind: str = "custom", fields: Any = None
    ):
        self.type = cls
        self.flatten = flatten
        self.build = build
        self.keys = keys
        self.kind = kind
        self.fields = fields


# Interning. Structures whose static data are plain values are kept for good in `_strong`; those that hold
# other objects are kept as long as they are in use. Keys name children and opaque objects by their id, which
# is safe because a structure keeps both alive as long as its key stands. Values are told apart by type too:
# 1, 1.0 and True are equal, but one must not be returned for another.

_strong: dict[tuple, PyTreeDef] = {}
_weak: WeakValueDictionary[tuple, PyTreeDef] = WeakValueDictionary()
_ATOMS = frozenset((NoneType, str, bytes, FunctionType, BuiltinFunctionType, type))


def _data_key(data: Any) -> tuple[Any, bool]:
    """A hashable stand-in for static data, and whether it is made of plain values only."""
    cls = type(data)
    if cls in _ATOMS:
        return data, cls is not FunctionType
    if cls is int or cls is bool:
        return (cls, data), True
    if cls is float or cls is complex:
        return (cls, repr(data)), True
    if cls is tuple:
        keys = [_data_key(d) for d in data]
        return tuple([k for k, _ in keys]), all(s for _, s in keys)
    return (_MISSING, id(data)), False


def _new(node: Node | None, data: Any, children: tuple[PyTreeDef, ...], strong: bool) -> PyTreeDef:
    self = PyTreeDef.__new__(PyTreeDef)
    self.type = _Leaf if node is None else node.type
    self._node = node
    self._data = data
    self._children = children
    self._hash = None
    self._code = None
    self._uses = 0
    self._matcher = None
    self._matches = 0
    self._strong = strong
    leaves, nodes, depth = 0, 1, 0
    for child in children:
        leaves += child.num_leaves
        nodes += child.num_nodes
        if child._depth >= depth:
            depth = child._depth + 1
    self._depth = depth
    self.num_leaves = 1 if node is None else leaves
    self.num_nodes = nodes
    return self


def intern_treedef(node: Node, data: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    if data is None:
        key = (node, None, *map(id, children))
        found = _strong.get(key)
        if found is not None:
            return found
        strong = True
    else:
        name, strong = _data_key(data)
        key = (node, name, *map(id, children))
        found = _strong.get(key)
        if found is not None:
            return found
    if strong and all(c._strong for c in children):
        if len(_strong) > 50_000:
            _strong.clear()
            _leaf_dicts.clear()
        return _strong.setdefault(key, _new(node, data, children, True))
    found = _weak.get(key)
    if found is None:
        found = _weak[key] = _new(node, data, children, False)
    return found


leaf_treedef = _new(None, None, (), True)


def _postorder(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structure's nodes and leaves, children before their parents."""
    found, pending = [], [treedef]
    while pending:
        d = pending.pop()
        found.append(d)
        pending.extend(d._children)
    found.reverse()
    return found


def _fold(treedef: PyTreeDef, visit: Callable[[PyTreeDef, list[Any]], Any]) -> Any:
    """Folds a structure from the leaves up: ``visit(node or leaf, its children's results)``."""
    results: list[Any] = []
    for d in _postorder(treedef):
        first = len(results) - len(d._children)
        results[first:] = [visit(d, results[first:])]
    return results[0]


def _rebuild(nodes: list[tuple[Any, Any, int] | None]) -> PyTreeDef:
    """The inverse of ``PyTreeDef.__reduce__``."""
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


def _equal(a: PyTreeDef, b: PyTreeDef) -> bool:
    pending = [(a, b)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if a.type is not b.type or len(a._children) != len(b._children) or a.num_nodes != b.num_nodes:
            return False
        if a._data is not b._data and not bool(a._data == b._data):
            return False
        pending.extend(zip(a._children, b._children))
    return True


def _hashed(treedef: PyTreeDef, children: list[int]) -> int:
    found = treedef._hash
    if found is None:
        try:
            data = hash(treedef._data)
        except TypeError:
            data = 0  # equal structures still hash equally
        found = treedef._hash = hash((treedef.type, data, *children))
    return found


def _text(treedef: PyTreeDef, children: list[str]) -> str:
    cls = treedef.type
    if cls is _Leaf:
        return "*"
    if cls is NoneType:
        return "None"
    if cls is tuple:
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if cls is list:
        return f"[{', '.join(children)}]"
    if cls is dict:
        return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(treedef._data, children)) + "}"
    if treedef._node.kind == "namedtuple":
        return f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(children)}])"
    return f"CustomNode({cls.__name__}[{treedef._data}], [{', '.join(children)}])"


# Building trees in general; `tree_code` makes functions to measure for structures that are used repeatedly.


def _build(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    node = treedef._node
    if node is None:
        return next(leaves)
    children = treedef._children
    if len(children) == treedef.num_leaves and treedef.num_nodes == len(children) + 1:
        return node.build(treedef._data, tuple(islice(leaves, len(children))))
    return node.build(treedef._data, tuple([_build(c, leaves) for c in children]))


def same_data(a: Any, b: Any) -> bool:
    """Whether two static data are the same values or objects; stricter than ``==``."""
    return _data_key(a)[0] == _data_key(b)[0]


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
    if depth > _DEEP:
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
            treedef.expect()
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
