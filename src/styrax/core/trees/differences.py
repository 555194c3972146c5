"""Words for how two pytrees differ: as prefix and tree, or as two that should be equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .key_paths import KeyPath, _Key, keyed_children, keystr
from .registry import default_registry
from .treedef import PyTreeDef


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
    return list(_differences(_prefix_errors, prefix_tree, full_tree, is_leaf))


def not_a_prefix(
    name: str, prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> str:
    """The message that a specification is no tree prefix of what it is for, with all places where it differs."""
    problems = [str(problem(name)) for problem in prefix_errors(prefix_tree, full_tree, is_leaf)]
    if problems and name.startswith("pjit"):
        return "\n".join([f"Mismatch details ({len(problems)} found):", *problems])
    details = "\n  ".join([f"\n  Mismatch details ({len(problems)} found):", *problems]) if problems else ""
    return f"{name} specification must be a tree prefix of the corresponding value; {details}"


_Pair = tuple[KeyPath, Any, Any]


def _differences(compare: Callable[..., Iterator[Any]], one: Any, other: Any, is_leaf: Any) -> Iterator[Any]:
    """What ``compare(path, x, y, is_leaf, pending)`` yields of each pair of subtrees, from the outermost inwards.

    It compares two nodes and appends the pairs of their children to ``pending``.
    """
    unseen: list[_Pair] = [((), one, other)]
    while unseen:
        pending: list[_Pair] = []
        yield from compare(*unseen.pop(), is_leaf, pending)
        unseen.extend(reversed(pending))


def _prefix_error(path: KeyPath, what: str, why: str) -> Callable[[str], ValueError]:
    return lambda name: ValueError(
        f"pytree structure error: {what} at key path\n    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type{why}"
    )


def _prefix_errors(
    path: KeyPath, prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None, pending: list[_Pair]
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
    pairs, data = keyed_children(node, prefix)
    full_pairs, full_data = keyed_children(node, full)
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
    pending.extend(((*path, key), child, full) for (key, child), (_, full) in zip(pairs, full_pairs))


def _bare(key: Any) -> str:
    return str(key._value()) if isinstance(key, _Key) else str(key)


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """How two structures differ: ``(key path, what the one has, what the other has, explanation)``."""
    yield from _differences(_equality_errors, tree1, tree2, is_leaf)


def equality_errors_pytreedef(tree1: PyTreeDef, tree2: PyTreeDef) -> Iterator[tuple[KeyPath, str, str, str]]:
    """``equality_errors`` of two structures."""
    fill = lambda d: d.unflatten([_LEAF] * d.num_leaves)
    yield from _differences(_equality_errors, fill(tree1), fill(tree2), None)


class _LeafMark:
    def __repr__(self) -> str:
        return "leaf"


_LEAF = _LeafMark()


def _equality_errors(
    path: KeyPath, a: Any, b: Any, is_leaf: Callable[[Any], bool] | None, pending: list[_Pair]
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
    pairs, data = keyed_children(node, a)
    other_pairs, other_data = keyed_children(node, b)
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
    pending.extend(((*path, key), child, other) for (key, child), (_, other) in zip(pairs, other_pairs))


def _type_text(x: Any) -> str:
    return "leaf" if x is _LEAF else str(type(x))


def _value(key: Any) -> Any:
    return key._value() if isinstance(key, _Key) else key
