"""Profiles of instructions, as XLA takes them. The CPU compiler takes none."""

from __future__ import annotations

from pathlib import Path


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """The costs of instructions in the profile of a folder, as a message for XLA.

    Raises:
      FileNotFoundError: the folder has no profile of XLA.
    """
    found = sorted(Path(tensorboard_dir).rglob("*.profiled_instructions.pb"))
    if not found:
        raise FileNotFoundError(f"{tensorboard_dir}: there is no profile of instructions")
    return found[-1].read_bytes()


__all__ = ["get_profiled_instructions_proto"]
