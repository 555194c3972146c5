"""Generated code for structures of pytrees that come again and again: building, and taking apart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .treedef import PyTreeDef

_MISSING: Any = object()


def compile_builder(treedef: PyTreeDef) -> Callable[[list], Any]:
    """A function from the list of leaves to the tree of this structure."""
    constants: dict[str, Any] = {}
    used = 0

    def constant(value: Any) -> str:
        name = f"c{len(constants)}"
        constants[name] = value
        return name

    def expression(d: PyTreeDef) -> str:
        nonlocal used
        if d._node is None:
            used += 1
            return f"l[{used - 1}]"
        parts = [expression(c) for c in d._children]
        if d.type is NoneType:
            return "None"
        if d.type is list:
            return f"[{','.join(parts)}]"
        if d.type is dict:
            return "{" + ",".join(f"{constant(k)}:{p}" for k, p in zip(d._data, parts)) + "}"
        row = f"({','.join(parts)}{',' if parts else ''})"
        if d.type is tuple:
            return row
        if d._node.kind == "namedtuple":
            return f"{constant(d.type)}{row if parts else '()'}"
        return f"{constant(d._node.build)}({constant(d._data)},{row})"

    return eval(compile(f"lambda l: {expression(treedef)}", "<styrax pytree>", "eval"), constants)


def compile_matcher(treedef: PyTreeDef, only_leaves: Callable[[Any, dict], bool],
                    same_data: Callable[[Any, Any], bool]) -> Callable[[Any, dict], list[Any] | None]:
    """A function that takes a tree of this very structure apart, and gives None for any other.

    Args:
      only_leaves: whether all of some values are leaves in a registry's table.
      same_data: whether two static data are the same.
    """
    constants: dict[str, Any] = {"_MISSING": _MISSING, "_only_leaves": only_leaves}
    lines = ["def match(x, table):"]
    leaves: list[str] = []
    names = count()

    def constant(value: Any) -> str:
        name = f"c{len(constants)}"
        constants[name] = value
        return name

    def visit(d: PyTreeDef, x: str) -> None:
        node, children = d._node, d._children
        if node is None:
            leaves.append(x)
            return
        if node.kind == "None":
            lines.append(f" if {x} is not None: return None")
            return
        cls = constant(d.type)
        if node.kind in ("tuple", "list", "dict"):
            lines.append(f" if type({x}) is not {cls} or len({x}) != {len(children)}: return None")
            values = x
        else:
            parts, data = f"p{next(names)}", f"d{next(names)}"
            lines.append(f" if type({x}) is not {cls}: return None")
            lines.append(f" {parts}, {data} = {constant(node.flatten)}({x})")
            known = constant(d._data)
            lines.append(f" if {data} is not {known} and not same({data}, {known}): return None")
            lines.append(f" {parts} = tuple({parts})")
            lines.append(f" if len({parts}) != {len(children)}: return None")
            values = parts
        inner = [f"x{next(names)}" for _ in children]
        if node.kind == "dict" and children:
            keys = [constant(k) for k in d._data]
            row = ", ".join(f"{values}[{k}]" for k in keys)
            lines.append(" try: " + ", ".join(inner) + f", = {row},")
            lines.append(" except KeyError: return None")
        elif children:
            lines.append(f" {', '.join(inner)}, = {values}")
        for child, name in zip(children, inner):
            visit(child, name)

    visit(treedef, "x")
    lines.append(f" found = [{', '.join(leaves)}]")
    if len(leaves) < 4:
        tests = [f"table.get(type({x}), _MISSING) is not None" for x in leaves]
        lines.append(f" if {' or '.join(tests)}:" if tests else " if False:")
        lines.append("  if not _only_leaves(found, table): return None")
    else:
        lines.append(" if not _only_leaves(found, table): return None")
    lines.append(" return found")
    constants["same"] = same_data
    exec(compile("\n".join(lines), "<styrax pytree>", "exec"), constants)
    return constants["match"]
