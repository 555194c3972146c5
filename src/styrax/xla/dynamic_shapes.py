"""StableHLO for programs on symbolic sizes.

Types say `?` for a symbolic size. Operations that need the size itself get it as a value: `dynamic_reshape` for
`reshape`, and so on. Each function takes the variables' values before its arguments, and `main` finds these from its
arguments' shapes, with an assertion for all that the shapes promise.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from styrax.core.programs.jaxpr import ClosedJaxpr
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import is_named

SIZE = np.dtype(np.int32)
INNER = "_wrapped_jax_export_main"


class Found(NamedTuple):
    """A variable of which `coefficient * variable + rest` is the size of an argument along an axis; `rest` has only
    variables that were found before."""

    name: str
    argument: int
    axis: int
    coefficient: int
    rest: Any


class Promise(NamedTuple):
    """An argument's size along an axis is an expression over the variables."""

    argument: int
    axis: int
    size: Any


def is_dynamic(aval: Any) -> bool:
    """Whether a shape has symbolic sizes."""
    return any(map(is_named, getattr(aval, "shape", ())))


def size_value(m: Any, d: Any, dtype: Any = SIZE) -> Any:
    """A size as a scalar of the program."""
    out = _size(m, d)
    return out if out.dtype == dtype else m.convert(out, dtype)


def _size(m: Any, d: Any) -> Any:
    if not is_named(d):
        return m.const(np.asarray(operator.index(d), SIZE))
    total = None
    for monomial, coefficient in d.ordered():
        product = None if coefficient == 1 and monomial else m.const(np.asarray(coefficient, SIZE))
        for factor, power in monomial:
            value = m.sizes[factor] if isinstance(factor, str) else _operation(m, factor)
            for _ in range(power):
                product = value if product is None else _scalar(m, "multiply", product, value)
        total = product if total is None else _scalar(m, "add", total, product)
    return total


def _scalar(m: Any, name: str, x: Any, y: Any) -> Any:
    return m.op1(f"stablehlo.{name}", [x, y], ShapedArray((), SIZE))


def _operation(m: Any, operation: Any) -> Any:
    x, y = (_size(m, operand) for operand in operation.operands)
    if operation.name in ("max", "min"):
        return _scalar(m, f"{operation.name}imum", x, y)
    quotient, rest = _scalar(m, "divide", x, y), _scalar(m, "remainder", x, y)
    zero = m.const(np.zeros((), SIZE))
    # towards minus infinity, where division goes towards zero
    differ = m.compare("NE", m.compare("LT", rest, zero), m.compare("LT", y, zero), "UNSIGNED")
    below = m.op1("stablehlo.and", [m.compare("NE", rest, zero), differ], ShapedArray((), np.dtype(np.bool_)))
    if operation.name == "floordiv":
        return m.select(below, _scalar(m, "subtract", quotient, m.const(np.ones((), SIZE))), quotient)
    return m.select(below, _scalar(m, "add", rest, y), rest)


def shape_value(m: Any, shape: Sequence[Any]) -> Any:
    """Sizes as a vector of the program."""
    one = ShapedArray((1,), SIZE)
    parts = [m.op1("stablehlo.reshape", [_size(m, d)], one) for d in shape]
    return m.op1("stablehlo.concatenate", parts, ShapedArray((len(shape),), SIZE), "dimension = 0 : i64")


def dynamic(m: Any, name: str, operands: Sequence[Any], out_avals: Sequence[Any],
            attributes: str) -> tuple[str, list[Any], str]:
    """The operation that does the same where sizes are symbolic: its name, operands and attributes."""
    rule = _RULES.get(name)
    if rule is not None:
        return rule(m, list(operands), out_avals, attributes)
    if re.search(r"dense<\[[^\">]*[a-z]", attributes.replace("true", "").replace("false", "")):
        raise NotImplementedError(f"{name} with symbolic sizes among its attributes has no StableHLO: {attributes}")
    return name, list(operands), attributes


Written = tuple[str, list[Any], str]


def _with_shape(name: str) -> Callable[..., Written]:
    def rule(m: Any, operands: list[Any], out_avals: Sequence[Any], attributes: str) -> Written:
        return f"stablehlo.{name}", [*operands, shape_value(m, m.physical_shape(out_avals[0]))], attributes

    return rule


def _vectors(m: Any, attributes: str, *names: str) -> tuple[list[Any], str]:
    """Attributes that hold sizes, as vectors; and the other attributes."""
    found = []
    for name in names:
        match = re.search(rf"(?:^|, ){name} = array<i64(?:: ((?:[^<>])*))?>", attributes)
        assert match is not None, (name, attributes)
        found.append(shape_value(m, [m.parse_size(text) for text in _split(match[1] or "")]))
        attributes = attributes.replace(match[0], "")
    return found, attributes.removeprefix(", ")


def _split(text: str) -> Iterator[str]:
    """What stands between commas outside of parentheses."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def _pad(m: Any, operands: list[Any], out_avals: Sequence[Any], attributes: str) -> Written:
    vectors, rest = _vectors(m, attributes, "edge_padding_low", "edge_padding_high", "interior_padding")
    return "stablehlo.dynamic_pad", [*operands, *vectors], rest


def _slice(m: Any, operands: list[Any], out_avals: Sequence[Any], attributes: str) -> Written:
    vectors, rest = _vectors(m, attributes, "start_indices", "limit_indices", "strides")
    return "stablehlo.real_dynamic_slice", [*operands, *vectors], rest


def _gather(m: Any, operands: list[Any], out_avals: Sequence[Any], attributes: str) -> Written:
    vectors, rest = _vectors(m, attributes, "slice_sizes")
    return "stablehlo.dynamic_gather", [*operands, *vectors], rest


def _dynamic_slice(m: Any, operands: list[Any], out_avals: Sequence[Any], attributes: str) -> Written:
    x, *starts = operands
    sizes = m.physical_shape(out_avals[0])
    vector, one = ShapedArray((len(sizes),), SIZE), ShapedArray((1,), SIZE)
    where = m.op1("stablehlo.concatenate", [m.op1("stablehlo.reshape", [m.convert(s, SIZE)], one) for s in starts],
                  vector, "dimension = 0 : i64")
    extents, lengths = shape_value(m, m.physical_shape(x.aval)), shape_value(m, sizes)
    last = m.op1("stablehlo.subtract", [extents, lengths], vector)
    zeros = m.const(np.zeros(len(sizes), SIZE))
    start = m.op1("stablehlo.minimum", [m.op1("stablehlo.maximum", [where, zeros], vector), last], vector)
    limit = m.op1("stablehlo.add", [start, lengths], vector)
    return "stablehlo.real_dynamic_slice", [x, start, limit, m.const(np.ones(len(sizes), SIZE))], ""


_RULES: dict[str, Callable[..., Written]] = {
    "stablehlo.broadcast_in_dim": _with_shape("dynamic_broadcast_in_dim"),
    "stablehlo.reshape": _with_shape("dynamic_reshape"),
    "stablehlo.iota": lambda m, operands, outs, attributes: (
        "stablehlo.dynamic_iota", [shape_value(m, m.physical_shape(outs[0]))], attributes),
    "stablehlo.pad": _pad,
    "stablehlo.slice": _slice,
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_slice": _dynamic_slice,
}


def add_main(module: Any, closed: ClosedJaxpr, found: Sequence[Found], promises: Sequence[Promise],
             described: str, arg_attributes: Sequence[str] | None = None,
             result_attributes: Sequence[str] | None = None, places: Sequence[str] = ()) -> None:
    """Writes `main`, which finds the variables, sees whether the arguments are as promised, and calls the program."""
    module.variables = sorted(f.name for f in found)

    def body(m: Any, args: Sequence[Any]) -> list[Any]:
        m.sizes.clear()
        for f in found:
            size = _size_of(m, args[f.argument], f.axis)
            size = _scalar(m, "subtract", size, _size(m, f.rest)) if is_named(f.rest) or f.rest else size
            if f.coefficient != 1:
                by = m.const(np.asarray(f.coefficient, SIZE))
                rest = _scalar(m, "remainder", size, by)
                _assert(m, m.compare("EQ", rest, m.const(np.zeros((), SIZE))), [rest],
                        f"Division had remainder {{0}} when computing the value of '{f.name}'.", described)
                size = _scalar(m, "divide", size, by)
            m.sizes[f.name] = size
            _assert(m, m.compare("GE", size, m.const(np.ones((), SIZE))), [size],
                    f"Expected value >= 1 for dimension variable '{f.name}', but found {{0}}.", described)
        for p in promises:
            size, wanted = _size_of(m, args[p.argument], p.axis), _size(m, p.size)
            _assert(m, m.compare("EQ", size, wanted), [size, wanted],
                    f"Found inconsistency between dimension size {{0}} and the specification '{p.size}' (= {{1}}).",
                    described)
        return m.call(closed, *args, name=INNER)

    module.add_function("main", closed, "public", arg_attributes, result_attributes, body, places)


def _size_of(m: Any, x: Any, axis: int) -> Any:
    return m.op1("stablehlo.get_dimension_size", [x], ShapedArray((), SIZE), f"dimension = {axis} : i64")


def _assert(m: Any, holds: Any, values: Sequence[Any], message: str, described: str) -> None:
    text = (f"Input shapes do not match the polymorphic shapes specification. {message} Using the following "
            f"polymorphic shapes specifications: {described}.")
    m.op("stablehlo.custom_call", [holds, *values], [], 'call_target_name = "shape_assertion", api_version = 2 : i32, '
         f'has_side_effect = true, error_message = "{text}"')
