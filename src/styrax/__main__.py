"""`python -m styrax script.py [args…]`, `-m module [args…]`, `-c code [args…]`: runs a program written for JAX."""

from __future__ import annotations

import runpy
import sys

from .compat import install

USAGE = "usage: python -m styrax script.py [args...] | -m module [args...] | -c code [args...]"


def main() -> int:
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if args else 2
    install()
    if args[0] == "-c":
        if len(args) < 2:
            print("argument expected for the -c option\n" + USAGE, file=sys.stderr)
            return 2
        sys.argv = ["-c", *args[2:]]
        sys.path[0] = ""
        exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    elif args[0] == "-m":
        if len(args) < 2:
            print("argument expected for the -m option\n" + USAGE, file=sys.stderr)
            return 2
        sys.argv = args[1:]
        sys.path[0] = ""
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    else:
        import os

        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        runpy.run_path(args[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
