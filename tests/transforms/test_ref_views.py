"""Views of references in another shape, order or dtype: what is read and written through them, and in programs."""

import jax as theirs
import jax.numpy as their_np
import numpy as np
import pytest

import styrax as ours
import styrax.numpy as our_np
from styrax.experimental import pallas


def _rows(x, dtype):
    """The bits of a matrix as another dtype, the parts of an element in rows."""
    dtype = np.dtype(dtype)
    ratio = x.dtype.itemsize // dtype.itemsize
    parts = x.view(dtype).reshape(*x.shape, ratio)
    return np.moveaxis(parts, -1, -2).reshape(*x.shape[:-2], x.shape[-2] * ratio, x.shape[-1])


# a name: the view of a reference to a [3, 4], and the elements that it shows by their positions
VIEWS = {
    "reshape": (lambda r: r.reshape(-1), lambda p: p.reshape(-1)),
    "T": (lambda r: r.T, lambda p: p.T),
    "reshape-index": (lambda r: r.reshape(2, 6).at[1], lambda p: p.reshape(2, 6)[1]),
    "index-reshape": (lambda r: r.at[1:3].reshape((2, 2, 2)), lambda p: p[1:3].reshape(2, 2, 2)),
    "index-T-index": (lambda r: r.at[0:2].T.at[1:3], lambda p: p[:2].T[1:3]),
    "transpose-reshape": (lambda r: r.transpose((1, 0)).reshape(6, 2), lambda p: p.T.reshape(6, 2)),
    "integers-T": (lambda r: r.at[np.array([2, 0])].T, lambda p: p[[2, 0]].T),
}
POSITIONS = np.arange(12).reshape(3, 4)
X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def _read(view):
    def read(x):
        return view(ours.new_ref(x))[...]
    return read


def _update(view):
    def update(x, y):
        ref = ours.new_ref(x)
        shown = view(ref)
        old = shown.swap(our_np.sin(shown[...]) * y)
        shown.addupdate(3 * old)
        shown[0] = shown[0] * 2
        return ref[...]
    return update


def _functional(elements):
    """The same on arrays, by the positions of the elements."""
    at = elements(POSITIONS)

    def update(x, y):
        flat = our_np.ravel(x)
        old = flat[at]
        flat = flat.at[at].set(our_np.sin(old) * y)
        flat = flat.at[at].add(3 * old)
        return flat.at[at[0]].set(flat[at[0]] * 2).reshape(3, 4)
    return update


def _same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("jit", [ours.jit, lambda f: f], ids=["jit", "eager"])
def test_what_is_read_and_written(name, jit):
    view, elements = VIEWS[name]
    assert np.array_equal(jit(_read(view))(X), X.reshape(-1)[elements(POSITIONS)])
    _same(jit(_update(view))(X, 2.0), _functional(elements)(our_np.asarray(X), 2.0))


@pytest.mark.parametrize("name", VIEWS)
def test_transformations(name):
    view, elements = VIEWS[name]
    update, expected = _update(view), _functional(elements)
    xs, ys = np.stack([X, X * 3, -X]), np.array([1.0, 2.0, 0.5], np.float32)

    def loss(f):
        return lambda x, y: (f(x, y) ** 2 * POSITIONS).sum()

    for dim in range(3):
        moved = np.moveaxis(xs, 0, dim)
        _same(ours.vmap(update, (dim, 0))(moved, ys), ours.vmap(expected)(xs, ys))
        _same(ours.jit(ours.vmap(update, (dim, None)))(moved, 2.0), ours.vmap(expected, (0, None))(xs, 2.0))
        _same(ours.vmap(_read(view), dim)(moved), ours.vmap(lambda x: x.reshape(-1)[elements(POSITIONS)])(xs))
    _same(ours.vmap(update, (None, 0))(X, ys), ours.vmap(expected, (None, 0))(X, ys))
    for ours_, theirs_ in zip(ours.grad(loss(update), (0, 1))(X, 2.0), ours.grad(loss(expected), (0, 1))(X, 2.0),
                              strict=True):
        _same(ours_, theirs_)
    _same(ours.jvp(update, (X, 2.0), (X * 2, 1.0))[1], ours.jvp(expected, (X, 2.0), (X * 2, 1.0))[1])
    _same(ours.vmap(ours.jit(ours.grad(loss(update))))(xs, ys), ours.vmap(ours.grad(loss(expected)))(xs, ys))


@pytest.mark.parametrize("name", VIEWS)
def test_loops_that_close_over_a_reference(name):
    view, elements = VIEWS[name]

    def looped(x):
        ref = ours.new_ref(x)

        def step(carry, k):
            shown = view(ref)
            shown[...] += k
            return carry + shown[0].sum(), None

        return ours.lax.scan(step, 0.0, our_np.arange(3.0))[0], ref[...]

    expected = X.copy().reshape(-1)
    expected[elements(POSITIONS)] += 3
    _same(ours.jit(looped)(X)[1], expected.reshape(3, 4))
    for dim in range(3):
        found = ours.vmap(looped, dim)(np.stack([X, X], dim))[1]
        _same(found, np.stack([expected.reshape(3, 4)] * 2))
    _same(ours.grad(lambda x: looped(x)[1].sum())(X), np.ones((3, 4)))


def test_a_view_as_an_argument():
    @ours.jit
    def double(view):
        view[...] *= 2
        return view.T[0]

    ref = ours.new_ref(our_np.asarray(X))
    first = double(ref.at[0:2].T)
    assert np.array_equal(ref[...], np.concatenate([X[:2] * 2, X[2:]]))
    assert np.array_equal(first, X[0] * 2)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 1, 3), (0, 2)])
def test_bits(dtype, shape):
    x = np.linspace(-5, 7, int(np.prod(shape)), dtype=np.float32).reshape(shape)

    def read(of, x):
        return of.new_ref(x).bitcast(dtype)[...]

    found = ours.jit(lambda x: read(ours, x))(x)
    assert np.array_equal(found, _rows(x, dtype))
    if 0 not in shape:
        assert np.array_equal(found, theirs.jit(lambda x: read(theirs, x))(x))
    if x.ndim == 2:
        assert np.array_equal(ours.vmap(lambda x: read(ours, x), 1)(np.stack([x, -x], 1)),
                              np.stack([_rows(x, dtype), _rows(-x, dtype)]))

    @ours.jit
    def back(bits):
        ref = ours.empty_ref(ours.ShapeDtypeStruct(shape, np.float32))
        ref.bitcast(dtype)[...] = bits
        again = ours.new_ref(bits).bitcast(np.float32)
        return ref[...], again[...]

    for result in back(found):
        assert np.array_equal(result, x)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "integers-T"])  # kernels capture no arrays
def test_kernels(name):
    view, elements = VIEWS[name]

    def kernel(x_ref, y_ref, out_ref):
        out_ref[...] = x_ref[...]
        view(out_ref)[...] = view(x_ref)[...] * view(y_ref)[...]

    block = pallas.BlockSpec((None, 3, 4), lambda i: (i, 0, 0))
    run = pallas.pallas_call(kernel, out_shape=ours.ShapeDtypeStruct((2, 3, 4), np.float32), grid=2,
                             in_specs=[block, block], out_specs=block, interpret=True)
    xs, at = np.stack([X, -X]), elements(POSITIONS)
    expected = xs.copy().reshape(2, 12)
    expected[:, at] **= 2
    _same(run(xs, xs), expected.reshape(2, 3, 4))


def test_bits_have_no_slope():
    def clear_signs(x):
        ref = ours.new_ref(x * 3)
        bits = ref.bitcast(np.int32)
        bits[1:] = bits[1:] & 0x7FFFFFFF
        return ref[...]

    x = np.array([[-1, 2], [-3, 4], [5, -6]], np.float32)
    value, tangent = ours.jvp(clear_signs, (x,), (x,))
    assert np.array_equal(value, np.concatenate([x[:1] * 3, abs(x[1:] * 3)]))
    assert np.array_equal(tangent, np.concatenate([x[:1] * 3, x[1:] * 0]))
    slope = np.array([[3, 3], [0, 0], [0, 0]], np.float32)
    assert np.array_equal(ours.grad(lambda x: clear_signs(x).sum())(x), slope)
    assert np.array_equal(ours.jit(ours.vmap(ours.grad(lambda x: clear_signs(x).sum())))(x[None])[0], slope)


def test_what_views_are():
    def looked_at(of, numpy):
        seen = []

        def f(x):
            ref = of.new_ref(x)
            for view in (ref.reshape(2, -1), ref.T, ref.bitcast(numpy.int16), ref.at[0].reshape(2, 2), ref.reshape(12)):
                seen.append((view.shape, view.dtype, view.ndim, view.size, str(view.type), str(view.transforms[-1:])))
                view[...] = view[...]
            return ref[...]

        return str(of.make_jaxpr(f)(X)), seen

    (program, seen), (their_program, their_seen) = looked_at(ours, our_np), looked_at(theirs, their_np)
    assert seen[0][:5] == their_seen[0][:5]
    assert [s[:5] for s in seen] == [s[:5] for s in their_seen]
    assert seen[0][5] == their_seen[0][5] and seen[1][5] == their_seen[1][5]
    assert program == their_program


@pytest.mark.parametrize("mistake", [
    lambda r: r.reshape(5, -1), lambda r: r.reshape(5, 5), lambda r: r.reshape(-1, -1), lambda r: r.reshape([3, 4]),
    lambda r: r.transpose((0,)), lambda r: r.transpose(), lambda r: r.transpose(1, 0),
    lambda r: r.at[0].bitcast("int16"), lambda r: r.bitcast("int16").at[0].bitcast("int32"),
    lambda r: r.reshape(12).__setitem__(..., np.ones(3, np.float32)),
    lambda r: r.bitcast("int32").__setitem__(..., np.ones((3, 4), np.float32)),
    lambda r: r.reshape(2, 3, order="F"),
])
def test_mistakes(mistake):
    def failure(of):
        try:
            of.make_jaxpr(lambda x: mistake(of.new_ref(x))[...])(X)
        except Exception as error:
            return error
        return None

    found, expected = failure(ours), failure(theirs)
    assert type(found) is type(expected), (found, expected)


def test_tokens():
    def through(of):
        def f(x):
            ref = of.new_ref(of.lax.create_token(x))
            token = ref[...]
            ref[...] = token
            of.ref.addupdate(ref, (), token)
            return x
        return str(of.make_jaxpr(f)(1.0))

    assert through(ours) == through(theirs)

    @ours.jit
    def f(x):
        ref = ours.new_ref(ours.lax.create_token(x))
        ref[...] = ref[...]
        return x + 1

    assert f(1.0) == 2.0
    with pytest.raises(ValueError, match="Invalid"):
        ours.make_jaxpr(lambda x: ours.ref.swap(ours.new_ref(ours.lax.create_token(x)), ..., x))(1.0)
