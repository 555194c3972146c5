"""Windows of several dimensions are joined one dimension after another, and gradients of maxima go to elements in
phases: the results are those of NumPy, window by window."""

import itertools

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.pipeline import compile_to_loops

# shape, window, strides, padding, dilation of the array, dilation of the window
WINDOWS = [
    ((2, 3, 15, 17), (1, 1, 3, 3), (1, 1, 2, 2), "SAME", 1, 1),
    ((2, 3, 15, 17), (1, 1, 3, 3), (1, 1, 1, 1), "SAME", 1, 1),
    ((2, 15, 17, 3), (1, 3, 3, 1), (1, 1, 1, 1), "VALID", 1, 1),
    ((2, 2, 20, 20), (1, 1, 7, 7), (1, 1, 3, 3), "SAME", 1, 1),
    ((2, 2, 20, 20), (1, 1, 5, 4), (1, 1, 5, 4), "VALID", 1, 1),
    ((1, 2, 9, 9, 9), (1, 1, 3, 2, 3), (1, 1, 2, 2, 1), "SAME", 1, 1),
    ((23, 31), (9, 9), (1, 1), "SAME", 1, 1),
    ((23, 31), (3, 4), (1, 2), ((2, 0), (0, 3)), 1, 2),
    ((9, 10), (3, 3), (2, 1), ((1, 1), (2, 2)), 2, 1),
    ((1, 1), (3, 3), (1, 1), "SAME", 1, 1),
    ((40, 44), (2, 2), (20, 22), "VALID", 1, 1),
    ((0, 4, 6), (1, 2, 2), (1, 2, 2), "VALID", 1, 1),
]
JOINS = {"add": (lax.add, 0, np.sum), "max": (lax.max, -np.inf, np.max), "min": (lax.min, np.inf, np.min),
         "mul": (lax.mul, 1, np.prod)}


def by_hand(x, function, start, window, strides, padding, base, dilation):
    """Every window, one after another, in float64."""
    pads = padding
    if padding in ("SAME", "VALID"):
        pads = lax.padtype_to_pads(x.shape, window, strides, padding)
    spread = np.full([(n - 1) * base + 1 if n else 0 for n in x.shape], start, x.dtype)
    spread[tuple(slice(None, None, base) for _ in x.shape)] = x
    y = np.pad(spread, pads, constant_values=start)
    sizes = [(n - ((w - 1) * dilation + 1)) // s + 1 for n, w, s in zip(y.shape, window, strides, strict=True)]
    out = np.empty(sizes, x.dtype)
    for index in itertools.product(*map(range, sizes)):
        cut = tuple(slice(i * s, i * s + (w - 1) * dilation + 1, dilation)
                    for i, s, w in zip(index, strides, window, strict=True))
        out[index] = function(y[cut])
    return out


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_values(case, dtype, kind):
    shape, window, strides, padding, base, dilation = case
    join, start, function = JOINS[kind]
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, shape).astype(np.float64) if kind != "mul" else rng.choice([1, -1, 2, 0.5], shape)
    if dtype == "int32":
        x = np.sign(x)
        start = {-np.inf: -2**31, np.inf: 2**31 - 1}.get(start, start)
    elif x.size > 8 and kind != "mul":
        x.flat[3], x.flat[7] = np.inf, np.nan
    with jax.enable_x64(dtype == "float64"):
        initial = np.asarray(jnp.asarray(start, dtype))
        f = lambda x: lax.reduce_window(x, initial, join, window, strides, padding,
                                        base_dilation=(base,) * len(shape), window_dilation=(dilation,) * len(shape))
        found = np.asarray(jax.jit(f)(jnp.asarray(x, dtype))).astype(np.float64)
        with np.errstate(invalid="ignore"):
            expected = by_hand(x, function, float(start), window, strides, padding, base, dilation)
        rounding = {"bfloat16": 2e-2, "float32": 1e-5}.get(dtype, 1e-12)
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)
        batched = jax.jit(jax.vmap(f))(jnp.asarray(np.stack([x, x]), dtype))
        np.testing.assert_array_equal(np.asarray(batched[1]).astype(np.float64), found)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("case", [c for c in WINDOWS if c[4] == c[5] == 1], ids=str)
def test_gradients_go_to_the_first_of_the_greatest(case, kind):
    shape, window, strides, padding, _, _ = case
    join, start, _ = JOINS[kind]
    x = np.random.default_rng(1).integers(0, 6, shape).astype(np.float32)  # with many ties
    pool = lambda x: lax.reduce_window(x, np.float32(start), join, window, strides, padding)
    out, pull = jax.vjp(pool, jnp.asarray(x))
    weights = np.arange(1, out.size + 1, dtype=np.float32).reshape(out.shape)
    pads = padding if not isinstance(padding, str) else lax.padtype_to_pads(shape, window, strides, padding)
    expected = np.pad(np.zeros(shape, np.float32), pads)
    padded = np.pad(x, pads, constant_values=start)
    first = np.argmax if kind == "max" else np.argmin
    for index in itertools.product(*map(range, out.shape)):
        corner = [i * s for i, s in zip(index, strides, strict=True)]
        cut = padded[tuple(slice(c, c + w) for c, w in zip(corner, window, strict=True))]
        tap = np.unravel_index(first(cut), window)
        expected[tuple(c + t for c, t in zip(corner, tap, strict=True))] += weights[index]
    inside = tuple(slice(low, low + n) for (low, _), n in zip(pads, shape, strict=True))
    direction = np.arange(x.size, dtype=np.float32).reshape(shape)
    slope = jax.jit(lambda x, t: jax.jvp(pool, (x,), (t,))[1])(x, direction)  # its tangents are those that are selected
    assert float((slope * weights).sum()) == pytest.approx(float((direction * expected[inside]).sum()), rel=1e-5)
    for run in (pull, jax.jit(pull)):
        np.testing.assert_array_equal(np.asarray(run(jnp.asarray(weights))[0]), expected[inside])


@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("name", ["exp", "a chain"])
def test_what_several_windows_read_is_computed_once(name, strides):
    f = {"exp": lambda np_, x: np_.exp(x), "a chain": lambda np_, x: 2 * (x * x + x) - 1}[name]
    step = (1, strides, strides)
    pool = lambda x: lax.reduce_window(f(jnp, x), 0.0, lax.add, (1, 3, 3), step, "SAME")
    x = np.random.default_rng(0).normal(size=(4, 20, 33)).astype(np.float32)
    wanted = by_hand(f(np, x), np.sum, 0, (1, 3, 3), step, "SAME", 1, 1)
    np.testing.assert_allclose(jax.jit(pool)(x), wanted, rtol=1e-5, atol=1e-4)
    text = compile_to_loops(jax.make_jaxpr(pool)(x), "f").show()
    if strides < 3:  # windows overlap
        assert text.count("exp(" if name == "exp" else ", 1.0:float32)") == 1, text
