"""Dtypes and promotion, compared with JAX over all pairs."""

import enum
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import dtypes as theirs

import styrax
import styrax.numpy
from styrax.core.settings import config as config_module
from styrax.core.types import dtypes

warnings.filterwarnings("ignore", "Explicitly requested dtype")

NAMES = [d.name for d in dtypes.all_dtypes]
SCALARS = [bool, int, float, complex]
VALUES = [True, 1, 1.0, 1j]
MODES = [(m, x) for m in ("standard", "strict") for x in (False, True)]


class Struct:
    """A value with a dtype and perhaps a weak type, as tracers are."""

    def __init__(self, dtype, weak_type=False):
        self.dtype = np.dtype(dtype)
        self.aval = jax.core.ShapedArray((), dtype, weak_type=weak_type)


class both:
    """Both libraries under the same flags."""

    def __init__(self, mode, x64):
        self.contexts = [
            config_module.numpy_dtype_promotion(mode),
            config_module.enable_x64(x64),
            jax.numpy_dtype_promotion(mode),
            jax.enable_x64(x64),
        ]

    def __enter__(self):
        for c in self.contexts:
            c.__enter__()

    def __exit__(self, *exc):
        for c in reversed(self.contexts):
            c.__exit__(*exc)


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, sort_names(str(e))


def sort_names(message):
    """JAX names the dtypes in the order of a set."""
    if "Input dtypes (" not in message:
        return message
    before, _, rest = message.partition("(")
    names, _, after = rest.partition(")")
    return f"{before}({', '.join(sorted(names.split(', ')))}){after}"


def test_same_types():
    assert [d.name for d in theirs._jax_types] == NAMES


@pytest.mark.parametrize("mode, x64", MODES)
def test_promote_types(mode, x64):
    with both(mode, x64):
        for a, b in itertools.product(NAMES + SCALARS, repeat=2):
            if a is bool or b is bool:
                continue
            ours = outcome(dtypes.promote_types, a, b)
            other = outcome(theirs.promote_types, a, b)
            assert ours == other, (a, b)


@pytest.mark.parametrize("mode, x64", MODES)
def test_result_type_pairs(mode, x64):
    names = [n for n in NAMES if x64 or dtypes.itemsize_bits(n) < 64 or n == "complex64"]
    sides = [(Struct(n, w), Struct(n, w)) for n in names for w in (False, True)]
    sides += [(v, v) for v in VALUES] + [(t, t) for t in SCALARS]
    with both(mode, x64):
        for a, ja in sides:
            ours = outcome(dtypes.result_type, a, return_weak_type_flag=True)
            other = outcome(theirs.result_type, ja, return_weak_type_flag=True)
            assert ours == other or other == ("KeyError", "'V'"), (ja, mode)
        for (a, ja), (b, jb) in itertools.product(sides, repeat=2):
            ours = outcome(dtypes.result_type, a, b, return_weak_type_flag=True)
            other = outcome(theirs.result_type, ja, jb, return_weak_type_flag=True)
            if other == ("KeyError", "'V'"):
                continue  # JAX fails on weakly typed values of ml_dtypes' types
            if isinstance(other[1], str):
                assert ours[0] == other[0], (ja, jb, ours, other)
            else:
                assert ours == other, (ja, jb)


class Choice(enum.IntEnum):
    FIRST = 0
    SECOND = 2


class Count(int):
    pass


class Length(float):
    pass


@pytest.mark.parametrize("value", [Choice.SECOND, Count(3), Length(1.5)], ids=lambda v: type(v).__name__)
def test_numbers_of_classes_of_their_own(value):
    """Operations take them for Python's own, `result_type` does not."""
    assert dtypes.result_type(value) == theirs.result_type(value)
    for dtype in ("uint8", "int16", "float16", "bfloat16", "float32", "bool", "complex64"):
        assert dtypes.result_type(value, np.dtype(dtype)) == theirs.result_type(value, np.dtype(dtype)), dtype
        x = np.ones(3).astype(dtype)
        for f in (lambda x: value + x, lambda x: x * value):
            results = [j.jit(j.vmap(f))(j.numpy.asarray(x)) for j in (styrax, jax)]
            np.testing.assert_array_equal(*results, strict=True)
    assert all(float(j.grad(lambda x: value * x)(2.0)) == value for j in (styrax, jax))
    scanned = [j.lax.scan(lambda c, x: (c, value < x), 0, j.numpy.arange(4))[1] for j in (styrax, jax)]
    np.testing.assert_array_equal(*scanned)


@pytest.mark.parametrize("x64", [False, True])
def test_result_type_triples(x64):
    names = [
        "bool",
        "uint8",
        "int8",
        "uint32",
        "int64" if x64 else "int16",
        "bfloat16",
        "float16",
        "float32",
        "complex64",
    ]
    with both("standard", x64):
        for triple in itertools.product([*names, 1, 1.0], repeat=3):
            mine = [Struct(t) if isinstance(t, str) else t for t in triple]
            other = [Struct(t) if isinstance(t, str) else t for t in triple]
            ours = dtypes.result_type(*mine, return_weak_type_flag=True)
            assert ours == theirs.result_type(*other, return_weak_type_flag=True), triple


@pytest.mark.parametrize(
    "pair",
    [
        ("int4", "int8"),
        ("float8_e4m3fn", "float32"),
        ("float8_e4m3fn", "float4_e2m1fn"),
        ("int2", "float32"),
        ("float6_e2m3fn", "float8_e5m2"),
        ("uint1", "float8_e5m2"),
        ("int4", 1.0),
    ],
)
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_messages(pair, mode):
    ours = [Struct(p) if isinstance(p, str) else p for p in pair]
    other = [Struct(p) if isinstance(p, str) else p for p in pair]
    with both(mode, False):
        with pytest.raises(dtypes.TypePromotionError) as mine:
            dtypes.result_type(*ours)
        with pytest.raises(jax.dtypes.TypePromotionError) as expected:
            theirs.result_type(*other)
    assert sort_names(str(mine.value)) == sort_names(str(expected.value))


INPUTS = [
    1,
    1.0,
    1j,
    True,
    None,
    "x",
    "int4",
    int,
    float,
    bool,
    complex,
    np.float64(1),
    np.float32,
    jnp.float32,
    np.zeros(2, "U2"),
    np.zeros(2, object),
    np.zeros(2, ">f4"),
    np.zeros(2, "int64"),
    dtypes.float0,
    np.dtype("float64"),
    [1, 2],
    "U3",
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "name", ["dtype", "canonicalize_dtype", "scalar_type_of", "is_weakly_typed", "result_type"]
)
def test_functions_of_values(name, x64):
    with both("standard", x64):
        for value in INPUTS:
            if name == "canonicalize_dtype" and isinstance(value, (np.ndarray, list)):
                continue
            ours = outcome(getattr(dtypes, name), value)
            assert ours == outcome(getattr(theirs, name), value), value


@pytest.mark.parametrize("x64", [False, True])
def test_user_dtypes(x64):
    values = [
        int,
        float,
        "int64",
        "float32",
        None,
        "datetime64[s]",
        "U3",
        str,
        np.int64,
        [("a", int)],
        ">i4",
        object,
        "foo",
        dtypes.float0,
        jnp.ones(2),
        bool,
        jnp.int8,
    ]
    with both("standard", x64):
        for value in values:
            for place in (None, "zeros"):
                ours = outcome(dtypes.check_and_canonicalize_user_dtype, value, place)
                assert ours == outcome(theirs.check_and_canonicalize_user_dtype, value, place), value


def test_truncation_warning():
    with pytest.warns(UserWarning) as ours:
        dtypes.check_user_dtype_supported("float64", "zeros")
    with pytest.warns(UserWarning) as other:
        jnp.zeros(2, "float64")
    assert str(ours[0].message) == str(other[0].message)
    assert ours[0].filename == __file__


def test_explicit_x64_modes():
    with config_module.explicit_x64_dtypes("allow"):
        assert dtypes.check_and_canonicalize_user_dtype("float64") == np.float64
    with config_module.explicit_x64_dtypes("error"), pytest.raises(ValueError, match="is not available"):
        dtypes.check_and_canonicalize_user_dtype("float64")


@pytest.mark.parametrize(
    "name",
    [
        "itemsize_bits",
        "short_dtype_name",
        "to_inexact_dtype",
        "to_numeric_dtype",
        "to_floating_dtype",
        "to_complex_dtype",
        "supports_inf",
    ],
)
def test_functions_of_dtypes(name):
    for d in NAMES:
        if name == "supports_inf" and dtypes.kind(np.dtype(d)) != "f":
            continue
        if name == "to_floating_dtype" and d in ("int1", "int2", "uint1", "uint2"):
            continue
        assert getattr(dtypes, name)(d if name != "short_dtype_name" else np.dtype(d)) == getattr(
            theirs, name
        )(d if name != "short_dtype_name" else np.dtype(d)), d
    assert dtypes.short_dtype_name(dtypes.float0) == theirs.short_dtype_name(jax.dtypes.float0)


ABOVE = [
    np.generic,
    np.number,
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.inexact,
    np.floating,
    np.complexfloating,
    np.bool_,
    np.void,
    float,
    int,
    complex,
    bool,
    "float32",
    "bfloat16",
    "int4",
]


def test_issubdtype():
    below = [*NAMES, *SCALARS, dtypes.float0, np.float32, jnp.bfloat16, np.floating]
    for a, b in itertools.product(below, ABOVE + NAMES):
        assert dtypes.issubdtype(a, b) == jax.dtypes.issubdtype(a, b), (a, b)


def test_extended_dtypes():
    class Key(dtypes.ExtendedDType):
        name = "key<fry>"
        itemsize = 8
        type = dtypes.prng_key

    key = Key()
    assert dtypes.issubdtype(key, dtypes.prng_key)
    assert dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, np.generic)
    assert not dtypes.issubdtype(key, np.number)
    assert dtypes.issubdtype(key, key)
    assert dtypes.short_dtype_name(key) == "key<fry>"
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="extended dtype"):
        dtypes.canonicalize_dtype(key)
    assert dtypes.check_and_canonicalize_user_dtype(key) is key


def test_isdtype():
    kinds = [
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
        np.int32,
        "float32",
        ("bool", "integral"),
        3,
        "foo",
    ]
    for d, kind in itertools.product(NAMES, kinds):
        assert outcome(dtypes.isdtype, d, kind) == outcome(jnp.isdtype, d, kind)


def test_scalar_type_to_dtype():
    for x64 in (False, True):
        with both("standard", x64):
            for args in [
                (int, 2**40),
                (int, 2**31 - 1),
                (int, 2**31),
                (int, 2**64),
                (float, 1.0),
                (complex, 1j),
            ]:
                ours = outcome(dtypes.scalar_type_to_dtype, *args)
                assert ours == outcome(theirs.scalar_type_to_dtype, *args)


def test_safe_to_cast():
    for a, b in itertools.product(NAMES, repeat=2):
        expected = outcome(theirs.safe_to_cast, a, b)
        ours = dtypes.safe_to_cast(a, b)
        assert ours == (expected if isinstance(expected, bool) else False), (a, b)


@pytest.mark.parametrize("to", [np.float32, np.float64, np.bool_, np.int32, jnp.bfloat16, jnp.int4, "f4", float])
def test_casts_between_scalar_types(to):
    for x in (np.float32, np.bool_, jnp.int8, jnp.bfloat16, "i4", int, np.arange(2), np.dtype("complex64")):
        for rule in ("safe", "same_kind"):
            assert styrax.numpy.can_cast(x, to, rule) == jnp.can_cast(x, to, rule)
