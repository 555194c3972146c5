"""`debug.breakpoint`: a debugger at a place in a running program, with the variables of the functions that are
traced."""

from __future__ import annotations

import cmd
import inspect
import linecache
import pprint
import sys
import traceback
from collections.abc import Callable, Iterator
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

    __slots__ = ("code", "line", "locals", "scope")

    def __init__(self, frame: FrameType):
        self.code = frame.f_code
        self.line = frame.f_lineno
        self.locals: dict[str, Any] = dict(frame.f_locals)
        self.scope = frame.f_globals

    @property
    def filename(self) -> str:
        return self.code.co_filename

    def around(self, after: int) -> Iterator[str]:
        """The lines of the function around this one, which an arrow marks."""
        lines, first = linecache.getlines(self.filename), 1
        if not lines:
            return
        if self.code.co_name != "<module>":
            lines = inspect.getblock(lines[self.code.co_firstlineno - 1:])
            first = self.code.co_firstlineno
        at = self.line - first
        for i, text in enumerate("".join(lines).split("\n")):
            if at - after - 1 <= i <= at + after:
                yield ("->  " if i == at else "    ") + text


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
    program. Commands: `p expression`, `pp expression`, `u`, `d`, `l`, `w`, `c`, `q`, `help`.

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


class Debugger(cmd.Cmd):
    """The debugger on the command line."""

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0

    def run(self) -> None:
        self.cmdloop("Entering jdb:")

    def say(self, text: Any) -> None:
        print(text, file=self.stdout)

    def evaluate(self, text: str, shown: Callable[[Any], str]) -> None:
        frame = self.frames[self.at]
        try:
            self.say(shown(eval(text, frame.scope, frame.locals)))
        except Exception as error:
            self.say("*** " + traceback.format_exception_only(error)[-1].strip())

    def do_p(self, text: str) -> None:
        """p expression
        Prints the value of an expression."""
        self.evaluate(text, repr)

    def do_pp(self, text: str) -> None:
        """pp expression
        Prints the value of an expression over several lines."""
        self.evaluate(text, pprint.pformat)

    def default(self, line: str) -> None:
        self.do_p(line)

    def do_u(self, _: str) -> None:
        """u(p)
        To the function that called this one."""
        self.move(1, "At topmost frame.")

    def do_d(self, _: str) -> None:
        """d(own)
        To the function that this one called."""
        self.move(-1, "At bottommost frame.")

    def move(self, step: int, refusal: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
        else:
            self.say(refusal)
        self.show(2)

    def show(self, after: int) -> None:
        frame = self.frames[self.at]
        self.say("\n".join([f"> {frame.filename}({frame.line})", *frame.around(after)]))

    def do_l(self, _: str) -> None:
        """l(ist)
        Shows the function around the line."""
        self.show(5)

    def do_w(self, _: str) -> None:
        """w(here), bt
        Shows all functions, the innermost last."""
        self.say("Traceback:")
        for frame in reversed(self.frames):
            self.say(f'  File "{frame.filename}", line {frame.line}')
            self.say(f"    {linecache.getline(frame.filename, frame.line).strip() or '<no source>'}")

    def do_c(self, _: str) -> bool:
        """c(ont(inue))
        Goes on."""
        return True

    def do_q(self, _: str) -> None:
        """q(uit), exit
        Ends the program, as the end of the input does."""
        sys.exit(0)

    do_up, do_down, do_list, do_where, do_bt = do_u, do_d, do_l, do_w, do_w
    do_cont = do_continue = do_c
    do_quit = do_exit = do_EOF = do_q
