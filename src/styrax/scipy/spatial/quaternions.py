"""Unit quaternions (x, y, z, w) in the last axis of arrays, and what else stands for a rotation."""

from __future__ import annotations

import numpy as np

from styrax import numpy as jnp
from styrax.core.arrays.array import Array

_SMALL = 1e-3  # angles below are treated by series


def normalized(q: Array) -> Array:
    return q / jnp.sqrt(jnp.sum(q * q, axis=-1, keepdims=True))


def product(p: Array, q: Array) -> Array:
    """The quaternion of q's rotation followed by p's."""
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = pw * qv + qw * pv + jnp.cross(pv, qv)
    return jnp.concatenate([vector, pw * qw - jnp.sum(pv * qv, axis=-1, keepdims=True)], axis=-1)


def with_positive_scalar(q: Array) -> Array:
    """The one of q and -q, which are the same rotation, with w ≥ 0."""
    return jnp.where(q[..., 3:] < 0, -q, q)


def canonical(q: Array) -> Array:
    """The one of q and -q whose first element other than 0 of w, x, y, z is positive."""
    x, y, z, w = (q[..., i : i + 1] for i in range(4))
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return jnp.where(negative, -q, q)


def _length(v: Array) -> Array:
    """Euclidean lengths along the last axis, which is kept; the gradient at 0 is 0."""
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


def magnitude(q: Array) -> Array:
    """Angles of rotation, from 0 to π."""
    return 2 * jnp.arctan2(_length(q[..., :3]), jnp.abs(q[..., 3:]))[..., 0]


def to_matrix(q: Array) -> Array:
    """Matrices [..., 3, 3] that rotate columns."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: Array) -> Array:
    """Quaternions of rotation matrices, by the element of greatest absolute value.

    Source: Markley, Unit quaternion from rotation matrix (2008).
    """
    d = [m[..., i, i] for i in range(3)]
    trace = d[0] + d[1] + d[2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * d[i], j: m[..., j, i] + m[..., i, j], k: m[..., k, i] + m[..., i, k],
                 3: m[..., k, j] - m[..., j, k]}
        candidates.append(jnp.stack([parts[n] for n in range(4)], axis=-1))
    candidates.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1],
                                 1 + trace], axis=-1))
    greatest = jnp.argmax(jnp.stack([*d, trace], axis=-1), axis=-1)[..., None]
    q = candidates[3]
    for i in range(3):
        q = jnp.where(greatest == i, candidates[i], q)
    return normalized(q)


def to_rotvec(q: Array) -> Array:
    """Vectors along the axes of rotation, of the angles' lengths from 0 to π."""
    q = with_positive_scalar(q)
    length = _length(q[..., :3])
    angle = 2 * jnp.arctan2(length, q[..., 3:])
    small = angle <= _SMALL
    half = jnp.where(small, 1, angle) / 2
    series = 2 + angle**2 / 12 + 7 * angle**4 / 2880
    return jnp.where(small, series, 2 * half / jnp.sin(half)) * q[..., :3]


def from_rotvec(v: Array) -> Array:
    angle = _length(v)
    small = angle <= _SMALL
    safe = jnp.where(small, 1, angle)
    series = 0.5 - angle**2 / 48 + angle**4 / 3840
    return jnp.concatenate([jnp.where(small, series, jnp.sin(safe / 2) / safe) * v, jnp.cos(angle / 2)], axis=-1)


def to_mrp(q: Array) -> Array:
    """Modified Rodrigues parameters: the axes, times tan(angle / 4)."""
    q = with_positive_scalar(q)
    return q[..., :3] / (1 + q[..., 3:])


def from_mrp(v: Array) -> Array:
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    return jnp.concatenate([2 * v, 1 - square], axis=-1) / (1 + square)


def mean(q: Array, weights: Array) -> Array:
    """The rotation of least squared chordal distance to those of q, [n, 4].

    Source: Markley, Cheng, Crassidis and Oshman, Averaging quaternions (2007).
    """
    _, vectors = jnp.linalg.eigh(jnp.einsum("n,ni,nj->ij", weights, q, q, precision="highest"))
    return vectors[:, -1]


# -- Euler angles -------------------------------------------------------------------------------------
def axes_of(seq: str) -> tuple[list[int], bool]:
    """The axes (0, 1, 2) of a sequence such as "zxz", and whether they turn with the object ("ZXZ").

    Raises ValueError for other letters, and where neighbours are one axis.
    """
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError("Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], "
                         f"got {seq}")
    if any(a == b for a, b in zip(seq, seq[1:])):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(c) for c in seq.lower()], seq.isupper()


def from_euler(seq: str, angles: Array) -> Array:
    """Quaternions of rotations about one to three axes; angles [..., axes]."""
    axes, intrinsic = axes_of(seq)
    result = None
    for n, axis in enumerate(axes):
        half = angles[..., n] / 2
        zero = jnp.zeros_like(half)
        parts = [zero, zero, zero, jnp.cos(half)]
        parts[axis] = jnp.sin(half)
        q = jnp.stack(parts, axis=-1)
        result = q if result is None else product(result, q) if intrinsic else product(q, result)
    assert result is not None
    return result


def to_euler(seq: str, q: Array) -> Array:
    """Angles [..., 3] about three axes. Where only a sum of the first and third is determined, the third is 0.

    Source: Bernardes and Viollet, Quaternion to Euler angles conversion: a direct, general and computationally
    efficient method (2022).
    """
    axes, intrinsic = axes_of(seq)
    i, j, k = axes[::-1] if intrinsic else axes
    proper = i == k
    if proper:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    at_start, at_end = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
    first, third = half_sum - half_difference, half_sum + half_difference
    alone = jnp.where(at_start, 2 * half_sum, 2 * half_difference * (1 if intrinsic else -1))
    if not proper:
        third, middle = third * sign, middle - np.pi / 2
    if intrinsic:
        first, third, alone = third, first, alone if proper else alone * sign
    locked = at_start | at_end
    angles = jnp.stack([jnp.where(locked, alone, first), middle, jnp.where(locked, 0, third)], axis=-1)
    return jnp.where(angles < -np.pi, angles + 2 * np.pi, jnp.where(angles > np.pi, angles - 2 * np.pi, angles))
