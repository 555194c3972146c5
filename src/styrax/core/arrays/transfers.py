"""Transfer guards: whether values of the host may be copied to a device, and which of the copies are meant.

A copy is explicit where the user asked for it (`device_put`), and implicit where an operation was given a number or a
NumPy array. Nothing is looked at before a guard is set for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from ..settings import config
from ..tracing.errors import JaxRuntimeError

used = False  # whether a guard was ever set that forbids something


class _Meant(local):
    explicit = False


_meant = _Meant()


def _note(level: Any) -> None:
    global used
    used = used or level in ("disallow", "disallow_explicit")


config.transfer_guard_host_to_device.add_hook(_note)


@contextmanager
def explicit() -> Iterator[None]:
    """What is copied inside is meant to be."""
    before = _meant.explicit
    _meant.explicit = True
    try:
        yield
    finally:
        _meant.explicit = before


def check(aval: Any) -> None:
    """Raises JaxRuntimeError where the guard in force forbids a copy of such a value to a device."""
    level = config.transfer_guard_host_to_device.value
    if level == "disallow_explicit" or level == "disallow" and not _meant.explicit:
        from . import backends
        from .shardings import SingleDeviceSharding

        raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed host-to-device transfer: aval={aval!r}, "
                              f"dst_sharding={SingleDeviceSharding(backends.get().devices()[0])!r}")
