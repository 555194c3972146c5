"""What the debugger of breakpoints answers, word for word as JAX's does."""

from __future__ import annotations

import io

import pytest

from tests.transforms.oracle import jax, styrax


def inner(j, y, **streams):
    j.debug.breakpoint(backend="cli", num_frames=2, **streams)
    return y * 2.0


def outer(j, x, **streams):
    z = x + 1.0
    return inner(j, z,
                 **streams)


def conversation(j, commands, transform):
    stdin, stdout = io.StringIO("".join(f"{c}\n" for c in commands)), io.StringIO()
    try:
        transform(j)(lambda x: outer(j, x, stdin=stdin, stdout=stdout))(j.numpy.float32(2))
        j.effects_barrier()
    except SystemExit as error:
        stdout.write(f"exit {error.code}")
    return stdout.getvalue()


EAGER = lambda j: lambda f: f
COMMANDS = {
    "go on": ["cont"],
    "values": ["p y", "y + 1", "pp {'a': y, 'b': [1] * 40}", "continue"],
    "errors": ["p 1/0", "p unknown", "p )", "p", "z = 1", "!y", "c"],
    "frames": ["l", "up", "p (x, z)", "list", "u", "down", "p y", "d", "c"],
    "places": ["bt", "w", "where", "c"],
    "again": ["p y", "", "", "c"],
    "nothing": ["", "c"],
    "names of commands": ["help", "c"],
}


@pytest.mark.parametrize("transform", [EAGER, lambda j: j.jit, lambda j: j.grad], ids=["eager", "jit", "grad"])
@pytest.mark.parametrize("name", COMMANDS)
def test_answers(name, transform):
    expected = conversation(jax, COMMANDS[name], transform)
    assert expected.startswith("Entering jdb:\n(jdb) ")
    assert conversation(styrax, COMMANDS[name], transform) == expected


@pytest.mark.parametrize("word", ["q", "quit", "exit", "EOF", ""])
def test_ways_to_leave(word):
    assert conversation(styrax, [word], EAGER) == conversation(jax, [word], EAGER)
