"""Rows of the table: operations on each element alone, casts, and what only looks at a value."""

from __future__ import annotations

from collections.abc import Collection

from tests.fuzz.draw import Call, Draw
from tests.fuzz.rows import Row
from tests.fuzz.values import ALL, BOOL, COMPLEX, FLOATS, FULL, INEXACT, INTS, NUMBERS, SIGNED, TINY, UNSIGNED

REAL = (*INTS, *FLOATS)
BYTES = tuple(t for t in INTS if t not in ("int4", "uint4"))


STEPS = "JAX takes subnormal numbers for zeros, which are on the other side of a step"
FAR = "slopes of slopes of asinh overflow or not by the order in which XLA multiplies"
FOLDED = "XLA folds leading zeros of negative constants to less than none"
CLOSE = "slopes of scaled Bessel functions of huge numbers are what cancels of two that are equal in all digits"
UNARY_LIMITS = {**dict.fromkeys(("bessel_i0e", "bessel_i1e"), ("moderate", CLOSE)),
                **dict.fromkeys(("ceil", "floor", "sign"), ("normal", STEPS)),
                "asinh": ("moderate", FAR), "clz": ("natural", FOLDED)}


def unary(dtypes: Collection[str], name: str) -> Row:
    made, limit = UNARY_LIMITS.get(name, ("", ""))
    code = f"lax.{name}({made}({{0}}))" if made else f"lax.{name}({{0}})"
    return Row(
        name.removeprefix("bitwise_"),
        lambda d: Call(code, (d.value(dtypes),)),
        KINDS.get(name, "smooth"),
        limit=limit,
    )


KINDS = {
    "neg": "exact",
    "abs": "kink",
    "sign": "jump",
    "floor": "jump",
    "ceil": "jump",
    "is_finite": "jump",
    "bitwise_not": "exact",
    "population_count": "exact",
    "clz": "exact",
    "real": "exact",
    "imag": "exact",
    "conj": "exact",
    "stop_gradient": "exact",
    "max": "kink",
    "min": "kink",
    "rem": "jump",
    "eq": "jump",
    "ne": "jump",
    "lt": "jump",
    "le": "jump",
    "gt": "jump",
    "ge": "jump",
    "atan2": "cut",
    "bitwise_and": "exact",
    "bitwise_or": "exact",
    "bitwise_xor": "exact",
    "mulhi": "exact",
    "shift_left": "exact",
    "shift_right_logical": "exact",
    "shift_right_arithmetic": "exact",
    "square": "smooth",
}
UNARY = {
    "neg": (*NUMBERS, *TINY),
    "sign": REAL,
    "abs": (*SIGNED, *FLOATS),
    "floor": FLOATS,
    "ceil": FLOATS,
    "is_finite": FLOATS,
    "exp": INEXACT,
    "exp2": INEXACT,
    "log": FLOATS,
    "expm1": INEXACT,
    "log1p": FLOATS,
    "logistic": INEXACT,
    "sqrt": FLOATS,
    "rsqrt": FLOATS,
    "cbrt": FLOATS,
    "square": NUMBERS,
    "sin": INEXACT,
    "cos": INEXACT,
    "tan": INEXACT,
    "asin": FLOATS,
    "acos": FLOATS,
    "atan": FLOATS,
    "sinh": INEXACT,
    "cosh": INEXACT,
    "tanh": INEXACT,
    "asinh": FLOATS,
    "acosh": FLOATS,
    "atanh": FLOATS,
    "erf": FLOATS,
    "erfc": FLOATS,
    "erf_inv": FLOATS,
    "lgamma": FLOATS,
    "digamma": FLOATS,
    "bessel_i0e": FLOATS,
    "bessel_i1e": FLOATS,
    "stop_gradient": ALL,
    "real": COMPLEX,
    "imag": COMPLEX,
    "conj": INEXACT,
    # of four bits XLA counts others, too
    "bitwise_not": (*BOOL, *INTS),
    "population_count": BYTES,
    "clz": BYTES,
}
BINARY = {
    "add": (*NUMBERS, *TINY),
    "sub": NUMBERS,
    "mul": (*NUMBERS, *TINY),
    "div": NUMBERS,
    "rem": REAL,
    "max": (*BOOL, *REAL),
    "min": (*BOOL, *REAL),
    "atan2": FLOATS,
    "bitwise_and": (*BOOL, *INTS),
    "bitwise_or": (*BOOL, *INTS),
    "bitwise_xor": (*BOOL, *INTS),
    "shift_left": INTS,
    "shift_right_logical": INTS,
    "shift_right_arithmetic": INTS,
    "eq": ALL,
    "ne": ALL,
    "lt": (*BOOL, *REAL),
    "le": (*BOOL, *REAL),
    "gt": (*BOOL, *REAL),
    "ge": (*BOOL, *REAL),
    "igamma": FULL,
    "igammac": FULL,
    "igamma_grad_a": FULL,
    "zeta": FULL,
    "random_gamma_grad": FULL,
    "mulhi": ("int32", "uint32", "int64", "uint64"),
}
CUTS = (
    "sign",
    "abs",
    "log",
    "sqrt",
    "rsqrt",
    "log1p",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
)  # complex ones jump


ON_CUTS = "on the cuts of asin, acos, their hyperbolic kin and sqrt JAX takes no notice of a zero's sign"
HALF_NAN = "JAX's atan and atanh have angles of NaN, or of NaN and infinity, and see no zero's sign on their cuts"
BLIND = ("asin", "acos", "asinh", "acosh", "sqrt", "rsqrt")
ROUND = "real parts of JAX's complex logarithms lose digits where the number's modulus is close to 1"
CUT_LIMITS = {"log": ("off_circle", ROUND), **dict.fromkeys(BLIND, ("unsigned", ON_CUTS)),
              **dict.fromkeys(("atan", "atanh"), ("settled", HALF_NAN))}
VANISHING = "JAX's slopes of gamma samples are off, by a fifth in places, where the density underflows"
SUBNORMAL = "JAX takes subnormal divisors for zeros"
CANCELLED = "the upper incomplete gamma function of orders near zero is what cancels of one"
SUBNORMAL_ORDER = "JAX takes slopes of the incomplete gamma function by orders near zero for zero"
LEAST_ORDER = ("JAX takes the incomplete gamma function of the least orders for zero, and of huge numbers its "
               "series do not end")
LIMITS = {"igamma": ("mild", LEAST_ORDER), "igamma_grad_a": ("mild", SUBNORMAL_ORDER),
          "igammac": ("mild", CANCELLED),
          "random_gamma_grad": ("mild", VANISHING), "rem": ("normal", SUBNORMAL)}
HUGE = "of huge parameters JAX's incomplete beta function is NaN, also where it is zero or one"
NO_STEP = "JAX takes subnormal numbers next to zero for zeros"


def binary(dtypes: Collection[str], name: str) -> Row:
    made, limit = LIMITS.get(name, ("", ""))
    code = f"lax.{name}({made}({{0}}), {made}({{1}}))" if made else f"lax.{name}({{0}}, {{1}})"

    def make(d: Draw) -> Call:
        x = d.value(dtypes)
        return Call(code, (x, d.like(x)))

    kind = KINDS.get(name, "smooth")
    return Row(name.removeprefix("bitwise_"), make, kind, limit=limit)


def nextafter(d: Draw) -> Call:
    x = d.value(("float32", "float64"))
    return Call("normal(lax.nextafter({0}, {1}))", (x, d.like(x)))


def promoted(name: str, operator: str, kind: str = "smooth") -> Row:
    """An operator of two values of other types and shapes."""

    def make(d: Draw) -> Call:
        return Call(f"jnp.{operator}({{0}}, {{1}})", (d.value(NUMBERS, most=1), d.value(NUMBERS)))

    return Row(name, make, kind)


def incomplete_beta(d: Draw) -> Call:
    a = d.value(FULL)
    return Call("lax.betainc(moderate({0}), moderate({1}), {2})", (a, d.like(a), d.like(a)))


def clamp(d: Draw) -> Call:
    x = d.value(REAL)
    t = d.type(x)
    bounds = [d.shaped(() if d.flag() else t.shape, t.dtype)]
    bounds.append(d.shaped(d.type(bounds[0]).shape, t.dtype))
    return Call("lax.clamp({0}, {1}, {2})", (bounds[0], x, bounds[1]))


def select(d: Draw) -> Call:
    x = d.value()
    t = d.type(x)
    which = d.shaped(t.shape if d.flag() else (), "bool")
    return Call("lax.select_n({0}, {1}, {2})", (which, x, d.like(x)))


def select_of_three(d: Draw) -> Call:
    x = d.value()
    return Call("lax.select_n({0}, {1}, {2}, {3})", (d.shaped(d.type(x).shape, "int32"), x, d.like(x), d.like(x)))


def targets(d: Draw, options: Collection[str]) -> str:
    return d.choice(sorted(o for o in options if d.x64 or o not in ("int64", "uint64", "float64", "complex128")))


def cast(d: Draw) -> Call:
    """To another dtype. Numbers outside of an integer's range are not defined, so those are of mild ones."""
    x = d.value()
    to = targets(d, ALL)
    inner = "{0}"
    if d.type(x).inexact and (to in INTS):
        if d.type(x).dtype in COMPLEX:
            inner = "lax.real({0})"
        inner = f"jnp.clip(finite({inner}), {0 if to in UNSIGNED else -8}, 7)"
    return Call(f"lax.convert_element_type({inner}, dtype('{to}'))", (x,))


def widened(d: Draw) -> Call:
    """To an inexact dtype, of what was rounded before."""
    x = d.value(INEXACT)
    t = d.type(x)
    return Call(
        f"lax.convert_element_type({{0}}, dtype('{targets(d, COMPLEX if t.dtype in COMPLEX else INEXACT)}'))", (x,)
    )


SAME_SIZE = (
    ("int8", "uint8"),
    ("int16", "uint16", "float16", "bfloat16"),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)


WHICH_NAN = "which NaN results is not defined"


def bitcast(d: Draw) -> Call:
    group = d.choice([g for g in SAME_SIZE if d.x64 or g[0] != "int64"])
    return Call(
        f"lax.bitcast_convert_type(finite({{0}}), np.dtype('{d.choice([g for g in group if g != 'bfloat16'])}'))",
        (d.value(group),),
    )


def complex_of(d: Draw) -> Call:
    x = d.value(FULL)
    return Call("lax.complex({0}, {1})", (x, d.like(x)))


def power(d: Draw) -> Call:
    x = d.value(FLOATS)
    y = d.shaped(d.type(x).shape, "int32") if d.flag() else d.like(x)
    return Call("lax.pow({0}, {1})", (x, y))


def order(name: str) -> Row:
    def make(d: Draw) -> Call:
        x = d.value(FULL)
        return Call(f"lax.{name}_p.bind(finite({{0}}), finite({{1}}))", (x, d.like(x)))

    return Row(name, make, "jump", limit=WHICH_NAN)


ROWS = [
    *(unary(dtypes, name) for name, dtypes in UNARY.items()),
    *(binary(dtypes, name) for name, dtypes in BINARY.items()),
    Row("nextafter", nextafter, "jump", narrow=True, limit=NO_STEP),
    *(
        Row(name, lambda d, name=name: Call(f"lax.{name}({{0}})", (d.value(COMPLEX),)), "cut", name + " complex")
        for name in CUTS
        if name not in CUT_LIMITS
    ),
    *(
        Row(
            name,
            lambda d, name=name, made=made: Call(f"lax.{name}({made}({{0}}))", (d.value(COMPLEX),)),
            "cut",
            name + " complex",
            limit=limit,
        )
        for name, (made, limit) in CUT_LIMITS.items()
    ),
    *(order(name) for name in ("eq_to", "le_to", "lt_to")),
    promoted("add", "add"),
    promoted("mul", "multiply"),
    promoted("sub", "subtract"),
    promoted("div", "divide"),
    promoted("max", "maximum", "kink"),
    Row(
        "rem",
        lambda d: Call("jnp.remainder(normal({0}), normal({1}))", (d.value(NUMBERS, most=1), d.value(NUMBERS))),
        "jump",
        "remainder",
        limit=SUBNORMAL,
    ),
    promoted("lt", "less", "jump"),
    Row("regularized_incomplete_beta", incomplete_beta, limit=HUGE),
    Row(
        "polygamma",
        lambda d: Call(
            f"lax.polygamma(jnp.full({{0}}.shape, {d.integer(0, 3)}, {{0}}.dtype), {{0}})", (d.value(FULL),)
        ),
    ),
    Row("clamp", clamp, "kink"),
    Row("select_n", select, "exact"),
    Row("select_n", select_of_three, "exact", "select_n of three"),
    Row("convert_element_type", cast, "jump", limit="integers from numbers outside of their range are not defined"),
    Row("convert_element_type", widened, "smooth", "convert inexact"),
    Row("bitcast_convert_type", bitcast, "jump", narrow=True, limit=WHICH_NAN),
    Row("complex", complex_of, "exact"),
    Row("pow", power),
    Row("integer_pow", lambda d: Call(f"lax.integer_pow({{0}}, {d.integer(-3, 5)})", (d.value(INEXACT),))),
    Row(
        "integer_pow",
        lambda d: Call(f"lax.integer_pow({{0}}, {d.integer(0, 4)})", (d.value(INTS),)),
        name="integer_pow of integers",
    ),
    Row(
        "integer_pow",
        lambda d: Call(f"jnp.power({{0}}, np.{d.choice(INTS)}({d.integer(0, 4)}))", (d.value(NUMBERS),)),
        name="integer_pow by NumPy's scalars",
    ),
    Row(
        "round", lambda d: Call(f"lax.round({{0}}, lax.RoundingMethod({d.integer(0, 1)}))", (d.value(FLOATS),)), "jump"
    ),
    Row(
        "reduce_precision",
        lambda d: Call(
            f"lax.reduce_precision({{0}}, {d.choice((4, 5, 8))}, {d.choice((2, 7, 10))})", (d.value(FLOATS),)
        ),
        "jump",
    ),
    Row("copy", lambda d: Call("jnp.copy({0})", (d.value(),)), "exact"),
    Row("name", lambda d: Call("jax.ad_checkpoint.checkpoint_name({0}, 'kept')", (d.value(),)), "exact"),
    Row("device_put", lambda d: Call("jax.device_put({0}, jax.devices()[0])", (d.value(),)), "exact"),
    Row(
        "optimization_barrier",
        lambda d: Call("lax.optimization_barrier(({0}, {1}))", (d.value(), d.value()), single=False),
        "exact",
    ),
    Row(
        "pure_callback",
        lambda d: Call(
            "jax.pure_callback(lambda x: -np.asarray(x), jax.ShapeDtypeStruct(jnp.shape({0}), {0}.dtype), {0}, "
            "vmap_method='sequential')",
            (d.value(("int32", "float32")),),
        ),
        "exact",
    ),
    Row("composite", lambda d: Call("lax.composite(lambda x: x * 3, 'fuzz.three')({0})", (d.value(NUMBERS),))),
    Row("debug_callback", lambda d: Call("observed({0})", (d.value(),)), "exact"),
    Row(
        "io_callback",
        lambda d: Call(
            "jax.experimental.io_callback("
            "lambda x: -np.asarray(x), jax.ShapeDtypeStruct(jnp.shape({0}), {0}.dtype), {0})",
            (d.value(("int32", "float32")),),
        ),
        "exact",
    ),
    Row("linear_call", lambda d: Call("linear({0})", (d.value(FLOATS),))),
    Row(
        "custom_vmap_call",
        lambda d: Call("own_batching(lambda x: (jnp.sin(x) * 2,))({0})", (d.value(FLOATS),), single=False),
    ),
    Row("get", lambda d: Call("updated({0}, {1}, 'set')", _two(d), single=False), "exact", adds=("new_ref", "swap")),
    Row("swap", lambda d: Call("updated({0}, {1}, 'swap')", _two(d), single=False), "exact", "ref swap"),
    Row("addupdate", lambda d: Call("accumulated({0}, {1})", _two(d, INEXACT))),
    Row("freeze", lambda d: Call("updated({0}, {1}, 'freeze')", _two(d), single=False), "exact"),
    Row(
        "all_to_all",
        lambda d: _all_to_all(d),
        "exact",
        needs_axis=True,
        limit="of what is not mapped JAX's all_to_all has an axis too many",
    ),
    Row("reduce_scatter", lambda d: _psum_scatter(d), needs_axis=True),
    Row("psum", lambda d: Call(f"lax.psum({{0}}, '{_axis(d)}')", (d.value(INEXACT),)), needs_axis=True),
    Row("pmax", lambda d: Call(f"lax.pmax({{0}}, '{_axis(d)}')", (d.value(REAL),)), "kink", needs_axis=True),
    Row("pmin", lambda d: Call(f"lax.pmin({{0}}, '{_axis(d)}')", (d.value(REAL),)), "kink", needs_axis=True),
    Row("axis_index", lambda d: Call(f"lax.axis_index('{_axis(d)}')"), "exact", needs_axis=True),
    Row(
        "all_gather",
        lambda d: Call(f"lax.all_gather({{0}}, '{_axis(d)}')", (d.value(most=2),)),
        "exact",
        needs_axis=True,
    ),
    Row(
        "ppermute",
        lambda d: Call(
            f"lax.pshuffle({{0}}, '{_axis(d)}', list(range(lax.axis_size('{_axis(d)}')))[::-1])", (d.value(),)
        ),
        "exact",
        needs_axis=True,
    ),
]


def _all_to_all(d: Draw) -> Call:
    name, size = d.axes[-1]
    x = d.value(least=1, extra=lambda t: size in t.shape)
    shape = d.type(x).shape
    where = [i for i, n in enumerate(shape) if n == size]
    to = d.integer(0, len(shape) - 1)
    return Call(f"lax.all_to_all(mapped_along({{0}}, '{name}'), '{name}', {d.choice(where)}, {to})", (x,))


def _psum_scatter(d: Draw) -> Call:
    name, size = d.axes[-1]
    x = d.value(FLOATS, least=1, extra=lambda t: size in t.shape)
    where = [i for i, n in enumerate(d.type(x).shape) if n == size]
    return Call(f"lax.psum_scatter({{0}}, '{name}', scatter_dimension={d.choice(where)}, tiled={d.flag()})", (x,))


def _two(d: Draw, dtypes: Collection[str] = ALL) -> tuple[str, str]:
    x = d.value(dtypes)
    return x, d.like(x)


def _axis(d: Draw) -> str:
    return d.choice(d.axes)[0]
