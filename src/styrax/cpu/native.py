"""The native runtime, as LLVM IR: worker threads, the job queue's executor, memory for running programs.

It is compiled once per host and kept on disk like any other module. No function here touches Python.

What generated code may call::

    declare void @styrax_parallel_for(ptr fn, ptr env, i64 n, i64 chunk) nounwind
        fn(env, begin, end) for the pieces [0, chunk), [chunk, 2·chunk), … of [0, n), on the workers and the
        caller; returns when all are done. The pieces do not depend on the number of threads. A call from
        inside a piece, or while another thread uses the workers, runs its pieces in order on its own thread.
        Workers run under the caller's floating-point mode (rounding, flushing of subnormals).
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

from . import native_memory

QUEUED, RUNNING = -1, -2
DONE, CANCELLED, OUT_OF_MEMORY, OUTSIDE = 0, 1, 2, 3  # the last: an access outside a buffer, found by a check

JOB_BYTES = 64
JOB_FN, JOB_ARGS, JOB_STATUS, JOB_CANCEL, JOB_DEPENDENCIES, JOB_DEPENDENCY_COUNT = 0, 8, 16, 20, 24, 32

RING = 1024
QUEUE_HEAD, QUEUE_TAIL, QUEUE_WORD, QUEUE_SLEEPING, QUEUE_LOCK, QUEUE_STARTED, QUEUE_RING = (
    0, 64, 128, 132, 192, 196, 256)
QUEUE_BYTES = QUEUE_RING + 8 * RING

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

# Instructions that only one kind of processor has: a pause in a spin loop, the floating-point mode.
_PROCESSORS = {
    "x86_64": """
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal void @pause() nounwind alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i64 @get_mode() nounwind alwaysinline {
  %slot = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %slot)
  %value = load i32, ptr %slot
  %bits = and i32 %value, -64
  %wide = zext i32 %bits to i64
  ret i64 %wide
}
define internal void @set_mode(i64 %mode) nounwind alwaysinline {
  %slot = alloca i32, align 4
  %value = trunc i64 %mode to i32
  store i32 %value, ptr %slot
  call void @llvm.x86.sse.ldmxcsr(ptr %slot)
  ret void
}
""",
    "aarch64": """
declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal void @pause() nounwind alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i64 @get_mode() nounwind alwaysinline {
  %value = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %value
}
define internal void @set_mode(i64 %mode) nounwind alwaysinline {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
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

@styrax_thread_limit = global i32 1, align 64      ; threads that a parallel loop may use, the caller included
@styrax_spins = global i32 2000, align 4           ; looks at a word before sleeping on it
@started = internal global i32 0, align 4          ; worker threads alive
@busy = internal global i32 0, align 64            ; a parallel loop is running
@epoch = internal global i32 0, align 64           ; counts parallel loops; idle workers watch it
@sleepers = internal global i32 0, align 64        ; workers asleep on it
@gate = internal global i32 0, align 64            ; workers inside | 65536: open | 131072: caller asleep
@next = internal global i64 0, align 64            ; next piece to claim
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
  %argument = inttoptr i64 %wide to ptr
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

define internal void @claim_pieces() nounwind {
entry:
  %fn = load ptr, ptr @loop_fn
  %env = load ptr, ptr @loop_env
  %n = load i64, ptr @loop_n
  %chunk = load i64, ptr @loop_chunk
  %pieces = load i64, ptr @loop_pieces
  br label %head
head:
  %i = atomicrmw add ptr @next, i64 1 monotonic
  %some = icmp slt i64 %i, %pieces
  br i1 %some, label %piece, label %end
piece:
  %begin = mul i64 %i, %chunk
  %after = add i64 %begin, %chunk
  %stop = call i64 @llvm.smin.i64(i64 %after, i64 %n)
  call void %fn(ptr %env, i64 %begin, i64 %stop)
  br label %head
end:
  ret void
}

define internal ptr @work(ptr %argument) nounwind {
entry:
  %wide = ptrtoint ptr %argument to i64
  %first = trunc i64 %wide to i32
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
  call void @pause()
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
  call void @claim_pieces()
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
  store atomic i64 0, ptr @next monotonic, align 8
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
  call void @claim_pieces()
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
  call void @pause()
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

_QUEUE = """
@waiters = internal global i32 0, align 64         ; threads asleep on the status of some job

; Waits until the job's status is final or the time is over; returns the status.
define i64 @styrax_wait(ptr %job, i64 %nanoseconds) nounwind {
entry:
  %word = getelementptr i8, ptr %job, i64 JOB_STATUS
  %spins = load atomic i32, ptr @styrax_spins monotonic, align 4
  br label %spin
spin:
  %k = phi i32 [0, %entry], [%k1, %again]
  %s = load atomic i32, ptr %word acquire, align 4
  %final = icmp sge i32 %s, 0
  br i1 %final, label %end, label %check
check:
  %k1 = add i32 %k, 1
  %tired = icmp sge i32 %k1, %spins
  br i1 %tired, label %sleep, label %again
again:
  call void @pause()
  br label %spin
sleep:
  %a = atomicrmw add ptr @waiters, i32 1 seq_cst
  %s1 = load atomic i32, ptr %word seq_cst, align 4
  %final1 = icmp sge i32 %s1, 0
  br i1 %final1, label %woken, label %doze
doze:
  call void @wait_word(ptr %word, i32 %s1, i64 %nanoseconds)
  br label %woken
woken:
  %b = atomicrmw sub ptr @waiters, i32 1 seq_cst
  %s2 = load atomic i32, ptr %word acquire, align 4
  br label %end
end:
  %result = phi i32 [%s, %spin], [%s2, %woken]
  %wide = sext i32 %result to i64
  ret i64 %wide
}

define internal void @lock(ptr %word) nounwind alwaysinline {
entry:
  br label %try
try:
  %pair = cmpxchg ptr %word, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %pair, 1
  br i1 %mine, label %end, label %wait
wait:
  call void @pause()
  br label %try
end:
  ret void
}

define internal void @unlock(ptr %word) nounwind alwaysinline {
  store atomic i32 0, ptr %word release, align 4
  ret void
}

; Fills a job in and appends it. 0: accepted; 1: the ring is full; 2: the executor thread cannot be started.
define i64 @styrax_submit(ptr %queue, ptr %job, ptr %fn, ptr %args, ptr %others, i64 %count) nounwind {
entry:
  %lock = getelementptr i8, ptr %queue, i64 QUEUE_LOCK
  %tail_at = getelementptr i8, ptr %queue, i64 QUEUE_TAIL
  %started_at = getelementptr i8, ptr %queue, i64 QUEUE_STARTED
  %ring = getelementptr i8, ptr %queue, i64 QUEUE_RING
  %status = getelementptr i8, ptr %job, i64 JOB_STATUS
  call void @lock(ptr %lock)
  %started = load i32, ptr %started_at
  %alive = icmp ne i32 %started, 0
  br i1 %alive, label %room, label %start
start:
  %failed = call i32 @start_thread(ptr @execute, ptr %queue)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %started_now, label %refuse
started_now:
  store i32 1, ptr %started_at
  br label %room
room:
  %head = load atomic i64, ptr %queue acquire, align 8
  %tail = load i64, ptr %tail_at
  %used = sub i64 %tail, %head
  %full = icmp sge i64 %used, RING
  br i1 %full, label %refuse, label %put
refuse:
  %why = phi i64 [2, %start], [1, %room]
  call void @unlock(ptr %lock)
  ret i64 %why
put:
  store ptr %fn, ptr %job
  %args_at = getelementptr i8, ptr %job, i64 JOB_ARGS
  store ptr %args, ptr %args_at
  %cancel_at = getelementptr i8, ptr %job, i64 JOB_CANCEL
  store atomic i32 0, ptr %cancel_at monotonic, align 4
  %others_at = getelementptr i8, ptr %job, i64 JOB_DEPENDENCIES
  store ptr %others, ptr %others_at
  %count_at = getelementptr i8, ptr %job, i64 JOB_DEPENDENCY_COUNT
  store i64 %count, ptr %count_at
  store atomic i32 QUEUED, ptr %status monotonic, align 4
  %slot = and i64 %tail, MASK
  %at = getelementptr ptr, ptr %ring, i64 %slot
  store ptr %job, ptr %at
  %tail1 = add i64 %tail, 1
  store atomic i64 %tail1, ptr %tail_at release, align 8
  call void @unlock(ptr %lock)
  %word = getelementptr i8, ptr %queue, i64 QUEUE_WORD
  %e = atomicrmw add ptr %word, i32 1 seq_cst
  %sleeping_at = getelementptr i8, ptr %queue, i64 QUEUE_SLEEPING
  %sleeping = load atomic i32, ptr %sleeping_at seq_cst, align 4
  %awake = icmp eq i32 %sleeping, 0
  br i1 %awake, label %end, label %wake
wake:
  call void @wake_word(ptr %word, i32 1)
  br label %end
end:
  ret i64 0
}

; The first failed status among the jobs that this one depends on, or 0. Waits for those of other queues.
define internal i32 @dependencies(ptr %job) nounwind {
entry:
  %list_at = getelementptr i8, ptr %job, i64 JOB_DEPENDENCIES
  %list = load ptr, ptr %list_at
  %count_at = getelementptr i8, ptr %job, i64 JOB_DEPENDENCY_COUNT
  %count = load i64, ptr %count_at
  %cancel = getelementptr i8, ptr %job, i64 JOB_CANCEL
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %good]
  %some = icmp slt i64 %i, %count
  br i1 %some, label %one, label %fine
one:
  %at = getelementptr ptr, ptr %list, i64 %i
  %other = load ptr, ptr %at
  br label %wait
wait:
  %stop = load atomic i32, ptr %cancel monotonic, align 4
  %cancelled = icmp ne i32 %stop, 0
  br i1 %cancelled, label %give_up, label %ask
ask:
  %wide = call i64 @styrax_wait(ptr %other, i64 50000000)
  %s = trunc i64 %wide to i32
  %final = icmp sge i32 %s, 0
  br i1 %final, label %judge, label %wait
judge:
  %failed = icmp ne i32 %s, 0
  br i1 %failed, label %bad, label %good
good:
  %i1 = add i64 %i, 1
  br label %head
give_up:
  ret i32 CANCELLED
bad:
  ret i32 %s
fine:
  ret i32 0
}

define internal ptr @execute(ptr %queue) nounwind {
entry:
  %tail_at = getelementptr i8, ptr %queue, i64 QUEUE_TAIL
  %word = getelementptr i8, ptr %queue, i64 QUEUE_WORD
  %sleeping = getelementptr i8, ptr %queue, i64 QUEUE_SLEEPING
  %ring = getelementptr i8, ptr %queue, i64 QUEUE_RING
  %mode = call i64 @get_mode()
  br label %idle
idle:
  %spins = load atomic i32, ptr @styrax_spins monotonic, align 4
  %head = load i64, ptr %queue
  br label %look
look:
  %k = phi i32 [0, %idle], [%k1, %again], [0, %woken]
  %seen = load atomic i32, ptr %word seq_cst, align 4
  %tail = load atomic i64, ptr %tail_at acquire, align 8
  %empty = icmp eq i64 %head, %tail
  br i1 %empty, label %wait, label %take
wait:
  %k1 = add i32 %k, 1
  %tired = icmp sge i32 %k1, %spins
  br i1 %tired, label %sleep, label %again
again:
  call void @pause()
  br label %look
sleep:
  store atomic i32 1, ptr %sleeping seq_cst, align 4
  call void @wait_word(ptr %word, i32 %seen, i64 -1)
  br label %woken
woken:
  store atomic i32 0, ptr %sleeping seq_cst, align 4
  br label %look
take:
  %slot = and i64 %head, MASK
  %at = getelementptr ptr, ptr %ring, i64 %slot
  %job = load ptr, ptr %at
  %status = getelementptr i8, ptr %job, i64 JOB_STATUS
  %cancel = getelementptr i8, ptr %job, i64 JOB_CANCEL
  store atomic i32 RUNNING, ptr %status monotonic, align 4
  %stop = load atomic i32, ptr %cancel monotonic, align 4
  %cancelled = icmp ne i32 %stop, 0
  br i1 %cancelled, label %finish, label %needs
needs:
  %needed = call i32 @dependencies(ptr %job)
  %broken = icmp ne i32 %needed, 0
  br i1 %broken, label %finish, label %run
run:
  %fn = load ptr, ptr %job
  %args_at = getelementptr i8, ptr %job, i64 JOB_ARGS
  %args = load ptr, ptr %args_at
  %returned = call i32 %fn(ptr %args, ptr %cancel)
  call void @set_mode(i64 %mode)
  %result0 = and i32 %returned, 2147483647
  br label %finish
finish:
  %result = phi i32 [CANCELLED, %take], [%needed, %needs], [%result0, %run]
  %head1 = add i64 %head, 1
  store atomic i64 %head1, ptr %queue release, align 8
  ; From here on the job's memory may be gone: its address is used for waking only.
  %old = atomicrmw xchg ptr %status, i32 %result seq_cst
  %w = load atomic i32, ptr @waiters seq_cst, align 4
  %nobody = icmp eq i32 %w, 0
  br i1 %nobody, label %idle, label %wake
wake:
  call void @wake_word(ptr %status, i32 2147483647)
  br label %idle
}
"""

_FORK = """
; Around fork: the lock is held so that the child finds whole lists.
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


def source(processor: str, system: str) -> str:
    """IR of the runtime for "x86_64" or "aarch64" under "linux" or "darwin".

    Raises NotImplementedError for other processors and systems.
    """
    processor = {"arm64": "aarch64", "amd64": "x86_64"}.get(processor.lower(), processor.lower())
    if system not in _WORDS or processor not in _PROCESSORS:
        raise NotImplementedError(f"no native runtime for {processor} under {system}")
    text = _WORDS[system] + _PROCESSORS[processor] + _THREADS + _QUEUE + native_memory.TEXT + _FORK
    names = {
        "FUTEX": {"x86_64": 202, "aarch64": 98}[processor],
        "SETMASK": {"linux": 2, "darwin": 3}[system],
        "HUGEPAGE": {"linux": 14, "darwin": 0}[system],
        "SIGBUS": {"linux": 7, "darwin": 10}[system],
        "MASK": RING - 1,
    }
    for name in ("QUEUED", "RUNNING", "CANCELLED", "JOB_ARGS", "JOB_STATUS", "JOB_CANCEL", "JOB_DEPENDENCIES",
                 "JOB_DEPENDENCY_COUNT", "QUEUE_TAIL", "QUEUE_WORD", "QUEUE_SLEEPING", "QUEUE_LOCK",
                 "QUEUE_STARTED", "QUEUE_RING", "RING"):
        names[name] = globals()[name]
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, str(names[name]))
    return text
