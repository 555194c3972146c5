"""Where messages go: `jax_debug_log_modules` and `jax_logging_level` show them on standard error.

The loggers have JAX's names. Python's module of them is imported once somebody asks for messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

_LIBRARIES = ("jax", "jaxlib")
_wanted: dict[str, str | None] = {"modules": "", "level": None}
_before: dict[str, int] = {}  # loggers that are set, and the levels that they had
_handler: logging.Handler | None = None


def show_modules(modules: str | None) -> None:
    """Shows all messages of these loggers, whose names stand between commas."""
    _wanted["modules"] = modules
    _apply()


def show_level(level: str | None) -> None:
    """Shows messages of at least this level; no messages but warnings for None and `NOTSET`."""
    _wanted["level"] = None if level == "NOTSET" else level
    _apply()


def _apply() -> None:
    global _handler
    modules = [name.strip() for name in (_wanted["modules"] or "").split(",") if name.strip()]
    level = _wanted["level"]
    if not modules and not level and not _before:
        return
    import logging

    if _handler is None:
        _handler = logging.StreamHandler()
        _handler.setFormatter(logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{"))
    for name, before in _before.items():
        logging.getLogger(name).setLevel(before)
        logging.getLogger(name).removeHandler(_handler)
    _before.clear()
    wanted = dict.fromkeys(_LIBRARIES, level) if level else {}
    wanted |= dict.fromkeys(modules, "DEBUG")
    for name in sorted(wanted):
        logger = logging.getLogger(name)
        _before[name] = logger.level
        logger.setLevel(wanted[name])
        if not any(name.startswith(f"{above}.") for above in wanted):  # what is above shows its messages, too
            logger.addHandler(_handler)


__all__ = ["show_level", "show_modules"]
