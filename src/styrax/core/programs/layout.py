"""Documents: text whose line breaks are chosen when it is printed.

A group is printed on one line if it fits into the rest of the line, else its breaks become newlines,
indented by the nesting around them. Texts may carry a style (for colour) and notes, which are printed
as comments to the right of the line they fall on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Doc:
    """Base of documents. ``flat`` is the width when everything is on one line."""

    __slots__ = ("flat",)
    flat: int

    def format(self, width: int = 80, use_color: bool = False) -> str:
        """The document as text of lines of at most ``width`` characters where possible."""
        return _format(self, width, use_color)

    def __add__(self, other: Doc) -> Doc:
        return concat([self, other])


class Text(Doc):
    """A word. ``style`` is "keyword", "type" or None; ``note`` a comment for the line."""

    __slots__ = ("note", "style", "text")

    def __init__(self, text: str, style: str | None = None, note: str | None = None):
        self.text = text
        self.style = style
        self.note = note
        self.flat = len(text)


class Break(Doc):
    """A newline, or ``text`` where the group around it is on one line."""

    __slots__ = ("text",)

    def __init__(self, text: str = " "):
        self.text = text
        self.flat = len(text)


class Concat(Doc):
    """Documents one after the other."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Doc]):
        self.parts = parts
        self.flat = sum([p.flat for p in parts])


class Nest(Doc):
    """A document whose newlines are indented by ``indent`` more."""

    __slots__ = ("body", "indent")

    def __init__(self, indent: int, body: Doc):
        self.indent = indent
        self.body = body
        self.flat = body.flat


class Group(Doc):
    """A document that is on one line if it fits."""

    __slots__ = ("body",)

    def __init__(self, body: Doc):
        self.body = body
        self.flat = body.flat


def concat(parts: Iterable[Doc]) -> Doc:
    return Concat(list(parts))


def join(separator: Doc, parts: Iterable[Doc]) -> Doc:
    """The parts with ``separator`` between them."""
    joined: list[Doc] = []
    for part in parts:
        if joined:
            joined.append(separator)
        joined.append(part)
    return Concat(joined)


text = Text
nil = Text("")
line = Break()
fill_line = Group(Break())  # decides for itself, so that words run on until the line is full


# ANSI codes of each style: colour and intensity.
_STYLES: dict[str | None, tuple[str, str]] = {
    None: ("39", "22"),
    "keyword": ("34", "1"),
    "type": ("35", "22"),
}


def _change(before: str | None, after: str | None) -> str:
    codes = [b for a, b in zip(_STYLES[before], _STYLES[after]) if a != b]
    return f"\033[{';'.join(codes)}m"


def _format(doc: Doc, width: int, use_color: bool) -> str:
    lines: list[str] = []
    notes: list[list[str]] = []
    current: list[str] = []
    current_notes: list[str] = []
    column = 0
    last: str | None = None
    agenda: list[tuple[int, bool, Doc]] = [(0, False, doc)]  # indentation, whether flat, document
    while agenda:
        indent, flat, item = agenda.pop()
        kind = type(item)
        if kind is Text or (flat and kind is Break):
            style = item.style if kind is Text else None  # type: ignore[attr-defined]
            if use_color and item.flat and style != last:
                current.append(_change(last, style))
                last = style
            current.append(item.text)  # type: ignore[attr-defined]
            column += item.flat
            if kind is Text and item.note is not None:  # type: ignore[attr-defined]
                current_notes.append(item.note)  # type: ignore[attr-defined]
        elif kind is Concat:
            agenda.extend([(indent, flat, part) for part in reversed(item.parts)])  # type: ignore[attr-defined]
        elif kind is Group:
            agenda.append((indent, flat or column + item.flat <= width, item.body))  # type: ignore[attr-defined]
        elif kind is Nest:
            agenda.append((indent + item.indent, flat, item.body))  # type: ignore[attr-defined]
        else:
            lines.append("".join(current))
            notes.append(current_notes)
            current, current_notes = [" " * indent], []
            column = indent
    if last is not None:
        current.append(_change(last, None))
    lines.append("".join(current))
    notes.append(current_notes)
    return "\n".join(_with_notes(lines, notes)) if any(notes) else "\n".join(lines)


def _with_notes(lines: list[str], notes: list[list[str]]) -> list[str]:
    margin = max(map(len, lines))
    result = []
    for text, comments in zip(lines, notes):
        for i, comment in enumerate(comments):
            result.append(f"{text if i == 0 else '':<{margin}} # {comment}")
        if not comments:
            result.append(text)
    return result
