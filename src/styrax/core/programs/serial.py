"""Jaxprs as text that parses back, for tests and bug reports.

The text looks like a printed jaxpr, but keeps everything: all parameters, weak types (``f32[]~``), the
sharing of inner programs (a table ``@name = …`` before the program) and constants::

    @foo = { lambda ; a:f32[3]. let
        b:f32[3] = sin[accuracy=None] a;
      in (b,) }
    closed { lambda c:f32[3]; d:f32[3]. let
        e:f32[3] = jit[jaxpr=closed(@foo) name='foo' …] d;
      in (e, f32(2.0):f32[]) } with (array("f32[3]", "AACAPwAAgD8AAIA/"),)

Functions and classes stand by reference, ``ref("module:name")``; local functions by a name under which
they are found again in the same process, ``local("name#1")``, or in the ``references`` given to ``parse``.
``#`` begins a comment. Source lines are not kept.
"""

from __future__ import annotations

import base64
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import hooks
from ..arrays import backends
from ..trees.tree import tree_structure
from ..types import dtypes
from ..types.avals import AbstractRef, AbstractValue, ShapedArray, abstract_token
from ..types.promotion_lattice import short_names
from . import rules
from .jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from .primitive import Primitive
from .serial_writer import Writer, extended, kept, local_objects, primitives

_dtype_of_short = {name: d for d, name in short_names.items()}
# The modules with primitives that are loaded when programs first use them, besides those of `lax`.
_HOMES = (
    "transforms.checkpoint", "transforms.debugging", "transforms.callbacks", "transforms.custom_batching",
    "lax.linalg.cholesky_factors", "lax.linalg.eigen", "lax.linalg.factor_updates", "lax.linalg.lu_factors",
    "lax.linalg.qr_factors", "lax.linalg.singular_values", "lax.linalg.triangular", "lax.linalg.tridiagonal_systems",
    "lax.random_bits.counters", "transforms.linear_call", "random.gammas", "transforms.checkify",
    "lax.shaping.annotations",
    "transforms.remat_rules", "lax.collectives.device_values", "lax.collectives.own_copies",
    "transforms.sharding_inspection",
)


def to_text(program: Jaxpr | ClosedJaxpr) -> str:
    """The program as text.

    Raises:
      TypeError: a parameter or constant that has no text form.
    """
    return Writer().program(program)


def parse(text: str, references: Mapping[str, Any] | None = None, dim: Callable[[str], Any] = int) -> Any:
    """The program that ``to_text`` wrote: a ``ClosedJaxpr`` if it begins with ``closed``, else a ``Jaxpr``.

    Args:
      references: what ``local("name")`` stands for here. dim: the symbolic size of a text.

    Raises:
      ValueError: the text is not well formed; the message shows the line.
    """
    return _Reader(text, references or {}, dim).program()


def known_primitive(name: str) -> Primitive:
    """The primitive of a name, from the rule tables; modules that nobody has used yet are loaded for it.

    Raises:
      KeyError: there is none.
    """
    if name not in primitives:
        _collect()
        for home in (*hooks.homes_of_primitives, *_HOMES):
            if name in primitives:
                break
            if f"styrax.{home}" not in sys.modules:
                importlib.import_module(f"styrax.{home}")
                _collect()
    return primitives[name]


def _collect() -> None:
    for table in rules.tables.values():
        for primitive in table:
            primitives.setdefault(primitive.name, primitive)




_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<bytes>b?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
    |(?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf\b|nan\b))
    |(?P<word>@?[A-Za-z_][\w]*(?:<\w*>)?(?:-\w+)*|\.\.\.)
    |(?P<mark>[{}()\[\];:,.=!~])""",
    re.VERBOSE,
)


class _Reader:
    def __init__(self, text: str, references: Mapping[str, Any], dim: Callable[[str], Any]):
        self.text = text
        self.references = references
        self.dim = dim
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.at = len(self.tokens)
                raise self.error(f"unexpected {text[at]!r}", at)
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match[0], at))
            at = match.end()
        self.tokens.append(("end", "", len(text)))
        self.at = 0
        self.table: dict[str, Jaxpr] = {}

    def error(self, message: str, position: int | None = None) -> ValueError:
        at = self.tokens[self.at][2] if position is None else position
        number = self.text.count("\n", 0, at) + 1
        line = self.text.split("\n")[number - 1]
        return ValueError(f"{message} in line {number} of the program:\n  {line.strip()}")

    @property
    def next(self) -> str:
        return self.tokens[self.at][1]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, word: str) -> bool:
        if self.next == word and self.tokens[self.at][0] != "bytes":
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"expected {word!r}, found {self.next!r}")

    def program(self) -> Jaxpr | ClosedJaxpr:
        while self.next.startswith("@"):
            name = self.take()
            self.expect("=")
            self.table[name] = self.jaxpr()
        if not self.accept("closed"):
            jaxpr = self.jaxpr()
            self.end()
            return jaxpr
        jaxpr = self.jaxpr()
        consts: list[Any] = []
        if self.accept("with"):
            self.expect("(")
            consts = self.values(")")
        self.end()
        return ClosedJaxpr(jaxpr, consts)

    def end(self) -> None:
        if self.tokens[self.at][0] != "end":
            raise self.error(f"unexpected {self.next!r}")

    def jaxpr(self) -> Jaxpr:
        scope: dict[str, Var] = {}
        self.expect("{")
        self.expect("lambda")
        constvars = self.vars(scope, ";")
        invars = self.vars(scope, ".")
        self.expect("let")
        eqns = []
        while not self.accept("in"):
            eqns.append(self.eqn(scope))
            self.accept(";")
        self.expect("(")
        outs = []
        while not self.accept(")"):
            outs.append(self.atom(scope))
            if self.next != ")":
                self.expect(",")
        effects = self.value() if self.accept("!") else None
        info = DebugInfo(*self.value()) if self.accept("info") else None
        self.expect("}")
        return Jaxpr(constvars, invars, outs, eqns, effects, info)

    def vars(self, scope: dict[str, Var], end: str) -> list[Var]:
        found = []
        while not self.accept(end):
            name = self.take()
            self.expect(":")
            found.append(self.bind(scope, name, self.aval()))
        return found

    def bind(self, scope: dict[str, Var], name: str, aval: AbstractValue) -> Var:
        if name == "_":
            return DropVar(aval)
        if name in scope:
            raise self.error(f"{name} is bound twice")
        scope[name] = Var(aval)
        return scope[name]

    def eqn(self, scope: dict[str, Var]) -> JaxprEqn:
        left = []
        while not self.accept("="):
            name = self.take()
            self.expect(":")
            left.append((name, self.aval()))
        name = self.take()
        try:
            primitive = known_primitive(name)
        except KeyError:
            self.at -= 1
            raise self.error(f"no primitive is called {name!r}") from None
        params = self.params() if self.accept("[") else {}
        args = []
        while self.next not in (";", "!", "in"):
            args.append(self.atom(scope))
        effects = self.value() if self.accept("!") else frozenset()
        outvars = [self.bind(scope, n, a) for n, a in left]
        return JaxprEqn(args, outvars, primitive, params, effects)

    def params(self) -> dict[str, Any]:
        params = {}
        while not self.accept("]"):
            key = self.take()
            self.expect("=")
            params[key] = self.value()
        return params

    def atom(self, scope: dict[str, Var]) -> Any:
        kind, word, _ = self.tokens[self.at]
        if kind == "word" and word in scope:
            self.at += 1
            return scope[word]
        value = self.value()
        self.expect(":")
        return Literal(value, self.aval())

    def aval(self) -> AbstractValue:
        name = self.take()
        if name == "Tok":
            return abstract_token
        if name == "Ref":
            self.expect("{")
            inner = self.aval()
            self.expect("}")
            return AbstractRef(inner, **self.extras())
        dtype = _dtype_of_short.get(name)
        if dtype is None:
            dtype = extended.get(name) or _key_dtype(name)
        if dtype is None:
            self.at -= 1
            raise self.error(f"unknown dtype {name!r}")
        self.expect("[")
        shape = []
        while not self.accept("]"):
            kind = self.tokens[self.at][0]
            shape.append(self.dim(self.value()) if kind == "bytes" else int(self.take()))
            self.accept(",")
        weak = self.accept("~")
        return ShapedArray(shape, dtype, weak, **self.extras())

    def extras(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.accept("{"):
            while not self.accept("}"):
                key = self.take()
                self.expect("=")
                found[key] = self.value()
        return found

    def values(self, end: str) -> list[Any]:
        found = []
        while not self.accept(end):
            found.append(self.value())
            if self.next != end:
                self.expect(",")
        return found

    def value(self) -> Any:
        kind, word, _ = self.tokens[self.at]
        self.at += 1
        if kind == "bytes":
            import ast

            return ast.literal_eval(word)
        if kind == "number":
            if word.lstrip("-").isdigit():
                return int(word)
            return float(word)
        if word == "(":
            return tuple(self.values(")"))
        if word == "[":
            return self.values("]")
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if word.startswith("@"):
            if word not in self.table:
                raise self.error(f"no program {word}")
            return self.table[word]
        if word == "aval":
            self.expect("(")
            aval = self.aval()
            self.expect(")")
            return aval
        if kind != "word" or self.next != "(":
            self.at -= 1
            raise self.error(f"expected a value, found {word!r}")
        self.expect("(")
        args = self.values(")")
        if word in _dtype_of_short:
            return _dtype_of_short[word].type(*args)
        if word == "dim":
            return self.dim(args[0])
        if word == "local":
            found = self.references.get(args[0])
            if found is None:
                found = local_objects.get(args[0], kept.get(args[0]))
            if found is None:
                raise self.error(f"{args[0]!r} is not known here: give it to parse as a reference")
            return found
        maker = _MAKERS.get(word)
        if maker is None:
            raise self.error(f"unknown form {word!r}")
        return maker(*args)


def _array(text: str, data: str) -> tuple[np.ndarray, bool]:
    name, _, rest = text.partition("[")
    dims, _, weak = rest.partition("]")
    shape = tuple(int(d) for d in dims.split(",") if d)
    array = np.frombuffer(base64.b64decode(data), _dtype_of_short[name]).reshape(shape)
    return array, weak == "~"


def _key_dtype(name: str) -> Any:
    """The dtype of random keys that prints as `name`; None if there is none."""
    return next((d for d in hooks.key_dtypes() if d.name == name), None) if name.startswith("key<") else None


def _device_array(text: str, data: str) -> Any:
    array, weak = _array(text, data)
    return backends.get().put(array, ShapedArray(array.shape, array.dtype, weak), None)


def _reference(path: str) -> Any:
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part) if part else found
    return found


def _make(function: Any, args: tuple, state: Any = None, items: Any = None, pairs: Any = None) -> Any:
    made = function(*args)
    if state is not None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            fields, slots = state if isinstance(state, tuple) else (state, None)
            for key, value in [*(fields or {}).items(), *(slots or {}).items()]:
                object.__setattr__(made, key, value)
    for item in items or ():
        made.append(item)
    for key, value in pairs or ():
        made[key] = value
    return made


def _object(cls: type, args: tuple, *rest: Any) -> Any:
    return _make(cls.__new__, (cls, *args), *rest)


_CONSTANTS = {"None": None, "True": True, "False": False, "...": ..., "Ellipsis": ...}
_MAKERS: dict[str, Callable[..., Any]] = {
    "array": _device_array,
    "closed": lambda jaxpr, *consts: ClosedJaxpr(jaxpr, consts),
    "complex": complex,
    "dict": lambda *pairs: dict(pairs),
    "dtype": lambda name: dtypes.float0 if name == "float0" else dtypes.as_dtype(name),
    "enum": lambda cls, name: cls[name],
    "frozenset": lambda *items: frozenset(items),
    "make": _make,
    "ndarray": lambda text, data: _array(text, data)[0].copy(),
    "object": _object,
    "prim": known_primitive,
    "ref": _reference,
    "set": lambda *items: set(items),
    "slice": slice,
    "tree": tree_structure,
}
