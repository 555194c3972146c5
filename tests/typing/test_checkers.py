"""Type checkers know what users write: a right program passes, and each mistake is found."""

from __future__ import annotations

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


def test_right_program(cache):
    assert "Success" in (said := mypy(cache, "user_code.py")), said


def test_mistakes(cache):
    said = mypy(cache, "mistakes.py")
    found = {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", said)}
    lines = (HERE / "mistakes.py").read_text().splitlines()
    expected = {i for i, text in enumerate(lines, 1) if text.startswith("jnp.")}
    assert found == expected, said
