"""Run by Python at the start of a process whose parent runs under Styrax's drop-in: see `compat.processes`."""

import os
import sys


def _install():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]  # nobody else should find this folder
    if os.environ.get("STYRAX_DROP_IN") == "1" and sys.version_info >= (3, 11):
        import importlib.util

        root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
        if importlib.util.find_spec("styrax") is None:  # the parent had it on a path of its own
            sys.path.append(root)
        from styrax.compat.finder import install

        install(children=False)
    # the module of this name that this one hides
    mine = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


_install()
