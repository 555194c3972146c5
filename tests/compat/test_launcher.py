"""`python -m styrax` runs programs as `python` does."""

from __future__ import annotations

import signal
import textwrap

import pytest

from tests.compat.running import lines, run

# name of the script, its text: run by python and by python -m styrax, they give the same output, errors and status
SAME = {
    "arguments": "import sys; print(sys.argv[1:], len(sys.argv))",
    "main": """
        import sys
        print(__name__, __file__.endswith("main.py"), __spec__, __package__, __builtins__ is sys.modules["builtins"])
        print(sys.modules["__main__"].__dict__ is globals(), sorted(k for k in globals() if k.startswith("__")))
        if __name__ == "__main__":
            print("guarded")
        """,
    "path": "import sys; print(sys.path[0])",
    "status": "import sys; print('before'); sys.exit(7)",
    "message": "raise SystemExit('the message')",
    "parser": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, default=3)
        parser.add_argument("rest", nargs="*")
        print(parser.parse_args())
        parser.parse_args(["--nothing"])
        """,
    "pickle_main": """
        import pickle
        class Point:
            def __init__(self, x): self.x = x
            def __eq__(self, other): return self.x == other.x
        def double(x): return 2 * x
        assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
        assert pickle.loads(pickle.dumps(double)) is double
        print(Point.__module__, Point.__qualname__)
        """,
    "traceback": """
        def inner(x):
            return 1 / x
        def outer():
            return inner(0)
        outer()
        """,
    "chained": """
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("outer") from error
        """,
    "syntax": "x = = 1",
    "hook": """
        import sys
        sys.excepthook = lambda kind, value, traceback: print("hook", kind.__name__, value, traceback.tb_lineno)
        raise ValueError("seen")
        """,
    "atexit": """
        import atexit, threading
        atexit.register(lambda: print("at exit", __name__))
        threading.Thread(target=lambda: print("thread")).start()
        """,
    "future": "from __future__ import annotations\ndef f(x: undefined): ...\nprint(f.__annotations__)",
    "annotations": "x: int = 3\nprint(__annotations__)",
    "reload": "import inspect\ndef f():\n    return 3\nprint(inspect.getsource(f))",
}


@pytest.mark.parametrize("name", SAME)
def test_same_as_python(name, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text(textwrap.dedent(SAME[name]))
    args = [script.name, "--steps", "5", "a b"]
    wanted = run(*args, cwd=tmp_path, plain=True)
    found = run(*args, cwd=tmp_path)
    assert (found.stdout, found.stderr, found.returncode) == (wanted.stdout, wanted.stderr, wanted.returncode)


@pytest.mark.parametrize(("args", "stdin"), [
    (["-c", "import sys; print(sys.argv, sys.path[0], __name__, '__file__' in globals()); 1/0", "x", "-y"], None),
    (["-m", "package.tool", "x", "--flag"], None),
    (["-m", "package", "x"], None),
    (["-m", "package.missing"], None),
    (["package", "x"], None),
    (["nowhere.py"], None),
    (["-", "x"], "import sys; print(sys.argv, __name__)\nraise ValueError('from stdin')"),
    (["-c", "raise KeyboardInterrupt"], None),
])
def test_forms(args, stdin, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys; print('main', sys.argv[1:], __package__, sys.path[0])")
    (package / "tool.py").write_text(
        "import sys; print('tool', sys.argv, __name__, __spec__.name, sys.path[0], __package__); 1/0")
    wanted = run(*args, cwd=tmp_path, stdin=stdin, plain=True)
    found = run(*args, cwd=tmp_path, stdin=stdin)
    assert (found.stdout, found.stderr, found.returncode) == (wanted.stdout, wanted.stderr, wanted.returncode)


def test_interrupt_is_a_signal():
    assert run("-c", "raise KeyboardInterrupt").returncode == -signal.SIGINT


def test_usage():
    assert run().returncode == 2
    assert run("--help").returncode == 0
    assert run("-c").returncode == 2
    assert run("--unknown", "x.py").returncode == 2
    assert "usage" in run("--help").stdout


def test_import_is_cheap():
    out = lines("-c", "import sys, jax; print(sorted(m for m in ('numpy', 'scipy', 'llvmlite', 'inspect') if m in "
                "sys.modules))")
    assert out == ["[]"]


def test_packages_come_with_jax():
    assert lines("-c", "import jax; print(jax.lax.linalg.lu.__name__, jax.numpy.linalg.inv.__name__)") == ["lu inv"]
