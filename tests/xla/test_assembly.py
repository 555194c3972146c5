"""The text that a lowered program is shown as: what XLA reads, and what JAX says of the same function."""

import re

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

import styrax
from styrax.xla.assembly import readable
from styrax.xla.literal_text import dense_text, element_type

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def parsed(text):
    """The text as MLIR prints it."""
    with mlir.make_ir_context():
        return str(ir.Module.parse(text))


PROGRAMS = {
    "elementwise": lambda p, x: p.numpy.exp(x) - x * x + p.lax.clamp(0.0, x, 1.0),
    "comparisons": lambda p, x: p.lax.select(x > 2, x, -x),
    "shapes": lambda p, x: p.lax.pad(p.lax.rev(p.lax.transpose(x, (1, 0)), (0,)), 0.0, ((1, 0, 2), (0, 0, 0)))[::2, 1:],
    "products": lambda p, x: p.lax.batch_matmul(x.reshape(2, 2, 6), x.reshape(2, 6, 2)),
    "several results": lambda p, x: p.lax.optimization_barrier((x, p.lax.erf(x))),
    "none": lambda p, x: (),
    "calls": lambda p, x: p.jit(lambda y: {"a": y + 1, "b": p.numpy.fft.fft(y)})(x),
    "slices": lambda p, x: p.lax.dynamic_update_slice(x, p.lax.dynamic_slice(x, (1, 1), (2, 2)), (0, 3)),
    "joined": lambda p, x: p.lax.concatenate([x, p.lax.broadcasted_iota("float32", (4, 2), 1)], 1),
    "types": lambda p, x: p.lax.bitcast_convert_type(x, "int32") + x.astype("int32"),
    "loops": lambda p, x: p.lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    "branches": lambda p, x: p.lax.cond(x[0, 0] > 1, p.numpy.sin, p.numpy.cos, x),
    "factorisations": lambda p, x: p.numpy.linalg.cholesky(x[:4, :4]),
    "calls of the host": lambda p, x: p.pure_callback(np.sin, x, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_means_what_the_generic_form_means(name):
    lowered = styrax.jit(lambda x: PROGRAMS[name](styrax, x)).lower(X)
    assert parsed(lowered.as_text()) == parsed(lowered._stablehlo(False))


@pytest.mark.parametrize("name", ["comparisons", "shapes", "products", "slices", "types"])
def test_operations_are_written_as_jax_writes_them(name):
    """The same lines but for the values' names."""
    def lines(package):
        text = package.jit(lambda x: PROGRAMS[name](package, x)).lower(X).as_text()
        return {re.sub(r"%\w+", "%", line).strip() for line in text.splitlines() if "constant" not in line}

    assert lines(styrax) == lines(jax)


WITH_REGIONS = {
    "a conditional": lambda p, x: p.lax.cond(x[0, 0] > 1, p.numpy.sin, lambda x: x * 2 - 1, x),
    "a loop": lambda p, x: p.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
    "loops in loops": lambda p, x: p.lax.fori_loop(
        0, 3, lambda i, x: p.lax.fori_loop(0, i, lambda j, x: x + j, x) + x.sum(), x),
    "a call in a loop": lambda p, x: p.lax.fori_loop(0, 3, lambda i, x: p.jit(p.numpy.sin)(x), x),
    "sums": lambda p, x: (x.sum(0), x.max(), (x > 1).all(), (x > 1).any(1), x.prod()),
    "positions": lambda p, x: p.numpy.argmax(x, 1),
    "a reduction of its own": lambda p, x: p.lax.reduce(x, 0.0, lambda a, b: a + b * 2, (0,)),
    "a sort": lambda p, x: p.lax.sort((x, x + 1), num_keys=1),
    "constants": lambda p, x: x * 2 + np.float32([1, 2, 3, 4, 5, 6]) + p.lax.convert_element_type(x > 1, "int32"),
    "branches in loops": lambda p, x: p.lax.scan(
        lambda c, row: (p.lax.cond(c > 1, lambda c: c - row[0], lambda c: c + 1, c), row), 0.0, x),
    "no branch's values": lambda p, x: p.lax.switch(x[0, 0].astype(int), [lambda: 1, lambda: 2, lambda: 3]),
}


@pytest.mark.parametrize("name", WITH_REGIONS)
def test_regions_and_names_are_those_of_mlir(name):
    text = styrax.jit(lambda x: WITH_REGIONS[name](styrax, x)).lower(X).as_text()
    assert text == parsed(text)


@pytest.mark.parametrize("name", ["a conditional", "a reduction of its own", "no branch's values"])
def test_programs_are_written_as_jax_writes_them(name):
    ours, theirs = (package.jit(lambda x, package=package: WITH_REGIONS[name](package, x)).lower(X).as_text()
                    for package in (styrax, jax))
    assert ours == theirs


NUMBERS = [0.0, -0.0, 0.1, -1 / 3, 100, 1e5, 12345678, 1e-4, 1e-5, 3.14159, 1e30, 1e-40, 1234.5678, 6e-8, 65504, np.inf,
           np.nan]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_numbers_are_written_as_mlir_writes_them(dtype):
    random = np.random.default_rng(0)
    wide = [*NUMBERS, *(random.standard_normal(300) * 10.0 ** random.integers(-9, 9, 300))]
    with np.errstate(over="ignore"):
        numbers = np.array(wide).astype(jax.numpy.dtype(dtype))
    for x in numbers:
        pair = np.array([x, 2], numbers.dtype)
        kind = f"tensor<2x{element_type(numbers.dtype)}>"
        with mlir.make_ir_context():
            raw = str(ir.Attribute.parse(f'dense<"0x{pair.tobytes().hex().upper()}"> : {kind}'))
        assert f"{dense_text(pair)} : {kind}" == raw


def test_where_operations_come_from_stays():
    text = styrax.jit(styrax.numpy.sin).lower(X).as_text(debug_info=True)
    assert re.search(r'stablehlo\.sine %arg0 : tensor<4x6xf32> loc\("jit\(sin\)/sin', text)


def test_what_has_no_form_stays():
    line = '    %0 = "stablehlo.compare"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<i1>'
    assert readable(line) == line


# what a module tells of its arguments and results

def heads(lower):
    """What both packages say in the first line and about `main`."""
    def told(package):
        text = lower(package).as_text()
        return text.splitlines()[0].partition(" attributes ")[2], re.search(r"@main(\(.*) \{$", text, re.MULTILINE)[1]

    return told(styrax), told(jax)


@pytest.mark.parametrize("options", [{}, {"donate_argnums": 0}, {"donate_argnums": (0, 1)}])
def test_arguments_and_results(options):
    ours, theirs = heads(lambda p: p.jit(lambda x, y: {"s": x + y, "c": (x, y * 2)}, **options).lower(X, X))
    assert ours == theirs


SPREAD = {
    "elementwise": (lambda p, x: x * 2, ("Explicit", "Explicit"), ("x", "y")),
    "a product": (lambda p, x: p.numpy.dot(x, p.numpy.ones((8, 2), "float32")), ("Explicit", "Explicit"), ("x", None)),
    "other axes": (lambda p, x: p.sharding.reshard(x, p.sharding.PartitionSpec(None, ("x", "y"))),
                   ("Explicit", "Explicit"), ("x", None)),
    "a branch": (lambda p, x: p.lax.cond(True, lambda: x, lambda: x) * 2, ("Explicit", "Auto"), ("x", None)),
    "what is not explicit": (lambda p, x: p.lax.with_sharding_constraint(
        x * 2, p.sharding.PartitionSpec(p.sharding.PartitionSpec.UNCONSTRAINED, "y")), ("Auto", "Auto"), ("x", "y")),
}


@pytest.mark.parametrize("name", SPREAD)
def test_shardings(name):
    function, types, spec = SPREAD[name]

    def told(package):
        sharding = package.sharding
        mesh = sharding.AbstractMesh((2, 2), ("x", "y"), tuple(getattr(sharding.AxisType, t) for t in types))
        with sharding.use_abstract_mesh(mesh):
            x = package.ShapeDtypeStruct((4, 8), "float32", sharding=sharding.NamedSharding(
                mesh, sharding.PartitionSpec(*spec)))
            traced = package.jit(lambda x: function(package, x)).trace(x)
            text = traced.lower(lowering_platforms=("cpu",)).as_text()
        parsed(text)
        constraints = [line.partition(" <")[2] for line in text.splitlines() if "sdy.sharding_constraint" in line]
        mesh_line, head = text.splitlines()[1:3]
        head = head.partition(" -> ")[0]  # on a mesh without devices JAX tells nothing of results
        return text.splitlines()[0].partition("attributes ")[2], mesh_line.partition(" {")[0], head, sorted(constraints)

    assert told(styrax) == told(jax)
