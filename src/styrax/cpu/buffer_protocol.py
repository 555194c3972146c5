"""The buffer protocol of arrays on Python 3.11.

From Python 3.12 on a method `__buffer__` is enough. Before, the slot of the type must hold a native function; it is
generated here, and passes the request on to the NumPy array over the same memory.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

NEEDED = sys.version_info < (3, 12) and ctypes.sizeof(ctypes.c_void_p) == 8

SYMBOLS = ("PyObject_GetAttrString", "PyObject_GetBuffer", "Py_DecRef") if NEEDED else ()

SOURCE = """
declare ptr @PyObject_GetAttrString(ptr, ptr)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @Py_DecRef(ptr)
@value_name = internal constant [7 x i8] c"_value\\00"

define i32 @get_buffer(ptr %self, ptr %view, i32 %flags) nounwind {
  %value = call ptr @PyObject_GetAttrString(ptr %self, ptr @value_name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %fail, label %found
fail:
  %owner = getelementptr ptr, ptr %view, i64 1
  store ptr null, ptr %owner
  ret i32 -1
found:
  %status = call i32 @PyObject_GetBuffer(ptr %value, ptr %view, i32 %flags)
  call void @Py_DecRef(ptr %value)
  ret i32 %status
}
""" if NEEDED else ""

_AS_BUFFER = 160  # place of tp_as_buffer in PyTypeObject


def install(library: Any) -> None:
    """Gives `Array` the buffer protocol; `library` is loaded from `SOURCE` and stays loaded."""
    from ..core.arrays.array import Array

    if NEEDED:
        slots = ctypes.c_void_p.from_address(id(Array) + _AS_BUFFER).value
        ctypes.c_void_p.from_address(slots or 0).value = library.address("get_buffer")
