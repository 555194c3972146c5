"""How jaxprs are written as text that `serial` parses back."""

from __future__ import annotations

import base64
import copyreg
import re
import sys
from collections.abc import Iterable
from enum import Enum
from itertools import count
from types import BuiltinFunctionType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..arrays.array import Array
from ..trees.tree import PyTreeDef
from ..types import dtypes
from ..types.avals import AbstractRef, AbstractToken, AbstractValue, ShapedArray
from ..types.promotion_lattice import short_names
from .jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from .primitive import Primitive
from .text import Names

extended: dict[str, Any] = {}  # extended dtypes seen so far, by name
local_objects: WeakValueDictionary[str, Any] = WeakValueDictionary()  # what has no name to import it by
kept: dict[str, Any] = {}
primitives: dict[str, Primitive] = {}
_numbers = count()
_PRINTED = frozenset((NoneType, EllipsisType, bool, int, float, str, bytes))  # as Python reads them
_RESERVED = ("lambda", "let", "in", "with", "closed", "info", "aval", "inf", "nan")


class Writer:
    def __init__(self) -> None:
        self.names = Names()
        self.names.reserve(_RESERVED)
        # By identity (and kept, so that it stays theirs): types, and what has a name in its module.
        self.known: dict[int, tuple[Any, str]] = {}
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
        return f"{header}{eqns}  in ({outs}){tail}{self.info(jaxpr.debug_info)} }}"

    def info(self, info: DebugInfo) -> str:
        if not info.traced_for and info.func_src_info == "<unknown>":
            return ""
        return f" info{self.value((info.traced_for, info.func_src_info, info.arg_names, info.result_paths))}"

    def vars(self, variables: Iterable[Var]) -> str:
        return " ".join(f"{self.name(v)}:{self.aval(v.aval)}" for v in variables)

    def name(self, v: Var) -> str:
        return "_" if type(v) is DropVar else self.names[v]

    def atom(self, v: Any) -> str:
        if isinstance(v, Literal):
            return f"{self.value(v.val)}:{self.aval(v.aval)}"
        return self.name(v)

    def eqn(self, eqn: JaxprEqn) -> str:
        primitives.setdefault(eqn.primitive.name, eqn.primitive)
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
        known = self.known.get(id(aval))
        if known is None:
            known = self.known[id(aval)] = aval, self.shaped(aval)
        return known[1]

    def shaped(self, aval: ShapedArray) -> str:
        name = dtypes.printed_dtype_name(aval.dtype)
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            extended[name] = aval.dtype
        shape = ",".join([str(d) if type(d) is int else self.dim(d) for d in aval.shape])
        text = f"{name}[{shape}]{'~' if aval.weak_type else ''}"
        told = () if aval.given_sharding is None else ("sharding",)
        return text + self.extras(aval, (*told, "vma", "memory_space"))

    def dim(self, d: Any) -> str:
        return repr(str(d))

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
        if cls in _PRINTED:
            return repr(x)
        if cls is tuple:
            return f"({', '.join(map(self.value, x))}{',' if len(x) == 1 else ''})"
        if cls is complex:
            return f"complex({x.real!r}, {x.imag!r})"
        if hasattr(x, "_is_symbolic_dim"):
            return f"dim({self.dim(x)})"
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
            primitives.setdefault(x.name, x)
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
        named = self.named(x)
        if named is not None:
            return named
        for key, known in [*local_objects.items(), *kept.items()]:
            if known is x:
                return f'local("{key}")'
        key = f"{getattr(x, '__name__', type(x).__name__)}#{next(_numbers)}"
        try:
            local_objects[key] = x
        except TypeError:  # no weak references to it
            kept[key] = x
        return f'local("{key}")'

    def named(self, x: Any) -> str | None:
        """A reference to what can be imported."""
        if isinstance(x, ModuleType):
            return f'ref("{x.__name__}:")'
        module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
        return f'ref("{module}:{name}")' if module and name and _resolve(module, name) is x else None

    def made(self, x: Any) -> str:
        """An object by the name it has in its module, or by how it is made again, as ``copy`` would."""
        if id(x) in self.known:
            return self.known[id(x)][1]
        module = sys.modules.get(type(x).__module__)
        for name, known in vars(module).items() if module is not None else ():
            if known is x:
                text = f'ref("{type(x).__module__}:{name}")'
                self.known[id(x)] = x, text
                return text
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
