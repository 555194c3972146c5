"""What there is to know of a program that a plugin has compiled."""

from __future__ import annotations

import ctypes

from ...compile import costs
from ...compile.pipeline import compile_to_loops
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.types import physical
from .entry import Entry
from .plugin import Plugin

_VECTOR = 32  # bytes of a vector, for estimates


class Inspected:
    """A compiled program, whether it can be run here or not."""

    __slots__ = ("chosen", "closed", "entry", "name", "plugin")
    chosen: bytes  # the options that it was compiled with
    closed: ClosedJaxpr
    entry: Entry
    name: str
    plugin: Plugin

    def executable(self) -> int:
        """The plugin's handle of it, which whoever asks gives back by `release`."""
        raise NotImplementedError

    def release(self, executable: int) -> None:
        self.plugin.call("Executable_Destroy", handle=executable)

    @property
    def key(self) -> bytes:
        """What its machine code is kept under."""
        raise NotImplementedError

    def as_text(self, dialect: str | None = None) -> str:
        """The StableHLO module. Raises ValueError for dialects that plugins do not print."""
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"unknown dialect: {dialect}")
        return self.entry.text

    def machine_code(self) -> dict[bytes, bytes]:
        """The program as the plugin serialises it, under a key of the plugin, the options and the text."""
        executable = self.executable()
        try:
            told = self.plugin.call("Executable_Serialize", executable=executable)
            data = ctypes.string_at(told.text, told.size)
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(told.deleter)(told.owner)
        finally:
            self.release(executable)
        return {self.key: data}

    def memory_analysis(self) -> tuple[int, int, int, int, int]:
        """Bytes of code, arguments, results, results in donated arguments, and workspace, as the plugin tells them."""
        executable = self.executable()
        try:
            told = self.plugin.call("Executable_GetCompiledMemoryStats", executable=executable)
        finally:
            self.release(executable)
        return told.code, told.arguments, told.results, told.alias, told.workspace

    def cost_analysis(self) -> dict[str, float]:
        """Estimates of our own, read off the loops that the CPU compiler makes of the program: plugins have none."""
        return costs.analyse(compile_to_loops(physical.lower(self.closed), self.name, (), _VECTOR))
