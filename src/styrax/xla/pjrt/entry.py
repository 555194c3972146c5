"""A program's entry: what of its arguments and results crosses the boundary to a plugin, and its text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ...compile.jaxprs.dead_equations import drop_unused
from ...core.arrays.devices import Sharding
from ...core.arrays.shardings import NamedSharding
from ...core.programs.jaxpr import ClosedJaxpr, Literal, Var
from ...core.types import dtypes, physical
from ...core.types.avals import AbstractToken, AbstractValue
from ..depth import room
from ..stablehlo import Module
from .foreign_functions import Numbered

LARGE = 4096  # bytes from which a constant is an argument and not a part of the text


class Entry:
    """A program without arguments that it does not read, and without what has no memory: tokens and `float0`s.

    Attributes:
      closed: the program that is compiled. Its first arguments are `constants`.
      constants: large constants, as NumPy arrays.
      read: the numbers of the original arguments that follow.
      kept: the numbers of the original results that it gives.
      aliases: result number -> argument number, both as in `closed`: results that take over the memory of a donated
        argument.
      callbacks: the Python functions that it calls.
      text: the StableHLO module.

    Args:
      spread: how arguments and results are spread, for a program that is parted among devices.
      whole: how what each of these devices has whole is spread: constants, which XLA would part as it sees fit.
    """

    __slots__ = ("aliases", "callbacks", "closed", "constants", "kept", "read", "text")

    def __init__(self, closed: ClosedJaxpr, name: str, donated: Sequence[bool], callbacks: Numbered,
                 libraries: Collection[str], spread: tuple[Sequence[Sharding], Sequence[Sharding]] | None = None,
                 whole: NamedSharding | None = None):
        closed = drop_unused(physical.lower(closed))  # which need not have rules
        jaxpr = closed.jaxpr
        used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
        used.update(v for v in jaxpr.outvars if type(v) is not Literal)
        self.read = [i for i, v in enumerate(jaxpr.invars) if v in used and not is_hollow(v.aval)]
        self.kept = [k for k, v in enumerate(jaxpr.outvars) if not is_hollow(v.aval)]
        hollow = [v for v in jaxpr.invars if v in used and is_hollow(v.aval)]
        inner: list[tuple[Var, object]] = [(v, np.zeros((), np.bool_)) for v in hollow]
        outer: list[tuple[Var, np.ndarray]] = []
        for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
            value = None if is_hollow(v.aval) else np.asarray(c)
            if value is None or value.nbytes < LARGE:
                inner.append((v, c))
            else:
                outer.append((v, value))
        self.constants = [c for _, c in outer]
        self.closed = ClosedJaxpr(jaxpr.replace(
            constvars=[v for v, _ in inner], invars=[*(v for v, _ in outer), *(jaxpr.invars[i] for i in self.read)],
            outvars=[jaxpr.outvars[k] for k in self.kept]), [c for _, c in inner])
        self.aliases = self._aliases(donated, spread)
        attributes = [""] * len(self.closed.in_avals)
        for k, i in self.aliases.items():
            attributes[i] = f"tf.aliasing_output = {k} : i32"
        module = Module(f"jit_{name}", libraries=libraries, sharded=spread is not None)
        module.callbacks = self.callbacks = callbacks
        results: Sequence[str] = ()
        if spread is not None and whole is not None and module.meshes is not None:
            module.meshes.devices = whole.mesh.size
            told = [whole] * len(outer) + [spread[0][i] for i in self.read]
            attributes = module.meshes.attributes(attributes, told, self.closed.in_avals)
            kept = [spread[1][k] for k in self.kept]
            results = module.meshes.attributes([""] * len(kept), kept, self.closed.out_avals)
        with room():
            module.add_function("main", self.closed, "public", attributes, results)
        self.text = module.text()

    def _aliases(self, donated: Sequence[bool],
                 spread: tuple[Sequence[Sharding], Sequence[Sharding]] | None) -> dict[int, int]:
        found: dict[int, int] = {}
        first = len(self.constants)
        avals = self.closed.out_avals

        def alike(i: int, k: int) -> bool:
            return spread is None or spread[0][i].is_equivalent_to(  # type: ignore[attr-defined]
                spread[1][self.kept[k]], len(avals[k].shape))

        for position, i in enumerate(self.read):
            if donated and donated[i]:
                given = self.closed.in_avals[first + position]
                same = (k for k, a in enumerate(avals)
                        if k not in found and (a.shape, a.dtype) == (given.shape, given.dtype) and alike(i, k))
                k = next(same, None)
                if k is not None:
                    found[k] = first + position
        return found


def is_hollow(aval: AbstractValue) -> bool:
    """Whether values of a type have no memory."""
    return isinstance(aval, AbstractToken) or getattr(aval, "dtype", None) == dtypes.float0
