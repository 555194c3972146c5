"""Looking into kernels: prints and checks."""

from __future__ import annotations

from ...core.settings import config
from ...core.types.typing import ArrayLike
from ...transforms import checkify, debugging

enable_debug_checks = config.states["jax_pallas_enable_debug_checks"]
enable_poison_buffers = config.states["jax_pallas_poison_buffers"]  # new buffers always hold NaN here


def debug_checks_enabled() -> bool:
    """Whether `debug_check` checks."""
    return bool(enable_debug_checks.value)


def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Prints values when the kernel runs.

    Args:
      fmt: a format string with a place `{}` for each value.
      args: arrays or scalars.
    """
    debugging.debug_print(fmt, *args)


def debug_check(condition: ArrayLike, message: str) -> None:
    """Checks a condition under `checkify` if `enable_debug_checks` is set, and does nothing otherwise.

    Args:
      condition: a boolean scalar.
      message: the message for when it is false.
    """
    if enable_debug_checks.value:
        checkify.check(condition, message, debug=True)
