"""The machine code of programs: compiled for where their arguments are, placed, watched; and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import hooks
from ..core.arrays import backends, differing, host_devices
from ..core.arrays.devices import Device, ManyDevices
from ..core.programs import following
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.settings import config, progress
from ..core.tracing import invalid_values
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types import avals
from ..core.types.avals import AbstractRef
from . import compile_log, high_types, refs
from .donation import Donating, Donation
from .jit_rules import jit_p
from .jit_shardings import Placing, device_of, settled, summed_as_said
from .meeting import Meeting
from .memo import per_jaxpr
from .signature import as_operand

Code = Callable[..., list[Any]]
Options = tuple[tuple[str, Any, type], ...]  # for the compiler: equal values of several types are not the same to it


def placed(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...] | None,
           said: tuple[Sequence[Any], Sequence[Any]], options: Options = ()) -> Code:
    """The code of a program with what is said of its arguments' and results' shardings, and to the compiler."""
    default, device = backends.get(), device_of(*said)
    if backends.several and (code := hooks.on_copies(closed, name, donated, said)) is not None:
        return code
    if avals.explicit:
        closed = summed_as_said(closed, tuple(said[1]))
    if device is None and backends.apart:
        return meeting(closed, name, donated, (tuple(said[0]), tuple(said[1])), options)
    if backends.several and (default if device is None else device.client).shared_memory:
        return compiled(closed, name, donated, None, device, (tuple(said[0]), tuple(said[1])), options)
    return compiled(closed, name, donated, settled(*said, closed.out_avals), device, ((), ()), options)


def direct(code: Code) -> Code:
    """What calls the same code in the fewest steps."""
    shortest = getattr(type(code), "direct", None)
    return code if shortest is None else shortest(code)


@per_jaxpr
def meeting(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...] | None = None,
            said: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ()), options: Options = ()) -> Code:
    """The code of a program for whatever devices its arguments are on."""
    def on(device: Device | None) -> Code:
        if isinstance(device, ManyDevices) or backends.several and (
                backends.get() if device is None else device.client).shared_memory:
            return compiled(closed, name, donated, None, device, said, options)
        return compiled(closed, name, donated, settled(*said, closed.out_avals), device, ((), ()), options)

    home: Device | ManyDevices | None = following.home(closed, said)
    if home is None and host_devices.cohort is not None:
        home = hooks.home_of_program(closed, said)
    return Meeting(closed, name, on, home)


@per_jaxpr
def compiled(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...] | None = None,
             shardings: tuple[Any, ...] | None = None, device: Device | None = None,
             said: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ()), options: Options = ()) -> Code:
    """The machine code of a program as a function of arrays, which deletes donated ones and places results.

    The client of `device` compiles it, by default that of the default backend. Where there are several devices, `said`
    is what is said of arguments and results. `options`: by name, each with its value's type, for XLA.
    """
    if closed.jaxpr.is_high:
        avals, results = closed.in_avals, closed.out_avals
        code = compiled(high_types.lowered(closed), name, donated and high_types.spread(donated, avals),
                        shardings and high_types.spread(shardings, results), device, ((), ()), options)
        return high_types.OnValues(code, avals, results)
    backend = backends.get() if device is None else device.client
    stateful = refs.has_refs(closed.jaxpr)
    follows = backends.several and backend.shared_memory
    if stateful and follows:  # what references hold is somewhere, too
        count = sum(isinstance(a, AbstractRef) for a in closed.in_avals)
        told = said[0], said[1] and (*said[1], *(None,) * count)
        return refs.OnContents(closed, lambda on_contents: compiled(
            on_contents, name, donated, None, device, told, options))
    plan = Donation(closed, donated, name) if donated is not None and any(donated) else None

    def build(program: ClosedJaxpr) -> Code:
        compile_log.compiling(name, program.in_avals)
        with compile_log.timed(f"XLA compilation of jit({name})", compile_log.COMPILED, f"jit({name})"), \
                progress.shown(f"compiling {name}, {len(program.eqns)} equations"):
            more: dict[str, Any] = {"said": said} if isinstance(device, ManyDevices) else {}
            if options:
                more["compiler_options"] = {key: value for key, value, _ in options}
            return backends.backend_compile_and_load(
                backend, program, name=name, donated=() if plan is None else plan.exact, device=device, **more)

    code = refs.OnContents(closed, build) if stateful else build(closed)
    if invalid_values.watching():
        code = _watched(code, closed, name, steps=not stateful and plan is None)
    if plan is not None:
        code = Donating(code, plan)
    if follows:
        return following.Following(code, closed, name, *said, donates=plan is not None)
    return code if shardings is None else Placing(code, shardings, device)


def _watched(executable: Code, closed: ClosedJaxpr, name: str, steps: bool) -> Code:
    eqns = closed.jaxpr.eqns
    if len(eqns) == 1 and eqns[0].primitive is not jit_p:
        return invalid_values.Watched(executable, eqns[0].primitive.name)
    search = (lambda *args: invalid_values.run_in_steps(closed, args)) if steps else None
    return invalid_values.Watched(executable, f"jit({name})", search)


@jit_p.def_impl
def _jit_impl(*args: Any, jaxpr: ClosedJaxpr, name: str, donated_invars: Sequence[bool], in_shardings: Sequence[Any],
              out_shardings: Sequence[Any], **_: Any) -> list[Any]:
    said = in_shardings, out_shardings
    code = _for_arguments(jaxpr, name, args, tuple(donated_invars), said) or placed(
        jaxpr, name, tuple(donated_invars), said)
    return code(*map(as_operand, args, jaxpr.in_avals))


def _for_arguments(closed: ClosedJaxpr, name: str, args: Sequence[Any], donated: tuple[bool, ...] | None = None,
                   said: tuple[Sequence[Any], Sequence[Any]] = ((), ())) -> Code | None:
    """The code of a program if copies of its arguments differ, None otherwise."""
    return hooks.on_copies(closed, name, donated, said, args) if differing.used else None


def apply_primitive(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Runs a primitive with references among its arguments, or inside its programs."""
    avals = [get_aval(x) for x in args]
    key = (primitive, tuple(avals), backends.params_key(params), config.trace_context())
    closed = _primitives.get(key)
    if closed is None:
        def fun(*tracers: Any) -> list[Any]:
            out = primitive.bind(*tracers, **params)
            return list(out) if primitive.multiple_results else [out]

        closed = _primitives[key] = trace_to_jaxpr(fun, avals)
    code = _for_arguments(closed, primitive.name, args) or (meeting if backends.apart else compiled)(
        closed, primitive.name)
    outs = code(*map(as_operand, args, closed.in_avals))
    return outs if primitive.multiple_results else outs[0]


_primitives: dict[Any, ClosedJaxpr] = {}  # with programs or references inside


def forget() -> None:
    """Forgets the programs of primitives that have programs or references inside."""
    _primitives.clear()


__all__ = ["Code", "Options", "apply_primitive", "compiled", "direct", "forget", "meeting", "placed"]
