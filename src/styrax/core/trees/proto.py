"""Structures of pytrees as protocol buffers: nodes, children before their parents, and a table of the dicts' keys.

    message PyTreeDefProto { repeated Node nodes = 1; repeated string keys = 2; }
    message Node { uint32 arity = 1; Kind kind = 2; DictKeys dict_keys = 3; }
    enum Kind { LEAF = 1; LIST = 2; NONE = 3; TUPLE = 4; DICT = 5; }
    message DictKeys { repeated uint32 key = 1 [packed = true]; }
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import Registry
    from .treedef import PyTreeDef

_LEAF, _DICT = 1, 5
_KINDS: dict[Any, int] = {list: 2, NoneType: 3, tuple: 4, dict: _DICT}
_BYTES = 2  # wire type of what is written with its length


def encode(treedef: PyTreeDef) -> bytes:
    """Raises ValueError for nodes of classes and for keys of dicts that are no strings."""
    from .treedef import postorder

    keys: dict[str, int] = {}
    nodes = b""
    for d in postorder(treedef):
        node = b""
        if d._children:
            node += _number(1, len(d._children))
        if d._node is None:
            node += _number(2, _LEAF)
        elif d.type in _KINDS:
            node += _number(2, _KINDS[d.type])
        else:
            raise ValueError("User-defined nodes are not supported when serializing pytrees as protocol buffers. You "
                             "should either convert the user-defined nodes to another type or use pickle instead.")
        if d.type is dict and d._data:
            if not all(type(key) is str for key in d._data):
                raise ValueError("Only string keys are supported in proto pytree serialization.")
            node += _block(3, _block(1, b"".join(_varint(keys.setdefault(key, len(keys))) for key in d._data)))
        nodes += _block(1, node)
    return nodes + b"".join(_block(2, key.encode()) for key in keys)


def decode(registry: Registry, data: bytes) -> PyTreeDef:
    """Raises JaxRuntimeError where `data` is not what `encode` gives."""
    from ..tracing.errors import JaxRuntimeError
    from .treedef import PyTreeDef

    classes = {kind: cls for cls, kind in _KINDS.items()}
    made: list[PyTreeDef] = []
    try:
        parts = list(_fields(data))
        keys = [value.decode() for number, value in parts if number == 2]
        for _, block in [p for p in parts if p[0] == 1]:
            node = dict(_fields(block))
            arity, kind = node.get(1, 0), node[2]
            children = made[len(made) - arity:]
            del made[len(made) - arity:]
            names = [keys[i] for i in _varints(dict(_fields(node.get(3, b""))).get(1, b""))] if kind == _DICT else None
            made.append(PyTreeDef.from_node_data_and_children(
                registry, None if kind == _LEAF else (classes[kind], names), children))
        (found,) = made
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise JaxRuntimeError("Could not deserialize PyTreeDefProto.") from error
    return found


def _varint(n: int) -> bytes:
    found = bytearray()
    while n > 127:
        found.append(n & 127 | 128)
        n >>= 7
    return bytes([*found, n])


def _varints(data: bytes) -> Iterator[int]:
    n = shift = 0
    for byte in data:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield n
            n = shift = 0


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(data)) + data


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values: integers, or bytes with their length before them."""
    at = 0

    def number() -> int:
        nonlocal at
        end = at
        while data[end] > 127:
            end += 1
        found, at = next(_varints(data[at:end + 1])), end + 1
        return found

    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 != _BYTES:
            yield tag >> 3, value
            continue
        if at + value > len(data):
            raise ValueError("a field ends early")
        yield tag >> 3, data[at:at + value]
        at += value
