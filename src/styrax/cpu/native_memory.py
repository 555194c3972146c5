"""Memory for running programs, as LLVM IR: the part of the native runtime behind ``styrax_alloc``.

Blocks are kept by size class for reuse, up to ``styrax_retain_limit`` bytes. Large ones ask for huge pages.
"""

TEXT = """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i64 @llvm.ctlz.i64(i64, i1)

; A block starts with a header of 64 bytes: class, size, next free block. Classes 0..63 are multiples of 64
; bytes, above that four steps to the doubling.
@lists = internal global [256 x ptr] zeroinitializer, align 64
@memory_lock = internal global i32 0, align 64
@styrax_retained = global i64 0, align 64
@styrax_retain_limit = global i64 1073741824, align 8

define ptr @styrax_alloc(i64 %bytes) nounwind {
entry:
  %out = alloca ptr, align 8
  %wrong = icmp ugt i64 %bytes, 140737488355328
  br i1 %wrong, label %none, label %size
size:
  %total = add i64 %bytes, 64
  %small = icmp ule i64 %total, 4096
  %up = add i64 %total, 63
  %small_class0 = lshr i64 %up, 6
  %small_class = add i64 %small_class0, -1
  %small_size = shl i64 %small_class0, 6
  %top = add i64 %total, -1
  %zeros = call i64 @llvm.ctlz.i64(i64 %top, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 2
  %quarter = lshr i64 %top, %shift
  %quarter1 = add i64 %quarter, 1
  %large_size = shl i64 %quarter1, %shift
  %octave = sub i64 %power, 12
  %base = shl i64 %octave, 2
  %step = and i64 %quarter, 3
  %large_class0 = add i64 %base, %step
  %large_class = add i64 %large_class0, 64
  %class = select i1 %small, i64 %small_class, i64 %large_class
  %rounded = select i1 %small, i64 %small_size, i64 %large_size
  %list = getelementptr ptr, ptr @lists, i64 %class
  call void @lock(ptr @memory_lock)
  %block = load ptr, ptr %list
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %fresh, label %reuse
reuse:
  %link = getelementptr i8, ptr %block, i64 16
  %rest = load ptr, ptr %link
  store ptr %rest, ptr %list
  %kept = load i64, ptr @styrax_retained
  %less = sub i64 %kept, %rounded
  store i64 %less, ptr @styrax_retained
  call void @unlock(ptr @memory_lock)
  %again = getelementptr i8, ptr %block, i64 64
  ret ptr %again
fresh:
  call void @unlock(ptr @memory_lock)
  %huge = icmp uge i64 %rounded, 4194304
  %alignment = select i1 %huge, i64 2097152, i64 64
  %failed = call i32 @posix_memalign(ptr %out, i64 %alignment, i64 %rounded)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %none, label %head
head:
  %new = load ptr, ptr %out
  br i1 %huge, label %advise, label %fill
advise:
  %m = call i32 @madvise(ptr %new, i64 %rounded, i32 HUGEPAGE)
  br label %fill
fill:
  store i64 %class, ptr %new
  %size_at = getelementptr i8, ptr %new, i64 8
  store i64 %rounded, ptr %size_at
  %result = getelementptr i8, ptr %new, i64 64
  ret ptr %result
none:
  ret ptr null
}

define void @styrax_free(ptr %pointer) nounwind {
entry:
  %null = icmp eq ptr %pointer, null
  br i1 %null, label %end, label %head
head:
  %block = getelementptr i8, ptr %pointer, i64 -64
  %class = load i64, ptr %block
  %size_at = getelementptr i8, ptr %block, i64 8
  %size = load i64, ptr %size_at
  %list = getelementptr ptr, ptr @lists, i64 %class
  %limit = load i64, ptr @styrax_retain_limit
  call void @lock(ptr @memory_lock)
  %kept = load i64, ptr @styrax_retained
  %more = add i64 %kept, %size
  %over = icmp sgt i64 %more, %limit
  br i1 %over, label %release, label %keep
keep:
  store i64 %more, ptr @styrax_retained
  %first = load ptr, ptr %list
  %link = getelementptr i8, ptr %block, i64 16
  store ptr %first, ptr %link
  store ptr %block, ptr %list
  call void @unlock(ptr @memory_lock)
  br label %end
release:
  call void @unlock(ptr @memory_lock)
  call void @free(ptr %block)
  br label %end
end:
  ret void
}
"""
