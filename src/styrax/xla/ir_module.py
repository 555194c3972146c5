"""A StableHLO module as an object: functions, their operations and the attributes of these, read off the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import TextIO

from .assembly import readable
from .printed_regions import parts

_FUNCTION = re.compile(r"func\.func \w+ @([\w.]+)\(")
_HEAD = re.compile(r"module @([\w.]+)[^\n]*\{\n")

class Attribute:
    """An attribute of an operation; `str` gives its text."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text})"


class DictAttr(Attribute):
    """Attributes by name."""

    __slots__ = ("entries",)

    def __init__(self, text: str):
        super().__init__(text)
        pairs = (part.partition(" = ") for part in parts(text[1:-1]))
        self.entries = {name: attribute(value) if equals else Attribute("unit") for name, equals, value in pairs}

    def __getitem__(self, name: str) -> Attribute:
        return self.entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def attribute(text: str) -> Attribute:
    """The attribute that a text stands for."""
    return DictAttr(text) if text.startswith("{") else Attribute(text)


class Value:
    """An operand or a result: its name and its type, as texts."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: str):
        self.name = name
        self.type = type


class Operation:
    """One operation of a block."""

    def __init__(self, text: str):
        self.text = text
        left, equals, right = text.partition(' = "')
        self._results = left if equals else ""
        name, _, self._rest = (right if equals else text.removeprefix('"')).partition('"')
        self.name = self.OPERATION_NAME = name

    @property
    def operation(self) -> Operation:
        return self

    def _signature(self) -> tuple[str, str, str]:
        before, _, types = self._rest.rpartition(" : (")
        given, _, made = types.partition(") -> ")
        return before, given, re.sub(r" loc\(.*", "", made)

    @cached_property
    def attributes(self) -> DictAttr:
        before = self._signature()[0]
        if not before.endswith("}"):
            return DictAttr("{}")
        depth = 0
        for i in range(len(before) - 1, -1, -1):
            depth += (before[i] == "}") - (before[i] == "{")
            if depth == 0:
                return DictAttr(before[i:])
        raise ValueError(f"not the text of an operation: {self.text}")

    @property
    def operands(self) -> list[Value]:
        before, given, _ = self._signature()
        names = before[1:before.index(")")]
        return [Value(n, t) for n, t in zip(parts(names), parts(given), strict=True)]

    @property
    def results(self) -> list[Value]:
        made = self._signature()[2]
        types = made[1:-1] if made.startswith("(") else made
        return [Value(n, t) for n, t in zip(parts(self._results), parts(types), strict=True)]

    def __str__(self) -> str:
        return self.text


class Block:
    """Operations in their order."""

    __slots__ = ("operations",)

    def __init__(self, operations: list[Operation]):
        self.operations = operations

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


class Region:
    """Blocks: StableHLO has one in each region."""

    __slots__ = ("blocks",)

    def __init__(self, blocks: list[Block]):
        self.blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)


class Function:
    """A function of a module."""

    OPERATION_NAME = "func.func"

    def __init__(self, text: str):
        self.text = text
        self.name = _FUNCTION.findall(text)[0]

    @property
    def body(self) -> Region:
        starts = [m.start() for m in re.finditer(r'^    (?=[%"])', self.text, re.MULTILINE)]
        end = self.text.rindex("\n  }")
        return Region([Block([Operation(self.text[i:j].strip()) for i, j in zip(starts, [*starts[1:], end])])])

    def __str__(self) -> str:
        return self.text


class IrModule:
    """A StableHLO module: its name and functions. `located` gives its text with where operations come from."""

    def __init__(self, text: str, located: Callable[[], str] | None = None):
        head = _HEAD.match(text)
        if head is None:
            raise ValueError("not the text of a module")
        body = text[head.end():].rstrip()[:-1].rstrip("\n")
        starts = [m.start() for m in re.finditer(r"^  func\.func ", body, re.MULTILINE)]
        self.name = head[1]
        self.functions = [body[i:j].rstrip("\n") for i, j in zip(starts, [*starts[1:], len(body)])]
        self._head = head[0] + (body[:starts[0]] if starts else body)  # and the meshes that it names
        self._located = located

    def __str__(self) -> str:
        return readable(self._head + "\n".join(self.functions) + "\n}\n")

    def names(self) -> list[str]:
        """The names of its functions."""
        return [name for function in self.functions for name in _FUNCTION.findall(function)]

    @property
    def body(self) -> IrModule:
        return self

    @property
    def operations(self) -> list[Function]:
        return list(map(Function, self.functions))

    @property
    def operation(self) -> IrModule:
        return self

    def get_asm(self, enable_debug_info: bool = False, **_: bool | int | None) -> str:
        """The text; with `enable_debug_info` operations tell where they come from."""
        return readable(self._located()) if enable_debug_info and self._located is not None else str(self)

    def print(self, file: TextIO | None = None, enable_debug_info: bool = False, **_: bool | int | None) -> None:
        """Writes the text to a file, the standard output by default."""
        (sys.stdout if file is None else file).write(self.get_asm(enable_debug_info))


# what rules and tools ask MLIR's Python bindings for
bindings = SimpleNamespace(Attribute=Attribute, Block=Block, DictAttr=DictAttr, Module=IrModule, Operation=Operation,
                           Region=Region, Value=Value)
