"""Each section of docs/contributing.md: its diff applies to a copy of the tree, and its commands pass there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = ("src", "tests", "docs", "tools", "pyproject.toml", "Makefile")
GUIDE = (ROOT / "docs" / "contributing.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S))


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


def run(command: list[str], tree: Path, given: str | None = None) -> str:
    """The output of a command in a tree, which must not fail."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(tree / "src"), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(command, cwd=tree, env=env, input=given, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree; compiled modules come along, so that nothing is compiled again."""
    for name in TREE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", SECTIONS)
def test_section(name, tree):
    (diff,), (commands,) = blocks(SECTIONS[name], "diff"), blocks(SECTIONS[name], "sh")
    run(["git", "apply", "-C1", "-"], tree, diff)
    for command in commands.strip().split("\n"):
        said = run(["bash", "-c", command], tree)
        assert " > " in command or re.search(r"\d+ passed", said)


def test_every_kind_of_change_has_its_section():
    assert len(SECTIONS) >= 7
