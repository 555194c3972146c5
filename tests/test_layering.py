"""Imports run one way, whether a file makes them when it is loaded or later; nothing imports JAX."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from styrax.core import hooks
from styrax.core.arrays import backends

ROOT = Path(__file__).parent.parent / "src" / "styrax"
FILES = sorted(ROOT.rglob("*.py"))

LIBRARIES = {"numpy", "nn", "random", "scipy", "ops", "image"}
FLOORS = {"core", "transforms", "lax"}
COMPILER = {"core", "compile"}
# folder (or module beside the folders) -> what its files may import besides it; `lazy`, `version` and
# `protocol_buffers` import nothing
MAY_IMPORT = {
    "core": set(),
    "transforms": {"core"},
    "lax": {"core", "transforms"},
    "compile": {"core"},
    "cpu": COMPILER,
    "xla": COMPILER,
    "processes": FLOORS,
    "parallel": FLOORS | {"processes"},
    "interpreters": FLOORS | {"extend"},
    "extend": FLOORS,
    "lazy": set(),
    "version": set(),
    "protocol_buffers": set(),
    **{name: FLOORS | LIBRARIES for name in LIBRARIES},
}
COMPILERS = {"compile", "cpu", "xla"}  # only their hooks know these
TOP = {p.relative_to(ROOT).parts[0].removesuffix(".py") for p in FILES} - MAY_IMPORT.keys()


def dotted(path: Path) -> str:
    parts = ["styrax", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(p): p for p in FILES}


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports at its top level or in functions, dotted; not those for type checkers."""
    package = ["styrax", *path.relative_to(ROOT).parts[:-1]]
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for a in node.names:
                yield f"{name}.{a.name}" if f"{name}.{a.name}" in MODULES else name
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        else:
            pending.extend(ast.iter_child_nodes(node))


@cache
def graph() -> dict[str, set[str]]:
    """Module -> the modules of the project that its file imports."""
    return {name: {m for m in imported(path) if m in MODULES and m != name} for name, path in MODULES.items()}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(v: str) -> None:
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            i = stack.index(v)
            if len(stack) - i > 1:
                found.append(sorted(stack[i:]))
            del stack[i:]

    for v in sorted(edges):
        if v not in number:
            visit(v)
    return found


def room(module: str) -> str:
    return (module.split(".") + [""])[1]


def test_every_folder_has_its_place():
    assert {p.name for p in ROOT.iterdir() if any(p.glob("*.py"))} <= MAY_IMPORT.keys() | TOP
    assert TOP >= {"compat", "experimental"}
    assert not TOP & (FLOORS | COMPILERS)


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_arrows(folder):
    allowed = MAY_IMPORT[folder] | {folder, "lazy", "version", "protocol_buffers"}
    wrong = [f"{name} imports {m}" for name, targets in graph().items() if room(name) == folder
             for m in sorted(targets) if room(m) not in allowed]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", sorted(TOP))
def test_only_hooks_know_the_compilers(folder):
    wrong = [f"{name} imports {m}" for name, targets in graph().items() if room(name) == folder
             for m in sorted(targets) if room(m) in COMPILERS]
    assert not wrong, "\n".join(wrong)


def test_no_circles():
    found = circles(graph())
    assert not found, "\n".join(map(str, found))


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_function_level_imports_count():
    """`cpu.client` imports `cpu.host_symbols` in a method, and nothing else imports it."""
    assert "styrax.cpu.host_symbols" in graph()["styrax.cpu.client"]
    assert "styrax.core.programs.lowering" not in graph()["styrax.lax.linalg.qr_factors"], "for type checkers only"


def test_hooks_are_one_table():
    """Each hook is there, is in the documentation's table with its provider, and is read somewhere below that."""
    rows = dict(line.strip("| ").split(" | ")[:2] for line in hooks.__doc__.splitlines() if line.startswith("| `"))
    given = {}
    for module, names in hooks.PROVIDERS.items():
        for name in names.split():
            hook = name.partition(":")[0]
            given[f"`{hook}`"] = f"`{module or 'styrax.' + hook}`"
    assert rows == given
    used = "\n".join(p.read_text() for p in FILES if p.stem != "hooks")
    for hook in hooks.__all__:
        assert getattr(hooks, hook) is not None
        assert f"hooks.{hook}" in used or f"hooks import {hook}" in used, hook


def strings_imported(path: Path) -> Iterator[str]:
    """Arguments of `import_module` that name a module of the project outright."""
    text = path.read_text()
    if "import_module" not in text and "__import__" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def test_no_import_hides_in_a_string():
    """Names of modules as strings: packages' indices of themselves, and the tables of hooks and backends."""
    wrong = [f"{dotted(p)}: {s}" for p in FILES for s in strings_imported(p)
             if s.startswith("styrax.") and not s.startswith(dotted(p) + ".")]
    assert not wrong, "\n".join(wrong)
    assert set(backends.modules.values()) <= MODULES.keys()


def test_no_jax_anywhere():
    wrong = []
    for path in FILES:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "jax" in text else ():
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else [])
            wrong += [f"{path.relative_to(ROOT)}: {n}" for n in names if n.split(".")[0] in ("jax", "jaxlib")]
    assert not wrong, "\n".join(wrong)


def test_modules_are_not_named_for_nothing():
    assert not [p for p in FILES if p.stem in ("utils", "util", "misc", "helpers", "common")]
