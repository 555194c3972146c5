"""A warning about programs that hold many bytes of arrays that their functions captured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.programs.jaxpr import ClosedJaxpr, JaxprEqn
from ..core.settings import config
from ..core.tracing import source

_REPORTED = 5  # as many of the largest


def warn_of_captured(closed: ClosedJaxpr) -> None:
    """Warns once of a program whose constants have `jax_captured_constants_warn_bytes` bytes or more, if that is not
    negative. `jax_captured_constants_report_frames` other than 0 adds where the largest are used."""
    limit = config.config.jax_captured_constants_warn_bytes
    if limit < 0:
        return
    programs = _programs(closed)
    found = {id(x): x for program in programs for x in program.consts}
    total = sum(_bytes(x) for x in found.values())
    if total < limit or warn_of_captured in closed.jaxpr.cache:
        return
    closed.jaxpr.cache[warn_of_captured] = True
    message = (f"A large amount of constants were captured during lowering ({_text(total)} total). If this is "
               "intentional, disable this warning by setting JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1. ")
    if config.config.jax_captured_constants_report_frames:
        message += ("The subsequent report may be disabled by setting JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=0.\n\n"
                    + _report(programs, list(found.values())))
    else:
        message += ("To obtain a report of where these constants were encountered, set "
                    "JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1.")
    source.warn(message)


def _programs(closed: ClosedJaxpr) -> list[ClosedJaxpr]:
    """A program and those inside it, each once."""
    found = [closed]
    seen = {id(closed)}
    for program in found:
        for eqn in program.jaxpr.eqns:
            for inner in _inside(eqn):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    found.append(inner)
    return found


def _inside(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item


def _bytes(x: Any) -> int:
    return getattr(x, "nbytes", 0)


def _text(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.2f}{unit}"
        size /= 1000
    return f"{size:.2f}TB"


def _report(programs: list[ClosedJaxpr], constants: list[Any]) -> str:
    largest = sorted(constants, key=_bytes, reverse=True)[:_REPORTED]
    parts = [f"Largest {len(largest)} allocation(s):"]
    for x in largest:
        places = [f"    {source.summarize(eqn.source_info)}" for program in programs
                  for c, v in zip(program.consts, program.jaxpr.constvars, strict=False) if c is x
                  for eqn in program.jaxpr.eqns if any(u is v for u in eqn.invars)]
        what = f"{x.dtype}[{','.join(map(str, x.shape))}]" if hasattr(x, "shape") else type(x).__name__
        parts.append("\n".join([f"  Constant {type(x)}, {what}, {_text(_bytes(x))} captured at:", *places]))
    return "\n".join(parts)
