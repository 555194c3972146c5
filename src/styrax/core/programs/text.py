"""Jaxprs as text, in JAX's format.

Programs print as ``{ lambda a:f32[3]; b:f32[]. let c:f32[3] = mul a b in (c,) }``. A program inside an
equation is printed in place, or once at the top as ``let name = … in`` if it is used more than once or is
long. Primitives say what is printed of their parameters (`traits.printed`); ``eqn_rules`` has functions that print
their equations differently altogether.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..tracing.source import summarize
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from .layout import Break, Doc, Group, Nest, concat, fill_line, join, line, nil, text
from .rules import texts
from .traits import PLAIN

LONG = 10  # programs of more equations are printed at the top


class Settings:
    """What to print: see ``pp_jaxpr_text``."""

    __slots__ = ("custom_pp_eqn_rules", "name_stack", "print_effects", "print_shapes", "source_info")

    def __init__(
        self,
        source_info: bool = False,
        print_shapes: bool = True,
        custom_pp_eqn_rules: bool = True,
        name_stack: bool = False,
        print_effects: bool = False,
    ):
        self.source_info = source_info
        self.print_shapes = print_shapes
        self.custom_pp_eqn_rules = custom_pp_eqn_rules
        self.name_stack = name_stack
        self.print_effects = print_effects


class Names:
    """The names of variables: a, b, …, z, ba, bb, …, given in the order in which they are first printed."""

    __slots__ = ("_count", "_taken", "_unused", "shared", "variables")

    def __init__(self) -> None:
        self.variables: dict[Var, str] = {}
        self.shared: dict[Jaxpr, str] = {}  # programs that are printed at the top
        self._taken: set[str] = set()
        self._unused: set[Var] = set()
        self._count = 0

    def __getitem__(self, var: Var) -> str:
        name = self.variables.get(var)
        if name is None:
            if type(var) is DropVar:
                return "_"
            name = self._new()
            self.variables[var] = name
        return name

    def _new(self) -> str:
        while True:
            name, n = "", self._count
            self._count += 1
            while True:
                n, digit = divmod(n, 26)
                name = chr(ord("a") + digit) + name
                if n == 0:
                    break
            if name not in self._taken:
                return name

    def reserve(self, words: Iterable[str]) -> None:
        """Keeps variables from getting these names."""
        self._taken.update(words)

    def share(self, jaxpr: Jaxpr, wanted: str) -> None:
        """Gives a program that is printed at the top a name."""
        wanted = wanted.strip("<>") or "jaxpr"
        name, n = wanted, 0
        while name in self._taken:
            n += 1
            name = f"{wanted}{n}"
        self._taken.add(name)
        self.shared[jaxpr] = name

    def note_unused(self, jaxpr: Jaxpr) -> None:
        """Has results of equations that nothing uses printed as ``_``; done for the outermost program."""
        used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
        used.update([v for v in jaxpr.outvars if type(v) is not Literal])
        for eqn in jaxpr.eqns:
            for v in eqn.outvars:
                if v not in used:
                    self._unused.add(v)

    def of_result(self, var: Var) -> str:
        """The name of a variable on the left of an equation."""
        return "_" if var in self._unused else self[var]


EqnRule = Callable[[JaxprEqn, Names, Settings], Doc]
eqn_rules: dict[Any, EqnRule] = texts


def pp_jaxpr_text(
    jaxpr: Jaxpr | ClosedJaxpr,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    width: int = 80,
    use_color: bool | None = None,
) -> str:
    """A program as text.

    Args:
      source_info: adds the user's line to every equation.
      print_shapes: prints the types of variables.
      custom_pp_eqn_rules: leaves out parameters that have their usual value; False shows all of them.
      name_stack: adds the names of the scopes around every equation.
      print_effects: adds the program's effects.
      width: lines are broken at this column.
      use_color: colours keywords and types with ANSI codes.
    """
    settings = Settings(source_info, print_shapes, custom_pp_eqn_rules, name_stack, print_effects)
    program = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    return _toplevel(program, Names(), settings).format(width, bool(use_color))


def pp_eqn_standalone(eqn: JaxprEqn) -> str:
    """One equation as text; variables are named anew."""
    return pp_eqn(eqn, Names(), Settings()).format().rstrip()


def _toplevel(jaxpr: Jaxpr, names: Names, settings: Settings) -> Doc:
    names.note_unused(jaxpr)
    for shared, name in _shared_jaxprs(jaxpr):
        names.share(shared, name)
    parts: list[Doc] = []
    for shared, name in names.shared.items():
        parts += [text(f"let {name} = "), pp_jaxpr(shared, names, settings), text(" in"), Break()]
    return concat([*parts, pp_jaxpr(jaxpr, names, settings)])


def _shared_jaxprs(jaxpr: Jaxpr) -> list[tuple[Jaxpr, str]]:
    """The inner programs that are long or occur more than once, with the names they ask for."""
    counts: dict[Jaxpr, int] = {}
    wanted: dict[Jaxpr, str] = {}
    level: dict[Jaxpr, int] = {jaxpr: 1}  # the programs at one depth, and how often each occurs there
    while level:
        inner: dict[Jaxpr, int] = {}
        for outer, times in level.items():
            for eqn in outer.eqns:
                for value in eqn.params.values():
                    for item in value if type(value) is tuple else (value,):
                        program = _as_jaxpr(item)
                        if program is not None:
                            counts[program] = counts.get(program, 0) + times
                            inner[program] = inner.get(program, 0) + times
                            wanted.setdefault(program, _name_of(eqn))
        level = inner
    return [(j, wanted[j]) for j, n in counts.items() if n > 1 or len(j.eqns) > LONG]


def _as_jaxpr(value: Any) -> Jaxpr | None:
    if isinstance(value, ClosedJaxpr):
        return value.jaxpr
    return value if isinstance(value, Jaxpr) else None


def _name_of(eqn: JaxprEqn) -> str:
    if eqn.primitive.name.startswith("custom_"):
        return "jaxpr"
    return str(eqn.params.get("name", "jaxpr"))


def pp_jaxpr(jaxpr: Jaxpr, names: Names, settings: Settings) -> Doc:
    """A program in place."""
    consts = pp_vars(jaxpr.constvars, names, settings)
    invars = pp_vars(jaxpr.invars, names, settings)
    eqns = [pp_eqn(eqn, names, settings) for eqn in jaxpr.eqns]
    outs = [pp_atom(v, names) for v in jaxpr.outvars]
    if len(outs) == 1:
        results = concat([text("("), outs[0], text(",)")])
    else:
        results = concat([text("("), join(concat([text(","), fill_line]), outs), text(")")])
    parts = [
        text("{ "),
        text("lambda ", "keyword"),
        Nest(4, concat([consts, text("; "), invars])),
        text(". "),
        text("let", "keyword"),
        Nest(4, concat([line, join(Break("; "), eqns)])),
        Nest(2, line),
        text("in ", "keyword"),
        Nest(4, results),
    ]
    if settings.print_effects:
        parts += [text(" : { "), text(", ".join(map(str, jaxpr.effects))), text(" }")]
    return Group(concat([*parts, text(" }")]))


def pp_vars(variables: Sequence[Any], names: Names, settings: Settings, *, results: bool = False) -> Doc:
    """Variables with their types."""
    docs = []
    for v in variables:
        name = text(names.of_result(v) if results else names[v])
        if settings.print_shapes:
            docs.append(concat([name, text(f":{v.aval.str_short(short_dtypes=True)}", "type")]))
        else:
            docs.append(name)
    return join(fill_line, docs)


def pp_atom(atom: Any, names: Names) -> Doc:
    """A variable's name, or a literal with its type: ``2.0:f32[]``."""
    if type(atom) is Literal:
        return text(f"{literal_text(atom)}:{atom.aval.str_short(short_dtypes=True)}")
    return text(names[atom])


def literal_text(literal: Literal) -> str:
    """The value of a literal as a Python scalar prints."""
    value = literal.val
    item = getattr(value, "item", None)
    return str(item()) if item is not None and getattr(value, "shape", ()) == () else str(value)


def pp_eqn(eqn: JaxprEqn, names: Names, settings: Settings) -> Doc:
    """An equation, by the primitive's own rule if it has one."""
    rule = eqn_rules.get(eqn.primitive) if settings.custom_pp_eqn_rules else None
    body = default_eqn(eqn, names, settings) if rule is None else rule(eqn, names, settings)
    if settings.source_info:
        body = concat([text("", note=summarize(eqn.source_info)), body])
    if settings.name_stack:
        stack = getattr(eqn.source_info, "name_stack", None)
        body = concat([text("", note=f"[{stack if stack is not None else ''}]"), body])
    return body


def default_eqn(
    eqn: JaxprEqn,
    names: Names,
    settings: Settings,
    params: Iterable[tuple[str, Any]] | None = None,
    name: str | None = None,
) -> Doc:
    """``results = primitive[params] arguments``; ``params`` replaces the equation's own, in order."""
    traits = eqn.primitive.traits if settings.custom_pp_eqn_rules else PLAIN
    if params is None and traits.printed is not None:
        params = traits.printed(eqn.params).items()
    elif params is None:
        unprinted = traits.unprinted
        params = sorted((k, v) for k, v in eqn.params.items() if not (k in unprinted and v is None))
    pairs = list(params)
    parts = []
    if eqn.outvars:
        parts += [Nest(2, pp_vars(eqn.outvars, names, settings, results=True)), text(" = ")]
    parts += [text(eqn.primitive.name if name is None else name), pp_params(pairs, names, settings)]
    parts += [text(" "), Nest(2, join(fill_line, [pp_atom(v, names) for v in eqn.invars]))]
    return concat(parts)


def pp_params(pairs: Sequence[tuple[str, Any]], names: Names, settings: Settings) -> Doc:
    """``[a=1 b=2]``, one parameter to a line where it does not fit."""
    if not pairs:
        return nil
    items = [concat([text(f"{k}="), pp_value(v, names, settings)]) for k, v in pairs]
    return Group(concat([text("["), Nest(2, concat([Break(""), join(line, items)])), Break(""), text("]")]))


def pp_value(value: Any, names: Names, settings: Settings) -> Doc:
    """The value of a parameter; programs and tuples of programs are laid out."""
    if isinstance(value, Doc):
        return value
    program = _as_jaxpr(value)
    if program is not None:
        return _pp_inner(program, names, settings)
    programs = [_as_jaxpr(v) for v in value] if type(value) is tuple else []
    if programs and None not in programs:
        items = join(line, [_pp_inner(p, names, settings) for p in programs])  # type: ignore[arg-type]
        return Group(concat([text("("), Nest(2, concat([Break(""), items])), Break(""), text(")")]))
    if type(value) is frozenset:
        return text(f"frozenset({{{', '.join(sorted(map(repr, value)))}}})")
    return text(_ADDRESS.sub("0xXXXXXXXXXXXX", str(value)))


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+(?=>)")


def _pp_inner(jaxpr: Jaxpr, names: Names, settings: Settings) -> Doc:
    shared = names.shared.get(jaxpr)
    return pp_jaxpr(jaxpr, names, settings) if shared is None else text(shared)


# What the primitives' own texts are made of


def is_nowhere(sharding: Any) -> bool:
    """Whether a sharding says no more than the result's type: none, or one over a mesh without axes or with explicit
    ones."""
    mesh = getattr(sharding, "mesh", None)
    return sharding is None or mesh is not None and (mesh.empty or bool(mesh.explicit_axes))


def name_alike(inner: Jaxpr, eqn: JaxprEqn, names: Names) -> None:
    """What goes in and comes out of a call has one name inside and outside."""
    if inner in names.shared:
        return
    seen = set()
    for own, outer in zip(inner.invars, eqn.invars):
        if type(outer) is not Literal and outer not in seen:
            seen.add(outer)
            names.variables.setdefault(own, names[outer])
    for own, outer in zip(inner.outvars, eqn.outvars):
        if type(own) is not Literal and own not in names.variables:
            names.variables[own] = names.of_result(outer)


def callable_name(fun: Any) -> str:
    """The name of the function that the user wrote, seen through wrappers."""
    for _ in range(10):
        inner = getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)
        if inner is None:
            break
        fun = inner
    return getattr(fun, "__name__", None) or type(fun).__name__


class _Word(str):
    """A name that stands in an index."""

    __slots__ = ()


def pp_indexed(ref: Any, leaves: Sequence[Any], tree: Any, names: Names) -> Doc:
    """A reference with the view of it that an access has."""
    words = [_Word(literal_text(v) if type(v) is Literal else names[v]) for v in leaves]
    view = "".join(map(str, tree.unflatten(words))) or "[...]"
    return concat([text(names[ref]), text(view)])
