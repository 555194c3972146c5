"""Which platforms programs are to run on: `jax_platforms` and `jax_platform_name`."""

from __future__ import annotations

from . import config


def wanted() -> list[str]:
    """The platforms that are asked for, the default one first; empty where nothing is said."""
    first = config.config.jax_platform_name
    named = [name.strip() for name in (config.config.jax_platforms or "").split(",")]
    return list(dict.fromkeys(name for name in (first, *named) if name))
