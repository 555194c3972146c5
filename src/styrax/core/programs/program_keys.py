"""Keys of programs: texts that are equal where a compiler makes the same of two programs, also in other processes."""

from __future__ import annotations

import functools
from hashlib import blake2b
from typing import Any

import numpy as np

from ..arrays.mesh import Mesh
from ..types.dims import Dim
from . import rules
from .jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn
from .serial_writer import Writer

_COMMON = frozenset((int, str, bool, tuple, type(None)))
LARGE = 4 << 20  # bytes of constants from which to look at them takes as long as to compile
# where rules of our own are from
_RULES = ("styrax.lax.", "styrax.random.", "styrax.transforms.", "styrax.parallel.", "styrax.core.")


def key(program: ClosedJaxpr) -> str | None:
    """The key of a program; None for one that has functions in it, primitives that are not our own, or much else."""
    if sum(getattr(c, "nbytes", 0) for c in program.consts) > LARGE:
        return None
    try:
        return _KeyWriter().program(program)
    except Exception:  # objects of others among the parameters may do anything
        return None


_text = functools.cache(str)  # of dtypes, which have no quick one


class _KeyWriter(Writer):
    """Leaves out what only messages tell, and of constants all but a digest."""

    def __init__(self) -> None:
        super().__init__()
        self.inlined = False  # whether what is written are parameters of an equation that stands for a program

    def eqn(self, eqn: JaxprEqn) -> str:
        traits = eqn.primitive.traits
        rule = traits.program or traits.implementation or rules.loops.get(eqn.primitive)
        if traits.control is None and not getattr(rule, "__module__", "").startswith(_RULES):
            raise TypeError(f"the rule of {eqn.primitive} may change between processes")
        before, self.inlined = self.inlined, traits.program is not None
        try:
            return super().eqn(eqn)
        finally:
            self.inlined = before

    def value(self, x: Any) -> str:
        if type(x) in _COMMON:
            return super().value(x)
        if type(x) in (float, complex) and x != x:
            x = np.asarray(x)[()]
        if type(x) is Mesh:
            devices = [d and (d.platform, d.id) for d in x.devices.flat]
            return f"mesh({self.value(x.axis_names)} {x.devices.shape} {[t.name for t in x.axis_types]} {devices})"
        if isinstance(x, np.generic) and not x.dtype.hasobject:  # NaNs have many forms
            return f"{_text(x.dtype)}:{x.tobytes().hex()}"
        return super().value(x)

    def info(self, info: DebugInfo) -> str:
        return ""

    def dim(self, d: Any) -> str:
        # As it was traced: which sizes are one may be found out while the program is compiled.
        return repr(sorted(d.terms.items())) if type(d) is Dim else super().dim(d)

    def array(self, kind: str, x: np.ndarray, weak: str) -> str:
        if x.nbytes > LARGE or x.dtype.hasobject:
            raise TypeError("an array too large to be looked at")
        data = blake2b(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data, digest_size=20).hexdigest()
        return f"{kind}({x.dtype}{x.shape}{weak} {data})"

    def reference(self, x: Any) -> str:
        # The program that an equation stands for is written out; rules of its derivatives are nothing to a compiler.
        if self.inlined:
            return "function"
        named = self.named(x)
        if named is None or not named.startswith(('ref("styrax.', 'ref("numpy', 'ref("builtins', 'ref("copyreg')):
            raise TypeError(f"{x!r} may change between processes")
        return named
