"""What the oracle does for its users in an interactive session, and tests need not wait for.

One MLIR context serves many programs: loading the dialects takes longer than lowering a small one. Errors keep the
frames of JAX: to tell these from others it asks the file system about each frame of each error."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def quick_oracle() -> Iterator[None]:
    """Meanwhile JAX, if it is imported, lowers all that it compiles in one context and leaves tracebacks alone."""
    lowering = sys.modules.get("jax._src.interpreters.mlir")
    if not hasattr(lowering, "make_ir_context"):  # (under Styrax's name there is nothing to make)
        yield
        return
    config = sys.modules["jax"].config
    old = config.jax_traceback_filtering
    with mock.patch.object(lowering, "make_ir_context", functools.cache(lowering.make_ir_context)):
        config.update("jax_traceback_filtering", "off")
        try:
            yield
        finally:
            config.update("jax_traceback_filtering", old)
