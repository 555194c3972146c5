"""Every primitive has the traits that its lowering, its parameters and its programs ask for.

What a lowering does is read off its expressions: at which indices it reads its operands, and what it does with them.
"""

from __future__ import annotations

import functools
from collections import defaultdict

import numpy as np
import pytest

import styrax as jax
import styrax.lax as lax
import styrax.numpy as jnp
from styrax.compile.ir.expr import Expr
from styrax.compile.lowering.builder import Builder
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Control
from styrax.core.types.avals import ShapedArray
from styrax.transforms import api
from tests.lax import operations, test_reductions, test_shaping
from tests.lax.harness import stage
from tools.primitives import primitives

F, I = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4), np.arange(12, dtype=np.int32).reshape(3, 4)
S = F[:, :3] + 3 * np.eye(3, dtype=np.float32)
IMAGE, KERNEL = np.ones((1, 2, 6, 6), np.float32), np.ones((3, 2, 2, 2), np.float32)
WINDOW = ((2, 2), (1, 1), "VALID")


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, *WINDOW).sum()


def custom_jvp(x):
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    return f(x)


def custom_vjp(x):
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    return f(x)


def custom_vmap(x):
    f = jax.custom_batching.custom_vmap(jnp.sin)
    f.def_vmap(lambda size, mapped, x: (f(x), mapped[0]))
    return f(x)


# besides the cases that `lax` is tested with
PROGRAMS = [
    (lambda x: (lax.log2(x), lax.one_minus_square(x), lax.polynomial(x, [1, 2, 3])), np.ones((3, 4), np.float32)),
    (lambda x: lax.approx_max_k(x, 2), F), (lax.linalg.cholesky, S), (lax.linalg.cholesky_update, S, S[0]),
    (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), IMAGE, KERNEL), (jnp.copy, F), (lambda x: jnp.array(x), F),
    (lambda x: lax.custom_linear_solve(lambda v: 2 * v, x, lambda f, b: b / 2, symmetric=True), F),
    (lambda x: (lax.dce_sink(x), x)[1], F), (lambda x: (jax.debug.print("{}", x), x)[1], F),
    (lambda x: (jax.debug.callback(lambda x: None, x), x)[1], F), (jax.device_put, F), (lax.linalg.eig, S),
    (lax.linalg.eigh, S), (lambda: lax.empty((3,), np.float32),), (lambda x, i: x[i], F, np.array([2, 0])),
    (lambda x: x.at[1:].set(0), F), (lax.linalg.hessenberg, S), (lax.linalg.householder_product, S, S[0]),
    (lax.igamma, F, F), (lax.igamma_grad_a, F, F), (lax.igammac, F, F), (lax.linalg.lu, S), (lax.mulhi, I, I),
    (lambda x: jax.ad_checkpoint.checkpoint_name(x, "x"), F), (lax.optimization_barrier, F), (lax.polygamma, F, F),
    (lambda x: jax.pure_callback(np.sin, x, x), F), (lax.linalg.qr, S), (lax.random_gamma_grad, F, F),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, *WINDOW), F), (pooled, F), (jax.grad(pooled), F),
    (lambda x: lax.reduce_window(x, jnp.inf, lax.min, *WINDOW), F),
    (lambda x: jax.jvp(jax.grad(pooled), (x,), (x,)), F),
    (lambda x: lax.reduce_window(x, 1.0, lambda a, b: a * b, *WINDOW), F),
    (lax.betainc, F, F, F), (jax.random.key_data, jax.random.key(0)), (jax.random.normal, jax.random.key(0)),
    (lambda x: x.at[1].add(1), F), (lambda x: x.at[1].mul(2), F), (lambda x: x.at[1].max(2), F),
    (lambda x: x.at[1].min(2), F), (lambda x: x.at[1].subtract(2), F), (lax.linalg.schur, S), (lax.sort, F),
    (lax.linalg.svd, S), (lax.linalg.tridiagonal, S), (lambda x: lax.top_k(x, 2), F), (lax.zeta, 1 + F, F),
    (lambda x: lax.linalg.triangular_solve(x, x, lower=True), S),
    (lambda x: lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x), S), (lax.linalg.symmetric_product, S, S),
    (lambda x: lax.linalg.lu_pivots_to_permutation(x, 5), I[0]), (jax.grad(lambda x: x.sum() + x.max()), F),
    (jax.jit(jnp.sin), F), (jax.checkpoint(jnp.sin), F), (custom_jvp, F), (custom_vjp, F), (custom_vmap, F),
    (lax.composite(jnp.sin, "sine"), F), (lambda x: lax.fori_loop(0, x[0].astype(int), lambda i, c: c * 2, x), F[0]),
    (lambda x: lax.scan(lambda c, r: (c + r, r), x[0], x), F),
    (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), F[0]),
]


@functools.cache
def equations() -> dict[str, list[JaxprEqn]]:
    """Equations of each primitive, of all programs and of those inside them."""
    found: dict[str, list[JaxprEqn]] = defaultdict(list)

    def collect(jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            found[eqn.primitive.name].append(eqn)
            for inner in jaxprs_in_params(eqn.params):
                collect(inner)

    for case in (*operations.CASES, *test_shaping.CASES, *test_reductions.CASES):
        collect(stage(case.function(lax), case.args).jaxpr)
    for f, *args in PROGRAMS:
        collect(api.make_jaxpr(f)(*args).jaxpr)
    return found


class Lowered:
    """What an equation's lowering does with its operands' elements."""

    def __init__(self, eqn: JaxprEqn):
        b = self.b = Builder()
        b.avals_in, b.avals_out = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
        self.reads: list[tuple] = []
        self.elements: set[Expr] = set()
        outs = rules.loops[eqn.primitive](b, *map(self.operand, b.avals_in), **eqn.params)
        self.outs = list(outs) if eqn.primitive.multiple_results else [outs]
        self.index = b.loop_vars(self.outs[0].shape)
        self.results = [part for out in self.outs for part in b.parts(out.at(self.index))]

    def operand(self, aval):
        element = self.b.mutable(aval.dtype)
        self.elements.update((element, *self.b.parts(element)))

        def at(index):
            self.reads.append((aval.shape, index))
            return element

        return self.b.value(aval.shape, aval.dtype, at)

    def elementwise(self) -> bool:
        """Whether results are arithmetic on the same elements of all operands."""
        same = all(index == (() if not shape else self.index) for shape, index in self.reads)
        return bool(self.reads) and same and not self.b.ops and not any(
            v in e.deps for e in self.results for v in self.index)

    def movement(self) -> bool:
        """Whether results are elements of the operands, or constants, chosen by the index alone."""
        return not self.b.ops and all(map(self.moved, self.results))

    def moved(self, e: Expr) -> bool:
        if e.op == "select":
            return not self.computed(e.args[0]) and all(map(self.moved, e.args[1:]))
        return e in self.elements or not self.computed(e) or e.op == "bitcast" and self.moved(e.args[0])

    def computed(self, e: Expr) -> bool:
        return e in self.elements or any(map(self.computed, e.args))


def lowered(eqn: JaxprEqn, same_shapes: bool) -> Lowered | None:
    """The lowering of an equation, or None where it shows nothing: programs inside, other values than plain arrays,
    one element; with `same_shapes`, operands of other shapes than the result's."""
    avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
    if not eqn.outvars or eqn.effects or not all(type(a) is ShapedArray and type(a.dtype) is np.dtype for a in avals):
        return None
    shape = avals[-1].shape
    shapes = {a.shape for a in avals} - {()}
    if max(shape, default=0) < 2 or 0 in shape or list(jaxprs_in_params(eqn.params)):
        return None
    if same_shapes and shapes != {shape}:
        return None
    return Lowered(eqn)


WITH_LOOPS = [p for p in primitives() if p in rules.loops]
# Without an equation here: what needs an axis or is made by transformations alone (with programs and functions inside).
UNSEEN = {"psum", "psum_invariant", "pvary", "all_gather_invariant", "pmax", "pmin", "custom_lin", "dim_as_value",
          "check", "inspect_sharding", "io_callback", "ormqr", "geqrf", "philox2x32",
          "philox4x32", "threefry4x32", "select_and_scatter", "sharding_constraint", "rng_uniform", "rng_bit_generator",
          "iota_2x32_shape", "threefry2x32", "all_gather", "all_to_all", "axis_index", "pbroadcast", "ppermute",
          "reduce_scatter", "fft", "create_token", "after_all", "stage", "empty2", "psend", "precv",
          "ragged_all_to_all", "xla_metadata_value", "shard_alike", "layout_constraint", "reshard",
          "recast", "device_values", "of_device_values", "every_copy", "own_copy"}


def test_every_primitive_is_seen():
    assert {p.name for p in WITH_LOOPS} - set(equations()) == UNSEEN


@pytest.mark.parametrize("p", WITH_LOOPS, ids=str)
def test_elementwise_and_movement(p):
    seen = [found for eqn in equations().get(p.name, ()) if (found := lowered(eqn, same_shapes=True)) is not None]
    if p.traits.elementwise:
        assert all(found.elementwise() for found in seen)
    elif seen and all(found.elementwise() for found in seen):
        assert p.traits.movement, "declare(elementwise=True)"
    seen = [found for eqn in equations().get(p.name, ()) if (found := lowered(eqn, same_shapes=False)) is not None]
    if p.traits.movement:
        assert all(found.movement() for found in seen)
    elif seen and all(found.movement() for found in seen):
        assert p.traits.elementwise, "declare(movement=True)"


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """A program among an equation's parameters that takes its operands and gives its results."""
    for value in eqn.params.values():
        closed = ClosedJaxpr(value, ()) if isinstance(value, Jaxpr) else value
        if isinstance(closed, ClosedJaxpr) and closed.in_avals == [v.aval for v in eqn.invars] and (
                closed.out_avals == [v.aval for v in eqn.outvars]):
            return closed
    return None


def test_calls_declare_their_programs():
    calls = set()
    for name, eqns in equations().items():
        for eqn in eqns:
            closed, traits = called(eqn), eqn.primitive.traits
            if closed is not None and traits.control is None:
                assert traits.program is not None, f"declare(program=...) of {name}"
                found = traits.program(eqn.params)
                assert (found.jaxpr if isinstance(found, ClosedJaxpr) else found) is closed.jaxpr
                calls.add(name)
    assert calls >= {"jit", "remat2", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "composite"}


def test_control_flow_says_so():
    for control in Control:
        assert {eqn.primitive.traits.control for eqn in equations()[control.value]} == {control}
    assert {p.name for p in primitives() if p.traits.control is not None} == {c.value for c in Control}


def bumped(value):
    """A parameter with one of its integers greater by one, for each."""
    if type(value) is int:
        yield value + 1
    elif type(value) is tuple:
        for k, part in enumerate(value):
            yield from ((*value[:k], other, *value[k + 1:]) for other in bumped(part))


def shapes(p, avals, params):
    outs, _ = p.abstract_eval(*avals, **params)
    return [a.shape for a in (outs if p.multiple_results else [outs])]


def sizes(eqn: JaxprEqn) -> set[str]:
    """The parameters of which an integer decides on the size of a result."""
    p, avals = eqn.primitive, [v.aval for v in eqn.invars]
    usual = shapes(p, avals, eqn.params)
    out = set()
    for name, value in eqn.params.items():
        for other in bumped(value):
            try:
                found = shapes(p, avals, {**eqn.params, name: other})
            except Exception:  # no program
                continue
            if list(map(len, found)) == list(map(len, usual)) and found != usual:
                out.add(name)
    return out


# Integers that decide on the loops themselves: there is a program for each.
STATIC = {
    **dict.fromkeys(("axes", "dimensions", "reduction_dimension"), "which dimensions, not how large"),
    **dict.fromkeys(("window_dimensions", "window_strides", "window_dilation", "base_dilation", "padding",
                     "lhs_dilation", "rhs_dilation", "strides"), "how windows and slices step"),
    "reps": "how often, not how large",
    "k": "few of many are found in other ways than many",
    "permutation_size": "the loop of pivots keeps it",
}


def test_sizes_among_parameters_are_declared():
    excused = set()
    for name, eqns in equations().items():
        for eqn in eqns:
            if eqn.primitive.generic_in_sizes and eqn.primitive in rules.loops:
                left = sizes(eqn) - eqn.primitive.traits.sizes
                assert left <= set(STATIC), f"declare(sizes=...) of {name}: {left - set(STATIC)}"
                excused |= left
    assert excused == set(STATIC)


def test_traits_that_are_not_declared_are_found():
    def of(abstract_eval, loops):
        p = Primitive("new")
        p.def_abstract_eval(abstract_eval)
        rules.loops[p] = loops
        try:
            return Lowered(api.make_jaxpr(p.bind)(F).eqns[0])
        finally:
            del rules.loops[p]

    def same(x):
        return ShapedArray(x.shape, x.dtype)

    def row(x):
        return ShapedArray(x.shape[:1], x.dtype)

    doubled = of(same, lambda b, x: b.value(x.shape, x.dtype, lambda i: b.add(x.at(i), x.at(i))))
    assert doubled.elementwise() and not doubled.movement()
    first = of(row, lambda b, x: b.value(x.shape[:1], x.dtype, lambda i: x.at([*i, b.index(0)])))
    assert first.movement() and not first.elementwise()
    summed = of(row, lambda b, x: b.reduce(x.shape[:1], x.shape[1:], [x.dtype], "add", [b.const(0, x.dtype)],
                                           lambda i, r: (x.at([*i, *r]),))[0])
    assert not summed.movement() and not summed.elementwise()


SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 2.0, -2.0, 3e38, np.inf, -np.inf], np.float32)
# What JAX's checks leave out, too: sums of cotangents, two special functions, and what stands inside sampling.
UNCHECKED = {"add_any", "polygamma", "random_gamma_grad", "zeta"}


@pytest.mark.parametrize("p", [p for p in WITH_LOOPS if p.traits.elementwise], ids=str)
def test_elementwise_results_that_are_no_numbers_are_declared(p):
    for eqn in equations().get(p.name, ()):
        avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
        if eqn.effects or any(a.dtype != np.float32 for a in avals):
            continue
        operands = [x.ravel() for x in np.meshgrid(*[SPECIAL] * len(eqn.invars))]
        if p.traits.nan or p.name in UNCHECKED:
            return
        outs = p.bind(*operands, **eqn.params)
        for out in outs if p.multiple_results else [outs]:
            assert not np.isnan(out).any(), f"declare(nan=True) of {p.name}"


def test_division_is_declared():
    assert [p.name for p in primitives() if p.traits.divides] == ["div"]


def test_windows_are_declared():
    """Where windows start is an integer for each of some dimensions, and they fit into the operand."""
    declared = {p.name for p in primitives() if p.traits.windows is not None}
    assert declared == {"gather", "dynamic_slice", "dynamic_update_slice", "scatter",
                        *(f"scatter-{kind}" for kind in ("add", "sub", "mul", "min", "max"))}
    for name in declared:
        assert equations()[name]
        for eqn in equations()[name]:
            avals = [v.aval for v in eqn.invars]
            operands, dims, sizes = eqn.primitive.traits.windows(avals, eqn.params)
            starts = avals[operands]
            assert all(np.issubdtype(a.dtype, np.integer) for a in starts)
            assert len(dims) == len(sizes) == (starts[0].shape[-1] if starts[0].shape else len(starts))
            assert all(0 <= size <= avals[0].shape[d] for d, size in zip(dims, sizes, strict=True))


def test_what_is_printed_are_parameters():
    """Of the declared texts; they are compared with JAX's in `tests/core/test_text.py`."""
    declared = {p.name for p in primitives() if p.traits.printed is not None}
    assert declared == {"broadcast_in_dim", "check", "convert_element_type", "custom_jvp_call", "custom_vjp_call",
                        "dot_general", "pvary", "reshard"}
    for name in declared - {"check", "pvary", "reshard"}:
        for eqn in equations()[name]:
            shown = eqn.primitive.traits.printed(eqn.params)
            rules_of_derivatives = {"name", "jvp", "fwd", "bwd"} if name.startswith("custom_") else set()
            assert set(shown) <= set(eqn.params) | rules_of_derivatives
