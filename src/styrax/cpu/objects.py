"""Machine code in memory: links an x86-64 ELF object into an image, and maps images into the process.

LLVM's own JIT linker needs LLVM loaded (a 180 MB library) even when the code is already compiled. An *image*
is the object after layout: one block of code and constants, one block of writable data, offsets of its
exported symbols, and the few words that depend on addresses (the slots through which outside functions are
reached). Loading one is a copy, a handful of stores and one ``mprotect``; that is what a warm start costs.
Relative references inside the image are resolved once, when it is made.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable

PAGE = 4096

_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 1, 2, 4, 8
_SHF_WRITE, _SHF_ALLOC, _SHF_TLS = 1, 2, 0x400
_SHN_ABS, _SHN_COMMON = 0xFFF1, 0xFFF2
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64, _R_GOTPCRELX, _R_REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
_GOT_RELOCATIONS = (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX)
_JUMP = b"\xff\x25"  # jmp *rel32(%rip)
_STUB_BYTES = 8


class UnsupportedObject(Exception):
    """The object needs something that this linker does not know; LLVM's own linker must take it."""


class Image:
    """Linked code. ``code`` is mapped read-only and executable, ``data`` (with ``bss`` zero bytes after it)
    writable behind it, at the next page. ``exports``: name → offset. ``fixups``: (offset, symbol, addend),
    each an 8-byte word that receives symbol's address + addend; the empty symbol is the image's own base."""

    __slots__ = ("bss", "code", "data", "exports", "fixups")

    def __init__(self, code: bytes, data: bytes, bss: int, exports: dict[str, int],
                 fixups: list[tuple[int, str, int]]):
        self.code, self.data, self.bss, self.exports, self.fixups = code, data, bss, exports, fixups

    def to_bytes(self) -> bytes:
        """Flat form for the disk: a text header, then code and data."""
        lines = [f"{len(self.code)} {len(self.data)} {self.bss} {len(self.exports)}"]
        lines += [f"{offset} {name}" for name, offset in self.exports.items()]
        lines += [f"{offset} {addend} {name}" for offset, name, addend in self.fixups]
        header = "\n".join(lines).encode()
        return len(header).to_bytes(4, "little") + header + self.code + self.data

    @classmethod
    def from_bytes(cls, blob: bytes) -> Image:
        size = int.from_bytes(blob[:4], "little")
        lines = blob[4 : 4 + size].decode().split("\n")
        code_bytes, data_bytes, bss, n_exports = map(int, lines[0].split())
        exports, fixups = {}, []
        for line in lines[1 : 1 + n_exports]:
            offset, name = line.split(" ", 1)
            exports[name] = int(offset)
        for line in lines[1 + n_exports :]:
            offset, addend, name = line.split(" ", 2)
            fixups.append((int(offset), name, int(addend)))
        start = 4 + size
        code, data = blob[start : start + code_bytes], blob[start + code_bytes :]
        if len(code) != code_bytes or len(data) != data_bytes:
            raise UnsupportedObject("image of the wrong size")
        return cls(code, data, bss, exports, fixups)


def link(obj: bytes) -> Image:
    """Lay an x86-64 ELF relocatable object out as an image.

    Raises UnsupportedObject for other formats and for relocation types that position-independent,
    small-model code does not have.
    """
    sections = _sections(obj)
    symbols, names = _symbols(obj, sections)
    code, data, places = _placed(obj, sections)
    relocations = []
    for _, kind, _, _, offset, size, _, target, _, _ in sections:
        if kind == _SHT_RELA and target in places:
            relocations += [(target, *r) for r in struct.iter_unpack("<QQq", obj[offset : offset + size])]
    slots, stubs, data_start = _add_slots(relocations, symbols, code, data)
    bss = _place_zeros(sections, data, places)

    def position(section: int) -> int:
        writable, offset = places[section]
        return data_start + offset if writable else offset

    addresses, exports = _addresses(symbols, names, {section: position(section) for section in places})

    # Resolve what is relative; leave absolute words to the loader.
    fixups: list[tuple[int, str, int]] = []
    for i, slot in slots.items():
        target = addresses[i]
        fixups.append((slot, names[i], 0) if target is None else (slot, "", target))
    for index, offset in stubs.items():
        code[offset : offset + 6] = _JUMP + struct.pack("<i", slots[index] - (offset + 6))
    for section, offset, info, addend in relocations:
        kind, index = info & 0xFFFFFFFF, info >> 32
        writable, base = places[section]
        place = position(section) + offset
        if kind == _R_64:
            if not writable:
                raise UnsupportedObject("absolute word in constants")
            target = addresses[index]
            fixups.append((place, names[index], addend) if target is None else (place, "", target + addend))
            continue
        if kind in _GOT_RELOCATIONS:
            target = slots[index]
        elif kind in (_R_PC32, _R_PLT32, _R_PC64):
            target = addresses[index]
            if target is None and kind == _R_PLT32:
                target = stubs[index]
        else:
            raise UnsupportedObject(f"relocation type {kind}")
        if target is None:
            raise UnsupportedObject(f"relative reference to {names[index]!r}")
        block = data if writable else code
        form = "<q" if kind == _R_PC64 else "<i"
        struct.pack_into(form, block, base + offset, target + addend - place)
    return Image(bytes(code), bytes(data), bss, exports, fixups)


def _sections(obj: bytes) -> list[tuple]:
    """The sections: name, type, flags, address, offset, size, link, info, alignment, entry size."""
    if obj[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", obj, 16) != (1, 62):
        raise UnsupportedObject("not an x86-64 ELF object")
    (section_offset,) = struct.unpack_from("<Q", obj, 40)
    section_size, n_sections = struct.unpack_from("<HH", obj, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", obj, section_offset + i * section_size) for i in range(n_sections)]


def _placed(obj: bytes, sections: list[tuple]) -> tuple[bytearray, bytearray, dict[int, tuple[bool, int]]]:
    """Code and constants, what is writable, and for each section whether it is writable and its offset there."""
    code, data, places = bytearray(), bytearray(), {}
    for i, (_, kind, flags, _, offset, size, _, _, align, _) in enumerate(sections):
        if flags & _SHF_TLS:
            raise UnsupportedObject("thread-local data")
        if kind == _SHT_PROGBITS and flags & _SHF_ALLOC:
            block = data if flags & _SHF_WRITE else code
            block += bytes(-len(block) % max(align, 1))
            places[i] = (block is data, len(block))
            block += obj[offset : offset + size]
    return code, data, places


def _add_slots(relocations: list[tuple], symbols: list[tuple], code: bytearray, data: bytearray
               ) -> tuple[dict[int, int], dict[int, int], int]:
    """One slot per outside symbol (or per symbol reached through the table), one jump per outside function.

    Gives the slots and the jumps by symbol, and where writable data begins.
    """
    slots: dict[int, int] = {}
    stubs: dict[int, int] = {}
    for _, _, info, _ in relocations:
        kind, index = info & 0xFFFFFFFF, info >> 32
        undefined = symbols[index][3] == 0
        if kind in _GOT_RELOCATIONS or (undefined and kind == _R_PLT32):
            slots.setdefault(index, 0)
        if undefined and kind == _R_PLT32:
            stubs.setdefault(index, 0)
    code += bytes(-len(code) % 16)
    for index in stubs:
        stubs[index] = len(code)
        code += bytes(_STUB_BYTES)
    data += bytes(-len(data) % 64)
    data_start = -(-len(code) // PAGE) * PAGE
    for index in slots:
        slots[index] = data_start + len(data)
        data += bytes(8)
    return slots, stubs, data_start


def _place_zeros(sections: list[tuple], data: bytearray, places: dict[int, tuple[bool, int]]) -> int:
    """Places the sections of zeros behind the writable data, and gives their size in bytes."""
    bss = 0
    for i, (_, kind, flags, _, _, size, _, _, align, _) in enumerate(sections):
        if kind == _SHT_NOBITS and flags & _SHF_ALLOC:
            bss += -(len(data) + bss) % max(align, 1)
            places[i] = (True, len(data) + bss)
            bss += size
    return bss


def _addresses(symbols: list[tuple], names: list[str], positions: dict[int, int]
               ) -> tuple[list[int | None], dict[str, int]]:
    """Each symbol's place in the image, None for those outside, and the exported ones by name."""
    addresses: list[int | None] = []
    exports: dict[str, int] = {}
    for i, (_, info, _, section, value, _) in enumerate(symbols):
        if section in positions:
            address = positions[section] + value
            addresses.append(address)
            if info >> 4 and names[i]:  # global or weak
                exports[names[i]] = address
        elif section in (_SHN_ABS, _SHN_COMMON) and info & 15 != 4:
            raise UnsupportedObject("absolute or common symbol")
        else:
            addresses.append(None)
    return addresses, exports


def _symbols(obj: bytes, sections: list[tuple]) -> tuple[list[tuple], list[str]]:
    for _, kind, _, _, offset, size, link_to, _, _, _ in sections:
        if kind == _SHT_SYMTAB:
            # name, info, other, section, value, size
            symbols = list(struct.iter_unpack("<IBBHQQ", obj[offset : offset + size]))
            strings = sections[link_to][4]
            names = [obj[strings + s[0] : obj.index(b"\0", strings + s[0])].decode() for s in symbols]
            return symbols, names
    return [], []


class Mapping:
    """An image in executable memory. Its addresses are valid until ``close`` or until it is collected."""

    __slots__ = ("__weakref__", "base", "size")

    def __init__(self, image: Image, resolve: Callable[[str], int]):
        self.size = 0
        libc = _libc()
        data_start = -(-len(image.code) // PAGE) * PAGE
        size = max(data_start + -(-(len(image.data) + image.bss) // PAGE) * PAGE, PAGE)
        words = [(offset, (resolve(name) if name else None), addend) for offset, name, addend in image.fixups]
        base = libc.mmap(None, size, 3, 0x22, -1, 0)  # read | write, private | anonymous
        if base in (None, _MAP_FAILED):
            raise MemoryError(f"cannot map {size} bytes for machine code")
        self.base, self.size = base, size
        ctypes.memmove(base, image.code, len(image.code))
        if image.data:
            ctypes.memmove(base + data_start, image.data, len(image.data))
        for offset, address, addend in words:
            word = (base if address is None else address) + addend
            ctypes.c_uint64.from_address(base + offset).value = word
        if data_start and libc.mprotect(base, data_start, 5):  # read | execute
            raise MemoryError("the system forbids executable memory")

    def close(self) -> None:
        """Unmap. The caller answers for no thread being in the code any more."""
        if self.size:
            size, self.size = self.size, 0
            _libc().munmap(self.base, size)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing):
        # At exit worker threads may still be inside; the process takes the memory with it.
        if not finalizing():
            self.close()


_MAP_FAILED = ctypes.c_void_p(-1).value
_handles: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _handles:
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                              ctypes.c_int64]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        _handles.append(libc)
    return _handles[0]
