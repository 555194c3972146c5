"""The drop-in in processes that a program starts.

Children are told by the environment: `STYRAX_DROP_IN=1`, and a folder at the head of `PYTHONPATH` whose
`sitecustomize` Python runs when it starts. That module installs the finder, which imports nothing until someone
asks for `jax`, and passes on to the `sitecustomize` that it hides.
"""

from __future__ import annotations

import os

VARIABLE = "STYRAX_DROP_IN"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def prepare_children() -> None:
    """Sets the environment so that Python processes started from here on resolve `jax` to Styrax."""
    os.environ[VARIABLE] = "1"
    path = os.environ.get("PYTHONPATH", "")
    folders = [p for p in path.split(os.pathsep) if p] if path else []
    if FOLDER not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, *folders])
