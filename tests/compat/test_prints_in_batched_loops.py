"""What ordered prints in loops under `vmap` show, as JAX's do, and what acts on the world there is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.experimental
import numpy as np
import pytest

import styrax
import styrax.experimental


def shown(m: Any, c: Any) -> Any:
    m.debug.print("{} {}", *c, ordered=True)
    return c[0] + 1, c[1] * 2


LOOPS: dict[str, Any] = {
    "predicate batched": lambda m: lambda n: m.lax.while_loop(lambda c: c[0] < n, lambda c: shown(m, c), (0, 1.0)),
    "carry batched": lambda m: lambda n: m.lax.while_loop(lambda c: c[0] < 2, lambda c: shown(m, c), (0, n)),
    "bound batched": lambda m: lambda n: m.lax.fori_loop(0, n, lambda _, c: shown(m, c), (0, 1.0)),
    "scan": lambda m: lambda n: m.lax.fori_loop(0, 2, lambda _, c: shown(m, c), (0, n)),
    "nothing batched is shown": lambda m: lambda n: m.lax.while_loop(
        lambda i: i < n, lambda i: (m.debug.print("turn", ordered=True), i + 1)[1], 0),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", LOOPS)
def test_prints(name: str, compiled: bool, capsys: pytest.CaptureFixture) -> None:
    seen = []
    for m in (styrax, jax):
        loop = m.vmap(LOOPS[name](m))
        out = m.tree.leaves((m.jit(loop) if compiled else loop)(np.array([1, 3], np.int32)))
        m.effects_barrier()
        seen.append((capsys.readouterr().out, [np.asarray(v).tolist() for v in out]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("ordered", [False, True])
def test_effects_on_the_world_are_refused(ordered: bool) -> None:
    """JAX's error is no more than an Exception; ours is one of those, too."""
    told = []
    for m in (styrax, jax):
        def turn(i: Any, m: Any = m) -> Any:
            m.experimental.io_callback(lambda: None, None, ordered=ordered)
            return i + 1

        def loop(n: Any, m: Any = m, turn: Any = turn) -> Any:
            return m.lax.while_loop(lambda i: i < n, turn, 0)

        with pytest.raises(Exception, match="IO effects not supported") as error:
            m.vmap(loop)(np.arange(2))
        told.append(str(error.value))
    assert told[0] == told[1]
