"""Programs over eight devices of the host: collectives, a ring, a step of data-parallel training, sharded `jit`.

The child has the host seen as eight devices; arguments are on them before time is taken.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from .catalog import Workload, floats

COUNT = 8
RING = [(i, (i + 1) % COUNT) for i in range(COUNT)]


@functools.cache
def mesh():
    return jax.make_mesh((COUNT,), ("x",), axis_types=(AxisType.Auto,))


def over_devices(in_specs, out_specs):
    """Has a function run on all devices, by `shard_map` inside a `jit`."""

    def decorate(fun):
        @functools.cache
        def mapped():
            return jax.jit(jax.shard_map(fun, mesh=mesh(), in_specs=in_specs, out_specs=out_specs))

        return functools.wraps(fun)(lambda *args: mapped()(*args))

    return decorate


def sharded(*specs):
    """Has a function run by `jit` on arguments that are spread over the devices."""

    def decorate(fun):
        @functools.cache
        def compiled():
            return jax.jit(fun, in_shardings=tuple(NamedSharding(mesh(), s) for s in specs))

        return functools.wraps(fun)(lambda *args: compiled()(*args))

    return decorate


@over_devices(P("x"), P())
def total(x):
    return lax.psum(x, "x")


@over_devices((P("x"), P(None, "x")), P(None, "x"))
def gathered_product(x, w):
    return lax.all_gather(x, "x", tiled=True) @ w


@over_devices(P("x"), P("x"))
def ring(x):
    return lax.fori_loop(0, COUNT, lambda _, c: lax.ppermute(c, "x", RING) + 1, x)


@over_devices(P("x"), P("x"))
def scattered_sum(x):
    return lax.psum_scatter(x, "x", tiled=True)


@over_devices(P("x"), P(None, "x"))
def exchange(x):
    return lax.all_to_all(x, "x", 1, 0, tiled=True)


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2)


@over_devices((P(), P(), P("x"), P("x")), (P(), P()))
def training_step(first, second, x, y):
    gradients = jax.grad(loss)((first, second), x, y)
    return tuple(w - 0.1 * lax.pmean(g, "x") for w, g in zip((first, second), gradients, strict=True))


@functools.cache
def mapped_share():
    return jax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")


@functools.cache
def mapped_layer():
    return jax.pmap(lambda x, w: jnp.tanh(x @ w).sum(), in_axes=(0, None))


@sharded(P("x"))
def sharded_map(x):
    return jnp.sin(x) * 2 + x


@sharded(P("x"), P())
def sharded_product(x, w):
    return jnp.tanh(x @ w)


def one(shape, rng):
    return floats(shape, rng=rng)


def layer(shape, rng):
    rows, inner, outer = shape
    return floats((rows, inner), (inner, outer), rng=rng)


def mapped_layer_arguments(shape, rng):
    rows, inner, outer = shape
    return floats((COUNT, rows, inner), (inner, outer), rng=rng)


def training(shape, rng):
    rows, inner, hidden, outer = shape
    return floats((inner, hidden), (hidden, outer), (rows, inner), (rows, outer), rng=rng)


def spread(*specs):
    """Puts arguments on the devices."""
    return lambda arguments: [
        jax.device_put(x, NamedSharding(mesh(), s)) for x, s in zip(arguments, specs, strict=True)]


ROWS = spread(P("x"))
SMALL_SUM = Workload("psum of little", total, one, [(64,)], place=ROWS)
LARGE_SUM = Workload("psum of much", total, one, [(8192, 1024)], place=ROWS, tolerance=1e-3)
GATHERED_PRODUCT = Workload(
    "all-gather and product", gathered_product, layer, [(1024, 512, 512)], place=spread(P("x"), P(None, "x")),
    tolerance=1e-3,
)  # fmt: skip
RING_OF_PERMUTES = Workload("ring of permutes", ring, one, [(1024, 128)], place=ROWS)
SCATTERED_SUM = Workload("psum_scatter", scattered_sum, one, [(8192, 256)], place=ROWS, tolerance=1e-3)
EXCHANGE = Workload("all_to_all", exchange, one, [(1024, 1024)], place=ROWS)
TRAINING_STEP = Workload(
    "data-parallel step", training_step, training, [(1024, 64, 256, 8)],
    place=spread(P(), P(), P("x"), P("x")), tolerance=1e-2,
)  # fmt: skip
MAPPED_SHARE = Workload(
    "pmap with psum", lambda x: mapped_share()(x), one, [(COUNT, 10_000)], place=ROWS, tolerance=1e-2
)
MAPPED_LAYER = Workload(
    "pmap of a layer", lambda x, w: mapped_layer()(x, w), mapped_layer_arguments, [(128, 256, 256)],
    place=spread(P("x"), P()), tolerance=1e-2,
)  # fmt: skip
SHARDED_MAP = Workload("sharded jit, elementwise", sharded_map, one, [(8192, 1024)], place=ROWS)
SHARDED_PRODUCT = Workload(
    "sharded jit, product", sharded_product, layer, [(1024, 512, 512)], place=spread(P("x"), P()), tolerance=1e-3
)
