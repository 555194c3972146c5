"""Modules and functions are of a size that can be read at once, and no two modules go by one name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "styrax"
FILES = sorted(SOURCE.rglob("*.py"))
MODULE_LINES = 600
FUNCTION_LINES = 80  # docstrings and literals of more than ten lines, which are data, apart
TABLE_LINES = 10

LONG_MODULES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()
GIVEN_NAMES = {"__init__", "__main__"}  # by Python
# Broadcasting by NumPy's rules, and by `lax`'s explicit ones: either is what the word means in its room.
SHARED_NAMES = {"broadcasting"}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a file with its lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, lines(node) - sum(map(lines, data_of(node)))


def lines(node: ast.stmt | ast.expr) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def data_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt | ast.expr]:
    """The docstring of a function and its outermost long literals."""
    pending: list[ast.AST] = list(function.body)
    if ast.get_docstring(function, clean=False) is not None:
        yield function.body[0]
        pending = pending[1:]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Constant)) and lines(node) > TABLE_LINES:
            yield node
        else:
            pending.extend(ast.iter_child_nodes(node))


def test_modules_are_short():
    long = {str(p.relative_to(SOURCE)) for p in FILES if len(p.read_text().splitlines()) > MODULE_LINES}
    assert long == LONG_MODULES


def test_functions_are_short():
    long = {f"{p.relative_to(SOURCE)}: {name}" for p in FILES for name, size in functions(p) if size > FUNCTION_LINES}
    assert long == LONG_FUNCTIONS


def named_by_jax(path: Path) -> bool:
    """Whether a module is the one that JAX has by this name, is a view of one of JAX's internals,
    or belongs to a library of its own in `experimental`."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    home = Path(find_spec("jax").origin).parent  # type: ignore[union-attr,arg-type]
    public = home.joinpath(*parts)
    elsewhere = parts[0] in ("compat", "experimental") or len(parts) == 1
    return elsewhere or public.with_suffix(".py").exists() or public.is_dir()


def test_no_two_modules_have_one_name():
    homes = defaultdict(list)
    for path in FILES:
        if path.stem not in GIVEN_NAMES and not named_by_jax(path):
            homes[path.stem].append(str(path.relative_to(SOURCE)))
    assert {name for name, paths in homes.items() if len(paths) > 1} == SHARED_NAMES


def test_lengths_leave_out_docstrings_and_tables(tmp_path):
    table = ",\n".join(map(str, range(20)))
    path = tmp_path / "module.py"
    path.write_text(f'def f(x):\n    """One.\n\n    Two.\n    """\n    t = [\n{table}]\n    return t, (x,\n    x)\n')
    assert list(functions(path)) == [("f", 3)]
