"""The version of this package, and of the JAX release whose interface it offers."""

from __future__ import annotations

__version__ = "0.1.0"
JAX = "0.10.2"


def _as_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


__version_info__ = _as_tuple(__version__)


def speak_jax() -> None:
    """From now on the package gives JAX's version as its own: under the drop-in it is `jax`."""
    import styrax

    global __version__, __version_info__
    __version__ = styrax.__version__ = JAX
    __version_info__ = styrax.__version_info__ = _as_tuple(JAX)
