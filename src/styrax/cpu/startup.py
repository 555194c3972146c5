"""The CPU backend as it is asked for: the native runtime is made ready while the modules of others are loaded."""

from . import runtime

runtime.prepare()

from . import kept_programs  # noqa: E402
from .client import backend  # noqa: E402

if kept_programs.expected():
    kept_programs.look_ahead()
else:  # the first program will be compiled
    from . import compilation  # noqa: F401

__all__ = ["backend"]
