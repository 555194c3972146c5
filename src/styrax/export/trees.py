"""Structures of arguments and results as data that other processes can read."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..core.trees import tree

T = TypeVar("T", bound=type)


class Registered(NamedTuple):
    """How nodes of a type are written and read."""

    nodetype: type
    serialized_name: str
    serialize_auxdata: Callable[[Any], bytes | bytearray]
    deserialize_auxdata: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def _register(entry: Registered) -> None:
    if entry.nodetype in _by_type:
        raise ValueError(f"Duplicate serialization registration for type `{entry.nodetype}`. Previous registration was "
                         f"with serialized_name `{_by_type[entry.nodetype].serialized_name}`.")
    if entry.serialized_name in _by_name:
        raise ValueError(f"Duplicate serialization registration for serialized_name `{entry.serialized_name}`. "
                         f"Previous registration was for type `{_by_name[entry.serialized_name].nodetype}`.")
    _by_type[entry.nodetype] = _by_name[entry.serialized_name] = entry


def register_pytree_node_serialization(
        nodetype: T, *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes | bytearray],
        deserialize_auxdata: Callable[[bytes], Any],
        from_children: Callable[[Any, Sequence[Any]], Any] | None = None) -> T:
    """Lets a type of containers stand in the arguments and results of serialized functions.

    Args:
      nodetype: the type, which is registered as a container (`tree_util.register_pytree_node`).
      serialized_name: a name that stays the same in all processes and releases.
      serialize_auxdata: the container's own data, the second part of what flattens it, as bytes.
      deserialize_auxdata: the data from these bytes.
      from_children: a container from its data and parts; without it, what the type was registered with.

    Returns:
      The type.

    Raises:
      ValueError: the type or the name is registered already, or the type is no container.
    """
    if from_children is None and not tree.is_tree_node(nodetype):
        raise ValueError("If `from_children` is not present, you must call first `jax.tree_util.register_pytree_node` "
                         f"for `{nodetype}`")
    _register(Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Lets a named tuple stand in the arguments and results of serialized functions.

    Args:
      nodetype: the class.
      serialized_name: a name that stays the same in all processes and releases.

    Returns:
      The class.

    Raises:
      ValueError: it is no named tuple, or the class or the name is registered already.
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use `jax.export.register_pytree_node_serialization` for types other than `namedtuple`: "
                         f"{nodetype}")
    _register(Registered(nodetype, serialized_name, lambda _: b"", lambda _: None,
                         lambda _, children: nodetype(*children)))
    return nodetype


_register(Registered(OrderedDict, "collections.OrderedDict", lambda keys: json.dumps(list(keys)).encode(),
                     lambda data: tuple(json.loads(data)), lambda keys, children: OrderedDict(zip(keys, children))))


def to_data(treedef: tree.PyTreeDef) -> Any:
    """A structure as JSON has it.

    Raises:
      ValueError: a container's type is not registered here. TypeError: a dictionary has keys other than strings.
    """
    found = treedef.node_data()
    if found is None:
        return "leaf"
    kind, data = found
    children = list(map(to_data, treedef.children()))
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return {kind.__name__: children}
    if kind is dict:
        for key in data:
            if not isinstance(key, str):
                raise TypeError("Serialization is supported only for dictionaries with string keys. Found key "
                                f"{key} of type {type(key)}.")
        return {"dict": children, "keys": list(data)}
    entry = _by_type.get(kind)
    if entry is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing nodes of unregistered type `{kind}`. Use "
            "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    aux = entry.serialize_auxdata(data)
    if not isinstance(aux, (bytes, bytearray)):
        raise ValueError(f"The custom serialization function for `node_type` {kind} must return a `bytes` object. It "
                         f"returned a {type(aux)}.")
    return {"custom": children, "name": entry.serialized_name, "aux": base64.b64encode(aux).decode()}


def from_data(data: Any) -> tree.PyTreeDef:
    """The structure that `to_data` wrote. Raises ValueError for a container that is not registered here."""
    if data == "leaf":
        return tree.tree_structure(0)
    if data is None:
        return tree.tree_structure(None)
    kind, written = next(iter(data.items()))
    children = list(map(from_data, written))
    if kind != "custom":
        nodes = {"dict": (dict, data.get("keys")), "tuple": (tuple, None), "list": (list, None)}
        return tree.PyTreeDef.from_node_data_and_children(tree.default_registry, nodes[kind], children)
    entry = _by_name.get(data["name"])
    if entry is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef containing an unregistered type `{data['name']}`. Use "
                         "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    node = entry.nodetype, entry.deserialize_auxdata(base64.b64decode(data["aux"]))
    if entry.from_children is not None:
        made = tree.tree_structure(entry.from_children(node[1], [0] * len(children))).node_data()
        assert made is not None
        node = made
    return tree.PyTreeDef.from_node_data_and_children(tree.default_registry, node, children)
