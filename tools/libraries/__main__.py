"""`python -m tools.libraries`: what `make libraries` runs.

    python -m tools.libraries optax chex --jax --write
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
from pathlib import Path

from tools.libraries import document, passing
from tools.libraries.environment import ROOT, prepare, source
from tools.libraries.library import Library
from tools.libraries.passing import File
from tools.libraries.run import JAX, OURS, function, read, run
from tools.libraries.table import LIBRARIES


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.libraries", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of libraries: {' '.join(LIBRARIES)}")
    parser.add_argument("--folder", type=Path, default=ROOT / ".libraries",
                        help="of the environment (venv), the unpacked sources and the results, which are resumed")
    parser.add_argument("--ready", action="store_true", help="the folder has the environment: install nothing")
    parser.add_argument("--jax", action="store_true", help="run the tests under JAX too")
    parser.add_argument("--keep", action="store_true", help="go on with results of other sources of Styrax")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no more files begin")
    parser.add_argument("--write", action="store_true", help="the lists and the table, from the results of both")
    options = parser.parse_args()
    if unknown := set(options.names) - LIBRARIES.keys():
        parser.error(f"no such library: {' '.join(sorted(unknown))}")
    options.folder = options.folder.resolve()
    return options


def discard_old(results: Path) -> None:
    """Results of other sources than those of now say nothing: they go."""
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sorted((ROOT / "src").rglob("*.py")))).hexdigest()
    stamp = results / "sources.txt"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        stamp.write_text(digest)


def compare(library: Library, folder: Path) -> int:
    """Prints the tests that are committed as passing and do not pass now; how many cases they are."""
    lost = 0
    for file, committed in passing.load(library).items():
        now = read(library, file, OURS, folder)
        if now is None:
            print(f"{library.name}: {file} has not been run")
            continue
        for name, (before, after) in committed.lost(now).items():
            lost += before - after
            cases = [case for case in now.failed if function(case) == name]
            print(f"{library.name}: {file}::{name} {after} of {before} pass; {' '.join(cases) or 'not collected'}")
    return lost


def write(library: Library, folder: Path) -> None:
    """The list of a library, from the files that were run under both; those that were not keep their lines."""
    files = passing.load(library)
    there = set(library.files(source(library, folder)))
    for file in there:
        ours, jax = (read(library, file, under, folder) for under in (OURS, JAX))
        if ours is not None and jax is not None and jax.passed:
            files[file] = File.of(ours, jax)
    if files := {file: files[file] for file in files if file in there}:
        passing.save(library, files)


def main() -> int:
    options = arguments()
    libraries = [LIBRARIES[name] for name in options.names or LIBRARIES]
    if not options.ready:
        prepare(libraries, options.folder)
    if not options.keep:
        discard_old(options.folder / "results" / OURS)
    end = time.monotonic() + options.seconds
    for library in libraries:
        for file in library.files(source(library, options.folder)):
            for under in (JAX, OURS) if options.jax else (OURS,):
                outcome = read(library, file, under, options.folder)
                if outcome is None and time.monotonic() < end:
                    outcome = run(library, file, under, options.folder)
                    print(f"{library.name} {file}: {outcome.passed.total()} passed, {len(outcome.failed)} failed "
                          f"under {under} in {outcome.seconds:.1f} s{', ended' if outcome.ended else ''}", flush=True)
                if outcome is not None and not outcome.passed:
                    break  # under JAX nothing passes
    if options.write:
        for library in libraries:
            write(library, options.folder)
        document.DOCUMENT.write_text(document.written(document.DOCUMENT.read_text()))
    lost = sum(compare(library, options.folder) for library in libraries)
    print(f"{lost} cases that passed do not pass now")
    return min(lost, 1)


if __name__ == "__main__":
    sys.exit(main())
