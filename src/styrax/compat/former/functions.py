"""Functions that JAX had once, by those of today."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from styrax import numpy as jnp
from styrax import tree, tree_util
from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Device
from styrax.core.settings.config import enable_x64
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, Index, PyTree
from styrax.lax import psum
from styrax.lax.collectives.placing import device_put
from styrax.random import permutation
from styrax.transforms.jit import jit

NINF = -np.inf
PZERO = 0.0
NZERO = -0.0


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """`curry(f)(a)(b)` is `f(a, b)`."""
    return functools.partial(functools.partial, f)


def xla_computation(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), axis_env: Any = None,
                    in_parts: Any = None, out_parts: Any = None, backend: str | None = None, tuple_args: bool = False,
                    instantiate_const_outputs: bool | None = None, return_shape: bool = False,
                    donate_argnums: int | Sequence[int] = ()) -> Callable[..., Any]:
    """A function of example arguments that gives the program of `fun` for them: `compiler_ir("hlo")` of its lowering.

    With `return_shape` a pair of that and the shapes and dtypes of the results. The arguments that say how the program
    is partitioned or called (`axis_env`, `in_parts`, `out_parts`, `tuple_args`) have to be left out.

    Raises:
      NotImplementedError: one of these is given.
    """
    if axis_env or in_parts is not None or out_parts is not None or tuple_args:
        raise NotImplementedError("xla_computation takes no axis_env, in_parts, out_parts or tuple_args any more: "
                                  "use jax.jit with shardings, or jax.shard_map")
    jitted = jit(fun, static_argnums=static_argnums, donate_argnums=donate_argnums, backend=backend)

    @functools.wraps(fun)
    def computation(*args: Any, **kwargs: Any) -> Any:
        lowered = jitted.lower(*args, **kwargs)
        module = lowered.compiler_ir("hlo")
        return (module, lowered.out_info) if return_shape else module

    return computation


def device_put_sharded(shards: Sequence[PyTree], devices: Sequence[Device]) -> PyTree:
    """The shards stacked along a new leading axis, one for each device.

    Raises ValueError where there are not as many shards as devices.
    """
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    return tree.map(lambda *xs: _across(jnp.stack(xs), devices), *shards)


def device_put_replicated(x: PyTree, devices: Sequence[Device]) -> PyTree:
    """Copies of `x` stacked along a new leading axis, one for each device. Raises ValueError for no devices."""
    if not devices:
        raise ValueError("`devices` argument to `device_put_replicated must be a non-empty sequence.")
    return tree.map(lambda leaf: _across(jnp.stack([jnp.asarray(leaf)] * len(devices)), devices), x)


def _across(stacked: Array, devices: Sequence[Device]) -> Array:
    from styrax.sharding import Mesh, NamedSharding, PartitionSpec

    return device_put(stacked, NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices")))


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """The abstract value itself, with another `weak_type` where one is given."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def in1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, invert: bool = False) -> Array:
    """Which elements of the flattened `ar1` are in `ar2`."""
    return jnp.isin(jnp.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def msort(a: ArrayLike) -> Array:
    """`a` sorted along its first axis."""
    return jnp.sort(a, axis=0)


def _updated(method: str, verb: str) -> Callable[[ArrayLike, Index, ArrayLike], Array]:
    def update(x: ArrayLike, idx: Index, y: ArrayLike, indices_are_sorted: bool = False,
               unique_indices: bool = False) -> Array:
        return getattr(jnp.asarray(x).at[idx], method)(y, indices_are_sorted=indices_are_sorted,
                                                       unique_indices=unique_indices)

    update.__name__ = update.__qualname__ = f"index_{method if method != 'set' else 'update'}"
    update.__doc__ = f"`x` with the elements at `idx` {verb} `y`."
    return update


index_update = _updated("set", "replaced by")
index_add = _updated("add", "increased by")
index_mul = _updated("multiply", "multiplied by")
index_min = _updated("min", "or, where smaller,")
index_max = _updated("max", "or, where greater,")


def tie_in(x: PyTree, y: PyTree) -> PyTree:
    """`y`: once, this made it depend on `x`."""
    return y


def pdot(x: ArrayLike, y: ArrayLike, axis_name: Any, pos_contract: tuple = ((), ()), pos_batch: tuple = ((), ()),
         precision: Any = None) -> Array:
    """The products over the given positions, summed over a mapped axis."""
    from styrax.lax import dot_general

    return psum(dot_general(x, y, (pos_contract, pos_batch), precision=precision), axis_name)


def shuffle(key: ArrayLike, x: ArrayLike, axis: int = 0) -> Array:
    """`x` with the elements along `axis` in random order, each line in its own."""
    return permutation(key, x, axis=axis, independent=True)


def register_keypaths(ty: type, handler: Callable[[Any], Iterable[Any]]) -> None:
    """Key paths of a class that is a node already: `handler` gives the keys of its children."""
    node = tree_util.default_registry.node(ty)
    if node is None:
        raise ValueError(f"{ty} is no registered pytree node")

    def keyed(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, data = node.flatten(x)
        return list(zip(handler(x), children)), data

    node.keys = keyed


def disable_x64() -> AbstractContextManager[None]:
    """A context in which 64-bit types are off."""
    return enable_x64(False)


def sph_harm(m: ArrayLike, n: ArrayLike, theta: ArrayLike, phi: ArrayLike, n_max: int | None = None) -> Array:
    """Spherical harmonics; `theta` is the azimuth here."""
    from styrax.scipy.special import sph_harm_y

    return sph_harm_y(n, m, phi, theta, n_max=n_max)
