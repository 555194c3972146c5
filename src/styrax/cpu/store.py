"""Disk cache of compiled code: small files found by key, checked before use, bounded in total size.

An entry is one file ``<key in hex>`` that holds a magic word, the key, a digest of the payload and the
payload. Anything that does not check out (truncated, foreign, bit-flipped, of another version) counts as
absent, and so does all that others could have written: in a directory of theirs, or one that they may write.
Files are written aside and renamed, so that readers and concurrent writers never see half of one.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

try:  # hashlib would load OpenSSL (milliseconds); this is the same function without it
    from _blake2 import blake2b
except ImportError:  # pragma: no cover - other Python builds
    from hashlib import blake2b

MAGIC = b"STYRAX\x00\x01"
KEY_BYTES = 20
_DIGEST_BYTES = 16
_HEADER_BYTES = len(MAGIC) + KEY_BYTES + _DIGEST_BYTES
_TOUCH_AFTER = 3600.0  # a hit renews the file's time at most once an hour
_SWEEPS = 16  # looks at the directory's size while as much is written as it may hold, by all processes
_STALE_TEMPORARY = 3600.0

DEFAULT_LIMIT = 512 << 20

# Neither through a link nor, at a FIFO that lies there in place of a file, for ever.
_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):
    _READ |= getattr(os, _flag, 0)


def digest(*parts: bytes) -> bytes:
    """Key of ``parts``; every part's length counts, so that moving a boundary changes the key."""
    h = blake2b(digest_size=KEY_BYTES)
    for part in parts:
        h.update(len(part).to_bytes(8, "little"))
        h.update(part)
    return h.digest()


def enabled() -> bool:
    """False when ``STYRAX_CACHE`` is 0, false, no or off."""
    return os.environ.get("STYRAX_CACHE", "1").lower() not in ("0", "false", "no", "off")


class Store:
    """A directory of checked entries. Every failure of the file system means "not cached", never an error."""

    __slots__ = ("directory", "limit")

    def __init__(self, directory: str, limit: int | None = None):
        self.directory = directory
        if limit is None:
            try:
                limit = int(os.environ["STYRAX_CACHE_LIMIT"])
            except (KeyError, ValueError):
                limit = DEFAULT_LIMIT
        self.limit = limit

    def _path(self, key: bytes) -> str:
        return os.path.join(self.directory, key.hex())

    def _trusted(self) -> bool:
        """Whether nobody else may put files into the directory, or exchange them. OSError where there is none."""
        info = os.stat(self.directory)
        return stat.S_ISDIR(info.st_mode) and _ours(info)

    def __contains__(self, key: bytes) -> bool:
        """Whether there is an entry under ``key``, sound or not."""
        return os.path.exists(self._path(key))

    def get(self, key: bytes) -> bytes | None:
        """The payload stored under ``key``, or None when there is no sound entry of our own."""
        path = self._path(key)
        try:
            if not self._trusted():
                return None
            fd = os.open(path, _READ)
        except OSError:
            return None
        try:
            info = os.fstat(fd)
            # Machine code is only taken from files that nobody else could have written.
            if not _ours(info):
                return None
            if not stat.S_ISREG(info.st_mode) or info.st_size < _HEADER_BYTES:
                return None
            data = os.read(fd, info.st_size)
            while len(data) < info.st_size:
                more = os.read(fd, info.st_size - len(data))
                if not more:
                    return None
                data += more
        except OSError:
            return None
        finally:
            os.close(fd)
        payload = _checked(key, data)
        if payload is None:
            _remove(path)
        elif time.time() - info.st_mtime > _TOUCH_AFTER:
            with suppress(OSError):
                os.utime(path)
        return payload

    def put(self, key: bytes, payload: bytes) -> bool:
        """Store ``payload``; False when the directory cannot be written (the caller loses nothing)."""
        try:
            try:
                trusted = self._trusted()
            except FileNotFoundError:
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                trusted = self._trusted()
            if not trusted:
                return False
            drawn = os.urandom(6)
            temporary = os.path.join(self.directory, f"tmp-{os.getpid()}-{drawn.hex()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
            fd = os.open(temporary, flags, 0o600)
            try:
                try:
                    with open(fd, "wb", buffering=0, closefd=True) as file:
                        data = MAGIC + key + blake2b(payload, digest_size=_DIGEST_BYTES).digest() + payload
                        view = memoryview(data)
                        while view:
                            view = view[file.write(view) :]
                    os.replace(temporary, self._path(key))
                except BaseException:
                    _remove(temporary)
                    raise
            except OSError:
                return False
        except OSError:
            return False
        # A look costs a second where there are many entries. Who takes it is drawn by lot, as nobody knows what others
        # have written; a byte has the same chance wherever it comes from.
        if int.from_bytes(drawn, "little") * self.limit < _SWEEPS * len(data) << 48:
            self.sweep()
        return True

    def sweep(self) -> int:
        """Delete the least recently used entries until the directory is at 3/4 of its limit, if it is over
        it, and temporary files that crashed writers left. Returns the number of bytes that remain."""
        entries, total, now = [], 0, time.time()
        try:
            with os.scandir(self.directory) as listing:
                for item in listing:
                    try:
                        info = item.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if not stat.S_ISREG(info.st_mode):
                        continue
                    if item.name.startswith("tmp-"):
                        if now - info.st_mtime > _STALE_TEMPORARY:
                            _remove(item.path)
                        continue
                    if len(item.name) != 2 * KEY_BYTES:
                        continue  # not ours
                    entries.append((info.st_mtime, info.st_size, item.path))
                    total += info.st_size
        except OSError:
            return total
        if total > self.limit:
            entries.sort()
            for _, size, path in entries:
                if total <= self.limit * 3 // 4:
                    break
                _remove(path)
                total -= size
        return total


def _ours(info: os.stat_result) -> bool:
    """Whether only this user may write there."""
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid() and not info.st_mode & 0o022


def _checked(key: bytes, data: bytes) -> bytes | None:
    start = len(MAGIC)
    if data[:start] != MAGIC or data[start : start + KEY_BYTES] != key:
        return None
    payload = data[_HEADER_BYTES:]
    if blake2b(payload, digest_size=_DIGEST_BYTES).digest() != data[start + KEY_BYTES : _HEADER_BYTES]:
        return None
    return payload


def _remove(path: str) -> None:
    with suppress(OSError):
        os.remove(path)
