"""`dir` of a module has what can be asked of it, also what is loaded only then (completion in notebooks goes by it);
modules inside apart, which are there once somebody has imported them."""

import importlib
import inspect
import subprocess
import sys

import pytest

MODULES = ["", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random",
           "tree_util", "scipy", "scipy.linalg", "scipy.signal", "scipy.special", "scipy.stats", "scipy.sparse.linalg",
           "experimental", "extend.core.primitives", "interpreters.mlir", "interpreters.ad", "interpreters.batching",
           "sharding", "image"]
ASK = """
import importlib, sys
module = importlib.import_module(sys.argv[1])
listed = set(dir(module))
print([name for name in sys.argv[2].split() if hasattr(module, name) and name not in listed])
"""


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_has_is_listed(name):
    real = importlib.import_module("jax." * bool(name) + name or "jax")
    names = " ".join(n for n in dir(real) if not n.startswith("_") and not inspect.ismodule(getattr(real, n)))
    ours = ".".join(filter(None, ("styrax", name)))
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", ASK, ours, names], capture_output=True, text=True,
                           check=True)  # of its own: here others have loaded much already
    assert found.stdout.strip() == "[]"


def test_what_is_deprecated_is_not_listed():
    """Who asks a module for all that it lists is not warned."""
    code = "import styrax.scipy.special as s; s.erf; print([n for n in ('lpmn', 'lpmn_values') if n in dir(s)])"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          check=True).stdout.strip() == "[]"
