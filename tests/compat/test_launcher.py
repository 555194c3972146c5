"""`python -m styrax` runs programs as `python` does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.compat.running import SOURCE, environment, lines, run

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


@pytest.mark.parametrize("args", [
    ["-V"], ["-W", "error", "-c", "import warnings; warnings.warn('x')"], ["-Xdev", "-c", "1"],
    ["-O", "-c", "print(__debug__)"], ["-cprint(3)"], ["-Q"],
])
def test_options_are_those_of_python(args):
    wanted, found = run(*args, plain=True, PYTHONWARNINGS=""), run(*args, PYTHONWARNINGS="")
    assert (found.stdout, found.stderr, found.returncode) == (wanted.stdout, wanted.stderr, wanted.returncode)


def test_options_reach_the_drop_in(tmp_path):
    (tmp_path / "program.py").write_text("import sys, jax; print(sys.argv[1:], sys.flags.dev_mode, jax.lax.__name__)")
    assert lines("-X", "dev", "program.py", "-c", cwd=tmp_path) == ["['-c'] True styrax.lax"]
    assert run("-I", "-c", "1").returncode == 2
    assert run("-WI", "-c", "1").returncode == 0


def test_standard_input():
    assert run(stdin="import jax, sys; print(jax.__name__, sys.argv)").stdout == "styrax ['']\n"


def test_interactive_after_a_program(tmp_path):
    (tmp_path / "program.py").write_text("import jax; x = jax.numpy.arange(3)")
    done = run("-i", "program.py", cwd=tmp_path, stdin="print(x + 1)\nprint(jax.grad(lambda v: v * v)(3.0))\n")
    assert done.stdout.split("\n")[:2] == ["[1 2 3]", "6.0"], done.stderr


def test_console():
    """Without a program on a terminal: Python's own prompt."""
    main, child = os.openpty()
    process = subprocess.Popen([sys.executable, "-m", "styrax"], stdin=child, stdout=child, stderr=child,
                               env=environment(TERM="dumb", PYTHON_BASIC_REPL="1"), close_fds=True)
    os.close(child)
    os.write(main, b"import jax\nprint(jax.numpy.arange(3) * 7)\nexit()\n")
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait(60) == 0
    assert b">>> " in shown and b"[ 0  7 14]" in shown


def test_kernel_specification(tmp_path):
    """Written by Jupyter's own tool, which is asked for its folder: here one that notes what it gets."""
    package = tmp_path / "jupyter_client"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kernelspec.py").write_text(textwrap.dedent("""
        import pathlib
        class KernelSpecManager:
            def install_kernel_spec(self, source, name, user, prefix):
                print(name, user, prefix)
                print(pathlib.Path(source, "kernel.json").read_text())
                return "there"
        """))
    out = lines("kernel", "install", "--prefix", "p", cwd=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{SOURCE}")
    assert out[0] == "styrax False p" and out[-1] == "Installed kernel styrax in there"
    written = json.loads("\n".join(out[1:-1]))
    assert written["argv"] == [sys.executable, "-m", "styrax", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert run("kernel", "install", "--nonsense").returncode == 2


def test_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax\nassert jax.__name__ == 'styrax'")
    (tmp_path / "test_it.py").write_text("import jax\ndef test(): assert float(jax.numpy.ones(2).sum()) == 2")
    options = ("-W", "error", "-p", "styrax.compat.testing", "-p", "no:cacheprovider")
    done = run("-m", "pytest", "-q", *options, cwd=tmp_path, plain=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
