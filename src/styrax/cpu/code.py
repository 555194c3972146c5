"""A program's machine code: from its loops by LLVM IR into the process."""

from __future__ import annotations

from collections.abc import Callable

from ..compile.ir.loopir import Call, Transpose, statements
from ..compile.pipeline import debugging
from ..compile.program import Program
from ..core.settings import progress
from . import butterflies, llvm, microkernels, runtime, tiles, turning
from .frames import LONG
from .interface import OWN_WORKSPACE
from .outlining import outlined
from .segments import Main
from .units import Units
from .writer import Module


def generate(program: Program, sizes: int = 0, apart: Callable[[str], object] | None = None) -> Module:
    """The program as LLVM IR: the function `run(ptr slots, ptr cancel)`, which gives a status, and the parts that
    threads share. `apart` takes modules of such parts as they are written."""
    machine, placement = llvm.host(), program.placement
    order = [b for b in program.inputs if b is not None] + [b for b, _ in program.constants]
    order += [b for b in program.outputs if b is not None]
    given = placement.workspace > OWN_WORKSPACE
    sizes_at = len(order) + given
    module = Module(program.builder.arena, machine.vector_bytes, program.builder.scalars.numerics, placement,
                    bounds=debugging("bounds"), long=sizes > 0 or program.work >= LONG, fuel_at=sizes_at + sizes,
                    outlined=outlined(program.statements), apart=apart)
    for i, buffer in enumerate(order):
        if buffer not in placement.aliases:
            module.homes[buffer] = "slots", i
    for buffer, offset in placement.offsets.items():
        module.homes[buffer] = "workspace", offset
    for buffer, host in placement.hosts.items():
        module.homes[buffer] = module.homes[host]
    f = Main(module, "run", "ptr %slots, ptr %cancel", "i32")
    f.values.bases["slots"] = "%slots"
    if given:
        f.writer.entry += [f"  %wsp = getelementptr ptr, ptr %slots, i64 {len(order)}", "  %ws = load ptr, ptr %wsp"]
    elif placement.workspace:
        f.frame.make_workspace("%ws", placement.workspace)
    if placement.workspace:
        f.values.bases["workspace"] = "%ws"
    for number, size in program.builder.sizes.known.items():
        if number < sizes:
            f.writer.entry.append(f"  %n{number}p = getelementptr i64, ptr %slots, i64 {sizes_at + number}")
            f.writer.entry.append(f"  %n{number} = load i64, ptr %n{number}p")
            f.values.names[size] = f"%n{number}"
    f.frame.reserve(program.statements, temporaries=bool(sizes))
    f.program(program.statements)
    module.functions["run"] = "\n".join((f.frame.end(), *module.segments))
    return module


FAMILIES = butterflies.family, microkernels.family, tiles.family, turning.family


def text(program: Program, sizes: int = 0, level: int = 1) -> tuple[str, Units]:
    """A program as LLVM IR, and the modules of it that are compiled apart. Those that are written first are compiled
    meanwhile, as is what it calls."""
    progress.stage = "LLVM IR"
    begin(_called(program), level)
    units = Units(level)
    module = generate(program, sizes, units.add if runtime.num_threads() > 1 else None)
    units.texts.append(module.last_unit())
    return module.text(), units


def begin(symbols: set[str], level: int) -> None:
    """Compiles functions that a program will call, in threads."""
    for family in FAMILIES:
        family.compile_ahead(symbols, level, max(runtime.num_threads() - 1, 1))


def _called(program: Program) -> set[str]:
    """The functions that a program calls by name."""
    vector_bytes = llvm.host().vector_bytes
    return {turning.called(s, vector_bytes) if isinstance(s, Transpose) else s.symbol
            for s in statements(program.statements) if isinstance(s, (Call, Transpose))}


def shown(name: str, ir: str) -> None:
    """Prints what was asked for."""
    if debugging("llvm"):
        print(f"-- llvm {name}\n{ir}")
    if debugging("asm"):
        print(f"-- asm {name}\n{llvm.asm(ir)}")
