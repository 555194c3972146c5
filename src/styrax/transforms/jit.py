"""`jit`: from a Python function to cached machine code.

A call finds its entry by the structure of the arguments, their abstract values, the static arguments and the
trace context. Wrappers of the same function share one cache, which lives as long as the function. Under another
trace, `jit` becomes one equation whose program is traced once.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ..core import backends, config, invalid_values, tree
from ..core.array import Array
from ..core.dims import is_generic, tracing
from ..core.jaxpr import ClosedJaxpr
from ..core.staging import hoist_tracers, trace_to_jaxpr
from ..core.trace import Tracer, eval_trace, get_aval, state
from . import refs, stages
from .donation import donation
from .jit_rules import UNSPECIFIED, jit_p, jit_params
from .naming import check_results, debug_info, function_name
from .tracing import abstractify, abstractify_all

_traced: weakref.WeakKeyDictionary[Any, dict[Any, Entry]] = weakref.WeakKeyDictionary()


P = ParamSpec("P")
R = TypeVar("R")
if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class JitOptions(TypedDict, total=False):
        """The arguments of `jit` besides the function."""

        in_shardings: Any
        out_shardings: Any
        static_argnums: int | Sequence[int] | None
        static_argnames: str | Iterable[str] | None
        donate_argnums: int | Sequence[int] | None
        donate_argnames: str | Iterable[str] | None
        keep_unused: bool
        device: Any
        backend: str | None
        inline: bool
        compiler_options: dict[str, Any] | None

NOT_GIVEN: Any = object()
NUMBERS = frozenset((bool, int, float))
HOT = 64  # eager calls of a library function with the same shapes after which it is compiled for them alone


class Entry:
    """What one signature of a function was traced to."""

    __slots__ = ("closed", "out_tree", "executable", "captured", "name")

    def __init__(self, closed: ClosedJaxpr, out_tree: Any, captured: list[Any], name: str):
        self.closed = closed
        self.out_tree = out_tree
        self.captured = captured  # tracers of enclosing traces: passed as leading arguments
        self.executable: Any = None
        self.name = name


class Ready:
    """A program for one signature, ready to be called with its arrays; `left` calls from now, if it is told."""

    __slots__ = ("code", "out_tree", "single", "left", "forget")

    def __init__(self, code: Callable[..., list[Any]], out_tree: Any, left: int = 0,
                 forget: Callable[[], Any] | None = None):
        self.code = code
        self.out_tree = out_tree
        self.single = out_tree == LEAF
        self.left = left
        self.forget = forget

    def __call__(self, arrays: list[Any]) -> Any:
        if self.forget is not None:
            self.left -= 1
            if self.left <= 0:
                self.code.calls = HOT + 1  # type: ignore[attr-defined]
                self.forget()
        outs = self.code(*arrays)
        return outs[0] if self.single else tree.tree_unflatten(self.out_tree, outs)


LEAF = tree.tree_structure(0)


class Options:
    """The arguments of `jit` besides the function."""

    __slots__ = ("static_nums", "static_names", "donate_nums", "donate_names", "keep_unused", "inline", "in_shardings",
                 "out_shardings", "device", "backend", "compiler_options", "key")

    def __init__(self, static_nums: tuple[int, ...], static_names: tuple[str, ...], donate_nums: tuple[int, ...],
                 donate_names: tuple[str, ...], keep_unused: bool, inline: bool, in_shardings: Any, out_shardings: Any,
                 device: Any, backend: Any, compiler_options: Any):
        self.static_nums = static_nums
        self.static_names = static_names
        self.donate_nums = donate_nums
        self.donate_names = donate_names
        self.keep_unused = keep_unused
        self.inline = inline
        self.in_shardings = in_shardings
        self.out_shardings = out_shardings
        self.device = device
        self.backend = backend
        self.compiler_options = tuple(sorted((compiler_options or {}).items()))
        self.key = (static_nums, static_names, donate_nums, donate_names, keep_unused, inline, backend)


class Arguments:
    """A call's arguments taken apart: dynamic leaves and their structure, static ones, which leaves are donated."""

    __slots__ = ("leaves", "in_tree", "static", "static_kwargs", "args", "kwargs", "donated")

    def __init__(self, options: Options, args: tuple, kwargs: dict[str, Any]):
        nums = options.static_nums
        self.static: tuple = ()
        self.static_kwargs: tuple = ()
        if nums:
            n = len(args)
            positions = {i % n if -n <= i < n else i for i in nums}
            self.static = tuple((i, Static(args[i])) for i in sorted(positions) if 0 <= i < n)
            args = tuple(None if i in positions else a for i, a in enumerate(args))
        if options.static_names:
            names = [k for k in options.static_names if k in kwargs]
            if names:
                self.static_kwargs = tuple((k, Static(kwargs[k])) for k in names)
                kwargs = {k: v for k, v in kwargs.items() if k not in names}
        self.args = args
        self.kwargs = kwargs
        self.leaves, self.in_tree = tree.tree_flatten((args, kwargs))
        self.donated: tuple[bool, ...] | None = None
        if options.donate_nums or options.donate_names:
            n = len(args)
            marks: list[bool] = []
            nums = tuple(i % n for i in options.donate_nums if -n <= i < n)
            for i, a in enumerate(args):
                marks += [i in nums] * len(tree.tree_leaves(a))
            for k in sorted(kwargs):
                marks += [k in options.donate_names] * len(tree.tree_leaves(kwargs[k]))
            self.donated = tuple(marks)

    def dynamic_tree(self) -> tree.PyTreeDef:
        """The structure of the arguments that are not static."""
        fixed = {i for i, _ in self.static}
        return tree.tree_structure((tuple(a for i, a in enumerate(self.args) if i not in fixed), self.kwargs))

    def rebuild(self, leaves: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        args, kwargs = tree.tree_unflatten(self.in_tree, leaves)
        if self.static:
            out = list(args)
            for i, value in self.static:
                out[i] = value.value
            args = tuple(out)
        for k, value in self.static_kwargs:
            kwargs[k] = value.value
        return args, kwargs


class Static:
    """A static argument as part of a key: equal values of different types are different keys."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            raise ValueError(
                f"Non-hashable static arguments are not supported: {self.value!r} of type {type(self.value)}. "
                "Static arguments are part of the cache's key: they need __hash__ and __eq__.") from None


class PjitFunction(Generic[P, R]):
    """A function compiled by `jit`."""

    def __init__(self, fun: Callable[P, R], options: Options):
        self._fun = fun
        self._options = options
        self._fast: dict[Any, Ready] = {}
        self._generic: dict[Any, Any] = {}
        self._library = (getattr(fun, "__module__", None) or "").startswith("styrax.")
        self.__wrapped__ = fun
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            try:
                setattr(self, name, getattr(fun, name))
            except AttributeError:
                setattr(self, name, function_name(fun) if "name" in name else getattr(type(fun), name, None))
        self.__dict__.update({k: v for k, v in getattr(fun, "__dict__", {}).items() if k not in self.__dict__})

    # -- the call ----------------------------------------------------------------------------------
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if state.trace is eval_trace:
            found = self._signature(args, kwargs)
            if found is not None:
                ready = self._fast.get(found[0])
                if ready is not None:
                    return ready(found[1])
                result = self._call(args, kwargs)
                self._remember(found[0], args, kwargs)
                return result
        return self._call(args, kwargs)

    def _signature(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, list[Any]] | None:
        """The key of a call with arrays, numbers, trees of them and static values, and its arrays; else None."""
        key: list[Any] = []
        arrays: list[Any] = []
        static = self._options.static_nums
        for i, a in enumerate(args):
            if type(a) is Array:
                key.append(a.aval)
                arrays.append(a)
            elif i in static:
                key.append((type(a), a))
            elif a is None:
                key.append(None)
            elif type(a) in NUMBERS:
                key.append(type(a))
                arrays.append(backends.get().operand(a))
            else:
                leaves, structure = tree.tree_flatten(a)
                if leaves and any([type(x) is not Array for x in leaves]):
                    return None
                key.append(structure)
                key += [x.aval for x in leaves]
                arrays += leaves
        if kwargs:
            count = len(arrays)
            names = self._options.static_names
            for name, a in kwargs.items():
                key.append(name)
                if name in names:
                    key.append((type(a), a))
                elif a is None:
                    key.append(None)
                elif type(a) is Array and len(arrays) == count:  # (several would have to be sorted)
                    key.append(a.aval)
                    arrays.append(a)
                else:
                    return None
        key.append(config.trace_context())
        found = tuple(key)
        try:
            hash(found)
        except TypeError:
            return None
        return found, arrays

    def _remember(self, key: tuple, args: tuple, kwargs: dict[str, Any]) -> None:
        """After a call: what to do at once the next time."""
        if config.config.jax_disable_jit or self._options.donate_nums or self._options.donate_names or state.axis_sizes:
            return
        arguments = Arguments(self._options, args, kwargs)
        if self._library:
            statics = (arguments.in_tree, arguments.static, arguments.static_kwargs)
            bound = self._generic.get((statics, *map(abstractify, arguments.leaves), config.trace_context()))
            if bound is not None and bound.calls <= HOT:
                self._fast[key] = Ready(bound, bound.extra, HOT - bound.calls, lambda: self._fast.pop(key, None))
                return
        entry = self._entry(arguments)
        if entry.executable is not None and not refs.has_refs(entry.closed.jaxpr):
            if len(self._fast) > 4096:
                self._fast.clear()
            self._fast[key] = Ready(entry.executable, entry.out_tree)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if config.config.jax_disable_jit:
            return self._fun(*args, **kwargs)
        options = self._options
        arguments = Arguments(options, args, kwargs)
        leaves = arguments.leaves
        if self._library and state.trace is eval_trace:
            found = self._generic_call(arguments)
            if found is not None:
                return found
        entry = self._entry(arguments)
        if state.trace is eval_trace and not entry.captured and not any(
                isinstance(x, Tracer) for x in leaves):
            if entry.executable is None:
                entry.executable = compile_closed(entry.closed, entry.name, arguments.donated)
            outs = run(entry.executable, leaves, arguments.donated, entry.closed)
        else:
            params = jit_params(entry.closed, entry.name, donated_invars=_pad(arguments.donated, len(entry.captured)),
                                keep_unused=options.keep_unused, inline=options.inline,
                                compiler_options_kvs=options.compiler_options)
            outs = jit_p.bind(*entry.captured, *leaves, **params)
        return tree.tree_unflatten(entry.out_tree, outs)

    def _generic_call(self, arguments: Arguments) -> Any:
        """An eager library call by a program for all shapes; None if there is none or the shape is hot."""
        backend = backends.get()
        eager = getattr(backend, "eager", None)
        if eager is None or arguments.donated is not None or invalid_values.watching():
            return None
        arrays = []
        for x in arguments.leaves:
            if type(x) is not Array:
                if isinstance(x, (Tracer, Array)) or type(x) not in (bool, int, float, complex):
                    return None
                x = backend.operand(x)
            arrays.append(x)
        avals = [x.aval for x in arrays]
        statics = (arguments.in_tree, arguments.static, arguments.static_kwargs)
        key = (statics, *avals, config.trace_context())
        bound = self._generic.get(key, NOT_GIVEN)
        if bound is NOT_GIVEN:
            def trace_on(abstract: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
                entry = self._trace(arguments, abstract)
                if entry.captured:
                    raise TypeError("captures a tracer")
                return entry.closed, entry.out_tree

            bound = eager.function((self._fun, statics), avals, function_name(self._fun), trace_on)
            if len(self._generic) > 4096:
                self._generic.clear()
            self._generic[key] = bound
        if bound is None:
            return None
        bound.calls += 1
        if bound.calls > HOT:
            return None
        return tree.tree_unflatten(bound.extra, bound(*arrays))

    def _entry(self, arguments: Arguments) -> Entry:
        """The traced program for these arguments, from the cache where it is known."""
        fun = self._fun
        try:
            avals = [abstractify(x) for x in arguments.leaves]
        except TypeError:  # once more, with the names of the arguments
            info = debug_info("jit", fun, arguments.args, arguments.kwargs)
            avals = abstractify_all(fun, arguments.leaves, info.arg_names)
        if tracing.active and any(is_generic(getattr(a, "shape", ())) for a in avals):
            return self._trace(arguments, avals)  # sizes under trace have no place in a cache
        key = (arguments.in_tree, tuple(avals), arguments.static, arguments.static_kwargs, arguments.donated,
               config.trace_context(), tuple(state.axis_sizes.items()), self._options.key)
        cache = self._cache()
        entry = cache.get(key)
        if entry is None:
            entry = self._trace(arguments, avals)
            if not entry.captured:
                cache[key] = entry
        return entry

    def _cache(self) -> dict[Any, Entry]:
        try:
            return _traced.setdefault(self._fun, {})
        except TypeError:  # a callable that cannot be referenced weakly, or has no hash
            try:
                return self._own_cache
            except AttributeError:
                self._own_cache: dict[Any, Entry] = {}
                return self._own_cache

    def _trace(self, arguments: Arguments, avals: Sequence[Any]) -> Entry:
        fun = self._fun
        info = debug_info("jit", fun, arguments.args, arguments.kwargs)
        abstractify_all(fun, arguments.leaves, info.arg_names)
        out_trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            args, kwargs = arguments.rebuild(xs)
            outs, out_tree = tree.tree_flatten(fun(*args, **kwargs))
            check_results("jit", fun, outs, out_tree)
            out_trees.append(out_tree)
            return outs

        closed = trace_to_jaxpr(flat, avals, info)
        closed, captured = hoist_tracers(closed)
        refs.check_results(closed)
        return Entry(closed, out_trees[0], captured, function_name(fun))

    # -- ahead of time --------------------------------------------------------------------------------
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Traces the function for these arguments (arrays or `ShapeDtypeStruct`s) without running it."""
        arguments = Arguments(self._options, args, kwargs)
        entry = self._entry(arguments)
        return stages.Traced(entry.closed, arguments.dynamic_tree(), entry.out_tree, entry.name, arguments.donated)

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Traces and lowers the function for these arguments without running it."""
        kwargs.pop("_experimental_lowering_platform", None)
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forgets everything that was traced and compiled for this function."""
        self._fast.clear()
        self._cache().clear()

    _clear_cache = clear_cache

    def _cache_size(self) -> int:
        return len(self._cache())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        import types

        return types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._fun!r}>"

    def __reduce__(self) -> Any:
        return _rebuild, (self._fun, self._options)


def _rebuild(fun: Callable, options: Options) -> PjitFunction:
    return PjitFunction(fun, options)


def _pad(donated: tuple[bool, ...] | None, n: int) -> tuple[bool, ...] | None:
    return None if donated is None else (False,) * n + donated


def compile_closed(closed: ClosedJaxpr, name: str, donated: Sequence[bool] | None = None) -> Any:
    """The machine code of a program; compiled once for the program."""
    key = ("executable", tuple(donated or ()), tuple(map(id, closed.consts)), config.trace_context())
    found = closed.jaxpr.cache.get(key)
    if found is None:

        exact = donation(closed, donated, name).exact if donated else ()

        def build(program: ClosedJaxpr) -> Any:
            return backends.backend_compile_and_load(backends.get(), program, name=name, donated=exact)

        stateful = refs.has_refs(closed.jaxpr)
        found = refs.compile_with_contents(closed, build) if stateful else build(closed)
        if invalid_values.watching():
            found = _watched(found, closed, name, steps=not stateful and not donated)
        closed.jaxpr.cache[key] = found
    return found


def _watched(executable: Any, closed: ClosedJaxpr, name: str, steps: bool) -> Any:
    eqns = closed.jaxpr.eqns
    if len(eqns) == 1 and eqns[0].primitive is not jit_p:
        return invalid_values.Watched(executable, eqns[0].primitive.name)
    search = (lambda *args: invalid_values.run_in_steps(closed, args)) if steps else None
    return invalid_values.Watched(executable, f"jit({name})", search)


def run(executable: Any, leaves: Sequence[Any], donated: Sequence[bool] | None, closed: ClosedJaxpr) -> list[Any]:
    backend = backends.get()
    arrays = [x if type(x) is Array or type(x) is refs.Ref else backend.put(x, aval, None)
              for x, aval in zip(leaves, closed.in_avals, strict=True)]
    if not donated:
        return executable(*arrays)
    plan = donation(closed, donated, closed.jaxpr.debug_info.func_name)
    gone = plan.prepare(arrays)
    outs = executable(*arrays)
    for x in gone:
        x.delete()
    return outs


@jit_p.def_impl
def _jit_impl(*args: Any, jaxpr: ClosedJaxpr, name: str, donated_invars: Sequence[bool], **_: Any) -> list[Any]:
    donated = donated_invars if any(donated_invars) else None
    return run(compile_closed(jaxpr, name, donated), args, donated, jaxpr)


def _numbers(value: int | Sequence[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(int(v) for v in value)


def _strings(value: str | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _complete(fun: Callable, nums: Any, names: Any, what: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of parameters, each inferred from the other where the signature tells."""
    if nums is None and names is None:
        return (), ()
    numbers, strings = _numbers(nums), _strings(names)
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        return numbers, strings
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not takes_rest:
        for i in numbers:
            if not -len(positional) <= i < len(positional):
                raise ValueError(f"jitted function has {what}={numbers}, but only accepts {len(positional)} "
                                 "positional arguments.")
    if not takes_any_name:
        known = {p.name for p in parameters}
        for s in strings:
            if s not in known:
                raise ValueError(f"jitted function has invalid argnames {{{s!r}}} in {what.replace('nums', 'names')}. "
                                 f"Function does not take these args.Valid argnames: {sorted(known)}")
    if names is None:
        strings = tuple(positional[i].name for i in numbers
                        if -len(positional) <= i < len(positional)
                        and positional[i].kind is not inspect.Parameter.POSITIONAL_ONLY)
    elif nums is None:
        order = [p.name for p in positional]
        numbers = tuple(order.index(s) for s in strings if s in order)
    return numbers, strings


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> PjitFunction[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], PjitFunction[P, R]]: ...
def jit(fun: Any = NOT_GIVEN, /, *, in_shardings: Any = UNSPECIFIED, out_shardings: Any = UNSPECIFIED,
        static_argnums: int | Sequence[int] | None = None, static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Iterable[str] | None = None,
        keep_unused: bool = False, device: Any = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Compiles a function on its first call with arguments of a kind, and runs the machine code from then on.

    Args:
      fun: a pure function of arrays, scalars and containers of them. Without it, `jit(...)` is a decorator.
      static_argnums, static_argnames: arguments that are passed to `fun` as they are; each value is compiled
        for anew. They must be hashable. Names are inferred from numbers and the other way round.
      donate_argnums, donate_argnames: arguments whose memory the results may take; they are deleted by the call.
      keep_unused, inline, device, backend, in_shardings, out_shardings, compiler_options: as in JAX.

    Returns:
      A function of the same arguments, with `lower`, `trace`, `eval_shape` and `clear_cache`.

    Raises:
      TypeError: `fun` is not callable, or an argument is not an array. ValueError: numbers or names that
      the function does not take, or a static argument without a hash.
    """
    if fun is NOT_GIVEN:
        return lambda f: jit(f, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
                             static_argnames=static_argnames, donate_argnums=donate_argnums,
                             donate_argnames=donate_argnames, keep_unused=keep_unused, device=device, backend=backend,
                             inline=inline, compiler_options=compiler_options)
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")
    static_nums, static_names = _complete(fun, static_argnums, static_argnames, "static_argnums")
    donate_nums, donate_names = _complete(fun, donate_argnums, donate_argnames, "donate_argnums")
    both = set(static_nums) & set(donate_nums)
    if both:
        raise ValueError(f"static_argnums and donate_argnums cannot intersect, {static_argnums=} and {donate_argnums=}")
    options = Options(static_nums, static_names, donate_nums, donate_names, keep_unused, inline, in_shardings,
                      out_shardings, device, backend, compiler_options)
    return PjitFunction(fun, options)


def apply_primitive(primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
    """Runs a primitive with references among its arguments, or inside its programs."""
    avals = [get_aval(x) for x in args]
    key = (primitive, tuple(avals), backends.params_key(params), config.trace_context())
    closed = _primitives.get(key)
    if closed is None:
        def fun(*tracers: Any) -> list[Any]:
            out = primitive.bind(*tracers, **params)
            return list(out) if primitive.multiple_results else [out]

        closed = _primitives[key] = trace_to_jaxpr(fun, avals)
    outs = run(compile_closed(closed, primitive.name), args, None, closed)
    return outs if primitive.multiple_results else outs[0]


backends.apply_stateful = apply_primitive
_primitives: dict[Any, ClosedJaxpr] = {}


def fused(fun: Callable | None = None, *, static_argnames: Sequence[str] = ()) -> Any:
    """A library function that under a trace is what it consists of, and eagerly one compiled program."""
    if fun is None:
        return lambda f: fused(f, static_argnames=static_argnames)
    compiled = jit(fun, static_argnames=tuple(static_argnames))

    @functools.wraps(fun)
    def composite(*args: Any, **kwargs: Any) -> Any:
        return (compiled if state.trace is eval_trace else fun)(*args, **kwargs)

    return composite


def clear_caches() -> None:
    """Forgets all traced and compiled programs of this process."""
    _traced.clear()
    _primitives.clear()
