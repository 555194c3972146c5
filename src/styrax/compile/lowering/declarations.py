"""What a program declares: names, buffers, loop variables with their extents, mutable scalars."""

from __future__ import annotations

from ...core.programs.places import Origin
from ...core.types.index_type import INDEX, ScalarType, scalar_type
from ..ir.expr import UNBOUNDED, Expr, Index, unwrap
from ..ir.loopir import Buffer, BufferKind
from ..ir.values import Shape
from . import intervals
from .number_types import is_complex, is_integer, part_dtype
from .scalars import Scalars


class Declarations:
    """The declarations of one program."""

    def __init__(self, scalars: Scalars):
        self.scalars, self.arena = scalars, scalars.arena
        self.buffers: list[Buffer] = []
        self.names: dict[str, int] = {}
        self.extents: dict[Expr, Index] = {}  # of loop variables
        self.origin: Origin | None = None  # of what is declared now
        self.origins: dict[Buffer | Expr, tuple[Origin, ...]] = {}  # of buffers and mutable scalars

    def name(self, stem: str) -> str:
        n = self.names[stem] = self.names.get(stem, -1) + 1
        return f"{stem}{n}"

    def buffer(self, dtype: ScalarType, size: Index, kind: BufferKind = BufferKind.TEMP, number: int = -1,
               stem: str = "t", donated: bool = False, once: bool = False,
               interval: tuple[int, int] | None = None) -> Buffer:
        buffer = Buffer(self.name(stem), scalar_type(dtype), unwrap(size), kind, number, donated, once, interval)
        self.buffers.append(buffer)
        self.belongs(buffer, self.origin)
        return buffer

    def belongs(self, thing: Buffer | Expr, origin: Origin | None) -> None:
        """Notes an equation whose result is put into a buffer or scalar."""
        if origin is not None:
            self.origins[thing] = (*self.origins.get(thing, ()), origin)

    def loop_vars(self, shape: Shape, stem: str = "i") -> tuple[Expr, ...]:
        """An index with a fresh loop variable for each dimension of more than one element."""
        return tuple(self.arena.int(0) if d == 1 and isinstance(d, int) else self.loop_var(d, stem) for d in shape)

    def loop_var(self, extent: Index, stem: str = "i") -> Expr:
        v = self.arena.var(self.name(stem), extent)
        self.extents[v] = extent
        return v

    def mutable(self, dtype: ScalarType, stem: str = "s", bounds: tuple[int, int] = UNBOUNDED) -> Expr:
        """A mutable scalar; a complex one is a pair of them. `bounds` enclose all that an integer will be."""
        dtype = scalar_type(dtype)
        if is_complex(dtype):
            part = part_dtype(dtype)
            return self.scalars.complex(self.mutable(part, stem), self.mutable(part, stem))
        if bounds == UNBOUNDED and dtype is not INDEX and is_integer(dtype):
            bounds = intervals.of_type(dtype)
        scalar = self.arena.unique("get", dtype, self.name(stem), bounds)
        self.belongs(scalar, self.origin)
        return scalar
