"""Signatures of primitives and programs, and the checks of eager operations.

Keys are followed by masks: which of an array of keys are used up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ...core.programs import rules
from ...core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from ...core.programs.primitive import Primitive
from ...core.programs.traits import Control
from ...core.settings.config import debug_key_reuse
from ...core.tracing.errors import KeyReuseError
from ...core.tracing.trace import get_aval
from ...core.types.avals import ShapedArray
from ...core.types.effects import Effect, control_flow_allowed_effects, lowerable_effects
from ...core.types.typing import ArrayLike, Function, Object
from ...lax.random_bits.key_arrays import KeyTy, PRNGKeyArray
from ...lax.random_bits.prng import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from ...random.gammas import random_gamma_p
from ...transforms import ad, batching
from ...transforms.checkpoint import remat_p
from ...transforms.jit_rules import jit_p
from ...transforms.looking import make_jaxpr

_COMPILED = "jit-compiled function"
Mask = bool | np.bool_ | np.ndarray


class Sink:
    """An argument's keys are used up, those that `mask` marks; they must not have been before."""

    def __init__(self, idx: int, mask: Mask = True):
        self.idx = idx
        whole = np.asarray(mask)
        self.mask: Mask = bool(whole.flat[0]) if whole.size and (whole == whole.flat[0]).all() else whole

    def __repr__(self) -> str:
        return f"Sink({self.idx})" if self.mask is True else f"Sink({self.idx}, {self.mask})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.idx == other.idx and np.array_equal(  # type: ignore[attr-defined]
            self.mask, other.mask)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.idx, np.asarray(self.mask).tobytes()))


class Source(Sink):
    """A result has new keys."""

    def __repr__(self) -> str:
        return f"Source({self.idx})" if self.mask is True else f"Source({self.idx}, {self.mask})"


class Forward(NamedTuple):
    """A result has the keys of an argument."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What a primitive or program does to its arguments' keys: `Sink`s, `Source`s and `Forward`s."""

    def __init__(self, *args: Sink | Source | Forward):
        self._args = args

    @property
    def sinks(self) -> Iterator[Sink]:
        return (a for a in self._args if type(a) is Sink)

    @property
    def sources(self) -> Iterator[Source]:
        return (a for a in self._args if isinstance(a, Source))

    @property
    def forwards(self) -> Iterator[Forward]:
        return (a for a in self._args if isinstance(a, Forward))

    def __repr__(self) -> str:
        return f"KeyReuseSignature{self._args}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and set(self._args) == set(other._args)

    def __hash__(self) -> int:
        return hash(frozenset(self._args))

    def check_signature(self, *args: Any, funcname: str = "function", context: Any = None) -> None:
        """Raises KeyReuseError where a key among the arguments that this uses was used before."""
        for sink in self.sinks:
            key = args[sink.idx]
            if isinstance(key, PRNGKeyArray) and np.any(np.logical_and(_consumed(key), sink.mask)):
                raise KeyReuseError(f"Previously-consumed key passed to {funcname} at index {sink.idx}")

    def update_consumption(self, args_in: Sequence[Any], args_out: Sequence[Any]) -> None:
        """Notes which keys are used up now."""
        for sink in self.sinks:
            key = args_in[sink.idx]
            if isinstance(key, PRNGKeyArray):
                key._consumed = np.logical_or(_consumed(key), sink.mask)
        for forward in self.forwards:
            key, out = args_in[forward.in_idx], args_out[forward.out_idx]
            if isinstance(key, PRNGKeyArray) and isinstance(out, PRNGKeyArray):
                out._consumed = _as_of(_consumed(key), key.shape, out.shape)


def _consumed(key: Any) -> Any:
    return getattr(key, "_consumed", False)


def _as_of(mask: Any, shape: Sequence[int], new_shape: Sequence[int]) -> Any:
    """A mask for other places: the same one, or all or nothing."""
    return mask if tuple(shape) == tuple(new_shape) or np.ndim(mask) == 0 else bool(np.any(mask))


@dataclass(frozen=True)
class DynamicKeyReuseSignature:
    """A signature that depends on the equation."""

    signature: Callable[[JaxprEqn], KeyReuseSignature]


def dynamic_key_reuse_signature(f: Callable[[JaxprEqn], KeyReuseSignature]) -> DynamicKeyReuseSignature:
    """A signature from a function of the equation."""
    return DynamicKeyReuseSignature(f)


def _is_key(v: Any) -> bool:
    return isinstance(v.aval, ShapedArray) and isinstance(v.aval.dtype, KeyTy)


# -- primitives for tests of functions ---------------------------------------------------------------


class KeyReuseEffect(Effect):
    """Keeps checks of keys in programs."""


assert_effect = KeyReuseEffect()
consume_effect = KeyReuseEffect()
lowerable_effects.add_type(KeyReuseEffect)
control_flow_allowed_effects.add_type(KeyReuseEffect)


def _identity(name: str, effect: Effect) -> Primitive:
    prim = Primitive(name)
    prim.def_effectful_abstract_eval(lambda x, **_: (x, {effect}))
    prim.def_impl(lambda x, **_: x)
    rules.loops[prim] = rules.same_value
    rules.stablehlos[prim] = lambda m, x, **_: x
    batching.defvectorized(prim)
    ad.defjvp_zero(prim)
    return prim


consume_p = _identity("consume", consume_effect)
assert_consumed_value_p = _identity("assert_consumed_value", assert_effect)


def consume(key: ArrayLike) -> Any:
    """The keys, used up."""
    return consume_p.bind(key)


def assert_unconsumed(key: ArrayLike) -> None:
    """Raises AssertionError, in a check, where a key was used before."""
    assert_consumed_value_p.bind(key, value=False)


def assert_consumed(key: ArrayLike, value: Mask = True) -> None:
    """Raises AssertionError, in a check, unless the keys were used, those that `value` marks."""
    assert_consumed_value_p.bind(key, value=value)


# -- signatures of primitives ---------------------------------------------------------------------------

_FORWARDED = KeyReuseSignature(Forward(0, 0))
key_reuse_signatures: dict[Primitive, KeyReuseSignature | DynamicKeyReuseSignature] = {
    consume_p: KeyReuseSignature(Sink(0), Forward(0, 0)),
    assert_consumed_value_p: _FORWARDED,
    random_clone_p: KeyReuseSignature(Source(0)),
    random_bits_p: KeyReuseSignature(Sink(0)),
    random_fold_in_p: KeyReuseSignature(Source(0)),
    random_seed_p: KeyReuseSignature(Source(0)),
    random_split_p: KeyReuseSignature(Sink(0), Source(0)),
    random_gamma_p: KeyReuseSignature(Sink(0)),
    random_wrap_p: KeyReuseSignature(Source(0)),
    random_unwrap_p: KeyReuseSignature(),
    lax.eq_p: KeyReuseSignature(),
    lax.ne_p: KeyReuseSignature(),
    lax.dynamic_update_slice_p: KeyReuseSignature(Sink(1), Forward(0, 0)),
    lax.scatter_p: KeyReuseSignature(Sink(2), Forward(0, 0)),
    **{p: _FORWARDED for p in (
        lax.broadcast_in_dim_p, lax.copy_p, lax.convert_element_type_p, lax.reshape_p, lax.squeeze_p,
        lax.dynamic_slice_p, lax.gather_p, lax.transpose_p, lax.rev_p)},
}


@dynamic_key_reuse_signature
def _slice(eqn: JaxprEqn) -> KeyReuseSignature:
    """The keys that are taken are used up where they were."""
    (x,) = eqn.invars
    if not _is_key(x):
        return KeyReuseSignature()
    mask = np.zeros(x.aval.shape, bool)
    strides = eqn.params["strides"] or (1,) * mask.ndim
    mask[tuple(map(slice, eqn.params["start_indices"], eqn.params["limit_indices"], strides))] = True
    return KeyReuseSignature(Sink(0, mask), Source(0))


@dynamic_key_reuse_signature
def _concatenate(eqn: JaxprEqn) -> KeyReuseSignature:
    return unknown_signature(eqn)


@dynamic_key_reuse_signature
def _remat(eqn: JaxprEqn) -> KeyReuseSignature:
    """What a checkpoint computes again uses keys again, for the same numbers: only the first time counts."""
    if eqn.params["differentiated"]:
        return KeyReuseSignature()
    return jaxpr_type_signature(eqn.params["jaxpr"])


key_reuse_signatures[lax.slice_p] = _slice
key_reuse_signatures[remat_p] = _remat
key_reuse_signatures[lax.concatenate_p] = _concatenate


def unknown_signature(eqn: JaxprEqn) -> KeyReuseSignature:
    """All keys that go in are used up, all that come out are new."""
    return KeyReuseSignature(*(Sink(i) for i, v in enumerate(eqn.invars) if _is_key(v)),
                             *(Source(i) for i, v in enumerate(eqn.outvars) if _is_key(v)))


# -- signatures of programs --------------------------------------------------------------------------------


def jaxpr_type_signature(jaxpr: Jaxpr | ClosedJaxpr) -> KeyReuseSignature:
    """What a program does to its arguments' keys. Raises KeyReuseError where it uses one twice."""
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    found = jaxpr.cache.get("key_reuse")
    if found is None:
        found = jaxpr.cache["key_reuse"] = _follow(jaxpr)
    return found


def _follow(jaxpr: Jaxpr) -> KeyReuseSignature:
    origin: dict[Any, Any] = {}  # what has the keys of another -> that
    used: dict[Any, Any] = {}

    def root(v: Any) -> Any:
        while v in origin:
            v = origin[v]
        return v

    def use(name: str, v: Any, sink: Sink) -> None:
        first = root(v)
        mask = _as_of(sink.mask, v.aval.shape, first.aval.shape)
        before = used.get(first, False)
        if np.any(np.logical_and(before, mask)):
            raise KeyReuseError(f"In {name}, argument {sink.idx} is already consumed.")
        used[first] = np.logical_or(before, mask)

    for eqn in jaxpr.eqns:
        if eqn.primitive is assert_consumed_value_p:
            now = np.broadcast_to(used.get(root(eqn.invars[0]), False), eqn.invars[0].aval.shape)
            if not (now == eqn.params["value"]).all():
                raise AssertionError(f"Expected key to {'' if np.any(eqn.params['value']) else 'not '}be consumed "
                                     f"in {eqn}")
        signature = key_reuse_signature_from_eqn(eqn)
        for sink in signature.sinks:
            v = eqn.invars[sink.idx]
            if not isinstance(v, Literal) and _is_key(v):
                use(eqn.primitive.name, v, sink)
        for forward in signature.forwards:
            v, out = eqn.invars[forward.in_idx], eqn.outvars[forward.out_idx]
            if not isinstance(v, Literal) and _is_key(v):
                origin[out] = v
    inputs = list(jaxpr.invars)
    sinks = [Sink(i, used[v]) for i, v in enumerate(inputs) if v in used and np.any(used[v])]
    results: list[Any] = []
    for i, v in enumerate(jaxpr.outvars):
        if not isinstance(v, Literal) and _is_key(v):
            results.append(Forward(inputs.index(root(v)), i) if root(v) in inputs else Source(i))
    return KeyReuseSignature(*sinks, *results)


def key_reuse_signature_from_eqn(eqn: JaxprEqn) -> KeyReuseSignature:
    """What an equation does to its operands' keys."""
    found = key_reuse_signatures.get(eqn.primitive)
    if isinstance(found, KeyReuseSignature):
        return found
    if found is not None:
        return found.signature(eqn)
    traits = eqn.primitive.traits
    if traits.program is not None:
        return jaxpr_type_signature(traits.program(eqn.params))
    if traits.control is Control.COND:
        return _cond(eqn)
    if traits.control is Control.SCAN:
        return _scan(eqn)
    if traits.control is Control.WHILE:
        return _while(eqn)
    return unknown_signature(eqn)


def _cond(eqn: JaxprEqn) -> KeyReuseSignature:
    """What any of the branches uses up is used up; what not all make or pass on alike is new."""
    signatures = [jaxpr_type_signature(b) for b in eqn.params["branches"]]
    masks: dict[int, Any] = {}
    for signature in signatures:
        for sink in signature.sinks:
            masks[sink.idx] = np.logical_or(masks.get(sink.idx, False), sink.mask)
    shared = set.intersection(*(set(s.forwards) for s in signatures))
    passed = {f.out_idx for f in shared}
    return KeyReuseSignature(
        *(Sink(i + 1, m) for i, m in masks.items()), *(Forward(f.in_idx + 1, f.out_idx) for f in shared),
        *(Source(i) for i, v in enumerate(eqn.outvars) if _is_key(v) and i not in passed))


def _used_again(body: KeyReuseSignature, num_consts: int, num_carry: int) -> str | None:
    """Which keys a second turn of a loop uses that the first has used: "constants" or "carries"."""
    sunk = {s.idx for s in body.sinks}
    if any(i < num_consts for i in sunk):
        return "constants"
    return "carries" if any(f.out_idx < num_carry and f.in_idx in sunk for f in body.forwards) else None


def _scan(eqn: JaxprEqn) -> KeyReuseSignature:
    body = jaxpr_type_signature(eqn.params["jaxpr"])
    consts, carries = eqn.params["num_consts"], eqn.params["num_carry"]
    used = _used_again(body, consts, carries)
    if used is not None:
        why = ", because key constants are repeatedly consumed" if used == "constants" else ""
        raise KeyReuseError(f"scan body function leads to key reuse when repeatedly executed{why}:\n  "
                            f"signature={body}\n  eqn={eqn}")
    return KeyReuseSignature(*(Sink(s.idx) for s in body.sinks), *body.sources, *body.forwards)


def _while(eqn: JaxprEqn) -> KeyReuseSignature:
    of_cond, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    cond, body = (jaxpr_type_signature(eqn.params[name]) for name in ("cond_jaxpr", "body_jaxpr"))
    for part, signature, again in (("cond", cond, any(True for _ in cond.sinks)),
                                   ("body", body, _used_again(body, of_body, len(eqn.outvars)) is not None)):
        if again:
            raise KeyReuseError(f"while_loop {part} function leads to key reuse when repeatedly executed:   "
                                f"{part}_signature={signature}\n  eqn={eqn}")
    return KeyReuseSignature(*(Sink(s.idx + of_cond) for s in body.sinks), *body.sources,
                             *(Forward(f.in_idx + of_cond, f.out_idx) for f in body.forwards))


# -- checks -------------------------------------------------------------------------------------------------


def function_type_signature(fun: Function, *args: Object) -> KeyReuseSignature:
    """What a function does to its arguments' keys. Raises KeyReuseError where it uses one twice."""
    return jaxpr_type_signature(make_jaxpr(fun)(*args))


def check_key_reuse_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises KeyReuseError where a program uses a key twice."""
    jaxpr_type_signature(jaxpr)


def check_key_reuse(fun: Function, /, *args: Object) -> None:
    """Raises KeyReuseError where a function uses a key twice."""
    function_type_signature(fun, *args)


def key_reuse_signature_from_primitive(prim: Primitive, *args: Object, **params: Object) -> KeyReuseSignature:
    """What a primitive does to its arguments' keys."""
    found = key_reuse_signatures.get(prim)
    if isinstance(found, KeyReuseSignature):
        return found
    jaxpr = make_jaxpr(functools.partial(prim.bind, **params))(*args).jaxpr
    return jaxpr_type_signature(jaxpr) if len(jaxpr.eqns) != 1 else key_reuse_signature_from_eqn(jaxpr.eqns[0])


def call_impl_with_key_reuse_checks(prim: Primitive, raw_impl: Function, *args: Object, **kwargs: Object) -> Any:
    """Runs a primitive's implementation on keys that were not used before, and notes which are used now."""
    if not debug_key_reuse.value or not any(isinstance(x, PRNGKeyArray) for x in args):
        return raw_impl(*args, **kwargs)
    signature = key_reuse_signature_from_primitive(prim, *map(_type_of, args), **kwargs)
    signature.check_signature(*args, funcname=_COMPILED if prim is jit_p else prim.name)
    result = raw_impl(*args, **kwargs)
    signature.update_consumption(args, result if prim.multiple_results else [result])
    return result


def _type_of(x: Any) -> Any:
    return get_aval(x) if isinstance(x, PRNGKeyArray) else x


def checked(closed: ClosedJaxpr, code: Callable[..., Any]) -> Callable[..., Any]:
    """The code of a program with checks of the keys that it is called with."""
    signature = jaxpr_type_signature(closed)

    def run(*args: Any) -> Any:
        signature.check_signature(*args, funcname=_COMPILED)
        outs = code(*args)
        signature.update_consumption(args, outs)
        return outs

    return run


@functools.cache
def watch_eager_operations() -> None:
    """From now on, eager operations on keys are checked where the setting is on."""
    for prim in (*key_reuse_signatures, lax.stack_p, lax.cond_p, lax.scan_p, lax.while_p, jit_p):
        prim.impl = functools.partial(call_impl_with_key_reuse_checks, prim, prim.impl)  # type: ignore[method-assign]
