"""What `importlib.metadata` knows of the distributions that the drop-in stands for."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

from ..version import JAX


class Distribution(importlib.metadata.Distribution):
    """"jax" or "jaxlib" in the release whose interface is offered."""

    def __init__(self, name: str):
        self._name_of = name

    def read_text(self, filename: str) -> str | None:
        """The text of a metadata file, None for those that do not exist."""
        if filename == "METADATA":
            needs = f"Requires-Dist: jaxlib (=={JAX})\n" if self._name_of == "jax" else ""
            return (f"Metadata-Version: 2.1\nName: {self._name_of}\nVersion: {JAX}\n"
                    f"Summary: {self._name_of}, by Styrax\nRequires-Python: >=3.11\n{needs}")
        if filename == "top_level.txt":
            return f"{self._name_of}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        """Where a file of the distribution would lie."""
        import pathlib

        return pathlib.Path(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))) / path
