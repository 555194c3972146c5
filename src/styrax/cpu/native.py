"""The native runtime, as LLVM IR: worker threads, the job queue's executor, memory for running programs.

It is compiled once per host and kept on disk like any other module. No function here touches Python.

What generated code may call::

    declare void @styrax_parallel_for(ptr fn, ptr env, i64 n, i64 chunk) nounwind
        fn(env, begin, end) for the pieces [0, chunk), [chunk, 2·chunk), … of [0, n), on the workers and the
        caller; returns when all are done. The pieces do not depend on the number of threads. A call from
        inside a piece, or while another thread uses the workers, runs its pieces in order on its own thread.
        Workers run under the caller's floating-point mode (rounding, flushing of subnormals).
    declare void @styrax_copy(ptr to, ptr from, i64 bytes) nounwind
        copies memory that does not overlap, by pieces of such a loop.
    declare ptr @styrax_alloc(i64 bytes) nounwind
        64-byte aligned memory, null when there is none.
    declare void @styrax_free(ptr block) nounwind

Programs run by a queue have the signature ``i32 program(ptr args, ptr cancel)``. They return 0, or a positive
status; loops that may run long load the word ``cancel`` (monotonic, i32) at their back-edge and return
CANCELLED when it is not 0.

A job is a block of 64 bytes: fn, args, status (i32), cancel (i32), dependencies (array of pointers to
jobs), their number. Status: QUEUED, RUNNING (both negative), then the result.

A queue is a block of QUEUE_BYTES: see the offsets below. Its ring is filled under a lock by any thread and
emptied by its one executor thread.
"""

from __future__ import annotations

from . import floating_point, native_memory, native_queue

# Waiting on a word and waking its waiters, by system.
_WORDS = {
    "linux": """
declare i64 @syscall(i64, ...)

define internal void @wait_word(ptr %word, i32 %expected, i64 %nanoseconds) nounwind noinline {
  %time = alloca [2 x i64], align 8
  %seconds = sdiv i64 %nanoseconds, 1000000000
  %rest = srem i64 %nanoseconds, 1000000000
  store i64 %seconds, ptr %time
  %second = getelementptr i8, ptr %time, i64 8
  store i64 %rest, ptr %second
  %forever = icmp slt i64 %nanoseconds, 0
  %limit = select i1 %forever, ptr null, ptr %time
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %expected, ptr %limit, ptr null, i32 0)
  ret void
}

define internal void @wake_word(ptr %word, i32 %count) nounwind noinline {
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 %count, ptr null, ptr null, i32 0)
  ret void
}
""",
    "darwin": """
declare i32 @__ulock_wait(i32, ptr, i64, i32)
declare i32 @__ulock_wake(i32, ptr, i64)

define internal void @wait_word(ptr %word, i32 %expected, i64 %nanoseconds) nounwind noinline {
  %forever = icmp slt i64 %nanoseconds, 0
  %rounded = add i64 %nanoseconds, 999
  %microseconds = sdiv i64 %rounded, 1000
  %finite = call i64 @llvm.smax.i64(i64 %microseconds, i64 1)
  %limit64 = select i1 %forever, i64 0, i64 %finite
  %limit = trunc i64 %limit64 to i32
  %value = zext i32 %expected to i64
  %r = call i32 @__ulock_wait(i32 1, ptr %word, i64 %value, i32 %limit)
  ret void
}

define internal void @wake_word(ptr %word, i32 %count) nounwind noinline {
  %r = call i32 @__ulock_wake(i32 257, ptr %word, i64 0)
  ret void
}
""",
}

# Instructions that only one kind of processor has: a pause in a spin loop.
_PROCESSORS = {
    "x86_64": """
declare void @llvm.x86.sse2.pause()

define internal void @pause() nounwind alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
""",
    "aarch64": """
declare void @llvm.aarch64.hint(i32)

define internal void @pause() nounwind alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
""",
}

_THREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)

declare i32 @sched_yield()

; Between two looks at a word, the k-th of them: what is waited for may need this very core.
define internal void @rest(i32 %k) nounwind alwaysinline {
entry:
  call void @pause()
  %part = and i32 %k, 63
  %long = icmp eq i32 %part, 63
  br i1 %long, label %yield, label %end
yield:
  %ignored = call i32 @sched_yield()
  br label %end
end:
  ret void
}

@styrax_thread_limit = global i32 1, align 64      ; threads that a parallel loop may use, the caller included
@styrax_spins = global i32 2000, align 4           ; looks at a word before sleeping on it
@started = internal global i32 0, align 4          ; worker threads alive
@busy = internal global i32 0, align 64            ; a parallel loop is running
@epoch = internal global i32 0, align 64           ; counts parallel loops; idle workers watch it
@sleepers = internal global i32 0, align 64        ; workers asleep on it
@gate = internal global i32 0, align 64            ; workers inside | 65536: open | 131072: caller asleep
@claimed = internal global [RANGES x [8 x i64]] zeroinitializer, align 64  ; pieces of each range; a cache line each
@loop_ranges = internal global i64 0               ; as many as threads may take part
@loop_fn = internal global ptr null, align 64
@loop_env = internal global ptr null
@loop_n = internal global i64 0
@loop_chunk = internal global i64 0
@loop_pieces = internal global i64 0
@loop_mode = internal global i64 0

; Threads of ours take no signals (they are the main thread's, which waits interruptibly) except faults.
define internal i32 @start_thread(ptr %body, ptr %argument) nounwind noinline {
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca ptr, align 8
  %a = call i32 @sigfillset(ptr %all)
  %ill = call i32 @sigdelset(ptr %all, i32 4)
  %abort = call i32 @sigdelset(ptr %all, i32 6)
  %bus = call i32 @sigdelset(ptr %all, i32 SIGBUS)
  %float = call i32 @sigdelset(ptr %all, i32 8)
  %segment = call i32 @sigdelset(ptr %all, i32 11)
  %b = call i32 @pthread_sigmask(i32 SETMASK, ptr %all, ptr %old)
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr %body, ptr %argument)
  %c = call i32 @pthread_sigmask(i32 SETMASK, ptr %old, ptr null)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %detach, label %end
detach:
  %t = load ptr, ptr %thread
  %d = call i32 @pthread_detach(ptr %t)
  br label %end
end:
  ret i32 %failed
}

; Only the holder of @busy comes here.
define internal void @start_workers(i32 %wanted) nounwind noinline {
entry:
  %have = load i32, ptr @started
  br label %head
head:
  %i = phi i32 [%have, %entry], [%more, %counted]
  %enough = icmp sge i32 %i, %wanted
  br i1 %enough, label %end, label %start
start:
  %seen = load atomic i32, ptr @epoch monotonic, align 4
  %wide = zext i32 %seen to i64
  %number = add i32 %i, 1
  %number64 = zext i32 %number to i64
  %above = shl i64 %number64, 32
  %both = or i64 %above, %wide
  %argument = inttoptr i64 %both to ptr
  %failed = call i32 @start_thread(ptr @work, ptr %argument)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %counted, label %end
counted:
  %more = add i32 %i, 1
  store i32 %more, ptr @started
  br label %head
end:
  ret void
}

; Threads begin with a range of their own, so that one loop after another finds in a core's caches what it left there,
; and go on with what is left of the others'.
define internal void @claim_pieces(i64 %self) nounwind {
entry:
  %fn = load ptr, ptr @loop_fn
  %env = load ptr, ptr @loop_env
  %n = load i64, ptr @loop_n
  %chunk = load i64, ptr @loop_chunk
  %pieces = load i64, ptr @loop_pieces
  %ranges = load i64, ptr @loop_ranges
  %own = urem i64 %self, %ranges
  br label %range
range:
  %r = phi i64 [%own, %entry], [%r1, %next]
  %left = phi i64 [%ranges, %entry], [%left1, %next]
  %low = mul i64 %r, %pieces
  %first = udiv i64 %low, %ranges
  %high = add i64 %low, %pieces
  %last = udiv i64 %high, %ranges
  %counter = getelementptr [8 x i64], ptr @claimed, i64 %r
  br label %head
head:
  %k = atomicrmw add ptr %counter, i64 1 monotonic
  %i = add i64 %first, %k
  %some = icmp slt i64 %i, %last
  br i1 %some, label %piece, label %next
piece:
  %begin = mul i64 %i, %chunk
  %after = add i64 %begin, %chunk
  %stop = call i64 @llvm.smin.i64(i64 %after, i64 %n)
  call void %fn(ptr %env, i64 %begin, i64 %stop)
  br label %head
next:
  %left1 = add i64 %left, -1
  %more = icmp sgt i64 %left1, 0
  %up = add i64 %r, 1
  %round = icmp eq i64 %up, %ranges
  %r1 = select i1 %round, i64 0, i64 %up
  br i1 %more, label %range, label %end
end:
  ret void
}

define internal ptr @work(ptr %argument) nounwind {
entry:
  %wide = ptrtoint ptr %argument to i64
  %first = trunc i64 %wide to i32
  %self = lshr i64 %wide, 32
  br label %idle
idle:
  %seen = phi i32 [%first, %entry], [%now, %closed], [%now, %left], [%now, %leave]
  %spins = load atomic i32, ptr @styrax_spins monotonic, align 4
  br label %spin
spin:
  %k = phi i32 [0, %idle], [%k1, %spun]
  %now0 = load atomic i32, ptr @epoch acquire, align 4
  %changed = icmp ne i32 %now0, %seen
  br i1 %changed, label %awake, label %wait
wait:
  call void @rest(i32 %k)
  %k1 = add i32 %k, 1
  %tired = icmp sge i32 %k1, %spins
  br i1 %tired, label %sleep, label %spun
spun:
  br label %spin
sleep:
  %a = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @wait_word(ptr @epoch, i32 %seen, i64 -1)
  %b = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %now1 = load atomic i32, ptr @epoch acquire, align 4
  %still = icmp eq i32 %now1, %seen
  br i1 %still, label %sleep, label %awake
awake:
  %now = phi i32 [%now0, %spin], [%now1, %sleep]
  br label %enter
enter:
  %g = load atomic i32, ptr @gate acquire, align 4
  %flag = and i32 %g, 65536
  %shut = icmp eq i32 %flag, 0
  %inside = and i32 %g, 65535
  %limit = load atomic i32, ptr @styrax_thread_limit monotonic, align 4
  %others = sub i32 %limit, 1
  %full = icmp sge i32 %inside, %others
  %out = or i1 %shut, %full
  br i1 %out, label %closed, label %try
try:
  %g1 = add i32 %g, 1
  %pair = cmpxchg ptr @gate, i32 %g, i32 %g1 acq_rel acquire
  %in = extractvalue {i32, i1} %pair, 1
  br i1 %in, label %run, label %enter
closed:
  br label %idle
run:
  %mode = load i64, ptr @loop_mode
  call void @set_mode(i64 %mode)
  call void @claim_pieces(i64 %self)
  %old = atomicrmw sub ptr @gate, i32 1 acq_rel
  %last = icmp eq i32 %old, 131073
  br i1 %last, label %leave, label %left
leave:
  call void @wake_word(ptr @gate, i32 1)
  br label %idle
left:
  br label %idle
}

define void @styrax_parallel_for(ptr %fn, ptr %env, i64 %n, i64 %chunk0) nounwind {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %count, label %end
count:
  %chunk = call i64 @llvm.smax.i64(i64 %chunk0, i64 1)
  %over = add i64 %n, -1
  %whole = sdiv i64 %over, %chunk
  %pieces = add i64 %whole, 1
  %limit = load atomic i32, ptr @styrax_thread_limit monotonic, align 4
  %alone = icmp sle i32 %limit, 1
  %single = icmp sle i64 %pieces, 1
  %serial0 = or i1 %alone, %single
  br i1 %serial0, label %serial, label %try
try:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %pair, 1
  br i1 %mine, label %open, label %serial

serial:
  br label %step
step:
  %begin = phi i64 [0, %serial], [%after, %step]
  %after = add i64 %begin, %chunk
  %stop = call i64 @llvm.smin.i64(i64 %after, i64 %n)
  call void %fn(ptr %env, i64 %begin, i64 %stop)
  %more = icmp slt i64 %after, %n
  br i1 %more, label %step, label %end

open:
  store ptr %fn, ptr @loop_fn
  store ptr %env, ptr @loop_env
  store i64 %n, ptr @loop_n
  store i64 %chunk, ptr @loop_chunk
  store i64 %pieces, ptr @loop_pieces
  %mode = call i64 @get_mode()
  store i64 %mode, ptr @loop_mode
  %limit64 = zext i32 %limit to i64
  %threads = call i64 @llvm.smin.i64(i64 %limit64, i64 RANGES)
  %ranges = call i64 @llvm.smin.i64(i64 %threads, i64 %pieces)
  store i64 %ranges, ptr @loop_ranges
  br label %reset
reset:
  %range = phi i64 [0, %open], [%range1, %reset]
  %counter = getelementptr [8 x i64], ptr @claimed, i64 %range
  store atomic i64 0, ptr %counter monotonic, align 8
  %range1 = add i64 %range, 1
  %another = icmp slt i64 %range1, %ranges
  br i1 %another, label %reset, label %set
set:
  %others = sub i32 %limit, 1
  %have = load i32, ptr @started
  %few = icmp slt i32 %have, %others
  br i1 %few, label %grow, label %ready
grow:
  call void @start_workers(i32 %others)
  br label %ready
ready:
  store atomic i32 65536, ptr @gate release, align 4
  %e = atomicrmw add ptr @epoch, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %none = icmp eq i32 %asleep, 0
  br i1 %none, label %run, label %wake
wake:
  %spare = add i64 %pieces, -1
  %useful = call i64 @llvm.smin.i64(i64 %spare, i64 65535)
  %useful32 = trunc i64 %useful to i32
  %bounded = call i32 @llvm.umin.i32(i32 %useful32, i32 %others)
  call void @wake_word(ptr @epoch, i32 %bounded)
  br label %run
run:
  call void @claim_pieces(i64 0)
  %g = atomicrmw and ptr @gate, i32 -65537 acq_rel
  %spins = load atomic i32, ptr @styrax_spins monotonic, align 4
  br label %join
join:
  %k = phi i32 [0, %run], [%k1, %spin], [0, %sleep]
  %now = load atomic i32, ptr @gate acquire, align 4
  %inside = and i32 %now, 65535
  %free = icmp eq i32 %inside, 0
  br i1 %free, label %joined, label %check
check:
  %tired = icmp sge i32 %k, %spins
  br i1 %tired, label %mark, label %spin
spin:
  call void @rest(i32 %k)
  %k1 = add i32 %k, 1
  br label %join
mark:
  %before = atomicrmw or ptr @gate, i32 131072 acq_rel
  %left = and i32 %before, 65535
  %gone = icmp eq i32 %left, 0
  br i1 %gone, label %joined, label %sleep
sleep:
  %value = or i32 %before, 131072
  call void @wait_word(ptr @gate, i32 %value, i64 -1)
  br label %join
joined:
  store atomic i32 0, ptr @busy release, align 4
  br label %end
end:
  ret void
}
"""

_FORK = """
; Around fork: the lock is held so that the child finds whole lists.
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @copy_piece(ptr %env, i64 %begin, i64 %end) nounwind {
  %to0 = load ptr, ptr %env
  %second = getelementptr ptr, ptr %env, i64 1
  %from0 = load ptr, ptr %second
  %to = getelementptr i8, ptr %to0, i64 %begin
  %from = getelementptr i8, ptr %from0, i64 %begin
  %size = sub i64 %end, %begin
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
}

define void @styrax_copy(ptr %to, ptr %from, i64 %bytes) nounwind {
  %env = alloca [2 x ptr]
  store ptr %to, ptr %env
  %second = getelementptr ptr, ptr %env, i64 1
  store ptr %from, ptr %second
  call void @styrax_parallel_for(ptr @copy_piece, ptr %env, i64 %bytes, i64 COPIED)
  ret void
}

define void @styrax_before_fork() nounwind {
  call void @lock(ptr @memory_lock)
  ret void
}

define void @styrax_after_fork_in_parent() nounwind {
  call void @unlock(ptr @memory_lock)
  ret void
}

; The child has none of our threads: they start again when they are needed.
define void @styrax_after_fork_in_child() nounwind {
  call void @unlock(ptr @memory_lock)
  store i32 0, ptr @started
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i32 0, ptr @gate seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @waiters seq_cst, align 4
  ret void
}
"""

_FILES = """
; When each of `count` files last changed, in nanoseconds (-1 where there is none), and its size. Their names lie one
; after the other.
declare i64 @strlen(ptr)

define void @styrax_file_states(ptr %names, i64 %count, ptr %states) nounwind {
entry:
  %info = alloca [256 x i8], align 8
  %size_at = getelementptr i8, ptr %info, i64 48
  %seconds_at = getelementptr i8, ptr %info, i64 88
  %rest_at = getelementptr i8, ptr %info, i64 96
  store i64 0, ptr %size_at
  store i64 0, ptr %seconds_at
  store i64 0, ptr %rest_at
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %look]
  %name = phi ptr [%names, %entry], [%name1, %look]
  %state = phi ptr [%states, %entry], [%state1, %look]
  %some = icmp slt i64 %i, %count
  br i1 %some, label %look, label %end
look:
  %r = call i64 (i64, ...) @syscall(i64 NEWFSTATAT, i64 -100, ptr %name, ptr %info, i64 0)
  %there = icmp eq i64 %r, 0
  %seconds = load i64, ptr %seconds_at
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  %time = select i1 %there, i64 %sum, i64 -1
  %size = load i64, ptr %size_at
  store i64 %time, ptr %state
  %second = getelementptr i64, ptr %state, i64 1
  store i64 %size, ptr %second
  %i1 = add i64 %i, 1
  %length = call i64 @strlen(ptr %name)
  %past = add i64 %length, 1
  %name1 = getelementptr i8, ptr %name, i64 %past
  %state1 = getelementptr i64, ptr %state, i64 2
  br label %head
end:
  ret void
}
"""


def source(processor: str, system: str) -> str:
    """IR of the runtime for "x86_64" or "aarch64" under "linux" or "darwin".

    Raises NotImplementedError for other processors and systems.
    """
    processor = floating_point.processor(processor)
    if system not in _WORDS or processor not in _PROCESSORS:
        raise NotImplementedError(f"no native runtime for {processor} under {system}")
    text = _WORDS[system] + _PROCESSORS[processor] + floating_point.source(processor)
    text += _THREADS + native_queue.TEXT + native_memory.TEXT + _FORK
    if system == "linux":
        text += _FILES
    names = {
        "NEWFSTATAT": {"x86_64": 262, "aarch64": 79}[processor],
        "FUTEX": {"x86_64": 202, "aarch64": 98}[processor],
        "SETMASK": {"linux": 2, "darwin": 3}[system],
        "HUGEPAGE": {"linux": 14, "darwin": 0}[system],
        "SIGBUS": {"linux": 7, "darwin": 10}[system],
        "MASK": native_queue.RING - 1,
        "COPIED": 1 << 18,  # bytes of a piece
        "RANGES": 64,
    }
    for name in ("QUEUED", "RUNNING", "CANCELLED", "JOB_ARGS", "JOB_STATUS", "JOB_CANCEL", "JOB_DEPENDENCIES",
                 "JOB_DEPENDENCY_COUNT", "QUEUE_TAIL", "QUEUE_WORD", "QUEUE_SLEEPING", "QUEUE_LOCK",
                 "QUEUE_STARTED", "QUEUE_RING", "RING"):
        names[name] = getattr(native_queue, name)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, str(names[name]))
    return text
