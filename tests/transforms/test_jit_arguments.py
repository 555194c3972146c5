"""Which arguments of `jit` are static, donated, named: answers and refusals as JAX's."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax

x = np.float32(2)
vector = np.arange(4, dtype=np.float32)


def two(x, y):
    return x * 10 + y


def defaults(x, y=1, *, k=2):
    return x * 100 + y * 10 + k


def rest(*a, **k):
    return a[0] * 100 + sum(a[1:]) + sum(k.values())


def positional(x, y, /):
    return x * 10 + y


class Incomparable:
    def __eq__(self, other):
        raise NotImplementedError

    def __hash__(self):
        return 1

    def __radd__(self, other):
        return other


class NoSignature:
    @property
    def __signature__(self):
        raise TypeError("none")

    def __call__(self, *args):
        return args


class Number:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return 0


CALLS = {
    "last": (two, {"static_argnums": -1}, [((x, 3), {}), ((x, 4), {}), ((x, 3), {})]),
    "last of tuple": (two, {"static_argnums": (-1,)}, [((x, 3), {}), ((x, 4), {})]),
    "last with defaults": (defaults, {"static_argnums": (-1,)}, [((x, 3), {}), ((x, 4), {}), ((x,), {})]),
    "last of any number": (rest, {"static_argnums": (-1,)}, [((x, 3), {}), ((x, 4), {}), ((x, 1, 4), {})]),
    "one of any number": (rest, {"static_argnums": 1}, [((x, 3), {}), ((x,), {}), ((x, 4, 5), {})]),
    "out of any number": (rest, {"static_argnums": 5}, [((x, 3), {}), ((x, 4), {})]),
    "any name": (rest, {"static_argnames": "z"}, [((x, 3), {"z": 1}), ((x,), {}), ((x, 4), {"z": 2})]),
    "number passed by name": (defaults, {"static_argnums": 1}, [((x,), {"y": 3}), ((x,), {"y": 4}), ((x, 5), {})]),
    "name passed by position": (defaults, {"static_argnames": "y"}, [((x, 3), {}), ((x, 4), {})]),
    "numbers without names": (defaults, {"static_argnums": 1, "static_argnames": ()},
                              [((x,), {"y": 3}), ((x,), {"y": 4}), ((x, 4), {})]),
    "both": (defaults, {"static_argnums": 1, "static_argnames": "k"}, [((x, 3), {"k": 4}), ((x,), {"y": 4})]),
    "twice": (two, {"static_argnums": (1, -1)}, [((x, 3), {}), ((x, 4), {})]),
    "positional-only": (positional, {"static_argnums": 1}, [((x, 3), {}), ((x, 4), {})]),
    "NumPy's integers": (two, {"static_argnums": np.array([1])}, [((x, 3), {}), ((x, 4), {})]),
    "NumPy's integer": (two, {"static_argnums": np.int64(1)}, [((x, 3), {}), ((x, 4), {})]),
    "own equality": (lambda x, n: x * n.n, {"static_argnums": 1}, [((x, Number(n)), {}) for n in (1, 2, 1)]),
    "names in any order": (rest, {}, [((x,), {"p": 1, "q": vector}), ((x,), {"q": vector, "p": 1})]),
    "static and donated": (rest, {"static_argnums": 1, "donate_argnums": 1}, [((x, 3), {})]),
}


@pytest.mark.parametrize("name", CALLS)
def test_answers(name):
    fun, options, calls = CALLS[name]
    ours, theirs = styrax.jit(fun, **options), jax.jit(fun, **options)
    for _ in range(2):
        for args, kwargs in calls:
            expected = theirs(*args, **kwargs)
            got = ours(*args, **kwargs)
            np.testing.assert_allclose(got, expected, rtol=1e-6)
            assert got.dtype == expected.dtype


@pytest.mark.parametrize("position", [-2, (-2,), (-2, -2)])
def test_static_before_the_last(position):
    g = styrax.jit(lambda n, y: n * 10 + y, static_argnums=position)  # (JAX exchanges these arguments)
    for n, y in [(3, 1), (4, 1), (3, 2)]:
        for _ in range(2):
            assert g(n, np.float32(y)) == n * 10 + y
    assert str(g.lower(3, x).in_tree) == "PyTreeDef(((*,), {}))"


def refusals(j):
    yield from {
        "number": lambda: j.jit(two, static_argnums=5),
        "negative number": lambda: j.jit(two, static_argnums=-3),
        "donated number": lambda: j.jit(two, donate_argnums=5),
        "name": lambda: j.jit(two, static_argnames="zz"),
        "donated name": lambda: j.jit(two, donate_argnames="zz"),
        "positional-only name": lambda: j.jit(positional, static_argnames="y"),
        "both": lambda: j.jit(two, static_argnums=0, donate_argnums=0),
        "both by name": lambda: j.jit(two, static_argnames="x", donate_argnames="x"),
        "both by either": lambda: j.jit(two, static_argnums=0, donate_argnames="x"),
        "both by any name": lambda: j.jit(rest, static_argnames="k", donate_argnames="k"),
        "text as number": lambda: j.jit(two, static_argnums="y"),
        "fraction as numbers": lambda: j.jit(two, static_argnums=(1.5,)),
        "fraction as number": lambda: j.jit(two, static_argnums=1.5),
        "number as name": lambda: j.jit(two, static_argnames=1),
        "numbers as names": lambda: j.jit(two, static_argnames=(1,)),
        "list": lambda: j.jit(two, static_argnums=1)(x, [1]),
        "array": lambda: j.jit(two, static_argnums=1)(x, vector),
        "list by name": lambda: j.jit(two, static_argnames="y")(x, y=[1]),
        "array ahead of time": lambda: j.jit(two, static_argnums=1).lower(x, vector),
        "list in a trace": lambda: j.make_jaxpr(lambda x: j.jit(two, static_argnums=1)(x, [1]))(x),
        "none of none": lambda: j.jit(rest, static_argnums=-1)(),
        "text": lambda: j.jit(two)(x, "a"),
        "text in a tree": lambda: j.jit(lambda x, *, k: x)(x, k={"a": [1, "b"]}),
        "not callable": lambda: j.jit(3),
        "static method": lambda: j.jit(staticmethod(two)),
        "name of all others": lambda: j.jit(rest, static_argnames="a"),
        "without equality": lambda: [j.jit(two, static_argnums=1)(x, n) for n in (Incomparable(), Incomparable())],
        "donated name without a signature": lambda: j.jit(NoSignature(), donate_argnames="a"),
    }.items()


@pytest.mark.parametrize("name", dict(refusals(styrax)))
def test_refusals(name):
    with pytest.raises(Exception) as expected:
        dict(refusals(jax))[name]()
    with pytest.raises(Exception) as got:
        dict(refusals(styrax))[name]()
    assert got.type.__name__ == expected.type.__name__
    facts = re.compile(r"Jitted function has [^.]*|cannot intersect.*|Non-hashable.*supported|path .*\.|object of .*, "
                       r"|len\(args\) == \d|cannot be interpreted.*|is not iterable|Expected a callable.*"
                       r"|not a string.*|staticmethod.*supported|comparable using __eq__|Getting the signature")
    assert facts.findall(str(got.value)) == facts.findall(str(expected.value)) != []


DONATIONS = {
    "number": ({"donate_argnums": 1}, False), "name": ({"donate_argnames": "y"}, False),
    "number passed by name": ({"donate_argnums": 1}, True), "name passed by name": ({"donate_argnames": "y"}, True),
    "behind a static one": ({"donate_argnums": 1, "static_argnums": 0}, False),
    "behind a static name": ({"donate_argnums": 1, "static_argnames": "n"}, True),
}


@pytest.mark.parametrize("name", DONATIONS)
def test_donated(name):
    options, by_name = DONATIONS[name]
    for j in (jax, styrax):
        g = j.jit(lambda n, y: y + n, **options)
        for _ in range(3):
            y = j.numpy.ones(4)
            np.testing.assert_array_equal(g(3, y=y) if by_name else g(3, y), 4 * np.ones(4))
            assert y.is_deleted(), j


def test_what_is_gone_tells_where_it_was():
    for j in (jax, styrax):
        donated, deleted = j.numpy.ones(4), j.device_put(j.numpy.ones(4), j.devices("cpu")[0])
        before = donated.sharding, deleted.sharding
        j.jit(lambda x: x + 1, donate_argnums=0)(donated)
        deleted.delete()
        deleted.delete()
        for x, sharding in zip((donated, deleted), before, strict=True):
            assert x.is_deleted() and x.sharding == sharding == x.format.sharding, j
            for ask in (lambda x: x.device, lambda x: x.devices(), repr):
                with pytest.raises(RuntimeError, match="Array has been deleted with shape=float32"):
                    ask(x)
            # where JAX has compiled this sum before, its runtime is the first to see that the buffer is gone
            refused, said = (
                (RuntimeError, "Array has been deleted with shape=float32")
                if j is styrax
                else ((RuntimeError, ValueError), "has been deleted")
            )
            with pytest.raises(refused, match=said):
                x + 1


def test_donated_from_the_end():
    g = styrax.jit(lambda n, y, z: y + n, static_argnums=0, donate_argnums=-2)
    y, z = styrax.numpy.ones(4), styrax.numpy.ones(4)
    np.testing.assert_array_equal(g(3, y, z), 4 * np.ones(4))
    assert y.is_deleted() and not z.is_deleted()


def test_donated_numbers_are_not_those_of_others():
    g = styrax.jit(lambda y: y + 1, donate_argnums=0)
    h = styrax.jit(lambda y: y + 2)
    for _ in range(3):
        assert g(1.0) == 2 and h(1.0) == 3


def test_statics_do_not_matter_without_compilation():
    with styrax.disable_jit():
        assert styrax.jit(lambda x, y: y[0] + x, static_argnums=1)(1, [2]) == 3
        assert styrax.jit(lambda x, y: y)(1, "a") == "a"


def test_arguments_are_flattened_once():
    seen = []

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    def flatten(pair):
        seen.append(pair)
        return (pair.a, pair.b), None

    styrax.tree_util.register_pytree_node(Pair, flatten, lambda _, children: Pair(*children))
    g = styrax.jit(lambda p, *, q: p.a + q.b)
    for n in (1, 2, 3):
        assert g(Pair(1.0, 2.0), q=Pair(3.0, 4.0)) == 5
        assert len(seen) == 2 * n


def test_first_calls_and_stages_share_programs(monkeypatch):
    from styrax.core.arrays import backends

    compiled, traced = [], []
    compile_program = backends.backend_compile_and_load
    monkeypatch.setattr(backends, "backend_compile_and_load",
                        lambda *args, **options: compiled.append(1) or compile_program(*args, **options))

    def fun(x, n):
        traced.append(n)
        return x * n + 0.625

    g = styrax.jit(fun, static_argnums=1)
    assert g.lower(x, 3).compile()(x) == g(x, 3) == styrax.jit(fun, static_argnums=1)(x, 3) == 6.625
    assert (traced, len(compiled)) == ([3], 1)
    assert styrax.jit(fun, static_argnums=-1)(x, 3) == 6.625
    assert len(compiled) == 2  # other options, another program
    styrax.clear_caches()
    assert g(x, 3) == 6.625
    assert (traced, len(compiled)) == ([3, 3, 3], 3)
    g.clear_cache()
    assert g(x, 3) == 6.625 and len(compiled) == 4 and g._cache_size() == 1


@pytest.mark.parametrize("leaf", [x, vector, 1, 2.5, True, 1j, None, (1, vector), {"a": 1.0, "b": [None, x]}])
def test_leaves_of_every_kind(leaf):
    def results(j):
        tree = j.tree_util
        g = j.jit(lambda t, *, k: tree.tree_map(lambda a: a + a, (t, k)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return [tree.tree_leaves(f(leaf, k=leaf)) for f in (g, g, lambda *a, **k: j.jit(g)(*a, **k))]

    for got, expected in zip(results(styrax), results(jax), strict=True):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype and a.weak_type == b.weak_type


GIVEN = {
    "square": lambda j: lambda x: x * x,
    "both": lambda j: lambda x: (x, j.numpy.sin(x)),
    "cond": lambda j: lambda x: j.lax.cond(x[0] > 0, j.numpy.log, lambda y: y, x),
    "scan": lambda j: lambda x: j.lax.scan(lambda c, y: (c * y, c), x[0], x),
}


def derivatives(j, name, nested, **options):
    jnp, leaves = j.numpy, j.tree.leaves

    def total(f):
        return lambda y: sum(jnp.sum(out) for out in leaves(f(y)))

    def pushed(f):
        def both(y):
            out, push = j.linearize(f, y)
            return out, push(y), push(2 * y)

        return both

    compiled = j.jit(GIVEN[name](j), **options)
    given = lambda y: compiled(jnp.copy(y))
    f = pushed(given) if nested else given
    y = jnp.arange(1.0, 4.0)
    return [*leaves(pushed(f)(y)), j.grad(total(f))(y), j.vmap(j.grad(total(f)))(jnp.stack([y, 2 * y])),
            j.grad(total(j.grad(total(f))))(y)]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", GIVEN)
def test_what_a_derivative_needs_is_not_given_away(name, nested):
    """JAX deletes it and fails, so its answer is that without donation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on donations without use
        got = derivatives(styrax, name, nested, donate_argnums=0)
    for ours, theirs in zip(got, derivatives(jax, name, nested), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
