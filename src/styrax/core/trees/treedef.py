"""The structures of pytrees: containers and their static data, without the leaves.

Structures are interned: flattening two equal containers gives the same ``PyTreeDef`` object wherever the
static data allow it, so that comparing structures is mostly comparing pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from .registry import Registry

DEEP = 24  # what stands deeper is walked with a stack of our own, not Python's


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
        if self._uses == 4 and self.num_leaves <= 512 and self._depth <= DEEP:
            from .tree_code import compile_builder

            self._code = compile_builder(self)
        if self._depth <= DEEP:
            return _build(self, iter(leaves))
        return self.walk(None, None, leaves)

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

    def serialize_using_proto(self) -> bytes:
        """The structure as a protocol buffer. ValueError for nodes of classes and for keys that are no strings."""
        from .proto import encode

        return encode([(None if d._node is None else d.type, d._data if d.type is dict else None, len(d._children))
                       for d in postorder(self)])

    @staticmethod
    def deserialize_using_proto(registry: Registry, data: bytes) -> PyTreeDef:
        """The structure that `serialize_using_proto` wrote. JaxRuntimeError for anything else."""
        from .proto import decode

        made: list[PyTreeDef] = []
        for cls, keys, arity in decode(data):
            first = len(made) - arity
            made[first:] = [PyTreeDef.from_node_data_and_children(
                registry, None if cls is None else (cls, keys), made[first:])]
        return made[0]

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

_IDENTITY = object()
_strong: dict[tuple, PyTreeDef] = {}
caches: list[dict[Any, Any]] = []  # what else holds interned structures: dropped when the table of these is
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
    return (_IDENTITY, id(data)), False


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
            for cache in caches:
                cache.clear()
        return _strong.setdefault(key, _new(node, data, children, True))
    found = _weak.get(key)
    if found is None:
        found = _weak[key] = _new(node, data, children, False)
    return found


leaf_treedef = _new(None, None, (), True)


def postorder(treedef: PyTreeDef) -> list[PyTreeDef]:
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
    for d in postorder(treedef):
        first = len(results) - len(d._children)
        results[first:] = [visit(d, results[first:])]
    return results[0]


def _equal(a: PyTreeDef, b: PyTreeDef) -> bool:
    pending = [(a, b)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if a.type is not b.type or len(a._children) != len(b._children) or a.num_nodes != b.num_nodes:
            return False
        if a._data is not b._data and not _same(a._data, b._data):
            return False
        pending.extend(zip(a._children, b._children))
    return True


class MetadataError(ValueError):
    """The static data of two nodes cannot be compared."""


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception as error:
        raise MetadataError(
            "Exception raised while checking equality of metadata fields of pytree. Make sure that metadata fields are "
            "hashable and have simple equality semantics. (Note: arrays cannot be passed as metadata fields!)"
        ) from error


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
