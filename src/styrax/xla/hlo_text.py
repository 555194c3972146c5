"""StableHLO modules in the notation of XLA: `%2 = f32[3] multiply(%0, %1), metadata={op_name="jit(f)/mul"}`."""

from __future__ import annotations

import re
from collections.abc import Callable

_LINE = re.compile(r'^(?P<indent> *)(?:(?P<results>%[^=]+) = )?"(?:\w+\.)?(?P<name>\w+)"'
                   r"\((?P<operands>[^)]*)\)(?P<rest>.*)$")
_TYPE = re.compile(r"tensor<((?:[\d?]+x)*)([\w.]+?)>")
_NOTES = re.compile(r"mhlo\.frontend_attributes = \{([^}]*)\}")
_ATTRIBUTES = re.compile(r" \{(?:[^{}]|\{[^{}]*\})*\}|(?<=>) loc\(\"[^\"]*\"\)")  # of arguments and results
_CALLEE = re.compile(r"callee = @([\w.]+)")
_PRECISIONS = re.compile(r"precision_config = \[#stablehlo<precision (\w+)>, #stablehlo<precision (\w+)>\]")
_PLACE = re.compile(r' loc\("([^"]*)"')
_OPCODES = {"optimization_barrier": "opt-barrier", "dot_general": "dot", "broadcast_in_dim": "broadcast",
            "case": "conditional", "if": "conditional"}  # where they are not StableHLO's with hyphens
_ELEMENTS = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}


def _type(match: re.Match[str]) -> str:
    element = match[2]
    name = _ELEMENTS.get(element) or (element.replace("ui", "u") if element.startswith("ui") else
                                      re.sub(r"^i(?=\d)", "s", element).lower())
    return f"{name}[{match[1].rstrip('x').replace('x', ',')}]"


def _suffix(text: str) -> str:
    found = ""
    if (precisions := _PRECISIONS.search(text)) and {*precisions.groups()} != {"DEFAULT"}:
        found += f", operand_precision={{{','.join(precisions.groups()).lower()}}}"
    if callee := _CALLEE.search(text):
        found += f", to_apply=%{callee[1]}"
    if notes := _NOTES.search(text):
        pairs = ",".join(re.sub(r'"?([\w.]+)"? = ', r"\1=", pair) for pair in notes[1].split(", "))
        found += f", frontend_attributes={{{pairs}}}"
    if place := _PLACE.search(text):
        found += f', metadata={{op_name="{place[1]}"}}'
    return found


def _line(line: str) -> str:
    found = _LINE.match(line)
    if found is None:
        if line.startswith("})"):  # the end of an operation with regions
            return "}" + _suffix(line)
        head = re.match(r"^ *func\.func \w+ @([\w.]+)\((.*)\) -> \((.*)\) \{$", line)
        if head is not None:
            entry = "ENTRY " if head[1] == "main" else ""
            given, made = (_TYPE.sub(_type, _ATTRIBUTES.sub("", text)) for text in head.groups()[1:])
            return f"{entry}%{head[1]} ({given}) -> ({made}) {{"
        return _TYPE.sub(_type, line)
    made = found["rest"].rpartition(" -> ")[2]
    types = re.sub(r" loc\(.*", "", _TYPE.sub(_type, made))
    name = found["name"]
    text = f"{_OPCODES.get(name, name.replace('_', '-'))}({found['operands']})"
    if found["rest"].endswith("({"):  # regions follow
        text += " {"
        types = ""
    else:
        text += _suffix(found["rest"])
    left = f"{found['results']} = {types} " if found["results"] and types else (
        f"{found['results']} = " if found["results"] else "ROOT ")
    return found["indent"] + left + text


class HloModule:
    """A StableHLO module, given as text, to be shown in XLA's notation. `located` gives the text with locations."""

    def __init__(self, text: str, located: Callable[[], str] | None = None):
        self.text = text
        self._located = located

    def as_hlo_text(self) -> str:
        """The operations in XLA's notation, regions in place."""
        head, *lines = re.sub(r"\n  sdy\.mesh .*", "", self.text.rstrip()).split("\n")
        name = re.sub(r"^module @([\w.]+).*", r"\1", head)
        return f"HloModule {name}\n\n" + "\n".join(map(_line, lines[:-1])) + "\n"

    def as_hlo_module(self) -> HloModule:
        """The module whose operations tell where they come from."""
        return self if self._located is None else HloModule(self._located())

    def to_string(self) -> str:
        return self.as_hlo_text()
