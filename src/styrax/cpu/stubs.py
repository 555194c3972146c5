"""Call stubs: what calls a program for which nothing has to be decided.

Most programs run where they are called, write every result to memory of its own and want no other memory. For those a
Python function is generated, by the number of arguments and results, that has `Executable`'s steps in a row: a call
costs 1 µs less, a third of what it takes on small arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from .buffers import SMALL
from .native_queue import OUT_OF_FUEL
from .runtime import pool

if TYPE_CHECKING:
    from ..core.types.avals import ShapedArray
    from .executable import Executable, Memory

MANY = 512  # arguments and results up to which a stub is worth its making

Stub = Callable[..., list[Any]]


def stub(executable: Executable, otherwise: Stub, memory: type[Memory], out_avals: Sequence[ShapedArray],
         out_bytes: Sequence[int], kinds: Sequence[Any], count: int, sizes: Sequence[int] = ()) -> Stub:
    """The function that calls a program which `Executable.straight` says is fit for it.

    Args:
      otherwise: is called where arguments are still being written, or are elsewhere; and for programs that proved long.
      memory: the class of the results' memory.
      out_avals, out_bytes, kinds: the results' types, bytes and what makes arrays of them.
      count: the number of arguments, live or not.
      sizes: behind the addresses, where the program asks for its sizes, or its fuel.
    """
    taken = [pool.free_list(n) if n <= SMALL else None for n in out_bytes]
    make = _maker(count, tuple(executable.live_inputs), tuple(free is not None for free in taken), executable.fuelled)
    words = executable.constant_addresses, tuple(sizes)
    found: Stub = make(executable, otherwise, memory, pool, words, kinds, out_avals, out_bytes, taken)
    return found


@cache
def _maker(count: int, live: tuple[int, ...], small: tuple[bool, ...], fuelled: bool) -> Callable[..., Stub]:
    """Makes stubs for so many arguments, of which some are live, and results, of which some have small blocks."""
    results = range(len(small))
    arguments = [f"a{i}" for i in range(count)]
    call = f"return otherwise({', '.join(arguments)})"
    lines = [f"def stub({', '.join(arguments)}):"]
    if fuelled:
        lines += ["    if program.queued:", f"        {call}"]
    lines += [f"    m{i} = a{i}.buffer or a{i}._live()" for i in live]
    if live:
        lines += ["    try:", f"        if {' or '.join(f'm{i}.job' for i in live)}:", f"            {call}",
                  "    except AttributeError:", f"        {call}"]
    for k in results:
        if small[k]:
            lines += ["    try:", f"        p{k} = free{k}.pop()", "    except IndexError:",
                      f"        p{k} = pool.grow(bytes{k})", f"    r{k} = memory(bytes{k}, device, p{k})"]
        else:
            lines += [f"    r{k} = memory(bytes{k}, device)"]
    words = [*(f"m{i}.address" for i in live), "*constants", *(f"r{k}.address" for k in results), "*sizes"]
    committed = " or ".join(f"{a}.committed" for a in arguments) or "False"
    lines += [f"    status = program.entry({', '.join(words)})",
              "    if status:",
              *([f"        if status == {OUT_OF_FUEL}:", "            program.queued = True", f"            {call}"]
                if fuelled else ()),
              "        program.fail(status)"]
    if len(small) == 1:
        lines += [f"    return [kind0(aval0, r0, {committed})]"]
    else:
        lines += [f"    committed = {committed}",
                  f"    return [{', '.join(f'kind{k}(aval{k}, r{k}, committed)' for k in results)}]"]
    names = [f"{name}{k}" for name in ("kind", "aval", "bytes", "free") for k in results]
    head = "def make(program, otherwise, memory, pool, words, kinds, avals, sizes_of_results, taken):\n"
    head += "    device = program.device\n    constants, sizes = words\n"
    if names:
        head += f"    {', '.join(names)}, = *kinds, *avals, *sizes_of_results, *taken\n"
    space: dict[str, Any] = {}
    exec(head + "\n".join("    " + line for line in lines) + "\n    return stub\n", space)
    made: Callable[..., Stub] = space["make"]
    return made


__all__ = ["MANY", "Stub", "stub"]
