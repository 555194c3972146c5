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
import copyreg
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import count
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .. import hooks
from ..arrays import backends
from ..arrays.array import Array
from ..trees.tree import PyTreeDef, tree_structure
from ..types import dtypes
from ..types.avals import AbstractRef, AbstractToken, AbstractValue, ShapedArray, abstract_token
from ..types.promotion_lattice import short_names
from . import rules
from .jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from .primitive import Primitive
from .text import Names

_dtype_of_short = {name: d for d, name in short_names.items()}
_extended: dict[str, Any] = {}  # extended dtypes seen so far, by name
_locals: WeakValueDictionary[str, Any] = WeakValueDictionary()  # what has no name to import it by
_kept: dict[str, Any] = {}
_numbers = count()
_primitives: dict[str, Primitive] = {}
# The modules with primitives that are loaded when programs first use them, besides those of `lax`.
_HOMES = (
    "transforms.checkpoint", "transforms.debugging", "transforms.callbacks", "lax.linalg", "transforms.custom_batching",
    "transforms.linear_call", "random.gammas", "transforms.checkify", "lax.shaping.annotations",
    "transforms.remat_rules", "lax.collectives.device_values", "lax.collectives.own_copies",
    "transforms.sharding_inspection",
)


def to_text(program: Jaxpr | ClosedJaxpr) -> str:
    """The program as text.

    Raises:
      TypeError: a parameter or constant that has no text form.
    """
    return _Writer().program(program)


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
    if name not in _primitives:
        _collect()
        for home in (*hooks.homes_of_primitives, *_HOMES):
            if name in _primitives:
                break
            if f"styrax.{home}" not in sys.modules:
                importlib.import_module(f"styrax.{home}")
                _collect()
    return _primitives[name]


def _collect() -> None:
    for table in rules.tables.values():
        for primitive in table:
            _primitives.setdefault(primitive.name, primitive)


_RESERVED = ("lambda", "let", "in", "with", "closed", "info", "aval", "inf", "nan")


class _Writer:
    def __init__(self) -> None:
        self.names = Names()
        self.names.reserve(_RESERVED)
        self.table: dict[Jaxpr, str] = {}
        self.texts: list[str] = []
        self.taken: set[str] = set()

    def program(self, program: Jaxpr | ClosedJaxpr) -> str:
        if isinstance(program, ClosedJaxpr):
            main = f"closed {self.jaxpr(program.jaxpr)}"
            if program.consts:
                main += f" with ({''.join(self.value(c) + ',' for c in program.consts)})"
        else:
            main = self.jaxpr(program)
        return "\n".join([*self.texts, main]) + "\n"

    def jaxpr(self, jaxpr: Jaxpr) -> str:
        header = f"{{ lambda {self.vars(jaxpr.constvars)}; {self.vars(jaxpr.invars)}. let\n"
        eqns = "".join(f"    {self.eqn(e)};\n" for e in jaxpr.eqns)
        outs = "".join(f"{self.atom(v)}, " for v in jaxpr.outvars).rstrip(" ")
        tail = ""
        if jaxpr.effects:
            tail += f" !{self.value(frozenset(jaxpr.effects))}"
        info = jaxpr.debug_info
        if info.traced_for or info.func_src_info != "<unknown>":
            fields = (info.traced_for, info.func_src_info, info.arg_names, info.result_paths)
            tail += f" info{self.value(tuple(fields))}"
        return f"{header}{eqns}  in ({outs}){tail} }}"

    def vars(self, variables: Iterable[Var]) -> str:
        return " ".join(f"{self.name(v)}:{self.aval(v.aval)}" for v in variables)

    def name(self, v: Var) -> str:
        return "_" if type(v) is DropVar else self.names[v]

    def atom(self, v: Any) -> str:
        if isinstance(v, Literal):
            return f"{self.value(v.val)}:{self.aval(v.aval)}"
        return self.name(v)

    def eqn(self, eqn: JaxprEqn) -> str:
        _primitives.setdefault(eqn.primitive.name, eqn.primitive)
        left = self.vars(eqn.outvars)
        params = " ".join(f"{k}={self.value(v)}" for k, v in eqn.params.items())
        args = "".join(f" {self.atom(v)}" for v in eqn.invars)
        effects = f" !{self.value(frozenset(eqn.effects))}" if eqn.effects else ""
        name = eqn.primitive.name
        return f"{left}{' ' if left else ''}= {name}{f'[{params}]' if params else ''}{args}{effects}"

    def aval(self, aval: AbstractValue) -> str:
        if isinstance(aval, AbstractRef):
            return f"Ref{{{self.aval(aval.inner_aval)}}}{self.extras(aval, ('memory_space', 'kind'))}"
        if isinstance(aval, AbstractToken):
            return "Tok"
        if type(aval) is not ShapedArray:
            raise TypeError(f"a value of type {aval!r} has no text form")
        name = dtypes.printed_dtype_name(aval.dtype)
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            _extended[name] = aval.dtype
        shape = ",".join(str(d) if type(d) is int else repr(str(d)) for d in aval.shape)
        text = f"{name}[{shape}]{'~' if aval.weak_type else ''}"
        return text + self.extras(aval, ("sharding", "vma", "memory_space"))

    def extras(self, aval: Any, fields: tuple[str, ...]) -> str:
        parts = [f"{k}={self.value(getattr(aval, k))}" for k in fields if getattr(aval, k)]
        return f"{{{' '.join(parts)}}}" if parts else ""

    def inner(self, jaxpr: Jaxpr) -> str:
        name = self.table.get(jaxpr)
        if name is None:
            wanted = re.sub(r"\W", "", jaxpr.debug_info.func_name) or "jaxpr"
            name, n = wanted, 0
            while name in self.taken:
                n += 1
                name = f"{wanted}{n}"
            self.taken.add(name)
            text = self.jaxpr(jaxpr)  # writes those inside it to the table first
            self.table[jaxpr] = name
            self.texts.append(f"@{name} = {text}")
        return f"@{name}"

    def value(self, x: Any) -> str:
        cls = type(x)
        if x is None or x is Ellipsis or cls in (bool, int, float, str, bytes):
            return repr(x)
        if cls is complex:
            return f"complex({x.real!r}, {x.imag!r})"
        if hasattr(x, "_is_symbolic_dim"):
            return f"dim({str(x)!r})"
        if cls is tuple:
            return f"({', '.join(map(self.value, x))}{',' if len(x) == 1 else ''})"
        if cls is list:
            return f"[{', '.join(map(self.value, x))}]"
        if cls is dict:
            return f"dict({', '.join(map(self.value, x.items()))})"
        if cls in (set, frozenset):
            return f"{cls.__name__}({', '.join(sorted(map(self.value, x)))})"
        if cls is slice:
            return f"slice({self.value(x.start)}, {self.value(x.stop)}, {self.value(x.step)})"
        if isinstance(x, Jaxpr):
            return self.inner(x)
        if isinstance(x, ClosedJaxpr):
            return f"closed({', '.join([self.inner(x.jaxpr), *map(self.value, x.consts)])})"
        if isinstance(x, np.dtype):
            return f"dtype({dtypes.dtype_name(x)!r})" if x in short_names else self.made(x)
        if isinstance(x, np.generic) and x.dtype in short_names:
            return f"{short_names[x.dtype]}({self.value(x.item())})"
        if cls is np.ndarray:
            return self.array("ndarray", x, "")
        if isinstance(x, Array) and type(x) is Array:
            return self.array("array", np.asarray(x), "~" if x.weak_type else "")
        if isinstance(x, (ShapedArray, AbstractRef, AbstractToken)):
            return f"aval({self.aval(x)})"
        if cls is PyTreeDef and _is_plain(x):
            return f"tree({self.value(x.unflatten([...] * x.num_leaves))})"
        if isinstance(x, Primitive):
            _primitives.setdefault(x.name, x)
            return f"prim({x.name!r})"
        if isinstance(x, Enum):
            return f"enum({self.value(cls)}, {x.name!r})"
        if isinstance(x, (type, FunctionType, BuiltinFunctionType, ModuleType)) or callable(x):
            return self.reference(x)
        return self.made(x)

    def array(self, kind: str, x: np.ndarray, weak: str) -> str:
        if x.dtype not in short_names:
            raise TypeError(f"an array of dtype {x.dtype} has no text form")
        shape = ",".join(map(str, x.shape))
        data = base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()
        return f'{kind}("{short_names[x.dtype]}[{shape}]{weak}", "{data}")'

    def reference(self, x: Any) -> str:
        if isinstance(x, ModuleType):
            return f'ref("{x.__name__}:")'
        module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
        if module and name and _resolve(module, name) is x:
            return f'ref("{module}:{name}")'
        for key, known in [*_locals.items(), *_kept.items()]:
            if known is x:
                return f'local("{key}")'
        key = f"{getattr(x, '__name__', type(x).__name__)}#{next(_numbers)}"
        try:
            _locals[key] = x
        except TypeError:  # no weak references to it
            _kept[key] = x
        return f'local("{key}")'

    def made(self, x: Any) -> str:
        """An object by the name it has in its module, or by how it is made again, as ``copy`` would."""
        module = sys.modules.get(type(x).__module__)
        for name, known in vars(module).items() if module is not None else ():
            if known is x:
                return f'ref("{type(x).__module__}:{name}")'
        try:
            reducer = copyreg.dispatch_table.get(type(x))  # as pickle asks
            reduced = reducer(x) if reducer is not None else x.__reduce_ex__(2)
        except Exception as error:
            raise TypeError(f"{x!r} of type {type(x)} has no text form: {error}") from error
        if isinstance(reduced, str):
            return f'ref("{x.__module__}:{reduced}")'
        function, args, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = [args, state, items and list(items), pairs and list(pairs)]
        if getattr(function, "__name__", "") == "__newobj__":
            maker, function, parts[0] = "object", args[0], args[1:]
        else:
            maker = "make"
        while len(parts) > 1 and parts[-1] is None:
            parts.pop()
        return f"{maker}({', '.join(map(self.value, [function, *parts]))})"


def _is_plain(treedef: PyTreeDef) -> bool:
    """Whether a structure is made of tuples, lists, dicts and None only."""
    pending = [treedef]
    while pending:
        treedef = pending.pop()
        if not treedef.is_leaf() and treedef.type not in (tuple, list, dict, type(None)):
            return False
        pending.extend(treedef.children())
    return True


def _resolve(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


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
            dtype = _extended.get(name) or _key_dtype(name)
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
                found = _locals.get(args[0], _kept.get(args[0]))
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
