"""Reads and writes at computed places."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, floats


@jax.jit
def gather(x, indices):
    return x[indices]


@jax.jit
def looked_up(table, numbers):
    return jnp.take(table, numbers, mode="fill")


@jax.jit
def scatter_add(x, indices, updates):
    return x.at[indices].add(updates)


@jax.jit
def segment_sum(data, segments):
    return jax.ops.segment_sum(data, segments, num_segments=1000)


def look_ups(shape, rng):
    size, count = shape
    return [rng.integers(0, 256, size).astype(np.uint8), rng.integers(0, 2 * size, count).astype(np.int32)]


def gather_arguments(shape, rng):
    size, width, count = shape
    return [*floats((size, width), rng=rng), rng.integers(0, size, count).astype(np.int32)]


def scatter_arguments(shape, rng):
    size, width, count = shape
    x, updates = floats((size, width), (count, width), rng=rng)
    return [x, rng.integers(0, size, count).astype(np.int32), updates]


def segment_arguments(shape, rng):
    return [*floats(shape, rng=rng), np.sort(rng.integers(0, 1000, shape[0])).astype(np.int32)]


@jax.jit
def joined(pieces):
    return jnp.concatenate(pieces) * 2


def pieces(shape, rng):
    count, size = shape
    return [floats(*[(size,)] * count, rng=rng)]


def numpy_scatter_add(x, indices, updates):
    out = x.copy()
    np.add.at(out, indices, updates)
    return out


def draw_places(rng):
    return rng.integers(1000, 50_000), rng.integers(1, 64), rng.integers(1000, 100_000)


GATHER = Workload(
    "gather", gather, gather_arguments, [(100_000, 16, 100_000), (1000, 1, 1000)], draw_places,
    numpy=lambda x, i: x[i],
)  # fmt: skip
SCATTER_ADD = Workload(
    "scatter-add", scatter_add, scatter_arguments, [(100_000, 16, 100_000), (1000, 1, 1000)], draw_places,
    numpy=numpy_scatter_add,
)  # fmt: skip
SEGMENT_SUM = Workload(
    "segment sum", segment_sum, segment_arguments, [(1_000_000,), (10_000, 16)],
    lambda rng: (rng.integers(10_000, 300_000), rng.integers(1, 8)), tolerance=1e-3,
)  # fmt: skip
JOINED = Workload(
    "many arrays joined", joined, pieces, [(100, 3000), (30, 100)],
    lambda rng: (rng.integers(2, 150), rng.integers(10, 5000)), numpy=lambda pieces: np.concatenate(pieces) * 2,
)  # fmt: skip
BYTES_BY_NUMBER = Workload(
    "bytes by number, some outside", looked_up, look_ups, [(100_000, 100_000), (256, 1_000_000)],
    lambda rng: (rng.integers(10, 1_000_000), rng.integers(1000, 300_000)),
)  # fmt: skip
