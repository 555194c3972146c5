"""Executes the rows: see the package."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
import warnings

from . import SETUP, TABLE


def public_name(kind: type[BaseException], errors: object) -> str:
    return next(c.__name__ for c in kind.__mro__
                if c.__module__ == "builtins" or getattr(errors, c.__name__, None) is c)


def main() -> None:
    space: dict[str, object] = {}
    warnings.simplefilter("ignore")
    exec(SETUP, space)
    import jax.errors

    for family, programs in TABLE.items():
        for program in programs:
            code = compile(program, "<program>", "exec")
            found: list[str | int | None] = [None, 0, 0]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    exec(code, dict(space))
                except Exception as error:
                    frames = traceback.format_tb(error.__traceback__ and error.__traceback__.tb_next)
                    found = [public_name(type(error), jax.errors), len("".join(frames).splitlines()), len(frames)]
            print(json.dumps([family, program, *found]))


main()
