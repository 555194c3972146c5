"""BLAS and LAPACK by pointer."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from styrax.cpu import libraries, llvm

P = ctypes.c_void_p
GEMM = ctypes.CFUNCTYPE(None, *[P] * 13, ctypes.c_size_t, ctypes.c_size_t)


def pointer(x):
    return ctypes.cast(ctypes.byref(x), P) if isinstance(x, ctypes._SimpleCData) else P(x.ctypes.data)


def gemm(function, a, b):
    """a @ b for C-ordered matrices: the operands change places for column-major BLAS."""
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), a.dtype)
    flag, one, zero = ctypes.c_char(b"N"), np.ones(1, a.dtype), np.zeros(1, a.dtype)
    sizes = [ctypes.c_int32(v) for v in (n, m, k)]
    function(pointer(flag), pointer(flag), *[pointer(s) for s in sizes], pointer(one), pointer(b),
             pointer(sizes[0]), pointer(a), pointer(sizes[2]), pointer(zero), pointer(out), pointer(sizes[0]),
             1, 1)
    return out


@pytest.mark.parametrize("name, dtype", [("sgemm", np.float32), ("dgemm", np.float64),
                                         ("cgemm", np.complex64), ("zgemm", np.complex128)])
def test_gemm(name, dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 5)).astype(dtype), rng.normal(size=(5, 9)).astype(dtype)
    np.testing.assert_allclose(gemm(GEMM(libraries.address(name)), a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_capsules_give_the_same():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 6)), rng.normal(size=(6, 3))
    np.testing.assert_allclose(gemm(GEMM(libraries._from_capsules("dgemm")), a, b), a @ b)


def test_threads_at_once():
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(300, 300)).astype(np.float32) for _ in range(2))
    function = GEMM(libraries.address("sgemm"))
    expected, results = gemm(function, a, b), [None] * 4

    def work(i):
        for _ in range(5):
            results[i] = gemm(function, a, b)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert np.array_equal(result, expected)


def test_cholesky_from_ir(monkeypatch):
    monkeypatch.setenv("STYRAX_CACHE", "0")
    library = llvm.load("""
    declare void @lapack_dpotrf(ptr, ptr, ptr, ptr, ptr, i64)
    @upper = internal constant [1 x i8] c"U"
    define i32 @cholesky(ptr %a, i32 %n) nounwind {
      %size = alloca i32
      %info = alloca i32
      store i32 %n, ptr %size
      call void @lapack_dpotrf(ptr @upper, ptr %size, ptr %a, ptr %size, ptr %info, i64 1)
      %r = load i32, ptr %info
      ret i32 %r
    }""")
    function = ctypes.CFUNCTYPE(ctypes.c_int32, P, ctypes.c_int32)(library.address("cholesky"))
    x = np.random.default_rng(3).normal(size=(6, 6))
    a = x @ x.T + np.eye(6)
    out = a.copy()
    assert function(P(out.ctypes.data), 6) == 0
    np.testing.assert_allclose(np.tril(out), np.linalg.cholesky(a))
    out = -a
    assert function(P(out.ctypes.data), 6) == 1


@pytest.mark.parametrize("name", ["strsm", "spotrf", "sgetrf", "sgeqrf", "sorgqr", "cungqr", "ssyevd",
                                  "cheevd", "sgesdd", "zgesdd", "sgeev", "zgeev", "sgees", "sgehrd", "sgtsv",
                                  "ssytrd", "sgeqp3"])
def test_routines_are_there(name):
    assert libraries.address(name)


def test_unknown_routine():
    with pytest.raises(LookupError, match="nonsense"):
        libraries.address("nonsense")


def test_scipy_is_not_imported_and_the_environment_is_restored():
    code = """
import os, sys
os.environ.pop("OPENBLAS_NUM_THREADS", None)
from styrax.cpu import libraries
libraries.address("sgemm")
assert not any(name.startswith("scipy") for name in sys.modules), "imported"
assert "OPENBLAS_NUM_THREADS" not in os.environ
if sys.platform == "linux":
    assert len(os.listdir("/proc/self/task")) == 1, "threads"
"""
    if libraries.path() is None:
        pytest.skip("SciPy carries no library here")
    subprocess.run([sys.executable, "-c", code], check=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_work_spaces_are_touched_and_given_back(monkeypatch):
    memory = [ctypes.create_string_buffer(b"\xff" * libraries.PACKED) for _ in range(2)]
    taken, given = iter([ctypes.addressof(memory[0]), None, ctypes.addressof(memory[1])]), []

    class Routine:  # what is set of a foreign function
        def __init__(self, run):
            self.run = run

        def __call__(self, x):
            return self.run(x)

    class Library:
        blas_memory_alloc = Routine(lambda _: next(taken))
        blas_memory_free = Routine(given.append)

    monkeypatch.setattr(libraries.processors, "threads", lambda: 3)
    libraries._touch_work_space(Library())
    assert given == [ctypes.addressof(m) for m in memory]
    assert all(m.raw[: libraries.PACKED] == bytes(libraries.PACKED) for m in memory)
    libraries._touch_work_space(object())  # of other libraries nothing is known


@pytest.mark.skipif(llvm.host().vector_bytes < 64, reason="BLAS multiplies float32 on this host")
def test_products_of_our_own_kernels_do_not_open_the_library():
    program = ("import numpy as np, styrax as jax; from styrax.cpu import libraries\n"
               "x = np.eye(512, dtype='float32') * 3\n"
               "assert jax.jit(lambda x: x @ x)(x)[5, 5] == 9 and not libraries._opened\n"
               "with jax.enable_x64(True):\n"
               "    assert jax.jit(lambda x: x @ x)(x.astype('float64'))[5, 5] == 9 and libraries._opened")
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"} | {"STYRAX_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
