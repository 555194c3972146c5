"""Programs as text in, loop IR out: what fused, what was stored, what was copied.

A file in `ir/` holds a comment, a jaxpr in its lossless text form, a line `---`, and the expectations:
`CHECK: text` (in this order), `NOT: text` (nowhere), `COUNT n: text` (exactly n lines), `WORKSPACE bytes`, and
`PLAN NO COPY IN LOOPS` (the memory plan made the two sides of every copy inside a loop one buffer).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import styrax.numpy  # noqa: F401  (its import makes all primitives known)
from styrax.compile.ir.loopir import Copy, Loop, While, statements
from styrax.compile.pipeline import compile_to_loops
from styrax.core.serial import parse

FILES = sorted((Path(__file__).parent / "ir").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_loops(path):
    text, expectations = path.read_text().split("\n---\n")
    closed = parse("\n".join(line for line in text.split("\n") if not line.startswith("#")))
    program = compile_to_loops(closed, path.stem, vector_bytes=64)
    lines = str(program).split("\n")
    at = 0
    for wanted in expectations.strip().split("\n"):
        kind, _, what = wanted.partition(": ")
        if kind == "CHECK":
            found = [k for k in range(at, len(lines)) if what in lines[k]]
            assert found, f"{what!r} does not follow line {at} of\n{program}"
            at = found[0]
        elif kind == "NOT":
            assert not any(what in line for line in lines), f"{what!r} stands in\n{program}"
        elif kind.startswith("COUNT"):
            count = sum(what in line for line in lines)
            assert count == int(kind.split()[1]), f"{count} lines have {what!r} in\n{program}"
        elif kind.startswith("WORKSPACE"):
            assert program.workspace == int(kind.split()[1])
        else:
            assert wanted == "PLAN NO COPY IN LOOPS"
            loops = [s for s in statements(program.statements) if isinstance(s, (Loop, While))]
            left = [c for s in loops for c in statements([s]) if isinstance(c, Copy)
                    and c.target.root is not c.source.root]
            assert not left, f"{left} in\n{program}"
