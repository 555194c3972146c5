"""Tests of `lax` that run primitives eagerly use our own compiler, or XLA:CPU where that is absent."""

from __future__ import annotations

from tests.lax.harness import ENGINES

if "cpu" not in ENGINES:
    from tests import xla_cpu

    xla_cpu.install()
