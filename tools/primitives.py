"""The table of docs/primitives.md: which rules and traits each primitive has.

    python -m tools.primitives > docs/primitives.md
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import PLAIN, Control
from styrax.core.types.physical import physicals

PACKAGES = ("core", "lax", "random", "transforms")  # where primitives are made

RULE, NONE, UNDEFINED = "rule", "–", "undefined"

# Gaps of primitives that JAX does not have, with the mathematical reason.
NOT_DEFINED = {
    ("transpose", "log2"): "is not linear",
    ("transpose", "one_minus_square"): "is not linear",
    ("transpose", "polynomial"): "is not linear",
    ("transpose", "random_gamma_grad"): "is not linear",
}

HEAD = """# Rules and primitives

Made by `make docs` from the rule tables (`core.programs.rules`) and the traits (`core.programs.traits`); a test
compares this file with them, and asks JAX about each gap.

- **rule**: the primitive has a rule of its own in this table.
- What other rules give: **jvp**, it is linearised through its JVP; **whole**, an equation is computed or recorded, kept
  or dropped, as a whole; **program**, the program inside is what counts; **control**, the compiler knows the control
  flow by its trait; **keys**, the equation is rewritten on the plain arrays behind keys; **discharged**, references
  have become values; **no operands**, nothing is mapped; **no results**, nothing is handed back; **chosen**,
  the program for a platform has its branch in place of the equation.
- **at once**: bound, it runs what it calls, and no program has an equation of it.
- **–**: JAX has no such rule either. **undefined**: mathematics has none.

"""


def primitives(packages: Sequence[str] = PACKAGES) -> list[Primitive]:
    """All primitives that the modules of these packages hold, by name."""
    found = {}
    for package in packages:
        root = importlib.import_module(f"styrax.{package}")
        for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive):
                    found[id(value)] = value
    return sorted(found.values(), key=lambda p: p.name)


def runs_at_once(p: Primitive) -> bool:
    return not p.has_abstract_eval


def _transpose(p: Primitive) -> str:
    return RULE if p in rules.transposes else "no results" if p.name == "dce_sink" else NONE


def _abstract(p: Primitive) -> str:
    return NONE if runs_at_once(p) else RULE


def _linearize(p: Primitive) -> str:
    return RULE if p in rules.linearizations else "jvp" if p in rules.jvps else NONE


def _batching(p: Primitive) -> str:
    if p in rules.batchers or p in rules.fancy_batchers:
        return RULE
    return "no operands" if p.name in ("empty", "platform_index") else NONE


def _partial_evaluation(p: Primitive) -> str:
    return RULE if p in rules.partial_evals or p in rules.partial_eval_jaxpr_customs else "whole"


def _dce(p: Primitive) -> str:
    return RULE if p in rules.dces else "whole"


def _lowering(table: str) -> Callable[[Primitive], str]:
    def cell(p: Primitive) -> str:
        if p in rules.tables[table]:
            return RULE
        if p.traits.program is not None or table == "loops" and p.traits.implementation is not None:
            return "program"
        if table == "loops" and p.traits.control is not None:
            return "control"
        if p in physicals:
            return "keys"
        if p.name == "platform_index":
            return "chosen"
        return "discharged" if p in rules.discharges else NONE

    return cell


COLUMNS: dict[str, Callable[[Primitive], str]] = {
    "abstract evaluation": _abstract,
    "jvp": lambda p: RULE if p in rules.jvps else NONE,
    "linearize": _linearize,
    "transpose": _transpose,
    "batching": _batching,
    "partial evaluation": _partial_evaluation,
    "dce": _dce,
    "loops": _lowering("loops"),
    "StableHLO": _lowering("stablehlo"),
}


def cell(column: str, p: Primitive) -> str:
    """What stands in a column for a primitive."""
    if runs_at_once(p):
        return "at once"
    text = COLUMNS[column](p)
    return UNDEFINED if text == NONE and (column, p.name) in NOT_DEFINED else text


def traits(p: Primitive) -> str:
    """The traits that a primitive declares."""
    words = []
    for name in PLAIN.__slots__:
        value = getattr(p.traits, name)
        if value == getattr(PLAIN, name):
            continue
        if isinstance(value, frozenset):
            words.append(f"{name}: {' '.join(sorted(value))}")
        else:
            words.append(f"{name}: {value.value}" if isinstance(value, Control) else name)
    return ", ".join(words)


def table() -> str:
    """The document."""
    heads = ["primitive", *COLUMNS, "traits"]
    lines = [heads, ["---"] * len(heads)]
    lines += [[f"`{p.name}`", *(cell(c, p) for c in COLUMNS), traits(p)] for p in primitives()]
    return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table(), end="")
