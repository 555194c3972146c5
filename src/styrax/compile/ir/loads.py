"""What expressions read: the loads among their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .expr import LOADS, Expr


def loads_of(roots: Sequence[Expr]) -> Iterator[Expr]:
    """Those of the nodes that read a buffer, in the same order."""
    seen: set[Expr] = set()
    stack: list[Expr | None] = [*reversed(roots)]
    while stack:
        e = stack.pop()
        if e is None:
            yield stack.pop()  # type: ignore[misc]
        elif e.reads and e not in seen:
            seen.add(e)
            if e.op in LOADS:
                stack.append(e)
                stack.append(None)
            stack.extend(e.args)


def copied(value: Expr) -> Expr | None:
    """The load of an element, real or complex, that is left as it is: of a complex one that of its real part."""
    if value.op == "complex":
        re, im = value.args
        whole = re.op == im.op == "load" and re.args == im.args and re.attr == (im.attr[0], 0) and im.attr[1] == 1
        return re if whole else None
    return value if value.op == "load" and value.attr[1] is None else None


def known_loads(root: Expr) -> tuple[Expr, ...]:
    """`loads_of` an expression, remembered: what is made of another one does not walk through that again."""
    memo = root.arena.loads
    found = memo.get(root)
    if found is None:
        out: dict[Expr, None] = {}
        seen: set[Expr] = set()
        stack: list[Expr | None] = [root]
        while stack:
            e = stack.pop()
            if e is None:
                out[stack.pop()] = None  # type: ignore[index]
            elif e.reads and e not in seen:
                seen.add(e)
                below = memo.get(e)
                if below is not None:
                    out.update(dict.fromkeys(below))
                    continue
                if e.op in LOADS:
                    stack.append(e)
                    stack.append(None)
                stack.extend(e.args)
        found = memo[root] = tuple(out)
    return found


__all__ = ["copied", "known_loads", "loads_of"]
