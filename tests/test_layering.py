"""Imports run one way: core ← transforms ← lax ← libraries, core ← compile ← cpu; nothing imports JAX."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "styrax"

LIBRARIES = {"numpy", "nn", "random", "scipy", "image", "ops"}
# folder -> what its modules may import at their top level, besides themselves
MAY_IMPORT = {
    "core": set(),
    "transforms": {"core"},
    "lax": {"core", "transforms"},
    "compile": {"core"},
    "cpu": {"core", "compile"},
    "xla": {"core"},
    **{name: {"core", "transforms", "lax"} | LIBRARIES for name in LIBRARIES},
}


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports when it is loaded, as dotted names."""
    package = ["styrax", *path.relative_to(ROOT).parts[:-1]]
    tree = ast.parse(path.read_text())
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from (f"{name}.{a.name}" for a in node.names) if name == "styrax" else [name]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending.extend(ast.iter_child_nodes(node))


FILES = sorted(p for p in ROOT.rglob("*.py"))


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_arrows(folder):
    wrong = []
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if parts[0] != folder and parts[0] != f"{folder}.py":
            continue
        for name in imported(path):
            pieces = name.split(".")
            if pieces[0] == "styrax" and len(pieces) > 1:
                target = pieces[1]
                if target != folder and target in MAY_IMPORT and target not in MAY_IMPORT[folder]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_no_jax_anywhere():
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else [])
            wrong += [f"{path.relative_to(ROOT)}: {n}" for n in names if n.split(".")[0] in ("jax", "jaxlib")]
    assert not wrong, "\n".join(wrong)


def test_modules_are_not_named_for_nothing():
    assert not [p for p in FILES if p.stem in ("utils", "util", "misc", "helpers", "common")]
