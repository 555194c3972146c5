"""Long work tells on a terminal what it is, and leaves no trace; elsewhere it is silent."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

import styrax as jax
from styrax.core.settings import progress


class Terminal(io.StringIO):
    """A terminal that says when something was written."""

    def __init__(self, tty=True):
        super().__init__()
        self.tty, self.written = tty, threading.Event()

    def isatty(self):
        return self.tty

    def write(self, text):
        super().write(text)
        self.written.set()
        return len(text)


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))  # pytest exchanges the real one
    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_a_compilation_is_named_and_wiped_out(terminal):
    def slow(x):
        assert terminal.written.wait(60)
        return x + 1

    assert jax.jit(slow)(1) == 2
    text = terminal.getvalue()
    assert text.startswith("\r\x1b[Ktracing slow (")
    assert text.endswith("\r\x1b[K")


def test_the_innermost_and_its_stage(terminal):
    with progress.shown("compiling outer, 3 equations"), progress.shown("compiling inner, 2 equations"):
        progress.stage = "slp"
        assert terminal.written.wait(60)
    assert "compiling inner, 2 equations: slp (" in terminal.getvalue()
    assert progress.stage == ""


def test_an_error_ends_it(terminal):
    with pytest.raises(ZeroDivisionError), progress.shown("f"):
        assert terminal.written.wait(60)
        1 / 0  # noqa: B018
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert not [t for t in threading.enumerate() if t.name == "styrax-progress"]


@pytest.mark.parametrize("stream", [None, Terminal(tty=False)], ids=["none", "file"])
def test_silent_elsewhere(monkeypatch, stream):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.shown("f"):
        assert not [t for t in threading.enumerate() if t.name == "styrax-progress"]
    assert stream is None or stream.getvalue() == ""


def test_a_dumb_terminal_is_silent(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with progress.shown("f"):
        assert not [t for t in threading.enumerate() if t.name == "styrax-progress"]


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX's")
def test_in_a_program():
    import pty

    program = """
import sys, time
from styrax.core.settings import progress
progress.AFTER = 0.01
import jax
def f(x):
    time.sleep(0.5)
    return x * 2
print(jax.jit(f)(3))
"""
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-m", "styrax", "-c", program], stdout=subprocess.PIPE, stderr=theirs,
                          env={**os.environ, "TERM": "xterm"}, timeout=120)
    os.close(theirs)
    told = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.stdout == b"6\n"
    assert "tracing f (" in told
    assert told.endswith("\r\x1b[K")
