"""What is shown of exceptions that nobody catches is no longer than under JAX: in scripts and in IPython."""

from __future__ import annotations

import json

import pytest

from .running import SOURCE, lines, run

SCRIPTS = {
    "operator": """
        import jax.numpy as jnp
        jnp.arange(3.0) + jnp.arange(4.0)
        """,
    "own": """
        import jax
        def f(x): return g(x)
        def g(x): raise ValueError("mine")
        jax.jit(jax.vmap(jax.grad(f)))(jax.numpy.ones(3))
        """,
    "cause": """
        import jax
        def f(x):
            try:
                return x.shape[3]
            except IndexError as error:
                raise TypeError("no such axis") from error
        jax.jit(f)(1.0)
        """,
    "argument": """
        import jax
        jax.jit(lambda x: x)("text")
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name, tmp_path):
    import textwrap

    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(SCRIPTS[name]))
    wanted, found = (run(str(path), plain=plain, JAX_TRACEBACK_FILTERING="auto") for plain in (True, False))
    assert wanted.returncode == found.returncode == 1
    last = [[line for line in done.stderr.splitlines() if not line.startswith(" ") and "Error: " in line]
            for done in (wanted, found)]
    assert [line.split(":")[0].rpartition(".")[2] for line in last[1]] == [
        line.split(":")[0].rpartition(".")[2] for line in last[0]]
    assert len(found.stderr.splitlines()) <= len(wanted.stderr.splitlines())
    assert str(SOURCE) not in found.stderr


@pytest.mark.ecosystem
def test_cells(tmp_path):
    pytest.importorskip("IPython")
    wanted, found = ({cell: (length, text) for cell, length, text in map(json.loads, lines(
        "-m", "tests.compat.cells", plain=plain, JAX_TRACEBACK_FILTERING="auto", IPYTHONDIR=str(tmp_path)))}
        for plain in (True, False))
    assert wanted.keys() == found.keys() and len(found) > 40
    assert {cell: text for cell, (length, text) in found.items() if length > wanted[cell][0]} == {}
