"""Dtypes and weak types of what library functions make of Python numbers, and of trees of them."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import styrax


def types(m: Any, results: Any) -> list[tuple[str, bool]]:
    return [(str(x.dtype), bool(x.weak_type)) for x in m.tree.leaves(results)]


SPECIAL = [("gamma", 2.0), ("gamma", 2), ("gamma", 1j), ("gammasgn", 0.5), ("gammasgn", 2), ("loggamma", 1j),
           ("loggamma", 0.5), ("beta", 2.0, 3.0), ("beta", 2, 3), ("expn", 1, 2.0), ("expn", 2, 3), ("erfcx", 0.5),
           ("erfcx", 1j), ("owens_t", 2.0, 3.0), ("owens_t", np.float16(2), 3.0), ("poch", 2, 3), ("betaln", 2.0, 3.0),
           ("expi", 2.0), ("exp1", 2)]


@pytest.mark.parametrize("name, args", [(n, a) for n, *a in SPECIAL])
def test_special_functions_of_python_numbers(name: str, args: list) -> None:
    ours, theirs = (importlib.import_module(f"{m}.scipy.special") for m in ("styrax", "jax"))
    assert types(styrax, getattr(ours, name)(*args)) == types(jax, getattr(theirs, name)(*args))


SETS = [("isin", (2, 3)), ("isin", (2.0, [1.0, 2.0])), ("unique", (1j,)), ("unique", (2,)), ("unique_counts", (1j,))]


@pytest.mark.parametrize("name, args", SETS)
def test_sets_of_python_numbers(name: str, args: tuple) -> None:
    def result(m: Any) -> Any:
        return getattr(m.numpy, name)(*(m.numpy.asarray(a) if isinstance(a, list) else a for a in args))

    assert types(styrax, result(styrax)) == types(jax, result(jax))


NUMBERS: dict[str, Any] = {"int": 2, "float": 0.5, "bool": True, "complex": 1j}
MIXED = {**NUMBERS, **{f"weak {k}": v for k, v in NUMBERS.items() if k != "bool"}, "weak vector": [0.5, 2.0],
         "weak ints": [2, 3], "bools": np.array([True, False]), "int8": np.array([1, 2], np.int8),
         "int32": np.array([1, 2], np.int32), "float16": np.array([1, 2], np.float16),
         "float32": np.array([1, 2], np.float32)}
TWO = """
    numpy.hypot numpy.gcd numpy.lcm numpy.logaddexp numpy.logaddexp2 numpy.heaviside numpy.arctan2 numpy.nextafter
    numpy.copysign numpy.floor_divide numpy.remainder numpy.fmod numpy.divmod numpy.power numpy.float_power
    numpy.fmax numpy.ldexp numpy.maximum numpy.true_divide scipy.special.kl_div scipy.special.rel_entr
    scipy.special.xlogy scipy.special.xlog1py scipy.special.boxcox scipy.special.betaln scipy.special.gammainc
""".split()
ONE = """
    numpy.angle numpy.iscomplex numpy.isreal numpy.logical_not numpy.sinc numpy.sign numpy.frexp numpy.modf
    numpy.nan_to_num numpy.rint numpy.trunc numpy.spacing numpy.sort_complex numpy.diagonal numpy.count_nonzero
    scipy.special.entr scipy.special.ndtr scipy.special.logit nn.mish nn.relu nn.relu6 nn.elu nn.leaky_relu nn.softplus
    nn.logsumexp nn.silu nn.celu nn.selu nn.gelu
""".split()


def operand(m: Any, name: str) -> Any:
    value = MIXED[name]
    if isinstance(value, list):
        return m.numpy.full((2,), value[0])
    return m.numpy.asarray(value) if name.startswith("weak") or isinstance(value, np.ndarray) else value


def told(m: Any, path: str, names: tuple[str, ...]) -> Any:
    """The types of a function's results, or its error's class."""
    package, _, name = path.rpartition(".")
    function = getattr(importlib.import_module(f"{m.__name__}.{package}"), name)
    args = [operand(m, n) for n in names]
    if name == "diagonal":
        args = [m.numpy.broadcast_to(x, (2, 2)) for x in args]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return types(m, m.eval_shape(lambda: function(*args)))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("path", TWO)
def test_types_of_functions_of_two(path: str) -> None:
    """A constant beside a weakly typed operand is weakly typed only where the operand is a scalar."""
    pairs = [(a, b) for a in MIXED for b in MIXED]
    different = {p: (ours, theirs) for p in pairs if (ours := told(styrax, path, p)) != (theirs := told(jax, path, p))}
    assert not different


@pytest.mark.parametrize("path", ONE)
def test_types_of_functions_of_one(path: str) -> None:
    different = {n: (ours, theirs) for n in MIXED
                 if (ours := told(styrax, path, (n,))) != (theirs := told(jax, path, (n,)))}
    assert not different


TREES: list[Any] = [1.0, 1, True, 1j, (1.0, 2.0), (1, 2.0), (True, 1), [], (np.ones(3),), (np.float32(2), 3.0),
                    {"a": np.ones((2, 3), np.float32), "b": 2.0}, (np.ones(0, np.float32), 1.0), (1j, 2.0)]


@pytest.mark.parametrize("leaves", TREES, ids=str)
def test_a_vector_of_weakly_typed_leaves_is_weakly_typed(leaves: Any) -> None:
    def results(m: Any) -> Any:
        ravel = importlib.import_module(f"{m.__name__}.flatten_util").ravel_pytree
        vector, unravel = ravel(leaves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            return [vector, unravel(vector)], [str(e.primitive) for e in m.make_jaxpr(unravel)(vector).eqns]

    (ours, program), (theirs, their_program) = results(styrax), results(jax)
    assert types(styrax, ours) == types(jax, theirs)
    assert program == their_program
    for a, b in zip(styrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(a, b)


WRITES: dict[str, Any] = {
    "at once": lambda m, r, x: r.__setitem__(..., x),
    "added": lambda m, r, x: m.ref.addupdate(r, ..., x),
    "compiled": lambda m, r, x: m.jit(lambda: r.__setitem__(..., x))(),
    "an argument": lambda m, r, x: m.jit(lambda r: r.__setitem__(..., x))(r),
    "scan": lambda m, r, x: m.lax.scan(lambda c, y: (c, r.__setitem__(..., x)), 0.0, np.ones(3, np.float32)),
    "fori_loop": lambda m, r, x: m.lax.fori_loop(0, 2, lambda i, c: (r.__setitem__(..., x), c)[1], 0),
    "cond": lambda m, r, x: m.lax.cond(True, lambda: r.__setitem__(..., x), lambda: None),
}


@pytest.mark.parametrize("way", list(WRITES))
def test_references_stay_as_weakly_typed_as_they_were_made(way: str) -> None:
    for first, x in ((0.0, np.float32(2)), (np.float32(0), 2.0), (0, np.int32(3))):
        found = []
        for m in (styrax, jax):
            ref = m.new_ref(first if isinstance(first, (int, float)) else m.numpy.asarray(first))
            WRITES[way](m, ref, x)
            found.append(types(m, [ref[...], m.freeze(ref)]))
        assert found[0] == found[1], (way, first, x)


def test_slopes_of_solutions_from_python_numbers() -> None:
    def slope(m: Any) -> Any:
        odeint = importlib.import_module(f"{m.__name__}.experimental.ode").odeint
        times = m.numpy.linspace(0, 1, 3)
        return m.grad(lambda y, a: odeint(lambda y, t, a: -a * y, y, times, a)[-1], (0, 1))(1.0, 2.0)

    ours, theirs = slope(styrax), slope(jax)
    assert types(styrax, ours) == types(jax, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_solver_that_takes_no_step_gives_no_solution() -> None:
    """In float16 the tolerance vanishes, and the first step is NaN."""
    def solve(m: Any, **options: float) -> Any:
        odeint = importlib.import_module(f"{m.__name__}.experimental.ode").odeint
        return odeint(lambda y, t: -y, m.numpy.float16(1), m.numpy.array([0.0, 0.5, 1.0]), **options)

    np.testing.assert_array_equal(solve(styrax), solve(jax))
    np.testing.assert_allclose(solve(styrax, rtol=1e-3, atol=1e-3), np.exp([0, -0.5, -1]), rtol=5e-3)
