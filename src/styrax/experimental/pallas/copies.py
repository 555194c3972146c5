"""Copies from reference to reference. Where another engine would copy while the kernel runs, CPUs copy at `start`."""

from __future__ import annotations

from ...transforms.refs import ref_addupdate, ref_get, ref_set
from .accelerators import only_on
from .access import RefLike


class AsyncCopyDescriptor:
    """A copy that can be started, and waited for."""

    __slots__ = ("dst_ref", "sem", "src_ref")

    def __init__(self, src_ref: RefLike, dst_ref: RefLike, sem: RefLike):
        self.src_ref = src_ref
        self.dst_ref = dst_ref
        self.sem = sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copies, or adds to what is there."""
        (ref_addupdate if add else ref_set)(self.dst_ref, ..., ref_get(self.src_ref, ...))

    def wait(self) -> None:
        """The copy is done."""

    wait_send = wait_recv = wait


def make_async_copy(src_ref: RefLike, dst_ref: RefLike, sem: RefLike) -> AsyncCopyDescriptor:
    """A copy that has not begun.

    Args:
      src_ref, dst_ref: references, or views of them, of one shape and dtype.
      sem: the semaphore that counts what has been copied.
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(src_ref: RefLike, dst_ref: RefLike, sem: RefLike, *, priority: int = 0,
               add: bool = False) -> AsyncCopyDescriptor:
    """A copy that has begun; see `make_async_copy`.

    Args:
      priority: which copies go first.
      add: whether to add to what is there.
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: RefLike, dst_ref: RefLike, *, add: bool = False) -> None:
    """Copies a reference, or a view of one, or adds it to what is there."""
    async_copy(src_ref, dst_ref, src_ref, add=add)


_REMOTE = "several TPUs"
async_remote_copy = only_on(_REMOTE, "async_remote_copy",
                            "src_ref dst_ref send_sem recv_sem device_id device_id_type=None")
make_async_remote_copy = only_on(_REMOTE, "make_async_remote_copy",
                                 "src_ref dst_ref send_sem recv_sem device_id device_id_type=None")
