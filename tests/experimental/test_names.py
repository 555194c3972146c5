"""The public names of JAX's `experimental`, `example_libraries` and `scipy`, and the parameters of their functions.

The table is read off JAX where it is installed: a name counts when its module defines it or lists it. What is missing
stands in `LATER` with its reason, and is to be taken out of there when it comes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import pytest

PACKAGES = ("experimental", "example_libraries", "scipy")
# folders and modules that are no part of this: for other hardware, other frameworks, or not public
APART = ("pallas", "mosaic", "jax2tf", "sparse", "experimental.ffi", "_core", "serialization", "tensorstore_impl",
         "source_mapper.", "roofline.", "colocated_python.")

LATER = {
    **{f"experimental.rnn.{name}": "the rules of cuDNN's kernels" for name in (
        "lstm_bwd", "lstm_fwd", "rnn_abstract_eval", "rnn_bwd_abstract_eval", "rnn_bwd_p", "rnn_fwd_p")},
    "experimental.hijax.HiPspec": "types of one's own over meshes",
    "experimental.hijax.TransformedRef": "views of references",
    "experimental.EArray": "arrays of extended dtypes",
    "experimental.primal_tangent_dtype": "dtypes with another dtype for tangents",
}


def modules() -> list[str]:
    """The paths below `jax` of all modules of these packages that JAX can import here."""
    found = []
    for name in PACKAGES:
        package = importlib.import_module(f"jax.{name}")
        names = [m.name for m in pkgutil.walk_packages(package.__path__, f"jax.{name}.", onerror=lambda _: None)]
        for path in (f"jax.{name}", *names):
            short = path.removeprefix("jax.")
            if not any(a in short for a in APART):
                found.append(short)
    return sorted(found)


def imported(path: str) -> ModuleType | None:
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


HELPERS = {  # what modules of JAX import for themselves
    "Array", "ArrayLike", "Callable", "DeviceList", "Effect", "FlatTree", "HashableArray", "api_boundary", "attr_get",
    "cloudpickle", "custom_vjp", "debug_info", "make_callable", "map", "partial", "physical_sharding",
    "promote_dtypes_inexact", "ravel_pytree", "register_cache", "safe_map", "safe_zip", "sigmoid", "split_list",
    "subs_list", "tanh", "tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten",
    "treedef_is_leaf", "typeof", "unzip2", "use_cpp_class", "use_cpp_method", "weakref_lru_cache", "wraps", "zip",
    "register_pytree_node", "TYPE_CHECKING",
}


def names(module: ModuleType) -> dict[str, Any]:
    """A module's public names that it, or what it re-exports, defines in JAX."""
    found = {}
    for name, value in vars(module).items():
        origin = getattr(value, "__module__", None)
        if name.startswith("_") or name in HELPERS or isinstance(value, ModuleType):
            continue
        if isinstance(origin, str) and not origin.startswith(("jax", "None")):
            continue
        if isinstance(value, (int, str, bool, type(None))) and name not in ("BATCHING",):
            continue
        if origin is None and not isinstance(value, (dict, tuple)):
            continue
        found[name] = value
    return found


def parameters(function: Any) -> list[tuple[str, Any]] | None:
    """The names and kinds of a function's parameters, None for what has no signature."""
    if isinstance(function, type):
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind) for p in found]


TYPING = {"Any", "Sequence", "NamedTuple", "namedtuple", "annotations", "Union"}
CASES = [(path, name) for path in modules() if (module := imported(f"jax.{path}")) is not None
         for name in sorted(names(module)) if name not in TYPING]


def of(path: str) -> list[str]:
    return [name for p, name in CASES if p == path]


@pytest.mark.parametrize("path", sorted({path for path, _ in CASES}))
def test_names(path):
    ours = imported(f"styrax.{path}")
    if path in LATER and ours is None:
        return
    assert ours is not None, f"styrax.{path} does not import"
    missing = [n for n in of(path) if not hasattr(ours, n) and f"{path}.{n}" not in LATER]
    assert not missing, f"{path} lacks {' '.join(missing)}"
    theirs, differ = imported(f"jax.{path}"), []
    for name in of(path):
        want, got = parameters(getattr(theirs, name)), parameters(getattr(ours, name, None))
        if want is not None and got is not None and f"{path}.{name}" not in LATER and [n for n, _ in want] != [
                n for n, _ in got]:
            differ.append(f"{name}: {[n for n, _ in got]} for {[n for n, _ in want]}")
    assert not differ, "\n".join(differ)


@pytest.mark.parametrize("entry", sorted(LATER))
def test_what_is_to_come_is_missing(entry):
    """An entry of `LATER` that has come is to be taken out."""
    path, _, name = entry.rpartition(".")
    present = hasattr(imported(f"styrax.{path}"), name) or imported(f"styrax.{entry}") is not None
    assert not present, f"{entry} is there"
