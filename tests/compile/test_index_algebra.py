"""Indices: what is taken apart by sizes and put together again is what it was, and what looks like it is not."""

import random

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.compile.ir.expr import Arena, poly_terms


def value(e, known):
    """What an index is where variables have these values, by Python's own arithmetic."""
    if e.op == "const":
        return e.attr
    if e.op in ("floordiv", "floormod"):
        x, y = (value(a, known) for a in e.args)
        return x // y if e.op == "floordiv" else x % y
    if e.op == "poly":
        return sum(c * int(np.prod([value(a, known) for a in m], dtype=object)) for m, c in poly_terms(e).items())
    return known[e]


def taken_apart(arena, y, sizes):
    """The positions of element y along dimensions, all but the first of these sizes."""
    found = []
    for size in reversed(sizes):
        found.append(arena.floormod(y, size))
        y = arena.floordiv(y, size)
    return [y, *reversed(found)]


def strides(sizes):
    return [int(np.prod(sizes[k:])) for k in range(len(sizes) + 1)]


@pytest.mark.parametrize("seed", range(200))
def test_elements_of_reshaped_arrays_stand_where_they_stood(seed):
    draw = random.Random(seed)
    arena = Arena()
    sizes = [draw.choice((2, 3, 4, 5, 7, 8, 10, 16, 50, 60)) for _ in range(draw.randint(1, 4))]
    part = draw.choice((1, 4, 40, draw.randint(2, 5000), sizes[-1] * draw.randint(1, 99), strides(sizes)[0]))
    parts = arena.var("i", draw.randint(2, 9))
    y = arena.iadd(arena.imul(parts, part), arena.var("r", part) if part > 1 else 0)
    together = arena.affine(0, taken_apart(arena, y, sizes), strides(sizes))
    assert together is y
    assert arena.affine(0, [*taken_apart(arena, y, sizes), y], [*strides(sizes), -1]) is arena.int(0)


@pytest.mark.parametrize("seed", range(100))
def test_elements_of_arrays_whose_sizes_are_known_by_name_alone(seed):
    """Where each remainder but the first is that of one size; what looks like it has the same values."""
    draw = random.Random(seed)
    arena = Arena()
    names = [arena.param(name) for name in "nmk"]
    first, last = draw.choice(names), draw.choice((*names, 4))
    y = arena.iadd(arena.var("i", 1 << 20), draw.choice((0, 3, names[0])))
    row, column = arena.floordiv(y, last), arena.floormod(y, last)
    stride = draw.choice((1, 7, first))
    together = arena.affine(5, [row, column], [arena.imul(last, stride), stride])
    assert together is arena.affine(5, [y], [stride])
    other = arena.affine(5, [row, column], [arena.imul(first, stride), stride])  # of another size
    known = {a: draw.randint(1, 50) for a in (*names, *y.deps)}
    taken = value(y, known), value(arena.index(last), known)
    assert value(other, known) == 5 + value(arena.index(stride), known) * (
        taken[0] // taken[1] * known[first] + taken[0] % taken[1])


@pytest.mark.parametrize("seed", range(200))
def test_sums_of_quotients_and_remainders(seed):
    draw = random.Random(seed)
    arena = Arena()
    variables = [arena.var(name, draw.randint(2, 3000)) for name in "ijk"]
    y = arena.affine(draw.randint(0, 9), variables, [draw.choice((1, 3, 12, 40, 60, 61, 120)) for _ in variables])
    terms = []
    for _ in range(4):
        a, b = (draw.choice((3, 4, 5, 12, 60)) for _ in range(2))
        terms.append(draw.choice((arena.floordiv(y, a * b), arena.floormod(arena.floordiv(y, a), b),
                                  arena.floormod(y, a), arena.floordiv(arena.floordiv(y, a), b))))
    factors = [draw.choice((1, 3, 4, 5, 12, 15, 60, 180)) for _ in terms]
    others = [draw.choice((1, variables[0])) for _ in terms]
    for scale in (1, 60):  # the same sums with factors of whose multiples they are
        total = arena.affine(0, [arena.imul(t, o) for t, o in zip(terms, others, strict=True)],
                             [f * scale for f in factors])
        for _ in range(20):
            known = {v: draw.randrange(v.bounds[1] + 1) for v in variables}
            expected = sum(f * scale * value(t, known) * (o if o == 1 else known[o])
                           for t, f, o in zip(terms, factors, others, strict=True))
            assert value(total, known) == expected


def test_squares_of_quotients_are_not_taken_for_quotients():
    arena = Arena()
    y = arena.var("i", 100)
    quotient, remainder = arena.floordiv(y, 4), arena.floormod(y, 4)
    square = arena.imul(quotient, quotient)
    mixed = arena.imul(quotient, remainder)
    for total, plain in ((arena.affine(0, [square, remainder], [4, 1]), lambda q, r: 4 * q * q + r),
                         (arena.affine(0, [square, mixed], [4, 1]), lambda q, r: q * (4 * q + r))):
        for i in range(100):
            assert value(total, {y: i}) == plain(i // 4, i % 4)


@pytest.mark.parametrize("shape", [(40, 50, 60), (7, 11, 13, 17), (30, 1, 70, 9), (3, 5, 20011)])
@pytest.mark.parametrize("name", ["argmax", "argmin", "sum", "max", "prod", "any"])
def test_reductions_of_flattened_arrays_read_them_as_they_lie(name, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    compiled = styrax.jit(lambda x: getattr(jnp, name)(x.reshape(-1))).lower(x).compile()
    read = [line for line in compiled.as_text("loops").splitlines() if "arg0[" in line]
    assert read and not any("//" in line or "%" in line for line in read)
    np.testing.assert_allclose(compiled(x), getattr(np, name)(x.reshape(-1)), rtol=2e-4, atol=1e-2)
