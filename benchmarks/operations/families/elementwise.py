"""Functions of each element."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

# Of one array, by what they are defined for.
each(
    "jnp",
    "sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 cbrt square negative abs sign floor ceil trunc rint "
    "sinc i0 nan_to_num deg2rad rad2deg reciprocal isnan isfinite isinf signbit spacing",
    "1000", "300,200",
)  # fmt: skip
each("jnp", "sqrt log log2 log10 log1p", "1000:pos", "300,200:pos")
each("jnp", "arcsin arccos arctanh", "1000:signed", "300,200:signed")
each("jnp", "sin cos tan", "500,100:wide")
each("jnp", "exp tanh abs negative square", "1000,1000")
add("arccosh", lambda x: jnp.arccosh(x + 1), "300,200:pos")
add("rsqrt", lambda x: lax.rsqrt(x), "1000:pos", "300,200:pos")
add("logistic", lambda x: lax.logistic(x), "1000", "300,200")
add("erf", lambda x: lax.erf(x), "1000", "300,200")
add("erfc", lambda x: lax.erfc(x), "300,200")
add("erf_inv", lambda x: lax.erf_inv(x), "300,200:signed")
add("round to 2 decimals", lambda x: jnp.round(x, 2), "300,200")
add("clip", lambda x: jnp.clip(x, -1, 1), "1000", "300,200", "1000,1000")
add("clip from below", lambda x: jnp.clip(x, 0), "300,200")
add("clip to an array", lambda x, low: jnp.clip(x, low, low + 1), "300,200 200")
add("frexp", lambda x: jnp.frexp(x), "300,200")
add("modf", lambda x: jnp.modf(x), "300,200")
add("integer power 3", lambda x: x**3, "1000", "300,200")
add("integer power -2", lambda x: x**-2, "300,200:pos")
add("integer power 7", lambda x: x**7, "300,200")
add("power 0.5", lambda x: x**0.5, "300,200:pos")
add("power 2.5", lambda x: x**2.5, "300,200:pos")
add("power 1.5 of integers", lambda x: x**1.5, "10000:int<50")

# Of two arrays.
each(
    "jnp",
    "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2 copysign nextafter "
    "equal less greater_equal not_equal isclose heaviside",
    "1000 1000", "300,200 300,200",
)  # fmt: skip
each("jnp", "power float_power", "1000:pos 1000", "300,200:pos 300,200")
each("jnp", "remainder fmod floor_divide divmod", "1000:wide 1000:pos", "300,200:wide 300,200:pos")
each("jnp", "add multiply divide maximum", "1000,1000 1000,1000")
add("add a row", lambda x, y: x + y, "300,200 200", "1000,1000 1000")
add("add a column", lambda x, y: x + y, "300,200 300,1", "1000,1000 1000,1")
add("multiply by a scalar", lambda x, y: x * y, "1000 ()", "1000,1000 ()")
add("row plus column", lambda x, y: x[:, None] + y[None, :], "100 100", "1000 500")
add("middle axis multiplied", lambda x, y: x * y[:, None], "30,40,50 40")
add("add scalars", lambda x, y: x + y, "() ()")
add("sin of a scalar", lambda x: jnp.sin(x), "()")
add("ldexp", lambda x, n: jnp.ldexp(x, n), "300,200 300,200:int<10")

# Of integers and booleans.
for name in "add multiply maximum bitwise_and bitwise_xor left_shift right_shift".split():
    each("jnp", name, "1000:int<20 1000:int<20", "100000:int<20 100000:int<20")
add("floor_divide integers", lambda x, y: x // (y + 1), "1000:int 1000:int<50", "100000:int 100000:int<50")
add("remainder integers", lambda x, y: x % (y + 1), "1000:int 1000:int<50", "100000:int 100000:int<50")
add("divide integers", lambda x, y: x / (y + 1), "100000:int 100000:int<50")
add("floor_divide integers by one that is not known", lambda x, y: x // (y[0] + 1), "100000:int 1:int<50")
add("floor_divide integers by 7", lambda x: x // 7, "100000:int")
add("integer power of integers", lambda x: x**3, "100000:int")
add("power of integers", lambda x, y: x**y, "10000:int<5 10000:int<8")
add("gcd", lambda x, y: jnp.gcd(x, y), "1000:int<5000 1000:int<5000", "10000:int<5000 10000:int<5000")
add("lcm", lambda x, y: jnp.lcm(x, y), "1000:int<500 1000:int<500")
each("jnp", "logical_and logical_or logical_xor", "100000:bool 100000:bool")
each("jnp", "logical_not", "1000:bool", "100000:bool")
each("jnp", "invert bitwise_count", "100000:bits")
each("lax", "population_count clz bitwise_not", "1000:bits", "100000:bits")
each("lax", "shift_right_logical shift_left mulhi", "100000:bits 100000:bits")
add("abs of integers", lambda x: jnp.abs(x), "100000:int")
add("bytes added", lambda x, y: x + y, "100000:u8 100000:u8")
add("bytes multiplied", lambda x, y: x * y, "100000:i8 100000:i8")
add("mean of two images", lambda x, y: ((x.astype(jnp.uint16) + y) // 2).astype(jnp.uint8), "200,300:u8 200,300:u8")

# Of complex numbers.
each("jnp", "abs angle conj real imag square", "10000:complex")
each("jnp", "exp sin cos tanh log sqrt", "1000:complex", "20000:complex")
each("jnp", "add multiply divide", "1000:complex 1000:complex", "50000:complex 50000:complex")
add("power of complex numbers", lambda x, y: x**y, "10000:complex 10000:complex")
add("complex of two", lambda x, y: lax.complex(x, y), "50000 50000")
add("magnitude and phase", lambda z: (jnp.abs(z), jnp.angle(z)), "200,100:complex")

# Conversions.
for target in "bfloat16 float16 int32 int8 uint8 bool_ complex64".split():
    add(f"to {target}", lambda x, target=target: x.astype(getattr(jnp, target)), "1000", "300,200")
add("bytes to floats", lambda x: x.astype(jnp.float32) / 255, "1000:u8", "300,200:u8")
add("booleans to floats", lambda x: x.astype(jnp.float32), "100000:bool")
add("integers to floats", lambda x: x.astype(jnp.float32), "100000:int")
add("bfloat16 and back", lambda x: x.astype(jnp.bfloat16).astype(x.dtype), "300,200")
add("bitcast to integers", lambda x: lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32), "1000", "300,200")
add("bitcast to bytes", lambda x: lax.bitcast_convert_type(x, jnp.uint8), "50000:bits")
add("reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), "1000", "300,200")
add("quantize to bytes", lambda x: jnp.clip(jnp.round(x * 32 + 128), 0, 255).astype(jnp.uint8), "300,200")

# Choices.
add("where", lambda c, x, y: jnp.where(c, x, y), "1000:bool 1000 1000", "300,200:bool 300,200 300,200")
add("where with scalars", lambda c: jnp.where(c, 1.0, 0.0), "100000:bool")
add("where a row", lambda c, x, y: jnp.where(c, x, y), "200:bool 300,200 300,200")
add("where positive", lambda x: jnp.where(x > 0, x, 0), "1000", "1000,1000")
add("where a costly branch", lambda x: jnp.where(x > 0, jnp.log(jnp.abs(x) + 1), jnp.exp(x)), "300,200")
add("select of three", lambda x: jnp.select([x < -1, x < 0, x < 1], [x, x * 2, x * 3], 0), "1000", "300,200")
add("piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 1], [lambda x: -x, jnp.sqrt, 0.0]), "10000")
add("choose", lambda i, x, y, z: jnp.choose(i, [x, y, z], mode="clip"), "10000:int<3 10000 10000 10000")
add("select_n of four", lambda i, a, b, c, d: lax.select_n(i.astype(jnp.int32), a, b, c, d),
    "10000:int<4 10000 10000 10000 10000")
add("lax.clamp", lambda x, y, z: lax.clamp(x, y, z), "10000 10000 10000")

# A few together.
add("x*x + x*2", lambda x: x * x + x * 2, "1000", "300,200", "1000,1000")
add("axpy", lambda a, x, y: a * x + y, "() 1000 1000", "() 1000000 1000000")
add("polynomial of degree 8", lambda x: jnp.polyval(jnp.arange(1.0, 10.0, dtype=x.dtype), x), "1000", "300,200")
add("sin and cos", lambda x: (jnp.sin(x), jnp.cos(x)), "1000", "300,200")
add("gaussian", lambda x, m, s: jnp.exp(-0.5 * ((x - m) / s) ** 2), "300,200 200 200:pos")
add("haversine", lambda a, b, c, d: 2 * jnp.arcsin(jnp.sqrt(
    jnp.sin((c - a) / 2) ** 2 + jnp.cos(a) * jnp.cos(c) * jnp.sin((d - b) / 2) ** 2)),
    "10000:unit 10000:unit 10000:unit 10000:unit")
add("black-scholes call", lambda s, k, t, v: s * jax.scipy.stats.norm.cdf(
    (jnp.log(s / k) + 0.5 * v * v * t) / (v * jnp.sqrt(t))) - k * jax.scipy.stats.norm.cdf(
    (jnp.log(s / k) - 0.5 * v * v * t) / (v * jnp.sqrt(t))), "20000:pos 20000:pos 20000:pos 20000:unit")
add("rgb to grey", lambda x: x @ jnp.array([0.299, 0.587, 0.114], x.dtype), "200,300,3:unit")
add("hsv value and saturation", lambda x: (x.max(-1), (x.max(-1) - x.min(-1)) / (x.max(-1) + 1e-3)), "200,300,3:unit")
add("mandelbrot step", lambda z, c: jnp.where(jnp.abs(z) < 2, z * z + c, z), "300,200:complex 300,200:complex")
add("sigmoid of a difference", lambda x, y: jax.nn.sigmoid((x - y) * 3), "1000 1000", "300,200 300,200")
add("five results", lambda x: (x + 1, x * 2, x - 3, x / 4, -x), "1000", "300,200")
