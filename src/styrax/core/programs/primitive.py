"""Primitives: the operations that programs are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import hooks
from ..arrays import backends
from ..tracing.source import hide_frames
from ..tracing.trace import Trace, get_aval, state
from ..types import avals
from ..types.avals import ShapedArray
from ..types.effects import Effects, no_effects
from . import spreading
from .sums import NO_AXES, NO_SUMS, NOTHING_KNOWN, Known, sums_of_results
from .traits import PLAIN, Traits


class Primitive:
    """An operation on arrays: positional array arguments, static parameters by keyword.

    What is known of it (derivatives, batching, lowerings) stands in the open tables of `core.programs.rules`, and what
    compilers may assume in its `traits`.
    """

    traits: Traits = PLAIN

    multiple_results = False
    call_primitive = False
    map_primitive = False
    ref_primitive = False
    generic_in_sizes = True  # whether an eager call may compile for sizes known only at run time
    higher_order = False  # has programs among its parameters, which may use references
    uniform = False  # whether results vary along the mesh axes along which operands do
    asks_sharding = False  # its parameter `callback` is told how its operand is spread, once a program is compiled
    composed = False  # stands for what its rule in `rules.expansions` does
    skip_canonicalization = False

    def __init__(self, name: str, *, multiple_results: bool = False):
        self.name = name
        if multiple_results:
            self.multiple_results = True
        if type(self).impl is Primitive.impl:  # a subclass may bring its own
            self.impl = self._no_impl

    def __repr__(self) -> str:
        return self.name

    @property
    def impl(self) -> Callable[..., Any]:
        """What an eager call runs."""
        return self._impl

    @impl.setter
    def impl(self, impl: Callable[..., Any]) -> None:
        self._impl = impl
        self.__dict__.pop("evaluate", None)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Effects]:
        """The types of the results, and effects. Raises NotImplementedError unless a rule is defined, or a subclass
        has its own."""
        raise NotImplementedError(f"Abstract evaluation for '{self.name}' not implemented")

    @property
    def has_abstract_eval(self) -> bool:
        return "abstract_eval" in self.__dict__ or type(self).abstract_eval is not Primitive.abstract_eval

    def evaluate(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """An eager call."""
        return self.impl(*args, **params)

    def declare(self, **traits: Any) -> None:
        """Sets traits by name; see `core.programs.traits.Traits`."""
        self.traits = self.traits.with_(**traits)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Gives the work to the current trace."""
        try:
            if avals.manual and self.uniform and len(args) > 1:
                args = hooks.vary_alike(self.name, args)
            return state.trace.process_primitive(self, args, params)
        except Exception as error:
            if type(error) is TypeError and "is not a valid JAX type" in str(error):
                self._name_argument(args, error)
            hide_frames(error, note=False)
            raise

    def _name_argument(self, args: Sequence[Any], error: TypeError) -> None:
        """Has an error say which argument is the reason for it, if one is."""
        for i, x in enumerate(args):
            try:
                get_aval(x)
            except TypeError as reason:
                if str(reason) == str(error):
                    error.args = (f"Error interpreting argument to {self} as a JAX value. The problematic value is of "
                                  f"type {type(x)} and was passed to {self} at position {i}.",)
                    return

    def bind_with_trace(self, trace: Trace, args: Any, avals: Any, params: dict[str, Any]) -> Any:
        """Gives the work to a trace; `avals` are the types of the arguments."""
        return trace.process_primitive(self, args, params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """An equation's parameters as `bind` takes them: programs among them as functions, for some primitives."""
        return params

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what an eager call runs; without it the backend compiles the primitive."""
        def given(*args: Any, **params: Any) -> Any:
            return impl(*(args if self.skip_canonicalization else map(avals.as_bound, args)), **params)

        self.impl = given
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets `rule(*avals, **params)`, which gives the abstract value(s) of the result(s)."""
        def abstract_eval(*given: Any, **params: Any) -> tuple[Any, Effects]:
            out = rule(*given, **params)
            if avals.explicit:
                out = spreading.spread(self, given, out, params)
            return (_varying(self, given, out) if avals.manual else out), no_effects

        self.uniform = True
        self.def_effectful_abstract_eval(abstract_eval)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets `rule(*avals, **params)`, which gives `(result avals, effects)`."""
        self.abstract_eval = rule  # type: ignore[method-assign]
        if self.impl == self._no_impl:
            self.impl = self._backend_impl
            self.evaluate = partial(backends.apply_primitive, self)  # type: ignore[method-assign]  # the shortest way
        return rule

    def def_bind_with_trace(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        self.bind_with_trace = lambda trace, args, avals, params: fun(trace, args, params)  # type: ignore[method-assign]
        self.bind = lambda *args, **params: fun(state.trace, args, params)  # type: ignore[method-assign]
        return fun

    def _backend_impl(self, *args: Any, **params: Any) -> Any:
        return backends.apply_primitive(self, args, params)

    def _no_impl(self, *args: Any, **params: Any) -> Any:
        if self.has_abstract_eval:
            return self._backend_impl(*args, **params)
        raise NotImplementedError(f"Evaluation rule for '{self.name}' not implemented")


def _varying(primitive: Primitive, operands: Sequence[Any], out: Any) -> Any:
    """The types of results, which vary along the mesh axes along which operands do, or are summed along as they are."""
    axes: frozenset[Any] = frozenset().union(*[getattr(x, "vma", ()) for x in operands])
    known = [_known(x) for x in operands]
    found = sums_of_results(primitive, operands, known) if any(k is not NOTHING_KNOWN for k in known) else NO_SUMS
    if not axes and found is NO_SUMS:
        return out
    sums = found if any(found) else None
    told = [x.update(sharding=x.given_sharding, vma=axes, sums=sums) if isinstance(x, ShapedArray) else x
            for x in (out if isinstance(out, (list, tuple)) else (out,))]
    return told if isinstance(out, (list, tuple)) else told[0]


def _known(aval: Any) -> Known:
    """What the type of an operand inside a `shard_map` says along its axes."""
    sums = getattr(aval, "sums", None)
    return NOTHING_KNOWN if sums is None else Known(sums.unreduced, sums.reduced, NO_AXES)


def multiple_results(name: str) -> Primitive:
    """A primitive that takes and gives lists."""
    return Primitive(name, multiple_results=True)
