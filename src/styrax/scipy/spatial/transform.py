"""Rotations of space, and interpolation between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from styrax import numpy as jnp
from styrax import random
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike, DTypeLike, Index
from styrax.numpy.promotion import check_arraylike, promote_dtypes_inexact

from . import quaternions


def _floats(*args: ArrayLike) -> list[Array]:
    return [jnp.asarray(x, dtype=x.dtype) for x in promote_dtypes_inexact(*map(jnp.asarray, args))]


class Rotation(NamedTuple):
    """A rotation, or several. A tuple, and thus a tree that transformations take.

    Attributes:
      quat: unit quaternions (x, y, z, w), shape [4] or [n, 4].
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of all as one sequence."""
        return cls(jnp.concatenate([r.quat for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes, one after the other.

        Args:
          seq: the axes, such as "zyx" for fixed ones, "ZYX" for those that turn with the object.
          angles: [axes] or [n, axes]; a number for one axis.

        Raises ValueError for other letters, axes that follow themselves, and other numbers of angles.
        """
        if not 1 <= len(seq) <= 3:
            raise ValueError(f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}")
        quaternions.axes_of(seq)
        check_arraylike("from_euler", angles)
        (values,) = _floats(angles)
        values = jnp.atleast_1d(values)
        if values.shape[-1] != len(seq):
            raise ValueError(f"Expected {len(seq)} angles for the axes {seq}, got {values.shape[-1]}")
        return cls(quaternions.from_euler(seq, jnp.deg2rad(values) if degrees else values))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotations of orthogonal matrices, shape [..., 3, 3]."""
        return cls(quaternions.from_matrix(*_floats(matrix)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotations of modified Rodrigues parameters, shape [..., 3]."""
        return cls(quaternions.from_mrp(*_floats(mrp)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """The rotations of quaternions (x, y, z, w) of any length, shape [..., 4]."""
        return cls(quaternions.normalized(*_floats(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations about vectors, shape [..., 3], by angles that are their lengths."""
        (vectors,) = _floats(rotvec)
        return cls(quaternions.from_rotvec(jnp.deg2rad(vectors) if degrees else vectors))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The rotation that moves nothing, or `num` of them."""
        one = jnp.array([0, 0, 0, 1], dtype=dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: ArrayLike, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, from the uniform distribution (Shoemake, 1992)."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer: Index) -> Rotation:  # type: ignore[override]
        """Some of the rotations. Raises TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """The number of rotations. Raises TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The other's rotation, then this one."""
        shape = jnp.broadcast_shapes(self.quat.shape, other.quat.shape)
        p, q = promote_dtypes_inexact(self.quat, other.quat)
        return Rotation(quaternions.product(jnp.broadcast_to(p, shape), jnp.broadcast_to(q, shape)))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors, shape [3] or [n, 3], rotated; by the inverse if asked for.

        Raises ValueError for other shapes.
        """
        matrix, v = _floats(self.as_matrix(), vectors)
        if v.ndim == 0 or v.shape[-1] != 3:
            raise ValueError(f"Expected vectors of shape (..., 3), got {v.shape}")
        shape = jnp.broadcast_shapes(matrix.shape[:-1], v.shape)
        matrix = jnp.broadcast_to(jnp.swapaxes(matrix, -1, -2) if inverse else matrix, (*shape, 3))
        return jnp.sum(matrix * jnp.broadcast_to(v, shape)[..., None, :], axis=-1)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes, [3] or [n, 3]: the inverse of `from_euler`.

        The first and third lie between -π and π; the second from 0 to π where the first axis comes again, and
        from -π/2 to π/2 otherwise. Where only a sum of the others is determined, the third is 0.

        Raises ValueError for sequences that `from_euler` refuses, and for those of other than three axes.
        """
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        angles = quaternions.to_euler(seq, self.quat)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Orthogonal matrices, [3, 3] or [n, 3, 3]."""
        return quaternions.to_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, [3] or [n, 3]: the axis, times tan(angle / 4)."""
        return quaternions.to_mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axes, [3] or [n, 3], of the angles' lengths."""
        vectors = quaternions.to_rotvec(self.quat)
        return jnp.rad2deg(vectors) if degrees else vectors

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Unit quaternions, [4] or [n, 4].

        Args:
          canonical: of the two that are one rotation, the one whose first element other than 0 of w, x, y, z is
            positive.
          scalar_first: (w, x, y, z) instead of (x, y, z, w).
        """
        q = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(jnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], axis=-1))

    def magnitude(self) -> Array:
        """The angles of rotation, from 0 to π."""
        return quaternions.magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean of the rotations, with [n] weights.

        Raises ValueError for other numbers of weights, TypeError for a single rotation.
        """
        count = len(self)
        values = jnp.ones(count, self.quat.dtype) if weights is None else jnp.asarray(weights, dtype=self.quat.dtype)
        if values.shape != (count,):
            raise ValueError("Expected `weights` to have number of values equal to number of rotations, got "
                             f"{values.shape[0] if values.ndim else 1} values and {count} rotations.")
        return Rotation(quaternions.mean(self.quat, values))

    @property
    def single(self) -> bool:
        """Whether this is one rotation, and not a sequence."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """The rotations between given ones at constant angular velocity: `Slerp.init(times, rotations)(t)`.

    Attributes:
      times: [n].
      timedelta: [n - 1], the intervals' lengths.
      rotations: those at the intervals' starts.
      rotvecs: [n - 1, 3], the rotations from there to the intervals' ends.
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Interpolation between two rotations at least, at rising times.

        Raises ValueError for a single rotation, and for times that are no vector of the rotations' number.
        """
        if rotations.single or len(rotations) < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        (t,) = _floats(times)
        if t.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {t.ndim} dimensions.")
        if t.shape[0] != len(rotations):
            raise ValueError("Expected number of rotations to be equal to number of timestamps given, got "
                             f"{len(rotations)} rotations and {t.shape[0]} timestamps.")
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(t, jnp.diff(t), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at a time or a vector of times; outside, the first and last interval go on.

        Raises ValueError for arrays of more axes.
        """
        (t,) = _floats(times)
        if t.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        interval = jnp.clip(jnp.searchsorted(self.times, t, side="left") - 1, 0, self.timedelta.shape[0] - 1)
        part = (t - self.times[interval]) / self.timedelta[interval]
        return Rotation(self.rotations.quat[interval]) * Rotation.from_rotvec(self.rotvecs[interval] * part[..., None])
