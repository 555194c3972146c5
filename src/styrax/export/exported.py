"""Exported functions: programs with all that is needed to call, differentiate and keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ..core import hooks
from ..core.arrays import backends
from ..core.arrays.devices import Sharding
from ..core.arrays.shape_struct import ShapeDtypeStruct
from ..core.programs.dead_code import dce_jaxpr
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun, jaxprs_in_params
from ..core.settings import config
from ..core.tracing.source import api_boundary
from ..core.trees import tree
from ..core.types import dtypes, physical
from ..core.types.avals import ShapedArray
from ..core.types.effects import Effect, ordered_effects
from ..core.types.typing import PyTree
from ..lax.shaping.filling import empty
from ..transforms import module_signature, pullbacks
from ..transforms.jit import jit
from ..transforms.naming import function_name
from ..transforms.refs import discharge_closed
from ..transforms.stages import Traced
from . import calling, container, meshes
from .checks import DisabledSafetyCheck
from .refinement import refine
from .solving import Solving
from .symbolic import Size, SymbolicDim

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def default_export_platform() -> str:
    """The platform that functions are exported for where none is given: the one that programs run on."""
    return backends.get().platform


class Exported:
    """A function lowered for arguments of some types, which other processes can load and call.

    Attributes:
      fun_name: the function's name.
      in_tree, out_tree: the structures of `(args, kwargs)` and of the results.
      in_avals, out_avals: the types of arguments and results, flat; sizes may be symbolic.
      in_shardings_hlo, out_shardings_hlo: the shardings' texts, None where nothing is asked for.
      nr_devices: how many devices the program runs on.
      platforms: the platforms that it may run on.
      ordered_effects, unordered_effects: the effects of the program.
      disabled_safety_checks: checks that are not made.
      calling_convention_version: the version of the program's form.
      module_kept_var_idx: the numbers of the arguments that the program uses.
      uses_global_constants: whether the program depends on sizes that are known when it is called.
    """

    def __init__(self, *, fun_name: str, in_tree: tree.PyTreeDef, in_avals: Sequence[ShapedArray],
                 out_tree: tree.PyTreeDef, out_avals: Sequence[ShapedArray],
                 in_shardings: Sequence[Sharding | None], out_shardings: Sequence[Sharding | None],
                 platforms: Sequence[str], disabled_safety_checks: Sequence[DisabledSafetyCheck],
                 calling_convention_version: int, module_kept_var_idx: Sequence[int], program: ClosedJaxpr,
                 vjp: Callable[[Exported], Exported] | None, mlir_module_serialized: bytes | None = None,
                 nr_devices: int = 1):
        self.fun_name = fun_name
        self.in_tree, self.out_tree = in_tree, out_tree
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self._in_shardings, self._out_shardings = tuple(in_shardings), tuple(out_shardings)
        self.platforms = tuple(platforms)
        self.disabled_safety_checks = tuple(disabled_safety_checks)
        self.calling_convention_version = calling_convention_version
        self.module_kept_var_idx = tuple(module_kept_var_idx)
        self.nr_devices = nr_devices
        self.ordered_effects = tuple(e for e in _sorted(program.effects) if ordered_effects.contains(e))
        self.unordered_effects = tuple(e for e in _sorted(program.effects) if not ordered_effects.contains(e))
        self._program = program
        self._get_vjp = vjp
        self._refined: dict[tuple[tuple[Size, ...], ...], ClosedJaxpr] = {}
        if mlir_module_serialized is not None:
            self.mlir_module_serialized = mlir_module_serialized

    @property
    def uses_global_constants(self) -> bool:
        return any(isinstance(d, SymbolicDim) for a in self.in_avals for d in a.shape) or any(
            eqn.primitive is calling.call_exported_p and eqn.params["uses_global_constants"]
            for eqn in _equations(self._program.jaxpr))

    @property
    def in_shardings_hlo(self) -> tuple[str | None, ...]:
        return tuple(None if s is None else str(s) for s in self._in_shardings)

    @property
    def out_shardings_hlo(self) -> tuple[str | None, ...]:
        return tuple(None if s is None else str(s) for s in self._out_shardings)

    def in_shardings_jax(self, mesh: Any) -> tuple[Sharding | None, ...]:
        """The shardings of the arguments over a mesh; None where nothing is asked for.

        Raises ValueError where the mesh has other axes than that of the export.
        """
        return tuple(meshes.over(s, mesh) for s in self._in_shardings)

    def out_shardings_jax(self, mesh: Any) -> tuple[Sharding | None, ...]:
        """The shardings of the results over a mesh; None where nothing is asked for.

        Raises ValueError where the mesh has other axes than that of the export.
        """
        return tuple(meshes.over(s, mesh) for s in self._out_shardings)

    @cached_property
    def mlir_module_serialized(self) -> bytes:
        solving = Solving([a.shape for a in self.in_avals], calling.argument_names(self.in_tree))
        closed = discharge_closed(self._program)
        told = module_signature.signature(self.out_tree, closed, self._in_shardings, self._out_shardings)
        return backends.stablehlo_text(physical.lower(closed), f"jit_{self.fun_name}", solving.for_stablehlo(),
                                       platforms=self.platforms, told=told,
                                       names=calling.argument_names(self.in_tree)).encode()

    def mlir_module(self) -> str:
        """The program as the text of a StableHLO module."""
        return hooks.readable(self.mlir_module_serialized.decode())

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. It can be part of other programs, and be differentiated in reverse mode."""
        return self._call(*args, **kwargs)

    @cached_property
    def _call(self) -> Callable[..., Any]:
        return calling.call(self)

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The function's derivative, exported: from its arguments and its results' cotangents, flat, to the arguments'
        cotangents.

        Raises:
          ValueError: it was serialized without it.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._vjp

    @cached_property
    def _vjp(self) -> Exported:
        assert self._get_vjp is not None
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, which `deserialize` reads in any process.

        Args:
          vjp_order: how often it can be differentiated there.

        Raises:
          ValueError: `vjp_order` is negative, or a container's type is not registered for serialization.
        """
        return container.serialize(self, vjp_order)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def __repr__(self) -> str:
        fields = ("fun_name in_tree in_avals out_tree out_avals in_shardings_hlo out_shardings_hlo nr_devices "
                  "platforms ordered_effects unordered_effects disabled_safety_checks calling_convention_version "
                  "module_kept_var_idx uses_global_constants").split()
        return f"Exported({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"


def _sorted(effects: Any) -> list[Effect]:
    return sorted(effects, key=str)


def export(fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = (),
           _override_lowering_rules: PyTree = None) -> Callable[..., Exported]:
    """Exports a function.

    Args:
      fun_jit: what `jit` made of it.
      platforms: the platforms to export for; by default the one that programs run on.
      disabled_checks: checks to leave out.

    Returns:
      A function of arguments, or of `ShapeDtypeStruct`s in their place whose sizes may be symbolic, that gives an
      `Exported`.

    Raises:
      ValueError: `fun_jit` was not made by `jit`. From a call: dimension variables cannot be found from the arguments'
        shapes, or belong to several scopes.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> double = jax.export.export(jax.jit(lambda x: 2 * x))(
      ...     jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), "float32"))
      >>> double.out_avals
      (ShapedArray(float32[n]),)
      >>> double.call(jnp.arange(3.0))
      Array([0., 2., 4.], dtype=float32)
    """
    if str(getattr(fun_jit, "__module__", "")).startswith("styrax.") and not hasattr(fun_jit, "trace"):
        fun_jit = jit(fun_jit)  # the library's functions are jitted for all that users know
    if not hasattr(fun_jit, "trace") or not hasattr(fun_jit, "lower"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")

    if _override_lowering_rules:
        raise NotImplementedError("an export with other lowering rules than those that are registered")

    @api_boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        version = config.config.jax_export_calling_convention_version
        if not minimum_supported_calling_convention_version <= version <= maximum_supported_calling_convention_version:
            raise ValueError(
                f"The requested export calling convention version {version} is outside the range of supported versions "
                f"[{minimum_supported_calling_convention_version}..{maximum_supported_calling_convention_version}]")
        chosen = tuple(platforms or (default_export_platform(),))
        _check_scopes(args, kwargs, function_name(fun_jit))
        return _exported(fun_jit.trace(*args, **kwargs), chosen, tuple(disabled_checks), version)

    return do_export


_DONATING = frozenset(("cpu", "cuda", "rocm", "tpu", "neuron"))  # platforms whose programs take arguments' memory


def _exported(traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...], version: int,
              shardings: tuple[Sequence[Sharding | None], Sequence[Sharding | None]] | None = None) -> Exported:
    program = traced._program
    closed = traced.jaxpr
    solving = Solving([a.shape for a in closed.in_avals], calling.argument_names(traced.in_tree))
    solving.check()
    _check_targets(closed, checks)
    if program.donated is not None and any(program.donated) and len({p in _DONATING for p in platforms}) > 1:
        raise NotImplementedError("In multi-platform lowering either all or no lowering platforms should support "
                                  f"donation. Lowering for {platforms} of which only "
                                  f"{tuple(p for p in platforms if p in _DONATING)} support donation")
    for aval in closed.out_avals:
        for d in aval.shape:
            solving.check_known(d)
    _, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals))
    keep_all = program.params["keep_unused"]
    if shardings is None:
        (_, ins), (_, outs) = module_signature.signature(
            traced.out_tree, closed, program.params["in_shardings"], program.params["out_shardings"],
            given=traced._given)
        shardings = [meshes.without_devices(s) for s in ins], [meshes.without_devices(s) for s in outs]
    refined = meshes.constrained(refine(closed, _themselves(solving)), *shardings)
    return Exported(
        fun_name=traced.fun_name, in_tree=traced.in_tree, in_avals=closed.in_avals, out_tree=traced.out_tree,
        out_avals=closed.out_avals, in_shardings=shardings[0], out_shardings=shardings[1], platforms=platforms,
        disabled_safety_checks=checks, nr_devices=meshes.device_count(refined.jaxpr),
        calling_convention_version=version,
        module_kept_var_idx=[i for i, kept in enumerate(used) if kept or keep_all], program=refined,
        vjp=lambda exported: _exported_vjp(closed, exported))


def _themselves(solving: Solving) -> dict[str, Size]:
    return {name: SymbolicDim({((name, 1),): 1}, solving.scope) for name in solving.variables if solving.scope}


def _check_scopes(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> None:
    """Raises ValueError where the sizes of arguments belong to several scopes."""
    leaves, structure = tree.tree_flatten((args, kwargs))
    first = None
    for where, x in zip(calling.argument_names(structure), leaves, strict=True):
        for d in getattr(x, "shape", ()):
            if isinstance(d, SymbolicDim):
                if first is None:
                    first = where, d.scope
                first[1].check_same(d, f"when exporting {name}", f"current (from {first[0]}) ", where)


def _check_targets(program: ClosedJaxpr, checks: Sequence[DisabledSafetyCheck]) -> None:
    """Raises ValueError where a program calls foreign functions whose interface nobody promises to keep."""
    allowed = {check.is_custom_call() for check in checks}
    found = sorted({eqn.params["target_name"] for eqn in _equations(program.jaxpr) if eqn.primitive.name == "ffi_call"}
                   - allowed) if "ALL" not in allowed else []
    if found:
        raise ValueError("Cannot serialize code with custom calls whose targets have no compatibility guarantees: "
                         f"{', '.join(found)}. See `DisabledSafetyCheck.custom_call`.")


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a program and of the programs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


def _nothing(shape: Sequence[Size]) -> Any:
    """The tangent of integers."""
    return empty(shape, dtypes.float0)


def _exported_vjp(closed: ClosedJaxpr, exported: Exported) -> Exported:
    count = len(exported.in_avals)

    def fun_vjp_jax(*args_and_cotangents: Any) -> tuple[Any, ...]:
        args, cotangents = args_and_cotangents[:count], args_and_cotangents[count:]
        smooth = [i for i, a in enumerate(closed.in_avals) if a.to_tangent_aval().dtype != dtypes.float0]

        def of_smooth(*given: Any) -> list[Any]:
            values = dict(zip(smooth, given, strict=True))
            return jaxpr_as_fun(closed)(*(values.get(i, x) for i, x in enumerate(args)))

        _, pull = pullbacks.vjp(of_smooth, *(args[i] for i in smooth))
        pulled = dict(zip(smooth, pull(list(cotangents)), strict=True))
        return tuple(pulled[i] if i in pulled else _nothing(x.shape) for i, x in enumerate(args))

    avals = [*exported.in_avals, *(a.to_tangent_aval() for a in exported.out_avals)]
    specs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    return _exported(jit(fun_vjp_jax).trace(*specs), exported.platforms, exported.disabled_safety_checks,
                     exported.calling_convention_version,
                     ((*exported._in_shardings, *exported._out_shardings), exported._in_shardings))
