"""Code that differs with the platform it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styrax.core.arrays import backends
from styrax.core.types.typing import PyTree


def platform_dependent(*args: PyTree, default: Callable[..., Any] | None = None,
                       **per_platform: Callable[..., Any]) -> PyTree:
    """Applies the function for the platform that programs run on.

    Args:
      args: what the function is applied to.
      default: the function for all platforms that are not named.
      per_platform: functions by the name of their platform, such as `cpu=` or `tpu=`.

    Returns:
      the result of the function chosen. Only that one is called.

    Raises:
      TypeError: something given is not callable.
      NotImplementedError: nothing is given for the platform.
    """
    for name, fun in per_platform.items():
        if not callable(fun):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    if default is not None and not callable(default):
        raise TypeError("lax.platform_dependent: the default branch must be a callable.")
    client = backends.get()
    # Whoever compiles for the host's processors, that is the project's own platform.
    platform = next(iter(backends.modules)) if client.dlpack_type == backends.HOST else client.platform
    chosen = per_platform.get(platform, default)
    if chosen is None:
        raise NotImplementedError(
            f"lax.platform_dependent has no branch for platform {platform} and no default: there are branches for "
            f"{', '.join(per_platform) or 'none'}"
        )
    return chosen(*args)


__all__ = ["platform_dependent"]
