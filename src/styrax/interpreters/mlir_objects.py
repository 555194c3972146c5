"""MLIR as libraries' rules handle it: types, attributes, modules and contexts, all of them texts with a class.

The printer of StableHLO (`xla`) needs no bindings to MLIR: what it writes, it knows as text. So do these objects, which
compare and print by their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ForwardRef, NamedTuple, Protocol

import numpy as np

from ..core import hooks
from ..core.arrays.devices import Device
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.programs.primitive import Primitive
from ..core.trees.registry import Registry
from ..core.types.avals import AbstractToken, AbstractValue, ShapedArray
from ..core.types.effects import Effect
from ..core.types.typing import AxisName, DTypeLike, PyTree

if TYPE_CHECKING:
    from ..xla.ir_module import IrModule
else:  # which is a hook
    IrModule = ForwardRef("IrModule", module="styrax.xla.ir_module")

SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE, DEVICE_TO_DEVICE_TYPE = 2, 3, 1  # kinds of channels


class IrText:
    """Something of MLIR that is its text."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.text == self.text  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.text))


class IrType(IrText):
    """A type: `f32`, `tensor<3x4xf32>`."""

    __slots__ = ()


class IrAttribute(IrText):
    """An attribute: `3 : i64`, `array<i64: 1, 2>`."""

    __slots__ = ()


class IrContext:
    """What MLIR's objects belong to. Texts belong to nobody: it can be entered, and that is all."""

    def __enter__(self) -> IrContext:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def make_ir_context() -> IrContext:
    """A context for MLIR's objects, to be entered with `with`."""
    return IrContext()


def dtype_to_ir_type(dtype: DTypeLike) -> IrType:
    """The MLIR type of elements of a dtype. Raises TypeError for one that has none."""
    return IrType(hooks.element_type(np.dtype(dtype)))


def token_type() -> Sequence[IrType]:
    """The type of tokens."""
    return [IrType("!stablehlo.token")]


def _array_types(aval: AbstractValue) -> list[IrType]:
    return [IrType(hooks.type_text(aval))]


ir_type_handlers: dict[type[AbstractValue], Callable[[Any], Iterable[Any]]] = {
    ShapedArray: _array_types, AbstractToken: _array_types}


def aval_to_ir_types(ctx: PyTree, aval: AbstractValue) -> tuple[Any, ...]:
    """The MLIR types of what holds a value of this abstract value. Raises TypeError for unknown ones."""
    handler = ir_type_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"No ir_type_handler for aval type: {type(aval)}")
    return tuple(handler(aval))


def aval_to_ir_type(ctx: PyTree, aval: AbstractValue) -> PyTree:
    """The one MLIR type of values of this abstract value. Raises TypeError where it is not one."""
    types = aval_to_ir_types(ctx, aval)
    if len(types) != 1:
        raise TypeError(f"aval_to_ir_type called on {aval} which corresponds to multiple IR types {types}")
    return types[0]


def i32_attr(i: int) -> IrAttribute:
    """An integer of 32 bits."""
    return IrAttribute(f"{int(i)} : i32")


def i64_attr(i: int) -> IrAttribute:
    """An integer of 64 bits."""
    return IrAttribute(f"{int(i)} : i64")


def dense_int_array(xs: Iterable[int]) -> IrAttribute:
    """Integers of 64 bits, as most operations take dimensions."""
    listed = ", ".join(str(int(x)) for x in xs)
    return IrAttribute(f"array<i64: {listed}>" if listed else "array<i64>")


def dense_int_elements(xs: Iterable[int]) -> IrAttribute:
    """Integers of 64 bits as a tensor."""
    return ir_attribute(np.asarray(list(xs), np.int64))


def ir_attribute(val: PyTree) -> IrAttribute:
    """A number, text, array, sequence or dictionary as an attribute. Raises TypeError for anything else."""
    return val if isinstance(val, IrAttribute) else IrAttribute(
        hooks.attribute_text(tuple(val) if isinstance(val, list) else val))


def module_to_string(module: IrModule | str, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module)


def module_to_bytecode(module: IrModule | str) -> bytes:
    """The bytes of a module for those who parse MLIR: its text, which they read as well as MLIR's own bytecode."""
    return str(module).encode()


def merge_mlir_modules(dst_module: IrModule, sym_name: str, src_module: IrModule, dst_symtab: PyTree = None) -> str:
    """Puts the functions of a module into another one.

    Returns:
      The name of its function `main` there: `sym_name`, or one like it where that is taken.
    """
    taken = set(dst_module.names())
    names: dict[str, str] = {}
    for name in src_module.names():
        wanted = sym_name if name == "main" else name
        new, n = wanted, 0
        while new in taken:
            new, n = f"{wanted}_{n}", n + 1
        taken.add(new)
        names[name] = new
    rename = lambda m: f"@{names.get(m[1], m[1])}"
    for function in src_module.functions:
        renamed = re.sub(r"@([\w.]+)", rename, function)
        dst_module.functions.append(renamed.replace("func.func public", "func.func private", 1))
    return names["main"]


# -- trees of values -----------------------------------------------------------------------------------------
ir_tree_registry = Registry()


def flatten_ir_types(xs: PyTree) -> list[Any]:
    """The leaves of nested sequences of types."""
    return ir_tree_registry.flatten(xs)[0]


def flatten_ir_values(xs: PyTree) -> list[Any]:
    """The leaves of nested sequences of values."""
    return ir_tree_registry.flatten(xs)[0]


def unflatten_ir_values_like_types(xs: Iterable[Any], ys: Sequence[PyTree]) -> list[PyTree]:
    """Values in the structure of nested sequences of types."""
    return ir_tree_registry.flatten(list(ys))[1].unflatten(list(xs))


# -- what goes with a lowering ---------------------------------------------------------------------------------
class ConstantHandler(Protocol):
    """Writes a constant of some type: `handler(value, aval) -> value or values of the program`."""

    def __call__(self, val: Any, aval: AbstractValue | None, /) -> Sequence[Any]: ...


class TokenSet:
    """The tokens that order a program's effects."""

    def __init__(self, tokens: Mapping[Effect, Any] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Sequence[Effect]) -> TokenSet:
        """A token for each effect."""
        return cls({effect: None for effect in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Effect) -> Any:
        return self._tokens[effect]

    def items(self) -> Iterator[tuple[Effect, Any]]:
        return iter(self._tokens.items())

    def effects(self) -> set[Effect]:
        return set(self._tokens)

    def subset(self, effects: Iterable[Effect]) -> TokenSet:
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """The set with tokens of another one in place of its own."""
        return TokenSet({effect: tokens._tokens.get(effect, token) for effect, token in self._tokens.items()})


@dataclass(frozen=True)
class LoweringParameters:
    """What a whole lowering depends on."""

    override_lowering_rules: tuple[tuple[Primitive, Callable[..., Any]], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False

    replace = replace


class ShapePolyLoweringState:
    """The symbolic sizes and the platforms that a program is lowered for."""

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None):
        self.dim_vars = dim_vars
        self.lowering_platforms = lowering_platforms
        self.uses_dim_vars = bool(dim_vars)
        self.has_platform_index_argument = lowering_platforms is not None and len(lowering_platforms) > 1


@dataclass(frozen=True)
class ShardingContext:
    """The devices that a program runs on."""

    num_devices: int
    device_assignment: tuple[Device, ...] | None = None
    abstract_mesh: AbstractMesh | None = None


@dataclass(frozen=True)
class SPMDAxisContext:
    """The mesh that a program runs over, and the axes along which it names its devices itself."""

    mesh: Mesh
    manual_axes: frozenset[AxisName] = field(default_factory=frozenset)


class LoweringResult(NamedTuple):
    """A lowered module, and what goes with it."""

    module: IrModule
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState
