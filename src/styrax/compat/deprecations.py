"""The warning of names that JAX has removed."""

from __future__ import annotations


def warn(name: str, today: str, level: int) -> None:
    """Warns whoever stands `level` frames above the caller that `name` is gone, and what is written `today`."""
    import warnings

    warnings.warn(f"{name} was removed from JAX; today: {today}", DeprecationWarning, stacklevel=level + 1)
