"""The runner of the libraries' own tests: what it makes of a file of tests, its lists, and the table from them."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tools.libraries import document, passing
from tools.libraries.__main__ import discard_old, main
from tools.libraries.environment import source
from tools.libraries.library import Library
from tools.libraries.passing import File, Time, parse, text
from tools.libraries.run import JAX, OURS, Outcome, function, read, run
from tools.libraries.table import LIBRARIES

TESTS = """
import time, unittest, jax, pytest

@pytest.mark.parametrize("x", [1, 2, 3])
def test_number(x):
    assert x != 2

class SomeTest(unittest.TestCase):
    def test_name0(self): self.assertIn(jax.numpy.add(1, 2).__class__.__module__.split(".")[0], ("styrax", "jaxlib"))
    def test_name1(self):
        for k in range(3):
            with self.subTest(k=k): self.assertNotEqual(k, 1)
    @unittest.skip("never")
    def test_skipped(self): pass
"""
SLOW = "import time\ndef test_first(): pass\ndef test_slow(): time.sleep(60)\n"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library with three files of tests, installed as the runner finds it."""
    tests = tmp_path / "sources" / "some_thing-1.0" / "tests"
    tests.mkdir(parents=True)
    (tests / "some_test.py").write_text(TESTS)
    (tests / "slow_test.py").write_text(SLOW)
    (tests / "broken_test.py").write_text("import no_such_module")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    return Library("Some Thing", "some-thing", "1.0", ("tests/*_test.py",), {"tests/slow_test.py": "slow"})


def outcome(**counts: int) -> Outcome:
    return Outcome(Counter(counts), (), 1.0)


def test_files_are_those_of_the_patterns_without_what_is_left_out(library, tmp_path):
    folder = source(library, tmp_path)
    assert library.files(folder) == ["tests/broken_test.py", "tests/some_test.py"]
    assert replace(library, omitted={}, every=2).files(folder) == ["tests/broken_test.py", "tests/some_test.py"]
    assert replace(library, omitted={}, every=3).files(folder) == ["tests/broken_test.py"]


def test_a_file_is_run_and_its_cases_are_counted_by_function(library, tmp_path):
    now = run(library, "tests/some_test.py", OURS, tmp_path)
    assert now.passed == {"test_number": 2, "SomeTest.test_name": 1}
    assert set(now.failed) == {"test_number[2]", "SomeTest.test_name1"}
    assert not now.ended and now.seconds > 0
    assert read(library, "tests/some_test.py", OURS, tmp_path) == replace(now, seconds=round(now.seconds, 1))
    assert read(library, "tests/some_test.py", JAX, tmp_path) is None
    broken = run(library, "tests/broken_test.py", OURS, tmp_path)
    assert not broken.passed and broken.failed


def test_a_file_ends_at_its_limit(library, tmp_path):
    now = run(replace(library, limit=2), "tests/slow_test.py", OURS, tmp_path)
    assert now.ended and now.passed <= Counter(test_first=1)
    assert Time(now.seconds, now.ended).ended and read(library, "tests/slow_test.py", OURS, tmp_path).ended


def test_names_of_cases():
    assert [function(n) for n in ("A.test_x[1-2]", "A.test_x12", "A.test_x", "A.test_2d_x")] == [
        "A.test_x", "A.test_x", "A.test_x", "A.test_2d_x"]


def test_lists_are_read_as_they_were_written():
    file = File(Counter(a=3, b=2), Counter(a=3, b=1), Time(2.0, True), Time(1.5))
    lines = "x_test.py 1.5 s, 2.0+ s under JAX\n  a 3\n  b 1 of 2\n"
    assert text({"x_test.py": file}) == lines
    assert parse(lines) == {"x_test.py": file}
    with pytest.raises(ValueError, match="neither"):
        parse(lines + "other\n")


def test_what_counts_passes_under_jax():
    file = File.of(outcome(a=3, b=1, c=5), outcome(a=2, b=2))
    assert file.jax == {"a": 2, "b": 2} and file.ours == {"a": 2, "b": 1}


def test_what_is_lost():
    file = File.of(outcome(a=3, b=1), outcome(a=3, b=2))
    assert file.lost(outcome(a=3, b=2)) == {}
    assert file.lost(outcome(a=1)) == {"a": (3, 1), "b": (1, 0)}


def test_results_of_other_sources_go(tmp_path):
    discard_old(tmp_path / "results")
    (tmp_path / "results" / "x.xml").touch()
    discard_old(tmp_path / "results")
    assert (tmp_path / "results" / "x.xml").exists()
    (tmp_path / "results" / "sources.txt").write_text("others")
    discard_old(tmp_path / "results")
    assert not (tmp_path / "results" / "x.xml").exists()


def test_the_command_runs_writes_and_compares(library, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(passing, "FOLDER", tmp_path)
    monkeypatch.setattr(document, "DOCUMENT", tmp_path / "libraries.md")
    monkeypatch.setitem(LIBRARIES, library.name, library)
    (tmp_path / "libraries.md").write_text(f"before\n{document.BEGIN}{document.END}after\n")
    command = ["libraries", library.name, "--folder", str(tmp_path), "--ready", "--jax", "--write"]
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    listed = (tmp_path / "some-thing.txt").read_text()
    assert listed.splitlines()[1:] == ["  SomeTest.test_name 1", "  test_number 2"]
    assert "| Some Thing | 1.0 | 1 files | 3 | 3 | 100.0 |" in (tmp_path / "libraries.md").read_text()

    (tmp_path / "some-thing.txt").write_text(listed.replace("test_number 2", "test_number 3") + "  test_gone 1\n")
    monkeypatch.setattr(sys, "argv", [*command[:-2], "--seconds", "0"])
    capsys.readouterr()
    assert main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "some-thing: tests/some_test.py::test_number 2 of 3 pass; test_number[2]",
        "some-thing: tests/some_test.py::test_gone 0 of 1 pass; not collected",
        "2 cases that passed do not pass now",
    ]


def test_the_document_has_the_table_of_the_lists():
    written = document.DOCUMENT.read_text()
    assert document.written(written) == written


def test_lists_are_of_libraries_of_the_table():
    lists = {path.stem for path in passing.FOLDER.glob("*.txt")}
    assert lists <= LIBRARIES.keys()
    for library in LIBRARIES.values():
        assert passing.load(library) == parse(text(passing.load(library)))
