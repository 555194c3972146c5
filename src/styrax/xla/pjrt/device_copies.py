"""Copies between the host's memory and that of a platform's devices, in the order of a program's other work.

Functions that programs call get addresses on the device. Where that is not the host, the driver's library copies:
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

Copy = Callable[[int, int, int, int], None]  # to an address, from an address, so many bytes, on a stream


class Copies(NamedTuple):
    """How functions that a program calls reach its memory.

    Attributes:
      platform: the devices' platform as the interface of foreign functions names it.
      to_host, to_device: copies that are begun.
      wait: waits until what was begun on a stream is done.
      streamed: whether a program has a stream.
    """

    platform: str
    to_host: Copy
    to_device: Copy
    wait: Callable[[int], None]
    streamed: bool


def _move(target: int, source: int, size: int, _: int) -> None:
    ctypes.memmove(target, source, size)


ON_HOST = Copies("Host", _move, _move, lambda _: None, False)


@cache
def copies(platform: str) -> Copies:
    """Those of a plugin's platform. NotImplementedError for one whose memory cannot be reached."""
    if platform.startswith("xla_cpu"):
        return ON_HOST
    if platform == "cuda":
        return _cuda()
    raise NotImplementedError(f"programs on the platform {platform} cannot call Python functions yet: run them on the "
                              "platform cpu")


def _cuda() -> Copies:
    driver = ctypes.CDLL("libcuda.so.1")  # the plugin has loaded it
    address, size = ctypes.c_void_p, ctypes.c_size_t

    def function(name: str, *kinds: type) -> Callable[..., None]:
        found = getattr(driver, name)
        found.argtypes = kinds

        def call(*args: int) -> None:
            status = found(*args)
            if status:
                raise RuntimeError(f"CUDA's {name} failed with status {status}")

        return call

    return Copies("CUDA", function("cuMemcpyDtoHAsync_v2", address, address, size, address),
                  function("cuMemcpyHtoDAsync_v2", address, address, size, address),
                  function("cuStreamSynchronize", address), True)
