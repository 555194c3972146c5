"""A kernel specification: notebooks written for JAX, by the kernel "Python (Styrax)"."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path


def specification() -> dict[str, object]:
    """What Jupyter starts: IPython's kernel under the drop-in."""
    return {
        "argv": [sys.executable, "-m", "styrax", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python (Styrax)",
        "language": "python",
        "metadata": {"debugger": True},
    }


def install(args: list[str]) -> int:
    """`kernel install`: writes the specification where Jupyter looks for kernels. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m styrax kernel install", description=__doc__)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default)")
    where.add_argument("--sys-prefix", action="store_true", help="into the environment of this Python")
    where.add_argument("--prefix", help="into the environment at this path")
    parser.add_argument("--name", default="styrax", help="the name of the kernel")
    given = parser.parse_args(args)
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ModuleNotFoundError:
        print("No Jupyter here: pip install ipykernel", file=sys.stderr)
        return 1
    prefix = sys.prefix if given.sys_prefix else given.prefix
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(specification(), indent=1) + "\n")
        place = KernelSpecManager().install_kernel_spec(folder, given.name, user=prefix is None, prefix=prefix)
    print(f"Installed kernel {given.name} in {place}")
    return 0
