"""The primitives of random keys: seed, split, fold in, bits, wrap, unwrap, clone.

They work on arrays of keys of any shape, key by key. What they mean on the keys' raw data is
written once, in the `physicals` rules below, out of the functions of the key implementation.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import Context, physicals
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching
from styrax.transforms.alike import tells_apart

from .. import factor_rules, sharding_rules
from ..casting import convert_element_type, copy_p
from ..shaping.reshaping import reshape
from ..shaping.shapes import check_shape
from .key_arrays import KeyTy, PRNGImpl, PRNGKeyArray, check_key_data, prngs, register_prng, wrap_concrete
from .threefry import threefry_fold_in, threefry_random_bits, threefry_seed, threefry_split

UINT32 = np.dtype(np.uint32)


def _later(home: str, *path: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is first called: most programs draw by Threefry."""

    def function(*args: Any) -> Any:
        found: Any = importlib.import_module(f"{__package__}.{home}")
        for name in path:
            found = getattr(found, name)
        return found(*args)

    return named(function, "_".join(path).replace("_prng_impl", ""))


def _registered(key_size: int, home: str, paths: Sequence[Sequence[str]], name: str, tag: str) -> PRNGImpl:
    seed, split, random_bits, fold_in = (_later(home, *path) for path in paths)
    return register_prng(PRNGImpl((key_size,), seed, split, random_bits, fold_in, name, tag))


def _of_counters(name: str, key_size: int, tag: str) -> PRNGImpl:
    paths = [(f"{name}_prng_impl", function) for function in ("seed", "split", "random_bits", "fold_in")]
    return _registered(key_size, "counters", paths, name, tag)


def _of_bits(name: str, prefix: str, tag: str) -> PRNGImpl:
    functions = "rbg_seed", f"{prefix}_split", "rbg_random_bits", f"{prefix}_fold_in"
    return _registered(4, "bit_generator", [(f,) for f in functions], name, tag)


_of_counters("philox2x32", 1, "phx2")
_of_counters("philox4x32", 2, "phx4")
threefry_prng_impl = register_prng(PRNGImpl(
    (2,), threefry_seed, threefry_split, threefry_random_bits, threefry_fold_in, "threefry2x32", "fry"))
rbg_prng_impl = _of_bits("rbg", "rbg", "rbg")
unsafe_rbg_prng_impl = _of_bits("unsafe_rbg", "unsafe_rbg", "urbg")
_of_counters("threefry4x32", 4, "fry4")


def key_dtypes() -> list[KeyTy]:
    """The dtypes of keys of all registered implementations."""
    return [KeyTy(impl) for impl in prngs.values()]


def _each_key(fun: Callable[..., Any], ndim: int) -> Callable[..., Any]:
    """Maps a function of one key over `ndim` leading dimensions."""
    for _ in range(ndim):
        from styrax.transforms.api import vmap

        fun = vmap(fun)
    return fun


def _check_keys(name: str, aval: Any) -> None:
    if not isinstance(aval.dtype, KeyTy):
        raise TypeError(f"{name} expects an array of PRNG keys; got {aval.str_short()}")


# --- seed

random_seed_p = Primitive("random_seed")
random_seed_p.declare(sharding=sharding_rules.same, factors=factor_rules.in_front)
batching.defvectorized(random_seed_p)
ad.defjvp_zero(random_seed_p)


@random_seed_p.def_abstract_eval
def _random_seed_abstract(seeds: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    if not dtypes.issubdtype(seeds.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds}")
    return ShapedArray(seeds.shape, KeyTy(impl))


def _random_seed_physical(context: Context, seeds: Any, *, impl: PRNGImpl) -> Any:
    return _each_key(impl.seed, len(seeds.shape))(seeds)


physicals[random_seed_p] = _random_seed_physical


def random_seed(seeds: ArrayLike, impl: PRNGImpl) -> Array:
    """Keys from integer seeds of any shape; the shape of the result is that of `seeds`."""
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        # Python integers wrap around at the width of the default integer, before and under jit alike.
        width = np.int64 if dtypes.canonicalize_dtype(np.int64) == np.int64 else np.int32
        seeds = np.asarray(int(seeds) & (2 ** (8 * np.dtype(width).itemsize) - 1), np.uint64).astype(width)
    return random_seed_p.bind(seeds, impl=impl)


# --- split

random_split_p = Primitive("random_split")
random_split_p.declare(sizes=frozenset(("shape",)), sharding=sharding_rules.in_front, factors=factor_rules.in_front)
ad.defjvp_zero(random_split_p)


@random_split_p.def_abstract_eval
def _random_split_abstract(keys: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    _check_keys("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


def _keys_in_front(primitive: Primitive) -> None:
    """Batching for what appends dimensions to those of its keys."""

    def rule(args: Sequence[Any], dims: Sequence[int], **params: Any) -> tuple[Any, int]:
        return primitive.bind(*args, **params), dims[0]

    rules.batchers[primitive] = rule
    tells_apart.add(primitive)  # an implementation of keys may draw the bits of a batch at once


_keys_in_front(random_split_p)


def _random_split_physical(context: Context, data: Any, *, shape: tuple[int, ...]) -> Any:
    (keys,) = context.avals_in
    return _each_key(lambda key: keys.dtype._impl.split(key, shape), keys.ndim)(data)


physicals[random_split_p] = _random_split_physical


def random_split(keys: Any, shape: tuple[int, ...]) -> Any:
    """`shape` new keys from each key."""
    return random_split_p.bind(keys, shape=tuple(shape))


# --- fold in

random_fold_in_p = Primitive("random_fold_in")
random_fold_in_p.declare(sharding=sharding_rules.same, factors=factor_rules.in_front)
batching.defbroadcasting(random_fold_in_p)
ad.defjvp_zero(random_fold_in_p)


@random_fold_in_p.def_abstract_eval
def _random_fold_in_abstract(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _check_keys("random_fold_in", keys)
    shape = np.broadcast_shapes(keys.shape, data.shape)
    return ShapedArray(shape, keys.dtype)


def _random_fold_in_physical(context: Context, data: Any, values: Any) -> Any:
    keys, _ = context.avals_in
    (out,) = context.avals_out
    impl = keys.dtype._impl
    fold_in = impl.fold_in
    if keys.shape != out.shape or values.shape != out.shape:
        from styrax.transforms.api import vmap

        # An operand without dimensions, or with one of size 1, is the same key or datum everywhere.
        for axis in reversed(range(out.ndim)):
            mapped = [0 if len(s) == out.ndim and s[axis] == out.shape[axis] else None
                      for s in (keys.shape, values.shape)]
            fold_in = vmap(fold_in, in_axes=tuple(mapped))
        squeezed_keys = [n for n, size in zip(keys.shape, out.shape) if n == size] if keys.ndim else []
        squeezed_values = [n for n, size in zip(values.shape, out.shape) if n == size] if values.ndim else []
        data = reshape(data, (*squeezed_keys, *impl.key_shape))
        values = reshape(values, tuple(squeezed_values))
        return fold_in(data, values)
    return _each_key(fold_in, out.ndim)(data, values)


physicals[random_fold_in_p] = _random_fold_in_physical


def random_fold_in(keys: Any, msgs: Any) -> Any:
    """New keys, of keys and uint32 data of broadcastable shapes."""
    return random_fold_in_p.bind(keys, convert_element_type(msgs, UINT32))


# --- bits

random_bits_p = Primitive("random_bits")
random_bits_p.declare(sizes=frozenset(("shape",)), sharding=sharding_rules.in_front, factors=factor_rules.in_front)
_keys_in_front(random_bits_p)
ad.defjvp_zero(random_bits_p)


@random_bits_p.def_abstract_eval
def _random_bits_abstract(keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    _check_keys("random_bits", keys)
    check_shape("random_bits", shape)
    return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))


def _random_bits_physical(context: Context, data: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    (keys,) = context.avals_in
    return _each_key(lambda key: keys.dtype._impl.random_bits(key, bit_width, shape), keys.ndim)(data)


physicals[random_bits_p] = _random_bits_physical


def random_bits(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of `bit_width` random bits, `shape` of them for each key."""
    return random_bits_p.bind(keys, bit_width=bit_width, shape=tuple(shape))


# --- wrap and unwrap

random_wrap_p = Primitive("random_wrap")
random_wrap_p.declare(sharding=sharding_rules.in_front, factors=factor_rules.in_front)
ad.defjvp_zero(random_wrap_p)


@random_wrap_p.def_abstract_eval
def _random_wrap_abstract(data: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    check_key_data(impl, data)
    return ShapedArray(data.shape[: len(data.shape) - len(impl.key_shape)], KeyTy(impl))


@random_wrap_p.def_impl
def _random_wrap_impl(data: Any, *, impl: PRNGImpl) -> PRNGKeyArray:
    check_key_data(impl, data)
    return wrap_concrete(data, impl)


def _random_wrap_batch(args: Sequence[Any], dims: Sequence[int], *, impl: PRNGImpl) -> tuple[Any, int]:
    (data,), (dim,) = args, dims
    return random_wrap_p.bind(batching.moveaxis(data, dim, 0), impl=impl), 0


rules.batchers[random_wrap_p] = _random_wrap_batch
physicals[random_wrap_p] = lambda context, data, *, impl: data


def random_wrap(base_arr: Any, *, impl: PRNGImpl) -> Any:
    """Keys of their uint32 data; the last dimensions of `base_arr` are a key's."""
    check_key_data(impl, base_arr)
    return random_wrap_p.bind(base_arr, impl=impl)


random_unwrap_p = Primitive("random_unwrap")
random_unwrap_p.declare(sharding=sharding_rules.in_front, factors=factor_rules.in_front)
ad.defjvp_zero(random_unwrap_p)
_keys_in_front(random_unwrap_p)


@random_unwrap_p.def_abstract_eval
def _random_unwrap_abstract(keys: ShapedArray) -> ShapedArray:
    _check_keys("random_unwrap", keys)
    return ShapedArray((*keys.shape, *keys.dtype.element_shape), UINT32)


@random_unwrap_p.def_impl
def _random_unwrap_impl(keys: Any) -> Array:
    _check_keys("random_unwrap", keys.aval)
    return keys.physical


physicals[random_unwrap_p] = lambda context, data: data


def random_unwrap(keys: Any) -> Any:
    """The uint32 data of keys."""
    if not isinstance(get_aval(keys).dtype, KeyTy):
        raise TypeError(f"random_unwrap takes key array operand, got dtype={get_aval(keys).dtype}")
    return random_unwrap_p.bind(keys)


# --- clone

random_clone_p = Primitive("random_clone")
random_clone_p.declare(sharding=sharding_rules.same, factors=factor_rules.in_front)
random_clone_p.def_impl(lambda keys: PRNGKeyArray(keys.aval, keys.buffer, keys.committed))  # that none has used
random_clone_p.def_abstract_eval(lambda keys: keys)
batching.defvectorized(random_clone_p)
ad.defjvp_zero(random_clone_p)
physicals[random_clone_p] = lambda context, data: data


def random_clone(keys: Any) -> Any:
    """The same keys, as if never used, for code under `jax_debug_key_reuse`; the data of keys counts no use."""
    if not isinstance(get_aval(keys).dtype, KeyTy):
        return copy_p.bind(keys)
    return random_clone_p.bind(keys)
