"""Elementwise operations of StableHLO, for lowering rules: `hlo.AddOp(x, y).result`, or `hlo.add(x, y)`.

Each is the function of `lax` that means the same, written into what is being compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....core.tracing.staging import trace_to_jaxpr
from .....core.types.avals import ShapedArray
from .....interpreters.mlir import inlined

# operation: the function of `lax`, and the class of the operation
_NAMES = {
    "abs": ("abs", "AbsOp"), "add": ("add", "AddOp"), "and_": ("bitwise_and", "AndOp"), "atan2": ("atan2", "Atan2Op"),
    "cbrt": ("cbrt", "CbrtOp"), "ceil": ("ceil", "CeilOp"), "clamp": ("clamp", "ClampOp"),
    "complex": ("complex", "ComplexOp"), "cosine": ("cos", "CosineOp"), "divide": ("div", "DivOp"),
    "exponential": ("exp", "ExpOp"), "exponential_minus_one": ("expm1", "Expm1Op"), "floor": ("floor", "FloorOp"),
    "imag": ("imag", "ImagOp"), "is_finite": ("is_finite", "IsFiniteOp"), "log": ("log", "LogOp"),
    "log_plus_one": ("log1p", "Log1pOp"), "logistic": ("logistic", "LogisticOp"), "maximum": ("max", "MaxOp"),
    "minimum": ("min", "MinOp"), "multiply": ("mul", "MulOp"), "negate": ("neg", "NegOp"),
    "not_": ("bitwise_not", "NotOp"), "or_": ("bitwise_or", "OrOp"), "power": ("pow", "PowOp"),
    "real": ("real", "RealOp"), "remainder": ("rem", "RemOp"), "rsqrt": ("rsqrt", "RsqrtOp"),
    "select": ("select", "SelectOp"), "sign": ("sign", "SignOp"), "sine": ("sin", "SineOp"),
    "sqrt": ("sqrt", "SqrtOp"), "subtract": ("sub", "SubtractOp"), "tan": ("tan", "TanOp"), "tanh": ("tanh", "TanhOp"),
    "xor": ("bitwise_xor", "XorOp"),
}  # fmt: skip
_CLASSES = {name: operation for operation, (_, name) in _NAMES.items()}


class Operation:
    """An operation that a rule has written; `result` is its value. Operations are operands, too."""

    __slots__ = ("result",)
    result: Any

    def __init__(self, name: str, operands: tuple[Any, ...]):
        from ..... import lax

        values = [x.result if isinstance(x, Operation) else x for x in operands]
        function: Callable[..., Any] = getattr(lax, _NAMES[name][0])
        closed = trace_to_jaxpr(lambda *xs: [function(*xs)], [ShapedArray(x.shape, x.dtype) for x in values])
        (self.result,) = inlined(closed, values)

    @property
    def results(self) -> list[Any]:
        return [self.result]


def __getattr__(name: str) -> Callable[..., Any]:
    if name in _CLASSES:
        return lambda *operands: Operation(_CLASSES[name], operands)
    if name in _NAMES:
        return lambda *operands: Operation(name, operands).result
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_NAMES, *_CLASSES]
