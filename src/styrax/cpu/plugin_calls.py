"""Calling a plugin from Python without ctypes: trampolines for what every call of a program on a plugin does."""

from __future__ import annotations

from collections.abc import Callable

from .dispatch import DECLARATIONS, OWN, READ, RESTORE, SAVE, built_in, definition, entry

_FIELDS = ("function", "call", "block", "results")


def _source() -> str:
    fields = "".join(f"  %at_{name} = getelementptr ptr, ptr %own, i64 {i}\n  %{name} = load ptr, ptr %at_{name}\n"
                     for i, name in enumerate(_FIELDS))
    return f"""{DECLARATIONS}
define internal ptr @launch(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:{OWN}{fields}{READ}{SAVE}
  %outcome = call i64 %function(ptr %call)
{RESTORE}
  %bad = icmp ne i64 %outcome, 0
  br i1 %bad, label %failure, label %success
failure:
  %negative = sub i64 0, %outcome
  %told = call ptr @PyLong_FromSsize_t(i64 %negative)
  ret ptr %told
success:
  %handle = load i64, ptr %results
  %result = call ptr @PyLong_FromSsize_t(i64 %handle)
  ret ptr %result
}}
{definition("launch")}
define internal ptr @release(ptr %self, ptr %args, i64 %nargs) nounwind {{
{entry(1)}
  %call = alloca [3 x i64], align 8
  store [3 x i64] [i64 24, i64 0, i64 0], ptr %call
  %block = getelementptr i64, ptr %call, i64 2
{OWN}{READ}{SAVE}
  %outcome = call i64 %own(ptr %call)
{RESTORE}
  %result = call ptr @PyLong_FromSsize_t(i64 %outcome)
  ret ptr %result
}}
{definition("release")}"""


def launcher(record: int) -> Callable[..., int]:
    """A function that stores its arguments, integers, and starts a program of a plugin. It gives the first result's
    handle, or the address of an error with a minus. The GIL is let go meanwhile: programs may call Python.

    Args:
      record: the addresses of four things: the plugin's function, its arguments' structure, the place for these
        integers, the place of the results' handles.
    """
    return built_in("launch", record, _source)


def releaser(function: int) -> Callable[[int], int]:
    """A function that calls one of a plugin's that takes a handle alone (`Buffer_Destroy`), at this address."""
    return built_in("release", function, _source)
