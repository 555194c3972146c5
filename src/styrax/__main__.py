"""`python -m styrax script.py [args…]`, `-m module [args…]`, `-c code [args…]`: runs a program written for JAX."""

from __future__ import annotations

import sys

from .compat.finder import install
from .compat.launcher import USAGE, UsageError, run


def main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if args else 2
    install()
    try:
        return run(args)
    except UsageError as error:
        print(f"{error}\n{USAGE}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
