"""The virtual environment with the libraries and JAX, and the unpacked sources with their tests."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tools.libraries.library import Library
from tools.libraries.table import JAX, LIBRARIES, RUNNER

ROOT = Path(__file__).resolve().parents[2]


def python(folder: Path) -> Path:
    return folder / "venv" / "bin" / "python"


def _pip(folder: Path, *arguments: str) -> None:
    subprocess.run([str(python(folder)), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def install(folder: Path) -> None:
    """Makes the environment with all libraries, once: a stamp keeps what has been installed."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [*JAX, *RUNNER, *ours, *(r for lib in LIBRARIES.values() for r in (lib.requirement, *lib.needs))]
    stamp, text = folder / "installed.txt", "\n".join(wanted)
    if stamp.exists() and stamp.read_text() == text:
        return
    if not python(folder).exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    _pip(folder, "install", *wanted)
    stamp.write_text(text)


def _unpacked(library: Library, sources: Path) -> Path | None:
    """The folder of a source distribution; names write `-`, `_` and `.` alike."""
    pattern = re.sub(r"[-_.]", "[-_.]", library.distribution)
    return next(iter(sources.glob(f"{pattern}-{library.version}")), None)


def source(library: Library, folder: Path) -> Path:
    """The folder that the files of tests are relative to; downloaded and unpacked where it is missing."""
    if library.examples:
        return Path(__file__).parent / "examples"
    if library.wheel:
        return next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    sources = folder / "sources"
    if (found := _unpacked(library, sources)) is not None:
        return found
    sources.mkdir(parents=True, exist_ok=True)
    _pip(folder, "download", "--no-binary", ":all:", "--no-deps", "--dest", str(sources), library.requirement)
    for archive in sources.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(sources, filter="data")
        archive.unlink()
    found = _unpacked(library, sources)
    assert found is not None, f"{library.requirement} unpacks to another name"
    return found


def prepare(libraries: Iterable[Library], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    install(folder)
    for library in libraries:
        source(library, folder)
