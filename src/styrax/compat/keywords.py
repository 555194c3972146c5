"""Keyword arguments that JAX has removed, and what each is today."""

from __future__ import annotations

from .deprecations import warn

TYPE_CHECKING = False
if TYPE_CHECKING:  # loaded with `import jax`: imports next to nothing
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    Today = Mapping[str, str | int | None]

_METHOD: Today = {"interpolation": "method"}
_CLIP: Today = {"a": 0, "a_min": "min", "a_max": "max"}
_RESOURCES: Today = {"in_axis_resources": "in_shardings", "out_axis_resources": "out_shardings"}

# module -> function -> keyword -> the keyword or the place that takes its value; None where it has no effect
KEYWORDS: dict[str, dict[str, Today]] = {
    "jax.numpy": {
        "clip": _CLIP,
        "reshape": {"newshape": "shape"},
        "where": {"condition": 0, "x": 1, "y": 2},
        **dict.fromkeys(("quantile", "percentile", "nanquantile", "nanpercentile"), _METHOD),
    },
    "jax.nn": dict.fromkeys(("softmax", "log_softmax"), {"initial": None}),
    "jax.experimental.pjit": {"pjit": _RESOURCES},
}


def serve(module: ModuleType, name: str) -> None:
    """Has functions of one of our modules, which are JAX's of that name, take the keywords that they took once."""
    for function in KEYWORDS.get(name, ()):
        if function in module.__dict__:
            taught(module, name, function, module.__dict__[function])


def taught(module: ModuleType, path: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under its name in the module, from now on with the keywords of old."""
    made = _with_keywords(function, f"{path}.{name}", KEYWORDS[path][name])
    made.__module__, made.__qualname__ = module.__name__, name  # where pickles find it
    setattr(module, name, made)
    return made


def _with_keywords(function: Callable[..., Any], path: str, today: Today) -> Callable[..., Any]:
    import functools

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old in [old for old in today if old in kwargs] if kwargs else ():
            value, new = kwargs.pop(old), today[old]
            if isinstance(new, int):
                args = (*args[:new], value, *args[new:])
                warn(f"{path}(…, {old}=…)", f"{path}(…), argument {new + 1}", 2)
            elif new is None:
                warn(f"{path}(…, {old}=…)", "nothing: it has no effect", 2)
            else:
                kwargs.setdefault(new, value)
                warn(f"{path}(…, {old}=…)", f"{new}=…", 2)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            from ..core.tracing.source import hide_frames

            hide_frames(error)
            raise

    return call
