"""A backend in one file: NumPy runs programs of a few primitives. Its platform is "toy"."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Device
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray


def _elementwise(function: np.ufunc) -> Callable[..., Any]:
    return lambda *xs, **_: function(*xs)


def _broadcast(x: np.ndarray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], **_: Any) -> np.ndarray:
    lined_up = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        lined_up[d] = n
    return np.broadcast_to(x.reshape(lined_up), shape)


RULES: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(f) for name, f in {
        "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
        "sin": np.sin, "cos": np.cos}.items()},
    "broadcast_in_dim": _broadcast,
    "convert_element_type": lambda x, *, new_dtype, **_: x.astype(new_dtype),
    "reduce_sum": lambda x, *, axes, **_: x.sum(axis=axes, dtype=x.dtype),
}


class Buffer:
    """A NumPy array as the memory of ours."""

    def __init__(self, value: np.ndarray, device: Device):
        self.value = np.ascontiguousarray(value).reshape(value.shape)
        self.device = device
        self.address = self.value.ctypes.data
        self.nbytes = self.value.nbytes

    def wait(self) -> None:
        pass

    def ready(self) -> bool:
        return True

    def on(self, device: Device) -> Buffer:
        return self

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        view = self.value.view(dtype).reshape(shape)
        view.flags.writeable = False
        return view


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a program; NotImplementedError for primitives that are not in `RULES`."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*map(np.asarray, consts), *args], strict=True))
    read = lambda atom: np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else known[atom]
    for eqn in jaxpr.eqns:
        known.update(zip(eqn.outvars, apply(eqn.primitive, list(map(read, eqn.invars)), eqn.params), strict=True))
    return list(map(read, jaxpr.outvars))


def apply(primitive: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    program = primitive.traits.program
    if program is not None:
        inner = program(params)
        return evaluate(inner.jaxpr, inner.consts, args)
    if primitive.name not in RULES:
        raise NotImplementedError(f"{primitive.name} on the platform toy")
    return [np.asarray(RULES[primitive.name](*args, **params))]


class Executable:
    """A program that NumPy runs."""

    def __init__(self, closed: ClosedJaxpr, device: Device):
        self.closed = closed
        self.device = device
        self.calls = 0

    def __call__(self, *args: Array) -> list[Array]:
        self.calls += 1
        outs = evaluate(self.closed.jaxpr, self.closed.consts, list(map(np.asarray, args)))
        return [Array(a, Buffer(x.astype(a.dtype), self.device))
                for a, x in zip(self.closed.out_avals, outs, strict=True)]

    def as_text(self, dialect: str | None = None) -> str:
        return str(self.closed)

    def cost_analysis(self) -> dict[str, float]:
        return {"equations": float(len(self.closed.eqns))}

    def machine_code(self) -> dict[bytes, bytes]:
        return {}  # there is none

    def memory_analysis(self) -> tuple[int, int, int, int, int]:
        total = lambda avals: sum(a.size * a.dtype.itemsize for a in avals)
        return 0, total(self.closed.in_avals), total(self.closed.out_avals), 0, 0


class NumpyBackend:
    """One device, the host's memory."""

    platform = "toy"
    dlpack_type = 1
    shared_memory = True

    def __init__(self) -> None:
        self._devices = [Device("toy", 0, "toy", self)]

    def devices(self) -> list[Device]:
        return self._devices

    def put(self, value: Any, aval: ShapedArray, device: Device | None) -> Array:
        return value if isinstance(value, Array) else Array(
            aval, Buffer(np.array(value, aval.dtype), device or self._devices[0]))

    def operand(self, value: Any) -> Array:
        return self.put(value, get_aval(value), None)

    def adopt(self, address: int, aval: ShapedArray, owner: object, device: Device | None = None) -> Array:
        memory = (ctypes.c_char * (aval.size * aval.dtype.itemsize)).from_address(address)
        memory.owner = owner  # type: ignore[attr-defined]
        return Array(aval, Buffer(np.frombuffer(memory, aval.dtype).reshape(aval.shape), self._devices[0]))

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        outs = [Array(get_aval(x), Buffer(x, self._devices[0])) for x in apply(
            primitive, list(map(np.asarray, args)), params)]
        return outs if primitive.multiple_results else outs[0]

    def accept(self, code: Mapping[bytes, bytes]) -> None:
        pass

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                device: Device | None = None, compiler_options: Mapping[str, Any] = {}) -> Executable:
        return Executable(closed, self._devices[0])

    def for_all_shapes(self, fun: Callable[..., Any], key: tuple[Any, ...], name: str, trace: Any,
                       specialise: Callable[[], None]) -> None:
        return None

    def barrier(self) -> None:
        pass


toy: backends.Backend = NumpyBackend()
