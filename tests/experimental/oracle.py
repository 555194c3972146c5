"""The same module of JAX and of ours."""

from __future__ import annotations

import importlib
from types import ModuleType

from tests.transforms.oracle import assert_same, assert_same_outcome, jax, styrax

__all__ = ["assert_same", "assert_same_outcome", "jax", "module", "styrax"]


def module(package: ModuleType, path: str) -> ModuleType:
    """`package.path`, imported."""
    return importlib.import_module(f"{package.__name__}.{path}")
