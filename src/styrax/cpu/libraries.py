"""BLAS and LAPACK by C pointer, out of the OpenBLAS that SciPy's wheel carries.

The library is opened directly: importing ``scipy.linalg`` costs 150 ms, this costs 3. Where the wheel has no
library of its own (Accelerate on macOS, distributions), the pointers come from the capsules of
``scipy.linalg.cython_blas`` and ``cython_lapack``, import and all.

OpenBLAS runs on one thread: its own threads change the bits of a result with their number. Our pool calls it
from several threads at once, on panels cut by shape alone, which it supports (at most 64 callers at a time;
about 30 MB of work space per calling thread, kept). The library is shared with SciPy itself, whose calls are
then single-threaded too.

In IR the routines are called ``@blas_NAME`` and ``@lapack_NAME`` (`llvm.resolve` finds both here), with
Fortran's convention:

- every argument is a pointer: dimensions and leading dimensions point to i32, scalars (alpha, beta) to their
  type, flags ('N', 'U', …) to one character; LAPACK's ``info`` is a pointer to i32, last;
- after the last argument comes an i64 1 for every character argument, in order (hidden string lengths);
- matrices are column-major: a row-major C = A·B is computed as Cᵀ = Bᵀ·Aᵀ, that is, with the operands
  exchanged and no transposition;
- complex numbers are pairs; only subroutines are used (functions that return complex numbers have
  conventions of their own);
- dimensions must be below 2³¹.

For example::

    declare void @blas_sgemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64)
    ;                        transa transb m n k alpha a lda b ldb beta c ldc, 1, 1
    declare void @lapack_spotrf(ptr, ptr, ptr, ptr, ptr, i64)
    ;                           uplo n a lda info, 1
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

from . import background, processors

# How the routine's name is decorated in the libraries that wheels carry (all with 32-bit integers).
_DECORATIONS = (("scipy_", "_"), ("", "_"))

# of OpenBLAS's kernels for x86, by its names; of all others 32 at most
_VECTOR_BYTES = dict.fromkeys(("skylakex", "cooperlake", "sapphirerapids"), 64)

PACKED = 3 << 19  # bytes: of a work space, up to where right operands are packed, and some of their columns
CALLERS = 16  # whose work spaces are touched ahead, at most

_opened: list[ctypes.CDLL | None] = []
_addresses: dict[str, int] = {}


def path() -> str | None:
    """The file of the BLAS library in SciPy's wheel, or None."""
    from importlib.util import find_spec

    spec = find_spec("scipy")
    if spec is None or not spec.origin:
        raise ImportError("styrax needs SciPy for its BLAS and LAPACK")
    package = os.path.dirname(spec.origin)
    for folder, names in ((package + ".libs", ("libscipy_openblas-", "libopenblas")),
                          (os.path.join(package, ".dylibs"), ("libscipy_openblas.", "libopenblas"))):
        try:
            files = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            for file in files:
                if file.startswith(name) and "64_" not in file:  # the variant with 64-bit integers
                    return os.path.join(folder, file)
    return None


_lock = threading.Lock()


def open_ahead() -> None:
    """Opens the library in a thread, while the program that will call it is compiled: that takes some milliseconds."""
    if not _opened:
        background.start(_open, "styrax-blas")


def _open() -> ctypes.CDLL | None:
    with background.Work(), _lock:
        if not _opened:
            file = path()
            _opened.append(None if file is None else _load(file))
    return _opened[0]


def _load(file: str) -> ctypes.CDLL | None:
    # Read when the library initialises: no worker threads of its own that nobody will use.
    name, before = "OPENBLAS_NUM_THREADS", os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ[name] = "1"
    try:
        if sys.platform == "win32":
            os.add_dll_directory(os.path.dirname(file))
        library = ctypes.CDLL(file)
    except OSError:
        return None
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    for prefix in ("scipy_", ""):
        setter = getattr(library, prefix + "openblas_set_num_threads", None)
        if setter is not None:
            setter(ctypes.c_int(1))  # it may have been loaded before us
            break
    _touch_work_space(library)
    return library


def _touch_work_space(library: ctypes.CDLL) -> None:
    """Lets the pages exist that OpenBLAS's kernels ask for ahead of what is packed: until a large product came there,
    there are none, and on some hosts such a prefetch takes microseconds, at every step of a sum."""
    take, give = (getattr(library, f"blas_memory_{what}", None) for what in ("alloc", "free"))
    if take is None or give is None:
        return
    take.restype, take.argtypes, give.argtypes = ctypes.c_void_p, [ctypes.c_int], [ctypes.c_void_p]
    wanted = min(processors.threads(), CALLERS)
    taken = [place for place in (take(1) for _ in range(wanted)) if place]  # a caller takes the first that is free
    for place in taken:
        ctypes.memset(place, 0, PACKED)
    for place in taken:
        give(place)


def named_kernels() -> str | None:
    """OpenBLAS's kernels that the environment names."""
    return os.environ.get("OPENBLAS_CORETYPE")


def vector_bytes() -> int:
    """How wide the vectors are that OpenBLAS computes with: by its own choice of kernels, or by that of the
    environment, which may keep it from what the processor has. Of other libraries nothing is known: as wide as may be.
    """
    name = named_kernels()
    if name is None:
        library = _open()
        asked = [getattr(library, prefix + "openblas_get_corename", None) for prefix in ("scipy_", "")]
        function = next((f for f in asked if f is not None), None)
        if function is None:
            return max(_VECTOR_BYTES.values())
        function.restype = ctypes.c_char_p
        name = function().decode()
    return _VECTOR_BYTES.get(name.lower(), 32)


def address(name: str) -> int:
    """Address of the routine with Fortran's plain name: "sgemm", "dpotrf", "zheevd"; else LookupError."""
    found = _addresses.get(name)
    if found is None:
        found = _addresses[name] = _find(name)
    return found


def _find(name: str) -> int:
    library = _open()
    if library is not None:
        for prefix, suffix in _DECORATIONS:
            function = getattr(library, prefix + name + suffix, None)
            if function is not None:
                return ctypes.cast(function, ctypes.c_void_p).value or 0
    pointer = _from_capsules(name)
    if pointer is None:
        raise LookupError(f"neither BLAS nor LAPACK has a routine {name!r}")
    return pointer


def _from_capsules(name: str) -> int | None:
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ImportError:
        return None
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    for module in (cython_blas, cython_lapack):
        capsule = module.__pyx_capi__.get(name)
        if capsule is not None:
            return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return None
