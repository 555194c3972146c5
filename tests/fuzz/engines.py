"""Runs programs under both libraries, many in one compilation, and says what differs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import styrax
from styrax.compile.loops import memory, parallelize
from styrax.core.settings.config import states
from styrax.cpu import runtime
from tests.fuzz import comparison, programs
from tests.fuzz.comparison import Leaf
from tests.fuzz.programs import Program

MODES = ("eager", "jit", "bounds", "two threads")


@dataclass(frozen=True)
class Finding:
    """A program on which the libraries differ: how it ran, the kind of difference, and what it was."""

    program: Program
    mode: str
    kind: str
    detail: str


Outcome = list[Leaf] | Exception


@contextmanager
def settings(library: Any, x64: bool) -> Any:
    with library.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def leaves(outs: Any) -> list[Leaf]:
    return [comparison.leaf(x) for x in outs]


def eager(library: Any, program: Program) -> Outcome:
    with settings(library, program.x64):
        try:
            args = [library.numpy.asarray(x) for x in program.args]
            return leaves(programs.build(program.main, library.__name__)(*args))
        except Exception as error:
            return error


@contextmanager
def as_if_large() -> Iterator[None]:
    """Loops go to several threads however short they are, and carried memories are exchanged however small."""
    before = parallelize.THREADED, memory.WORTH_EXCHANGE
    parallelize.THREADED = memory.WORTH_EXCHANGE = 1
    try:
        yield
    finally:
        parallelize.THREADED, memory.WORTH_EXCHANGE = before


def together(library: Any, group: Sequence[Program], **options: Any) -> Callable[[], list[Outcome]]:
    """One function of several programs, to be compiled at once; those that do not trace give their errors."""
    functions = [programs.build(p.main, library.__name__) for p in group]
    errors: list[Outcome | None] = [None] * len(group)

    def everything(args: Any) -> Any:
        outs: list[Any] = []
        for i, (f, xs) in enumerate(zip(functions, args, strict=True)):
            try:
                outs.append(f(*xs))
            except Exception as error:
                errors[i] = error
                outs.append(())
        return outs

    compiled = library.jit(everything, **options)

    def run() -> list[Outcome]:
        results = compiled([[library.numpy.array(x) for x in p.args] for p in group])
        return [e if e is not None else leaves(r) for e, r in zip(errors, results, strict=True)]

    return run


def equations(group: Iterable[Program]) -> Iterator[list[str]]:
    """The primitives in each program's jaxpr, those of programs in it included, as often as they are there."""

    def inside(jaxpr: Any) -> Iterator[str]:
        for eqn in jaxpr.eqns:
            yield eqn.primitive.name
            for value in eqn.params.values():
                for inner in value if isinstance(value, (tuple, list)) else (value,):
                    if hasattr(inner, "jaxpr") or hasattr(inner, "eqns"):
                        yield from inside(getattr(inner, "jaxpr", inner))

    for program in group:
        with settings(styrax, program.x64):
            try:
                args = [styrax.numpy.asarray(x) for x in program.args]
                yield list(inside(styrax.make_jaxpr(programs.build(program.main, "styrax"))(*args).jaxpr))
            except Exception:
                yield []


def jitted(library: Any, group: Sequence[Program]) -> list[Outcome]:
    """Compiled results; one program after the other where the group as a whole fails."""
    with settings(library, group[0].x64):
        try:
            return together(library, group)()
        except Exception as error:
            if len(group) == 1:
                return [error]
        return [jitted(library, [p])[0] for p in group]


def compiled(group: Sequence[Program]) -> dict[str, list[Outcome]]:
    """Our compiled results: plain; on two threads that share every loop, in the place of arguments; and with every
    access checked."""
    before = runtime.num_threads()
    results: dict[str, list[Outcome]] = {}
    with settings(styrax, group[0].x64):
        try:
            runtime.set_num_threads(1)
            results["jit"] = together(styrax, group)()
            with as_if_large():
                runtime.set_num_threads(2)
                results["two threads"] = together(styrax, group, donate_argnums=0)()
            with states["styrax_debug"]("bounds,verify"):
                results["bounds"] = together(styrax, group)()
        except Exception as error:
            if len(group) == 1:
                return {mode: results.get(mode, [error]) for mode in MODES[1:]}
            single = [compiled([p]) for p in group]
            return {mode: [s[mode][0] for s in single] for mode in MODES[1:]}
        finally:
            runtime.set_num_threads(before)
    return results


def difference(program: Program, ours: Outcome, theirs: Outcome, skips: Counter[str]) -> tuple[str, str] | None:
    """The kind of difference and what it is."""
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        return _errors(ours, theirs, skips)
    if len(ours) != len(theirs):
        return "count", f"{len(ours)} results, not {len(theirs)}"
    runs: list[list[np.ndarray]] | None = None
    for i, (a, b, name) in enumerate(zip(ours, theirs, program.main.outs, strict=True)):
        wrong = comparison.types_differ(a, b)
        if wrong:
            return wrong.split()[0], f"result {i}: {wrong}"
        known = program.types.get(name)
        exact = known is not None and known.exact or not comparison.rough(b.dtype)
        strange = comparison.suspicious(a.value, b.value, exact)
        if not strange.any():
            continue
        text = f"result {i} ({name}): {a.value[strange][:4]}, not {b.value[strange][:4]}"
        if exact:
            return "values", text
        if runs is None:
            skips["compared in a wider precision"] += 1
            runs = comparison.disturbed(program) or []
        if not runs:
            skips["no wider run"] += 1
            continue
        good, all_known = comparison.verdict(a.value, b.value, [r[i] for r in runs])
        if not good and _cancels(program, i, a, b, ours):
            skips["terms that cancel, of products rounded with their sums"] += 1
        elif not good:
            return "values", f"{text}; exactly {runs[0][i][strange][:4]}"
        if not all_known:
            skips["values not determined"] += 1
    return None


def _cancels(program: Program, i: int, ours: Leaf, theirs: Leaf, results: Sequence[Leaf]) -> bool:
    """Whether a result differs by no more than the rounding of what the program handles, and no longer does where each
    product is rounded by itself, which `strict` numerics promise."""
    unit = comparison.eps(theirs.dtype)
    handled = [np.abs(comparison.wide(np.asarray(x))) for x in (*program.args, *(r.value for r in results))
               if comparison.rough(np.asarray(x).dtype.name)]
    scale = max([1.0, *(float(x[np.isfinite(x)].max(initial=0)) for x in handled)])
    with np.errstate(all="ignore"):
        near = np.abs(comparison.wide(ours.value) - comparison.wide(theirs.value)) <= comparison.ULPS * unit * scale
    known = np.isfinite(comparison.wide(theirs.value))  # of what is not, the wider run had nothing to say
    strange = comparison.suspicious(ours.value, theirs.value, False) & known
    if not np.all(near | ~strange):
        return False
    with settings(styrax, program.x64), states["styrax_numerics"]("strict"):
        strict = together(styrax, [program])()[0]
    return not isinstance(strict, Exception) and not (known & comparison.suspicious(
        strict[i].value, theirs.value, False)).any()


UNABLE = (
    "UNIMPLEMENTED",
    "not implemented",
    "Unimplemented",
    "Unsupported",
    "unsupported",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "ad_util.Zero'>",  # a tangent that is zero, reshaped: variadic reductions of numbers beside integers
    "has no attribute accum",  # a reference's slope in reverse, linearized
    "unbound axis name",  # programs name bound axes alone: JAX has lost one
    "with verifier errors",  # JAX's own text for XLA is wrong
    "_discharge_rule() got an unexpected",  # references in programs that are called under names
)


# messages of JAX's refusals where the answer does not depend on what it cannot do -> the class
STRICT = {
    "forward-mode autodiff (jvp) to a custom_vjp": "forward mode over a custom_vjp whose slope nothing uses",
    "integer modulo by zero": "maps in batches whose results are empty",
    "got axis spec None but output was batched": "Jacobians in forward mode of what a reference to a constant holds",
}


def _unable(error: Exception) -> bool:
    """Whether an error of JAX's says that it has no way, not that there is none."""
    classes = ("JaxRuntimeError", "NotImplementedError", "AssertionError")
    return type(error).__name__ in classes or any(word in str(error) for word in UNABLE)


def _errors(ours: Outcome, theirs: Outcome, skips: Counter[str]) -> tuple[str, str] | None:
    for word, why in STRICT.items():
        if isinstance(theirs, Exception) and word in str(theirs):
            skips[why] += 1
            return None
    if isinstance(ours, Exception) and isinstance(theirs, Exception):
        if type(theirs).__name__ in [c.__name__ for c in type(ours).__mro__]:
            skips["both raise"] += 1
            return None
        if _unable(theirs):
            skips["JAX cannot"] += 1  # it came no further
            return None
        return "error", f"{type(ours).__name__}: {str(ours)[:200]}, not {type(theirs).__name__}: {str(theirs)[:200]}"
    if isinstance(ours, Exception):
        return "raises " + type(ours).__name__, str(ours)[:400]
    assert isinstance(theirs, Exception)
    if _unable(theirs):
        skips["JAX cannot"] += 1
        return None
    return "does not raise", f"{type(theirs).__name__}: {str(theirs)[:300]}"


def examine(group: Sequence[Program], skips: Counter[str], modes: Sequence[str] = MODES) -> list[Finding]:
    """All findings in programs of one x64 setting, at most one each."""
    # XLA compiles while we do; filters of warnings are of both threads
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("ignore")
        waiting = pool.submit(jitted, jax, group)
        ours = compiled(group) if set(modes) != {"eager"} else {}
        if "eager" in modes:
            ours["eager"] = [eager(styrax, program) for program in group]
        theirs = waiting.result()
    findings = []
    for i, program in enumerate(group):
        for mode in modes:
            mine = ours[mode][i]
            if mode == "two threads" and same_bits(ours["jit"][i], mine):
                continue
            found = difference(program, mine, theirs[i], skips)
            # XLA makes choices of products with masks: JAX's eager calls keep NaN that its jitted ones drop
            if found is not None and (mode == "eager" or found[0] == "values"):
                found = difference(program, mine, eager(jax, program), skips)
                if found is None and mode != "eager":
                    skips["as JAX's eager call, not as its jitted one"] += 1
            if found is None and mode == "two threads":
                found = "threads", "other bits than on one thread"
            if found is not None:
                findings.append(Finding(program, mode, *found))
                break
    return findings


def same_bits(a: Outcome, b: Outcome) -> bool:
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a) is type(b)
    return [bits(x.value) for x in a] == [bits(x.value) for x in b]


def bits(x: np.ndarray) -> bytes:
    """What is compared between threads: which NaN results is not defined."""
    x = comparison.parts(x)
    return np.where(x == x, x, np.zeros_like(x)).tobytes() + (x == x).tobytes()
