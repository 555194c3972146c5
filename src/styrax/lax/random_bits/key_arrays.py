"""Random keys as a type: key implementations, key dtypes and arrays of keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import Any

import numpy as np

from styrax.core import hooks
from styrax.core.arrays import backends, differing
from styrax.core.arrays.array import Array, register
from styrax.core.hooks import lax
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray, aval_rules
from styrax.core.types.typing import ArrayLike

UINT32 = np.dtype(np.uint32)


class PRNGImpl:
    """A random number generator as five functions of the raw data of one key.

    Args:
      key_shape: shape of a key's uint32 data.
      seed: `seed(integer scalar) -> key`.
      split: `split(key, shape) -> keys`, of shape `(*shape, *key_shape)`.
      random_bits: `random_bits(key, bit_width, shape) -> unsigned integers`.
      fold_in: `fold_in(key, uint32 scalar) -> key`.
      name, tag: the long name that users write and the short one in `key<fry>`.
    """

    __slots__ = ("key_shape", "seed", "split", "random_bits", "fold_in", "name", "tag")

    def __init__(self, key_shape: tuple[int, ...], seed: Callable, split: Callable, random_bits: Callable,
                 fold_in: Callable, name: str = "<unnamed>", tag: str = "?"):
        self.key_shape = key_shape
        self.seed = seed
        self.split = split
        self.random_bits = random_bits
        self.fold_in = fold_in
        self.name = name
        self.tag = tag

    def _fields(self) -> tuple:
        return (self.key_shape, self.seed, self.split, self.random_bits, self.fold_in, self.name, self.tag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGImpl) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self.tag)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        names = ("key_shape", "seed", "split", "random_bits", "fold_in")
        fields = "".join(f"{n}={getattr(self, n)}, " for n in names)
        return f"PRNGImpl({fields}name={self.name!r}, tag={self.tag!r})"


prngs: dict[str, PRNGImpl] = {}


def register_prng(impl: PRNGImpl) -> PRNGImpl:
    """Makes an implementation known by its name. Raises ValueError for a name that is taken."""
    if impl.name in prngs:
        raise ValueError(f"PRNG with name {impl.name} already registered: {impl}")
    prngs[impl.name] = impl
    return impl


class PRNGSpec:
    """An implementation as a printable, comparable value that `key(seed, impl=...)` accepts."""

    __slots__ = ("_impl",)

    def __init__(self, impl: PRNGImpl):
        self._impl = impl

    def __str__(self) -> str:
        return str(self._impl)

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGSpec) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


def resolve_prng_impl(spec: Hashable | None) -> PRNGImpl:
    """The implementation of a name, spec, implementation or key dtype; None is the configured default.

    Raises ValueError for an unknown name and TypeError for a value of another type.
    """
    if spec is None:
        spec = config.config.jax_default_prng_impl
    if isinstance(spec, PRNGImpl):
        return spec
    if isinstance(spec, PRNGSpec):
        return spec._impl
    if isinstance(spec, KeyTy):
        return spec._impl
    if isinstance(spec, str):
        if spec in prngs:
            return prngs[spec]
        known = ", ".join(f'"{name}"' for name in prngs)
        raise ValueError(f'unrecognized PRNG implementation "{spec}". Did you mean one of: {known}?')
    raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")


@cache
def _watch_uses() -> None:
    """Has uses of keys checked while the setting is on. Called for the first keys: the modules that check them need
    those of keys, which may be half imported before, with the setting already on."""
    config.states["jax_debug_key_reuse"].add_hook(lambda on: hooks.watch_keys() if on else None)


class KeyRules:
    """How arrays of keys are kept: see `core.types.physical`."""

    @staticmethod
    def physical_element_aval(dtype: KeyTy) -> ShapedArray:
        return ShapedArray(dtype.element_shape, UINT32)

    @staticmethod
    def allow_conversion(dtype: KeyTy) -> bool:
        return False


class KeyTy(dtypes.ExtendedDType):
    """The dtype of arrays of keys, `key<fry>`."""

    __slots__ = ("_impl",)
    type = dtypes.prng_key
    _rules = KeyRules

    def __init__(self, impl: PRNGImpl):
        _watch_uses()
        self._impl = impl

    @property
    def name(self) -> str:
        return f"key<{self._impl.tag}>"

    @property
    def itemsize(self) -> int:
        return math.prod(self._impl.key_shape) * UINT32.itemsize

    @property
    def element_shape(self) -> tuple[int, ...]:
        return self._impl.key_shape

    def tangent_dtype(self) -> np.dtype:
        return dtypes.float0

    def zeros(self, aval: ShapedArray) -> Any:
        return full(aval.shape, 0, self)

    def full(self, value: ArrayLike) -> Any:
        """A key whose data words all have one value."""
        return full((), value, self)

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyTy and self._impl == other._impl

    def __hash__(self) -> int:
        return hash((KeyTy, self._impl.tag))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class _KeyArrayMeta(type(Array)):  # type: ignore[misc]
    """`isinstance(x, PRNGKeyArray)` holds for tracers of key arrays, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if issubclass(type(instance), Tracer):
            return isinstance(getattr(instance.aval, "dtype", None), KeyTy)
        return type.__instancecheck__(cls, instance)


class PRNGKeyArray(Array, metaclass=_KeyArrayMeta):
    """An array of random keys.

    Shaped and indexed as other arrays; its elements' data are reached by `random.key_data`.
    """

    __slots__ = ("_consumed",)

    _consumed: Any  # which of the keys were used, under `jax_debug_key_reuse`

    @property
    def physical(self) -> Array:
        """The uint32 array of this array's memory."""
        if differing.used and differing.differs(self):
            return differing.viewed(self, lambda rows: rows.physical)  # type: ignore[attr-defined]
        shape = (*self.aval.shape, *self.aval.dtype.element_shape)
        out = Array(ShapedArray(shape, UINT32), self.buffer, self.committed)
        if hasattr(self, "_sharding"):
            out._sharding = self._sharding  # which says nothing of the dimensions of a key
        return out

    _base_array = physical

    @property
    def _impl(self) -> PRNGImpl:
        return self.aval.dtype._impl

    @property
    def nbytes(self) -> int:
        return self.itemsize * self.size

    @property
    def _value(self) -> np.ndarray:
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) "
            "if you wish to extract the underlying integer array.")

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    @api_boundary
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self._value

    @api_boundary
    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    @api_boundary
    def __float__(self) -> float:
        raise TypeError(f"float() argument must be a string or a real number, not '{type(self).__name__}'")

    @api_boundary
    def __int__(self) -> int:
        raise TypeError(f"int() argument must be a string or a real number, not '{type(self).__name__}'")

    @api_boundary
    def __complex__(self) -> complex:
        raise TypeError(f"complex() argument must be a string or a number, not '{type(self).__name__}'")

    def __index__(self) -> int:
        raise TypeError(f"'{type(self).__name__}' object cannot be interpreted as an integer")

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d key array")
        array: Any = self._gathered()
        return (array[i] for i in range(self.aval.shape[0]))

    def __copy__(self) -> PRNGKeyArray:
        return self

    def __deepcopy__(self, memo: Any) -> PRNGKeyArray:
        return self

    def __reduce__(self) -> Any:
        return _rebuild, (np.asarray(self.physical), self._impl.name)

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.physical}"

    __str__ = __repr__


aval_rules[PRNGKeyArray] = lambda x: x.aval


def _rebuild(data: np.ndarray, name: str) -> PRNGKeyArray:
    return wrap_concrete(data, prngs[name])


def wrap_concrete(data: Any, impl: PRNGImpl) -> PRNGKeyArray:
    """Keys over a concrete uint32 array of their data."""
    if differing.used and differing.differs(data):
        return differing.viewed(data, lambda rows: wrap_concrete(rows, impl))  # type: ignore[return-value]
    base = data if isinstance(data, Array) else backends.get().put(data, ShapedArray(data.shape, UINT32), None)
    shape = base.shape[: base.ndim - len(impl.key_shape)]
    keys = PRNGKeyArray(ShapedArray(shape, KeyTy(impl)), base.buffer, base.committed)
    if hasattr(base, "_sharding"):
        keys._sharding = base._sharding
    return keys


def full(shape: tuple[int, ...], value: ArrayLike, dtype: KeyTy) -> Any:
    """Keys whose data words all have one value."""
    data = lax.broadcast_in_dim(lax.convert_element_type(value, UINT32), (*shape, *dtype.element_shape), ())
    return lax.random_wrap_p.bind(data, impl=dtype._impl)


def check_key_data(impl: PRNGImpl, data: Any) -> None:
    """Raises TypeError where `data` is not the uint32 data of keys of `impl`."""
    try:
        aval = get_aval(data) if not hasattr(data, "shape") else data
        shape, dtype, ndim = aval.shape, aval.dtype, len(aval.shape)
        if isinstance(data, (int, float, complex)):
            raise TypeError
    except (TypeError, AttributeError):
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and dtype "
                        f"attributes. Got {data}") from None
    key_ndim = len(impl.key_shape)
    if ndim < 1:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.ndim >= 1; "
                        f"got ndim={ndim}")
    if tuple(shape[-key_ndim:]) != impl.key_shape:
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.shape to end with "
                        f"{impl.key_shape}; got shape={tuple(shape)} for impl={impl!r}")
    if dtype not in (UINT32, dtypes.float0):
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={dtype}")


register(KeyTy, PRNGKeyArray)
