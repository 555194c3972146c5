"""Running programs under `python -m styrax`, as children of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def environment(**extra: str) -> dict[str, str]:
    """Ours with these variables; flags of XLA are joined."""
    if "XLA_FLAGS" in extra:
        extra["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {extra['XLA_FLAGS']}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STYRAX_DROP", "PYTHONPATH"))}
    return {**env, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore", **extra}


def run(*args: str, cwd: Path | None = None, stdin: str | None = None, plain: bool = False,
        **extra: str) -> subprocess.CompletedProcess:
    """`python -m styrax args…` (or, `plain`, `python args…`) with its output captured."""
    command = [sys.executable, *([] if plain else ["-m", "styrax"]), *args]
    return subprocess.run(command, cwd=cwd, input=stdin, env=environment(**extra), capture_output=True, text=True,
                          timeout=600)


def lines(*args: str, **kwargs) -> list[str]:
    """The lines that a program prints; it must end well."""
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
