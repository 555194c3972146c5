"""Making and taking apart random keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary, warn
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.dims import is_symbolic
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.lax.random_bits import prng
from styrax.lax.random_bits.key_arrays import KeyTy, PRNGImpl, PRNGKeyArray, PRNGSpec, resolve_prng_impl

UINT32 = np.dtype(np.uint32)


def default_prng_impl() -> PRNGImpl:
    """The implementation that the configuration asks for."""
    return resolve_prng_impl(config.config.jax_default_prng_impl)


def is_key(x: Any) -> bool:
    """Whether `x` is an array of keys (not the raw data of some)."""
    return isinstance(getattr(x, "dtype", None), KeyTy)


def check_prng_key(name: str, key: Any, *, allow_batched: bool = False) -> tuple[PRNGKeyArray, bool]:
    """An argument `key` as a typed key, and whether it was raw data.

    Raises TypeError for what is no key, ValueError for several keys where one is expected.
    """
    if is_key(key):
        typed, raw = key, False
    elif not isinstance(key, (Array, np.ndarray, np.generic, int, float, complex)):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    else:
        _report_raw_key()
        typed, raw = prng.random_wrap(key, impl=default_prng_impl()), True
    if not allow_batched and typed.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {key.shape} != (). Use "
                         "jax.vmap for batching.")
    return typed, raw


def _report_raw_key() -> None:
    """Warns of uint32 data in the place of a key, or refuses it, as the configuration has it."""
    legacy = config.legacy_prng_key.value.value
    if legacy == "allow":
        if config.config.jax_enable_custom_prng:
            warn("Raw arrays as random keys to jax.random functions are deprecated. Assuming valid "
                  f"{default_prng_impl().name} key for now.", FutureWarning)
        return
    message = ("Legacy uint32 key array passed as key to jax.random function. Please create keys using "
               "jax.random.key(). If use of a raw key array was intended, set jax_legacy_prng_key=\"allow\".")
    if legacy == "error":
        raise ValueError(message)
    warn(message, UserWarning)


def maybe_unwrap(raw: bool, keys: Any) -> Array:
    """Keys in the form in which they came."""
    return prng.random_unwrap(keys) if raw else keys


def _chosen_impl(name: str, impl: Any, dtype: Any) -> PRNGImpl:
    """The implementation that the arguments of the function `name` ask for."""
    if impl is not None and dtype is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to jax.random.{name}")
    return resolve_prng_impl(impl if dtype is None else dtype)


def _seeded(name: str, seed: Any, impl: PRNGImpl) -> Array:
    if is_key(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    shape = np.shape(seed)
    if shape:
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {shape} != (). Use jax.vmap "
                        "for batching")
    if isinstance(seed, int):
        seed = np.int64(seed)  # more bits than that are an OverflowError, and fewer wrap around
    if isinstance(seed, (float, complex, np.inexact)) or dtypes.issubdtype(get_aval(seed).dtype, np.inexact):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    return prng.random_seed(seed, impl)


@api_boundary
def key(seed: int | ArrayLike, *, impl: Hashable | None = None, dtype: DTypeLike | None = None) -> Array:
    """A random key from an integer.

    Args:
      seed: an integer scalar; 64 bits of it count.
      impl: name of the generator: "threefry2x32", "rbg", "unsafe_rbg"; by default the configured one.
      dtype: a key dtype, instead of `impl`.

    Returns:
      a scalar array of a key dtype, for the other functions of this module to consume.

    Raises:
      TypeError: for a seed that is no integer scalar.
      ValueError: for an unknown generator.

    Example:
      >>> import styrax as jax
      >>> jax.random.key(0)
      Array((), dtype=key<fry>) overlaying:
      [0 0]
    """
    return _seeded("key", seed, _chosen_impl("key", impl, dtype))


@api_boundary
def PRNGKey(seed: int | ArrayLike, *, impl: str | PRNGSpec | PRNGImpl | None = None) -> Array:
    """A random key in the older form, an array of uint32. New code uses `key`.

    Args:
      seed: an integer scalar.
      impl: name of the generator.

    Returns:
      an array of uint32 of the shape of one key, `(2,)` for Threefry; a typed key where
      `jax_enable_custom_prng` is set.
    """
    chosen = resolve_prng_impl(impl)
    keys = _seeded("PRNGKey", seed, chosen)
    return keys if config.config.jax_enable_custom_prng else prng.random_unwrap(keys)


@api_boundary
def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from one, independent of each other. The old key is not to be used again.

    Args:
      key: a key.
      num: how many, or the shape of the array of new keys.

    Returns:
      an array of `num` keys.

    Raises:
      ValueError: for an array of several keys, or a negative number.

    Example:
      >>> import styrax as jax
      >>> first, second = jax.random.split(jax.random.key(0))
      >>> first
      Array((), dtype=key<fry>) overlaying:
      [1797259609 2579123966]
    """
    typed, raw = check_prng_key("split", key)
    return maybe_unwrap(raw, _split(typed, num))


def _split(key: Any, num: int | tuple[int, ...] = 2) -> Array:
    shape = tuple(int_index(n) for n in num) if isinstance(num, (tuple, list)) else (int_index(num),)
    if any(n < 0 for n in shape):
        raise ValueError(f"split: the number of keys has to be nonnegative, got {num}.")
    return prng.random_split(key, shape)


def int_index(n: Any) -> int:
    return n if type(n) is int or is_symbolic(n) else n.__index__() if hasattr(n, "__index__") else _no_integer(n)


def _no_integer(n: Any) -> int:
    raise TypeError(f"'{type(n).__name__}' object cannot be interpreted as an integer")


def split_apart(key: Any, num: int) -> list[Array]:
    """`num` new keys one by one, for code inside this package."""
    from styrax.lax import slice_in_dim, squeeze

    keys = _split(key, num)
    return [squeeze(slice_in_dim(keys, i, i + 1), (0,)) for i in range(num)]


@api_boundary
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer.

    Args:
      key: a key.
      data: a scalar that is converted to uint32.

    Returns:
      a key of the form of `key`; other data give other keys.

    Raises:
      ValueError: for an array of several keys.
      TypeError: for data that is not scalar.
      OverflowError: for a Python integer that is no uint32.

    Example:
      >>> import styrax as jax
      >>> jax.random.key_data(jax.random.fold_in(jax.random.key(0), 7))
      Array([2716826189,  292468403], dtype=uint32)
    """
    typed, raw = check_prng_key("fold_in", key)
    if np.shape(data):
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). Use "
                        "jax.vmap for batching.")
    if isinstance(data, (np.ndarray, np.generic)):
        data = data.astype(UINT32)
    elif not isinstance(data, Array):
        data = np.uint32(data)  # type: ignore[arg-type]
    return maybe_unwrap(raw, prng.random_fold_in(typed, data))


def clone(key: ArrayLike) -> Array:
    """The same key, declared unused for code that checks the reuse of keys.

    Args:
      key: a key, or an array of keys.

    Returns:
      an array of the shape and dtype of `key`, with the same data.
    """
    return prng.random_clone(key)


@api_boundary
def key_data(keys: ArrayLike) -> Array:
    """The uint32 data of keys.

    Args:
      keys: a key, or an array of keys.

    Returns:
      an array of shape `(*keys.shape, ...)` of uint32; the trailing dimensions are those of one key, `(2,)`
      for Threefry.
    """
    typed, _ = check_prng_key("key_data", keys, allow_batched=True)
    return prng.random_unwrap(typed)


@api_boundary
def wrap_key_data(key_bits_array: ArrayLike, *, impl: Hashable | None = None, dtype: DTypeLike | None = None) -> Array:
    """Keys from their uint32 data, the reverse of `key_data`.

    Args:
      key_bits_array: uint32 array whose last dimensions are those of one key.
      impl, dtype: the generator, by name or as a key dtype.

    Returns:
      an array of keys; its shape is that of `key_bits_array` without the dimensions of one key.
    """
    return prng.random_wrap(key_bits_array, impl=_chosen_impl("wrap_key_data", impl, dtype))


def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """The generator of keys: its name where it has one, else a value that `key(impl=...)` accepts.

    Args:
      keys: a key, or an array of keys.

    Returns:
      the name, such as "threefry2x32", or the generator itself.
    """
    from styrax.lax.random_bits.key_arrays import prngs

    typed, _ = check_prng_key("key_impl", keys, allow_batched=True)
    impl = typed.aval.dtype._impl
    return impl.name if impl.name in prngs else PRNGSpec(impl)


def key_dtype(impl_spec: Hashable | None = None) -> KeyTy:
    """The dtype of keys of a generator.

    Args:
      impl_spec: the generator, by name or as `key_impl` gives it; by default the configured one.

    Returns:
      the dtype, such as `key<fry>`, which compares equal for the same generator.
    """
    return KeyTy(resolve_prng_impl(impl_spec))
