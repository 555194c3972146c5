"""Runs programs on XLA:CPU through jaxlib: the check on the StableHLO lowering, and an eager backend
for tests of rules that must not depend on our own compiler."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.arrays.array import Array
from styrax.core.programs.jaxpr import ClosedJaxpr
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes, physical
from styrax.core.types.avals import ShapedArray
from styrax.xla.stablehlo import module


@functools.cache
def _client() -> tuple[Any, Any]:
    import jax
    from jaxlib import _jax

    device = jax.devices("cpu")[0]
    return device.client, _jax.DeviceList((device,))


def compile_text(text: str, callbacks: Sequence[Callable[..., Any]] = ()) -> Any:
    """A loaded executable of a StableHLO module, and the Python functions that it calls by their numbers."""
    from jax._src.interpreters import mlir
    from jaxlib import lapack, xla_client
    from jaxlib.mlir import ir

    client, devices = _client()
    options = xla_client.CompileOptions()
    debug = options.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0  # programs of tests run once
    debug.xla_llvm_disable_expensive_passes = True
    if "lapack_" in text:
        lapack._lapack.initialize()
    if not callbacks:
        return client.compile_and_load(text, devices, options)
    with mlir.make_ir_context():
        return client.compile_and_load(ir.Module.parse(text), devices, options, list(callbacks))


class Executable:
    """A compiled program: NumPy arrays in, NumPy arrays out."""

    def __init__(self, closed: ClosedJaxpr, **options: Any):
        closed = physical.lower(closed)
        self.in_avals = closed.in_avals
        self.out_avals = closed.out_avals
        printed = module(closed, **options)
        self.text = printed.text()
        self.executable = compile_text(self.text, printed.callbacks)

    def __call__(self, *args: Any) -> list[np.ndarray]:
        import jax

        with jax.enable_x64(True):
            buffers = [
                jax.device_put(np.asarray(x, _device_dtype(a.dtype)))
                for x, a in zip(args, self.in_avals, strict=True)
            ]
            outs = self.executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            return [
                np.zeros(a.shape, dtypes.float0) if a.dtype == dtypes.float0 else np.asarray(o[0])
                for o, a in zip(outs, self.out_avals, strict=True)
            ]


def _device_dtype(dtype: Any) -> Any:
    return np.dtype(np.bool_) if dtype == dtypes.float0 else dtype


def run(closed: ClosedJaxpr, *args: Any, **options: Any) -> list[np.ndarray]:
    """Compile and run a program on NumPy arrays; options are those of `module`."""
    return Executable(closed, **options)(*args)


class _HostBuffer:
    """A NumPy array in the clothes of a backend's buffer."""

    def __init__(self, value: np.ndarray):
        self.value = np.ascontiguousarray(value).reshape(value.shape)
        self.address = self.value.ctypes.data
        self.nbytes = self.value.nbytes
        self.device = "xla-test"

    def wait(self) -> None:
        return None

    def ready(self) -> bool:
        return True

    def numpy(self, dtype: Any, shape: tuple) -> np.ndarray:
        value = self.value.view()
        value.flags.writeable = False
        return value


def _host(x: Any, aval: Any) -> np.ndarray:
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        return np.zeros(x.shape, np.bool_)
    if physical.is_extended(aval):
        x = x.physical
        aval = physical.physical_aval(aval)
    return np.asarray(x).astype(aval.dtype, copy=False)


class Backend:
    """Eager primitives and compiled programs on XLA:CPU."""

    platform = "cpu"

    def __init__(self) -> None:
        self.cache: dict[Any, Any] = {}

    def devices(self) -> list[Any]:
        return ["xla-test"]

    def put(self, value: Any, aval: Any, device: Any) -> Any:
        return Array(aval, _HostBuffer(np.array(value, aval.dtype)))

    def _wrap(self, value: np.ndarray, aval: Any) -> Any:
        if physical.is_extended(aval):
            from styrax.lax.random_bits.key_arrays import KeyArray

            plain = physical.physical_aval(aval)
            return KeyArray(aval, Array(plain, _HostBuffer(value)))
        if aval.dtype == dtypes.float0:
            return value
        return Array(aval, _HostBuffer(value))

    def apply_primitive(self, primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
        avals = [get_aval(x) for x in args]
        key = None
        try:
            key = (primitive, tuple(avals), tuple(params.items()))
            hash(key)
        except TypeError:
            key = None
        program = self.cache.get(key) if key is not None else None
        if program is None:

            def call(*xs: Any) -> list[Any]:
                out = primitive.bind(*xs, **params)
                return list(out) if primitive.multiple_results else [out]

            closed = trace_to_jaxpr(call, avals)
            program = self.compile(closed)
            if key is not None:
                self.cache[key] = program
        outs = program(*args)
        return outs if primitive.multiple_results else outs[0]

    def for_all_shapes(self, *_: Any) -> None:
        return None

    def compile(self, closed: ClosedJaxpr, **options: Any) -> Any:
        executable = Executable(closed)
        in_avals, out_avals = closed.in_avals, closed.out_avals

        def program(*args: Any) -> list[Any]:
            values = [_host(x, a) for x, a in zip(args, in_avals, strict=True)]
            outs = executable(*values)
            return [self._wrap(o, a) for o, a in zip(outs, out_avals, strict=True)]

        return program


def install() -> Backend:
    """Makes XLA:CPU the default backend."""
    backend = Backend()
    backends.set_default(backend)
    return backend


def shaped(x: Any) -> ShapedArray:
    """The abstract value of a NumPy array, its dtype as it is."""
    return ShapedArray(np.shape(x), np.asarray(x).dtype)


def run_refined(text: str, args: list[np.ndarray]) -> list[np.ndarray]:
    """Runs a module with symbolic sizes on arrays: XLA puts in their sizes, and sees to the module's assertions."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jaxlib import _jax

    from styrax.xla.stablehlo import type_text

    dynamic, results = re.search(r"func\.func public @main\((.*?)\) -> \((.*?)\) \{\n", text).groups()
    results = re.sub(r" \{[^{}]*\}", "", results)  # types without attributes
    types = re.findall(r"%arg\d+: (\S+tensor<[^>]*>|tensor<[^>]*>)", dynamic)
    given = [type_text(ShapedArray(x.shape, x.dtype)) for x in args]
    names = [f"%d{i}" for i in range(len(args))]
    lines = [f'{n} = "stablehlo.convert"(%s{i}) : ({s}) -> {d}' for i, (n, s, d) in enumerate(zip(names, given, types))]
    count = len(results.split(", "))
    lines.append(f'%r:{count} = "func.call"({", ".join(names)}) {{callee = @dynamic}} : ({", ".join(types)}) -> '
                 f'({results})')
    outs = ", ".join(f"%r#{i}" for i in range(count))
    lines.append(f'"func.return"({outs}) : ({results}) -> ()')
    head, body = text.replace("func.func public @main", "func.func private @dynamic").split("{\n", 1)
    params = ", ".join(f"%s{i}: {s}" for i, s in enumerate(given))
    main = f"func.func public @main({params}) -> ({results}) {{\n" + "\n".join(lines) + "\n}\n"
    with mlir.make_ir_context():
        blob = mlir.module_to_bytecode(ir.Module.parse(f"{head}{{\n{main}{body}"))
    refined = _jax.mlir.refine_polymorphic_shapes(blob, enable_shape_assertions=True, validate_static_shapes=True)
    with mlir.make_ir_context():
        static = str(ir.Module.parse(refined))
    buffers = [jax.device_put(x) for x in args]
    found = compile_text(static).execute_sharded(buffers).disassemble_into_single_device_arrays()
    return [np.asarray(x[0]) for x in found]
