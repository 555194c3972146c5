"""One MLIR context for many programs of the oracle: loading the dialects takes longer than lowering a small program."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def one_context() -> Iterator[None]:
    """Meanwhile JAX, if it is imported, lowers all that it compiles in one context."""
    lowering = sys.modules.get("jax._src.interpreters.mlir")
    if hasattr(lowering, "make_ir_context"):
        with mock.patch.object(lowering, "make_ir_context", functools.cache(lowering.make_ir_context)):
            yield
    else:  # (under Styrax's name there is nothing to make)
        yield
