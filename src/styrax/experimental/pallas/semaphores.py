"""Semaphores: counters that are added to and taken from. One thread runs a kernel, and nobody waits in it."""

from __future__ import annotations

import numpy as np

from ...core.arrays.array import Array
from ...core.hooks import lax
from ...core.tracing.trace import get_aval
from ...core.types.avals import shaped
from ...core.types.typing import ArrayLike, PyTree
from ...transforms.refs import Ref, TransformedRef, ref_addupdate, ref_get
from .specs import DeviceIdType, MemoryRef, SpaceNames


class _CounterSpace(SpaceNames):
    SEMAPHORE = "semaphore_mem"


class semaphore(np.generic):
    """What semaphores count in, for comparisons of dtypes; their contents are int32."""


def counters(shape: tuple[int, ...]) -> MemoryRef:
    """A place in memory for semaphores."""
    return MemoryRef(shaped(tuple(shape), np.dtype(np.int32)), _CounterSpace.SEMAPHORE)


def _counter(sem_or_view: Ref | TransformedRef) -> Ref | TransformedRef:
    shape = sem_or_view.shape if isinstance(sem_or_view, TransformedRef) else get_aval(sem_or_view).shape
    if shape:
        raise ValueError(f"Must signal, read or wait for one semaphore, not an array of them of shape {shape}")
    return sem_or_view


def semaphore_signal(sem_or_view: Ref | TransformedRef, inc: int | Array = 1, *, device_id: PyTree = None,
                     device_id_type: DeviceIdType = DeviceIdType.MESH, core_index: int | Array | None = None) -> None:
    """Adds to a semaphore.

    Raises:
      ValueError: it is an array of semaphores.
      NotImplementedError: it is another device's or another core's.
    """
    if device_id is not None or core_index is not None:
        raise NotImplementedError("semaphores of other devices and cores: a CPU's kernel runs on one")
    ref_addupdate(_counter(sem_or_view), None, lax.convert_element_type(inc, np.int32))


def semaphore_wait(sem_or_view: Ref | TransformedRef, value: int | Array = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore holds `value`, and takes it away. What the kernel has signalled before, it does hold.

    Raises:
      ValueError: it is an array of semaphores.
    """
    taken: ArrayLike = lax.neg(lax.convert_element_type(value, np.int32))
    if decrement:
        ref_addupdate(_counter(sem_or_view), None, taken)


def semaphore_read(sem_or_view: Ref | TransformedRef) -> Array:
    """What a semaphore holds, an int32 scalar.

    Raises:
      ValueError: it is an array of semaphores.
    """
    return ref_get(_counter(sem_or_view), ...)
