"""Buffers of arrays: 64-byte aligned blocks by size class, kept for reuse.

Asking the system for a fresh 100 MB block costs a page fault per page when it is first written, as long as
the computation itself takes; a reused block costs nothing. Small blocks are carved out of slabs and stay with
the pool; large ones are mappings of their own, which are given back when more than ``retain_limit`` bytes
lie idle.

Lists of free blocks are plain Python lists, whose ``pop`` and ``append`` are atomic: the fast path takes no
lock.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from contextlib import suppress
from functools import lru_cache

from ..core.tracing.errors import OutOfMemory

ALIGNMENT = 64
SMALL = 64 << 10  # blocks up to here are carved from slabs
_SLAB = 1 << 20
_HUGE = 4 << 20  # blocks from here on ask for huge pages
_HUGE_PAGE = 2 << 20
_COLOURS = 16


@lru_cache(maxsize=1024)
def class_bytes(nbytes: int) -> int:
    """Size of the block that holds ``nbytes``: a multiple of 64, of 4096 from 64 KiB on, with steps of at
    most an eighth."""
    if nbytes <= 1024:
        return (nbytes + 63) & -64 or 64
    shift = (nbytes - 1).bit_length() - 4
    step = max(1 << shift, 4096 if nbytes > SMALL else 64)
    return (nbytes + step - 1) & -step


class Pool:
    """Allocates and keeps blocks. All methods may be called from any thread.

    A caller that needs many small blocks of one size asks for its `free_list` once and then writes
    ``free.pop() if free else pool.grow(size)``, and ``free.append(address)`` to give one back.
    """

    __slots__ = ("_blocks", "_colour", "_free", "_lock", "_slab", "_slab_end", "reserved", "retain_limit",
                 "retained")

    def __init__(self, retain_limit: int | None = None):
        self._free: dict[int, list[int]] = {}
        self._blocks: dict[int, mmap.mmap] = {}  # large blocks: address → the mapping it lies in
        # Re-entrant: an array may be collected, and its block come back, while this thread holds the lock.
        self._lock = threading.RLock()
        self._slab = self._slab_end = 0
        self._colour = 0
        self.reserved = 0  # bytes held from the system
        self.retained = 0  # of these, bytes of idle large blocks
        self.retain_limit = _default_limit() if retain_limit is None else retain_limit

    def free_list(self, nbytes: int) -> list[int]:
        """The list of idle blocks of the class of ``nbytes``. ValueError above `SMALL`: those are counted."""
        if nbytes > SMALL:
            raise ValueError(f"blocks of more than {SMALL} bytes are taken with alloc and returned with free")
        return self._list(class_bytes(nbytes))

    def _list(self, size: int) -> list[int]:
        found = self._free.get(size)
        return self._free.setdefault(size, []) if found is None else found

    def alloc(self, nbytes: int) -> int:
        """Address of a block of at least ``nbytes`` bytes, 64-byte aligned, contents undefined.

        Raises MemoryError."""
        size = (nbytes + 63) & -64 or 64 if nbytes <= 1024 else class_bytes(nbytes)
        if size > SMALL:
            return self._large(size)
        free = self._free.get(size)
        if free:
            try:  # not suppress(): this is the fast path
                return free.pop()
            except IndexError:  # another thread was faster
                return self.grow(size)
        return self.grow(size)

    def free(self, address: int, nbytes: int) -> None:
        """Take a block back; ``nbytes`` is what it was asked for with."""
        size = (nbytes + 63) & -64 or 64 if nbytes <= 1024 else class_bytes(nbytes)
        if size <= SMALL:
            self._free[size].append(address)
            return
        with self._lock:
            if self.retained + size <= self.retain_limit:
                self.retained += size
                self._free[size].append(address)
                return
            mapping = self._blocks.pop(address)
            self.reserved -= len(mapping)
        del mapping  # unmaps

    def _large(self, size: int) -> int:
        with self._lock:
            free = self._list(size)
            if free:
                self.retained -= size
                return free.pop()
        return self._map_large(size)

    def grow(self, nbytes: int) -> int:
        """A small block for ``nbytes`` when its free list is empty. MemoryError."""
        size = class_bytes(nbytes)
        with self._lock:
            self._list(size)
            if self._slab + size <= self._slab_end:
                address = self._slab
                self._slab += size
                return address
        mapping = self._map(_SLAB)
        start = _address(mapping)
        with self._lock:
            # Slabs live as long as the process: their blocks may be anywhere.
            self._blocks[start] = mapping
            self._slab, self._slab_end = start + size, start + _SLAB
        return start

    def _map_large(self, size: int) -> int:
        # Blocks that all start at the same place in a page fight for the same cache sets: shift them.
        with self._lock:
            self._colour = (self._colour + 1) % _COLOURS
            shift = self._colour * 5 % _COLOURS * 4 * ALIGNMENT
        huge = size >= _HUGE
        mapping = self._map(size + mmap.PAGESIZE + (_HUGE_PAGE if huge else 0))
        address = _address(mapping)
        if huge:
            address = (address + _HUGE_PAGE - 1) & -_HUGE_PAGE
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with suppress(OSError):  # a kernel without huge pages
                    mapping.madvise(mmap.MADV_HUGEPAGE)
        address += shift
        with self._lock:
            self._blocks[address] = mapping
        return address

    def _map(self, size: int) -> mmap.mmap:
        for attempt in range(2):
            try:
                if sys.platform == "win32":
                    mapping = mmap.mmap(-1, size)
                else:
                    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                break
            except (OSError, ValueError, OverflowError, MemoryError):
                if attempt or not self.trim():
                    raise OutOfMemory(f"RESOURCE_EXHAUSTED: Out of memory allocating {size} bytes; "
                                      f"{self.reserved} bytes are in use by arrays of this process") from None
        with self._lock:
            self.reserved += size
        return mapping

    def trim(self, keep: int = 0) -> int:
        """Give idle large blocks back until at most ``keep`` bytes of them remain; returns what was freed."""
        dropped, freed = [], 0
        with self._lock:
            for size in sorted(self._free, reverse=True):
                if size <= SMALL:
                    break
                free = self._free[size]
                while free and self.retained > keep:
                    mapping = self._blocks.pop(free.pop())
                    dropped.append(mapping)
                    self.retained -= size
                    self.reserved -= len(mapping)
                    freed += size
        dropped.clear()
        return freed


def _address(mapping: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def _default_limit() -> int:
    """Idle bytes that may be kept: an eighth of the machine's memory, between 256 MiB and 4 GiB."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 8 << 30
    return min(max(memory // 8, 256 << 20), 4 << 30)
