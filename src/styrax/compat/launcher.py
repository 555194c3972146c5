"""Runs a script, module or piece of code as `python` itself would, in a `__main__` of its own; or Python itself."""

from __future__ import annotations

import linecache
import os
import signal
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

USAGE = """usage: python -m styrax [option] ... [-c code | -m module | script.py | -] [args...]
       python -m styrax kernel install [--user | --sys-prefix | --prefix PATH] [--name NAME]
       python -m styrax doctor

Runs a program written for JAX: `import jax` and its submodules resolve to Styrax. Without a program: interactively.
The options are Python's (-i, -X, -W, -V, ...)."""


class UsageError(Exception):
    """The command line is not understood."""


def run(args: list[str]) -> int:
    """Runs what the arguments name, as `python` does: `sys.argv`, `sys.path`, `__main__`, tracebacks and exit codes.

    Returns the exit status. Raises SystemExit where the program does, UsageError for arguments without sense.
    """
    if not args:
        return interpreter([]) if sys.stdin is not None and sys.stdin.isatty() else stdin([], "")
    first, rest = args[0], args[1:]
    if first in ("-c", "-m"):
        if not rest:
            raise UsageError(f"Argument expected for the {first} option")
        return code(rest[0], rest[1:]) if first == "-c" else module(rest[0], rest[1:])
    if first == "-":
        return stdin(rest)
    if first.startswith("-"):
        return interpreter(args)
    if first == "kernel" and rest[:1] == ["install"] and not os.path.exists(first):
        from .kernel import install

        return install(rest[1:])
    if first == "doctor" and not rest and not os.path.exists(first):
        from ..doctor import main

        return main()
    return script(first, rest)


def interpreter(args: list[str]) -> NoReturn:
    """`python args…` as a process in place of this one, which the environment tells of the drop-in: see `processes`.

    Raises UsageError for options that make Python ignore its environment or `site`.
    """
    deaf = _given_flags(args) & {"I", "E", "S"}
    if deaf:
        raise UsageError(f"With -{min(deaf)} Python cannot be told of the drop-in: call styrax.compat.install()")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *args])


def _given_flags(args: list[str]) -> set[str]:
    """The letters of the options that stand before the program."""
    found: set[str] = set()
    rest = iter(args)
    for arg in rest:
        if not arg.startswith("-") or arg == "-":
            break
        if arg.startswith("--"):
            continue
        for at, letter in enumerate(arg[1:], 2):
            found.add(letter)
            if letter in "cm":
                return found
            if letter in "XW":
                if at == len(arg):  # its value is the next argument
                    next(rest, None)
                break
    return found


def code(text: str, args: list[str]) -> int:
    """`python -c text args…`"""
    sys.argv = ["-c", *args]
    _first_path("")
    compiled = compile(text, "<string>", "exec", dont_inherit=True)
    if sys.version_info >= (3, 13):  # from here on tracebacks show the lines of such code
        linecache.cache["<string>"] = (len(text), None, [line + "\n" for line in text.splitlines()], "<string>")
    return _guard(lambda: _execute(compiled, _fresh_main()))


def module(name: str, args: list[str]) -> int:
    """`python -m name args…`"""
    import runpy

    sys.argv = ["-m", *args]
    _first_path(os.getcwd())
    _fresh_main()
    # the function that the interpreter itself calls for -m; it fills in sys.argv[0] and __main__
    return _guard(lambda: runpy._run_module_as_main(name))  # type: ignore[attr-defined]


def stdin(args: list[str], name: str = "-") -> int:
    """`python - args…`, or `python < program` with the name "": the program is read from standard input."""
    sys.argv = [name, *args]
    _first_path("")
    text = sys.stdin.read()
    return _guard(lambda: _execute(compile(text, "<stdin>", "exec", dont_inherit=True), _fresh_main()))


def script(path: str, args: list[str]) -> int:
    """`python path args…`; the path may be a file, or a folder or archive that contains `__main__.py`."""
    sys.argv = [path, *args]
    if os.path.isdir(path) or _is_archive(path):
        import runpy

        if sys.flags.safe_path:
            sys.path.insert(0, os.path.abspath(path))
        else:
            sys.path[0] = os.path.abspath(path)
        _fresh_main()
        return _guard(lambda: runpy._run_module_as_main("__main__", False))  # type: ignore[attr-defined]
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}",
              file=sys.stderr)
        return 2
    _first_path(os.path.dirname(os.path.realpath(path)))
    main = _fresh_main()
    # since Python 3.9 an absolute path, whatever was typed
    main.__file__ = absolute = os.path.abspath(path)
    main.__cached__ = None  # type: ignore[attr-defined]
    if absolute.endswith(".pyc"):
        from importlib.machinery import SourcelessFileLoader

        main.__loader__ = loader = SourcelessFileLoader("__main__", absolute)
        return _guard(lambda: _execute(loader.get_code("__main__"), main))
    from importlib.machinery import SourceFileLoader

    main.__loader__ = SourceFileLoader("__main__", absolute)
    return _guard(lambda: _execute(compile(source, absolute, "exec", dont_inherit=True), main))


def _is_archive(path: str) -> bool:
    import zipfile

    return zipfile.is_zipfile(path) if os.path.isfile(path) else False


def _first_path(folder: str) -> None:
    """Replaces what `python -m` put at the head of the search path by what the program expects there."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


_previous_main: list[ModuleType] = []


def _fresh_main() -> ModuleType:
    """A new, empty `__main__`, which stays for the rest of the process."""
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __spec__=None, __package__=None, __loader__=None)
    main.__dict__["__annotations__"] = {}
    _previous_main.append(sys.modules["__main__"])  # it is still running
    sys.modules["__main__"] = main
    return main


def _execute(what: CodeType | None, main: ModuleType) -> None:
    assert what is not None
    exec(what, main.__dict__)


def _guard(program: Callable[[], Any]) -> int:
    """Runs the program; reports its exceptions as the interpreter does, without our own frames."""
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        if isinstance(error, KeyboardInterrupt):
            _die_of_interrupt()
        return 1
    return 0


def _report(error: BaseException) -> None:
    kind = type(error)
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    source = sys.modules.get("styrax.core.tracing.source")
    if source is not None and source.filtering():
        traceback = source.filter_traceback(traceback) or traceback
    if isinstance(error, SyntaxError) and traceback is None:
        error.__traceback__ = None
    error = error.with_traceback(traceback)
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.stdout.flush()
    _call_hook(kind, error, traceback)


def _call_hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    try:
        sys.excepthook(kind, error, traceback)
    except SystemExit:
        raise
    except BaseException as broken:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(kind, error, traceback)


def _die_of_interrupt() -> NoReturn:
    """Ends as an interrupted process should: the shell sees that it was the signal."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(130)
