"""The structure of a module as MLIR prints it: regions, and the names of values.

Text in, text out, as in `assembly`, whose lines are taken over. Values are numbered by function, those in regions after
all around them, several results of one operation as `%3#0`; constants are `%c` and `%cst`, carries of loops `%iterArg`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_OPENING, _CLOSING = "<[{(", ">]})"
_RESULTS = re.compile(r"^(%\w+(?:, %\w+)*) = (.*)$", re.DOTALL)
_HEAD = re.compile(r'^"(?P<name>[\w.]+)"\((?P<operands>[^)]*)\) \(\{$')
_TAIL = re.compile(r"^\}\)(?: \{(?P<attributes>.*)\})? : \((?P<given>.*)\) -> (?P<made>.*?)(?P<place> loc\(.*)?$")
_CONSTANT = re.compile(r"stablehlo\.constant .*tensor<(?:[\d?]+x)*([^>]+)>")
_COMBINED = re.compile(r"^(stablehlo\.(?:add|and|maximum|minimum|multiply|or|xor)) (%\w+), (%\w+) : \S+$")
_VALUE = re.compile(r"%\w+")


def parts(text: str) -> Iterator[str]:
    """The parts of a list between its own commas, those inside of brackets and quotes aside."""
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(text):
        if c == '"' and text[i - 1:i] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif c in _OPENING:
            depth += 1
        elif c in _CLOSING and text[i - 1:i + 1] != "->":
            depth -= 1
        elif c == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


class _Region:
    """One block: its arguments with their types, and its operations."""

    def __init__(self, arguments: list[tuple[str, str]], operations: list[_Operation]):
        self.arguments = arguments
        self.operations = operations


class _Operation:
    """An operation: its results' names, its text (up to the regions, if it has some), regions, and what follows."""

    def __init__(self, results: list[str], text: str, regions: list[_Region], tail: str):
        self.results, self.text, self.regions, self.tail = results, text, regions, tail

    @property
    def name(self) -> str:
        return self.text[1:].partition('"')[0] if self.regions else ""

    @property
    def combined(self) -> str | None:
        """What a reduction of one array combines its elements by, where that is one operation that commutes."""
        if self.name != "stablehlo.reduce" or len(self.results) != 1 or len(self.regions[0].operations) != 2:
            return None
        region = self.regions[0]
        found = _COMBINED.match(region.operations[0].text)
        return found[1] if found and [*found.groups()[1:]] == [n for n, _ in region.arguments] else None


def _operations(lines: Iterator[str]) -> tuple[list[_Operation], str]:
    """The operations up to the end of a region, and the line that ends it."""
    found: list[_Operation] = []
    for line in lines:
        text = line.strip()
        if text.startswith("}"):
            return found, text
        made = _RESULTS.match(text)
        results, text = (made[1].split(", "), made[2]) if made else ([], text)
        regions, tail = [], ""
        while text.endswith("({") and not tail.startswith("})"):
            inner, tail = _operations(lines)
            arguments: list[tuple[str, str]] = []
            if inner and inner[0].text.startswith("^bb0("):
                head = inner.pop(0).text[len("^bb0("):-len("):")]
                arguments = [(n, t) for n, _, t in (part.partition(": ") for part in re.split(r", (?=%)", head))]
            regions.append(_Region(arguments, inner))
        found.append(_Operation(results, text, regions, tail))
    raise ValueError("a region without an end")


class _Names:
    """Names of the values of a function, region by region: `counts` are of values, arguments and conflicts so far."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def region(self, region: _Region, counts: tuple[int, int, int], taken: frozenset[str], hint: str = "") -> None:
        values, arguments, conflicts = counts
        used = set(taken)

        def unique(name: str) -> str:
            nonlocal conflicts
            found = name
            while found in used:
                found, conflicts = f"{name}_{conflicts}", conflicts + 1
            used.add(found)
            return f"%{found}"

        for name, _ in region.arguments:
            if hint:
                self.names[name] = unique(hint)
            else:
                self.names[name] = f"%arg{arguments}"
                arguments += 1
        for operation in region.operations:
            constant = _CONSTANT.match(operation.text)
            if constant is not None:
                kind = "c" if re.fullmatch(r"u?i\d+", constant[1]) else "cst"
                self.names[operation.results[0]] = unique(kind)
            elif operation.results:
                several = len(operation.results) > 1
                for i, result in enumerate(operation.results):
                    self.names[result] = f"%{values}#{i}" if several else f"%{values}"
                values += 1
        for operation in region.operations:
            for inner in operation.regions:
                self.region(inner, (values, arguments, conflicts), frozenset(used),
                            "iterArg" if operation.name == "stablehlo.while" else "")

    def replaced(self, text: str) -> str:
        return _VALUE.sub(lambda found: self.names.get(found[0], found[0]), text)


def _listed(names: _Names, arguments: list[tuple[str, str]]) -> str:
    return ", ".join(f"{names.names[n]}: {t}" for n, t in arguments)


def _block(names: _Names, region: _Region, pad: str) -> Iterator[str]:
    for operation in region.operations:
        yield from _printed(names, operation, pad)


def _printed(names: _Names, operation: _Operation, pad: str) -> Iterator[str]:
    results, left = operation.results, ""
    if results:
        first = names.names[results[0]]
        left = f"{first.partition('#')[0]}:{len(results)} = " if len(results) > 1 else f"{first} = "
    if not operation.regions:
        text = names.replaced(operation.text)
        inside = len(pad) > 4 and text.startswith("call @")  # where calls are no operations of the dialect around
        yield f"{pad}{left}{'func.' if inside else ''}{text}"
        return
    head, tail = _HEAD.match(operation.text), _TAIL.match(operation.tail)
    assert head is not None and tail is not None, operation.text
    form = _FORMS.get(operation.name, _generic)
    yield from form(names, operation, head, tail, pad, f"{pad}{left}")


_Form = Callable[[_Names, _Operation, "re.Match[str]", "re.Match[str]", str, str], Iterator[str]]


def _generic(names: _Names, operation: _Operation, head: re.Match[str], tail: re.Match[str], pad: str,
             start: str) -> Iterator[str]:
    own, notes = _attributes(tail["attributes"] or "")
    yield f'{start}"{operation.name}"({names.replaced(head["operands"])}){own} ({{'
    for i, region in enumerate(operation.regions):
        if i:
            yield f"{pad}}}, {{"
        if region.arguments:
            yield f"{pad}^bb0({_listed(names, region.arguments)}):"
        yield from _block(names, region, f"{pad}  ")
    yield f"{pad}}}){notes} : ({tail['given']}) -> {tail['made']}{tail['place'] or ''}"


def _attributes(text: str) -> tuple[str, str]:
    """Those of the operation, which stand before its regions, and notes of a dialect on it."""
    given = sorted(parts(text))
    own = ", ".join(part for part in given if "." not in part.partition(" = ")[0])
    notes = ", ".join(part for part in given if "." in part.partition(" = ")[0])
    return f" <{{{own}}}>" if own else "", f" {{{notes}}}" if notes else ""


def _while(names: _Names, operation: _Operation, head: re.Match[str], tail: re.Match[str], pad: str,
           start: str) -> Iterator[str]:
    operands = names.replaced(head["operands"]).split(", ")
    carried = ", ".join(f"{names.names[n]} = {x}"
                        for (n, _), x in zip(operation.regions[0].arguments, operands, strict=True))
    told = f" attributes {{{tail['attributes']}}}" if tail["attributes"] else ""
    yield f"{start}stablehlo.while({carried}) : {tail['given']}{told}"
    yield f"{pad}cond {{"
    yield from _block(names, operation.regions[0], f"{pad}  ")
    yield f"{pad}}} do {{"
    yield from _block(names, operation.regions[1], f"{pad}  ")
    yield f"{pad}}}{tail['place'] or ''}"


def _reduce(names: _Names, operation: _Operation, head: re.Match[str], tail: re.Match[str], pad: str,
            start: str) -> Iterator[str]:
    found = re.fullmatch(r"dimensions = array<i64(?:: (.*))?>", tail["attributes"] or "")
    if found is None:
        yield from _generic(names, operation, head, tail, pad, start)
        return
    operands, region = names.replaced(head["operands"]).split(", "), operation.regions[0]
    n = len(operands) // 2
    pairs = ", ".join(f"({x} init: {y})" for x, y in zip(operands[:n], operands[n:], strict=True))
    across = (f"across dimensions = [{found[1] or ''}] : ({tail['given']}) -> {tail['made']}{tail['place'] or ''}")
    if operation.combined is not None:
        yield f"{start}stablehlo.reduce{pairs} applies {operation.combined} {across}"
        return
    yield f"{start}stablehlo.reduce{pairs} {across}"
    both = zip(region.arguments[:n], region.arguments[n:], strict=True)
    yield f"{pad} reducer{' '.join(f'({_listed(names, list(pair))})' for pair in both)}  {{"
    yield from _block(names, region, f"{pad}  ")
    yield f"{pad}}}"


_FORMS: dict[str, _Form] = {"stablehlo.while": _while, "stablehlo.reduce": _reduce}


def printed(lines: Iterator[str]) -> Iterator[str]:
    """The lines of a module, with regions and names as MLIR prints them."""
    for line in lines:
        if not re.match(r" *func\.func .*\{$", line):
            yield line
            continue
        operations, end = _operations(lines)
        body, names = _Region([], operations), _Names()
        names.region(body, (0, line.count("%arg"), 0), frozenset())
        yield line
        yield from _block(names, body, "    ")
        yield f"  {end}"
