"""Taking a tree apart as far as a structure goes: what stands at its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .treedef import PyTreeDef

_OLD_NONE = (
    "\n\nIn previous releases of JAX, flatten-up-to used to consider None to be a tree-prefix of non-None "
    "values. To obtain the previous behavior, you can usually write:\n"
    "  jax.tree.map(lambda x, y: None if x is None else f(x, y), a, b, is_leaf=lambda x: x is None)"
)


def flatten_up_to(treedef: PyTreeDef, x: Any) -> list[Any]:
    """The subtrees of ``x`` that stand where the structure has leaves. See ``PyTreeDef``."""
    found: list[Any] = []
    pending = [(treedef, x)]
    while pending:
        treedef, x = pending.pop()
        if treedef._node is None:
            found.append(x)
            continue
        children, parts = treedef._children, _parts_like(treedef, x)
        if treedef.num_nodes == len(children) + 1 == treedef.num_leaves + 1:
            found.extend(parts)
        else:
            pending.extend(zip(reversed(children), reversed(parts)))
    return found


def _parts_like(treedef: PyTreeDef, x: Any) -> Sequence[Any]:
    """The children of ``x``, whose outermost node must be the structure's."""
    node = treedef._node
    cls, children = node.type, treedef._children
    if type(x) is not cls or node.kind == "custom" or cls is dict:
        _check_node(treedef, x)
    if cls is tuple or cls is list:
        if len(x) != len(children):
            name, counts = cls.__name__, f"{len(x)} != {len(children)}"
            raise ValueError(f"{name.capitalize()} arity mismatch: {counts}; {name}: {x!r}.")
        return x
    if cls is dict:
        return [x[k] for k in treedef._data]
    if cls is NoneType:
        return ()
    parts, data = node.flatten(x)
    parts = tuple(parts)
    if node.kind == "namedtuple" and len(parts) != len(children):
        raise ValueError(f"Named tuple arity mismatch: {len(parts)} != {len(children)}; tuple: {x!r}.")
    if data is not treedef._data and not bool(data == treedef._data):
        what = "custom dataclass" if node.kind == "dataclass" else "custom"
        raise ValueError(f"Mismatch {what} node data: {treedef._data} != {data}; value: {x!r}.")
    if len(parts) != len(children):
        raise ValueError(f"Custom type arity mismatch: {len(parts)} != {len(children)}; value: {x!r}.")
    return parts


def _check_node(treedef: PyTreeDef, x: Any) -> None:
    cls, node = treedef.type, treedef._node
    if cls is NoneType:
        raise ValueError(f"Expected None, got {x!r}.{_OLD_NONE}")
    if cls is tuple or cls is list:
        raise ValueError(f"Expected {cls.__name__}, got {x!r}.")
    if cls is dict:
        if type(x) is not dict:
            raise ValueError(f"Expected dict, got {x!r}.")
        keys = node.flatten(x)[1]
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
