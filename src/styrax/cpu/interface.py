"""What who calls a compiled program must know of it."""

from __future__ import annotations

from typing import NamedTuple

OWN_WORKSPACE = 1 << 20  # bytes up to which a program asks for its workspace itself: so whoever calls it is done sooner


class Interface(NamedTuple):
    """What who calls a program must know of it."""

    name: str
    generic: bool  # whether sizes are known only when it is called
    arguments: int
    live_inputs: list[int]  # the arguments that it reads or writes
    in_bytes: int  # of all arguments, where sizes are known
    out_bytes: list[int]
    hollow: frozenset[int]  # results without memory
    taken: dict[int, int]  # results that take over the memory of a donated argument: result number -> argument number
    workspace: int  # bytes of memory for intermediate results, which the caller gives, or the program finds itself
    fuelled: bool  # whether it has loops of unknown length, which are tried with the fuel of a short program
    queued: bool  # whether it is known to take long

    @property
    def given_workspace(self) -> int:
        """What of it the caller gives."""
        return self.workspace if self.workspace > OWN_WORKSPACE else 0
