"""Threads, queues, buffers and fast calls."""

import ctypes
import gc
import os
import signal
import threading
import time
import warnings
import weakref
from itertools import pairwise

import pytest

from styrax.cpu import dispatch, llvm, native_queue, runtime
from styrax.cpu.buffers import Pool, class_bytes

pytestmark = pytest.mark.usefixtures("old_objects_aside")

I64, P = ctypes.c_int64, ctypes.c_void_p

CODE = """
declare void @styrax_parallel_for(ptr, ptr, i64, i64)
declare ptr @styrax_alloc(i64)
declare void @styrax_free(ptr)

; env: i64 total, i64 pieces
define void @sum(ptr %env, i64 %begin, i64 %end) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %s = phi i64 [0, %entry], [%t, %loop]
  %t = add i64 %s, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  %a = atomicrmw add ptr %env, i64 %t monotonic
  %count = getelementptr i64, ptr %env, i64 1
  %b = atomicrmw add ptr %count, i64 1 monotonic
  ret void
}

; env: ptr to i64[], marks begin and the length of each piece
define void @mark(ptr %env, i64 %begin, i64 %end) nounwind {
  %at = getelementptr i64, ptr %env, i64 %begin
  %n = sub i64 %end, %begin
  %old = atomicrmw add ptr %at, i64 %n monotonic
  ret void
}

define void @nested(ptr %env, i64 %begin, i64 %end) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  call void @styrax_parallel_for(ptr @sum, ptr %env, i64 100, i64 9)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @often(ptr %fn, ptr %env, i64 %n, i64 %chunk, i64 %times) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  call void @styrax_parallel_for(ptr %fn, ptr %env, i64 %n, i64 %chunk)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}

; args: ptr to i64 log (length first), i64 number
define i32 @append(ptr %args, ptr %cancel) nounwind {
  %log = load ptr, ptr %args
  %second = getelementptr i64, ptr %args, i64 1
  %number = load i64, ptr %second
  %n = load i64, ptr %log
  %m = add i64 %n, 1
  store i64 %m, ptr %log
  %at = getelementptr i64, ptr %log, i64 %m
  store i64 %number, ptr %at
  ret i32 0
}

define i32 @fail(ptr %args, ptr %cancel) nounwind {
  ret i32 77
}

define i32 @forever(ptr %args, ptr %cancel) nounwind {
entry:
  br label %loop
loop:
  %c = load atomic i32, ptr %cancel monotonic, align 4
  %go = icmp eq i32 %c, 0
  br i1 %go, label %loop, label %end
end:
  ret i32 1
}

define i32 @add(ptr %words, ptr %cancel) nounwind {
  %a = load ptr, ptr %words
  %b_at = getelementptr i64, ptr %words, i64 1
  %b = load ptr, ptr %b_at
  %o_at = getelementptr i64, ptr %words, i64 2
  %o = load ptr, ptr %o_at
  %x = load float, ptr %a
  %y = load float, ptr %b
  %z = fadd float %x, %y
  store float %z, ptr %o
  %c = load i32, ptr %cancel
  ret i32 %c
}

define i64 @difference(i64 %a, i64 %b) nounwind {
  %r = sub i64 %a, %b
  ret i64 %r
}

define i64 @eight(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h) nounwind {
  %x = shl i64 %a, 4
  %y = add i64 %x, %h
  ret i64 %y
}

; env: number of workers' modes that flush subnormals
define void @subnormal(ptr %env, i64 %begin, i64 %end) nounwind {
  %tiny = load volatile float, ptr @least
  %twice = fadd float %tiny, 0x36A0000000000000
  %bits = bitcast float %twice to i32
  %kept = icmp ne i32 %bits, 0
  %wide = zext i1 %kept to i64
  %old = atomicrmw add ptr %env, i64 %wide monotonic
  ret void
}
@least = internal global float 0x36A0000000000000
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return llvm.load(CODE, "runtime tests")


@pytest.fixture
def threads():
    before = runtime.num_threads()
    yield runtime.set_num_threads
    runtime.set_num_threads(before)


# Threads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 8, 70])
def test_parallel_sums(code, threads, count):
    threads(count)
    for n, chunk in [(0, 1), (-5, 3), (1, 1), (1000, 1), (1000, 7), (1000, 1000), (1000, 5000), (999, 0)]:
        env = (I64 * 2)()
        runtime.parallel_for(code.address("sum"), ctypes.addressof(env), n, chunk)
        n, chunk = max(n, 0), max(chunk, 1)
        assert list(env) == [n * (n - 1) // 2, -(-n // chunk)]


def test_pieces_do_not_depend_on_the_number_of_threads(code, threads):
    results = []
    for count in (1, 2, 5):
        threads(count)
        marks = (I64 * 103)()
        runtime.parallel_for(code.address("mark"), ctypes.addressof(marks), 103, 10)
        results.append(list(marks))
    assert results[0] == results[1] == results[2]
    assert sum(results[0]) == 103


def test_many_loops_in_a_row(code, threads):
    often = ctypes.CFUNCTYPE(None, P, P, I64, I64, I64)(code.address("often"))
    for count in (2, 4):
        threads(count)
        env = (I64 * 2)()
        often(code.address("sum"), ctypes.addressof(env), 100, 9, 20_000)
        assert list(env) == [4950 * 20_000, 12 * 20_000]


def test_nested_loops(code, threads):
    threads(3)
    env = (I64 * 2)()
    runtime.parallel_for(code.address("nested"), ctypes.addressof(env), 50, 1)
    assert list(env) == [4950 * 50, 12 * 50]


def test_loops_from_several_threads_at_once(code, threads):
    threads(2)
    envs = [(I64 * 2)() for _ in range(4)]

    def work(env):
        for _ in range(300):
            runtime.parallel_for(code.address("sum"), ctypes.addressof(env), 1000, 10)

    workers = [threading.Thread(target=work, args=(env,)) for env in envs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [list(env) for env in envs] == [[499500 * 300, 100 * 300]] * 4


def test_number_of_threads(threads):
    threads(3)
    assert runtime.num_threads() == 3
    for wrong in (0, -1, 5000):
        with pytest.raises(ValueError, match="number of threads"):
            runtime.set_num_threads(wrong)


def test_sleeping_workers_wake(code, threads):
    threads(3)
    for _ in range(20):
        time.sleep(0.003)
        env = (I64 * 2)()
        runtime.parallel_for(code.address("sum"), ctypes.addressof(env), 1000, 1)
        assert env[0] == 499500


def test_workers_use_the_callers_floating_point_mode(code, threads):
    if llvm.host().triple.split("-")[0] != "x86_64":
        pytest.skip("sets the mode of x86")
    threads(3)
    mode = llvm.load("""
    declare void @llvm.x86.sse.ldmxcsr(ptr)
    define i64 @set(i64 %mode) nounwind {
      %slot = alloca i32
      %bits = trunc i64 %mode to i32
      store i32 %bits, ptr %slot
      call void @llvm.x86.sse.ldmxcsr(ptr %slot)
      ret i64 0
    }""")
    set_mode = dispatch.function(mode.address("set"))
    for bits, kept in [(0x1F80, 1), (0x1F80 | 0x8040, 0), (0x1F80, 1)]:
        env = I64(0)
        set_mode(bits)
        try:
            runtime.parallel_for(code.address("subnormal"), ctypes.addressof(env), 1000, 1)
        finally:
            set_mode(0x1F80)
        assert env.value == 1000 * kept


# Queues ----------------------------------------------------------------------------------------------------


def submit_append(queue, code, log, number, **kw):
    args = (I64 * 2)(ctypes.addressof(log), number)
    return queue.submit(code.address("append"), ctypes.addressof(args), keep=(args, log), **kw)


def test_queue_keeps_order(code):
    queue, log = runtime.Queue(), (I64 * 10_001)()
    jobs = [submit_append(queue, code, log, i) for i in range(10_000)]  # more than the ring holds
    assert jobs[-1].wait() == runtime.DONE
    assert all(job.done() and job.status == 0 for job in jobs)
    assert list(log) == [10_000, *range(10_000)]
    assert queue.pending() == 0


def test_submission_from_many_threads(code):
    queue, log = runtime.Queue(), (I64 * 4001)()

    def work(k):
        for i in range(1000):
            submit_append(queue, code, log, 1000 * k + i)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    queue.drain()
    assert log[0] == 4000
    assert sorted(log[1:]) == list(range(4000))
    for k in range(4):  # each thread's own jobs stay in order
        own = [x for x in log[1:] if x // 1000 == k]
        assert own == sorted(own)


def test_failures_reach_those_who_depend_on_them(code):
    queue, other, log = runtime.Queue(), runtime.Queue(), (I64 * 10)()
    failed = queue.submit(code.address("fail"), 0)
    after = submit_append(queue, code, log, 1, dependencies=[failed])
    elsewhere = submit_append(other, code, log, 2, dependencies=[after])
    free = submit_append(queue, code, log, 3)
    assert [j.wait() for j in (failed, after, elsewhere, free)] == [77, 77, 77, 0]
    late = submit_append(queue, code, log, 4, dependencies=[failed, free])
    fine = submit_append(queue, code, log, 5, dependencies=[free])
    assert [j.wait() for j in (late, fine)] == [77, 0]
    assert list(log[:3]) == [2, 3, 5]


def test_dependencies_across_queues_wait(code):
    one, two, log = runtime.Queue(), runtime.Queue(), (I64 * 10)()
    first = one.submit(code.address("forever"), 0)
    second = submit_append(one, code, log, 1)
    third = submit_append(two, code, log, 2, dependencies=[second])
    time.sleep(0.02)
    assert not third.done() and log[0] == 0
    first.cancel()
    assert third.wait() == 0
    assert list(log[:3]) == [2, 1, 2]


def test_cancel(code):
    queue, log = runtime.Queue(), (I64 * 10)()
    job = queue.submit(code.address("forever"), 0)
    behind = submit_append(queue, code, log, 1)
    assert job.wait(timeout=0.05) < 0 and not job.done()
    assert queue.pending() == 2
    queue.cancel()
    assert job.wait() == runtime.CANCELLED
    assert behind.wait() == runtime.CANCELLED
    assert log[0] == 0
    assert submit_append(queue, code, log, 2).wait() == 0


def test_interrupt_while_waiting(code):
    queue = runtime.Queue()
    job = queue.submit(code.address("forever"), 0)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    start = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            job.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < 1.0
    assert job.wait() == runtime.CANCELLED


def test_the_gil_is_free_while_a_job_runs(code):
    queue = runtime.Queue()
    job = queue.submit(code.address("forever"), 0)
    seen = []
    waiter = threading.Thread(target=lambda: seen.append(job.wait()))
    waiter.start()
    time.sleep(0.02)
    assert not seen
    job.cancel()
    waiter.join(5)
    assert seen == [runtime.CANCELLED]


def test_queue_holds_what_jobs_use(code):
    class Thing:
        pass

    queue = runtime.Queue()
    blocker, thing = queue.submit(code.address("forever"), 0), Thing()
    alive = weakref.ref(thing)
    queue.submit(code.address("fail"), 0, keep=thing)
    del thing
    gc.collect()
    assert alive() is not None
    blocker.cancel()
    queue.drain()
    gc.collect()
    assert alive() is None


def test_status_is_stable_after_the_end(code):
    queue = runtime.Queue()
    jobs = [queue.submit(code.address("fail"), 0) for _ in range(100)]
    queue.drain()
    del jobs[::2]
    gc.collect()
    more = [queue.submit(code.address("forever"), 0)]
    assert all(job.status == 77 for job in jobs)
    more[0].cancel()
    assert more[0].wait() == 1


# Fork ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(code, threads):
    threads(3)
    queue, log = runtime.Queue(), (I64 * 3000)()
    env = (I64 * 2)()
    runtime.parallel_for(code.address("sum"), ctypes.addressof(env), 1000, 1)
    for i in range(500):
        submit_append(queue, code, log, i)
    for _ in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(20)
                assert log[0] == 500  # drained before the fork
                own = (I64 * 2)()
                for _ in range(100):
                    runtime.parallel_for(code.address("sum"), ctypes.addressof(own), 1000, 1)
                assert own[0] == 499500 * 100
                assert submit_append(queue, code, log, 7).wait() == 0
                assert log[501] == 7
                address = runtime.pool.alloc(1 << 20)
                runtime.pool.free(address, 1 << 20)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    env = (I64 * 2)()
    runtime.parallel_for(code.address("sum"), ctypes.addressof(env), 1000, 1)
    assert env[0] == 499500
    assert submit_append(queue, code, log, 8).wait() == 0
    assert log[0] == 501


# Buffers ---------------------------------------------------------------------------------------------------


def test_classes():
    last = 0
    for n in [*range(0, 5000, 7), 65536, 65537, 10**6, 10**8, 2**33 + 1]:
        size = class_bytes(n)
        assert size >= n and size % 64 == 0 and size >= last
        assert n < 512 or size <= n * 1.13 + 4096
        assert class_bytes(size) == size
        last = size


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 1000, 1025, 60_000, 65_536, 65_537, 1 << 20, (5 << 20) + 3])
def test_blocks_are_aligned_disjoint_and_reused(nbytes):
    pool = Pool()
    blocks = [pool.alloc(nbytes) for _ in range(20)]
    assert len(set(blocks)) == 20 and all(b % 64 == 0 for b in blocks)
    ordered = sorted(blocks)
    assert all(b - a >= nbytes for a, b in pairwise(ordered))
    for i, block in enumerate(blocks):
        ctypes.memset(block, i, nbytes)
    for i, block in enumerate(blocks):
        assert ctypes.string_at(block, nbytes) == bytes([i]) * nbytes
        pool.free(block, nbytes)
    assert {pool.alloc(nbytes) for _ in range(20)} == set(blocks)


def test_free_lists_of_small_blocks():
    pool = Pool()
    free = pool.free_list(4)
    block = free.pop() if free else pool.grow(4)
    free.append(block)
    assert pool.alloc(64) == block and not free
    with pytest.raises(ValueError, match="alloc"):
        pool.free_list(1 << 20)


def test_retention_is_bounded():
    pool = Pool(retain_limit=10 << 20)
    blocks = [pool.alloc(3 << 20) for _ in range(8)]
    for block in blocks:
        pool.free(block, 3 << 20)
    assert pool.retained <= 10 << 20
    assert pool.reserved <= 13 << 20
    assert pool.trim() > 0
    assert pool.retained == 0 and pool.reserved == 0


def test_memory_that_cannot_be_had():
    pool = Pool()
    kept = pool.alloc(5 << 20)
    pool.free(kept, 5 << 20)
    with pytest.raises(MemoryError, match="bytes"):
        pool.alloc(1 << 55)
    assert pool.alloc(100)


def test_free_from_a_finalizer():
    pool = Pool()

    class Owner:
        def __init__(self):
            self.address = pool.alloc(1 << 20)
            self.cycle = self

        def __del__(self):
            pool.free(self.address, 1 << 20)

    before = gc.get_threshold()
    gc.set_threshold(2)
    try:
        for _ in range(300):
            Owner()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert pool.reserved < 300 << 20


def test_pool_from_threads():
    pool, wrong = Pool(), []

    def work(k):
        held = []
        for i in range(2000):
            n = (64, 500, 5000, 100_000)[i % 4]
            address = pool.alloc(n)
            I64.from_address(address).value = k * 10_000 + i
            held.append((address, n, k * 10_000 + i))
            if len(held) > 10:
                address, n, value = held.pop(0)
                if I64.from_address(address).value != value:
                    wrong.append(k)
                pool.free(address, n)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_native_memory():
    alloc = dispatch.function(runtime.address("styrax_alloc"))
    free = dispatch.function(runtime.address("styrax_free"))
    seen = {}
    for n in [0, 1, 63, 64, 4000, 4032, 4033, 5000, 10**5, 10**6, (4 << 20) + 5, 20 << 20]:
        blocks = [alloc(n) for _ in range(3)]
        assert all(b and b % 64 == 0 for b in blocks) and len(set(blocks)) == 3
        for b in blocks:
            ctypes.memset(b, 255, n)
        seen[n] = blocks
    for n, blocks in seen.items():
        for b in blocks:
            free(b)
        again = [alloc(n) for _ in range(3)]
        assert set(again) == set(blocks)
        for b in again:
            free(b)
    assert alloc(1 << 60) == 0 and alloc(-1) == 0
    free(0)


# Calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", [False, True])
def test_make_caller(code, release):
    add = dispatch.make_caller(code.address("add"), release)
    a, b, o = ctypes.c_float(1.5), ctypes.c_float(2.0), ctypes.c_float()
    assert add(*map(ctypes.addressof, (a, b, o))) == 0
    assert o.value == 3.5
    for wrong, error in [(("x",), TypeError), ((1.5, 2, 3), TypeError), ((1 << 70, 1, 1), OverflowError)]:
        with pytest.raises(error):
            add(*wrong)


@pytest.mark.parametrize("release", [False, True])
def test_function(code, release):
    difference = dispatch.function(code.address("difference"), release)
    assert difference(3, 10) == -7
    assert difference(-1, -(2**63) + 5) == 2**63 - 6
    assert dispatch.function(code.address("eight"), release)(1, 2, 3, 4, 5, 6, 7, 8) == 24
    with pytest.raises(TypeError, match="number of arguments"):
        difference(*range(9))
    with pytest.raises(TypeError):
        difference("1", 2)


@pytest.mark.parametrize("dtype, numbers", [
    ("bool", [0, 1]), ("int8", [-128, 127]), ("uint8", [0, 255]), ("int16", [-(2**15), 2**15 - 1]),
    ("uint16", [0, 2**16 - 1]), ("int32", [-(2**31), 2**31 - 1, -1]), ("uint32", [0, 2**32 - 1]),
    ("int64", [-(2**63), 2**63 - 1, -1]), ("uint64", [0, 2**64 - 1]), ("float32", [0.5, -1.0, 3, 1e30]),
    ("float64", [0.1, -1.0, 7, 1e300])])
def test_scalars_in_memory(dtype, numbers):
    put, get = dispatch.put(dtype), dispatch.get(dtype)
    block = (ctypes.c_uint64 * 2)(0, 0)
    for number in numbers:
        put(ctypes.addressof(block), number)
        got = get(ctypes.addressof(block))
        assert got == number or (dtype == "float32" and got == ctypes.c_float(number).value)
    assert block[1] == 0
    for wrong in [(ctypes.addressof(block), "x"), ("x", 1), (ctypes.addressof(block),), ()]:
        with pytest.raises(TypeError):
            put(*wrong)
    with pytest.raises(TypeError):
        get()
    with pytest.raises(TypeError):
        get("x")


def test_job_layout_matches():
    assert native_queue.JOB_DEPENDENCY_COUNT + 8 <= native_queue.JOB_BYTES
    assert native_queue.RING & (native_queue.RING - 1) == 0
