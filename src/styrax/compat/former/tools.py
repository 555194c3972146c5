"""The set-up of hosted notebooks, where nothing is to be set up: devices are found when they are asked for."""

from __future__ import annotations

import sys

__path__: list[str] = []  # a package, for `import jax.tools.colab_tpu`
colab_tpu = sys.modules[__name__]


def setup_tpu(tpu_driver_version: str | None = None) -> None:
    """Does nothing."""


__all__ = ["colab_tpu", "setup_tpu"]
