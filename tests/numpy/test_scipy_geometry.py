"""Rotations, interpolation and nearest vectors: values, derivatives, shapes and errors as JAX's and SciPy's."""

from __future__ import annotations

from typing import Any

import jax
import jax.scipy.cluster.vq
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.spatial.transform
import numpy as np
import pytest
import scipy.ndimage
import scipy.spatial.transform

import styrax
import styrax.numpy
import styrax.scipy

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(4, 5)).astype(np.float32)
PLACES = [RNG.uniform(-4, 8, size=7).astype(np.float32) for _ in range(2)]


def outcome(call: Any, package: Any) -> Any:
    """The results of a call, or the class of its error."""
    try:
        out = call(package)
    except Exception as error:
        return type(error).__name__
    return [np.asarray(x) for x in package.tree.leaves(out)]


def check(call: Any, label: str, atol: float = 1e-5) -> None:
    ours, theirs = outcome(call, styrax), outcome(call, jax)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs, label
        return
    assert [(x.shape, x.dtype) for x in ours] == [(x.shape, x.dtype) for x in theirs], label
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol, err_msg=label)


# -- map_coordinates ----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_integer_places(mode: str) -> None:
    places = [np.array([-3, 0, 2, 5], np.int32), np.array([1, 4, -2, 7], np.int32)]
    for order in (0, 1):
        for kinds in ((0, 1), (0, 0)):
            mixed = [places[0].astype(np.float32) if kinds[1] else places[0], places[1]]
            check(lambda p: p.scipy.ndimage.map_coordinates(p.numpy.asarray(IMAGE), mixed, order, mode),  # noqa: B023
                  f"{order} {kinds}")


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_samples_between_samples(mode: str, order: int) -> None:
    for dtype in ("float32", "int32", "uint8", "bool", "complex64"):
        image = (10 * IMAGE).astype(dtype)
        check(lambda p: p.scipy.ndimage.map_coordinates(p.numpy.asarray(image), PLACES, order, mode, cval=2),  # noqa: B023
              f"{dtype}", 1e-4)
    if mode != "wrap":  # which SciPy defines otherwise
        expected = scipy.ndimage.map_coordinates(IMAGE, PLACES, order=order, mode=mode)
        inside = [(p >= 0) & (p <= n - 1) for p, n in zip(PLACES, IMAGE.shape)]
        kept = np.logical_and(*inside) if mode == "constant" else slice(None)
        ours = styrax.scipy.ndimage.map_coordinates(IMAGE, PLACES, order, mode)
        np.testing.assert_allclose(np.asarray(ours)[kept], expected[kept], atol=1e-5)

    def slopes(package: Any) -> Any:
        def cost(image: Any, *places: Any) -> Any:
            return (package.scipy.ndimage.map_coordinates(image, places, order, mode) ** 2).sum()
        return package.vmap(package.grad(cost, argnums=(0, 1, 2)), in_axes=(None, 0, 0))(
            IMAGE, *(np.stack([p, p[::-1]]) for p in PLACES))

    check(slopes, "gradients", 1e-4)


CALLS = {
    "a mode": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, PLACES, 1, "grid-wrap"),
    "an order": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, PLACES, 2),
    "a rank": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, PLACES[:1], 1),
    "shapes": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, [PLACES[0], PLACES[1][:2]], 1),
    "broadcasting": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, [PLACES[0][:, None], PLACES[1][:2]], 1),
    "scalars": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, [1.5, 2.0], 1),
    "a list": lambda p: p.scipy.ndimage.map_coordinates([1.0, 2.0], [p.numpy.array([0.5])], 1),
    "complex places": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, [PLACES[0] + 0j, PLACES[1]], 1),
    "integers": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, [np.int32([1, 5]), np.int32([1, 2])], 1),
    "no samples": lambda p: p.scipy.ndimage.map_coordinates(IMAGE[:0], PLACES, 1),
    "one sample": lambda p: p.scipy.ndimage.map_coordinates(IMAGE[:1], PLACES, 1, "mirror"),
    "an array outside": lambda p: p.scipy.ndimage.map_coordinates(IMAGE, PLACES, 1, cval=p.numpy.ones(1)),
    "vq": lambda p: p.scipy.cluster.vq.vq(IMAGE, IMAGE[1:3]),
    "vq of numbers": lambda p: p.scipy.cluster.vq.vq(IMAGE[:, 0], IMAGE[1:3, 0]),
    "vq of integers": lambda p: p.scipy.cluster.vq.vq(np.arange(4).reshape(2, 2), np.ones((2, 2), int)),
    "vq's ranks": lambda p: p.scipy.cluster.vq.vq(IMAGE, IMAGE[0]),
    "vq of scalars": lambda p: p.scipy.cluster.vq.vq(np.ones(()), np.ones(())),
    "vq of nothing": lambda p: p.scipy.cluster.vq.vq(IMAGE[:0], IMAGE),
    "vq with no code": lambda p: p.scipy.cluster.vq.vq(IMAGE, IMAGE[:0]),
    "vq of lists": lambda p: p.scipy.cluster.vq.vq([[1.0]], [[1.0]]),
    "an integral": lambda p: p.scipy.integrate.trapezoid(IMAGE, dx=0.5, axis=0),
    "an integral at places": lambda p: p.scipy.integrate.trapezoid(IMAGE, x=np.float32([0, 1, 3, 3.5, 6])),
}


@pytest.mark.parametrize("call", CALLS)
def test_arguments_of_samplers(call: str) -> None:
    check(CALLS[call], call)


# -- RegularGridInterpolator --------------------------------------------------------------------------
GRID = np.float32([1, 2, 3, 4.5]), np.float32([0, 1, 2, 5, 5.5])
POINTS = np.float32([[1.5, 0.5], [2, 5], [0, 1], [3, 4], [4.5, 5.5], [4.6, 0], [np.nan, 1]])


@pytest.mark.parametrize("options", [{}, {"fill_value": None}, {"fill_value": 7}, {"method": "nearest"},
                                     {"method": "nearest", "fill_value": None}], ids=str)
def test_interpolation(options: dict[str, Any]) -> None:
    def at(package: Any, values: Any, points: Any) -> Any:
        return package.scipy.interpolate.RegularGridInterpolator(GRID, values, **options)(points)

    for values in (IMAGE, IMAGE.astype(int), IMAGE + 1j, np.stack([IMAGE, -IMAGE], -1), IMAGE.astype(np.float16)):
        check(lambda p: at(p, values, POINTS[:6]), "values")  # noqa: B023
        check(lambda p: p.jit(lambda v, x: at(p, v, x))(values, POINTS[:6]), "jit")  # noqa: B023
    check(lambda p: p.vmap(p.grad(lambda v, x: (at(p, v, x) ** 2).sum(), argnums=(0, 1)), in_axes=(None, 0))(
        IMAGE, POINTS[[0, 1, 3], None]), "gradients", 1e-4)


GRIDS = {
    "a point": lambda r, p: r(GRID, IMAGE)(POINTS[0]),
    "a tuple": lambda r, p: r(GRID, IMAGE)((POINTS[:2, 0], POINTS[:2, 1])),
    "a tuple that broadcasts": lambda r, p: r(GRID, IMAGE)((POINTS[:3, :1], POINTS[:2, 1])),
    "a list": lambda r, p: r(GRID, IMAGE)([1.5, 0.5]),
    "points in a matrix": lambda r, p: r(GRID, IMAGE)(POINTS[:4].reshape(2, 2, 2)),
    "no points": lambda r, p: r(GRID, IMAGE)(POINTS[:0]),
    "other axes": lambda r, p: r(GRID, IMAGE)(np.ones((2, 3))),
    "methods": lambda r, p: r(GRID, IMAGE, "cubic"),
    "methods of calls": lambda r, p: r(GRID, IMAGE)(POINTS, "cubic"),
    "bounds": lambda r, p: r(GRID, IMAGE, bounds_error=True),
    "too many axes": lambda r, p: r((*GRID, GRID[0]), IMAGE),
    "values in lists": lambda r, p: r(([1.0, 2.0], [1.0, 2.0]), [[1.0, 2], [3, 4]]),
    "complex outside": lambda r, p: r(GRID, IMAGE, fill_value=1j),
    "a line": lambda r, p: r(GRID[:1], IMAGE[:, 0])(POINTS[:, 0]),
    "a line's tuple": lambda r, p: r(GRID[:1], IMAGE[:, 0])(POINTS[:, :1]),
    "a number": lambda r, p: r(GRID[:1], IMAGE[:, 0])(1.5),
    "a tree": lambda r, p: p.tree.leaves(p.tree.map(lambda x: x + 1, r(GRID, IMAGE))),
}


@pytest.mark.parametrize("call", GRIDS)
def test_arguments_of_interpolators(call: str) -> None:
    check(lambda p: GRIDS[call](p.scipy.interpolate.RegularGridInterpolator, p), call)


# -- rotations ----------------------------------------------------------------------------------------
QUATERNIONS = np.concatenate([RNG.normal(size=(5, 4)), [[0, 0, 0, 1], [1, 0, 0, 1e-3], [0, -1, 0, 0]]]).astype("f")
SEQUENCES = ["xyz", "XYZ", "zxz", "ZYZ", "yxz", "ZYX", "xzx", "YZY"]
FORMS = ["as_quat", "as_matrix", "as_rotvec", "as_mrp", "inv", "magnitude", "mean"]


def rotation(package: Any) -> Any:
    return package.scipy.spatial.transform.Rotation


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_rotations(form: str) -> None:
    check(lambda p: getattr(rotation(p).from_quat(QUATERNIONS[0]), form)(), "one")
    check(lambda p: p.jit(lambda q: getattr(rotation(p).from_quat(q), form)())(QUATERNIONS[:5]), "several")
    if form != "mean":
        check(lambda p: p.vmap(p.jacrev(lambda q: p.tree.leaves(getattr(rotation(p).from_quat(q), form)())))(
            QUATERNIONS[:5]), "derivatives", 1e-4)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq: str) -> None:
    ours = rotation(styrax).from_quat(QUATERNIONS[:5]).as_euler(seq, degrees=True)
    theirs = scipy.spatial.transform.Rotation.from_quat(QUATERNIONS[:5]).as_euler(seq, degrees=True)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    again = rotation(styrax).from_euler(seq, ours, degrees=True).as_matrix()
    np.testing.assert_allclose(again, rotation(styrax).from_quat(QUATERNIONS[:5]).as_matrix(), atol=1e-5)
    middle = 90.0 if len(set(seq)) == 3 else 0.0
    locked = rotation(styrax).from_euler(seq, styrax.numpy.array([20.0, middle, 30.0]), degrees=True)
    again = rotation(styrax).from_euler(seq, locked.as_euler(seq))
    np.testing.assert_allclose(again.as_matrix(), locked.as_matrix(), atol=2e-3)


def test_matrices_of_all_kinds_come_back() -> None:
    matrices = scipy.spatial.transform.Rotation.from_quat(QUATERNIONS).as_matrix().astype(np.float32)
    check(lambda p: rotation(p).from_matrix(matrices), "matrices")
    np.testing.assert_allclose(rotation(styrax).from_matrix(matrices).as_matrix(), matrices, atol=1e-5)


def test_derivatives_at_no_rotation_are_finite() -> None:
    def matrix(v: Any) -> Any:
        return rotation(styrax).from_rotvec(v).as_matrix()

    slopes = np.asarray(styrax.jacrev(matrix)(np.zeros(3, np.float32)))
    for axis in range(3):
        expected = np.cross(np.eye(3)[axis], np.eye(3)).T
        np.testing.assert_allclose(slopes[..., axis], expected, atol=1e-6)
    back = styrax.jacrev(lambda q: rotation(styrax).from_quat(q).as_rotvec())(np.float32([0, 0, 0, 1]))
    np.testing.assert_allclose(back, np.eye(3, 4) * 2, atol=1e-6)


ROTATIONS = {
    "len": lambda R, p, r, rs: len(rs),
    "len of one": lambda R, p, r, rs: len(r),
    "single": lambda R, p, r, rs: (r.single, rs.single),
    "an item": lambda R, p, r, rs: rs[1],
    "items": lambda R, p, r, rs: rs[1:3],
    "an item of one": lambda R, p, r, rs: r[0],
    "products": lambda R, p, r, rs: (r * rs, rs * r, rs * rs),
    "products of other sizes": lambda R, p, r, rs: rs * rs[:2],
    "an identity": lambda R, p, r, rs: R.identity(),
    "concatenation": lambda R, p, r, rs: R.concatenate([rs, rs]),
    "concatenation of ranks": lambda R, p, r, rs: R.concatenate([r, rs]),
    "concatenation of nothing": lambda R, p, r, rs: R.concatenate([]),
    "application": lambda R, p, r, rs: [x.apply(v, inverse) for x in (r, rs) for inverse in (True, False)
                                        for v in (np.float32([1, 2, 3]), np.arange(15.0).reshape(5, 3))],
    "application to integers": lambda R, p, r, rs: r.apply(np.arange(3)),
    "application to other shapes": lambda R, p, r, rs: rs.apply(np.ones((2, 3))),
    "application in the plane": lambda R, p, r, rs: r.apply(np.ones(2)),
    "one axis": lambda R, p, r, rs: R.from_euler("x", 0.3),
    "two axes": lambda R, p, r, rs: R.from_euler("xy", np.array([30, 20]), degrees=True),
    "angles of one axis": lambda R, p, r, rs: R.from_euler("x", np.float32([[0.3], [0.4]])),
    "too many angles": lambda R, p, r, rs: R.from_euler("x", np.float32([0.3, 0.4])),
    "angles in a list": lambda R, p, r, rs: R.from_euler("xyz", [0.3, 0.4, 0.5]),
    **{f"axes {seq}": lambda R, p, r, rs, seq=seq: R.from_euler(seq, np.ones(max(len(seq), 1), np.float32))
       for seq in ("xX", "abc", "xx", "", "xyzx")},
    **{f"angles {seq}": lambda R, p, r, rs, seq=seq: r.as_euler(seq) for seq in ("x", "xy", "abc", "xxy")},
    "a quaternion of zeros": lambda R, p, r, rs: R.from_quat(np.zeros(4, np.float32)),
    "vectors": lambda R, p, r, rs: R.from_rotvec(np.float32([[0.1, 2, 3], [0, 0, 0], [1e-4, 2e-4, 0]])),
    "vectors in degrees": lambda R, p, r, rs: (R.from_rotvec(np.float32([10, 20, 30]), degrees=True),
                                               r.as_rotvec(degrees=True)),
    "Rodrigues": lambda R, p, r, rs: R.from_mrp(np.float32([[0.1, 0.2, 0.3], [0, 0, 0]])),
    "orders": lambda R, p, r, rs: (rs.as_quat(canonical=True), rs.as_quat(scalar_first=True)),
    "weights": lambda R, p, r, rs: rs.mean(np.arange(5)).as_matrix(),
    "other weights": lambda R, p, r, rs: rs.mean(np.ones(2)),
    "iteration": lambda R, p, r, rs: list(rs),
    "truth": lambda R, p, r, rs: bool(r),
    "interpolation": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(5) ** 2, rs)(
        np.float32([0, 0.5, 3, 16])),
    "interpolation at once": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(5.0), rs)(2.5),
    "a slerp": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(5.0), rs),
    "other times": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(2.0), rs),
    "interpolation of one": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(1.0), r),
    "times in a matrix": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.ones((1, 5)), rs),
    "calls with a matrix": lambda R, p, r, rs: p.scipy.spatial.transform.Slerp.init(np.arange(5.0), rs)(
        np.ones((1, 2))),
}


@pytest.mark.parametrize("call", ROTATIONS)
def test_calls_of_rotations(call: str) -> None:
    check(lambda p: ROTATIONS[call](rotation(p), p, rotation(p).from_quat(QUATERNIONS[0]),
                                    rotation(p).from_quat(QUATERNIONS[:5])), call)


def test_random_rotations_are_uniform() -> None:
    for key in (styrax.random.key(0), styrax.random.PRNGKey(1)):
        matrices = rotation(styrax).random(key, 4000).as_matrix()
        products = matrices @ matrices.swapaxes(1, 2)
        np.testing.assert_allclose(products, np.broadcast_to(np.eye(3), (4000, 3, 3)), atol=1e-5)
        np.testing.assert_allclose(matrices.mean(0), np.zeros((3, 3)), atol=0.05)
    assert rotation(styrax).random(styrax.random.key(0)).single
    assert rotation(styrax).identity(2).quat.shape == (2, 4)


def test_slerp_is_scipys() -> None:
    times = np.float32([0, 1, 3, 4, 7])
    theirs = scipy.spatial.transform.Slerp(times, scipy.spatial.transform.Rotation.from_quat(QUATERNIONS[:5]))
    ours = styrax.scipy.spatial.transform.Slerp.init(times, rotation(styrax).from_quat(QUATERNIONS[:5]))
    at = np.float32([0, 0.2, 1, 2.9, 3, 6.5, 7])
    np.testing.assert_allclose(ours(at).as_matrix(), theirs(at).as_matrix(), atol=1e-5)
