"""Flags: read once from the environment, changed globally or for one thread and one block.

Every flag is one row of ``_ROWS`` and one ``State`` object. A flag has a global value and, inside a
``with`` block, a value of the current thread. Flags that change what a trace produces are marked
``TRACED``; their values together are ``trace_context()``, a part of the key of every trace cache.
"""

from __future__ import annotations

import enum
import os
import threading
from collections.abc import Callable, Hashable
from typing import Any

from ..arrays import backends
from ..arrays.devices import Device


class NumpyDtypePromotion(enum.StrEnum):
    """How arrays of different dtypes are combined implicitly."""

    STANDARD = "standard"
    STRICT = "strict"


class ExplicitX64Mode(enum.Enum):
    """What asking for a 64-bit dtype by name does while 64-bit types are off."""

    WARN = 1
    ERROR = 2
    ALLOW = 3


class CompilerEffortLevel(enum.IntEnum):
    """How much time compilers are to take: for the options `optimization_level` and `memory_fitting_level` of `jit`,
    and for the flags of these names. The numbers are XLA's; a level is found by its name as well."""

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: object) -> CompilerEffortLevel | None:
        return cls.__members__.get(value) if isinstance(value, str) else None


class Inline(enum.Enum):
    """Whether the operations of a `jit` function stand in place of its calls, for the option `inline` of `jit`."""

    NEVER = "never"  # a call, of a function of its own
    AUTO = "auto"  # a call, which compilers may inline
    ALWAYS = "always"  # the operations, already where the call is traced

    def __bool__(self) -> bool:
        return self is Inline.ALWAYS


class LegacyPrngKeyState(enum.StrEnum):
    """What happens when a raw ``uint32`` key is used where a typed key is expected."""

    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"


class RuntimeTracebackMode(enum.StrEnum):
    """How much of the Python traceback is sent along with a program."""

    OFF = "off"
    ON = "on"
    FULL = "full"


_MISSING = object()
_NO_DEFAULT: Any = object()
_TRUE = frozenset(("y", "yes", "t", "true", "on", "1"))
_FALSE = frozenset(("n", "no", "f", "false", "off", "0"))


def parse_truth(text: str, where: str) -> bool:
    """Reads ``text`` as a truth value; ``where`` names the variable in the error message."""
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError(f"invalid truth value {text!r} for environment {where!r}")


class TraceContext(tuple):
    """The values of all flags that tracing depends on, equal to itself alone: a key that costs nothing to hash."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class _Local(threading.local):
    """Values that hold for one thread. Class attributes are the defaults of a new thread."""

    overrides: dict[State, Any] | None = None
    context: TraceContext | None = None
    epoch: int = -1


_local = _Local()
_lock = threading.Lock()
_epoch = 0  # counts changes of global values of traced flags
_traced: list[State] = []
_contexts: dict[tuple, TraceContext] = {}


def trace_context() -> TraceContext:
    """The values of all flags that tracing depends on, interned: equal values are the same object."""
    local = _local
    if local.epoch == _epoch and local.context is not None:
        return local.context
    epoch = _epoch
    overrides = local.overrides or {}
    values = tuple([overrides.get(s, s._global) for s in _traced])
    context = _contexts.get(values)
    if context is None:
        if len(_contexts) > 4096:
            _contexts.clear()
        context = _contexts.setdefault(values, TraceContext(values))
    local.context = context
    local.epoch = epoch
    return context


def traced_flags() -> tuple[State, ...]:
    """The flags whose values a `TraceContext` holds, in its order."""
    return tuple(_traced)


class State:
    """One flag: ``flag.value`` reads it, ``with flag(value):`` sets it for this thread and block."""

    __slots__ = (
        "_default", "_global", "_hooks", "_parse", "_scoped_default", "_traced", "help", "kind", "name",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        default: Any,
        parse: Callable[[Any], Any] | None = None,
        traced: bool = False,
        scoped_default: Any = _NO_DEFAULT,
        kind: Any = None,
        help: str = "",
    ):
        self.name = name
        self._default = self._global = default
        self._parse = parse
        self._traced = traced
        self._scoped_default = scoped_default
        self._hooks: tuple[Callable[[Any], None], ...] = ()
        self.kind = kind
        self.help = help
        if traced:
            global _epoch
            with _lock:
                _traced.append(self)
                _epoch += 1

    @property
    def value(self) -> Any:
        """The value in force for the current thread."""
        overrides = _local.overrides
        if overrides:
            value = overrides.get(self, _MISSING)
            if value is not _MISSING:
                return value
        return self._global

    def parse(self, value: Any) -> Any:
        """Checks and converts ``value``; raises ``ValueError`` where it is not allowed."""
        return value if self._parse is None else self._parse(value)

    def get_global(self) -> Any:
        """The value for threads that have not set their own."""
        return self._global

    def set_global(self, value: Any) -> None:
        """Sets the value for all threads."""
        global _epoch
        value = self.parse(value)
        with _lock:
            self._global = value
            if self._traced:
                _epoch += 1
        for hook in self._hooks:
            hook(self.value)

    def get_local(self) -> Any:
        """This thread's own value, or ``UNSET``."""
        overrides = _local.overrides
        return overrides.get(self, UNSET) if overrides else UNSET

    def set_local(self, value: Any) -> None:
        """Sets this thread's own value; ``UNSET`` gives the global one back its force."""
        self.swap_local(value)

    def swap_local(self, value: Any) -> Any:
        """Like ``set_local``; returns what ``get_local`` gave before."""
        local = _local
        overrides = local.overrides
        if overrides is None:
            overrides = local.overrides = {}
        before = overrides.get(self, UNSET)
        if value is UNSET:
            overrides.pop(self, None)
        else:
            overrides[self] = value
        if self._traced:
            local.context = None
        for hook in self._hooks:
            hook(self.value)
        return before

    def fix(self, message: str) -> None:
        """Refuses other values from now on, with a RuntimeError."""
        value = self._global

        def refuse(given: Any) -> Any:
            if given != value:
                raise RuntimeError(message)
            return value

        self._parse = refuse

    def add_hook(self, hook: Callable[[Any], None]) -> None:
        """Has ``hook(value)`` called now and after every change."""
        self._hooks = (*self._hooks, hook)
        hook(self.value)

    def __call__(self, new_val: bool | int | float | str | enum.Enum | Device | None = _NO_DEFAULT
                 ) -> Setting:
        value: Any = new_val
        if value is _NO_DEFAULT:
            value = self._scoped_default
            if value is _NO_DEFAULT:
                short = self.name.removeprefix("jax_")
                raise TypeError(
                    f"Context manager for {short} config option requires an argument representing the new "
                    "value for the config option."
                )
        return Setting(self, self.parse(value))

    def __bool__(self) -> bool:
        raise TypeError(
            "bool() not supported for instances of type 'State' (did you mean to use 'State.value' instead?)"
        )

    def __repr__(self) -> str:
        return f"<config option {self.name}={self.value!r}>"


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()


class Setting:
    """``with setting:`` or ``@setting``: a flag has a value in this thread for a while."""

    __slots__ = ("_before", "_state", "_value")

    def __init__(self, state: State, value: Any):
        self._state = state
        self._value = value
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(self._state.swap_local(self._value))

    def __exit__(self, *exc: object) -> None:
        self._state.swap_local(self._before.pop())

    def __call__(self, fun: Callable) -> Callable:
        import functools

        state, value = self._state, self._value

        @functools.wraps(fun)
        def with_setting(*args, **kwargs):
            before = state.swap_local(value)
            try:
                return fun(*args, **kwargs)
            finally:
                state.swap_local(before)

        return with_setting


class UserContext:
    """A value of one's own that functions traced by ``jit`` may read and that recompiles them."""

    __slots__ = ("_state",)

    def __init__(self, default_value: Any = None):
        self._state = State("user_context", default_value, traced=True)

    @property
    def value(self) -> Any:
        return self._state.value

    def get_global(self) -> Any:
        return self._state.get_global()

    def set_global(self, value: Any) -> None:
        self._state.set_global(value)

    def __call__(self, value: Any) -> Setting:
        return Setting(self._state, value)


def make_user_context(default_value: Hashable = None) -> UserContext:
    """Makes a context value: ``with ctx(v):`` sets it, ``ctx.value`` reads it.

    The value must be hashable; it is part of every trace cache's key.
    """
    return UserContext(default_value)


# Parsers of values. Each takes what the user gave and returns what is stored.


def _bool(name: str) -> Callable[[Any], bool]:
    def parse(value: Any) -> bool:
        if type(value) is bool:
            return value
        if isinstance(value, str):
            return parse_truth(value, name.upper())
        return bool(value)

    return parse


def _number(kind: type, name: str, optional: bool) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value is None and optional:
            return None
        if isinstance(value, str):
            return kind(value)
        if not isinstance(value, (int, kind)):
            raise ValueError(
                f"new {kind.__name__} config value for {name} must be of type {kind}, got {value!r}"
            )
        return kind(value)

    return parse


def _string(name: str, optional: bool) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if (value is None and optional) or isinstance(value, (str, os.PathLike)):
            return value if value is None else os.fspath(value)
        raise ValueError(
            f"new string config value must be None or of type str, got {value} of type {type(value)}."
        )

    return parse


def _choice(values: tuple[str, ...], optional: bool) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, CompilerEffortLevel):
            value = value.name
        if (value is None and optional) or (type(value) is str and value in values):
            return value
        either = "None or in" if optional else "in"
        given = f"{value} of type {type(value)}"
        raise ValueError(f"new enum value must be {either} {list(values)}, got {given}.")

    return parse


def _member(cls: type[enum.Enum]) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and not issubclass(cls, str):
            try:
                return cls[value.upper()]
            except KeyError:
                pass
        elif not isinstance(value, str):
            raise TypeError(f"new enum value must be an instance of {cls}, got {value!r} of type {type(value)}.")
        return cls(value)

    return parse


def device_or_platform(value: Any) -> Any:
    if value is None or hasattr(value, "platform") or (isinstance(value, str) and value in backends.platforms()):
        return value
    if value in ("gpu", "tpu"):
        backends.get(value)  # says that there is none
    raise ValueError(
        "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a "
        f"platform name string like 'cpu' or 'gpu', got: {value!r}"
    )


def optional_choice(*choices: str) -> Callable[[Any], Any]:
    """The parser of flags that are one of these or None."""
    return _choice(choices, True)


def parser_of(name: str, kind: Any, optional: bool) -> Callable[[Any], Any] | None:
    if kind is bool:
        return _bool(name)
    if kind is int or kind is float:
        return _number(kind, name, optional)
    if kind is str:
        return _string(name, optional)
    if isinstance(kind, tuple):
        return _choice(kind, optional)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _member(kind)
    return kind


def flag(name: str, kind: Any, default: Any, traced: bool) -> State:
    parse = parser_of(name, kind, default is None)
    text = os.environ.get(name.upper())
    state = State(name, default, parse, traced, True if kind is bool else _NO_DEFAULT, kind)
    if text is not None and parse is not None:
        if kind is not bool:
            text = text if text or not state._default else state._default
        try:
            state._global = parse(text)
        except ValueError:
            if kind is bool:
                raise
            raise ValueError(f'Invalid value "{text}" for JAX flag {name}') from None
    return state
