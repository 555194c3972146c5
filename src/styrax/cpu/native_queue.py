"""The native runtime's job queue: the layout of jobs and of the queue, and its text, which `native` puts together."""

from __future__ import annotations

QUEUED, RUNNING = -1, -2
DONE, CANCELLED, OUT_OF_MEMORY = 0, 1, 2
OUTSIDE = 3  # an access outside a buffer, found by a check
OUT_OF_FUEL = 4  # loops of unknown length were allowed fewer turns than they need

JOB_BYTES = 64
JOB_FN, JOB_ARGS, JOB_STATUS, JOB_CANCEL, JOB_DEPENDENCIES, JOB_DEPENDENCY_COUNT = 0, 8, 16, 20, 24, 32

RING = 1024
QUEUE_HEAD, QUEUE_TAIL, QUEUE_WORD, QUEUE_SLEEPING, QUEUE_LOCK, QUEUE_STARTED, QUEUE_RING = (
    0, 64, 128, 132, 192, 196, 256)
QUEUE_BYTES = QUEUE_RING + 8 * RING

TEXT = """
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
  call void @rest(i32 %k)
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
  call void @rest(i32 63)
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
  %ignored = call i64 @flush_subnormals()
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
  call void @rest(i32 %k)
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
