"""The table of functions, and their definitions as text."""
from __future__ import annotations

from functools import cache

from . import (
    bessel,
    error_functions,
    exponential,
    gamma,
    hyperbolic,
    inverse,
    moduli,
    power,
    quotients,
    regularised,
    remainder,
    trigonometric,
    zeta,
)
from .block import Block, Register

FAMILIES = (
    exponential,
    trigonometric,
    hyperbolic,
    inverse,
    moduli,
    power,
    error_functions,
    gamma,
    regularised,
    bessel,
    zeta,
    remainder,
    quotients,
)
# name -> builder(block, *arguments) -> result, or several
FUNCTIONS = {name: build for family in FAMILIES for name, build in family.FUNCTIONS.items()}
# name -> text(dtype, lanes) -> (definition, dependencies): what FUNCTIONS call or integers need, as IR
TEXTS = {name: text for family in FAMILIES for name, text in getattr(family, "TEXTS", {}).items()}
# Longer functions are left to the inliner's judgement.
INLINE_INSTRUCTIONS = 100
# Instructions of inlined functions in a module. Beyond, functions are called: the code generator takes time that grows
# faster than straight-line code.
INLINE_TOTAL = 5_000

Key = tuple[str, str, int]


def argument_names(name: str) -> tuple[str, ...]:
    """The names of a function's arguments, in order."""
    build = FUNCTIONS[name]
    code = getattr(build, "__wrapped__", build).__code__
    return code.co_varnames[1 : code.co_argcount]


@cache
def definition(name: str, dtype: str, lanes: int) -> tuple[str, str, tuple[Key, ...]]:
    """The LLVM definition of a function: (symbol, text, keys of the definitions it needs as well).

    `name` is a key of FUNCTIONS, `dtype` "f32" or "f64". The function takes and returns
    `<lanes x float/double>`, scalars if `lanes` is 1 (a structure of them where there are several results), and
    gives the same bits for any number of lanes.
    Its symbol is `@styrax.<name>.<dtype>.<lanes>`, with internal linkage. A KeyError means that there is
    no such function.
    """
    symbol = f"styrax.{name}.{dtype}.{lanes}"
    if name in TEXTS:
        text, dependencies = TEXTS[name](dtype, lanes)
        return symbol, text, dependencies
    build = FUNCTIONS[name]
    block = Block(dtype, lanes)
    names = argument_names(name)
    result = build(block, *[Register(block, f"%{a}", block.float) for a in names])
    results = result if isinstance(result, tuple) else (result,)
    t = block.float.text
    returned, name = t, results[0].name
    if len(results) > 1:
        returned, name = f"{{ {', '.join([t] * len(results))} }}", "poison"
        for k, r in enumerate(results):
            block.lines.append(f"  %result{k} = insertvalue {returned} {name}, {t} {r.name}, {k}")
            name = f"%result{k}"
    parameters = ", ".join([f"{t} %{a}" for a in names])
    attributes = "alwaysinline nounwind" if len(block.lines) <= INLINE_INSTRUCTIONS else "nounwind"
    lines = [
        f"define internal {returned} @{symbol}({parameters}) {attributes} {{",
        "entry:",
        *block.lines,
        f"  ret {returned} {name}",
        "}\n",
    ]
    return symbol, "\n".join(lines), tuple(block.dependencies)


def module_text(*keys: Key, calls: str = "") -> str:
    """The definitions of `keys` and of everything they need, each once. `calls` is the text of the functions that call
    them: what it calls all too often is not inlined there."""
    texts: dict[Key, str] = {}
    pending = list(keys)
    while pending:
        key = pending.pop()
        if key not in texts:
            _, texts[key], dependencies = definition(*key)
            pending.extend(dependencies)
    inlined = {key: calls.count(f"@{definition(*key)[0]}(") * texts[key].count("\n") for key in keys}
    for key in sorted(inlined, key=lambda k: -inlined[k]):
        if sum(inlined.values()) > INLINE_TOTAL:
            texts[key] = texts[key].replace(" alwaysinline nounwind ", " noinline nounwind ", 1)
            inlined[key] = 0
    return "\n".join(texts.values())
