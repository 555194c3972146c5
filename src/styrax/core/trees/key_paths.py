"""Key paths: the names of the way from a pytree's root to a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

from .registry import default_registry, sorted_keys
from .treedef import Node


class _Key:
    """Base of the entries of key paths: a value compared by class and content."""

    __slots__ = ()
    _field = ""

    def _value(self) -> Any:
        return getattr(self, self._field)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._value() == other._value()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._value()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._field}={self._value()!r})"


class SequenceKey(_Key):
    """An index into a list or tuple; prints as ``[0]``."""

    __slots__ = ("idx",)
    __match_args__ = ("idx",)
    _field = "idx"

    def __init__(self, idx: int):
        if not isinstance(idx, int):
            raise TypeError(f"SequenceKey(idx: int): got {idx!r} of type {type(idx).__name__}")
        self.idx = idx

    def __str__(self) -> str:
        return f"[{self.idx}]"


class DictKey(_Key):
    """A key of a dict; prints as ``['name']``."""

    __slots__ = ("key",)
    __match_args__ = ("key",)
    _field = "key"

    def __init__(self, key: Any):
        self.key = key

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(_Key):
    """An attribute; prints as ``.name``."""

    __slots__ = ("name",)
    __match_args__ = ("name",)
    _field = "name"

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(_Key):
    """The number of a child of a class that was registered without keys; prints as ``[<flat index 0>]``."""

    __slots__ = ("key",)
    __match_args__ = ("key",)
    _field = "key"

    def __init__(self, key: int):
        self.key = key

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text: ``['a'][0].x``, or the bare names with ``simple=True``; joined by ``separator``.

    Example:
      >>> import styrax as jax
      >>> path, _ = jax.tree_util.tree_leaves_with_path({'a': [1]})[0]
      >>> jax.tree_util.keystr(path)
      "['a'][0]"
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(k._value()) if isinstance(k, _Key) else str(k) for k in keys)


def keyed_children(node: Node, x: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The ``(key, child)`` pairs of a node and its static data."""
    if node.keys is not None:
        return node.keys(x)
    children, data = node.flatten(x)
    if node.kind in ("tuple", "list"):
        return [(SequenceKey(i), c) for i, c in enumerate(children)], data
    if node.kind == "dict":
        return [(DictKey(k), c) for k, c in zip(data, children)], data
    if node.kind == "namedtuple":
        return [(GetAttrKey(name), c) for name, c in zip(node.fields, children)], data
    return [(FlattenedIndexKey(i), c) for i, c in enumerate(children)], data


default_registry.nodes[OrderedDict].keys = lambda x: (tuple((DictKey(k), v) for k, v in x.items()), tuple(x))
default_registry.nodes[defaultdict].keys = lambda x: (
    tuple((DictKey(k), x[k]) for k in sorted_keys(x)),
    (x.default_factory, sorted_keys(x)),
)
