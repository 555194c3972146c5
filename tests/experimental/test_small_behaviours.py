"""Small behaviours that programs meet in passing, the same program under JAX: results, or the class of the error."""

from __future__ import annotations

import importlib
import pickle
import warnings
from functools import partial

import jax as oracle
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.experimental import custom_partitioning, topologies, transfer
from styrax.experimental.jet import jet

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NO_AXES = [(), (0, 0), (0, -2), (1, -1), (0, 1, 0), [1, 1]]


def outcome(package, program):
    """The program's result as NumPy's, or the name of the class of its error."""
    try:
        out = program(package)
    except Exception as error:
        return type(error).__name__
    return package.tree.map(lambda x: (np.asarray(x).dtype.name, np.asarray(x).tolist()) if hasattr(x, "dtype") else x,
                            out)


def same(program):
    assert outcome(styrax, program) == outcome(oracle, program)


def sharding(package, kind):
    return {"number": 3, "text": "x", "object": len, "spec": package.P("x"), "empty spec": package.P(),
            "single": package.sharding.SingleDeviceSharding(package.devices()[0])}[kind]


# -- formats -------------------------------------------------------------------------------------------------------


def layouts(package):
    found = importlib.import_module(f"{package.__name__}.experimental.layout")
    return found.Layout, found.Format, package.sharding.SingleDeviceSharding(package.devices()[0])


FORMATS = {
    "auto": lambda L, F, s: F(L.AUTO), "auto there": lambda L, F, s: F(L.AUTO, s), "nothing": lambda L, F, s: F(),
    "there": lambda L, F, s: F(None, s), "both": lambda L, F, s: F(L((1, 0)), s), "number": lambda L, F, s: F(3, s),
    "text": lambda L, F, s: F("x", s), "nowhere": lambda L, F, s: F(L((0, 1))),
    "at a number": lambda L, F, s: F(None, 3),
    "at a device": lambda L, F, s: F(L((0, 1)), s._device if hasattr(s, "_device") else None),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name):
    same(lambda package: str(FORMATS[name](*layouts(package))))


@pytest.mark.parametrize("name", ["auto", "both", "there", "auto there"])
@pytest.mark.parametrize("where", ["in_shardings", "out_shardings", "device_put"])
def test_formats_as_shardings(name, where):
    def program(package):
        told = FORMATS[name](*layouts(package))
        if where == "device_put":
            return package.device_put(X, told)
        return package.jit(lambda x: x + 1, **{where: told})(X)

    same(program)


def test_formats_of_compiled_functions():
    def program(package):
        compiled = package.jit(lambda x, y: {"a": x + y["k"], "b": x.sum()}).lower(X, {"k": X}).compile()
        return str(compiled.input_formats), str(compiled.output_formats)

    same(program)


@pytest.mark.parametrize("told", ["auto", "number", "short", "turned"])
@pytest.mark.parametrize("jitted", [False, True])
def test_layouts_as_constraints(told, jitted):
    def program(package):
        Layout, _, _ = layouts(package)
        layout = {"auto": Layout.AUTO, "number": 3, "short": Layout((0,)), "turned": Layout((1, 0))}[told]
        constrain = importlib.import_module(f"{package.__name__}.experimental.layout").with_layout_constraint
        f = partial(constrain, layouts=layout)
        return (package.jit(f) if jitted else f)(package.numpy.asarray(X))

    same(program)


# -- operations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "uint8", "complex64"])
@pytest.mark.parametrize("how", ["eager", "jit", "vmap", "grad", "empty", "loop"])
def test_reductions_over_no_axes(dtype, how):
    def program(package):
        lax, jnp = package.lax, package.numpy
        computations = [lambda x, y: x, lax.bitwise_or if dtype == "bool" else lax.add]
        found = []
        for computation in computations:
            f = lambda x: lax.reduce(x, np.array(1, dtype), computation, ())  # noqa: B023
            x = jnp.asarray(X.astype(dtype))
            found.append({
                "eager": lambda: f(x), "jit": lambda: package.jit(f)(x), "vmap": lambda: package.vmap(f)(x),  # noqa: B023
                "grad": lambda: package.grad(lambda x: (f(x) * f(x)).sum().real)(x), "empty": lambda: f(x[:0]),  # noqa: B023
                "loop": lambda: lax.fori_loop(0, 2, lambda _, y: f(y), x)}[how]())  # noqa: B023
        return found

    same(program)


def test_reductions_of_several_arrays_over_no_axes():
    same(lambda package: package.lax.reduce((X, 2 * X), (1.0, 2.0), lambda a, b: (a[0] + b[1], b[0]), ()))


DTYPES = ["bool", "int4", "int8", "uint8", "int16", "uint32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128", "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["product", "mixed product", "convolution"])
def test_dtypes_of_sums(kind, dtype):
    def program(package):
        found = {}
        with package.enable_x64(True):
            for preferred in DTYPES:
                if kind == "convolution":
                    f = partial(package.lax.conv_general_dilated, window_strides=(1,), padding="SAME",
                                preferred_element_type=preferred)
                    shapes = (2, 2, 4), (2, 2, 3)
                else:
                    f = partial(package.lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ())),
                                preferred_element_type=preferred)
                    shapes = (2, 2), (2, 2)
                other = "float32" if kind == "mixed product" else dtype
                args = [package.ShapeDtypeStruct(s, d) for s, d in zip(shapes, (dtype, other), strict=True)]
                try:
                    found[preferred] = package.eval_shape(f, *args).dtype.name
                except TypeError:
                    found[preferred] = "refused"
        return found

    same(program)


@pytest.mark.parametrize("axes", NO_AXES, ids=str)
@pytest.mark.parametrize("name", ["flip", "moveaxis from", "moveaxis to", "gradient", "diagonal", "trace", "rot90"])
def test_axes_that_repeat(name, axes):
    programs = {
        "flip": lambda jnp: jnp.flip(X, axes), "moveaxis from": lambda jnp: jnp.moveaxis(X, axes, (0, 1)),
        "moveaxis to": lambda jnp: jnp.moveaxis(X, (0, 1), axes), "gradient": lambda jnp: jnp.gradient(X, axis=axes),
        "diagonal": lambda jnp: jnp.diagonal(X, 0, *axes), "trace": lambda jnp: jnp.trace(X, 0, *axes),
        "rot90": lambda jnp: jnp.rot90(X, 1, tuple(axes)),
    }
    same(lambda package: programs[name](package.numpy))


def values(package):
    jnp = package.numpy
    key = package.random.key(0)
    return {
        "floats": jnp.ones(2), "integers": jnp.ones(2, int), "NumPy": np.ones(2), "scalar": np.float32(1), "key": key,
        "type": jnp.float32, "dtype": np.dtype("int8"), "text": "float32", "number": 1.0, "list": [1], "none": None,
        "Python": float, "object": object(), "shape": package.ShapeDtypeStruct((1,), np.float32),
        "abstract": jnp.floating, "key dtype": key.dtype, "extended": package.dtypes.prng_key,
    }


@pytest.mark.parametrize("name", values(styrax))
def test_kinds_of_arrays(name):
    def program(package):
        found = []
        for other in values(package).values():
            found.append([outcome(package, lambda p: p.numpy.issubdtype(values(p)[name], other)),  # noqa: B023
                          outcome(package, lambda p: p.numpy.issubdtype(other, values(p)[name]))])  # noqa: B023
        return found

    same(program)


TOLD = {
    "zeros": lambda p, s: p.numpy.zeros(3, out_sharding=s),
    "full": lambda p, s: p.numpy.full(3, 2.0, out_sharding=s),
    "ones_like": lambda p, s: p.numpy.ones_like(X, out_sharding=s),
    "arange": lambda p, s: p.numpy.arange(3, out_sharding=s),
    "array": lambda p, s: p.numpy.array([1, 2], out_sharding=s),
    "reshape": lambda p, s: p.numpy.reshape(X, -1, out_sharding=s),
    "ravel": lambda p, s: p.numpy.ravel(X, out_sharding=s),
    "dot": lambda p, s: p.numpy.dot(X, X.T, out_sharding=s),
    "matmul": lambda p, s: p.numpy.matmul(X, X.T, out_sharding=s),
    "einsum": lambda p, s: p.numpy.einsum("ij,kj", X, X, out_sharding=s),
    "lax.reshape": lambda p, s: p.lax.reshape(X, (6,), out_sharding=s),
    "broadcast": lambda p, s: p.lax.broadcast(X, (2,), out_sharding=s),
    "broadcast_in_dim": lambda p, s: p.lax.broadcast_in_dim(X, (2, 3), (0, 1), out_sharding=s),
    "dot_general": lambda p, s: p.lax.dot_general(X, X, (((1,), (1,)), ((), ())), out_sharding=s),
    "iota": lambda p, s: p.lax.broadcasted_iota(int, (2,), 0, out_sharding=s),
    "normal": lambda p, s: p.random.normal(p.random.key(0), (2,), out_sharding=s).shape,
    "bits": lambda p, s: p.random.bits(p.random.key(0), (2,), out_sharding=s),
    "uniform": lambda p, s: p.random.uniform(p.random.key(0), (2,), out_sharding=s),
}


@pytest.mark.parametrize("kind", ["number", "text", "object", "spec", "single"])
@pytest.mark.parametrize("name", TOLD)
def test_shardings_of_results(name, kind):
    same(lambda package: TOLD[name](package, sharding(package, kind)))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "complex64"])
def test_random_signs(dtype):
    same(lambda package: package.random.rademacher(package.random.key(0), (6,), dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool", "int8", "uint32"])
@pytest.mark.parametrize("jitted", [False, True])
def test_classes_that_are_no_integers(dtype, jitted):
    def program(package):
        f = lambda x: package.nn.one_hot(x, 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                out = (package.jit(f) if jitted else f)(package.numpy.asarray([0, 1], dtype))
            except TypeError:
                out = "TypeError"
        return out, [w.category.__name__ for w in caught]

    same(program)


NUMBERS = {
    "convert": lambda p, to: p.lax.convert_element_type(1j, to), "asarray": lambda p, to: p.numpy.asarray(1j, to),
    "full": lambda p, to: p.lax.full((2,), 1j, to), "full_like": lambda p, to: p.lax.full_like(np.ones(2, to), 1j),
    "set": lambda p, to: p.numpy.ones(2, to).at[0].set(1j),
    "array": lambda p, to: p.lax.convert_element_type(p.numpy.asarray(1j), to),
    "NumPy": lambda p, to: p.lax.convert_element_type(np.complex64(1j), to),
    "pad": lambda p, to: p.numpy.pad(np.ones(1, to), 1, constant_values=1j),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("to", ["float32", "int32", "complex64"])
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("jitted", [False, True])
def test_complex_numbers_as_real_ones(name, to, jitted):
    def program(package):
        f = lambda: NUMBERS[name](package, to)
        return (package.jit(f) if jitted else f)()

    same(program)


@pytest.mark.filterwarnings("ignore:pl.dot:DeprecationWarning", "ignore:.*pallas.dot.*:DeprecationWarning")
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "bfloat16"])
def test_products_of_kernels(dtype, trans_a, trans_b):
    def program(package):
        dot = importlib.import_module(f"{package.__name__}.experimental.pallas").dot
        a, b = (package.numpy.asarray(X if not t else X.T, dtype) for t in (trans_a, not trans_b))
        return dot(a, b, trans_a, trans_b), package.jit(dot, static_argnums=(2, 3))(a, b, trans_a, trans_b)

    same(program)


# -- derivatives ---------------------------------------------------------------------------------------------------


INTEGER_CURVES = {
    "sum": lambda x: x + x, "negated": lambda x: -x, "scaled": lambda x: x * 2.5,
    "converted": lambda x: x.astype("float32") ** 2, "untouched": lambda x: x, "reshaped": lambda x: x.reshape(1, -1),
    "divided": lambda x: x / 4, "compared": lambda x: x > 2, "product": lambda x: x * x, "power": lambda x: x**3,
    "with floats": lambda x: x * (x + 0.5),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", INTEGER_CURVES)
def test_curves_of_integers(name, jitted):
    def program(package):
        jets = importlib.import_module(f"{package.__name__}.experimental.jet")
        f = INTEGER_CURVES[name]
        start = package.numpy.arange(3)
        y, terms = jets.jet(package.jit(f) if jitted else f, (start,), ((np.ones(3, int), np.full(3, 0.5)),))
        return np.asarray(y), [np.asarray(t) for t in terms]

    try:
        wanted, wanted_terms = program(oracle)
    except TypeError:
        with pytest.raises(TypeError):
            program(styrax)
        return
    found, terms = program(styrax)
    assert found.dtype == wanted.dtype and [t.dtype for t in terms] == [t.dtype for t in wanted_terms]
    np.testing.assert_allclose([found, *terms], [wanted, *wanted_terms], rtol=1e-6)


def test_differences_of_integers_that_move():
    y, (slope,) = jet(lambda x: 5 - x, (np.arange(3),), ((np.ones(3),),))
    np.testing.assert_array_equal(y, [5, 4, 3])
    np.testing.assert_array_equal(slope, [-1, -1, -1])


@pytest.mark.parametrize("dtype", ["int8", "int32", "bool"])
def test_curves_of_integers_through_functions(dtype):
    y, terms = jet(jnp.sin, (np.ones(2, dtype),), ((np.float32([1, 2]), np.float32([0, 1])),))
    np.testing.assert_allclose(y, np.sin([1, 1]), rtol=1e-6)
    np.testing.assert_allclose(terms[0], np.cos(1) * np.array([1, 2]), rtol=1e-6)
    np.testing.assert_allclose(terms[1], -np.sin(1) * np.array([1, 4]) + np.cos(1) * np.array([0, 1]), rtol=1e-6)


@pytest.mark.parametrize("how", ["grad", "jit of grad", "grad of jit", "vjp", "jvp", "vmap of grad"])
def test_windows_of_general_computations(how):
    def program(package):
        f = lambda x: package.lax.reduce_window(x, 1.0, lambda a, b: a * b + a, (2,), (1,), "VALID").sum()
        x = package.numpy.asarray(X[0])
        return {"grad": lambda: package.grad(f)(x), "jit of grad": lambda: package.jit(package.grad(f))(x),
                "grad of jit": lambda: package.grad(package.jit(f))(x), "vjp": lambda: package.vjp(f, x)[1](1.0),
                "jvp": lambda: package.jvp(f, (x,), (x,)),
                "vmap of grad": lambda: package.vmap(package.grad(f))(package.numpy.asarray(X))}[how]()

    same(program)


# -- what is pickled -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "multiply", "logaddexp", "bitwise_and", "maximum", "sin"])
def test_functions_by_their_names(name):
    function = getattr(jnp, name)
    assert pickle.loads(pickle.dumps(function)) is function
    there = pickle.loads(pickle.dumps(styrax.tree_util.Partial(function, *([1] * (name != "sin")))))
    assert float(there(3)) == float(function(*([1] * (name != "sin")), 3))


# -- what one process can ask of the rest --------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [None, "i j, j k -> i k", "i j, j k", "i -> -> k", 3])
def test_rules_of_partitionings(rule):
    def program(package):
        module = importlib.import_module(f"{package.__name__}.experimental.custom_partitioning")
        f = module.custom_partitioning(lambda x, y: x @ y)
        f.def_partition(partition=lambda *a: None, sharding_rule=rule)
        return f(X, X.T), package.jit(f)(X, X.T)

    same(program)


def test_partitionings_that_nobody_has_given():
    with pytest.raises(AttributeError, match="def_partition"):
        custom_partitioning.custom_partitioning(lambda x: x)(X)


@pytest.mark.parametrize("platform", [None, "cpu", "tpu", "nowhere"])
def test_topologies(platform):
    def program(package):
        module = importlib.import_module(f"{package.__name__}.experimental.topologies")
        return module.get_topology_desc("8x8", platform)

    if platform == "nowhere":
        with pytest.raises(RuntimeError):
            topologies.get_topology_desc("8x8", platform)
    else:
        same(program)


@pytest.mark.parametrize("folder", ["empty", "missing", 3])
def test_profiles_of_instructions(folder, tmp_path):
    def program(package):
        module = importlib.import_module(f"{package.__name__}.experimental.profiler")
        return module.get_profiled_instructions_proto(
            3 if folder == 3 else str(tmp_path) if folder == "empty" else str(tmp_path / "x"))

    same(program)


@pytest.mark.parametrize("path", [None, 3])
def test_folders_of_the_cache(path):
    def program(package):
        module = importlib.import_module(f"{package.__name__}.experimental.compilation_cache.compilation_cache")
        before = package.config.jax_compilation_cache_dir
        try:
            module.set_cache_dir(path)
            module.reset_cache()
            return package.config.jax_compilation_cache_dir
        finally:
            package.config.update("jax_compilation_cache_dir", before)

    same(program)


def test_servers_need_a_client():
    with pytest.raises(TypeError, match="client"):
        transfer.start_transfer_server()
    with pytest.raises(NotImplementedError, match="transfer server"):
        transfer.start_transfer_server(styrax.devices()[0].client)
