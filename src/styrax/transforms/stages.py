"""Ahead of time: a function traced, lowered and compiled, step by step, and what each step shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core import hooks
from ..core.arrays import backends, differing
from ..core.arrays.array import Array
from ..core.arrays.devices import Device, Sharding, SingleDeviceSharding
from ..core.arrays.explicit import on_devices, sharding_of_type
from ..core.arrays.gspmd_sharding import GSPMDSharding
from ..core.arrays.layouts import Format, Layout
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.arrays.shardings import NamedSharding
from ..core.programs.check import same_type
from ..core.programs.following import Following, put, sharding_of
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.settings import config
from ..core.tracing.errors import JaxRuntimeError
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree, tree_paths
from ..core.types.typing import PyTree
from . import module_signature
from .captured_constants import warn_of_captured
from .high_types import lowered
from .jit_shardings import settled
from .meeting import Meeting
from .refs import discharge_closed
from .signature import as_operand

if TYPE_CHECKING:
    from ..profiles.explanations import Explanation
    from ..xla.hlo_text import HloModule
    from ..xla.ir_module import IrModule
    from .jit import Specialisation


class ArgInfo:
    """What a compiled function expects of an argument: `shape`, `dtype`, and whether it is `donated`."""

    __slots__ = ("_aval", "donated")

    def __init__(self, aval: Any, donated: bool):
        self._aval = aval
        self.donated = donated

    @property
    def shape(self) -> tuple:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class CompiledMemoryStats:
    """Bytes that a program needs, exactly: they are read off its memory plan.

    What begins with `host_` is 0: a host that computes has no second memory to keep parts in.
    """

    __slots__ = ("generated_code_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes",
                 "alias_size_in_bytes", "temp_size_in_bytes", "peak_memory_in_bytes")
    host_generated_code_size_in_bytes = host_argument_size_in_bytes = host_output_size_in_bytes = 0
    host_alias_size_in_bytes = host_temp_size_in_bytes = 0

    def __init__(self, code: int, arguments: int, outputs: int, alias: int, temp: int):
        self.generated_code_size_in_bytes = code
        self.argument_size_in_bytes = arguments
        self.output_size_in_bytes = outputs
        self.alias_size_in_bytes = alias
        self.temp_size_in_bytes = temp
        self.peak_memory_in_bytes = arguments + outputs - alias + temp

    def __repr__(self) -> str:
        return "CompiledMemoryStats(" + ", ".join(f"{n}={getattr(self, n)}" for n in self.__slots__) + ")"


class Stage:
    """What traced, lowered and compiled functions have in common: a program of `jit`'s cache."""

    _weakly_typed = False  # whether results tell their weak types

    def __init__(self, program: Specialisation, given: Sequence[Sharding | None] = ()):
        assert program.closed is not None
        self._program = program
        self._given = given  # how the arguments are spread for which it was traced
        self._closed: ClosedJaxpr = program.closed
        self.in_tree = program.in_tree
        self.out_tree = program.out_tree
        self.fun_name = program.name
        self._donated = program.donated or (False,) * len(program.closed.in_avals)

    @property
    def in_avals(self) -> Any:
        return tree.tree_unflatten(self.in_tree, self._closed.in_avals)

    @property
    def args_info(self) -> Any:
        infos = [ArgInfo(a, d) for a, d in zip(self._closed.in_avals, self._donated, strict=True)]
        return tree.tree_unflatten(self.in_tree, infos)

    @property
    def out_info(self) -> Any:
        """The structure of the results, with a `ShapeDtypeStruct` for each; what is lowered has no weak types."""
        return tree.tree_unflatten(self.out_tree, [
            a if a.is_high else ShapeDtypeStruct(
                a.shape, a.dtype, weak_type=self._weakly_typed and a.weak_type,
                sharding=s if isinstance(s, Sharding) else a.given_sharding)
            for a, s in zip(self._closed.out_avals, self._program.params["out_shardings"], strict=True)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return tuple(i for i, d in enumerate(self._donated) if d)


class Traced(Stage):
    """A function traced for arguments of some types."""

    _weakly_typed = True

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._closed

    @property
    def out_avals(self) -> Any:
        return tree.tree_unflatten(self.out_tree, self._closed.out_avals)

    @property
    def lojax(self) -> ClosedJaxpr:
        """The program on arrays: without values of libraries' own types or primitives that stand for others."""
        return lowered(self._closed)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives for these arguments, operation by operation: transformations see into it."""
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != self.in_tree:
            raise AssertionError(_wrong_tree(self.in_tree, in_tree))
        return self.out_tree.unflatten(eval_jaxpr(self._closed.jaxpr, self._closed.consts, *leaves))

    def _traced_only(self, *_: Any) -> list[Any]:
        raise AssertionError("it only tells where arguments are")

    def lower(self, *, lowering_platforms: Any = None, **_: Any) -> Lowered:
        """The program for a platform.

        Raises:
          ValueError: it is for a mesh without devices, and no platforms are told; or arguments were on devices that
            do not fit.
        """
        if lowering_platforms is None:
            params = self._program.params
            module_signature.check_platform((*params["in_shardings"], *params["out_shardings"], *self._given))
            if backends.several:
                given = [None if isinstance(getattr(s, "mesh", None), AbstractMesh) else s for s in self._given]
                Following(self._traced_only, self._closed, self._program.name, params["in_shardings"],
                          params["out_shardings"]).check([None] * (len(self._closed.in_avals) - len(given)) + given)
        warn_of_captured(self._closed)
        return Lowered(self._program, self._given, lowering_platforms)


class Lowered(Stage):
    """A function lowered for arguments of some types."""

    def __init__(self, program: Specialisation, given: Sequence[Sharding | None] = (),
                 platforms: Sequence[str] | None = None):
        super().__init__(program, given)
        self._platforms = platforms

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text. `dialect`: "stablehlo" (default), "hlo" (the same operations as XLA prints them),
        "jaxpr", or "loops" for the CPU's loop IR. With `debug_info`, operations tell where they come from."""
        if dialect == "jaxpr":
            return str(self._closed)
        if dialect == "loops":
            return machine_code(self._program.compiled()).as_text(dialect)
        if dialect not in (None, "stablehlo", "hlo"):
            raise ValueError(f"unknown dialect: {dialect}")
        text = self._stablehlo(debug_info)
        return hooks.HloModule(text).as_hlo_text() if dialect == "hlo" else hooks.readable(text)

    def compiler_ir(self, dialect: str | None = None) -> IrModule | HloModule:
        """The program as an object: a StableHLO module, or with "hlo" one whose `as_hlo_text()` is XLA's text.

        Raises:
          ValueError: another dialect.
        """
        if dialect not in (None, "stablehlo", "hlo"):
            raise ValueError(f"unknown dialect: {dialect}")
        made = hooks.HloModule if dialect == "hlo" else hooks.IrModule
        return made(self._stablehlo(False), partial(self._stablehlo, True))

    def _stablehlo(self, located: bool) -> str:
        """What XLA would compile: a program of arrays alone, in place of references their contents."""
        closed = discharge_closed(lowered(self._closed))
        params = self._program.params
        told = module_signature.signature(self.out_tree, closed, params["in_shardings"], params["out_shardings"],
                                          self._donated, self._given)
        wanted = {} if self._platforms is None else {"platforms": tuple(self._platforms)}
        return backends.stablehlo_text(closed, f"jit_{self.fun_name}", located=located, told=told, **wanted)

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Sequence[Device] | None = None) -> Compiled:
        """The machine code. `compiler_options` are for XLA, on plugins' devices; our compiler reads none.

        Args:
          compiler_options: options by name.
          device_assignment: the devices of the mesh without devices that the function was lowered for.

        Raises:
          ValueError: the devices are others than those of the arguments, or fewer or more.
          JaxRuntimeError: there is no such option.
          TypeError: an option is not of the type that XLA wants.
        """
        given = {} if compiler_options is None else dict(compiler_options.items())  # AttributeError for what is no dict
        params = self._program.params
        said = (*params["in_shardings"], *params["out_shardings"])
        module_signature.check_devices(said, self._given, device_assignment)
        return Compiled(self._program, self._given, given)

    def cost_analysis(self) -> dict[str, float]:
        return self.compile().cost_analysis()


def check_compiler_options(options: Mapping[str, Any]) -> None:
    """Raises JaxRuntimeError for the name of an option that XLA has not either, TypeError for values of wrong types."""
    for name, value in options.items():
        kinds = _OPTIONS.get(name, (str, int, float))
        if not isinstance(value, kinds):
            raise TypeError(f"The compile option {name!r} is of type {kinds[0].__name__}, got {value!r} of type "
                            f"{type(value)}.")
        if name not in _OPTIONS and not name.startswith("xla_"):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")
        if not _FLAGS.get(name, _anything)(str(value)):
            kind = "bool" if _FLAGS[name] is _is_bool else "int32"
            raise JaxRuntimeError(f"INVALID_ARGUMENT: While setting option {name}, '{value}' is not a valid {kind} "
                                  "value.")


_OPTIONS: dict[str, tuple[type, ...]] = {
    "exec_time_optimization_effort": (float, int), "memory_fitting_effort": (float, int),
    "optimization_level": (int,), "memory_fitting_level": (int,)}


def _anything(_: str) -> bool:
    return True


def _is_bool(text: str) -> bool:
    return text in ("True", "False")


def _is_int(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


# how texts are read that are given for options of XLA's, of those that programs for CPUs set
_FLAGS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys((f"xla_{name}" for name in (
        "embed_ir_in_executable", "dump_hlo_as_text", "dump_hlo_as_proto", "cpu_enable_fast_math",
        "cpu_enable_fast_min_max", "cpu_fast_math_honor_division", "cpu_fast_math_honor_functions",
        "cpu_fast_math_honor_infs", "cpu_fast_math_honor_nans", "cpu_multi_thread_eigen", "cpu_use_thunk_runtime",
        "cpu_enable_concurrency_optimized_scheduler", "allow_excess_precision", "test_all_input_layouts",
        "llvm_disable_expensive_passes", "cpu_copy_insertion_use_region_analysis")), _is_bool),
    **dict.fromkeys(("xla_backend_optimization_level", "xla_cpu_parallel_codegen_split_count",
                     "xla_cpu_prefer_vector_width", "xla_force_host_platform_device_count"), _is_int)}


def machine_code(code: Any) -> backends.Executable:
    """What the backend compiled, inside of what handles donated arguments and shardings."""
    while hasattr(code, "code"):
        code = code.code
    return code


def _on_device() -> SingleDeviceSharding:
    return SingleDeviceSharding(backends.get().devices()[0])


def _wrong_tree(expected: tree.PyTreeDef, given: tree.PyTreeDef) -> str:
    part = lambda text: "pytree leaf" if text == "leaf" else text
    wrong = []
    for path, a, b, why in tree_paths.equality_errors_pytreedef(expected, given):
        at = ("args", "kwargs")[path[0].idx] + tree_paths.keystr(path[1:])  # type: ignore[attr-defined]
        wrong.append(f"    * at {at}, seen {part(a)} but now given {part(b)}, so {why}")
    return ("Function compiled with input pytree does not match the input pytree it was called with. There are "
            f"{len(wrong)} mismatches, including:\n" + "\n".join(wrong))


def _formats(structure: tree.PyTreeDef, shardings: PyTree, avals: Sequence[Any]) -> PyTree:
    return structure.unflatten([
        Format(None, None) if s is None else Format(Layout(tuple(range(getattr(a, "ndim", 0))), ()), s)
        for s, a in zip(structure.flatten_up_to(shardings), avals, strict=True)])


_LISTED = 5  # so many arguments a message names


class Compiled(Lowered):
    """A function compiled for arguments of some types: call it with such arguments."""

    def __init__(self, program: Specialisation, given: Sequence[Sharding | None] = (),
                 compiler_options: Mapping[str, Any] = {}):
        super().__init__(program, given)
        self._expected: list[Sharding | None] | None = None  # of the arguments
        self._uncommitted = False  # whether nothing says where results are
        self._call = program.compiled(compiler_options)
        if isinstance(self._call, Meeting):
            self._call.expect(self._given)
        self._code = machine_code(self._call)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != self.in_tree:
            raise TypeError(_wrong_tree(self.in_tree, in_tree))
        operands = self._operands(leaves)
        if config.config.jax_disable_jit:
            raise ValueError("Disable jit is not supported in the AOT path since the function is not available for "
                             f"(jit({self._program.name}))")
        if differing.used and self._closed is not None:
            said = self._program.params["in_shardings"], self._program.params["out_shardings"]
            code = hooks.on_copies(self._closed, self._program.name, self._program.donated, said, operands)
            return self.out_tree.unflatten((code or self._call)(*operands))
        return self.out_tree.unflatten(self._call(*operands))

    def _operands(self, leaves: Sequence[Any]) -> list[Any]:
        for x in leaves:
            if isinstance(x, Tracer):
                raise TypeError("Cannot apply JAX transformations to a function lowered and compiled for a particular "
                                f"signature. Detected argument of Tracer type {type(x)}.")
        self._check_types(leaves)
        operands = [*map(as_operand, leaves, self._closed.in_avals)]
        return self._where_expected(operands) if backends.several else operands

    def _where_expected(self, operands: list[Any]) -> list[Any]:
        """The arguments where they are expected. ValueError for those that are committed to be elsewhere."""
        if self._expected is None:
            self._expected = self.in_tree.flatten_up_to(self.input_shardings)
            said = (*self._program.params["in_shardings"], *self._program.params["out_shardings"], *self._places())
            self._uncommitted = not any(self._donated or ()) and not any(isinstance(s, Sharding) for s in said)
        default, names, wrong = _on_device(), self._closed.jaxpr.debug_info.arg_names, []
        for i, (x, wanted) in enumerate(zip(operands, self._expected, strict=True)):
            if wanted is None or not isinstance(x, Array) or x.buffer is None:
                continue
            given = sharding_of(x)
            if given is None:
                if wanted != default and not isinstance(wanted, GSPMDSharding) and (
                        x.buffer.device.client.shared_memory):
                    operands[i] = type(x)(x.aval.update(sharding=sharding_of_type(wanted, x.aval.shape)), x.buffer)
                    put([operands[i]], [wanted])
            elif self._uncommitted and given == default:
                operands[i] = type(x)(x.aval, x.buffer)
            elif not wanted.is_equivalent_to(given, x.ndim):  # type: ignore[attr-defined]
                wrong.append(f"Argument {names[i] if i < len(names) else i} with shape {x.aval.str_short()}:\n  Passed "
                             f"sharding: {given}\n  Required sharding: {wanted}")
        if wrong:
            count = len(wrong)
            told = f"the {count} mismatches" if count < _LISTED else f"{_LISTED} mismatches out of {count}"
            raise ValueError("Computation was compiled for input shardings that disagree with the shardings of "
                             f"arguments passed to it. Here are {told}:\n" + "\n".join(wrong[:_LISTED]))
        return operands

    def explain(self, leaves: Sequence[Any]) -> Explanation:
        """Where the time of a call goes (`jit(f).explain`); `leaves`: the arguments, flat."""
        return hooks.explain(self, self._call, self._operands(leaves))

    @property
    def input_shardings(self) -> Any:
        """Where the arguments are expected, as a tree like `(args, kwargs)`; None for those that are not used."""
        told = getattr(self._code, "in_shardings", None)  # of a program on several devices whose memories are apart
        if told is not None:
            return self.in_tree.unflatten(told)
        found = self._following().arguments(self._places(), _on_device(), self._program.params["keep_unused"])
        return self.in_tree.unflatten(found[len(found) - self.in_tree.num_leaves:])

    def _following(self) -> Following:
        params = self._program.params
        return Following(self._call, self._closed, self._program.name, params["in_shardings"], params["out_shardings"])

    def _places(self) -> list[Sharding | None]:
        """Where the arguments were for which it was lowered, also those of which only their types tell."""
        given = [None] * (len(self._closed.in_avals) - len(self._given)) + [*self._given]
        device = _on_device()._device
        told = [s if s is not None else getattr(a, "given_sharding", None)
                for s, a in zip(given, self._closed.in_avals, strict=True)]
        known = next((s.mesh for s in told if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)), None)
        return [s if not isinstance(s, NamedSharding) or isinstance(s.mesh, Mesh) else
                on_devices(s, device) if known is None or known.abstract_mesh != s.mesh else s.update(mesh=known)
                for s in told]

    @property
    def output_shardings(self) -> Any:
        """Where the results will be, as a tree like them."""
        params = self._program.params
        told = getattr(self._code, "out_shardings", None)
        if told is not None:
            return self.out_tree.unflatten(told)
        if backends.several:
            where = self._following().where(self._places()) or [None] * len(params["out_shardings"])
            return self.out_tree.unflatten([s if isinstance(s, Sharding) else _on_device() for s in where])
        return self.out_tree.unflatten(settled(params["in_shardings"], params["out_shardings"])
                                       or [_on_device()] * len(params["out_shardings"]))

    @property
    def out_info(self) -> Any:
        """The structure of the results, with a `ShapeDtypeStruct` for each, which tells also how it lies where."""
        return tree.tree_unflatten(self.out_tree, [
            a if a.is_high else ShapeDtypeStruct(a.shape, a.dtype, sharding=f)
            for a, f in zip(self._closed.out_avals, tree.tree_leaves(self.output_formats), strict=True)])

    @property
    def input_formats(self) -> Any:
        """How the arguments are expected to lie in memory, and where: `Format`s in a tree like `(args, kwargs)`."""
        avals = self._closed.in_avals
        return _formats(self.in_tree, self.input_shardings, avals[len(avals) - self.in_tree.num_leaves:])

    @property
    def output_formats(self) -> Any:
        """How the results will lie in memory, and where: `Format`s in a tree like them."""
        return _formats(self.out_tree, self.output_shardings, self._closed.out_avals)

    call = __call__

    def _check_types(self, leaves: Sequence[Any]) -> None:
        wrong = []
        names = self._closed.jaxpr.debug_info.arg_names
        for i, (x, aval) in enumerate(zip(leaves, self._closed.in_avals, strict=True)):
            given = get_aval(x)
            if not same_type(given, aval):
                name = f"'{names[i]}'" if i < len(names) else f"number {i}"
                wrong.append(f"Argument {name} compiled with {aval.str_short(short_dtypes=False)} and called with "
                             f"{given.str_short(short_dtypes=False)}")
        if wrong:
            told = f"first {_LISTED} of {len(wrong)} mismatches" if len(wrong) > _LISTED else "mismatches"
            raise TypeError("Argument types differ from the types for which this computation was compiled. Perhaps "
                            "you are calling the compiled executable with a different enable_x64 mode than when it was "
                            f"AOT compiled? The {told} are:\n" + "\n".join(wrong[:_LISTED]))

    def as_text(self, dialect: str | None = None, **_: Any) -> str:
        """The machine's side: loop IR by default; "llvm" and "asm" show what follows."""
        return self._code.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        return self._code.cost_analysis()

    def memory_analysis(self) -> CompiledMemoryStats:
        return CompiledMemoryStats(*self._code.memory_analysis())

    def runtime_executable(self) -> backends.Executable:
        return self._code
