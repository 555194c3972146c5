"""Programs with control flow, written once for both libraries.

Each is a function of `L` (the `lax` of a library) that gives a function of arrays.
"""

from __future__ import annotations

import numpy as np

F = np.float32
X = np.linspace(0.1, 1, 3).astype(F)
W = (np.arange(9).reshape(3, 3) / 9).astype(F)
BATCH = np.stack([X, 2 * X])


def scan_scalar(L):
    def step(c, x):
        return L.sin(L.mul(c, x)), L.mul(c, c)

    return lambda xs: L.scan(step, F(1), xs)


def scan_reverse(L):
    def step(c, x):
        return L.add(L.mul(c, F(0.5)), x), L.exp(c)

    return lambda xs: L.scan(step, F(0), xs, reverse=True, unroll=2)


def scan_closure(L):
    def rnn(w, xs):
        def step(c, x):
            h = L.mul(L.sin(L.dot(w, c)), L.exp(x))
            return h, L.mul(h, x)

        return L.scan(step, xs, xs)

    return rnn


def scan_invariant(L):
    """Residuals that a loop does not change, and ones that are scanned inputs."""

    def run(w, xs):
        def step(c, x):
            scale = L.exp(w)
            return L.sin(L.add(L.mul(scale, c), L.mul(x, L.cos(scale)))), L.mul(scale, x)

        return L.scan(step, F(1), xs)

    return run


def scan_cumulative(L):
    """Few numbers, whose slopes come by way of slices of nothing."""
    return lambda xs: L.scan(lambda c, x: (L.cummin(L.mul(L.sin(c), x)), c), xs, xs)


def scan_tree(L):
    def step(c, x):
        b, n = c["b"]
        carry = {"a": L.mul(b, x["u"]), "b": (L.sin(c["a"]), L.add(n, np.int32(1)))}
        return carry, {"y": L.add(c["a"], x["v"]), "n": n}

    def run(xs):
        a, b = (L.index_in_dim(xs, i, keepdims=False) for i in range(2))
        return L.scan(step, {"a": a, "b": (b, np.int32(0))}, {"u": xs, "v": L.cos(xs)})

    return run


def scan_weak(L):
    return lambda xs: L.scan(lambda c, x: (L.add(L.convert_element_type(c, F), x), c), 0.0, xs)


def scan_weak_promoted(L):
    return lambda xs: L.scan(
        lambda c, x: (L.add(L.convert_element_type(c, F), x), L.convert_element_type(c, F)), 0, xs
    )


def scan_passing(L):
    """Carries that nothing changes, and results that are scanned inputs."""
    return lambda xs: L.scan(lambda c, x: ((c[0], L.mul(c[1], x)), (x, c[0], L.add(x, c[1]))), (xs, F(2)), xs)


def scan_without_xs(L):
    return lambda x: L.scan(lambda c, _: (L.sin(c), c), x, None, length=4)


def scan_empty(L):
    return lambda x: L.scan(lambda c, _: (L.sin(c), c), x, None, length=0)


def scan_nested(L):
    def inner(c, x):
        return L.scan(lambda d, y: (L.sin(L.mul(d, y)), L.add(d, x)), c, L.broadcast(x, (2,)))

    return lambda xs: L.scan(inner, F(0.5), xs)


def scan_of_cond(L):
    def step(c, x):
        return L.cond(L.gt(c, F(0.3)), L.sin, lambda v: L.add(v, x), c), c

    return lambda xs: L.scan(step, F(0.2), xs)


def cond(L):
    return lambda x: L.cond(L.gt(x, F(0.5)), L.sin, lambda v: L.mul(v, v), x)


def cond_closure(L):
    def run(p, x, y):
        return L.cond(L.gt(p, F(0.5)), lambda: (L.mul(x, y), L.exp(y)), lambda: (L.sin(x), x))

    return run


def cond_passing(L):
    return lambda p, x, y: L.cond(
        L.gt(p, F(0.5)), lambda a, b: (L.sin(a), b), lambda a, b: (L.mul(a, b), b), x, y
    )


def cond_residuals(L):
    return lambda x: L.cond(
        L.gt(x, F(0.5)), lambda v: L.mul(L.sin(v), L.exp(v)), lambda v: L.mul(L.mul(v, v), L.tanh(v)), x
    )


def switch(L):
    branches = [L.sin, L.cos, lambda v: L.mul(v, v), lambda v: L.full_like(v, 1)]
    return lambda i, x: L.switch(i, branches, x)


def while_doubling(L):
    return lambda x: L.while_loop(
        lambda c: L.lt(c[0], F(10)),
        lambda c: (L.mul(c[0], F(2)), L.sin(c[1]), L.add(c[2], np.int32(1))),
        (x, x, 0),
    )


def while_closure(L):
    return lambda x, y, limit: L.while_loop(
        lambda c: L.lt(c[0], limit), lambda c: (L.mul(c[0], F(2)), L.mul(c[1], y), c[2]), (x, F(1), y)
    )


def fori_static(L):
    return lambda x: L.fori_loop(1, 4, lambda i, c: L.sin(L.mul(c, L.convert_element_type(i, F))), x)


def fori_dynamic(L):
    return lambda x, n: L.fori_loop(
        0, n, lambda i, c: L.sin(L.mul(c, L.convert_element_type(L.add(i, np.int32(1)), F))), x
    )


def mapping(L):
    return lambda xs: L.map(lambda x: (L.sin(x), {"square": L.mul(x, x)}), xs)


def mapping_in_batches(L):
    return lambda xs: L.map(lambda x: (L.sin(x), L.mul(x, x)), xs, batch_size=2)


def associative(L):
    def combine(a, b):
        return L.mul(a[0], b[0]), L.add(L.mul(b[0], a[1]), b[1])

    return lambda xs: L.associative_scan(combine, (xs, L.sin(xs)))


def associative_reverse(L):
    return lambda xs: L.associative_scan(L.add, xs, reverse=True, axis=1)


def linear_solve(L):
    def run(a, b):
        return L.custom_linear_solve(
            lambda x: L.mul(a, x), b, lambda _, y: L.div(y, a), lambda _, y: L.div(y, a)
        )

    return run


def linear_solve_symmetric(L):
    def run(a, b):
        return L.custom_linear_solve(
            lambda x: L.mul(L.sin(a), x), b, lambda _, y: L.div(y, L.sin(a)), symmetric=True
        )

    return run


# name -> program, arguments, positions of arguments to differentiate
PROGRAMS = {
    "scan_scalar": (scan_scalar, (X,), (0,)),
    "scan_reverse": (scan_reverse, (X,), (0,)),
    "scan_closure": (scan_closure, (W, X), (0, 1)),
    "scan_invariant": (scan_invariant, (F(0.3), X), (0, 1)),
    "scan_cumulative": (scan_cumulative, (X[:2],), (0,)),
    "scan_tree": (scan_tree, (X,), (0,)),
    "scan_weak": (scan_weak, (X,), (0,)),
    "scan_weak_promoted": (scan_weak_promoted, (X,), (0,)),
    "scan_passing": (scan_passing, (X,), (0,)),
    "scan_without_xs": (scan_without_xs, (X,), (0,)),
    "scan_empty": (scan_empty, (X,), (0,)),
    "scan_nested": (scan_nested, (X,), (0,)),
    "scan_of_cond": (scan_of_cond, (X,), (0,)),
    "cond_false": (cond, (F(0.2),), (0,)),
    "cond_true": (cond, (F(0.7),), (0,)),
    "cond_closure": (cond_closure, (F(0.7), X, 2 * X), (1, 2)),
    "cond_passing": (cond_passing, (F(0.7), X, 2 * X), (1, 2)),
    "cond_residuals": (cond_residuals, (F(0.7),), (0,)),
    "cond_residuals_false": (cond_residuals, (F(0.2),), (0,)),
    "switch": (switch, (np.int32(1), X), (1,)),
    "switch_above": (switch, (np.int32(9), X), (1,)),
    "switch_below": (switch, (np.int32(-3), X), (1,)),
    "fori_static": (fori_static, (X,), (0,)),
    "mapping": (mapping, (X,), (0,)),
    "mapping_in_batches": (mapping_in_batches, (X,), (0,)),
    "associative": (associative, (np.linspace(0.5, 1.5, 7).astype(F),), (0,)),
    "associative_reverse": (associative_reverse, (W,), (0,)),
    "linear_solve": (linear_solve, (X, 2 * X), (0, 1)),
    "linear_solve_symmetric": (linear_solve_symmetric, (X, 2 * X), (0, 1)),
}

# these have no reverse mode
FORWARD_ONLY = {
    "while_doubling": (while_doubling, (F(0.3),), (0,)),
    "while_closure": (while_closure, (F(0.3), F(1.1), F(9)), (0, 1)),
    "fori_dynamic": (fori_dynamic, (F(0.3), np.int32(4)), (0,)),
}
