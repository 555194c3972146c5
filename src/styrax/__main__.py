"""`python -m styrax …`: Python for programs written for JAX. See `compat.launcher`."""

from __future__ import annotations

import sys

from .compat.finder import install
from .compat.launcher import USAGE, UsageError, run


def main(args: list[str]) -> int:
    if args and args[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    install()
    try:
        return run(args)
    except UsageError as error:
        print(f"{error}\n{USAGE}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
