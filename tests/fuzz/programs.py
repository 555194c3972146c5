"""Programs as data: steps over an environment of values with types, functions in functions; and their text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.fuzz import values
from tests.fuzz.values import Type

PRELUDE = (Path(__file__).parent / "prelude.py").read_text()


@dataclass(frozen=True)
class Step:
    """One call. `code` is Python text with a place `{0}`, `{1}` … for each operand, `{f}` for the function that the
    transformations `stack` make, outermost first, of the functions inside."""

    row: str
    code: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    functions: tuple[Function, ...] = ()
    stack: tuple[Layer, ...] = ()
    single: bool = False  # the code gives one value and no tuple
    composed: bool = False  # of several operations that round


@dataclass(frozen=True)
class Layer:
    """A transformation: text with the place `{f}`, or `{0}`, `{1}` … for the functions of the innermost one."""

    name: str
    code: str
    uses: tuple[str, ...] = ()  # values that the text reads


@dataclass(frozen=True)
class Function:
    name: str
    params: tuple[str, ...]
    steps: tuple[Step, ...]
    outs: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A function with its arguments and the types of all values in it, by name."""

    main: Function
    args: tuple[np.ndarray, ...]
    types: Mapping[str, Type] = field(repr=False)
    x64: bool = False
    name: str = ""

    def with_main(self, **changes: Any) -> Program:
        return replace(self, main=replace(self.main, **changes))


def walk(function: Function) -> Iterator[Step]:
    """All steps, those inside functions included."""
    for step in function.steps:
        yield step
        for inner in step.functions:
            yield from walk(inner)


def pairs(function: Function, around: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Transformations that stand one inside the other, outer first."""
    for step in function.steps:
        names = [layer.name for layer in step.stack]
        for i, inner in enumerate(names):
            for outer in (*around, *names[:i]):
                yield outer, inner
        for sub in step.functions:
            yield from pairs(sub, (*around, *names))


def expression(step: Step, noisy: bool = False) -> str:
    """A step's call; with `noisy`, what composed operations read goes through `noise`."""
    if not step.stack:
        ins = [f"noise('{v}', {v})" if noisy and step.composed else v for v in step.ins]
        return step.code.format(*ins, f=step.functions[0].name if step.functions else "")
    text = step.stack[-1].code.format(*(f.name for f in step.functions), f=step.functions[0].name)
    for layer in reversed(step.stack[:-1]):
        text = layer.code.format(f=text)
    return f"{text}({', '.join(step.ins)})"


def source(function: Function, noisy: Callable[[str], bool] | None = None, indent: str = "") -> str:
    """The text of a function. With `noisy`, values of these names go through `noise(name, value)`."""
    inner = indent + "    "
    lines = [f"{indent}def {function.name}({', '.join(function.params)}):"]
    for step in function.steps:
        lines += [source(f, noisy, inner) for f in step.functions]
        comma = "," if len(step.outs) == 1 and not step.single else ""
        lines.append(f"{inner}{', '.join(step.outs)}{comma} = {expression(step, noisy is not None)}")
        if noisy is not None:
            lines += [f"{inner}{out} = noise('{out}', {out})" for out in step.outs if noisy(out)]
    outs = ", ".join(function.outs)
    lines.append(f"{inner}return ({outs}{',' if len(function.outs) == 1 else ''})")
    return "\n".join(lines)


@cache
def names(library: str) -> dict[str, Any]:
    """What programs may use, with one library's functions."""
    renamed = re.sub(r"^(import|from) jax\b", rf"\1 {library}", PRELUDE, flags=re.M)
    renamed = renamed.replace(f"import {library}\n", f"import {library} as jax\n", 1)
    module: Any = ModuleType(f"prelude_{library}")
    exec(compile(renamed, f"<prelude of {library}>", "exec"), module.__dict__)
    if library == "jax":  # what XLA computes of constants while it compiles is not always right
        import jax

        module.constant = lambda x: jax.lax.optimization_barrier(x) if isinstance(x, np.ndarray) else x
    return module.__dict__


def build(function: Function, library: str, **other: Any) -> Callable[..., Any]:
    """The function under one library; `other` names stand before those of the prelude."""
    text = source(function, other.pop("noisy", None))
    space = {**names(library), **other}
    if other:  # the prelude's own functions see them, too
        exec(compile(PRELUDE.partition("import lax\n")[2], "<prelude>", "exec"), space)
        space.update(other)
    exec(compile(text, "<program>", "exec"), space)
    return space[function.name]


@cache
def _definitions() -> dict[str, tuple[str, frozenset[str]]]:
    tree = ast.parse(PRELUDE)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            used = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            found[node.name] = ast.get_source_segment(PRELUDE, node) or "", used
    return found


def script(program: Program) -> str:
    """A program that runs alone: what it needs of the prelude, its function, its arguments."""
    text = source(program.main)
    needed: list[str] = []
    pending = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    while pending:
        name = pending.pop()
        if name in _definitions() and name not in needed:
            needed.append(name)
            pending |= _definitions()[name][1]
    prelude = "\n\n".join(_definitions()[name][0] for name in _definitions() if name in needed)
    args = ",\n        ".join(values.text(x) for x in program.args)
    return (
        f"import numpy as np\nimport styrax as jax  # or: import jax\n"
        f"import styrax.ad_checkpoint, styrax.custom_batching, styrax.custom_derivatives, styrax.extend.random, "
        f"styrax.ref\n\njnp, lax = jax.numpy, jax.lax\n"
        f"jax.config.update('jax_enable_x64', {program.x64})\n\n{prelude}\n\n{text}\n\n"
        f"args = ({args}{',' if program.args else ''})\n"
        f"print({program.main.name}(*args))\nprint(jax.jit({program.main.name})(*args))\n"
    )
