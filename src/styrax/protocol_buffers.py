"""Protocol buffers on the wire: fields of a message as (number, value), written and read.

https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

Scalar = int | float | str | bytes


def varint(n: int) -> bytes:
    """An integer in groups of seven bits, the lowest first; negative ones as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(fields: Iterable[tuple[int, Scalar]]) -> bytes:
    """A message of fields: integers as varints, floats as doubles, strings and messages (bytes) with their lengths."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def decode(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a message. Raises ValueError where it is none."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise ValueError("a message of protocol buffers ends in the middle of a number")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            yield key >> 3, number()
            continue
        size = number() if kind == 2 else {1: 8, 5: 4}.get(kind, -1)
        if size < 0 or at + size > len(data):
            raise ValueError(f"a message of protocol buffers has a field of kind {kind} that does not end")
        field = data[at:at + size]
        at += size
        yield key >> 3, field if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", field)[0]


def signed(n: int) -> int:
    """A varint as a 64-bit integer with a sign."""
    return n - (1 << 64) if n >> 63 else n
