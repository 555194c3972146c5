"""Structures of pytrees as protocol buffers: nodes, children before their parents, and a table of the dicts' keys.

    message PyTreeDefProto { repeated Node nodes = 1; repeated string keys = 2; }
    message Node { uint32 arity = 1; Kind kind = 2; DictKeys dict_keys = 3; }
    enum Kind { LEAF = 1; LIST = 2; NONE = 3; TUPLE = 4; DICT = 5; }
    message DictKeys { repeated uint32 key = 1 [packed = true]; }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

from ..tracing.errors import JaxRuntimeError

Record = tuple[Any, Sequence[str] | None, int]  # a class, None for a leaf; a dict's keys; how many children

_LEAF, _DICT = 1, 5
_KINDS: dict[Any, int] = {None: _LEAF, list: 2, NoneType: 3, tuple: 4, dict: _DICT}
_BYTES = 2  # wire type of what is written with its length


def encode(records: Iterable[Record]) -> bytes:
    """Raises ValueError for nodes of classes and for keys of dicts that are no strings."""
    table: dict[str, int] = {}
    nodes = b""
    for cls, keys, arity in records:
        if cls not in _KINDS:
            raise ValueError("User-defined nodes are not supported when serializing pytrees as protocol buffers. You "
                             "should either convert the user-defined nodes to another type or use pickle instead.")
        node = (_number(1, arity) if arity else b"") + _number(2, _KINDS[cls])
        if keys:
            if not all(type(key) is str for key in keys):
                raise ValueError("Only string keys are supported in proto pytree serialization.")
            node += _block(3, _block(1, b"".join(_varint(table.setdefault(key, len(table))) for key in keys)))
        nodes += _block(1, node)
    return nodes + b"".join(_block(2, key.encode()) for key in table)


def decode(data: bytes) -> list[Record]:
    """Raises JaxRuntimeError where `data` is not what `encode` gives."""
    classes = {kind: cls for cls, kind in _KINDS.items()}
    found: list[Record] = []
    try:
        parts = list(_fields(data))
        table = [value.decode() for number, value in parts if number == 2]
        for _, block in [p for p in parts if p[0] == 1]:
            node = dict(_fields(block))
            keys = [table[i] for i in _varints(dict(_fields(node.get(3, b""))).get(1, b""))]
            found.append((classes[node[2]], keys if node[2] == _DICT else None, node.get(1, 0)))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, StopIteration) as error:
        raise JaxRuntimeError("Could not deserialize PyTreeDefProto.") from error
    if sum(arity for *_, arity in found) != len(found) - 1:
        raise JaxRuntimeError("Could not deserialize PyTreeDefProto.")
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
