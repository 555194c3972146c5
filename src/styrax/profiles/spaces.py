"""Recorded spans as XSpace messages, which TensorBoard's profile plugin reads, and what is in such a message.

The numbers of fields are those of `tsl/profiler/protobuf/xplane.proto`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..protocol_buffers import Scalar, decode, encode, signed

Stat = tuple[str, int | float | str]


@dataclass(frozen=True)
class Span:
    """A named stretch of time on a thread, in nanoseconds."""

    name: str
    thread: int
    start: int
    duration: int
    details: Mapping[str, int | float | str] = field(default_factory=dict)


def serialize(spans: Iterable[Span], host: str, plane: str = "/host:CPU") -> bytes:
    """Spans as an XSpace with one plane, in which each thread is a line."""
    names: dict[str, int] = {}
    stats: dict[str, int] = {}
    threads: dict[int, list[Span]] = {}
    for span in spans:
        threads.setdefault(span.thread, []).append(span)
    lines: list[tuple[int, Scalar]] = []
    for thread, line in threads.items():
        begin = min(span.start for span in line)
        fields: list[tuple[int, Scalar]] = [(1, thread), (2, f"python/{thread}"), (3, begin)]
        for span in sorted(line, key=lambda s: s.start):
            details = [(4, encode([(1, stats.setdefault(k, len(stats) + 1)), (_number(v), v)]))
                       for k, v in span.details.items()]
            fields.append((4, encode([(1, names.setdefault(span.name, len(names) + 1)),
                                      (2, 1000 * (span.start - begin)), (3, 1000 * span.duration), *details])))
        lines.append((3, encode(fields)))
    tables = [(number, encode([(1, n), (2, encode([(1, n), (2, name)]))]))
              for number, table in ((4, names), (5, stats)) for name, n in table.items()]
    return encode([(1, encode([(1, 0), (2, plane), *lines, *tables])), (4, host)])


def _number(detail: int | float | str) -> int:
    return 4 if isinstance(detail, int) else 2 if isinstance(detail, float) else 5


class ProfileEvent:
    """A span of a line: `name`, `start_ns`, `duration_ns`, `end_ns`, and its details `stats`."""

    __slots__ = ("duration_ns", "name", "start_ns", "stats")

    def __init__(self, name: str, start_ns: float, duration_ns: float, stats: Iterator[Stat]):
        self.name = name
        self.start_ns = start_ns
        self.duration_ns = duration_ns
        self.stats = stats

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.duration_ns

    def __repr__(self) -> str:
        return f"ProfileEvent(name={self.name!r}, start_ns={self.start_ns}, duration_ns={self.duration_ns})"


class ProfileLine:
    """What happened one after the other or nested, mostly on one thread: `name` and `events`."""

    __slots__ = ("_fields", "_plane")

    def __init__(self, plane: ProfilePlane, fields: dict[int, list]):
        self._plane = plane
        self._fields = fields

    @property
    def name(self) -> str:
        return _text(self._fields, 11) or _text(self._fields, 2)

    @property
    def events(self) -> Iterator[ProfileEvent]:
        begin = signed(_first(self._fields, 3))
        for data in self._fields.get(4, ()):
            event = _fields(data)
            yield ProfileEvent(self._plane.event_names.get(_first(event, 1), ""),
                               begin + signed(_first(event, 2)) / 1000, signed(_first(event, 3)) / 1000,
                               self._plane.named_stats(event.get(4, ())))


class ProfilePlane:
    """What was recorded of one device or host: `name`, `lines` and `stats`."""

    __slots__ = ("_fields", "event_names", "stat_names")

    def __init__(self, data: bytes):
        self._fields = _fields(data)
        self.event_names = _names(self._fields.get(4, ()))
        self.stat_names = _names(self._fields.get(5, ()))

    @property
    def name(self) -> str:
        return _text(self._fields, 2)

    @property
    def lines(self) -> Iterator[ProfileLine]:
        return (ProfileLine(self, _fields(data)) for data in self._fields.get(3, ()))

    @property
    def stats(self) -> Iterator[Stat]:
        return self.named_stats(self._fields.get(6, ()))

    def named_stats(self, found: Iterable[bytes]) -> Iterator[Stat]:
        """Details by name; a value can be the name of another one."""
        for data in found:
            stat = _fields(data)
            name = self.stat_names.get(_first(stat, 1), "")
            for number, values in stat.items():
                if number != 1:
                    value = values[-1]
                    yield name, _value(number, value, self.stat_names)


class ProfileData:
    """A recording, read from the file that `stop_trace` writes."""

    __slots__ = ("_planes",)

    def __init__(self, planes: list[bytes]):
        self._planes = planes

    @staticmethod
    def from_file(proto_file_path: str | os.PathLike) -> ProfileData:
        """The recording in a file whose name ends in `.xplane.pb`."""
        return ProfileData.from_serialized_xspace(Path(proto_file_path).read_bytes())

    @staticmethod
    def from_serialized_xspace(serialized_xspace: bytes) -> ProfileData:
        """The recording in an XSpace message. Raises RuntimeError where it is none."""
        try:
            planes = [x for x in _fields(serialized_xspace).get(1, []) if _fields(x) is not None]
        except (ValueError, TypeError) as error:
            raise RuntimeError("Failed to parse XSpace from array") from error
        return ProfileData(planes)

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        return map(ProfilePlane, self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of a name, or None where there is none."""
        return next((plane for plane in self.planes if plane.name == name), None)


def _value(number: int, value: int | float | bytes, names: Mapping[int, str]) -> int | float | str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if number == 7:
        return names.get(int(value), "")
    return signed(value) if number == 4 and isinstance(value, int) else value


def _fields(data: bytes) -> dict[int, list]:
    found: dict[int, list] = {}
    for number, value in decode(data):
        found.setdefault(number, []).append(value)
    return found


def _first(fields: dict[int, list], number: int) -> int:
    return fields.get(number, [0])[-1]


def _text(fields: dict[int, list], number: int) -> str:
    return fields.get(number, [b""])[-1].decode(errors="replace")


def _names(entries: Iterable[bytes]) -> dict[int, str]:
    """A table from numbers to messages that have a name."""
    table = {}
    for entry in entries:
        pair = _fields(entry)
        table[_first(pair, 1)] = _text(_fields(pair.get(2, [b""])[-1]), 2)
    return table
