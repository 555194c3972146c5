"""Functions together with transformations of them that are applied one after the other.

A `WrappedFun` is a function of flat arguments and a pile of transformations. A transformation may hold back a second
result (the structure of the outputs, say), which its caller reads after the call.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..core.programs.jaxpr import DebugInfo, no_debug_info


class StoreException(Exception):
    """A second result was read before the call or written twice."""


class Store:
    """A place for one value."""

    __slots__ = ("_value", "full")

    def __init__(self) -> None:
        self.full = False
        self._value: Any = None

    @property
    def val(self) -> Any:
        if not self.full:
            raise StoreException("the function has not been called yet")
        return self._value

    def store(self, value: Any) -> None:
        if self.full:
            raise StoreException("the function was called twice")
        self._value, self.full = value, True

    def reset(self) -> None:
        self._value, self.full = None, False

    def __bool__(self) -> bool:
        return self.full


class WrappedFun:
    """A function with transformations: call it with `call_wrapped`.

    `transforms` are pairs `(transformation, static arguments)`, the outermost first: a transformation is called as
    `transformation(inner function, [store,] *static arguments, *args)`.
    """

    __slots__ = ("__weakref__", "debug_info", "f", "f_transformed", "params", "stores", "transforms")

    def __init__(self, f: Callable, f_transformed: Callable,
                 transforms: Sequence[tuple[Callable, tuple[Hashable, ...]]],
                 stores: Sequence[Store | None], params: tuple, debug_info: DebugInfo):
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = tuple(transforms)
        self.stores = tuple(stores)
        self.params = params
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function through its transformations."""
        return self.f_transformed(*args, **kwargs)

    def wrap(self, transformation: Callable, static: tuple[Hashable, ...], store: Store | None) -> WrappedFun:
        """The function with one more transformation around it."""
        inner = self.f_transformed
        head = (inner, *static) if store is None else (inner, store, *static)
        return WrappedFun(self.f, functools.partial(transformation, *head),
                          ((transformation, static), *self.transforms),
                          (store, *self.stores), self.params, self.debug_info)

    def with_debug_info(self, debug_info: DebugInfo) -> WrappedFun:
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, debug_info)

    def __hash__(self) -> int:
        return hash((self.f, self.transforms, self.params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and (self.f, self.transforms, self.params) == (
            other.f, other.transforms, other.params)

    def __repr__(self) -> str:
        names = [getattr(t, "__name__", repr(t)) for t, _ in self.transforms]
        return f"Wrapped function:\n{' <- '.join([*names, self.__name__])}"


def wrap_init(f: Callable, params: dict[str, Any] | None = None, *, debug_info: DebugInfo | None = None) -> WrappedFun:
    """A function without transformations yet; `params` are passed to it by keyword."""
    call = functools.partial(f, **params) if params else f
    return WrappedFun(f, call, (), (), tuple(sorted((params or {}).items())), debug_info or no_debug_info)


def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Hashable) -> WrappedFun:
    """Puts `gen(f, *gen_static_args, *args)` around a function."""
    return fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(gen: Callable, fun: WrappedFun, *gen_static_args: Hashable, use_eq_store: bool = False,
                             unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """Puts `gen(f, store, *gen_static_args, *args)` around a function; it calls `store.store(second result)`.

    Returns the new function and a function that gives the second result after the call.
    """
    store = Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _generated(f: Callable, gen: Callable, *args: Any, **kwargs: Any) -> Any:
    running = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(running)
    return running.send(f(*inner_args, **inner_kwargs))


def _generated_with_aux(f: Callable, store: Store, gen: Callable, *args: Any, **kwargs: Any) -> Any:
    out, second = _generated(f, gen, *args, **kwargs)
    store.store(second)
    return out


def transformation(gen: Callable, fun: WrappedFun | None = None, *gen_static_args: Hashable) -> Any:
    """Puts a transformation around a function that is written as a generator: it yields the arguments for the
    function as `(args, kwargs)`, is sent the function's result, and yields its own. Without `fun`, a decorator."""
    if fun is None:
        return lambda fun, *static: transformation(gen, fun, *static)
    return fun.wrap(_generated, (gen, *gen_static_args), None)


def transformation_with_aux(gen: Callable, fun: WrappedFun | None = None, *gen_static_args: Hashable) -> Any:
    """As `transformation`, for generators whose last value is a pair: the result and a second result."""
    if fun is None:
        return lambda fun, *static: transformation_with_aux(gen, fun, *static)
    store = Store()
    return fun.wrap(_generated_with_aux, (gen, *gen_static_args), store), lambda: store.val


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The second result of whichever of two functions was called: `(whether it was the first, result)`."""
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both functions were called")


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Remembers the results of `call(wrapped function, *args)` for as long as the function lives."""
    caches: weakref.WeakKeyDictionary[Callable, dict] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Hashable) -> Any:
        from ..core.settings.flags import trace_context

        known = caches.setdefault(fun.f, {})
        key = fun.transforms, fun.params, args, trace_context()
        if key in known:
            result, stores = known[key]
            for mine, theirs in zip(fun.stores, stores, strict=True):
                if mine is not None and theirs is not None and theirs and not mine:
                    mine.store(theirs.val)
            return result
        result = call(fun, *args)
        known[key] = result, fun.stores
        return result

    cached.cache_clear = caches.clear  # type: ignore[attr-defined]
    return cached
