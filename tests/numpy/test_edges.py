"""Functions at the edges of what they take, against JAX: empty axes, None, wide integers, stand-ins for arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, assert_same_outcome, jax, outcome, styrax


@pytest.mark.parametrize("expression", [
    *(f"jnp.take({a}, jnp.array({i}, int), axis={k})" for a, i, k in (
        ("jnp.zeros(0)", [0], 0), ("jnp.zeros((2, 0))", [0], 1), ("jnp.zeros((2, 0))", [], 1),
        ("jnp.zeros((0, 2))", [0], 1))),
    *(f"jnp.take(jnp.zeros(0), jnp.array([0]), mode={m!r})" for m in ("clip", "wrap", "fill")),
    "jnp.take_along_axis(jnp.zeros(0), jnp.array([0]), 0)",
    "jnp.take_along_axis(jnp.arange(3.0), jnp.array([1, -1, 3, -4]), 0, mode='one_hot')",
    "jnp.take_along_axis(jnp.ones((2, 3), bool), jnp.array([[0, 7]]), 1, mode='one_hot')",
    "jnp.take_along_axis(jnp.zeros((2, 0)), jnp.zeros((2, 1), int), 1)",
    "jax.jit(lambda x, i: jnp.take_along_axis(x, i, 1))(jnp.zeros((2, 0)), jnp.zeros((2, 3), int))",
    "jax.vmap(lambda x, i: jnp.take_along_axis(x, i, 0))(jnp.zeros((2, 0)), jnp.zeros((2, 3), int))",
    "jax.grad(lambda x: jnp.take_along_axis(x, jnp.zeros((2, 3), int), 1).sum())(jnp.zeros((2, 0)))",
])
def test_taking_from_empty_axes(expression):
    assert_same_outcome(expression)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 0), (2, 0), (0, 5), (3, 4, 0)])
def test_empty_masks(shape):
    array = np.arange(12).reshape(3, 4)
    for package in (jax, styrax):
        x = package.numpy.asarray(array)
        if len(shape) > 2 or any(s not in (0, d) for s, d in zip(shape, x.shape)):
            with pytest.raises(IndexError):
                x[np.empty(shape, bool)]
            continue
        assert x[np.empty(shape, bool)].shape == (0, *x.shape[len(shape):])
        np.testing.assert_array_equal(x.at[np.empty(shape, bool)].set(1), array)


@pytest.mark.parametrize("index", ["2", "-3", "0, 3", "..., -4", "np.array([0]), 4", "None, 2", "np.int32(5)", "5, 1:",
                                   "1, 2", "-2", "np.array([5])", "slice(0, 9)"])
@pytest.mark.parametrize("program", ["x[{}]", "jax.jit(lambda x: x[{}])(x)", "x.at[{}].get()", "x.at[{}].set(1)",
                                     "x.at[{}].get(mode='clip')", "x.at[{}].get(mode='promise_in_bounds')"])
def test_static_indices_are_checked_where_that_is_asked_for(index, program):
    for package in (jax, styrax):
        package.config.update("jax_check_static_indices", True)
    try:
        assert_same_outcome(f"(lambda x: {program.format(index)})(jnp.ones((2, 3)))")
    finally:
        for package in (jax, styrax):
            package.config.update("jax_check_static_indices", False)


@pytest.mark.parametrize("index, way", [("[0, 1]", "array"), ("[0, None]", "tuple"), ("[[0, 1]]", "tuple"),
                                        ("[slice(None)]", "tuple"), ("[0, np.arange(2)]", "tuple")])
def test_lists_as_indices_say_what_to_write(index, way):
    for package in (jax, styrax):
        with pytest.raises(TypeError, match=rf"non-tuple sequence.*arr\[{way}\(seq\)\]"):
            package.numpy.ones((2, 3))[eval(index)]


@pytest.mark.parametrize("method", ["set", "add", "multiply", "max"])
def test_unsigned_arrays_are_updated_by_wide_integers(method):
    def program(jax):
        change = lambda x: getattr(x.at[0], method)(2**32 - 1)
        return [change(jax.numpy.arange(2, dtype="uint32")), jax.jit(change)(jax.numpy.ones(2, "uint32"))]

    assert_same(program)


class Wrapper:
    def __init__(self, array):
        self.array = array

    def __jax_array__(self):
        return self.array


def test_objects_that_stand_for_arrays():
    def program(jax):
        jnp, x = jax.numpy, jax.numpy.arange(5)
        return [jnp.isin(Wrapper(x), Wrapper(x[:2])), jnp.roll(Wrapper(x), Wrapper(x[1:2])),
                jnp.roll(jnp.ones((2, 3)), (Wrapper(x[1]), 2), (0, 1)),
                jnp.piecewise(Wrapper(x), [Wrapper(x < 2), Wrapper(x > 3)], [1, 2, 3])]

    assert_same(program)


@pytest.mark.parametrize("a, b", [([], []), ([1], []), ([], [2]), ([1], [1]), ([3, 1], [1, 2, 5])])
@pytest.mark.parametrize("fill_value", [None, 7])
def test_sets_of_a_given_size(a, b, fill_value):
    def program(jax):
        jnp = jax.numpy
        x, y = jnp.array(a, "int32"), jnp.array(b, "int32")
        functions = [jnp.setxor1d, jnp.setdiff1d] + [jnp.intersect1d] * (len(a + b) != 1)  # JAX fills up with that one
        found = [f(x, y, size=3, fill_value=fill_value) for f in functions]
        return [found, jax.jit(lambda x, y: jnp.setxor1d(x, y, size=2, fill_value=fill_value))(x, y)]

    assert_same(program)


@pytest.mark.parametrize("expression", [
    "jnp.vectorize(lambda x, y: x if y is None else x + y)(x3, None)",
    "jnp.vectorize(lambda x, y: x if y is None else x + y)(x3, x3)",
    "jnp.vectorize(lambda x, y=None: x if y is None else x + y)(x3, y=None)",
    "jax.vmap(jnp.vectorize(lambda x, y: x if y is None else x + y), (0, None))(x33, None)",
    "jnp.vectorize(lambda x, y: x, signature='(k),(k)->(k)')(x3, None)",
    "jnp.vectorize(lambda x, y, f=jnp.add: f(x, y), excluded=(2, 'f'))(x3, x3)",
    "jnp.vectorize(lambda x, y, f=jnp.add: f(x, y), excluded=(2, 'f'))(x3, x3, f=jnp.subtract)",
    "jnp.vectorize(lambda x: x, excluded=(3,))(x3)",
    "jnp.vectorize(lambda *a: a, signature='(),()->(),(),()')(1, 2)",
    "jnp.vectorize(lambda *a: list(a), signature='(),()->(),()')(1, 2)",
])
def test_vectorized_functions(expression):
    assert_same_outcome(expression)


@pytest.mark.parametrize("signature", [None, "(),()->()"])
def test_vectorized_functions_promote_ranks_as_is_asked(signature):
    for package in (jax, styrax):
        jnp = package.numpy
        f = jnp.vectorize(jnp.add, signature=signature)
        with package.numpy_rank_promotion("raise"):
            assert f(jnp.ones((2, 2)), 1.0).shape == (2, 2)
            with pytest.raises(ValueError, match="require rank promotion"):
                f(jnp.ones((2, 2)), jnp.ones(2))
        with package.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            f(jnp.ones((2, 2)), jnp.ones(2))
        assert any("require rank promotion" in str(w.message) for w in found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int16"])
def test_spacing(dtype):
    assert_same(lambda jax: jax.numpy.spacing(jax.numpy.array([-5, 3, -60, 0, 64]).astype(dtype)), rtol=0, atol=0)


def test_contractions_of_three_operands_at_once_are_refused():
    for package in (jax, styrax):
        ones = package.numpy.ones(2)
        with pytest.raises(NotImplementedError, match="does not support simultaneous contraction of 3 or more"):
            package.numpy.einsum("a,b,c->abc", ones, ones, ones, optimize=[(0, 1, 2)])


@pytest.mark.parametrize("x64", [False, True])
def test_inspection_of_the_array_api(x64):
    kinds = ("bool", "numeric", "real floating", ("bool", "integral"), "signed integer", None)
    with jax.enable_x64(x64), styrax.enable_x64(x64):
        theirs, ours = (p.numpy.__array_namespace_info__() for p in (jax, styrax))
        assert ours.capabilities() == theirs.capabilities()
        assert ours.default_device() is theirs.default_device() is None
        assert ours.default_dtypes() == theirs.default_dtypes()
        assert [ours.dtypes(kind=k) for k in kinds] == [theirs.dtypes(kind=k) for k in kinds]
        for info in (ours, theirs):
            with pytest.raises(KeyError):
                info.dtypes(kind="other")
    assert set(styrax.devices()) | {None} == set(ours.devices())
    assert styrax.numpy.__array_api_version__ == jax.numpy.__array_api_version__


@pytest.mark.parametrize("mode", ["edge", "linear_ramp", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("shape", ["(0, 4)", "(0,)", "(2, 0)", "(1, 3)"])
@pytest.mark.parametrize("widths", ["0", "1", "((0, 0), (1, 2))", "((1, 1), (0, 0))"])
def test_padding_of_empty_axes(shape, widths, mode):
    expression = f"jnp.pad(jnp.ones({shape}), {widths}, mode={mode!r})"
    kind, found = outcome(expression, styrax)
    try:
        expected = np.pad(np.ones(eval(shape)), eval(widths), mode=mode)
    except ValueError:
        assert kind == "error" and isinstance(found, ValueError)
    else:
        assert kind == "value" and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("expression", [
    "jnp.lcm(jnp.arange(4), jnp.arange(3)[:, None])", "jnp.lcm(jnp.arange(4), jnp.ones((1, 4), int))",
    "jnp.lcm(6, jnp.arange(4))", "jnp.angle(jnp.float16(-1))", "jnp.angle(jnp.ones(2, 'float16'))",
    "jnp.angle(-1)", "jnp.angle(-1.0)", "jnp.angle(jnp.bfloat16(1))", "jnp.angle(jnp.complex64(1j))",
    "jnp.logaddexp2(1.0, 2)", "jax.nn.hard_silu(2)", "jax.nn.hard_silu(jnp.arange(-3, 4))",
    "jnp.zeros(2, jnp.ones(2))", "jnp.zeros(2, np.ones(2))", "jnp.zeros(2, np.longdouble)",
    "jnp.array(1, np.longdouble)",
    "jnp.zeros(2, np.float32(1))", "jnp.ones(2).astype(jnp.ones(2))", "jax.jit(lambda x: jnp.zeros(2, x))(1.0)",
    "jnp.pad(jnp.ones(3), 1, constant_values=[1, 2, 3])",
    "jnp.full(2, 1j, 'complex64')", "jax.lax.full_like(jnp.ones(2), np.ones(1))",
    "jax.nn.hard_tanh(jnp.array([True, False]))", "jax.nn.sparse_plus(jnp.array([True, False]))",
    "jax.nn.sparse_plus(jnp.arange(3, dtype='uint8'))", "jax.nn.hard_tanh(jnp.arange(3, dtype='uint8'))",
    "jax.nn.hard_tanh(-2)", "jax.nn.sparse_plus(-2)",
    "jax.scipy.special.polygamma(1.0, jnp.ones(2))", "jax.scipy.special.polygamma(jnp.ones(2, 'float16'), 2)",
    "jax.scipy.special.polygamma(1, 2)", "jnp.linalg.pinv(jnp.diag(jnp.array([3.0, 2.0])), jnp.array([0.5, 0.9]))",
    "jnp.linalg.pinv(jnp.stack([jnp.eye(2), jnp.diag(jnp.array([1, 0.2]))]), np.array([0.5, 0.1]))",
    "jnp.linalg.pinv(jnp.stack([jnp.eye(2), jnp.diag(jnp.array([1, 0.2]))]), np.array([[0.5], [0.1]]))",
    "jnp.linalg.pinv(jnp.ones((2, 0)), jnp.ones(2))",
    "jnp.bincount(jnp.array([-3]))", "jnp.bincount(jnp.array([-3, -1]), minlength=2)",
    "jnp.bincount(jnp.array([-3, 2]))",
    "jnp.nan_to_num(jnp.array([np.nan, 1]), np.array([True, False]))", "jnp.nan_to_num(1.5, None)",
    "jax.jit(jnp.nan_to_num)(np.complex64(complex(np.nan, np.inf)))",
    "jnp.concatenate(jnp.array(1))", "jnp.stack(jnp.array(1))", "jnp.hstack(jnp.array(1))", "jnp.vstack(jnp.array(1))",
    "jnp.repeat(jnp.arange(2), jnp.array([[1], [2]]))", "jnp.repeat(jnp.ones((2, 2)), np.array([[1, 2]]), axis=1)",
    "jnp.roots(jnp.ones(3, 'float16'))", "jnp.linalg.eig(jnp.eye(2, dtype='bfloat16'))",
    "jnp.linalg.eigvals(jnp.eye(2, dtype='float8_e5m2'))",
    "jnp.inner(jnp.array([True, False]), True)", "jnp.inner(True, True)",
    "jnp.polyval(jnp.array([True, False]), jnp.array([True, False]))", "jnp.polyval(jnp.array([True]), 2)",
    "jnp.interp(jnp.array([0.0, 1.5]), jnp.arange(1.0, 3), jnp.ones(2), left=1j)",
    "jnp.interp(jnp.arange(3), jnp.arange(1, 3), jnp.arange(2), left=1j)",
])
def test_dtypes_weak_types_and_shapes(expression):
    kind, expected = outcome(expression, jax)
    our_kind, found = outcome(expression, styrax)
    assert our_kind == kind, (found, expected)
    if kind == "error":
        assert type(found).__name__ == type(expected).__name__
    else:
        assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-6)


@pytest.mark.parametrize("expression", [
    "jnp.full(2, 1j, 'float32')", "jnp.full((), 1j, 'int8')", "jnp.full_like(jnp.ones(2), 1 + 0j)",
    "jax.lax.full(2, 1j, 'bfloat16')",
    "jnp.ones(2).at[5].get(mode='fill', fill_value=1j)", "jnp.take(jnp.ones(2), 5, mode='fill', fill_value=1j)",
])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_imaginary_parts_of_numbers_are_not_dropped(expression):
    for package in (jax, styrax):
        kind, error = outcome(expression, package)
        assert kind == "error" and type(error) is TypeError


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_sizes_in_place_of_a_dtype_are_pointed_out(name):
    for package in (jax, styrax):
        with pytest.raises(TypeError, match=rf"Did you accidentally write `jax.numpy.{name}\(3, 2\)`"):
            getattr(package.numpy, name)(3, 2)


@pytest.mark.parametrize("version", [None, "2024.12", "2023.12", "2025.12"])
def test_the_array_api_has_one_version(version):
    def answers(library):
        try:
            return library.numpy.ones(2).__array_namespace__(api_version=version) is library.numpy
        except ValueError as error:
            return str(error)

    assert answers(styrax) == answers(jax)
