"""`python -m styrax doctor`: what there is to run programs on, and what is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np

from . import version
from .core import hooks
from .core.arrays import backends


def report() -> Iterator[str]:
    """Lines about this installation, its own backend and the plugins."""
    yield f"styrax {version.__version__} (JAX {version.JAX}), Python {sys.version.split()[0]}, NumPy {np.__version__}"
    try:
        yield f"cpu: {len(backends.get('cpu').devices())} device(s), {os.cpu_count()} processors"
    except Exception as error:
        yield f"cpu: does not work: {error}"
    yield from hooks.plugin_report()
    wanted = ",".join(hooks.platforms_wanted())
    try:
        yield f"programs run on {backends.get().platform}" + (f", as the settings say ({wanted})" if wanted else "")
    except RuntimeError as error:
        yield f"programs do not run: {error}"


def main() -> int:
    """Prints the report. Returns the exit status."""
    for line in report():
        print(line, flush=True)
    return 0
