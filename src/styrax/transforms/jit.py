"""`jit`: from a Python function to cached machine code.

A call becomes a key and leaves (`signature`), and the key finds its program: one cache for each function and set of
options, which all wrappers of the function share and which lives as long as the function. A call at the top runs the
program's code; under another trace it becomes one equation with the program inside. `lower` and `compile` give the same
programs, step by step (`stages`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from ..core import hooks
from ..core.arrays import backends, differing, mesh, moving
from ..core.arrays.explicit import tells_sharding
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.settings import config, progress
from ..core.tracing import collector, invalid_values
from ..core.tracing.source import api_boundary, current, describe_function, hide_frames, summarize
from ..core.tracing.staging import hoist_tracers, trace_to_jaxpr
from ..core.tracing.trace import eval_trace, state
from ..core.trees import tree
from ..core.trees.treedef import MetadataError
from ..core.types import avals
from ..core.types.avals import AbstractRef, AbstractValue, ShapedArray
from ..core.types.dims import NotGeneric, tracing
from ..core.types.typing import DeviceLike, PyTree
from . import compile_log, machine_code, module_signature, stages
from .aliasing import check_arguments, check_returned
from .jit_rules import UNSPECIFIED, jit_p, jit_params
from .jit_shardings import Placement
from .machine_code import Code, direct, placed
from .naming import check_callable, function_name
from .signature import Key, Signature

MANY = 4096  # programs of a library function that are kept: its calls with other shapes are without number

# function -> options of `jit` -> key -> program
_caches: weakref.WeakKeyDictionary[Any, dict[Any, dict[Key, Specialisation]]] = weakref.WeakKeyDictionary()

P = ParamSpec("P")
R = TypeVar("R")
if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from ..profiles.explanations import Explanation

    class JitOptions(TypedDict, total=False):
        """The arguments of `jit` besides the function."""

        in_shardings: PyTree
        out_shardings: PyTree
        static_argnums: int | Sequence[int] | None
        static_argnames: str | Iterable[str] | None
        donate_argnums: int | Sequence[int] | None
        donate_argnames: str | Iterable[str] | None
        keep_unused: bool
        device: DeviceLike | None
        backend: str | None
        inline: bool
        compiler_options: dict[str, Any] | None

READ_OPTIONS = frozenset(("_compiler_options", "_placement", "_programs", "_signature"))
NOT_GIVEN: Any = object()
NO_OPTIONS: Mapping[str, Any] = {}
LEAF = tree.tree_structure(0)


class Specialisation:
    """One signature of a function: what it was traced to, and its code once it was called.

    Of a library function that is called with all shapes by one code, only `code` and `out_tree` are known until it is
    traced for these shapes.
    """

    __slots__ = ("begun", "captured", "closed", "code", "donated", "in_tree", "name", "noticed", "out_tree", "params",
                 "single", "takes_refs", "whole")

    in_tree: tree.PyTreeDef

    def __init__(self, name: str, out_tree: tree.PyTreeDef, code: Code | None = None):
        self.name = name
        self.out_tree = out_tree
        self.single = out_tree == LEAF
        self.code = code  # takes arrays, gives arrays
        self.begun: Code | None = None  # the same, for the first call: there may be no other
        self.closed: ClosedJaxpr | None = None
        self.whole: Any = None  # the same, with what it captures as constants
        self.params: dict[str, Any] = {}  # of the equation by which it is called
        self.captured: list[Any] = []  # tracers of enclosing traces and references: passed as leading arguments
        self.donated: tuple[bool, ...] | None = None
        self.takes_refs = False
        self.noticed: Sequence[differing.Devices] = ()  # devices whose copies differ, which it takes for alike

    @classmethod
    def of_program(cls, closed: ClosedJaxpr, name: str, in_tree: tree.PyTreeDef, out_tree: tree.PyTreeDef,
                   donated: tuple[bool, ...] | None = None) -> Specialisation:
        """A program that was traced elsewhere."""
        made = cls(name, out_tree)
        made.closed = made.whole = closed
        made.in_tree, made.donated = in_tree, donated
        made.params = jit_params(closed, name, donated_invars=donated)
        return made

    def compiled(self, compiler_options: Mapping[str, Any] = NO_OPTIONS) -> Code:
        """The code of what it was traced to; options are added to those of `jit`, or take their place."""
        if self.captured:
            return functools.partial(jit_p.bind, *self.captured, **self.params)
        assert self.closed is not None
        stages.warn_of_captured(self.closed)
        given = {**dict(self.params["compiler_options_kvs"]), **compiler_options}
        stages.check_compiler_options(given)
        said = self.params["in_shardings"], self.params["out_shardings"]
        return placed(self.closed, self.name, self.donated, said, tuple([(k, v, type(v)) for k, v in given.items()]))


class PjitFunction(Generic[P, R]):
    """A function compiled by `jit`."""

    def __init__(self, fun: Callable[P, R], options: dict[str, Any], for_all_shapes: bool = False):
        self._fun = fun
        self._options = options
        self._for_all_shapes = for_all_shapes
        if not for_all_shapes:  # a library's many functions read their options when they are first called
            self._read_options()
        self.__wrapped__ = fun
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            try:
                setattr(self, name, getattr(fun, name))
            except AttributeError:
                setattr(self, name, function_name(fun) if "name" in name else getattr(type(fun), name, None))
        self.__annotations__ = getattr(fun, "__annotations__", {})
        self.__dict__.update({k: v for k, v in getattr(fun, "__dict__", {}).items() if k not in self.__dict__})

    def _read_options(self) -> None:
        options = self._options
        self._placement = placement = Placement(
            options.get("in_shardings", UNSPECIFIED), options.get("out_shardings", UNSPECIFIED),
            options.get("device"), options.get("backend"))
        self._signature = Signature(
            self._fun, options.get("static_argnums"), options.get("static_argnames"), options.get("donate_argnums"),
            options.get("donate_argnames"), placement.over_mesh)
        self._compiler_options = tuple(sorted((options.get("compiler_options") or {}).items()))
        self._programs = self._shared_programs()

    def __getattr__(self, name: str) -> Any:
        if name in READ_OPTIONS and "_for_all_shapes" in self.__dict__:
            self._read_options()
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- the call ----------------------------------------------------------------------------------
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            eager = state.trace is eval_trace
            try:
                key, leaves = self._signature.of(args, kwargs, eager)
                program = self._programs.get(key)
            except Exception:
                return self._without_key(args, kwargs, eager)
            if eager:
                if program is None or program.code is None:
                    if config.config.jax_disable_jit:
                        return self._fun(*args, **kwargs)
                    program = self._ready(key, leaves)
                try:
                    outs = program.code(*leaves)  # type: ignore[misc]
                except backends.Elsewhere:  # compiled without a thought of other devices
                    devices = differing.devices_of(leaves) if differing.used else None
                    if devices is not None:
                        with hooks.copies_in_scope(devices):
                            return self(*args, **kwargs)
                    program.code = self._traced(key).compiled()
                    outs = program.code(*leaves)
            else:
                if program is None or program.closed is None:
                    if config.config.jax_disable_jit:
                        return self._fun(*args, **kwargs)
                    program = self._traced(key)
                if self._compiler_options:
                    raise ValueError(
                        "`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options="
                        f"{dict(self._compiler_options)} specified on a nested jit with name: {program.name} and "
                        f"source info: {summarize(current())}")
                if program.noticed:
                    differing.noticed.devices += program.noticed
                if program.takes_refs:
                    check_arguments(leaves, program.captured, "jit", program.params["jaxpr"].debug_info)
                around = mesh.state.concrete
                params = program.params if around is mesh.empty_mesh else {**program.params, "ctx_mesh": around}
                outs = jit_p.bind(*program.captured, *leaves, **params)
            return outs[0] if program.single else program.out_tree.unflatten(outs)
        except Exception as error:
            if type(error) is FloatingPointError and state.trace is eval_trace and not self._signature.donates:
                try:
                    invalid_values.run_as_written(error, function_name(self._fun), self._fun, args, kwargs)
                except Exception as found:
                    hide_frames(found)
                    raise
            hide_frames(error)
            raise

    def _without_key(self, args: tuple[Any, ...], kwargs: dict[str, Any], eager: bool) -> Any:
        """A call whose arguments make no key, or one without a hash; called while the reason for it is handled."""
        if config.config.jax_disable_jit:
            return self._fun(*args, **kwargs)
        try:
            key, leaves = self._signature.of(args, kwargs, eager)
        except Exception:
            key = ()
        error = self._signature.unhashable(key)
        if error is not None:
            raise error from None
        if isinstance(sys.exc_info()[1], OverflowError):
            raise self._signature.overflow(args, kwargs)
        if not key:
            raise  # what it was called for
        if isinstance(sys.exc_info()[1], MetadataError):
            raise
        if not tracing.active:
            raise ValueError("static arguments should be comparable using __eq__. The error above was raised when the "
                             "arguments of a call were compared with those of earlier ones.")
        program = self._trace(key)  # sizes under trace have no place in a cache
        outs = jit_p.bind(*program.captured, *leaves, **program.params)
        return program.out_tree.unflatten(outs)

    def _shared_programs(self) -> dict[Key, Specialisation]:
        """The programs of the function under these options, also those of other wrappers of it."""
        options = (self._signature.options, self._placement.options, self._options.get("keep_unused", False),
                   self._options.get("inline", False), self._compiler_options, self._for_all_shapes)
        try:
            return _caches.setdefault(self._fun, {}).setdefault(options, {})
        except TypeError:  # a callable that cannot be referenced weakly, or something without a hash
            return {}

    def _keep(self, key: Key, program: Specialisation) -> None:
        if self._for_all_shapes and len(self._programs) >= MANY:
            self._programs.clear()
        self._programs[key] = program

    def _ready(self, key: Key, leaves: Sequence[Any]) -> Specialisation:
        """The program of a key, with code; for the leaves of the call. What calls code in the fewest steps is made when
        it is called a second time."""
        if config.no_execution.value:
            raise RuntimeError(f"JAX tried to execute function jit({function_name(self._fun)}), but the no_execution "
                               "config option is set")
        backend = backends.get()  # which finds out whether there are several devices
        program = self._programs.get(key)
        code = None
        if self._for_all_shapes and not (backends.apart and moving.elsewhere(leaves, backend)):
            code = self._code_for_all_shapes(key)
        if code is not None:
            if program is None:
                program = Specialisation(function_name(self._fun), code.extra)
                self._keep(key, program)
            program.code = code
            return program
        if program is not None and program.begun is not None:
            program.code = direct(program.begun)
            return program
        with collector.paused():
            if program is None or program.closed is None:
                program = self._traced(key)
            code = program.compiled()
        if config.config.jax_debug_key_reuse and program.closed is not None:
            code = hooks.key_checked(program.closed, code)
        program.begun = code
        once = copy(program)
        once.code = code
        return once

    def _code_for_all_shapes(self, key: Key) -> Any:
        """A program that serves these shapes among others; None where there is none."""
        if invalid_values.watching() or backends.several or avals.explicit and tells_sharding(
                item for item in key if type(item) is ShapedArray):
            return None
        for item in key:
            if isinstance(item, AbstractValue) and not (
                    type(item) is ShapedArray and isinstance(item.dtype, np.dtype)):
                return None

        def trace(generic: Key) -> tuple[ClosedJaxpr, Any]:
            program = self._trace(generic)
            if program.captured:
                raise NotGeneric("captures a tracer")
            return program.closed, program.out_tree  # type: ignore[return-value]

        def specialise() -> None:
            program = self._traced(key)
            program.code = direct(program.compiled())

        return backends.get().for_all_shapes(self._fun, key, function_name(self._fun), trace, specialise)

    def _traced(self, key: Key) -> Specialisation:
        """The program of a key, traced. It is kept unless it captures values of another trace."""
        known = self._programs.get(key)
        if known is not None and known.closed is not None:
            return known
        if config.no_tracing.value:
            raise RuntimeError(f"re-tracing function {describe_function(self._fun)} for `jit`, but 'no_tracing' is set")
        if config.explain_cache_misses.value:
            compile_log.explain_miss(self._fun, self._signature, key, list(self._programs))
        program = self._trace(key)
        if known is not None:
            program.code = known.code
        if not program.captured and not config.config.jax_disable_jit:
            self._keep(key, program)
        return program

    def _trace(self, key: Key) -> Specialisation:
        weakref.ref(self._fun)  # TypeError for a callable that cannot be referenced weakly
        call = self._signature.read(key)
        flat = call.flat
        info = flat.info(call.avals)
        in_shardings = self._placement.of_arguments(flat, call.avals, info)
        name = function_name(self._fun)
        with (collector.paused(), progress.shown(f"tracing {name}"),
              compile_log.timed(f"tracing {name} for jit", compile_log.TRACED, name)):
            if state.trace is eval_trace:
                differing.noticed.devices.clear()
            before = len(differing.noticed.devices)
            closed = trace_to_jaxpr(flat, call.avals, info)
            noticed = differing.noticed.devices[before:]
            if noticed and state.trace is eval_trace:  # devices whose copies differ, which it takes for alike
                with hooks.copies_in_scope(noticed[0]):
                    closed, noticed = trace_to_jaxpr(flat, call.avals, info), []
        check_returned(closed, flat.structure, "jit")
        program = Specialisation(name, flat.structure)
        program.whole = closed
        closed, captured = hoist_tracers(closed)
        program.closed = closed
        program.captured = captured
        program.noticed = noticed
        program.takes_refs = any(isinstance(a, AbstractRef) for a in call.avals)
        program.in_tree = flat.in_tree
        program.donated = call.donated
        program.params = jit_params(
            closed, program.name,
            in_shardings=(UNSPECIFIED,) * len(captured) + in_shardings,
            out_shardings=self._placement.of_results(program.out_tree, closed.out_avals),
            donated_invars=None if call.donated is None else (False,) * len(captured) + call.donated,
            keep_unused=self._options.get("keep_unused", False), inline=bool(self._options.get("inline", False)),
            compiler_options_kvs=self._compiler_options)
        return program

    # -- ahead of time --------------------------------------------------------------------------------
    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Traces the function for these arguments (arrays or `ShapeDtypeStruct`s) without running it."""
        key, leaves = self._signature.of(args, kwargs, False)
        return stages.Traced(self._traced_or_refused(key, leaves), module_signature.given_shardings(leaves))

    def _traced_or_refused(self, key: Key, leaves: Sequence[Any]) -> Specialisation:
        """The program of a key. ValueError for static arguments without a hash, and for references passed twice."""
        try:  # sizes under trace have no place in a cache
            program = self._trace(key) if tracing.active else self._traced(key)
        except TypeError:
            error = None if tracing.active else self._signature.unhashable(key)
            if error is None:
                raise
            raise error from None
        if program.takes_refs:
            check_arguments(leaves, program.captured, "jit", program.whole.jaxpr.debug_info)
        return program

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialisation:
        """The program for these arguments (arrays or `ShapeDtypeStruct`s), as the function's calls have it.

        Raises:
          OverflowError: an argument is a number that is too large for its type.
        """
        try:
            key, leaves = self._signature.of(args, kwargs, False)
        except OverflowError:
            raise self._signature.overflow(args, kwargs) from None
        return self._traced_or_refused(key, leaves)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Traces and lowers the function for these arguments without running it."""
        kwargs.pop("_experimental_lowering_platform", None)
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results."""
        return self.trace(*args, **kwargs).out_info

    @api_boundary
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Where the time of a call with these arguments goes: runs the function again and again, with clock calls
        between its nests (`Explanation`). NotImplementedError where another compiler than Styrax' own made it."""
        return self.lower(*args, **kwargs).compile().explain(self._signature.of(args, kwargs, False)[1])

    def clear_cache(self) -> None:
        """Forgets everything that was traced and compiled for this function."""
        try:
            found = _caches.get(self._fun, {})
        except TypeError:
            found = {}
        for programs in (*found.values(), self._programs):
            programs.clear()

    _clear_cache = clear_cache

    def _cache_size(self) -> int:
        return len(self._programs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        import types

        return types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self._fun!r}>"
        except Exception:  # the function's own
            return "<PjitFunction>"

    def __reduce__(self) -> Any:
        return PjitFunction, (self._fun, self._options, self._for_all_shapes)


def can_be_cached(fun: Any) -> bool:
    """Whether programs are kept for a callable, which is to be referenced weakly."""
    try:
        weakref.ref(fun)
    except TypeError:
        return False
    return True


# -- the transformation ----------------------------------------------------------------------------


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> PjitFunction[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], PjitFunction[P, R]]: ...
@api_boundary
def jit(fun: Callable[P, R] = NOT_GIVEN, /, *, in_shardings: PyTree = UNSPECIFIED, out_shardings: PyTree = UNSPECIFIED,
        static_argnums: int | Sequence[int] | None = None, static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Iterable[str] | None = None,
        keep_unused: bool = False, device: DeviceLike | None = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None,
        ) -> PjitFunction[P, R] | Callable[[Callable[P, R]], PjitFunction[P, R]]:
    """Compiles a function on its first call with arguments of a kind, and runs the machine code from then on.

    The kind of a call is the structure of its arguments, their shapes, dtypes and weak types, the values of static
    ones, and the settings of `jax.config` that programs depend on. Calls of one kind are traced and compiled once, also
    by several wrappers of the same function.

    Args:
      fun: a pure function of arrays, scalars and (nested) containers of them. Without it, `jit(...)` is a decorator.
      in_shardings: where the arguments are to be: a sharding, a `PartitionSpec` over the mesh in force, or None for no
        wish; or a tuple with such, or a container of them that is a prefix of the argument, for each positional
        argument that is not static. With it, arguments cannot be passed by name.
      out_shardings: the same for the results, as a prefix of their structure. Results are committed to it and carry
        it as their `sharding`; those without a wish follow the arguments.
      static_argnums: position or positions of arguments that are passed to `fun` as they are; each value is compiled
        for anew. They need a hash and `==`. Negative ones count from the end of a call's positional arguments.
      static_argnames: the same by name. Numbers are inferred from names, and names from numbers that are not negative,
        if only one of the two is given.
      donate_argnums: position or positions of arguments whose memory the results may take; such arrays are deleted
        by the call. Negative ones count from the end, as above.
      donate_argnames: the same by name, inferred like static ones.
      keep_unused: whether arguments that `fun` does not use stay arguments of the compiled program. On CPUs they
        cost nothing and are never read.
      device: the device to run on (deprecated: put the arguments there, or give shardings).
      backend: the name of the platform to run on (deprecated).
      inline: whether under another trace the function's operations are written down in place of one call.
      compiler_options: options by name, for the compiler: XLA's on plugins' devices. Without effect on CPUs.

    Returns:
      A function of the same arguments and results. It has the methods `trace` and `lower` (of arrays or
      `ShapeDtypeStruct`s, ahead of time), `eval_shape`, and `clear_cache`.

    Raises:
      TypeError: `fun` is not callable, or what should be a number, name or sharding is none. From a call: an argument
        is not an array.
      ValueError: `fun` has no such argument, an argument is static and donated, or `device` or `backend` is given with
        shardings. From a call: a static argument has no hash, or shardings do not fit the structure or the shapes.
      RuntimeError: from a call: an unknown `backend`, or a `PartitionSpec` while no mesh is in force.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> @jax.jit
      ... def selu(x, alpha=1.67, scale=1.05):
      ...     return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)
      >>> selu(jnp.arange(3.0))
      Array([0.  , 1.05, 2.1 ], dtype=float32)
      >>> power = jax.jit(lambda x, n: x ** n, static_argnums=1)
      >>> power(jnp.arange(4), 2)
      Array([0, 1, 4, 9], dtype=int32)
    """
    options = dict(in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
                   static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
                   keep_unused=keep_unused, device=device, backend=backend, inline=inline,
                   compiler_options=compiler_options)
    if fun is NOT_GIVEN:
        return functools.partial(jit, **options)  # type: ignore[return-value]
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}: exchange the decorators")
    check_callable(fun)
    return PjitFunction(fun, options)


def jit_for_all_shapes(fun: Callable[P, R], /, **options: Any) -> PjitFunction[P, R]:
    """`jit` for the functions of libraries, which are called eagerly with ever new shapes.

    At the top, calls that differ in sizes alone share one program (`cpu.eager`), until the time spent in it at some
    shape would have paid for a program of that shape's own.
    """
    return PjitFunction(fun, options, for_all_shapes=True)


def clear_caches() -> None:
    """Forgets all traced and compiled programs of this process."""
    for of_function in list(_caches.values()):
        for programs in of_function.values():
            programs.clear()
    machine_code.forget()
