"""Control flow against JAX: values, derivatives, batching, references, messages and printed programs."""

from __future__ import annotations

import functools
import re

import jax
import numpy as np
import pytest

import styrax
import styrax.lax as slax
from styrax.core.programs import dead_code
from styrax.core.settings import config
from styrax.core.tracing.errors import ConcretizationTypeError
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.lax.random_bits import key_arrays as keys
from styrax.lax.random_bits import prng
from styrax.transforms import api, refs
from styrax.transforms.jit import jit
from tests import xla_cpu
from tests.lax.control_flow_programs import BATCH, FORWARD_ONLY, PROGRAMS, F, W, X

ALL = {**PROGRAMS, **FORWARD_ONLY}


def leaves_of(out):
    return [np.asarray(x) for x in tree.tree_leaves(out)], [np.asarray(x) for x in jax.tree.leaves(out)]


def check(ours, theirs, tolerance=1e-5):
    """Compares trees of arrays: shapes, dtypes, values; weak types where both have one."""
    ours_leaves, theirs_leaves = tree.tree_leaves(ours), jax.tree.leaves(theirs)
    assert len(ours_leaves) == len(theirs_leaves)
    for a, b in zip(ours_leaves, theirs_leaves, strict=True):
        if hasattr(a, "weak_type") and hasattr(b, "weak_type"):
            assert a.weak_type == b.weak_type
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if b.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def total(L, fun):
    """The sum of squares of the floating results, as a scalar to differentiate."""

    def run(*args):
        out = F(0)
        for x in tree.tree_leaves(fun(*args)) if L is slax else jax.tree.leaves(fun(*args)):
            aval = get_aval(x) if L is slax else jax.typeof(x)
            if aval.dtype == np.float32:
                out = L.add(out, L.reduce_sum(L.mul(x, x), tuple(range(aval.ndim))))
        return out

    return run


@pytest.mark.parametrize("name", ALL)
def test_values(name):
    program, args, _ = ALL[name]
    check(program(slax)(*args), program(jax.lax)(*args))


@pytest.mark.parametrize("name", ALL)
def test_stablehlo(name):
    program, args, _ = ALL[name]
    closed = trace_to_jaxpr(lambda *xs: tree.tree_leaves(program(slax)(*xs)), [get_aval(a) for a in args])
    for a, b in zip(xla_cpu.run(closed, *args), jax.tree.leaves(program(jax.lax)(*args)), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_grad(name):
    program, args, argnums = PROGRAMS[name]
    check(
        api.grad(total(slax, program(slax)), argnums)(*args),
        jax.grad(total(jax.lax, program(jax.lax)), argnums)(*args),
    )


@pytest.mark.parametrize("name", ALL)
def test_jvp(name):
    program, args, argnums = ALL[name]

    def push(jvp, fun):
        def only(*moved):
            full = list(args)
            for i, x in zip(argnums, moved, strict=True):
                full[i] = x
            return fun(*full)

        points = tuple(args[i] for i in argnums)
        return jvp(only, points, tuple(np.cos(p) for p in points))

    check(push(api.jvp, program(slax)), push(jax.jvp, program(jax.lax)))


@pytest.mark.parametrize("name", ALL)
def test_vmap(name):
    program, args, _ = ALL[name]
    batched = [np.stack([a, 2 * a, 3 * a]) for a in args]
    check(api.vmap(program(slax))(*batched), jax.vmap(program(jax.lax))(*batched), 1e-4)


@pytest.mark.parametrize(
    "name", ["scan_closure", "scan_invariant", "cond_closure", "while_closure", "linear_solve"]
)
@pytest.mark.parametrize("which", [0, 1])
def test_vmap_of_one_argument(name, which):
    program, args, _ = ALL[name]
    axes = tuple(args[i].ndim if i == which else None for i in range(len(args)))
    args = [np.stack([a, 2 * a], axis=-1) if i == which else a for i, a in enumerate(args)]
    check(api.vmap(program(slax), axes)(*args), jax.vmap(program(jax.lax), axes)(*args))


@pytest.mark.parametrize(
    "name", ["scan_closure", "scan_invariant", "scan_of_cond", "cond_closure", "cond_residuals"]
)
def test_nests(name):
    program, args, argnums = PROGRAMS[name]
    ours, theirs = total(slax, program(slax)), total(jax.lax, program(jax.lax))
    ours_twice = api.grad(total(slax, api.grad(ours, argnums)), argnums)
    theirs_twice = jax.grad(total(jax.lax, jax.grad(theirs, argnums)), argnums)
    check(ours_twice(*args), theirs_twice(*args), 1e-3)
    if len(argnums) == 1:
        ours_forward, theirs_forward = api.grad(ours, argnums), jax.grad(theirs, argnums)
    else:
        ours_forward, theirs_forward = ours, theirs
    check(api.jacfwd(ours_forward, argnums)(*args), jax.jacfwd(theirs_forward, argnums)(*args), 1e-3)
    batched = [np.stack([a, 2 * a]) for a in args]
    check(api.vmap(api.grad(ours, argnums))(*batched), jax.vmap(jax.grad(theirs, argnums))(*batched), 1e-3)


@pytest.mark.parametrize("outer", [0, None])
@pytest.mark.parametrize("inner", [0, None])
def test_vmap_of_vmap_of_while(outer, inner):
    program = FORWARD_ONLY["while_closure"][0]

    def twice(vmap, fun):
        return vmap(vmap(fun, (inner, 0, None)), (0, outer, None))

    x = X if inner is None else np.stack([X, X / 2, X / 3])
    y = X if outer is None else np.stack([X, 2 * X, 3 * X])
    check(twice(api.vmap, program(slax))(x, y, F(10)), twice(jax.vmap, program(jax.lax))(x, y, F(10)))


def test_vmap_of_switch_with_batched_index():
    program = PROGRAMS["switch"][0]
    index = np.array([-1, 1, 7], np.int32)
    for axes in ((0, 0), (0, None)):
        check(api.vmap(program(slax), axes)(index, X), jax.vmap(program(jax.lax), axes)(index, X))


def test_unchosen_branch_leaves_no_nan():
    def root(L):
        return lambda x: L.cond(L.gt(x, F(0)), L.sqrt, lambda v: v, x)

    points = np.array([-1, 0, 4], F)
    check(api.vmap(api.grad(root(slax)))(points), jax.vmap(jax.grad(root(jax.lax)))(points))


def test_linearize_of_while():
    program, args, _ = FORWARD_ONLY["while_doubling"]
    out, push = api.linearize(lambda x: program(slax)(x)[:2], args[0])
    expected, push_jax = jax.linearize(lambda x: program(jax.lax)(x)[:2], args[0])
    check(out, expected)
    check(push(F(0.5)), push_jax(F(0.5)))


def test_linear_transpose_with_counter():
    """Carries that are not linear are computed forward before the rest is transposed."""

    def scaled(L):
        return lambda x: L.scan(
            lambda c, a: (
                (L.add(c[0], np.int32(1)), L.add(L.mul(c[1], L.convert_element_type(c[0], F)), L.mul(x, a))),
                L.mul(c[1], L.sin(a)),
            ),
            (np.int32(1), x),
            X,
        )[1]

    check(api.linear_transpose(scaled(slax), F(2))(X), jax.linear_transpose(scaled(jax.lax), F(2))(X))


def newton(lib, L):
    def root_of(a):
        def solve(f, x):
            return L.fori_loop(0, 20, lambda _, y: L.sub(y, L.div(f(y), lib.grad(f)(y))), x)

        return L.custom_root(lambda x: L.sub(L.mul(x, x), a), F(1), solve, lambda g, y: L.div(y, g(F(1))))

    return root_of


@pytest.mark.parametrize("order", [0, 1, 2])
def test_custom_root(order):
    ours, theirs = newton(api, slax), newton(jax, jax.lax)
    for _ in range(order):
        ours, theirs = api.grad(ours), jax.grad(theirs)
    check(ours(F(2)), theirs(F(2)))
    check(api.vmap(ours)(X), jax.vmap(theirs)(X))


def halved(L, b):
    """The solution of 2 x = b by a solver that keeps the type of b."""
    return L.custom_linear_solve(lambda v: jax.tree.map(lambda x: x * 2.0, v), b,
                                 lambda _, b: jax.tree.map(lambda x: x / 2.0, b), symmetric=True)


SOLUTIONS = {
    "root": lambda lib, L: L.custom_root(lambda x: x - 1.0, 0.5, lambda f, x: x - f(x), lambda g, y: y / g(1.0)),
    "root that is a number": lambda lib, L: L.custom_root(
        lambda x: x, 0.5, lambda f, x: x, lambda g, y: y / g(1.0)).dtype.type(2),
    "root from an array": lambda lib, L: L.custom_root(
        lambda x: x - 1.0, F(0.5), lambda f, x: x - f(x), lambda g, y: y / g(1.0)),
    "root in jit": lambda lib, L: (jit if lib is api else jax.jit)(lambda a: L.custom_root(
        lambda x: x - 1.0, a, lambda f, x: x - f(x), lambda g, y: y / g(1.0)))(0.5),
    "system": lambda lib, L: halved(L, 1.0),
    "system in grad": lambda lib, L: lib.grad(lambda b: halved(L, b))(1.0),
    "system in jit": lambda lib, L: (jit if lib is api else jax.jit)(lambda b: halved(L, b))(1.0),
    "system of arrays": lambda lib, L: halved(L, (X, 1.0)),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions_keep_weak_types(name):
    ours, theirs = jax.tree.leaves(SOLUTIONS[name](api, slax)), jax.tree.leaves(SOLUTIONS[name](jax, jax.lax))
    assert [getattr(x, "weak_type", None) for x in ours] == [getattr(x, "weak_type", None) for x in theirs]
    check(ours, theirs)


def test_disable_jit():
    with config.disable_jit():
        carry, ys = slax.scan(lambda c, x: (slax.add(c, x), slax.mul(c, x)), F(0), X, reverse=True)
        assert slax.cond(True, lambda: 1, lambda: 2) == 1
        assert slax.switch(5, [lambda: 1, lambda: 2]) == 2
        assert slax.fori_loop(0, 3, lambda i, c: i + c, 0) == 3
        assert int(slax.while_loop(lambda c: slax.lt(c, 5), lambda c: slax.add(c, 2), 0)) == 6
        with pytest.raises(ValueError, match="zero-length"):
            slax.scan(lambda c, x: (c, x), F(0), X[:0])
    expected = jax.lax.scan(lambda c, x: (c + x, c * x), F(0), X, reverse=True)
    check((carry, ys), expected)


@pytest.mark.parametrize("name", ["cond", "switch", "nested"])
def test_branches_of_mapped_predicates_without_jit(name):
    def program(package):
        lax = package.lax
        choose = {"cond": lambda i, x: lax.cond(i > 0, lax.sin, lax.cos, x),
                  "switch": lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.exp], x),
                  "nested": lambda i, x: lax.cond(True, lambda: lax.cond(i > 0, lax.sin, lax.cos, x), lambda: x)}[name]
        with package.disable_jit():
            mapped = package.vmap(choose)(np.arange(3), np.ones(3, np.float32))
            return mapped, len(package.make_jaxpr(choose)(1, 2.0).eqns) > 0

    ours, theirs = program(styrax), program(jax)
    check(ours, theirs)


def test_keys():
    """Typed keys are scanned over, carried and chosen like arrays."""
    impl = keys.resolve_prng_impl("threefry2x32")

    def ours(data, p):
        key = prng.random_wrap(data, impl=impl)

        def step(c, k):
            bits = prng.random_bits(k, 32, (2,))
            return slax.bitwise_xor(c, bits), prng.random_unwrap(prng.random_split(k, (2,)))

        chosen = slax.cond(p, lambda k: prng.random_fold_in(k, np.uint32(1)), lambda k: k, key)
        last, _ = slax.while_loop(
            lambda c: slax.lt(c[1], np.int32(3)),
            lambda c: (prng.random_fold_in(c[0], np.uint32(2)), slax.add(c[1], np.int32(1))),
            (chosen, np.int32(0)),
        )
        return slax.scan(step, np.zeros(2, np.uint32), prng.random_split(last, (4,)))

    def theirs(data, p):
        key = jax.random.wrap_key_data(data)

        def step(c, k):
            return c ^ jax.random.bits(k, (2,), np.uint32), jax.random.key_data(jax.random.split(k))

        chosen = jax.lax.cond(p, lambda k: jax.random.fold_in(k, 1), lambda k: k, key)
        last, _ = jax.lax.while_loop(
            lambda c: c[1] < 3, lambda c: (jax.random.fold_in(c[0], 2), c[1] + 1), (chosen, 0)
        )
        return jax.lax.scan(step, np.zeros(2, np.uint32), jax.random.split(last, 4))

    data = np.array([0, 3], np.uint32)
    which = np.array([True, False])
    check(jit(ours)(data, True), theirs(data, True))
    check(jit(api.vmap(ours, (None, 0)))(data, which), jax.vmap(theirs, (None, 0))(data, which))


# -- references -----------------------------------------------------------------------------------


def get(ref, index):
    return refs.ref_get(ref, index) if not type(ref).__module__.startswith("jax") else ref[index]


def put(ref, index, value):
    if type(ref).__module__.startswith("jax"):
        ref[index] = value
    else:
        refs.ref_set(ref, index, value)


def scan_with_ref(L, new_ref):
    def run(x):
        ref = new_ref(x)

        def step(c, i):
            put(ref, i, L.mul(get(ref, i), L.sin(c)))
            return L.mul(c, get(ref, i)), None

        c, _ = L.scan(step, F(2), np.arange(3, dtype=np.int32))
        return L.add(L.reduce_sum(get(ref, ...), (0,)), c)

    return run


def cond_with_ref(L, new_ref):
    def run(x):
        ref = new_ref(x)
        s = L.reduce_sum(x, (0,))

        def first(c):
            put(ref, 0, L.mul(c, c))
            return L.sin(c)

        def second(c):
            put(ref, 1, c)
            return L.mul(get(ref, 0), c)

        y = L.cond(L.gt(s, F(1)), first, second, s)
        return L.add(L.reduce_sum(get(ref, ...), (0,)), y)

    return run


def while_with_ref(L, new_ref):
    def run(x):
        ref = new_ref(x)

        def body(i):
            put(ref, i, L.mul(get(ref, i), get(ref, i)))
            return L.add(i, np.int32(1))

        L.while_loop(lambda i: L.lt(i, np.int32(2)), body, np.int32(0))
        return get(ref, ...)

    return run


@pytest.mark.parametrize("program", [scan_with_ref, cond_with_ref, while_with_ref])
@pytest.mark.parametrize("x", [X, X / 10])
def test_references(program, x):
    ours, theirs = program(slax, refs.new_ref), program(jax.lax, jax.new_ref)
    check(ours(x), theirs(x))
    check(api.jvp(ours, (x,), (x,)), jax.jvp(theirs, (x,), (x,)))
    if program is not while_with_ref:
        check(api.grad(ours)(x), jax.grad(theirs)(x))
    if program is not cond_with_ref:
        check(api.vmap(ours)(BATCH), jax.vmap(theirs)(BATCH))


def test_reference_in_a_condition():
    """A condition sees what the body writes. (JAX's loop does not end.)"""

    def run(x):
        ref = refs.new_ref(x)

        def body(i):
            put(ref, 0, slax.add(get(ref, 0), F(1)))
            return slax.add(i, np.int32(1))

        steps = slax.while_loop(lambda _: slax.lt(get(ref, 0), F(5)), body, np.int32(0))
        return steps, get(ref, ...)

    steps, contents = jit(run)(np.zeros(2, F))
    assert int(steps) == 5
    np.testing.assert_array_equal(np.asarray(contents), [5, 0])


# -- programs -------------------------------------------------------------------------------------


def test_body_is_traced_once():
    count = 0

    def body(c, x):
        nonlocal count
        count += 1
        return slax.add(c, x), c

    for _ in range(3):
        slax.scan(body, F(0), X)
    assert count == 1
    slax.scan(body, F(0), X.astype(np.float16).astype(F)[:2])
    assert count == 1  # the length is no part of what the body sees

    def step(i, c):
        nonlocal count
        count += 1
        return slax.add(c, i)

    count = 0
    for _ in range(3):
        slax.fori_loop(0, 3, step, 0)
    assert count == 1


def test_dead_code_goes_out_of_loops():
    def run(x):
        return slax.scan(
            lambda c, a: ((slax.add(c[0], a), slax.mul(c[1], F(2)), slax.sin(c[2])), (c[1], slax.exp(c[0]))),
            (F(1), F(2), F(3)),
            x,
        )

    closed = trace_to_jaxpr(lambda x: tree.tree_leaves(run(x)), [get_aval(X)])
    jaxpr, used = dead_code.dce_jaxpr(closed.jaxpr, [True, False, False, False, False])
    assert used == [True]
    (eqn,) = jaxpr.eqns
    assert eqn.params["num_carry"] == 1
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns] == ["add"]

    def branch(x):
        return slax.cond(
            slax.gt(x, F(0)), lambda v: (slax.sin(v), slax.exp(v)), lambda v: (v, slax.cos(v)), x
        )

    closed = trace_to_jaxpr(lambda x: tree.tree_leaves(branch(x)), [get_aval(F(1))])
    jaxpr, _ = dead_code.dce_jaxpr(closed.jaxpr, [True, False])
    assert [len(b.eqns) for b in jaxpr.eqns[-1].params["branches"]] == [0, 1]

    def loop(x):
        return slax.while_loop(
            lambda c: slax.lt(c[0], F(9)), lambda c: (slax.add(c[0], F(1)), slax.sin(c[1])), (x, x)
        )

    closed = trace_to_jaxpr(lambda x: tree.tree_leaves(loop(x)), [get_aval(F(1))])
    jaxpr, _ = dead_code.dce_jaxpr(closed.jaxpr, [True, False])
    assert len(jaxpr.eqns[-1].invars) == 1


def test_gradient_stacks_only_what_changes():
    program, args, _ = PROGRAMS["scan_invariant"]
    run = api.grad(lambda w, xs: program(slax)(w, xs)[0])
    closed = trace_to_jaxpr(lambda w, xs: [run(w, xs)], [get_aval(a) for a in args])
    forward, backward = (e for e in closed.eqns if e.primitive.name == "scan")
    assert not forward.params["reverse"] and backward.params["reverse"]
    body = [e.primitive.name for e in forward.params["jaxpr"].eqns]
    assert "exp" not in body  # computed once, before the loop
    stacked = [v for v in forward.outvars if v.aval.shape == (3,)]
    assert len(stacked) <= 3


TEXTS = {
    "scan": lambda L: lambda x: L.scan(lambda c, a: (L.add(c, a), L.mul(c, a)), F(0), x),
    "scan constants": lambda L: (
        lambda w, x: L.scan(lambda c, a: (L.mul(c, w), L.add(c, a)), F(0), x, reverse=True)
    ),
    "scan passing": PROGRAMS["scan_passing"][0],
    "cond": lambda L: lambda x: L.cond(L.gt(x, F(0)), L.sin, lambda v: L.mul(v, v), x),
    "cond closure": PROGRAMS["cond_closure"][0],
    "cond passing": PROGRAMS["cond_passing"][0],
    "switch": lambda L: lambda i, x: L.switch(i, [L.sin, L.cos, L.exp], x),
    "while": FORWARD_ONLY["while_closure"][0],
    "fori": lambda L: lambda x: L.fori_loop(0, 3, lambda i, c: L.mul(c, F(2)), x),
    "fori dynamic": lambda L: lambda n, x: L.fori_loop(0, n, lambda i, c: L.mul(c, F(2)), x),
    "map": lambda L: lambda x: L.map(lambda a: L.mul(a, F(2)), x),
    "map in batches": lambda L: lambda x: L.map(lambda a: L.mul(a, F(2)), x, batch_size=len(X) - 1),
    "associative_scan": lambda L: lambda x: L.associative_scan(L.add, x),
    "associative_scan even": lambda L: lambda x: L.associative_scan(L.add, x),
}
TEXT_ARGUMENTS = {
    "scan constants": (F(1), X), "cond": (F(1),), "cond closure": (F(1), X, X), "cond passing": (F(1), X, X),
    "switch": (np.int32(1), X), "while": (F(1), F(1), F(9)), "fori dynamic": (np.int32(3), X),
    "associative_scan even": (np.arange(8, dtype=np.float32),),
}  # fmt: skip
TEXT_TRANSFORMS = {
    "plain": lambda lib, f: f,
    "jvp": lambda lib, f: lambda *xs: lib.jvp(lambda x: f(*xs[:-1], x), xs[-1:], xs[-1:]),
    "vmap": lambda lib, f: lib.vmap(f),
}


@pytest.mark.parametrize("transform", TEXT_TRANSFORMS)
@pytest.mark.parametrize("name", TEXTS)
def test_text(name, transform):
    args = TEXT_ARGUMENTS.get(name, (X,))
    if transform == "vmap":
        args = tuple(np.stack([a, a]) for a in args)
    ours = api.make_jaxpr(TEXT_TRANSFORMS[transform](api, TEXTS[name](slax)))(*args)
    theirs = jax.make_jaxpr(TEXT_TRANSFORMS[transform](jax, TEXTS[name](jax.lax)))(*args)
    assert str(ours) == str(theirs).replace("np.int64(1)", "1").replace("np.int64(0)", "0")


WEAK = {
    "scan of a number": lambda L: lambda x: L.scan(lambda c, _: (c * x, None), 1.0, None, length=2)[0],
    "scan into a number": lambda L: lambda x: L.scan(lambda c, _: (c * x, None), F(1), None, length=2)[0],
    "map": lambda L: lambda x: L.map(lambda y: y * x, X)[0],
    "fori": lambda L: lambda x: L.fori_loop(0, 3, lambda i, c: c * x + i, 1.0),
    "cond": lambda L: lambda x: L.cond(x > 0, L.sin, lambda x: x * 2, x),
    "cond closure": lambda L: lambda x: L.cond(x > 0, lambda: L.sin(x), lambda: 2.0),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_derivatives(name):
    """The gradient with regard to a Python number is weakly typed, however often it is taken."""

    def weak(lib, L):
        f = WEAK[name](L)
        values = lib.grad(f)(2.0), lib.grad(lib.grad(f))(2.0), *lib.jvp(f, (2.0,), (1.0,))
        return [x.weak_type for x in values]

    assert weak(api, slax) == weak(jax, jax.lax)


GRADIENTS = {
    "scan_scalar": lambda f: lambda xs: f(xs)[0],
    "scan_invariant": lambda f: lambda w, xs: f(w, xs)[0],
    "scan_reverse": lambda f: lambda xs: f(xs)[0],
    "fori_static": lambda f: f,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_text_of_gradient(name):
    """The same residuals are kept in the same places as in JAX."""
    program, args, argnums = PROGRAMS[name]
    if name == "fori_static":
        args = (F(0.3),)
    ours = api.make_jaxpr(api.grad(GRADIENTS[name](program(slax)), argnums))(*args)
    theirs = jax.make_jaxpr(jax.grad(GRADIENTS[name](program(jax.lax)), argnums))(*args)
    assert str(ours) == str(theirs)


# -- messages -------------------------------------------------------------------------------------

BODIES = {
    "cond trees": lambda L: L.cond(True, lambda a: (a, a), lambda a: a, X),
    "cond nested trees": lambda L: L.cond(
        True, lambda a: {"a": (a, a), "b": a}, lambda a: {"a": (a,), "b": (a,)}, X
    ),
    "cond types": lambda L: L.cond(True, lambda a: a, lambda a: L.convert_element_type(a, np.int32), X),
    "cond two types": lambda L: L.cond(
        True,
        lambda a: {"u": a, "v": a},
        lambda a: {"u": L.slice_in_dim(a, 0, 2), "v": L.convert_element_type(a, np.int32)},
        X,
    ),
    "cond None": lambda L: L.cond(None, lambda a: a, lambda a: a, X),
    "cond vector": lambda L: L.cond(X > 0, lambda a: a, lambda a: a, X),
    "cond complex": lambda L: L.cond(np.complex64(1), lambda a: a, lambda a: a, X),
    "cond string": lambda L: L.cond("a", lambda a: a, lambda a: a, X),
    "cond not callable": lambda L: L.cond(True, 1, 2, X),
    "cond result": lambda L: L.cond(True, lambda a: "text", lambda a: a, X),
    "cond linear": lambda L: L.cond(True, lambda a: a, lambda a: a, X, linear=(True,)),
    "switch none": lambda L: L.switch(0, [], X),
    "switch float": lambda L: L.switch(0.0, [L.sin, L.cos], X),
    "switch vector": lambda L: L.switch(np.arange(3), [L.sin, L.cos], X),
    "switch not callable": lambda L: L.switch(0, [1, 2], X),
    "switch trees": lambda L: L.switch(1, [lambda a: a, lambda a: (a,)], X),
    "switch types": lambda L: L.switch(1, [lambda a: a, lambda a: a, lambda a: L.slice_in_dim(a, 0, 1)], X),
    "while trees": lambda L: L.while_loop(lambda c: True, lambda c: (c, c), X),
    "while types": lambda L: L.while_loop(lambda c: True, lambda c: L.convert_element_type(c, np.int32), X),
    "while two types": lambda L: L.while_loop(
        lambda c: True,
        lambda c: (c[0], L.slice_in_dim(c[1], 0, 2), L.convert_element_type(c[2], np.int32)),
        (X, X, X),
    ),
    "while dict": lambda L: L.while_loop(
        lambda carry: True,
        lambda carry: {"a": carry["a"], "b": L.slice_in_dim(carry["b"], 0, 2)},
        {"a": X, "b": X},
    ),
    "while keys": lambda L: L.while_loop(
        lambda c: True, lambda c: {"a": c["a"], "c": c["b"]}, {"a": X, "b": X}
    ),
    "while condition shape": lambda L: L.while_loop(lambda c: L.gt(c, F(0)), lambda c: c, X),
    "while condition tree": lambda L: L.while_loop(lambda c: (True, True), lambda c: c, X),
    "while condition type": lambda L: L.while_loop(lambda c: 1.0, lambda c: c, X),
    "while condition None": lambda L: L.while_loop(lambda c: None, lambda c: c, X),
    "while not callable": lambda L: L.while_loop(1, lambda c: c, X),
    "fori float": lambda L: L.fori_loop(0.0, 3, lambda i, c: c, X),
    "fori dtypes": lambda L: L.fori_loop(np.int8(0), np.int32(4), lambda i, c: c, X),
    "fori type": lambda L: L.fori_loop(0, 3, lambda i, c: L.slice_in_dim(c, 0, 2), X),
    "fori not callable": lambda L: L.fori_loop(0, 3, 5, X),
    "scan trees": lambda L: L.scan(lambda c, a: ((c, c), a), 0.0, X),
    "scan nested trees": lambda L: L.scan(
        lambda c, a: ({"a": (c["a"][0],), "b": (a,)}, a), {"a": (1.0, 2.0), "b": 1.0}, X
    ),
    "scan not a pair": lambda L: L.scan(lambda c, a: c, 0.0, X),
    "scan types": lambda L: L.scan(lambda c, a: (L.broadcast(c, (2,)), a), 0.0, X),
    "scan two types": lambda L: L.scan(
        lambda c, a: ({"k": L.broadcast(c["k"], (2,)), "l": L.convert_element_type(c["l"], np.int32)}, a),
        {"k": 0.0, "l": X},
        X,
    ),
    "scan keys": lambda L: L.scan(lambda c, a: ({"k": c["k"]}, a), {"k": 0.0, "l": X}, X),
    "scan list": lambda L: L.scan(lambda c, a: ([c[0], c[1]], a), (0.0, X), X),
    "scan no length": lambda L: L.scan(lambda c, a: (c, a), 0.0, None),
    "scan length": lambda L: L.scan(lambda c, a: (c, a), 0.0, X, length=4),
    "scan lengths": lambda L: L.scan(lambda c, a: (c, a), 0.0, (X, X[:2])),
    "scan scalar": lambda L: L.scan(lambda c, a: (c, a), 0.0, 3.0),
    "scan unroll": lambda L: L.scan(lambda c, a: (c, a), 0.0, X, unroll=-1),
    "scan not callable": lambda L: L.scan(3, 0.0, X),
    "scan result": lambda L: L.scan(lambda c, a: (c, "text"), 0.0, X),
    "associative lengths": lambda L: L.associative_scan(lambda a, b: a, (X, X[:2])),
    "associative not callable": lambda L: L.associative_scan(3, X),
    "associative axis": lambda L: L.associative_scan(L.add, W, axis=5),
    "solve trees": lambda L: L.custom_linear_solve(lambda x: (x, x), X, lambda mv, b: b),
    "solve shapes": lambda L: L.custom_linear_solve(lambda x: x, X, lambda mv, b: L.slice_in_dim(b, 0, 2)),
    "root trees": lambda L: L.custom_root(lambda x: (x, x), X, lambda f, x: x, lambda g, y: y),
    "root solve trees": lambda L: L.custom_root(lambda x: x, X, lambda f, x: (x, x), lambda g, y: y),
}


def message(run):
    try:
        run()
    except Exception as error:  # whatever JAX raises
        text = str(error).replace("<class 'jax._src.core.ShapedArray'>", "pytree leaf")
        return type(error).__name__, re.sub(r"\s+", " ", text)
    raise AssertionError("no error")


@pytest.mark.parametrize("name", BODIES)
def test_messages(name):
    assert message(functools.partial(BODIES[name], slax)) == message(functools.partial(BODIES[name], jax.lax))


def test_traced_length():
    def run(n):
        return [slax.scan(lambda c, x: (c, x), F(0), None, length=n)[0]]

    with pytest.raises(ConcretizationTypeError, match="expects a concrete `int` value"):
        trace_to_jaxpr(run, [get_aval(np.int32(3))])


def test_reverse_mode_of_while():
    program, args, _ = FORWARD_ONLY["while_doubling"]
    with pytest.raises(ValueError, match=r"Reverse-mode differentiation does not work for lax.while_loop"):
        api.grad(lambda x: program(slax)(x)[1])(args[0])


def test_unroll_of_dynamic_loop():
    def run(n):
        return [slax.fori_loop(0, n, lambda i, c: c, F(0), unroll=2)]

    with pytest.raises(ValueError, match="statically known"):
        trace_to_jaxpr(run, [get_aval(np.int32(3))])


def test_solve_without_transpose():
    def run(x):
        return slax.reduce_sum(slax.custom_linear_solve(lambda y: y, x, lambda mv, b: b), (0,))

    with pytest.raises(TypeError, match="transpose_solve required"):
        api.grad(run)(X)


PLATFORMS = {
    "named": lambda L, x: L.platform_dependent(x, cpu=L.sin, default=L.cos),
    "default": lambda L, x: L.platform_dependent(x, x, tpu=L.sub, default=L.add),
    "both": lambda L, x: L.platform_dependent(x, tpu=L.tan, cpu=lambda x: L.sin(x)),
    "none": lambda L, x: L.platform_dependent(x, tpu=L.sin),
    "no function": lambda L, x: L.platform_dependent(x, cpu=3, default=L.sin),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_platform_dependent(name):
    run = PLATFORMS[name]
    try:
        expected = run(jax.lax, X)
    except Exception as error:
        with pytest.raises(type(error)):
            run(slax, X)
        return
    check(run(slax, X), expected)
    check(jit(lambda x: run(slax, x))(X), jax.jit(lambda x: run(jax.lax, x))(X))
    check(api.vmap(lambda x: run(slax, x))(X), jax.vmap(lambda x: run(jax.lax, x))(X))


def by_platform(L, x):
    return L.platform_dependent(x, cpu=L.sin, tpu=lambda x: L.mul(x, np.float32(3)),
                                default=lambda x: L.mul(x, np.float32(5)))


PROGRAMS_BY_PLATFORM = {
    "plain": lambda m, f: f,
    "inner": lambda m, f: lambda x: m.jit(f)(x) * 2,
    "scan": lambda m, f: lambda x: m.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "branch": lambda m, f: lambda x: m.lax.cond(x.sum() > 0, f, lambda x: x, x),
    "while": lambda m, f: lambda x: m.lax.while_loop(lambda c: c.sum() < 0, lambda c: f(c) + 2, x),
    "vmap": lambda m, f: m.vmap(f),
    "gradient": lambda m, f: m.grad(lambda x: f(x).sum()),
    "checkpoint": lambda m, f: m.grad(lambda x: m.checkpoint(f)(x).sum()),
    "captured": lambda m, f: lambda x: m.lax.platform_dependent(cpu=lambda: f(x), default=lambda: f(x) + x),
}


@pytest.mark.parametrize("name", PROGRAMS_BY_PLATFORM)
def test_programs_for_platforms(name):
    """The branch is that of the platform that a program is compiled or lowered for."""
    found = []
    for m in (styrax, jax):
        f = PROGRAMS_BY_PLATFORM[name](m, lambda x, m=m: by_platform(m.lax, x))
        values = [np.asarray(g(X)) for g in (f, m.jit(f))]
        texts = [m.jit(f).trace(X).lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu", "cuda")]
        found.append((values, [[word in text for word in ("sine", "dense<3.0", "dense<5.0")] for text in texts]))
    for got, wanted in zip(found[0][0], found[1][0], strict=True):
        check(got, wanted)
    assert found[0][1] == found[1][1]


def test_programs_without_a_branch_for_the_platform():
    f = styrax.jit(lambda x: slax.platform_dependent(x, tpu=lambda x: slax.mul(x, np.float32(3))))
    assert f.eval_shape(X).shape == X.shape
    assert "dense<3.0" in f.trace(X).lower(lowering_platforms=("tpu",)).as_text()
    for use in (f, lambda x: f.lower(x).as_text(), lambda x: styrax.vmap(f)(x), lambda x: f.lower(x).compile()):
        with pytest.raises(NotImplementedError, match="not found for platform cpu"):
            use(X)


def test_an_exported_program_asks_where_it_is_called():
    exported = styrax.export.export(styrax.jit(lambda x: by_platform(slax, x)), platforms=("tpu", "cpu"))(X)
    assert "dense<3.0" in exported.mlir_module()
    for program in (exported, styrax.export.deserialize(exported.serialize())):
        check(program.call(X), np.sin(X))
