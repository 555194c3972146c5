"""What mistakes are told, word for word as by JAX, and small values beside them: rows are evaluated under both."""

from __future__ import annotations

import collections
import importlib
import re
from typing import Any

import numpy as np
import pytest

from .test_messages import message

CONTAINERS = ["{}", "(1, 2)", "{1}", "[1]"]
SIGNS = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "@", "=="]

ROWS: dict[str, list[str]] = {
    "operators": [
        *(f"x {sign} {c}" for sign in ("+", "*", "==") for c in ("(1, 2)", "[1]")), "(1, 2) + x", "[1] * x",
        "x + NT(1, 2)", "NT(1, 2) + x", "x * NT(1, 2)", "NT(1, 2) * x", "x == NT(1, 2)", "x != NT(1, 2)",
        "x == type('L', (list,), {})()", "x != type('S', (set,), {})()",
    ],
    "carries": [
        "lax.scan(lambda c, _: ((jnp.ones((1, 1)), c[1]), None), (1, 2), None, length=2)",
        "lax.scan(lambda c, _: ((1., jnp.ones((1, 1))), None), (jnp.int32(1), jnp.int32(1)), None, length=2)",
        "lax.scan(lambda c, _: (jnp.ones((2, 3)), None), jnp.ones(2), None, length=2)",
        "lax.while_loop(lambda x: True, lambda x: jnp.ones((2, 2)), jnp.ones(2, int))",
        "lax.cond(True, lambda: jnp.ones((1, 1)), lambda: 1)",
        "lax.cond(True, lambda: (jnp.ones((1, 1)), jnp.ones(2, int)), lambda: (1, 1.))",
        "lax.cond(True, lambda: jnp.ones(3), lambda: jnp.ones(2, int))",
        "lax.cond(True, lambda: jnp.ones(3), lambda: jnp.ones(2))",
    ],
    "predicates": [
        *(f"lax.cond({p}, lambda: 1, lambda: 2)" for p in (
            "{}", "(1., 2.)", "[True]", "'a'", "jnp.ones(2)", "1j", "None")),
        *(f"lax.switch({i}, [lambda: 1, lambda: 2])" for i in (
            "'a'", "{}", "(1,)", "[0, 1]", "jnp.ones(2, int)", "1.", "True")),
        "m.jit(lambda n: lax.scan(lambda c, x: (c, x), 0, jnp.arange(3), unroll=n))(2)",
    ],
    "loops of Python": [
        "python(lambda v: lax.while_loop(lambda c: c[0].sum() < 4, grow, (v, v)), np.zeros(2))",
        "python(lambda v: lax.fori_loop(0, 3, lambda i, c: grow(c), (v, v)), np.zeros(2))",
        "python(lambda v: lax.while_loop(lambda x: x < 3, lambda x: x + 1, v), 1)",
        "python(lambda v: m.vmap(lambda n: lax.while_loop(lambda x: x < n, lambda x: x + 1, v))(jnp.arange(3)), 0)",
    ],
    "functions": [
        "lax.add(jnp.ones((2, 3)), x)",
        "jnp.broadcast_to(jnp.ones((2, 3)), (3,))", "jnp.full(3, x.reshape(3, 1))", "jnp.broadcast_to(x, (2, 4))",
        "lax.pad(x, x, [(1, 1, 0)])", "x.mT", "jnp.rot90(x)", "jnp.pad(x, 1, mode='edge', constant_values=1)",
        "jnp.meshgrid(jnp.ones((2, 3)), x)", "jnp.arange(x)", "jnp.array([x, jnp.ones(2)])",
        "lax.reduce_sum_p.bind(x, axes=(3,), out_sharding=None)", "lax.bitcast_convert_type(x, jnp.complex64)",
        "jnp.linalg.multi_dot([x[None], x[None]])", "jnp.linalg.cond(x)", "jnp.linalg.cond(x[None], p=1)",
        "jnp.linalg.norm(x[None, None], ord=2)", "jnp.linalg.eig(x[None])", "jnp.searchsorted(x, 1., side='middle')",
        "m.device_put('a')", "m.set_mesh(3)",
        "m.config.update('jax_platforms', 3)",
    ],
    "arguments of functions with rules": [
        f"{start}, {call})" for start in ("told(m.custom_jvp", "told(m.custom_vjp") for call in (
            "lambda x: x, lambda f: f()", "lambda x: x, lambda f: f(x, x)", "lambda x: x, lambda f: f(y=x)",
            "lambda x, *, k: x, lambda f: f(x, k=2)", "lambda x, k=2: x * k, lambda f: f(x)",
            "lambda x, k=2: x * k, lambda f: f(x, k=3)", "lambda x: x, lambda f: m.jit(f)(x, x)",
            "lambda x, *, k: x, lambda f: m.jit(lambda x: f(x, k=2))(x)")
    ],
    "solvers": [
        "lax.custom_linear_solve(lambda x: [x], x, lambda _, b: b)",
        "lax.custom_linear_solve(lambda x: x, x, lambda _, b: [b])",
        "lax.custom_linear_solve(lambda x: [x], [x], lambda _, b: b)",
        "lax.custom_linear_solve(lambda x: x, x, lambda _, b: ([b], 1), has_aux=True)",
        "lax.custom_linear_solve(lambda x: (x, x), x, lambda _, b: b)",
        "lax.custom_linear_solve(lambda x: x, (x, x), lambda _, b: b[0])",
        "m.grad(lambda b: lax.custom_linear_solve(lambda x: x, b, lambda _, b: b, lambda _, b: [b]).sum())(x)",
        "m.grad(lambda a: lax.custom_root(lambda x: x - a, 1., lambda _, x: a, lambda _, y: (y, y)))(2.)",
    ],
}


class NT(collections.namedtuple("NT", "a b")):
    """A tuple with operators of its own."""

    def __add__(self, other):
        return "left sum"

    def __radd__(self, other):
        return "right sum"

    def __rmul__(self, other):
        return "right product"

    def __eq__(self, other):
        return "equal"

    __hash__ = None


def grow(carry: Any) -> Any:
    x, y = carry
    x += 1  # in place, if it can be
    return x, y + x


def told(transformation: Any, f: Any, use: Any) -> Any:
    """What a use of a function with a rule gives."""
    function = transformation(f)
    if hasattr(function, "defjvp"):
        function.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    else:
        function.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: (ct,) * len(xs))
    return use(function)


def names(m: Any) -> dict[str, Any]:
    jnp = m.numpy

    def python(f: Any, v: Any) -> Any:
        with m.disable_jit():
            out = f(v)
        return m.tree.map(lambda x: (isinstance(x, m.Array), np.asarray(x).tolist(), str(x.dtype)), out), v

    return {"m": m, "jnp": jnp, "lax": m.lax, "np": np, "x": jnp.ones(3), "NT": NT, "grow": grow, "told": told,
            "python": python}


def outcome(package: str, row: str) -> tuple[str, str]:
    m = importlib.import_module(package)
    for part in ("numpy", "lax"):
        importlib.import_module(f"{package}.{part}")
    try:
        return "value", repr(eval(row, names(m))).replace(f"{package}.", "jax.")
    except Exception:
        return message(m, lambda _: eval(row, names(m)))


@pytest.mark.parametrize("row", [row for rows in ROWS.values() for row in rows])
def test_row(row: str) -> None:
    kind, text = outcome("jax", row)
    assert outcome("styrax", row) == (kind, text)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("sign", SIGNS)
def test_operators_refuse_containers(sign: str, container: str) -> None:
    """Some of the messages are Python's, which name the class, and that is another one."""
    for row in (f"x {sign} {container}", f"{container} {sign} x", f"m.jit(lambda x: x {sign} {container})(x)"):
        kind, text = outcome("jax", row)
        text = text.replace("jaxlib._jax.", "")
        assert (kind, re.search("unsupported operand", text) is None) == ("TypeError", False)
        got = outcome("styrax", row)
        assert (got[0], re.sub(r"\b\w*Tracer\b", "", got[1])) == (kind, re.sub(r"\b\w*Tracer\b", "", text)), row


@pytest.mark.parametrize("row", [
    "lax.batch_matmul(jnp.ones((2, 3, 3)), jnp.ones((4, 3, 3)))", "jnp.dot(x, jnp.ones((2, 3)))", "x @ jnp.ones(4)"])
def test_products_tell_the_shapes_of_their_operands(row: str) -> None:
    (kind, text), (our_kind, ours) = outcome("jax", row), outcome("styrax", row)
    first, _, more = ours.partition("\n")
    assert (our_kind, first) == (kind, text)
    assert re.fullmatch(r"The operands have shapes \(.*\) and \(.*\)\.", more)
