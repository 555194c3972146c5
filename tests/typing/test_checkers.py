"""Type checkers know what users write: a right program passes, and each mistake is found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"


def mypy(cache: Path, name: str) -> str:
    """What mypy says of a file, as a user runs it: strictly, with no settings of ours."""
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports",
         f"--cache-dir={cache}", HERE / name],
        capture_output=True, text=True, cwd=cache, env={**os.environ, "MYPYPATH": str(SOURCE)})
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


MISTAKES = {i for i, text in enumerate((HERE / "mistakes.py").read_text().splitlines(), 1) if text.startswith("jnp.")}


def test_mypy_right_program(cache):
    assert "Success" in (said := mypy(cache, "user_code.py")), said


def test_mypy_mistakes(cache):
    said = mypy(cache, "mistakes.py")
    assert {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", said)} == MISTAKES, said


def test_pyright(tmp_path):
    """As `pyright` does it, and editors that use it. (`basedpyright` is the one that brings its own Node.)"""
    names = ("user_code.py", "mistakes.py")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({
        "include": [str(HERE / name) for name in names], "extraPaths": [str(SOURCE)], "typeCheckingMode": "standard"}))
    run = subprocess.run([sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable,
                          "--project", tmp_path], capture_output=True, text=True)
    assert run.stdout, run.stderr
    said = json.loads(run.stdout)["generalDiagnostics"]
    found: dict[str, set[int]] = {name: set() for name in names}
    for entry in said:
        found[Path(entry["file"]).name].add(entry["range"]["start"]["line"] + 1)
    assert found == {"user_code.py": set(), "mistakes.py": MISTAKES}, run.stdout
