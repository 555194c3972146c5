"""`debug.breakpoint`: a debugger at a place in a running program, with the variables of the functions that are
traced."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
from types import FrameType
from typing import Any, TextIO

from ..core.tracing import source
from ..core.tracing.trace import valid_jaxtype
from ..core.trees import tree
from ..core.trees.registry import default_registry
from ..core.types.typing import PyTree
from .debugging import debug_callback


class Frame:
    """A function that was running when the breakpoint was traced: where it stood, and its variables."""

    __slots__ = ("filename", "line", "locals", "name", "scope")

    def __init__(self, frame: FrameType):
        code = frame.f_code
        self.filename = code.co_filename
        self.name = code.co_name
        self.line = frame.f_lineno
        self.locals: dict[str, Any] = dict(frame.f_locals)
        self.scope = frame.f_globals


def _user_frames(limit: int | None, filtered: bool) -> list[Frame]:
    frames: list[Frame] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (limit is None or len(frames) < limit):
        if not filtered or not source.is_ours(frame.f_code):
            frames.append(Frame(frame))
        frame = frame.f_back
    return frames


def _holds_arrays(value: Any) -> bool:
    """Whether a variable is a tree of arrays alone. Among all that functions on the stack know are containers of
    anything, also such as contain themselves: the first thing that is no array decides."""
    pending, seen, found = [value], set(), False
    while pending:
        item = pending.pop()
        try:
            parts = default_registry.flatten_one_level(item)
        except (TypeError, ValueError):  # keys of a dictionary that have no order
            return False
        if parts is not None:
            children = list(parts[0])
            if children and id(item) in seen:
                return False
            seen.add(id(item))
            pending += children
        elif valid_jaxtype(item):
            found = True
        else:
            return False
    return found


def breakpoint(*, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None,
               ordered: bool = False, token: PyTree = None, **kwargs: TextIO | None) -> None:
    """Stops the program here when it runs and opens a small debugger.

    It knows the variables of the functions that were being traced, with the values that they have in the running
    program. Commands: `p expression`, `pp expression`, `u`, `d`, `l`, `bt`, `c`, `q`, `help`.

    Args:
      backend: only "cli" is known.
      filter_frames: whether to leave our own functions out.
      num_frames: how many functions to keep, from the innermost; None for all.
      ordered: whether breakpoints come in the order of the program.
      kwargs: `stdin` and `stdout` of the debugger.

    Raises:
      ValueError: an unknown `backend`.
    """
    if backend not in (None, "cli"):
        raise ValueError(f"Unknown debugger backend {backend!r}; there is 'cli'")
    frames = _user_frames(num_frames, filter_frames)
    values, places = [], []
    for frame in frames:
        for name, value in frame.locals.items():
            if _holds_arrays(value):
                leaves, treedef = tree.tree_flatten(value)
                values.append(leaves)
                places.append((frame, name, treedef))

    def stop(*arrays: Any) -> None:
        for (frame, name, treedef), leaves in zip(places, arrays, strict=True):
            frame.locals[name] = tree.tree_unflatten(treedef, leaves)
        Debugger(frames, **kwargs).run()

    debug_callback(stop, *values, ordered=ordered)
    return token


class Quit(Exception):
    """The user has left the debugger for good."""


class Debugger(cmd.Cmd):
    """The debugger on the command line."""

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0
        self.quit = False

    def run(self) -> None:
        self.cmdloop("Entering jdb:")
        if self.quit:
            raise Quit("left the debugger with `q`")

    def say(self, text: Any) -> None:
        print(text, file=self.stdout)

    def evaluate(self, text: str) -> Any:
        frame = self.frames[self.at]
        return eval(text, frame.scope, frame.locals)

    def do_p(self, text: str) -> None:
        """p expression: prints its value"""
        try:
            self.say(repr(self.evaluate(text)))
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")

    def do_pp(self, text: str) -> None:
        """pp expression: prints its value over several lines"""
        try:
            self.say(pprint.pformat(self.evaluate(text)))
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")

    def default(self, line: str) -> None:
        self.do_p(line)

    def do_u(self, _: str) -> None:
        """u: to the function that called this one"""
        self.move(1)

    def do_d(self, _: str) -> None:
        """d: to the function that this one called"""
        self.move(-1)

    def move(self, step: int) -> None:
        if not 0 <= self.at + step < len(self.frames):
            self.say("*** no further function")
            return
        self.at += step
        self.do_l("")

    def do_l(self, _: str) -> None:
        """l: shows the source around the line"""
        frame = self.frames[self.at]
        self.say(f"> {frame.filename}({frame.line})")
        for number in range(max(1, frame.line - 5), frame.line + 6):
            text = linecache.getline(frame.filename, number)
            if text:
                self.say(f"{'->' if number == frame.line else '  '} {number:4d}  {text.rstrip()}")

    def do_bt(self, _: str) -> None:
        """bt: shows all functions"""
        for frame in reversed(self.frames):
            self.say(f'  File "{frame.filename}", line {frame.line}, in {frame.name}')

    def do_c(self, _: str) -> bool:
        """c: goes on"""
        return True

    def do_q(self, _: str) -> bool:
        """q: ends the program with an error"""
        self.quit = True
        return True

    def do_EOF(self, _: str) -> bool:
        return True

    def emptyline(self) -> bool:
        return False
