"""Functions of SciPy on arrays that are traced, differentiated, batched and compiled."""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from . import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

_submodules = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
               "spatial", "special", "stats")


def __getattr__(name: str) -> _Any:
    if name in _submodules:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module 'jax.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_submodules)
