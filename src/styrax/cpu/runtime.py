"""Threads, queues and memory of running programs: the Python side of `native`.

Nothing starts at import. The native part is mapped at the first use (a third of a millisecond when it is in
the cache), worker threads start at the first parallel loop, a queue's thread at its first job. After a fork
the child starts over: it inherits no thread, and jobs are complete before the fork happens.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable

from . import background, dispatch, llvm, native, native_queue, processors
from .buffers import Pool

DONE, CANCELLED, OUT_OF_MEMORY = native_queue.DONE, native_queue.CANCELLED, native_queue.OUT_OF_MEMORY

_LEVEL = llvm.BRIEF  # of the native runtime: it is compiled when a process without a cache begins
_SLICE = 50_000_000  # nanoseconds that a wait stays out of Python, where signals are seen to


class _Native:
    """The mapped runtime and its entry points."""

    __slots__ = ("get_status", "library", "parallel_for", "set_cancel", "submit", "thread_limit", "wait")

    def __init__(self) -> None:
        library = self.library = llvm.load(_text(), "runtime", level=_LEVEL, share=False)
        self.parallel_for = dispatch.function(library.address("styrax_parallel_for"), release=True)
        self.submit = dispatch.function(library.address("styrax_submit"))
        self.wait = dispatch.function(library.address("styrax_wait"), release=True)
        self.get_status = dispatch.get("int32")
        self.set_cancel = dispatch.put("int32")
        self.thread_limit = ctypes.c_int32.from_address(library.address("styrax_thread_limit"))
        self.thread_limit.value = processors.threads()


_native: list[_Native] = []
_lock = threading.Lock()
_queues: weakref.WeakSet[Queue] = weakref.WeakSet()
_held: list = []  # locks taken around a fork
pool = Pool()


def prepare() -> None:
    """Makes the native runtime ready in a thread, and LLVM, while the compiler is loaded and the program that will need
    them is traced."""
    background.start(_prepare, "styrax-prepare")


def _prepare() -> None:
    if not llvm.at_hand([_text()], _LEVEL):  # else, programs may be at hand as well
        llvm.ready()
    dispatch.make_caller(0)
    _runtime()


def _text() -> str:
    return native.source(os.uname().machine if hasattr(os, "uname") else "unknown", sys.platform)


def _runtime() -> _Native:
    if not _native:
        with background.Work(), _lock:
            if not _native:
                _native.append(_Native())
    return _native[0]


def address(symbol: str) -> int:
    """Address of a function or variable of the native runtime (``styrax_parallel_for``, …). LookupError."""
    try:
        return _runtime().library.address(symbol)
    except KeyError:
        raise LookupError(f"the native runtime has no {symbol!r}") from None


llvm.add_resolver(lambda symbol: address(symbol) if symbol.startswith("styrax_") else None)


def parallel_for(fn: int, env: int, n: int, chunk: int) -> None:
    """Call the native ``fn(env, begin, end)`` for each piece of ``chunk`` of [0, n), on all threads."""
    _runtime().parallel_for(fn, env, n, chunk)


def num_threads() -> int:
    """Threads that one parallel loop uses, the calling one included."""
    return _native[0].thread_limit.value if _native else processors.threads()


def set_num_threads(n: int) -> None:
    """Let parallel loops use ``n`` threads from now on. Results do not depend on it. ValueError below 1."""
    if not 1 <= n <= 1024:
        raise ValueError(f"the number of threads must be between 1 and 1024, not {n}")
    _runtime().thread_limit.value = n


class Job:
    """A program in a queue, made by `Queue.submit`. What it uses (``keep``) is held until it has ended."""

    __slots__ = ("__weakref__", "_dependencies", "_queue", "address", "keep")

    def __init__(self, queue: Queue, address: int, dependencies: object, keep: object):
        self._queue, self.address, self._dependencies, self.keep = queue, address, dependencies, keep

    @property
    def status(self) -> int:
        """Negative until the job has ended, then DONE (0), CANCELLED, or what the program returned."""
        return _native[0].get_status(self.address + native_queue.JOB_STATUS)

    def done(self) -> bool:
        """True when the job has ended, well or not."""
        return _native[0].get_status(self.address + native_queue.JOB_STATUS) >= 0

    def cancel(self) -> None:
        """Ask the job to end: it does not start, or stops at its next look at its cancel word."""
        _native[0].set_cancel(self.address + native_queue.JOB_CANCEL, 1)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the status (negative if ``timeout`` seconds were not enough).

        Ctrl-C is seen while waiting: it raises KeyboardInterrupt, and cancels what is in the job's queue.
        """
        status = self.status
        if status >= 0:
            return status
        wait, where = _native[0].wait, self.address
        left = None if timeout is None else int(timeout * 1e9)
        try:
            while True:
                piece = _SLICE if left is None else min(_SLICE, left)
                status = wait(where, piece)
                if status >= 0:
                    return status
                if left is not None:
                    left -= piece
                    if left <= 0:
                        return status
        except KeyboardInterrupt:
            self._queue.cancel()
            raise

    def __del__(self) -> None:
        # A job that has not ended is held by its queue: only the end of the process leaves one here.
        if _native and self.done():
            pool.free(self.address, native_queue.JOB_BYTES)


class Queue:
    """Runs programs one after another, in the order of submission, on one native thread of its own.

    A program is ``i32 program(ptr args, ptr cancel)``; see `native`. Any thread may submit.
    """

    __slots__ = ("__weakref__", "_address", "_block", "_lock", "_pending")

    def __init__(self) -> None:
        self._block = (ctypes.c_uint64 * (native_queue.QUEUE_BYTES // 8 + 8))()
        self._address = (ctypes.addressof(self._block) + 63) & -64
        self._pending: deque[Job] = deque()
        # Re-entrant: what a finished job kept may be collected, and its finalizer submit, under the lock.
        self._lock = threading.RLock()
        _queues.add(self)
        # The executor thread reads this memory for as long as the process lives.
        _immortal.append(self._block)

    def submit(self, fn: int, args: int, dependencies: Iterable[Job] = (), keep: object = None) -> Job:
        """Queue ``fn(args, cancel)``. ``keep`` is held until the job has ended.

        If one of ``dependencies`` (jobs of this queue or of others) fails, the job ends with its status
        without running. Waits while the queue is full. RuntimeError if no thread can be started.
        """
        runtime = _runtime()
        table, count, held = 0, 0, None
        if dependencies:
            # Jobs that ended well need not be looked at again; failed ones hand their status on.
            others = [d for d in dependencies if d.status]
            if others:
                count = len(others)
                words = (ctypes.c_uint64 * count)(*[d.address for d in others])
                table, held = ctypes.addressof(words), (others, words)
        where = pool.alloc(native_queue.JOB_BYTES)
        with self._lock:
            if _closing and threading.current_thread() is not threading.main_thread():
                raise RuntimeError("cannot run programs in threads while the interpreter ends")
            self._release()
            try:
                while refused := runtime.submit(self._address, where, fn, args, table, count):
                    if refused != 1:
                        raise RuntimeError("cannot start the thread that executes queued programs")
                    self._pending[0].wait()
                    self._release()
            except BaseException:
                pool.free(where, native_queue.JOB_BYTES)
                raise
            job = Job(self, where, held, keep)
            self._pending.append(job)
        if _closing:
            job.wait()
        return job

    def _release(self) -> None:
        """Let go of the jobs that have ended."""
        pending = self._pending
        while pending and pending[0].done():
            job = pending.popleft()
            job.keep = job._dependencies = None

    def pending(self) -> int:
        """Number of jobs that have not ended."""
        with self._lock:
            self._release()
            return len(self._pending)

    def drain(self) -> None:
        """Wait until every job submitted so far has ended."""
        for job in list(self._pending):
            job.wait()
        self.pending()

    def cancel(self) -> None:
        """Cancel every job that has not ended."""
        for job in reversed(list(self._pending)):  # the running one last, or the next would start
            job.cancel()


_immortal: list[object] = []
_closing: list[bool] = []  # the process ends


# ---------------------------------------------------------------------------------------------------------
# Fork and exit
# ---------------------------------------------------------------------------------------------------------

def _call(symbol: str) -> None:
    ctypes.CFUNCTYPE(None)(_native[0].library.address(symbol))()


def _before_fork() -> None:
    background.before_fork()  # its own hook would come when the locks are taken which such work may need
    # The child has the memory of the moment of the fork: half-computed arrays would stay so for ever.
    for queue in list(_queues):
        queue.drain()
        queue._lock.acquire()
        _held.append(queue._lock)
    for lock in (_lock, pool._lock):
        lock.acquire()
        _held.append(lock)
    if _native:
        _call("styrax_before_fork")


def _after_fork_in_parent() -> None:
    if _native:
        _call("styrax_after_fork_in_parent")
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    if _native:
        _call("styrax_after_fork_in_child")
    for queue in list(_queues):
        ctypes.memset(queue._address, 0, native_queue.QUEUE_BYTES)
    while _held:
        _held.pop().release()


def _at_exit() -> None:
    # Programs must not run while the interpreter takes their buffers apart, nor while the C library closes BLAS.
    # They end at their next look whether to stop, a call of BLAS when it is through.
    _closing.append(True)
    for queue in list(_queues):
        with queue._lock:  # what is being submitted is in the queue, or will be refused
            queue.cancel()
    try:
        for queue in list(_queues):
            for job in list(queue._pending):
                job.wait()
    except KeyboardInterrupt:
        # Asked again: the process ends here, in the middle of its work.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)
