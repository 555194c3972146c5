"""Key paths into pytrees, prefix trees, and words for how two trees differ."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any, NoReturn

from ..types.typing import Object, PyTree
from .tree import Class, Leaf, register_pytree_node, tree_flatten, tree_leaves, tree_structure
from .treedef import (
    Node,
    PyTreeDef,
    Registry,
    default_registry,
    intern_treedef,
    leaf_treedef,
    none_leaf_registry,
    sorted_keys,
)


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
    """A key path as text: ``['a'][0].x``, or the bare names with ``simple=True``; joined by ``separator``."""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(k._value()) if isinstance(k, _Key) else str(k) for k in keys)


def _keyed_children(node: Node, x: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
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


def _flatten_with_path(
    x: Any, path: KeyPath, is_leaf: Any, takes_path: bool, found: list, registry: Registry
) -> PyTreeDef:
    stop = is_leaf is not None and (is_leaf(path, x) if takes_path else is_leaf(x))
    node = None if stop else registry.node(type(x))
    if node is None:
        found.append((path, x))
        return leaf_treedef
    pairs, data = _keyed_children(node, x)
    children = [_flatten_with_path(c, (*path, k), is_leaf, takes_path, found, registry) for k, c in pairs]
    return intern_treedef(node, data, tuple(children))


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[KeyPath, Leaf]], PyTreeDef]:
    """The ``(key path, leaf)`` pairs of a pytree, and its structure.

    Args:
      is_leaf: a predicate of a node, or of its key path and the node with ``is_leaf_takes_path=True``.
    """
    found: list[tuple[KeyPath, Any]] = []
    treedef = _flatten_with_path(tree, (), is_leaf, is_leaf_takes_path, found, default_registry)
    return found, treedef


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Leaf]]:
    """The ``(key path, leaf)`` pairs of a pytree."""
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
    pairs, data = _keyed_children(node, tree)
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

    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


# Prefixes: a tree whose leaves stand for whole subtrees of another.


_OLD_NONE = (
    "\n\nIn previous releases of JAX, flatten-up-to used to consider None to be a tree-prefix of non-None "
    "values. To obtain the previous behavior, you can usually write:\n"
    "  jax.tree.map(lambda x, y: None if x is None else f(x, y), a, b, is_leaf=lambda x: x is None)"
)


def flatten_up_to(treedef: PyTreeDef, x: Any, found: list[Any]) -> None:
    """Appends the subtrees of ``x`` that stand where the structure has leaves. See ``PyTreeDef``."""
    node = treedef._node
    if node is None:
        found.append(x)
        return
    cls, children = node.type, treedef._children
    if type(x) is not cls or node.kind == "custom" or cls is dict:
        _check_node(treedef, x)
    if cls is tuple or cls is list:
        if len(x) != len(children):
            name, counts = cls.__name__, f"{len(x)} != {len(children)}"
            raise ValueError(f"{name.capitalize()} arity mismatch: {counts}; {name}: {x!r}.")
        parts = x
    elif cls is dict:
        parts = [x[k] for k in treedef._data]
    elif cls is NoneType:
        return
    else:
        parts, data = node.flatten(x)
        parts = tuple(parts)
        if node.kind == "namedtuple" and len(parts) != len(children):
            raise ValueError(f"Named tuple arity mismatch: {len(parts)} != {len(children)}; tuple: {x!r}.")
        if data is not treedef._data and not bool(data == treedef._data):
            what = "custom dataclass" if node.kind == "dataclass" else "custom"
            raise ValueError(f"Mismatch {what} node data: {treedef._data} != {data}; value: {x!r}.")
        if len(parts) != len(children):
            raise ValueError(f"Custom type arity mismatch: {len(parts)} != {len(children)}; value: {x!r}.")
    for child, part in zip(children, parts):
        if child._node is None:
            found.append(part)
        else:
            flatten_up_to(child, part, found)


def _check_node(treedef: PyTreeDef, x: Any) -> None:
    cls, node = treedef.type, treedef._node
    if cls is NoneType:
        raise ValueError(f"Expected None, got {x!r}.{_OLD_NONE}")
    if cls is tuple or cls is list:
        raise ValueError(f"Expected {cls.__name__}, got {x!r}.")
    if cls is dict:
        if type(x) is not dict:
            raise ValueError(f"Expected dict, got {x!r}.")
        keys = sorted_keys(x)
        if keys != treedef._data:
            expected = list(treedef._data)
            raise ValueError(f"Dict key mismatch; expected keys: {expected}; present keys: {list(keys)}.")
    elif node.kind == "namedtuple":
        if not isinstance(x, tuple) or not hasattr(x, "_fields"):
            raise ValueError(f"Expected named tuple, got {x!r}.")
        raise ValueError(f"Named tuple type mismatch: expected type: {cls}, tuple: {x!r}.")
    elif type(x) is not cls:
        what = "Custom dataclass" if node.kind == "dataclass" else "Custom"
        raise ValueError(f"{what} node type mismatch: expected type: {cls}, value: {x!r}.")


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of ``prefix_tree``, each repeated for every leaf of ``full_tree`` that it stands for.

    Raises:
      ValueError: the one tree is no prefix of the other; the message names the place.
    """
    return tree_leaves(tree_broadcast(prefix_tree, full_tree, is_leaf), is_leaf=is_leaf)


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """``prefix_tree`` spread to the structure of ``full_tree``; ``ValueError`` as ``broadcast_prefix``."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError as error:
        raise_prefix_error("broadcast_prefix prefix_tree", prefix_tree, full_tree, is_leaf, error)
    spread = []
    for leaf, subtree in zip(leaves, subtrees):
        structure = tree_structure(subtree, is_leaf)
        spread.append(structure.unflatten([leaf] * structure.num_leaves))
    return treedef.unflatten(spread)


def raise_prefix_error(
    name: str, prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None, error: ValueError
) -> NoReturn:
    """Raises the first of ``prefix_errors``, or ``error`` where these find nothing."""
    errors = prefix_errors(prefix_tree, full_tree, is_leaf)
    if errors:
        raise errors[0](name) from None
    raise error


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Why ``prefix_tree`` is no prefix of ``full_tree``: functions from the tree's name to an exception."""
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _prefix_error(path: KeyPath, what: str, why: str) -> Callable[[str], ValueError]:
    return lambda name: ValueError(
        f"pytree structure error: {what} at key path\n    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type{why}"
    )


def _prefix_errors(
    path: KeyPath, prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None
) -> Iterator[Callable[[str], ValueError]]:
    node = default_registry.node(type(prefix))
    if node is None or (is_leaf is not None and is_leaf(prefix)):
        return
    if type(prefix) is not type(full):
        yield _prefix_error(
            path,
            "different types",
            f"\n    {type(prefix)}\n"
            "but at the same key path the full pytree has a subtree of different type\n"
            f"    {type(full)}.",
        )
        return
    pairs, data = _keyed_children(node, prefix)
    full_pairs, full_data = _keyed_children(node, full)
    pairs, full_pairs = list(pairs), list(full_pairs)
    if node.kind in ("list", "tuple") and len(prefix) != len(full):
        cls = type(prefix).__name__
        yield _prefix_error(
            path,
            f"different lengths of {cls}",
            f" {cls} of length {len(prefix)}, but the full pytree has a subtree of the same type but of "
            f"length {len(full)}.",
        )
        return
    keys, full_keys = [k for k, _ in pairs], [k for k, _ in full_pairs]
    if len(keys) != len(full_keys):
        names, full_names = [_bare(k) for k in keys], [_bare(k) for k in full_keys]
        difference = sorted(set(names) ^ set(full_names))
        yield _prefix_error(
            path,
            "different numbers of pytree children",
            f"\n    {type(prefix)}\nwith {len(keys)} child keys\n    {' '.join(names)}\n"
            "but at the same key path the full pytree has a subtree of the same type but with "
            f"{len(full_keys)} child keys\n    {' '.join(full_names)}\n"
            f"so the symmetric difference on key sets is\n    {' '.join(difference)}",
        )
        return
    if data != full_data:
        import difflib
        import textwrap

        lines = difflib.ndiff(str(data).splitlines(), str(full_data).splitlines())
        yield _prefix_error(
            path,
            "different pytree metadata",
            f"\n    {type(prefix)}\nwith metadata\n    {data}\n"
            "but at the same key path the full pytree has a subtree of the same type but with metadata\n"
            f"    {full_data}\nso the diff in the metadata at these pytree nodes is\n"
            + textwrap.indent("\n".join(lines), "    "),
        )
        return
    for (key, child), (_, full_child) in zip(pairs, full_pairs):
        yield from _prefix_errors((*path, key), child, full_child, is_leaf)


def _bare(key: Any) -> str:
    return str(key._value()) if isinstance(key, _Key) else str(key)


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """How two structures differ: ``(key path, what the one has, what the other has, explanation)``."""
    yield from _equality_errors((), tree1, tree2, is_leaf)


def equality_errors_pytreedef(tree1: PyTreeDef, tree2: PyTreeDef) -> Iterator[tuple[KeyPath, str, str, str]]:
    """``equality_errors`` of two structures."""
    fill = lambda d: d.unflatten([_LEAF] * d.num_leaves)
    yield from _equality_errors((), fill(tree1), fill(tree2), None)


class _LeafMark:
    def __repr__(self) -> str:
        return "leaf"


_LEAF = _LeafMark()


def _equality_errors(
    path: KeyPath, a: Any, b: Any, is_leaf: Callable[[Any], bool] | None
) -> Iterator[tuple[KeyPath, str, str, str]]:
    node, other = default_registry.node(type(a)), default_registry.node(type(b))
    if is_leaf is not None:
        node = None if is_leaf(a) else node
        other = None if is_leaf(b) else other
    if node is None and other is None:
        return
    if type(a) is not type(b):
        yield path, _type_text(a), _type_text(b), "their Python types differ"
        return
    if node is None or other is None:
        yield path, _type_text(a), _type_text(b), "one of them is taken as a leaf"
        return
    pairs, data = _keyed_children(node, a)
    other_pairs, other_data = _keyed_children(node, b)
    pairs, other_pairs = list(pairs), list(other_pairs)
    if node.kind in ("list", "tuple") and len(a) != len(b):
        cls = type(a).__name__
        yield path, f"{cls} of length {len(a)}", f"{cls} of length {len(b)}", "the lengths do not match"
        return
    if len(pairs) != len(other_pairs):
        count = lambda n: f"{n} child{'ren' if n > 1 else ''}"
        difference = sorted({repr(_value(k)) for k, _ in pairs} ^ {repr(_value(k)) for k, _ in other_pairs})
        names = f"{{{' '.join(difference)}}}"
        yield (
            path,
            f"{type(a)} with {count(len(pairs))}",
            f"{type(b)} with {count(len(other_pairs))}",
            "the numbers of children do not match"
            + (f", with the symmetric difference of key sets: {names}" if difference else ""),
        )
        return
    if data != other_data:
        yield (
            path,
            f"{type(a)} with pytree metadata {data}",
            f"{type(b)} with pytree metadata {other_data}",
            "the pytree node metadata does not match",
        )
        return
    for (key, child), (_, other_child) in zip(pairs, other_pairs):
        yield from _equality_errors((*path, key), child, other_child, is_leaf)


def _type_text(x: Any) -> str:
    return "leaf" if x is _LEAF else str(type(x))


def _value(key: Any) -> Any:
    return key._value() if isinstance(key, _Key) else key


default_registry.nodes[OrderedDict].keys = lambda x: (tuple((DictKey(k), v) for k, v in x.items()), tuple(x))
default_registry.nodes[defaultdict].keys = lambda x: (
    tuple((DictKey(k), x[k]) for k in sorted_keys(x)),
    (x.default_factory, sorted_keys(x)),
)
