"""Profiles of instructions, as XLA takes them. The CPU compiler takes none."""

from __future__ import annotations

from pathlib import Path

from ..core.tracing.errors import JaxRuntimeError


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """The costs of instructions in the profile of a folder, as a message for XLA, which is empty where there are none.

    Raises:
      JaxRuntimeError: there is no such folder, or it is empty.
      TypeError: its name is no string.
    """
    if not isinstance(tensorboard_dir, str):
        raise TypeError(f"tensorboard_dir is the name of a folder, got {tensorboard_dir!r}")
    folder = Path(tensorboard_dir)
    if not folder.is_dir():
        raise JaxRuntimeError(f"NOT_FOUND: {tensorboard_dir}; No such file or directory")
    if not any(folder.iterdir()):
        raise JaxRuntimeError(f"NOT_FOUND: {tensorboard_dir} is empty")
    found = sorted(folder.rglob("*.profiled_instructions.pb"))
    return found[-1].read_bytes() if found else b""


__all__ = ["get_profiled_instructions_proto"]
