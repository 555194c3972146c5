"""Programs on arrays over several devices of a plugin: XLA parts them, told how arguments and results are spread.

How results are spread is found as where the host's processors are several devices (`core.programs.following`), so that
the same programs give arrays under the same shardings.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.arrays import moving
from ...core.arrays.array import Array, array_type
from ...core.arrays.backends import Elsewhere
from ...core.arrays.devices import ManyDevices
from ...core.arrays.shardings import UNCONSTRAINED, NamedSharding
from ...core.programs.following import Following, home, read_arguments
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.tracing.errors import JaxRuntimeError
from ...core.tracing.trace import Tracer, raise_leak
from ...core.types.effects import ordered_effects
from .entry import Entry
from .foreign_functions import Numbered
from .loaded_executable import OWNERS, ArgumentBlock, Executable
from .options import NONE, Option
from .plugin_buffers import Buffer

if TYPE_CHECKING:
    from .many_devices import Together
    from .plugin_client import PluginBackend


class SpreadProgram:
    """A program on arrays over several devices.

    Args:
      closed: the program.
      device: the devices that it runs on.
      said: what was said of arguments' and results' shardings; what is no sharding says nothing.
      donated: the arguments whose memory results may take over.
      compiler_options: XLA's, by name.
    """

    def __init__(self, closed: ClosedJaxpr, name: str, device: Together, said: tuple[Sequence[Any], Sequence[Any]],
                 donated: Sequence[bool] = (), compiler_options: Mapping[str, Option] = NONE):
        ordered = [e for e in closed.effects if ordered_effects.contains(e)]
        if ordered:
            raise ValueError(f"The following ordered effects are not supported for more than 1 device: {ordered}")
        self.closed = closed
        self.name = name
        self.donated = donated
        self.compiler_options = compiler_options
        self.device = device
        self.following = Following(_refuse, closed, name, *said)
        self.home = home(closed, said) is not None
        self.read = frozenset(read_arguments(closed))
        self.codes: dict[Any, SpreadExecutable] = {}

    def __call__(self, *args: Any) -> list[Any]:
        given: list[NamedSharding | None] = [None] * len(args)
        here = self.home or self.device is moving.around()
        for i, x in enumerate(args):
            if isinstance(x, Tracer):
                raise_leak(x)
            memory = x._live() if isinstance(x, Array) else None
            if memory is not None and memory.device is self.device:
                given[i] = memory.sharding
                here = True
            elif memory is not None and x.committed and i in self.read:
                raise Elsewhere
        if not here:
            raise Elsewhere
        return self.expect(given)(*args)

    def expect(self, given: Sequence[NamedSharding | None]) -> SpreadExecutable:
        """The program for arguments that are spread so."""
        key = tuple(given)
        code = self.codes.get(key)
        if code is None:
            code = self.codes[key] = self._for(key)
        return code

    def _for(self, given: Sequence[NamedSharding | None]) -> SpreadExecutable:
        whole = self.device.whole
        where = self.following.where(given) or [None] * len(self.closed.out_avals)
        ins = [said if isinstance(said, NamedSharding) else own or whole
               for said, own in zip(self.following.in_shardings, given, strict=True)]
        outs = [_settled(place) if isinstance(place, NamedSharding) else whole for place in where]
        return self.device.client.one.compile_for_many(
            self.closed, self.name, self.device, (list(map(_settled, ins)), outs), self.donated, self.compiler_options)

    @property
    def code(self) -> SpreadExecutable:
        """The program of the latest kind of call; before there was one, for arguments as they are said to be."""
        return next(reversed(self.codes.values())) if self.codes else self.expect((None,) * len(self.closed.in_avals))


def _refuse(*_: Any) -> list[Any]:
    raise AssertionError("is only asked where results are")


def _settled(sharding: NamedSharding) -> NamedSharding:
    """A sharding that says of each dimension how it is spread: what is left open is whole."""
    if not any(e is UNCONSTRAINED for e in sharding.spec):
        return sharding
    return sharding.update(spec=sharding.spec.update(
        partitions=tuple([None if e is UNCONSTRAINED else e for e in sharding.spec])))


def _is_seen(x: Array) -> bool:
    """Whether somebody besides this array sees its memory, or a part."""
    memory = x.buffer
    if not isinstance(x._live().device, ManyDevices):
        return False  # copies are what is given away
    return x._numpy is not None or sys.getrefcount(memory) > OWNERS - 1 or any([
        sys.getrefcount(part) > OWNERS - 1 for part in memory.parts])


class SpreadExecutable(Executable):
    """A compiled program on several devices, for arguments under these shardings. Each process runs its devices' part.
    """

    __slots__ = ("in_shardings", "out_shardings", "parted", "together", "whole")

    def __init__(self, closed: ClosedJaxpr, name: str, device: Together,
                 spread: tuple[Sequence[NamedSharding], Sequence[NamedSharding]],
                 donated: Sequence[bool], compiler_options: Mapping[str, Option]):
        client: PluginBackend = device.client.one
        self.closed, self.name, self.together, self.plugin = closed, name, device, client.plugin
        self.in_shardings, self.out_shardings = spread
        entry = self.entry = Entry(closed, name, donated, Numbered(client._callbacks, []), client.libraries, spread,
                                   device.whole)
        self.loaded, self.chosen = client.loaded(entry.text, device.devices, compiler_options)
        self.read = entry.read
        self.whole = [[client.buffer(c, d) for c in entry.constants] for d in device.own]
        avals, outs = [closed.out_avals[k] for k in entry.kept], self.out_shardings
        self.parted = [(a, outs[k], [client.type_of(d, p.dtype, outs[k].shard_shape(p.shape)) for d in device.own])
                        for k, a, p in zip(entry.kept, avals, entry.closed.out_avals, strict=True)]
        self.hollow = [(k, array_type(a)(a, None)) for k, a in enumerate(closed.out_avals) if k not in entry.kept]
        self.effects = client.effects if entry.callbacks.numbers else None  # (by which blocks have events)
        self.aliased = [i - len(entry.constants) for i in entry.aliases.values()]  # of `read`
        self.blocks = [ArgumentBlock(self, len(device.own))]

    def __call__(self, *args: Any) -> list[Any]:
        columns = [self._parts(args[i], self.in_shardings[i]) for i in self.read]
        try:
            block = self.blocks.pop()  # nobody else has it now
        except IndexError:
            block = ArgumentBlock(self, len(self.together.own))
        handles: list[int] = []
        for i, constants in enumerate(self.whole):
            handles += [c.handle for c in constants]
            handles += [parts[i].handle for parts in columns]
        if self.aliased:
            self.keep(block, [i for i in self.aliased if _is_seen(args[self.read[i]])])
        if self.plugin.forked:
            self.plugin.refuse()
        error = block.launch(*handles)
        if error < 0:
            self.plugin.fail(-error)
        count = len(self.parted)
        given = list(block.results)
        outs = [self.together.memory(aval, sharding, list(map(Buffer, given[k::count], kinds)))
                for k, (aval, sharding, kinds) in enumerate(self.parted)]
        if self.effects is not None:
            self._finish(block)
        self.blocks.append(block)
        for k, out in self.hollow:
            outs.insert(k, out)
        return outs

    def _finish(self, block: ArgumentBlock) -> None:
        """Waits for a program that calls Python. JaxRuntimeError for a failure there, as single devices tell it."""
        for event in block.finished:
            self.plugin.wait(event or 0)
        failures = self.entry.callbacks.failures
        if failures:
            error = failures[0]
            failures.clear()
            raise JaxRuntimeError(f"INTERNAL: {type(error).__name__}: {error}")

    @property
    def key(self) -> bytes:
        return self.together.client.one.key(self.entry.text, self.chosen)

    def _parts(self, x: Any, sharding: NamedSharding) -> Sequence[Buffer]:
        memory = x._live()
        return memory.parts if memory.device is self.together else self.together.cut(x, sharding)
