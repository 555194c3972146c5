"""Makes a finding small: fewer results, steps, layers, simpler and fewer values, as long as it stays a finding."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import jax
import numpy as np

from tests.fuzz import engines, programs
from tests.fuzz.engines import Finding
from tests.fuzz.generator import free
from tests.fuzz.programs import Function, Program, Step
from tests.fuzz.values import Type


def pruned_function(f: Function) -> Function:
    """Without the steps that nothing uses."""
    used, kept = set(f.outs), []
    for step in reversed(f.steps):
        if used.intersection(step.outs):
            step = replace(step, functions=tuple(map(pruned_function, step.functions)))
            kept.append(step)
            used |= free(step)
    return replace(f, steps=tuple(reversed(kept)))


def pruned(program: Program) -> Program:
    main = pruned_function(program.main)
    used = set(main.outs).union(*map(free, main.steps))
    kept = [(n, x) for n, x in zip(main.params, program.args, strict=True) if n in used]
    return replace(program, main=replace(main, params=tuple(n for n, _ in kept)), args=tuple(x for _, x in kept))


def renamed_step(step: Step, names: dict[str, str]) -> Step:
    layers = []
    for layer in step.stack:
        code = layer.code
        for old in layer.uses:
            code = code.replace(f"({old})", f"({names.get(old, old)})")
        layers.append(replace(layer, code=code, uses=tuple(names.get(v, v) for v in layer.uses)))
    return replace(
        step,
        ins=tuple(names.get(v, v) for v in step.ins),
        stack=tuple(layers),
        functions=tuple(renamed(f, names) for f in step.functions),
    )


def renamed(f: Function, names: dict[str, str]) -> Function:
    """With other values in place of some."""
    return replace(f, steps=tuple(renamed_step(s, names) for s in f.steps), outs=tuple(names.get(v, v) for v in f.outs))


def alike(a: Type | None, b: Type | None) -> bool:
    """Whether values of these types may stand for each other. Those of results that JAX refused are not known."""
    return a is not None and b is not None and (a.shape, a.dtype) == (b.shape, b.dtype)


def smaller_functions(f: Function, types: dict[str, Type], scope: tuple[str, ...], main: bool) -> Iterator[Function]:
    """The function with one thing less."""
    if main and len(f.outs) > 1:
        yield from (replace(f, outs=(out,)) for out in f.outs)
    if main:
        yield from (replace(f, outs=s.outs) for s in f.steps[:-1] if s.outs != f.outs)
    seen = (*scope, *f.params)
    for i, step in enumerate(f.steps):
        before, after = f.steps[:i], f.steps[i + 1 :]
        if step.stack and not any(layer.uses for layer in step.stack) and len(step.functions) == 1:
            inner = step.functions[0]
            if len(inner.params) == len(step.ins) and len(inner.outs) == len(step.outs):
                names = dict(zip(inner.params, step.ins, strict=True))
                body = renamed(inner, names)
                yield replace(
                    f,
                    steps=(*before, *body.steps, *(renamed_step(s, dict(zip(step.outs, body.outs))) for s in after)),
                    outs=tuple(dict(zip(step.outs, body.outs)).get(o, o) for o in f.outs),
                )
        for k in range(len(step.stack) if len(step.stack) > 1 else 0):
            yield replace(f, steps=(*before, replace(step, stack=step.stack[:k] + step.stack[k + 1 :]), *after))
        names = {}
        for out in step.outs:
            same = [v for v in seen if alike(types.get(v), types.get(out))]
            if same:
                names[out] = same[-1]
        if names and step.row != "constant":
            yield replace(
                f,
                steps=(*before, *(renamed_step(s, names) for s in after)),
                outs=tuple(names.get(o, o) for o in f.outs),
            )
        for j, inner in enumerate(step.functions):
            for less in smaller_functions(inner, types, seen, False):
                functions = (*step.functions[:j], less, *step.functions[j + 1 :])
                yield replace(f, steps=(*before, replace(step, functions=functions), *after))
        seen = (*seen, *step.outs)


def cuts(program: Program) -> Iterator[Program]:
    """Without the first steps: what they give becomes an argument."""
    main = program.main
    for i in reversed(range(len(main.steps))):
        step = main.steps[i]
        if step.outs == main.outs or any(o not in program.types or not program.types[o].dtype for o in step.outs):
            continue
        try:
            with engines.settings(jax, program.x64):
                head = replace(main, steps=main.steps[: i + 1], outs=step.outs)
                made = [np.asarray(x) for x in programs.build(head, "jax")(*program.args)]
        except Exception:
            continue
        types = {**program.types, **{o: replace(program.types[o], exact=True, weak=False) for o in step.outs}}
        shorter = replace(main, params=(*main.params, *step.outs), steps=main.steps[:i] + main.steps[i + 1 :])
        yield replace(program, main=shorter, args=(*program.args, *made), types=types)


def simpler_values(program: Program) -> Iterator[Program]:
    for size in sorted({n for x in program.args for n in x.shape if n > 1}):
        args = tuple(x[tuple(slice(0, 1) if n == size else slice(None) for n in x.shape)] for x in program.args)
        yield replace(program, args=args)
    for i, x in enumerate(program.args):
        for simple in (
            np.ones_like(x),
            np.zeros_like(x),
            np.full_like(x, 2),
            np.where(np.isfinite(x), x, 1).astype(x.dtype) if x.dtype.kind in "fc" else None,
        ):
            if simple is not None and simple.tobytes() != x.tobytes():
                yield replace(program, args=(*program.args[:i], simple, *program.args[i + 1 :]))


def candidates(program: Program) -> Iterator[Program]:
    for main in smaller_functions(program.main, dict(program.types), (), True):
        yield replace(program, main=main)
    yield from cuts(program)
    yield from simpler_values(program)


def shrink(finding: Finding, check: Callable[[Program], Finding | None], seconds: float = 20.0) -> Finding:
    """The smallest finding of the same kind that is reached in this time."""
    end = time.monotonic() + seconds
    tried = set()
    best = finding
    again = True
    while again and time.monotonic() < end:
        again = False
        for candidate in candidates(best.program):
            try:
                candidate = pruned(candidate)
                text = programs.source(candidate.main) + str(
                    [x.tobytes() + str(x.shape).encode() for x in candidate.args]
                )
            except (KeyError, ValueError):
                continue
            if text in tried:
                continue
            tried.add(text)
            found = check(candidate)
            if found is not None and (found.kind, found.mode) == (finding.kind, finding.mode):
                best, again = found, True
                break
            if time.monotonic() > end:
                break
    return best


def checker(mode: str) -> Callable[[Program], Finding | None]:
    """Whether a program differs in one mode."""

    def check(program: Program) -> Finding | None:
        found = engines.examine([program], Counter(), (mode,))
        return found[0] if found else None

    return check
