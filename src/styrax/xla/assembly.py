"""Modules as people read them: operations in the form that StableHLO, Shardy and `func` have for them.

`stablehlo` prints the generic form, which programs read; here the lines of that text are written anew, operation by
operation (`printed_regions` has those that hold regions, and the names of values). Whatever has no row stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .printed_regions import parts, printed

_LINE = re.compile(r'^(?P<indent> *)(?P<results>%[^=]+ = )?"(?P<dialect>\w+)\.(?P<name>\w+)"\((?P<operands>[^)]*)\)'
                   r'(?: \{(?P<attributes>.*)\})? : \((?P<given>.*)\) -> (?P<made>.*?)(?P<place> loc\(.*)?$')
_SIGNATURE = re.compile(r"^( *func\.func .*)\) -> \(([^,{}]*)\) \{$")


class _Operation:
    """An operation in the generic form: operands, attributes by name, and types."""

    def __init__(self, found: re.Match[str]):
        self.name = found["name"]
        self.operands = found["operands"].split(", ") if found["operands"] else []
        self.attributes = dict(part.partition(" = ")[::2] for part in parts(found["attributes"] or ""))
        self.given = list(parts(found["given"]))
        self.made = found["made"]

    def take(self, name: str) -> str:
        return self.attributes.pop(name)

    def numbers(self, name: str) -> str:
        """A list of numbers, `[1, 0]`."""
        text = self.take(name)
        return f"[{text.partition(': ')[2][:-1]}]" if ": " in text else "[]"

    def rest(self) -> str:
        """What attributes are left."""
        listed = ", ".join(f"{n} = {v}" if v else n for n, v in self.attributes.items())
        return f" {{{listed}}}" if listed else ""


def _with(*names: str) -> Callable[[_Operation], str]:
    """Operands, and lists of numbers behind them, `dims = [1, 0]`: attribute:word."""
    rows = [row.split(":") for row in names]
    return lambda o: ", ".join([*o.operands, *(f"{word} = {o.numbers(name)}" for name, word in rows)])


def _compare(o: _Operation) -> str:
    direction, kind = (re.sub(r"#stablehlo<\w+ (\w+)>", r"\1", o.take(n)) for n in ("comparison_direction",
                                                                                 "compare_type"))
    return f"{direction}, {', '.join(o.operands)}, {kind}"


def _slice(o: _Operation) -> str:
    columns = [re.findall(r"-?\d+", o.numbers(n)) for n in ("start_indices", "limit_indices", "strides")]
    ranges = ", ".join(f"{a}:{b}" if c == "1" else f"{a}:{b}:{c}" for a, b, c in zip(*columns, strict=True))
    return f"{o.operands[0]} [{ranges}]"


def _dot_general(o: _Operation) -> str:
    numbers = o.take("dot_dimension_numbers")[len("#stablehlo.dot<"):-1]
    dims = dict(part.partition(" = ")[::2] for part in parts(numbers))
    pairs = {word: (dims[f"lhs_{key}_dimensions"], dims[f"rhs_{key}_dimensions"])
             for word, key in (("batching_dims", "batching"), ("contracting_dims", "contracting"))}
    text = [", ".join(o.operands), *(f"{word} = {a} x {b}" for word, (a, b) in pairs.items()
                                     if word == "contracting_dims" or a != "[]")]
    if "precision_config" in o.attributes:
        precisions = re.findall(r"precision (\w+)", o.take("precision_config"))
        text.append(f"precision = [{', '.join(precisions)}]")
    return ", ".join(text)


def _number(name: str, word: str) -> Callable[[_Operation], str]:
    return lambda o: ", ".join([*o.operands, f"{word} = {o.take(name).partition(' : ')[0]}"])


def _custom_call(o: _Operation) -> str:
    target = o.take("call_target_name")[1:-1]
    symbol = target if re.fullmatch(r"[A-Za-z_][\w.$]*", target) else f'"{target}"'
    return f"@{symbol}({', '.join(o.operands)})"


def _constraint(o: _Operation) -> str:
    return f"{o.operands[0]} {o.take('sharding').removeprefix('#sdy.sharding')}"


def _operands(o: _Operation) -> str:
    return ", ".join(o.operands)


def _fft(o: _Operation) -> str:
    kind = re.sub(r"#stablehlo<fft_type (\w+)>", r"\1", o.take("fft_type"))
    return f"{o.operands[0]}, type = {kind}, length = {o.numbers('fft_length')}"


def _signature(o: _Operation) -> str:
    return f"({', '.join(o.given)}) -> {o.made}"


def _types(o: _Operation) -> str:
    """One type where all are the same."""
    return o.made if o.given and {*o.given} == {o.made} else _signature(o)


def _made(o: _Operation) -> str:
    return o.made


def _given(o: _Operation) -> str:
    return ", ".join(o.given)


Form = tuple[Callable[[_Operation], str], Callable[[_Operation], str]]  # what follows the name; which types are told
_FORMS: dict[str, Form] = {
    **dict.fromkeys(
        "abs add and atan2 cbrt ceil clamp complex convert cosine count_leading_zeros divide exponential "
        "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or "
        "popcnt power real remainder round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic "
        "shift_right_logical sign sine sqrt subtract tan tanh xor".split(), (_operands, _types)),
    **dict.fromkeys("bitcast_convert dynamic_update_slice reshape".split(), (_operands, _signature)),
    "broadcast_in_dim": (_with("broadcast_dimensions:dims"), _signature),
    "transpose": (_with("permutation:dims"), _signature),
    "reverse": (_with("dimensions:dims"), _made),
    "pad": (_with("edge_padding_low:low", "edge_padding_high:high", "interior_padding:interior"), _signature),
    "dynamic_slice": (_with("slice_sizes:sizes"), _signature),
    "slice": (_slice, _signature),
    "compare": (_compare, _signature),
    "dot_general": (_dot_general, _signature),
    "fft": (_fft, _signature),
    "cholesky": (_number("lower", "lower"), _made),
    "concatenate": (_number("dimension", "dim"), _signature),
    "iota": (_number("iota_dimension", "dim"), _made),
    "constant": (lambda o: o.take("value").rpartition(" : ")[0], _made),
    "custom_call": (_custom_call, _signature),
    "select": (_operands, lambda o: f"{o.given[0]}, {o.given[1]}"),
    "optimization_barrier": (_operands, _given),
    "sharding_constraint": (_constraint, _made),
    "call": (lambda o: f"{o.take('callee')}({', '.join(o.operands)})", _signature),
    "return": (_operands, _given),
}
_CHLO: Form = (_operands, lambda o: f"{', '.join(o.given)} -> {o.made}")


_MESH = re.compile(r"^  sdy\.mesh @\w+ = <\[(?P<axes>.*)\](?P<ids>, device_ids=\[0\])?>$")


def _mesh(line: str, found: re.Match[str]) -> str:
    """A mesh, told once more for StableHLO itself."""
    axes = ", ".join(f"{{name = {name}, size = {size} : i64}}"
                     for name, size in re.findall(r'("(?:[^"\\]|\\.)*")=(\d+)', found["axes"]))
    ids = ", device_ids = dense<0> : tensor<1xi64>" if found["ids"] else ""
    return f"{line} {{stablehlo.mesh = {{axes = [{axes}]{ids}}}}}"


def _line(line: str) -> str:
    found = _LINE.match(line)
    if found is None:
        if (over := _MESH.match(line)) is not None:
            return _mesh(line, over)
        head = _SIGNATURE.match(line)
        return f"{head[1]}) -> {head[2]} {{" if head is not None and head[2] else line
    form = _CHLO if found["dialect"] == "chlo" else _FORMS.get(found["name"])
    if form is None:
        return line
    operation = _Operation(found)
    try:
        body = form[0](operation)
    except KeyError:  # an operation without one of the attributes that its form tells
        return line
    name = found["name"] if found["dialect"] == "func" else f"{found['dialect']}.{found['name']}"
    types = form[1](operation)
    text = f"{found['indent']}{found['results'] or ''}{name}{f' {body}' if body else ''}{operation.rest()}"
    return f"{text}{f' : {types}' if types else ''}{found['place'] or ''}"


def readable(text: str) -> str:
    """The text of a module in the generic form, written anew."""
    return "\n".join(printed(map(_line, text.split("\n"))))
