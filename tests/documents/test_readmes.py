"""What the project's own documents name exists, and folders list their modules exactly."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import styrax

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "styrax"
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("benchmarks/**/README.md"),
                    *SOURCE.rglob("README.md")])
FOLDERS = sorted({p.parent for p in SOURCE.rglob("*.py")})
LISTED_FROM = 4  # modules from which a folder has a README
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
SUFFIXES = (".py", ".md", ".toml", ".txt", ".npz")


def modules(folder: Path) -> set[str]:
    files = {p.stem for p in folder.glob("*.py") if p.name != "__init__.py"}
    return files | {p.name + "/" for p in folder.iterdir() if p.is_dir() and any(p.glob("*.py"))}


def named(document: Path) -> list[str]:
    """What stands in backticks, code blocks apart."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", text)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[k:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def missing(document: Path) -> list[str]:
    out = []
    for entry in named(document):
        dotted = re.fullmatch(r"(?:styrax|jax|core|transforms|lax|numpy|compile|cpu|compat|parallel)(?:\.\w+)+", entry)
        # `jax` is the package under its other name; `jax._src` and what else only JAX has speaks of JAX
        if "/" in entry and re.fullmatch(r"[\w./-]+", entry) or re.fullmatch(r"[\w-]+", entry.removesuffix(
                Path(entry).suffix)) and entry.endswith(SUFFIXES):
            if entry != "script.py" and not any((base / entry).exists() for base in (ROOT, document.parent, SOURCE)):
                out.append(entry)
        elif entry.startswith("make "):
            if entry.split()[1] not in TARGETS:
                out.append(entry)
        elif dotted:
            inside = document.parent.relative_to(SOURCE.parent).parts if SOURCE in document.parents else ("styrax",)
            name = entry.removeprefix("styrax.").removeprefix("jax.")
            if name != "_src" and not any(resolves(f"{base}.{name}") for base in ("styrax", ".".join(inside))):
                out.append(entry)
    return out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_document_names_exists(document):
    assert missing(document) == []


def test_names_that_do_not_exist_are_found(tmp_path):
    document = tmp_path / "README.md"
    document.write_text("`make parity` `make test` `styrax.explain` `styrax.jit` `jax.numpy.sin` `core.nowhere.x` "
                        "`src/styrax/pjrt.py` `src/styrax/core` `other.py` `x.at[i]`\n```\n`styrax.no`\n```\n")
    assert missing(document) == ["make parity", "styrax.explain", "core.nowhere.x", "src/styrax/pjrt.py", "other.py"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(SOURCE.parent)))
def test_a_folder_lists_its_modules(folder):
    document = folder / "README.md"
    there = modules(folder)
    if not document.exists():
        assert len(there) < LISTED_FROM, f"{folder.name} has no README"
        return
    text = document.read_text()
    listed = re.findall(r"^- `([\w/]+)`: (.+)$", text.partition("\n## Modules\n")[2], re.M)
    if len(there) < LISTED_FROM and not listed:
        return
    assert len(listed) == len({name for name, _ in listed})
    assert {name for name, _ in listed} == there


def test_names_of_the_package_resolve():
    wrong = []
    for name in dir(styrax):
        try:
            getattr(styrax, name)
        except AttributeError:
            wrong.append(name)
    assert wrong == []
