"""What `jit` knows of a function's arguments: which are static, which are donated.

`Signature.of` makes of a call's arguments the key under which its program is kept, and the leaves that the program
takes. Whatever else is asked about a call is read off its key, by `Call`.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import backends, mesh
from ..core.arrays.array import kinds
from ..core.arrays.tokens import Token
from ..core.settings.flags import trace_context
from ..core.tracing.trace import Tracer, raise_leak, state
from ..core.trees import tree
from ..core.trees.registry import default_registry
from ..core.trees.treedef import PyTreeDef, leaf_treedef
from ..core.types.avals import narrow, numpy_aval, numpy_types
from .flattening import FlatFunction
from .naming import argument_names
from .references import Ref
from .tracing import abstractify, check_hashable, not_abstract
from .views import any_view, apart

if TYPE_CHECKING:
    from ..core.types.avals import AbstractRef, ShapedArray

Key = tuple[Any, ...]
NUMBERS = frozenset((bool, int, float))
NOTHING: frozenset[int] = frozenset()


class Signature:
    """The static and the donated arguments of a function.

    Args:
      fun: the function.
      static_argnums, static_argnames, donate_argnums, donate_argnames: as the user gave them to `jit`.
      over_mesh: whether the programs depend on the mesh in force.

    Raises:
      ValueError: the function has no such argument, or one is both static and donated.
      TypeError: what should be a number or a name is none.
    """

    __slots__ = ("_positions", "donate_names", "donate_nums", "donates", "fun", "over_mesh", "static_names",
                 "static_nums")

    def __init__(self, fun: Callable[..., Any], static_argnums: Any, static_argnames: Any, donate_argnums: Any,
                 donate_argnames: Any, over_mesh: bool = False):
        self.fun = fun
        self.static_nums, self.static_names = _complete(fun, static_argnums, static_argnames, "static")
        self.donate_nums, self.donate_names = _complete(fun, donate_argnums, donate_argnames, "donate")
        both = set(self.static_names) & set(self.donate_names)
        if both:
            raise ValueError("static_argnames and donate_argnames cannot intersect. Argument names "
                             f"{both} appear in both static_argnames and donate_argnames")
        self.donates = bool(self.donate_nums or self.donate_names)
        self.over_mesh = over_mesh
        self._positions: dict[int, frozenset[int]] = {}  # number of arguments -> which of them are static

    @property
    def options(self) -> Key:
        return self.static_nums, self.static_names, self.donate_nums, self.donate_names

    def static_positions(self, count: int) -> frozenset[int]:
        """Which of `count` positional arguments are static. ValueError for a number before the first."""
        found = self._positions.get(count)
        if found is None:
            for i in self.static_nums:
                if i < -count:
                    raise ValueError(
                        "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal "
                        f"to -len(args) and less than len(args), but got value {i} for len(args) == {count}.")
            found = frozenset(i % count for i in self.static_nums if i < count)
            self._positions[count] = found
        return found

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any], eager: bool) -> tuple[Key, Sequence[Any]]:
        """The key of a call and the leaves of its arguments, static ones left out.

        The key is what surrounds the call; then for each positional argument, and behind its name for each other, its
        type and value where it is static, else its structure (unless it is a leaf) and its leaves' abstract values.

        Args:
          args, kwargs: the arguments.
          eager: whether the leaves are to be arrays, as a program takes them.

        Raises:
          TypeError: an argument is no array; the message tells which.
        """
        around: Any = trace_context()
        if not (kwargs or self.static_nums or self.over_mesh or state.axis_sizes):
            for a in args:
                if type(a) not in kinds:
                    break
            else:
                return (around, *[a.aval for a in args]), args
        if state.axis_sizes or self.over_mesh:
            around = (around, tuple(state.axis_sizes.items()), mesh.current_mesh() if self.over_mesh else None)
        key: list[Any] = [around]
        leaves: list[Any] = []
        static = self.static_positions(len(args)) if self.static_nums else NOTHING
        for i, a in enumerate(args):
            if i in static:
                key.append((type(a), a))
            elif type(a) in kinds:
                key.append(a.aval)
                leaves.append(a)
            else:
                self._take(a, key, leaves, eager, args, kwargs)
        if kwargs:
            for name in kwargs if len(kwargs) == 1 else sorted(kwargs):
                a = kwargs[name]
                key.append(name)
                if name in self.static_names:
                    key.append((type(a), a))
                elif type(a) in kinds:
                    key.append(a.aval)
                    leaves.append(a)
                else:
                    self._take(a, key, leaves, eager, args, kwargs)
        return tuple(key), leaves

    def _take(self, a: Any, key: list[Any], leaves: list[Any], eager: bool, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> None:
        """Adds one argument to the key and the leaves."""
        if eager and (type(a) in numpy_types and a.dtype in narrow or type(a) in NUMBERS and not self.donates):
            a = backends.get().operand(a) if type(a) in NUMBERS else backends.get().put(a, numpy_aval(a), None)
            key.append(a.aval)
            leaves.append(a)
            return
        found, structure = tree.tree_flatten(a)
        if structure is not leaf_treedef:
            key.append(structure)
        if not any([type(x) not in kinds for x in found]):
            key += [x.aval for x in found]
            leaves += found
            return
        before = len(key) - (structure is not leaf_treedef), len(leaves)
        for x in found:
            aval: ShapedArray | AbstractRef
            if type(x) in kinds:
                aval = x.aval
            else:
                try:
                    aval = numpy_aval(x) if type(x) in numpy_types else abstractify(x)
                except TypeError:
                    if any_view(found):
                        del key[before[0]:], leaves[before[1]:]
                        self._take(apart(a), key, leaves, eager, args, kwargs)
                        return
                    raise self._no_array(x, args, kwargs) from None
                if eager:
                    x = as_operand(x, aval)
            key.append(aval)
            leaves.append(x)

    def _no_array(self, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
        return not_abstract(self.fun, x, self._path(lambda y: y is x, args, kwargs))

    def overflow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OverflowError:
        """What to raise where a number among the arguments is too large for its dtype."""
        def overflows(x: Any) -> bool:
            if not isinstance(x, int):
                return False
            try:
                np.asarray(x, abstractify(x).dtype)
            except OverflowError:
                return True
            return False

        found = next(filter(overflows, tree.tree_leaves((args, kwargs))), None)
        return OverflowError("An overflow was encountered while parsing an argument to a jitted computation, whose "
                             f"argument path is {self._path(lambda x: x is found, args, kwargs)}. Got {type(found)} "
                             f"with value {found}")

    def _path(self, which: Callable[[Any], bool], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """The name of the first leaf of the arguments that the predicate holds for."""
        static = self.static_positions(len(args))
        shown = [None if i in static else a for i, a in enumerate(args)]
        named = {k: a for k, a in kwargs.items() if k not in self.static_names}
        names = argument_names(self.fun, shown, named)
        place = next((i for i, y in enumerate(tree.tree_leaves((shown, named))) if which(y)), len(names))
        return names[place] if place < len(names) else None

    def unhashable(self, key: Key) -> ValueError | None:
        """What to raise for a key without a hash, if a static argument is the reason."""
        for item in key:
            if type(item) is tuple and len(item) == 2:
                try:
                    check_hashable(item[1])
                except ValueError as error:
                    return error
        return None

    def read(self, key: Key) -> Call:
        """The call that a key stands for."""
        return Call(self, key)


class Call:
    """A call as its key tells it.

    Attributes:
      flat: the function of the leaves that are not static, as a flat one.
      avals: the abstract values of those leaves.
      donated: which of them are donated, None where none is.
    """

    __slots__ = ("avals", "donated", "flat")

    def __init__(self, signature: Signature, key: Key):
        items = iter(key)
        next(items)
        self.avals: list[Any] = []
        args: list[PyTreeDef] = []
        kwargs: dict[str, PyTreeDef] = {}
        fixed: list[tuple[int, Any]] = []
        named: list[tuple[str, Any]] = []
        positions: list[int] = []  # of those in args
        for item in items:
            if type(item) is str:
                value = next(items)
                if type(value) is tuple:
                    named.append((item, value[1]))
                else:
                    kwargs[item] = self._structure(value, items)
            elif type(item) is tuple:
                fixed.append((len(args) + len(fixed), item[1]))
            else:
                positions.append(len(args) + len(fixed))
                args.append(self._structure(item, items))
        in_tree = tree.treedef_tuple((tree.treedef_tuple(args), PyTreeDef.from_node_data_and_children(
            default_registry, (dict, list(kwargs)), kwargs.values())))
        self.flat = FlatFunction(signature.fun, in_tree, fixed, named, "jit")
        self.donated: tuple[bool, ...] | None = None
        if signature.donates:
            count = len(args) + len(fixed)
            given = {i % count for i in signature.donate_nums if -count <= i < count}
            marks: list[bool] = []
            for i, structure in zip(positions, args, strict=True):
                marks += [i in given] * structure.num_leaves
            for name, structure in kwargs.items():
                marks += [name in signature.donate_names] * structure.num_leaves
            self.donated = tuple(marks)

    def _structure(self, item: Any, items: Iterator[Any]) -> PyTreeDef:
        if type(item) is PyTreeDef:
            self.avals += islice(items, item.num_leaves)
            return item
        self.avals.append(item)
        return leaf_treedef


def as_operand(x: Any, aval: Any) -> Any:
    """A value as programs take it: an array or a reference."""
    if type(x) in numpy_types:
        return backends.get().put(x, aval, None)
    if type(x) in kinds or type(x) is Ref or type(x) is Token:
        return x
    if isinstance(x, Tracer):
        raise_leak(x)
    if aval.is_high:
        return x
    return backends.get().put(x, aval, None)


def _numbers(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    try:
        return (operator.index(value),)
    except TypeError:
        return tuple(map(operator.index, value))


def _strings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    found = (value,) if isinstance(value, str) else tuple(value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"argument is not a string: {name}")
    return found


def inferred(parameters: Sequence[inspect.Parameter], nums: int | Iterable[int] | None,
             names: str | Iterable[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of parameters, where one of them is None each inferred from the other."""
    numbers, strings = _numbers(nums), _strings(names)
    both = [(i, p.name) for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_OR_KEYWORD]
    if names is None:
        strings = tuple(name for i, name in both if i in numbers)
    elif nums is None:
        numbers = tuple(i for i, name in both if name in strings)
    return numbers, strings


def _complete(fun: Callable[..., Any], nums: Any, names: Any, what: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of parameters, each inferred from the other where the signature tells."""
    if nums is None and names is None:
        return (), ()
    numbers, strings = _numbers(nums), _strings(names)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError) as error:
        if what == "donate" and strings:
            raise ValueError(f"Getting the signature of function {fun} failed. Pass donate_argnums instead of "
                             "donate_argnames.") from error
        return numbers, strings
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(positional)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters) and not all(-count <= i < count for i in numbers):
        raise ValueError(f"Jitted function has {what}_argnums={numbers}, but only accepts {count} positional "
                         "arguments.")
    unknown = set(strings) & {p.name for p in parameters if p.kind is p.VAR_POSITIONAL}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        unknown |= set(strings) - {p.name for p in parameters}
    if unknown:
        raise ValueError(f"Jitted function has invalid argnames {unknown} in {what}_argnames. Function does not "
                         "take these args.")
    unnamed = set(strings) & {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY}
    if unnamed:
        raise ValueError(f"Jitted function has invalid argnames {unnamed} in {what}_argnames. These are "
                         "positional-only")
    return inferred(parameters, nums, names)
