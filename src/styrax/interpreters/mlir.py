"""Lowerings of primitives that libraries define.

A lowering here is a rule `(context, *values, **params)`. The context is the builder of whatever is being
compiled (loops for CPUs, StableHLO for accelerators), and `lower_fun` makes a rule for both from a function of
arrays, which needs to know nothing of either.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays import backends
from ..core.programs import rules
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, Var
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types.dims import NotGeneric
from ..core.types.effects import lowerable_effects
from ..core.types.typing import Function, PyTree
from .mlir_objects import (
    DEVICE_TO_DEVICE_TYPE,
    RECV_FROM_HOST_TYPE,
    SEND_TO_HOST_TYPE,
    ConstantHandler,
    IrText,
    LoweringParameters,
    LoweringResult,
    Mesh,
    ShapePolyLoweringState,
    ShardingContext,
    SPMDAxisContext,
    TokenSet,
    aval_to_ir_type,
    aval_to_ir_types,
    dense_int_array,
    dense_int_elements,
    dtype_to_ir_type,
    flatten_ir_types,
    flatten_ir_values,
    i32_attr,
    i64_attr,
    ir_attribute,
    ir_tree_registry,
    ir_type_handlers,
    make_ir_context,
    merge_mlir_modules,
    module_to_bytecode,
    module_to_string,
    token_type,
    unflatten_ir_values_like_types,
)


class LoweredFunction:
    """A lowering rule that traces a function of arrays and compiles its program in place."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*xs, **params)
            return list(out) if self.multiple_results else [out]

        if any(type(d) is not int for a in ctx.avals_in for d in getattr(a, "shape", ())):
            raise NotGeneric("a function that is traced where sizes are known only when it runs")
        wanted = list(ctx.avals_out)
        closed = trace_to_jaxpr(flat, ctx.avals_in)
        for found, aval in zip(closed.out_avals, wanted, strict=True):
            if (found.shape, found.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"the lowering {getattr(self.fun, '__name__', self.fun)} gives {found.str_short()} "
                                f"where the primitive's abstract evaluation says {aval.str_short()}")
        return ctx.inline(closed, *args)

    def __repr__(self) -> str:
        return f"lower_fun({self.fun!r})"


def lower_fun(fun: Function, multiple_results: bool = True) -> Callable[..., list[Any]]:
    """A lowering rule for a primitive that does what a function of arrays does.

    Args:
      fun: a function of the primitive's operands and parameters, in terms of other primitives.
      multiple_results: whether it returns a sequence of arrays rather than one array.
    """
    return LoweredFunction(fun, multiple_results)


class LoweringRuleContext:
    """What a library's rule gets: the builder of what is being compiled, as which it behaves."""

    def __init__(self, builder: Any, module_context: ModuleContext | None = None):
        self._builder = builder
        self.module_context = module_context or ModuleContext(module=getattr(builder, "module", None))
        self.tokens_in = TokenSet()
        self.tokens_out: TokenSet | None = None
        self.platforms: Sequence[str] | None = None
        self.dim_var_values: Sequence[Any] = ()
        self.axis_size_env: Any = None
        self.avals_in = builder.avals_in
        self.avals_out = builder.avals_out
        self.primitive = getattr(builder, "primitive", None)

    def __getattr__(self, name: str) -> Any:
        if name == "_builder":  # of a copy in the making
            raise AttributeError(name)
        return getattr(self._builder, name)

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Notes the tokens that come after the operation."""
        self.tokens_out = tokens_out

    def is_forward_compat(self) -> bool:
        """Whether older releases are to read the program."""
        parameters = self.module_context.lowering_parameters
        return parameters.for_export and not parameters.export_ignore_forward_compatibility

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """The context with other attributes, such as `avals_in` and `avals_out`."""
        made = copy.copy(self)
        made.__dict__.update(changes)
        return made


class ModuleContext:
    """What rules share in one program.

    Args:
      module: the StableHLO module being printed, if that is what is compiled.
      lowering_parameters: what the whole lowering depends on.
    """

    def __init__(self, *, platforms: Sequence[str] | None = None, backend: Any = None, axis_context: Any = None,
                 keepalives: list[Any] | None = None, host_callbacks: list[Any] | None = None,
                 lowering_parameters: LoweringParameters | None = None, context: Any = None, module: Any = None,
                 **_: Any):
        self.platforms = tuple(platforms or (backends.get().platform,))
        self.backend = backend
        self.axis_context = axis_context or ShardingContext(1)
        self.keepalives = [] if keepalives is None else keepalives
        self.host_callbacks = [] if host_callbacks is None else host_callbacks
        self.lowering_parameters = lowering_parameters or LoweringParameters()
        self.context = context or make_ir_context()
        self.module = module
        self.shape_poly_state = ShapePolyLoweringState((), None)

    def get_backend(self) -> backends.Backend:
        """The backend of the platform."""
        return backends.get() if self.backend is None else self.backend

    def add_keepalive(self, thing: Any) -> None:
        """Keeps something as long as the context; a program keeps the functions that it calls by itself."""
        self.keepalives.append(thing)

    def add_host_callback(self, callback: Any) -> None:
        """Notes a function that the program calls."""
        self.host_callbacks.append(callback)


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable[..., Sequence[Any]], token: PyTree,
                         operands: Sequence[Any], operand_avals: Sequence[Any], result_avals: Sequence[Any], *,
                         has_side_effect: bool, returns_token: bool = True, partitioned: bool = False,
                         sharding: PyTree = None) -> tuple[Any, ...]:
    """A call of a Python function of arrays in the middle of a lowering, on CPUs.

    Returns:
      `(results, token, None)`: JAX has something to keep alive for the third.
    """
    from ..transforms.callbacks import as_arrays, checked

    def function(*views: Any) -> list[Any]:
        return checked(callback(*as_arrays(views)), result_avals)

    return ctx.host_call(function, [(a.shape, a.dtype) for a in result_avals], list(operands)), token, None


KNOWN_PLATFORMS = ("cpu", "cuda", "gpu", "metal", "mock_tpu", "rocm", "tpu")


def register_lowering(prim: Primitive, rule: Function, platform: str | None = None, inline: bool = True,
                      cacheable: bool = True) -> None:
    """Makes a rule the lowering of a primitive.

    Args:
      prim: the primitive.
      rule: what `lower_fun` gives, or a function that calls such with the context and values it is given, or that
        writes elementwise operations of `jaxlib.mlir.dialects.hlo`.
      platform: the platform the rule is for; None for all without a rule of their own.
    """
    if platform is not None and platform not in KNOWN_PLATFORMS:
        raise NotImplementedError(f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform "
                                  f"{platform}. Known platforms are: {', '.join(KNOWN_PLATFORMS)}.")

    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        with writing(ctx):
            out = rule(LoweringRuleContext(ctx), *args, **params)
        if prim.multiple_results:
            return list(out)
        return out[0] if isinstance(out, (list, tuple)) else out

    if platform in (None, "cpu"):
        rules.loops[prim] = lower
    if platform != "cpu":
        rules.stablehlos[prim] = lower
    else:  # what the text of a lowered program shows, where there is no other
        rules.stablehlos.setdefault(prim, lower)


# -- values and programs inside rules ----------------------------------------------------------------------------
_builders: list[Any] = []  # of the rules that run, the innermost one last


@contextmanager
def writing(builder: PyTree) -> Iterator[None]:
    """Constants and programs are written by this builder meanwhile."""
    _builders.append(builder)
    try:
        yield
    finally:
        _builders.pop()


def _builder() -> Any:
    if not _builders:
        raise RuntimeError("values are made inside lowering rules: there is no program to write to")
    return _builders[-1]


def inlined(closed: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """The results of a program of the values at hand, written by the rule that runs."""
    return list(_builder().inline(closed, *values))


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type[Any], handler_fun: ConstantHandler) -> None:
    """Says how constants of a type are written, in rules: `handler_fun(value, aval)`."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: PyTree, *, const_lowering: PyTree = None, aval: PyTree = None) -> list[Any]:
    """A constant as values of the program that a rule writes. Raises TypeError for what is no array."""
    for base in type(val).__mro__:
        handler = _constant_handlers.get(base)
        if handler is not None:
            out = handler(val, aval)
            return list(out) if isinstance(out, (list, tuple)) else [out]
    given = get_aval(val) if aval is None else aval
    variable = Var(given)
    return _builder().inline(ClosedJaxpr(Jaxpr([variable], [], [variable], []), [val]))


def ir_constant(val: PyTree, *, const_lowering: PyTree = None, aval: PyTree = None) -> PyTree:
    """A constant as one value of the program that a rule writes. Raises TypeError where it is not one."""
    values = ir_constants(val, const_lowering=const_lowering, aval=aval)
    if len(values) != 1:
        raise TypeError(f"ir_constant called on {val} which corresponds to multiple IR values {values}")
    return values[0]


def shape_tensor(ctx: PyTree, sizes: Sequence[int]) -> PyTree:
    """A shape as a vector of the program."""
    return ir_constant(np.asarray(sizes, np.int32))


def jaxpr_subcomp(ctx: ModuleContext, jaxpr: Jaxpr, name_stack: PyTree, tokens: TokenSet,
                  consts_for_constvars: Sequence[Any], *args: PyTree, dim_var_values: Sequence[Any],
                  const_lowering: PyTree, outer_traceback: PyTree) -> tuple[list[Any], TokenSet]:
    """Writes a program's operations into the one that a rule writes. Gives its results, and the tokens."""
    whole = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
    return _builder().inline(ClosedJaxpr(whole), *consts_for_constvars, *args), tokens


def core_call_lowering(ctx: LoweringRuleContext, *args: PyTree, name: str, backend: PyTree = None,
                       call_jaxpr: ClosedJaxpr | Jaxpr, **_: PyTree) -> list[Any]:
    """A rule for calls of programs: it writes the program."""
    return ctx.inline(call_jaxpr if isinstance(call_jaxpr, ClosedJaxpr) else ClosedJaxpr(call_jaxpr), *args)


def lower_jaxpr_to_fun(ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr, effects: Sequence[Any], *,
                       num_const_args: int = 0, main_function: bool = False, in_avals: Sequence[Any] | None = None,
                       **_: PyTree) -> IrText:
    """Writes a program as a function of a StableHLO module.

    Args:
      ctx: the context, with its module.
      name: the function's name.
      jaxpr: the program.
      main_function: whether it is what the module is called for.

    Returns:
      The function's name there, as MLIR's symbol.
    """
    if ctx.module is None:
        ctx.module = hooks.StableHloModule(name)
    if main_function:
        ctx.module.add_function(name, jaxpr, "public")
        return IrText(f"@{name}")
    return IrText(f"@{ctx.module.private_function(jaxpr, name)}")


def lower_jaxpr_to_module(module_name: str, jaxpr: ClosedJaxpr, *, num_const_args: int = 0,
                          in_avals: Sequence[Any] | None = None, ordered_effects: Sequence[Any] = (),
                          platforms: Sequence[str] = (), backend: PyTree = None, axis_context: PyTree = None,
                          donated_args: Sequence[bool] = (), lowering_parameters: LoweringParameters | None = None,
                          **_: PyTree) -> LoweringResult:
    """A program as a StableHLO module whose function `main` computes it."""
    module = hooks.IrModule(hooks.stablehlo_text(jaxpr, module_name))
    return LoweringResult(module, None, [], ShapePolyLoweringState((), tuple(platforms) or None))


def __getattr__(name: str) -> Any:
    if name in ("Token", "Value"):  # the class of values of a StableHLO program
        return hooks.StableHloValue
    if name == "ir":
        return hooks.ir_bindings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "Token", "Value", "ir"})


__all__ = [
    "DEVICE_TO_DEVICE_TYPE", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "ConstantHandler", "LoweredFunction",
    "LoweringParameters", "LoweringResult", "LoweringRuleContext", "Mesh", "ModuleContext", "SPMDAxisContext",
    "ShapePolyLoweringState", "ShardingContext", "Token", "TokenSet", "Value",  # noqa: F822 -- `__getattr__` finds
    "aval_to_ir_type", "aval_to_ir_types",
    "core_call_lowering", "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "emit_python_callback",
    "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute",  # noqa: F822
    "ir_constant", "ir_constants", "ir_tree_registry", "ir_type_handlers", "jaxpr_subcomp", "lower_fun",
    "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "lowerable_effects",
    "make_ir_context", "merge_mlir_modules", "module_to_bytecode", "module_to_string",
    "register_constant_handler", "register_lowering", "shape_tensor", "token_type", "unflatten_ir_values_like_types",
]
