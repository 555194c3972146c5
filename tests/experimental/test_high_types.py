"""Values of types of one's own in programs: eagerly, compiled, and under each transformation, as in JAX."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import styrax


@cache
def library(sx):
    """A library of pairs of arrays, written against one of the two packages."""
    if sx is jax:
        from jax._src.hijax import MappingSpec
        from jax.experimental.hijax import (
            HiPrimitive,
            HiType,
            ShapedArray,
            VJPHiPrimitive,
            aval_method,
            aval_property,
            register_hitype,
        )
    else:
        from styrax.experimental.hijax import (
            HiPrimitive,
            HiType,
            MappingSpec,
            ShapedArray,
            VJPHiPrimitive,
            aval_method,
            aval_property,
            register_hitype,
        )

    @dataclass(frozen=True)
    class Pair:
        a: Any
        b: Any

    @dataclass(frozen=True)
    class Axes(MappingSpec):
        a: Any
        b: Any

    @dataclass(frozen=True)
    class PairType(HiType):
        a: ShapedArray
        b: ShapedArray

        def __repr__(self):
            return f"Pair{{{self.a.str_short()}, {self.b.str_short()}}}"

        def lo_ty(self):
            return [self.a, self.b]

        def lower_val(self, value):
            return [value.a, value.b]

        def raise_val(self, a, b):
            return Pair(a, b)

        def normalize(self):
            return PairType(self.a.normalize(), self.b.normalize())

        def to_tangent_aval(self):
            return PairType(self.a.to_tangent_aval(), self.b.to_tangent_aval())

        def vspace_zero(self):
            return pair(sx.numpy.zeros(self.a.shape, self.a.dtype), sx.numpy.zeros(self.b.shape, self.b.dtype))

        def vspace_add(self, x, y):
            return pair(*(p + q for p, q in zip(parts(x), parts(y), strict=True)))

        def dec_rank(self, size, spec):
            return PairType(self.a.dec_rank(size, spec.a), self.b.dec_rank(size, spec.b))

        def inc_rank(self, size, spec):
            return PairType(self.a.inc_rank(size, spec.a), self.b.inc_rank(size, spec.b))

        def leading_axis_spec(self):
            return Axes(0, 0)

        def ref_get_abstract_eval(self, ref, *idx, tree):
            return self.rows(self.shape[0] - tree.unflatten(idx)[-1].indices[0].start), frozenset()

        def ref_swap_abstract_eval(self, ref, value, *idx, tree):
            return value, frozenset()

        def rows(self, n):
            return PairType(*(sx.core.ShapedArray((n, *t.shape[1:]), t.dtype) for t in (self.a, self.b)))

        def ref_get_to_lojax(self, ref, idx):
            return Pair(*(r.at[idx.indices[0].start:][...] for r in self.lower_val(ref._refs)))

        def ref_swap_to_lojax(self, ref, value, idx):
            parts = zip(self.lower_val(ref._refs), self.lower_val(value), strict=True)
            return Pair(*(r.at[idx.indices[0].start:].swap(v) for r, v in parts))

        shape = property(lambda self: self.a.shape)
        length = aval_property(lambda x: part(x, 0).shape[0])
        times = aval_method(lambda x, n: pair(*(n * p for p in parts(x))))
        sum = aval_method(lambda x: part(x, 0).sum() + part(x, 1).sum())  # a name that arrays have, too

    register_hitype(Pair, lambda p: PairType(sx.typeof(p.a), sx.typeof(p.b)))

    class Make(VJPHiPrimitive):
        def __init__(self, a, b):
            self.in_avals, self.out_aval, self.params = (a, b), PairType(a, b), {}
            super().__init__()

        def expand(self, a, b):
            return Pair(a, b)

        def jvp(self, primals, tangents):
            return pair(*primals), pair(*tangents)

        def vjp_fwd(self, nzs_in, a, b):
            return pair(a, b), None

        def vjp_bwd_retval(self, _, ct):
            return parts(ct)

        def batch(self, axis_data, args, dims):
            return pair(*args), Axes(*dims)

    class Part(VJPHiPrimitive):
        def __init__(self, of, i):
            self.in_avals, self.out_aval, self.params = (of,), of.lo_ty()[i], dict(i=i)
            super().__init__()

        def expand(self, x):
            return (x.a, x.b)[self.i]

        def jvp(self, primals, tangents):
            return part(primals[0], self.i), part(tangents[0], self.i)

        def vjp_fwd(self, nzs_in, x):
            return part(x, self.i), None

        def vjp_bwd_retval(self, _, ct):
            others = [sx.numpy.zeros(t.shape, t.dtype) for t in self.in_avals[0].lo_ty()]
            others[self.i] = ct
            return (pair(*others),)

        def batch(self, axis_data, args, dims):
            return part(args[0], self.i), (dims[0].a, dims[0].b)[self.i]

    class Swapped(HiPrimitive):
        def abstract_eval(self, x):
            return PairType(x.b, x.a), set()

        def to_lojax(self, x):
            return pair(part(x, 1), part(x, 0))

        def jvp(self, primals, tangents):
            return swapped_p.bind(*primals), swapped_p.bind(*tangents)

        def transpose(self, ct, x):
            return [swapped_p.bind(ct)]

    class Both(HiPrimitive):
        multiple_results = True

        def abstract_eval(self, x):
            return x.lo_ty(), set()

        def to_lojax(self, x):
            return [x.a, x.b]

    swapped_p, both_p = Swapped("swapped"), Both("both")

    def pair(a, b):
        return Make(sx.typeof(a), sx.typeof(b))(a, b)

    def part(x, i):
        return Part(sx.typeof(x), i)(x)

    def parts(x):
        return part(x, 0), part(x, 1)

    return SimpleNamespace(Pair=Pair, Axes=Axes, PairType=PairType, pair=pair, part=part, parts=parts,
                           swapped=swapped_p.bind, both=both_p.bind)


def outputs(lib, tree_of, out):
    """The arrays in a result, pairs taken apart."""
    found = []
    for x in tree_of.leaves(out):
        found += [x.a, x.b] if isinstance(x, lib.Pair) else [x]
    return found


def turned(lib, x):
    """A pair that is rotated by a step and grown."""
    a, b = lib.parts(x)
    return lib.swapped(lib.pair(a * 1.5 + 1.0, b - 0.5))


def norm(sx, lib, x):
    a, b = lib.parts(x)
    return (sx.numpy.sin(a) * b).sum() + (b * b).sum()


def kept_square(sx, lib):
    @sx.custom_vjp
    def square(x):
        a, b = lib.parts(x)
        return lib.pair(a * a, b)

    square.defvjp(lambda x: (square(x), x), lambda x, ct: (
        lib.pair(lib.part(ct, 0) * 3 * lib.part(x, 0), lib.part(ct, 1)),))
    return square


def branches(lib):
    return lambda x: turned(lib, x), lambda x: x


def with_ref(sx, lib, x, y):
    ref = sx.new_ref(x)
    old = ref[...]
    ref[...] = turned(lib, y)
    return old, ref[...], sx.freeze(ref)


def scanned(sx, lib, x, xs):
    def body(carry, y):
        a, b = lib.parts(y)
        total = lib.pair(lib.part(carry, 0) + a, lib.part(carry, 1) * b)
        return total, lib.swapped(y)

    return sx.lax.scan(body, x, xs, length=4)


PROGRAMS = {
    "eager": lambda sx, lib, x, y, xs: turned(lib, x),
    "through jit": lambda sx, lib, x, y, xs: sx.jit(lambda x: x)(x),
    "jit": lambda sx, lib, x, y, xs: sx.jit(lambda x, y: (turned(lib, x), lib.both(y)))(x, y),
    "made in jit": lambda sx, lib, x, y, xs: sx.jit(lambda a: lib.part(turned(lib, lib.pair(a, a + 1)), 1))(3.0),
    "jit in jit": lambda sx, lib, x, y, xs: sx.jit(lambda x: sx.jit(lambda z: turned(lib, z))({"k": x}["k"]))(x),
    "donated": lambda sx, lib, x, y, xs: sx.jit(lambda x: turned(lib, x), donate_argnums=0)(
        lib.pair(x.a + 0, x.b + 0)),
    "ahead of time": lambda sx, lib, x, y, xs: sx.jit(lambda x: turned(lib, x)).lower(x).compile()(x),
    "cond": lambda sx, lib, x, y, xs: [sx.lax.cond(p, *branches(lib), x) for p in (True, False)],
    "while": lambda sx, lib, x, y, xs: sx.lax.while_loop(
        lambda c: lib.part(c[1], 0).sum() < 20.0, lambda c: (c[0] + 1, lib.pair(lib.part(c[1], 0) * 2 + 1, c[0])),
        (0.0, lib.pair(x.a, 0.0))),
    "jit of fori": lambda sx, lib, x, y, xs: sx.jit(lambda n, x: sx.lax.fori_loop(
        0, n, lambda i, z: lib.pair(*(p + i for p in lib.parts(z))), x))(3, x),
    "scan": lambda sx, lib, x, y, xs: scanned(sx, lib, x, xs),
    "scan with a constant": lambda sx, lib, x, y, xs: sx.lax.scan(
        lambda c, _: (c + lib.part(y, 0), lib.part(y, 1) * c.sum()), x.a, None, length=3),
    "empty scan": lambda sx, lib, x, y, xs: sx.lax.scan(lambda c, _: (turned(lib, c), None), x, None, length=0),
    "jvp": lambda sx, lib, x, y, xs: sx.jvp(lambda x: turned(lib, x), (x,), (y,)),
    "jvp of jit": lambda sx, lib, x, y, xs: sx.jvp(sx.jit(lambda x: norm(sx, lib, turned(lib, x))), (x,), (y,)),
    "grad": lambda sx, lib, x, y, xs: sx.grad(lambda x: norm(sx, lib, x))(x),
    "grad of jit": lambda sx, lib, x, y, xs: sx.grad(sx.jit(lambda x: norm(sx, lib, turned(lib, x))))(x),
    "jit of grad": lambda sx, lib, x, y, xs: sx.jit(sx.grad(lambda x: norm(sx, lib, turned(lib, x))))(x),
    "vjp": lambda sx, lib, x, y, xs: sx.vjp(lambda x: turned(lib, x), x)[1](y),
    "jit of vjp": lambda sx, lib, x, y, xs: sx.jit(lambda x, y: sx.vjp(lambda x: turned(lib, x), x)[1](y))(x, y),
    "grad of inner pairs": lambda sx, lib, x, y, xs: sx.grad(lambda a: norm(sx, lib, lib.pair(a, a * 2)))(x.a),
    "grad of a constant": lambda sx, lib, x, y, xs: sx.grad(lambda x, a: a.sum())(x, x.a),
    "vmap": lambda sx, lib, x, y, xs: sx.vmap(
        lambda x: lib.pair(lib.part(x, 1) * 2, lib.part(x, 0).sum()), in_axes=lib.Axes(0, 0),
        out_axes=lib.Axes(0, 0), axis_size=4)(xs),
    "vmap of half": lambda sx, lib, x, y, xs: sx.vmap(
        lambda x: lib.pair(*lib.parts(x)[::-1]), in_axes=lib.Axes(0, None), out_axes=lib.Axes(None, 0),
        axis_size=4)(lib.pair(xs.a, x.b)),
    "vmap along others": lambda sx, lib, x, y, xs: sx.vmap(
        lambda x: sum(map(sx.numpy.sum, lib.parts(x))), in_axes=lib.Axes(1, 1), axis_size=3)(xs),
    "vmap within": lambda sx, lib, x, y, xs: sx.vmap(lambda a: sx.numpy.dot(*lib.parts(lib.pair(a, a + 1))))(xs.a),
    "attributes of a type": lambda sx, lib, x, y, xs: sx.jit(
        lambda x: (x.length, x.times(2.0), x.sum(), lib.part(x, 0).sum()))(x),
    "references": lambda sx, lib, x, y, xs: with_ref(sx, lib, x, y),
    "jit of references": lambda sx, lib, x, y, xs: sx.jit(lambda x, y: with_ref(sx, lib, x, y))(x, y),
}


def values(sx, lib):
    make = lambda *shape: sx.numpy.asarray(np.linspace(-1.0, 2.0, int(np.prod(shape)), dtype="float32").reshape(shape))
    return (lib.pair(make(3), make(3) * 2), lib.pair(make(3) + 1, make(3) - 4), lib.pair(make(4, 3), make(4, 3) * -1))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_pairs_are_those_of_jax(name):
    found = []
    for sx in (styrax, jax):
        lib = library(sx)
        found.append([np.asarray(v) for v in outputs(lib, sx.tree, PROGRAMS[name](sx, lib, *values(sx, lib)))])
    ours, theirs = found
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


# What JAX's release does not run, beside the same computed another way

RELATED = {
    "captured": (lambda sx, lib, x, y, xs: sx.jit(lambda: turned(lib, x))(),
                 lambda sx, lib, x, y, xs: turned(lib, x)),
    "jit of cond": (
        lambda sx, lib, x, y, xs: sx.jit(lambda p, x: sx.lax.cond(p, *branches(lib), x))(True, x),
        lambda sx, lib, x, y, xs: turned(lib, x)),
    "jit of scan": (lambda sx, lib, x, y, xs: sx.jit(lambda x, xs: scanned(sx, lib, x, xs))(x, xs),
                    lambda sx, lib, x, y, xs: scanned(sx, lib, x, xs)),
    "remat": (lambda sx, lib, x, y, xs: sx.grad(sx.checkpoint(lambda x: norm(sx, lib, turned(lib, x))))(x),
              lambda sx, lib, x, y, xs: sx.grad(lambda x: norm(sx, lib, turned(lib, x)))(x)),
    "custom_vjp": (lambda sx, lib, x, y, xs: sx.jit(kept_square(sx, lib))(x),
                   lambda sx, lib, x, y, xs: lib.pair(x.a * x.a, x.b)),
    "grad of custom_vjp": (
        lambda sx, lib, x, y, xs: sx.grad(lambda x: norm(sx, lib, kept_square(sx, lib)(x)))(x),
        lambda sx, lib, x, y, xs: lib.pair(*(g * f for g, f in zip(
            lib.parts(sx.grad(lambda x: norm(sx, lib, x))(lib.pair(x.a * x.a, x.b))), (3 * x.a, 1.0), strict=True)))),
    "grad of scan": (
        lambda sx, lib, x, y, xs: sx.grad(lambda x: norm(sx, lib, sx.lax.scan(
            lambda c, _: (turned(lib, c), None), x, None, length=2)[0]))(x),
        lambda sx, lib, x, y, xs: sx.grad(lambda x: norm(sx, lib, turned(lib, turned(lib, x))))(x)),
    "vmap of jit": (
        lambda sx, lib, x, y, xs: sx.vmap(sx.jit(lambda x: lib.part(x, 0) * 2 + lib.part(x, 1)),
                                          in_axes=lib.Axes(0, 0), axis_size=4)(xs),
        lambda sx, lib, x, y, xs: xs.a * 2 + xs.b),
    "references as arguments": (
        lambda sx, lib, x, y, xs: referenced(sx, lib, x, y),
        lambda sx, lib, x, y, xs: (x, lib.pair(x.a + y.a, x.b + y.b))),
    "reads and writes at an index": (
        lambda sx, lib, x, y, xs: sx.jit(lambda x, y: rows(sx, lib, x, y))(xs, lib.pair(xs.a[2:], xs.b[2:] + 1)),
        lambda sx, lib, x, y, xs: (lib.pair(xs.a[1:], xs.b[1:]), lib.pair(xs.a, xs.b.at[2:].add(1)))),
    "an empty reference": (lambda sx, lib, x, y, xs: sx.jit(lambda: sx.freeze(sx.empty_ref(sx.typeof(x))))(),
                           lambda sx, lib, x, y, xs: lib.pair(x.a * 0, x.b * 0)),
}


def referenced(sx, lib, x, y):
    ref = sx.new_ref(x)
    old = sx.jit(lambda r, y: r.swap(lib.pair(*(p + q for p, q in zip(lib.parts(r.get()), lib.parts(y))))))(ref, y)
    return old, ref[...]


def rows(sx, lib, x, y):
    ref = sx.new_ref(x)
    old = ref[1:]
    ref[2:] = y
    return old, ref[...]


@pytest.mark.parametrize("name", RELATED)
def test_programs_on_pairs_beside_others(name):
    lib = library(styrax)
    ours, theirs = (outputs(lib, styrax.tree, run(styrax, lib, *values(styrax, lib))) for run in RELATED[name])
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_is_shown_of_programs_on_pairs():
    lib = library(styrax)
    x, _, _ = values(styrax, lib)
    kind = styrax.typeof(x)
    traced = styrax.jit(lambda x: turned(lib, x)).trace(x)
    assert traced.jaxpr.jaxpr.is_high and traced.jaxpr.in_avals == traced.jaxpr.out_avals == [kind]
    assert [str(a) for a in traced.lojax.in_avals] == ["float32[3]", "float32[3]"]
    assert not traced.lojax.jaxpr.is_high
    assert traced.out_info == styrax.eval_shape(lambda x: turned(lib, x), x) == kind
    lowered = traced.lower()
    assert lowered.as_text().count("tensor<3xf32>") and lowered.compile().in_avals == (((kind,), {}))
    with pytest.raises(TypeError, match=r"compiled with Pair\{.*\} and called with float32\[3\]"):
        lowered.compile()(x.a)
    square = styrax.make_jaxpr(lambda a: styrax.jit(lambda a: lib.part(lib.pair(a, a), 0))(a))(1.0)
    assert square.jaxpr.is_high and not square.jaxpr.invars[0].aval.is_high
    assert not styrax.make_jaxpr(styrax.numpy.sin)(1.0).jaxpr.is_high


def test_mistakes_with_pairs_are_told():
    lib = library(styrax)
    x, _, xs = values(styrax, lib)
    with pytest.raises(ValueError, match="unexpected JAX type"):
        styrax.vjp(lambda x: turned(lib, x), x)[1](xs)
    with pytest.raises(TypeError, match="expected a tangent of type Pair"):
        styrax.jvp(lambda x: turned(lib, x), (x,), (x.a,))
    with pytest.raises(TypeError, match="carry output must have equal types"):
        styrax.lax.scan(lambda c, _: (lib.pair(lib.part(c, 0)[:2], lib.part(c, 1)), None), x, None, length=2)
    with pytest.raises(ValueError, match="got axis spec 0 but output was batched on axis"):
        styrax.vmap(lambda x: x, in_axes=lib.Axes(0, 0), axis_size=4)(xs)
    with pytest.raises(ValueError, match="Invalid type for `swap`"):
        styrax.jit(lambda x, y: styrax.new_ref(x).swap(y))(x, xs)


def test_what_a_type_lacks_is_said():
    from styrax.experimental.hijax import HiType, register_hitype

    @dataclass(frozen=True)
    class Bare:
        x: Any

    @dataclass(frozen=True)
    class BareType(HiType):
        pass

    register_hitype(Bare, lambda _: BareType())
    with pytest.raises(NotImplementedError, match="BareType must define `lo_ty`"):
        styrax.jit(lambda x: x)(Bare(1.0))


def test_a_transpose_of_ones_own():
    found = []
    for sx in (styrax, jax):
        class Scale(import_module(sx.__name__ + ".experimental.hijax").VJPHiPrimitive):
            def __init__(self, factor, x):
                self.in_avals, self.out_aval, self.params = (factor, x), x, {}
                super().__init__()

            def expand(self, factor, x):
                return factor * x

            def transpose(self, ct, factor, x):
                x.accum(2 * factor * ct)  # a wrong one, to see that it is used

        def scale(factor, x, sx=sx, kind=Scale):
            return kind(sx.typeof(factor), sx.typeof(x))(factor, x)

        found.append(float(sx.linear_transpose(lambda x: scale(3.0, x), 1.0)(5.0)[0]))
    assert found == [30.0, 30.0]


@pytest.mark.parametrize("sx", [styrax, jax], ids=["styrax", "jax"])
def test_traced_references_and_views_have_methods(sx):
    def changed(ref):
        ref.set(sx.numpy.arange(4.0))
        old = ref.swap(sx.numpy.ones(2), slice(1, 3))
        ref.addupdate(sx.numpy.ones(4))
        assert not hasattr(sx.numpy.ones(2), "swap") and not hasattr(ref[...], "swap")
        return old, ref.get(), ref.get(2)

    old, whole, one = sx.jit(changed)(sx.new_ref(sx.numpy.zeros(4)))
    np.testing.assert_array_equal(old, [1, 2])
    np.testing.assert_array_equal(whole, [1, 2, 2, 4])
    assert one == 2
