"""The CPU backend as it is asked for: the native runtime is made ready while the compiler's modules are loaded."""

from . import runtime

runtime.prepare()

from .client import backend  # noqa: E402

__all__ = ["backend"]
