"""The version of this package, and of the JAX release whose interface it offers."""

from __future__ import annotations

__version__ = "0.1.0"
JAX = "0.10.2"


def as_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


__version_info__ = as_tuple(__version__)
