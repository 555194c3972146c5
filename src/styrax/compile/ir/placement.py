"""Where buffers lie: which of them are one, and where the others stand in the workspace.

Buffers say what they are and nothing of this: passes that merge or place them give a program another placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .loopir import Buffer

Aliases = Mapping[Buffer, Buffer]  # a buffer -> one whose memory it has, which may have another's in turn


class Placement(NamedTuple):
    """The buffers that have others' memory; of those that have their own in the workspace, the offsets in bytes; those
    that lie where a result's memory begins, and are done with before it is written."""

    aliases: Aliases = MappingProxyType({})
    offsets: Mapping[Buffer, int] = MappingProxyType({})
    workspace: int = 0  # bytes
    hosts: Mapping[Buffer, Buffer] = MappingProxyType({})

    def root(self, buffer: Buffer) -> Buffer:
        return root(self.aliases, buffer)


def root(aliases: Aliases, buffer: Buffer) -> Buffer:
    """The buffer whose memory `buffer` has in the end: itself, where it has its own."""
    while (other := aliases.get(buffer)) is not None:
        buffer = other
    return buffer
