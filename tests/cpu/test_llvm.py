"""Compilation, linking and the disk cache."""

import ctypes
import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from styrax.core.settings.config import config
from styrax.cpu import llvm, objects, store
from tests.compat.running import lines

I64 = ctypes.c_int64
SOURCE = Path(__file__).resolve().parents[2] / "src"


@contextmanager
def cached_in(path):
    before = config.styrax_cache_dir
    config.update("styrax_cache_dir", str(path))
    try:
        yield path
    finally:
        config.update("styrax_cache_dir", before)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("STYRAX_CACHE", raising=False)
    with cached_in(tmp_path / "cache") as path:
        yield path


_number = iter(range(1000, 10**9))


def constant(value):
    """IR of a function that returns ``value``; no two texts are equal, so nothing is found in memory."""
    return f"; {next(_number)}\ndefine i64 @f() nounwind {{\n  ret i64 {value}\n}}\n"


def call(library, name="f", *args, result=I64):
    return ctypes.CFUNCTYPE(result, *[type(a) for a in args])(library.address(name))(*args)


def entries(directory):
    return sorted(p for p in directory.iterdir() if not p.name.startswith("tmp-"))


def test_load_and_call(cache):
    library = llvm.load(constant(42))
    assert call(library) == 42
    assert library.symbols == ("f",)
    with pytest.raises(KeyError):
        library.address("g")


def test_equal_text_is_compiled_once(cache):
    text = constant(1)
    before = llvm.compile_count.compiled
    first = llvm.load(text)
    assert llvm.load(text) is first
    assert llvm.load(text, share=False) is not first
    assert llvm.compile_count.compiled == before + 1


@pytest.mark.parametrize("level", [-1, 0, 1, 2])
def test_levels(cache, level):
    text = f"""; {next(_number)}
    define i64 @f(i64 %n) nounwind {{
    entry:
      %sum = alloca i64
      store i64 0, ptr %sum
      br label %loop
    loop:
      %i = phi i64 [0, %entry], [%next, %loop]
      %old = load i64, ptr %sum
      %new = add i64 %old, %i
      store i64 %new, ptr %sum
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, %n
      br i1 %more, label %loop, label %end
    end:
      %result = load i64, ptr %sum
      ret i64 %result
    }}"""
    assert call(llvm.load(text, level=level), "f", I64(100)) == 4950


EVERYTHING = """
; {number}
declare double @exp(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @memcpy(ptr, ptr, i64)
@counter = internal global i64 5, align 8
@zeros = internal global [1000 x i64] zeroinitializer, align 64
@table = internal constant [2 x ptr] [ptr @one, ptr @two]
@environ = external global ptr
@shared = global i64 7
@numbers = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0], align 64

define internal i64 @one() nounwind noinline {{ ret i64 1 }}
define internal i64 @two() nounwind noinline {{ ret i64 2 }}
define i64 @indirect(i64 %i) nounwind {{
  %at = getelementptr ptr, ptr @table, i64 %i
  %f = load ptr, ptr %at
  %r = call i64 %f()
  ret i64 %r
}}
define i64 @count() nounwind {{
  %x = load i64, ptr @counter
  %y = add i64 %x, 1
  store i64 %y, ptr @counter
  ret i64 %y
}}
define i64 @zero(i64 %i) nounwind {{
  %at = getelementptr i64, ptr @zeros, i64 %i
  %x = load i64, ptr %at
  store i64 3, ptr %at
  ret i64 %x
}}
define double @power(double %x, i64 %i) nounwind {{
  %y = call double @exp(double %x)
  %at = getelementptr double, ptr @numbers, i64 %i
  %z = load double, ptr %at
  %r = fmul double %y, %z
  ret double %r
}}
define i64 @outside() nounwind {{
  %x = load ptr, ptr @environ
  %r = ptrtoint ptr %x to i64
  ret i64 %r
}}
define i64 @choose(i64 %i) nounwind {{
  switch i64 %i, label %other [
    i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a:
  %ra = call i64 @one()
  ret i64 %ra
b:
  %rb = call i64 @count()
  ret i64 %rb
c:
  %rc = call i64 @two()
  ret i64 %rc
d:
  %rd = call i64 @zero(i64 999)
  ret i64 %rd
e:
  ret i64 -4
other:
  ret i64 -1
}}
define void @fill(ptr %p, i64 %n) nounwind {{
  call void @llvm.memset.p0.i64(ptr %p, i8 7, i64 %n, i1 false)
  ret void
}}
"""


def check_everything(library):
    assert [call(library, "indirect", I64(i)) for i in (0, 1)] == [1, 2]
    assert [call(library, "count") for _ in range(3)] == [6, 7, 8]
    assert [call(library, "zero", I64(999)) for _ in range(2)] == [0, 3]
    result = call(library, "power", ctypes.c_double(1.0), I64(3), result=ctypes.c_double)
    assert abs(result - 8 * 2.718281828459045) < 1e-13
    assert call(library, "outside") == ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value
    assert [call(library, "choose", I64(i)) for i in (-1, 0, 1, 2, 3, 4, 5)] == [-1, 1, 9, 2, 3, -4, -1]
    block = ctypes.create_string_buffer(300)
    call(library, "fill", ctypes.c_void_p(ctypes.addressof(block)), I64(299), result=None)
    assert block.raw == b"\7" * 299 + b"\0"
    assert I64.from_address(library.address("shared")).value == 7
    assert "one" not in library.symbols


@pytest.mark.parametrize("level", [-1, 1])
def test_constants_data_tables_and_outside_functions(cache, level):
    text = EVERYTHING.format(number=next(_number))
    check_everything(llvm.load(text, level=level))
    hits = llvm.compile_count.disk_hits
    check_everything(llvm.load(text, level=level, share=False))
    assert llvm.compile_count.disk_hits == hits + 1


BY_ORC = """
from styrax.cpu import llvm, objects
from tests.cpu.test_llvm import EVERYTHING, check_everything


def refuse(obj):
    raise objects.UnsupportedObject("test")


objects.link = refuse
for share in (True, False):
    check_everything(llvm.load(EVERYTHING.format(number=1), share=share))
"""


def test_orc_links_what_our_linker_does_not(tmp_path):
    """In a process of its own: ORC ends one whose memory is so full that it finds no two places close together."""
    lines("-c", BY_ORC, plain=True, cwd=SOURCE.parent, STYRAX_CACHE_DIR=str(tmp_path))


def test_linker_refuses_what_it_does_not_know():
    with pytest.raises(objects.UnsupportedObject):
        objects.link(b"\xcf\xfa\xed\xfe" + bytes(100))


def test_symbols(cache):
    text = f"""; {next(_number)}
    declare i64 @outer(i64)
    define i64 @f(i64 %x) nounwind {{
      %r = call i64 @outer(i64 %x)
      ret i64 %r
    }}"""
    with pytest.raises(LookupError, match="outer"):
        llvm.load(text)
    square = ctypes.CFUNCTYPE(I64, I64)(lambda x: x * x)
    library = llvm.load(text, symbols={"outer": ctypes.cast(square, ctypes.c_void_p).value})
    assert call(library, "f", I64(9)) == 81


def test_wrong_ir_is_an_error_with_the_line(cache):
    with pytest.raises(llvm.CompileError, match="expected 'i32'") as error:
        llvm.load("define i64 @f(i64 %x) {\n  %y = add i32 %x, 1\n  ret i64 %x\n}")
    assert "%y = add i32 %x, 1" in str(error.value)
    with pytest.raises(llvm.CompileError, match="dominate"):
        llvm.load("define i64 @f(i64 %x) {\n  %y = add i64 %z, 1\n  %z = add i64 %y, 1\n  ret i64 %z\n}")
    assert call(llvm.load(constant(3))) == 3


def test_texts_for_people(cache):
    text = constant(77)
    assert "$77" in llvm.asm(text) or "#77" in llvm.asm(text)
    assert "ret i64 77" in llvm.optimised(text)
    assert llvm.version().split(".")[0].isdigit()


def test_host(cache):
    host = llvm.host()
    assert host.vector_bytes in (16, 32, 64)
    assert host.cpu and host.triple
    width = host.vector_bytes // 4
    text = f"; {next(_number)}\n" + f"""
    define void @f(ptr %p) nounwind {{
      %x = load <{width} x float>, ptr %p, align 4
      %y = fadd <{width} x float> %x, %x
      store <{width} x float> %y, ptr %p, align 4
      ret void
    }}"""
    assert {64: "zmm", 32: "ymm", 16: ""}[host.vector_bytes] in llvm.asm(text)
    numbers = (ctypes.c_float * width)(*range(width))
    call(llvm.load(text), "f", ctypes.c_void_p(ctypes.addressof(numbers)), result=None)
    assert list(numbers) == [2.0 * i for i in range(width)]


# The cache ------------------------------------------------------------------------------------------------


def run_python(code, directory, **environment):
    environment = {**os.environ, "PYTHONPATH": SOURCE, "STYRAX_CACHE_DIR": str(directory), **environment}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=environment, text=True,
                            stdout=subprocess.PIPE)


LOAD_ONE = """
    import ctypes, sys
    from styrax.cpu import llvm
    library = llvm.load("define i64 @f() nounwind {\\n ret i64 123\\n}")
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("f"))() == 123
    print(llvm.compile_count.compiled, llvm.compile_count.disk_hits, int(llvm.llvm_library.loaded()))
"""


def test_second_process_neither_compiles_nor_opens_llvm(cache):
    assert run_python(LOAD_ONE, cache).communicate()[0].split() == ["1", "0", "1"]
    assert run_python(LOAD_ONE, cache).communicate()[0].split() == ["0", "1", "0"]


def test_cache_can_be_switched_off(cache):
    for _ in range(2):
        process = run_python(LOAD_ONE, cache, STYRAX_CACHE="0")
        assert process.communicate()[0].split() == ["1", "0", "1"]
    assert not cache.exists()


def test_unwritable_directory_is_no_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with cached_in(file / "below"):
        assert call(llvm.load(constant(5))) == 5


@pytest.mark.parametrize("setting", ["styrax_cache_dir", "jax_compilation_cache_dir"])
def test_the_setting_counts_once_it_is_made(tmp_path, monkeypatch, setting):
    monkeypatch.delenv("STYRAX_CACHE", raising=False)
    before = {name: getattr(config, name) for name in ("styrax_cache_dir", setting)}
    try:
        config.update("styrax_cache_dir", None)
        config.update(setting, str(tmp_path / "there"))
        call(llvm.load(constant(6)))
        assert list((tmp_path / "there").iterdir())
        config.update("jax_enable_compilation_cache", False)
        config.update(setting, str(tmp_path / "nowhere"))
        call(llvm.load(constant(7)))
        assert not (tmp_path / "nowhere").exists()
    finally:
        config.update("jax_enable_compilation_cache", True)
        for name, value in before.items():
            config.update(name, value)


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


def damage_half_header(path):
    path.write_bytes(path.read_bytes()[:20])


def damage_flip(path):
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


def damage_empty(path):
    path.write_bytes(b"")


def damage_foreign(path):
    path.write_bytes(b"not ours at all" * 100)


def damage_other_key(path):
    disk = store.Store(str(path.parent / "other"))
    key = store.digest(b"another")
    disk.put(key, b"I" + b"x" * 100)
    os.replace(path.parent / "other" / key.hex(), path)


@pytest.mark.parametrize("damage", [damage_truncate, damage_half_header, damage_flip, damage_empty,
                                    damage_foreign, damage_other_key])
def test_damaged_entries_are_rebuilt(cache, damage):
    llvm.load(constant(10))
    before = entries(cache)
    text = constant(11)
    assert call(llvm.load(text, share=False)) == 11
    (path,) = set(entries(cache)) - set(before)
    sound = path.read_bytes()
    damage(path)
    path.chmod(0o600)
    compiled = llvm.compile_count.compiled
    assert call(llvm.load(text, share=False)) == 11
    assert llvm.compile_count.compiled == compiled + 1
    assert path.read_bytes() == sound


def test_entries_that_others_could_have_written_are_not_trusted(cache):
    text = constant(12)
    llvm.load(text, share=False)
    for path in entries(cache):
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o666)
    assert cache.stat().st_mode & 0o777 == 0o700
    compiled = llvm.compile_count.compiled
    assert call(llvm.load(text, share=False)) == 12
    assert llvm.compile_count.compiled == compiled + 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_only_regular_files_of_our_own_directory_are_read(tmp_path):
    disk, key = store.Store(str(tmp_path / "s")), store.digest(b"entry")
    assert disk.put(key, b"code") and disk.get(key) == b"code"
    path = tmp_path / "s" / key.hex()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert disk.get(key) is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert disk.get(key) is None  # and does not wait for a writer
    path.unlink()
    path.mkdir(0o700)
    assert disk.get(key) is None
    path.rmdir()
    assert disk.put(key, b"code") and disk.get(key) == b"code"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of files")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
def test_directories_that_others_can_write_are_not_used(tmp_path, mode):
    disk, key = store.Store(str(tmp_path / "s")), store.digest(b"entry")
    assert disk.put(key, b"code")
    (tmp_path / "s").chmod(mode)
    assert disk.get(key) is None
    assert not disk.put(store.digest(b"other"), b"code")
    assert len(list((tmp_path / "s").iterdir())) == 1
    (tmp_path / "s").chmod(0o755)
    assert disk.get(key) == b"code"


def test_directories_of_others_are_not_used(tmp_path, monkeypatch):
    disk, key = store.Store(str(tmp_path)), store.digest(b"entry")
    assert disk.put(key, b"code")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert disk.get(key) is None and not disk.put(key, b"code")


def test_concurrent_writers(cache):
    code = """
        import ctypes
        from styrax.cpu import llvm
        for i in range(20):
            library = llvm.load(f"define i64 @f() nounwind {{\\n ret i64 {i}\\n}}")
            assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("f"))() == i
        print("fine")
    """
    processes = [run_python(code, cache) for _ in range(4)]
    assert [p.communicate()[0].strip() for p in processes] == ["fine"] * 4
    assert not [p for p in cache.iterdir() if p.name.startswith("tmp-")]
    assert run_python(code, cache).communicate()[0].strip() == "fine"


def test_store_round_trip_and_bound(tmp_path):
    disk = store.Store(str(tmp_path / "s"))
    keys = [store.digest(bytes([i])) for i in range(40)]
    for i, key in enumerate(keys):
        assert disk.put(key, bytes([i]) * 1000)
        os.utime(disk._path(key), (1000 + i, 1000 + i))
    assert disk.get(keys[3]) == b"\3" * 1000  # a hit renews the entry
    disk.limit = 20_000
    assert disk.sweep() <= 15_000
    assert disk.get(keys[3]) == b"\3" * 1000
    assert disk.get(keys[39]) == b"\x27" * 1000
    assert disk.get(keys[0]) is None
    assert disk.get(store.digest(b"never")) is None


def test_looks_at_the_size_are_as_rare_as_they_may_be(tmp_path, monkeypatch):
    small = store.Store(str(tmp_path / "small"), limit=16_000)  # an entry of more than 1000 bytes always looks
    for i in range(100):
        assert small.put(store.digest(b"%d" % i), bytes(1000))
        assert sum(p.stat().st_size for p in (tmp_path / "small").iterdir()) <= 16_000
    looks = []
    monkeypatch.setattr(store.Store, "sweep", lambda self: looks.append(1))
    large = store.Store(str(tmp_path / "large"), limit=64_000_000)
    for i in range(1000):
        assert large.put(store.digest(b"%d" % i), bytes(1000))
    assert len(looks) <= 6  # 0.26 in the mean: more come once in a hundred million times


def test_sweep_removes_what_crashed_writers_left(tmp_path):
    disk = store.Store(str(tmp_path))
    old, new, foreign = tmp_path / "tmp-1-a", tmp_path / "tmp-1-b", tmp_path / "README"
    for path in (old, new, foreign):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    disk.sweep()
    assert not old.exists() and new.exists() and foreign.exists()


def test_digest_knows_the_boundaries():
    assert store.digest(b"ab", b"c") != store.digest(b"a", b"bc")
