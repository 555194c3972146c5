"""Names for parts of a program: the scopes that equations stand in."""

from __future__ import annotations

import threading
from typing import Any


class Scope:
    """A part of a program that has a name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.name == other.name  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class Transform(Scope):
    """A transformation that the scopes inside have gone through."""

    __slots__ = ()


class NameStack:
    """The scopes around an equation, the outermost first. Prints as `outer/inner`."""

    __slots__ = ("stack",)

    def __init__(self, stack: tuple[Scope, ...] = ()):
        self.stack = stack

    def extend(self, name: str) -> NameStack:
        """The stack with one more scope inside."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, name: str) -> NameStack:
        """The stack inside a transformation."""
        return NameStack((*self.stack, Transform(name)))

    def __add__(self, other: NameStack) -> NameStack:
        if not self.stack:
            return other
        return NameStack(self.stack + other.stack) if other.stack else self

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, index: slice) -> NameStack:
        found = self.stack[index]
        return NameStack(found) if found else empty

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NameStack) and self.stack == other.stack

    def __hash__(self) -> int:
        return hash(self.stack)

    def __str__(self) -> str:
        names: list[str] = []
        for entry in reversed(self.stack):
            if type(entry) is Transform:
                names = [f"{entry.name}({names[0]})" if names else f"{entry.name}()", *names[1:]]
            else:
                names = [entry.name, *names]
        return "/".join(names)

    def __repr__(self) -> str:
        return f"NameStack(stack={self.stack})"


empty = NameStack()


class _State(threading.local):
    stack: NameStack = empty


state = _State()


def current_name_stack() -> NameStack:
    """The scopes that are open on this thread."""
    return state.stack


class set_name_stack:
    """Context manager: other scopes are open inside."""

    __slots__ = ("before", "stack")

    def __init__(self, name_stack: NameStack):
        self.stack = name_stack

    def __enter__(self) -> NameStack:
        self.before = state.stack
        state.stack = self.stack
        return self.stack

    def __exit__(self, *_: Any) -> None:
        state.stack = self.before


def extend_name_stack(name: str) -> set_name_stack:
    """Context manager: one more scope is open inside."""
    return set_name_stack(state.stack.extend(name))


def transform_name_stack(name: str) -> set_name_stack:
    """Context manager: what is written inside has gone through a transformation."""
    return set_name_stack(state.stack.transform(name))


def reset_name_stack() -> set_name_stack:
    """Context manager: no scope is open inside."""
    return set_name_stack(empty)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope, or of none."""
    return empty.extend(name) if name else empty
