"""Public functions say what they take and give, as users see it in an editor, and what they do."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import styrax as jax
from styrax.core import hooks
from styrax.numpy import updates

# the share of parameters and results that may be anything
ALLOWED = 0.02
LOOSER = {"styrax.tree": 0.04}  # `static` hands what it is given to dataclasses
# JAX's modules import a package that is none of its requirements
NO_ORACLE = {"styrax.experimental.sparse.test_util", "styrax.experimental.roofline"}
# annotations that say nothing; `core.types.typing` has names for what takes anything on purpose (`PyTree`, `Function`)
LOOSE = {"Any", "object", "Object", "Callable", "typing.Any", "collections.abc.Callable"}
# NumPy's own functions under our names: their signatures and docstrings are NumPy's
FOREIGN = {"get_printoptions", "printoptions", "set_printoptions", "save", "savez"}


def public_functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a module that JAX's of that name has, too: what else it contains is its own affair."""
    home, oracle = importlib.import_module(module), importlib.import_module(module.replace("styrax", "jax", 1))
    for name in dir(oracle):
        there = getattr(oracle, name)
        if not name.startswith("_") and name not in FOREIGN and callable(there) and hasattr(home, name):
            value = getattr(home, name)
            alias = typing.get_origin(value) is not None  # a name for a type
            scalar = home is jax.numpy and hasattr(value, "dtype")
            if callable(value) and not (inspect.isclass(value) or isinstance(value, enum.Enum) or alias or scalar):
                yield name, value


def modules(name: str = "styrax") -> Iterator[str]:
    """The modules with public functions, of those that JAX has under the same names."""
    if next(public_functions(name), None) is not None:
        yield name
    oracle = importlib.import_module(name.replace("styrax", "jax", 1))
    for module in pkgutil.iter_modules(getattr(oracle, "__path__", ())):
        inner = f"{name}.{module.name}"
        if module.name.startswith("_") or inner in NO_ORACLE:
            continue
        try:
            importlib.import_module(inner)
            importlib.import_module(inner.replace("styrax", "jax", 1))
        except ModuleNotFoundError as error:  # of JAX's, some need packages that are not here
            if error.name != inner and f"{error.name}".split(".")[0] in ("styrax", "jax"):
                raise
        else:
            yield from modules(inner)


MODULES = list(modules())


def test_modules():
    assert {"styrax", "styrax.numpy", "styrax.scipy.stats.norm", "styrax.interpreters.ad", "styrax.extend.core",
            "styrax.experimental.checkify", "styrax.debug", "styrax.tree", "styrax.dtypes"} <= set(MODULES)


def is_loose(annotation: Any) -> bool:
    """Whether an annotation, as written, or one of the alternatives in it, says nothing."""
    if annotation is inspect.Parameter.empty:
        return True
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    alternatives, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in ")]")
        if character == "|" and not depth:
            alternatives.append("")
        else:
            alternatives[-1] += character
    return any(a.strip() in LOOSE for a in alternatives)


def annotations(name: str, function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name != "self":
            yield f"{name}({parameter.name})", parameter.annotation
    yield f"{name} ->", signature.return_annotation


@pytest.mark.parametrize("module", MODULES)
def test_precise(module):
    found = [a for name, function in public_functions(module) for a in annotations(name, function)]
    loose = [place for place, annotation in found if is_loose(annotation)]
    assert found
    assert len(loose) <= LOOSER.get(module, ALLOWED) * len(found), f"{len(loose)} of {len(found)}: {', '.join(loose)}"


@pytest.mark.parametrize("module", MODULES)
def test_annotations_resolve(module):
    for name, function in public_functions(module):
        target = inspect.unwrap(function)
        if not inspect.isfunction(target):
            target = type(target).__call__
        try:
            hints = typing.get_type_hints(target)
        except Exception as error:
            raise AssertionError(f"{module}.{name}: {error}") from error
        assert "return" in hints, name


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module):
    without = [name for name, function in public_functions(module) if not (inspect.getdoc(function) or "").strip()]
    assert not without, f"without a docstring: {', '.join(without)}"


@pytest.mark.parametrize(
    "written", ["Any", "object", "Callable", "Any | None", "None | Object", inspect.Parameter.empty, Any])
def test_loose(written):
    assert is_loose(written)


@pytest.mark.parametrize("written", ["ArrayLike", "Callable[..., Any]", "dict[str, Any] | None", "PyTree", "None", int])
def test_not_loose(written):
    assert not is_loose(written)


# -- methods of arrays: what type checkers read is what there is -------------------------------------
STUB = Path(importlib.import_module("styrax.core.arrays.array").__file__).with_name("array_methods.pyi")


def declared(name: str) -> dict[str, ast.FunctionDef]:
    """The methods of a class in the stub; for several of one name the last."""
    body = next(n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef) and n.name == name).body
    return {n.name: n for n in body if isinstance(n, ast.FunctionDef)}


def shape_of(function: Callable[..., Any]) -> list[tuple[str, str, str]]:
    """Name, kind and default of each parameter after the first."""
    return [(p.name, p.kind.name, "" if p.default is p.empty else repr(p.default))
            for p in list(inspect.signature(function).parameters.values())[1:]]


def shape_in(node: ast.FunctionDef) -> list[tuple[str, str, str]]:
    namespace: dict[str, Any] = {}
    node = ast.FunctionDef(node.name, node.args, [ast.Pass()], [], None, lineno=1, col_offset=0)
    source = ast.unparse(ast.fix_missing_locations(ast.Module([node], [])))
    exec("from __future__ import annotations\n" + source, namespace)
    return shape_of(namespace[node.name])


def listed(table: dict[str, str]) -> list[str]:
    return [entry.partition(":")[0] for names in table.values() for entry in names.split()]


def test_stub_of_arrays():
    stub = declared("ArrayMethods")
    own = set(vars(jax.Array))
    ours = set(listed(hooks.METHODS)) | set(listed(hooks.PROPERTIES))
    # declared by the class itself, or there to raise an error only
    elsewhere = {"item", "flat", "itemsize", "nbytes", *(
        f"__{name}__" for name in ("setitem", "delitem", "iter", "copy", "deepcopy"))}
    assert set(stub) == ours - elsewhere
    assert set(stub) <= own
    for name in set(stub) & set(listed(hooks.METHODS)):
        if not name.startswith("__"):
            assert shape_in(stub[name]) == shape_of(getattr(jax.Array, name)), name


def test_stub_of_updates():
    stub = declared("IndexedElements")
    there = {n for n in dir(updates.IndexedElements) if not n.startswith("_")} - {"array", "index"}
    assert set(stub) == there
    for name, node in stub.items():
        assert shape_in(node) == shape_of(getattr(updates.IndexedElements, name)), name


def test_methods_precise():
    every = [(name, getattr(jax.Array, name)) for name in listed(hooks.METHODS) if not name.startswith("__")]
    every += [(f"at[].{name}", getattr(updates.IndexedElements, name)) for name in declared("IndexedElements")]
    found = [a for name, function in every for a in annotations(name, function)]
    loose = [place for place, annotation in found if is_loose(annotation)]
    assert len(loose) <= 0.02 * len(found), ", ".join(loose)


# -- names that are found when they are first used: type checkers read a block of imports --------------
def imported(package: str) -> tuple[set[str], set[str]]:
    """What the block imports for type checkers, and what it lists in `__all__`."""
    path = Path(importlib.import_module(package).__file__)
    block = next(n for n in ast.parse(path.read_text()).body if isinstance(n, ast.If) and "CHECKING" in ast.unparse(n))
    names = {a.asname or a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    listed = next(n.value for n in block.body if isinstance(n, ast.Assign))
    return names, set(ast.literal_eval(listed))


def test_names_of_package():
    names, listed = imported("styrax")
    there = {n for n in jax.__all__} | {m for m in jax._MODULES if (Path(jax.__file__).parent / m).exists()
                                        or (Path(jax.__file__).parent / f"{m}.py").exists()}
    assert names == listed == there


def test_names_of_numpy():
    names, listed = imported("styrax.numpy")
    home = importlib.import_module("styrax.numpy")
    assert names == {*home.__all__, *home._SUBMODULES, "__array_api_version__", "__array_namespace_info__"}
    assert listed == {*home.__all__, *home._SUBMODULES}


# -- signatures: JAX's ------------------------------------------------------------------------------
# `einsum` has a function of JAX's as a default; `dot` takes the order of arguments that JAX has left, too, and
# the last two name what JAX takes by position alone.
UNLIKE = {"numpy.einsum", "lax.dot", "lax.mulhi", "lax.random_gamma_grad"}


def parameters(function: Callable[..., Any]) -> list[tuple[str, str, str]]:
    """Names, kinds and defaults. Names that cannot be used in a call do not count."""
    return [(p.name if p.kind is not p.POSITIONAL_ONLY else "", p.kind.name,
             "nothing" if " object at 0x" in repr(p.default) else repr(p.default))
            for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("module", [
    "numpy", "numpy.linalg", "flatten_util", "lax", "lax.linalg", "nn", "nn.initializers", "ops", "random",
    "scipy.linalg",
    "scipy.signal", "scipy.special", "scipy.stats", "scipy.stats.norm", "tree", "tree_util"])
def test_signatures_are_jax_s(module):
    oracle = importlib.import_module(f"jax.{module}")
    compared = 0
    for name, function in public_functions(f"styrax.{module}"):
        theirs = getattr(oracle, name, None)
        if theirs is None or inspect.isclass(theirs) or f"{module}.{name}" in UNLIKE:
            continue
        assert parameters(function) == parameters(theirs), name
        compared += 1
    assert compared
