"""`pallas_call`: grids, blocks, scratch memory, aliases, as JAX interprets them."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import pallas as pl

from .both import OURS, same, same_error

X = np.arange(12, dtype="float32")


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def nothing(*refs):
    pass


@pytest.mark.parametrize("jit", [False, True])
def test_blocks(jit):
    def program(m):
        f = m.blocks(add, operands=2)
        return (m.jax.jit(f) if jit else f)(X, X)

    same(program)


@pytest.mark.parametrize("given, wanted", [(10, 10), (10, 12), (12, 10), (9, 9), (1, 12)])
def test_blocks_beyond_the_array(given, wanted):
    same(lambda m: m.blocks(copy, (wanted,))(X[:given]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int32", "bool", "uint32"])
def test_dtypes(dtype):
    same(lambda m: m.blocks(copy, dtype=dtype)(m.jnp.arange(10).astype(dtype)))
    same(lambda m: m.call(nothing, (3,), dtype)())


@pytest.mark.parametrize("grid", [(0,), (-1,), 3, (1,), (2, 0)])
def test_grids(grid):
    def program(m):
        spec = m.pl.BlockSpec((4,), lambda *i: i[0])
        return m.call(copy, grid=grid, in_specs=[spec], out_specs=spec)(X)

    same(program)


def test_grid_of_three_dimensions():
    def kernel(m, x_ref, o_ref):
        i, j, k = (m.pl.program_id(n) for n in range(3))
        o_ref[...] = x_ref[...] + 100 * i + 10 * j + k + 1000 * m.pl.num_programs(-1)

    def program(m):
        spec = m.pl.BlockSpec((1, 2, None), lambda i, j, k: (i, j, k))
        return m.call(lambda *refs: kernel(m, *refs), (2, 6, 4), grid=(2, 3, 4), in_specs=[spec], out_specs=spec)(
            np.arange(48, dtype="float32").reshape(2, 6, 4))

    same(program)


@pytest.mark.parametrize("block, index_map", [
    (lambda pl: (pl.Element(4),), lambda i: 2 * i + 1),
    (lambda pl: (pl.Element(4, (1, 2)),), lambda i: i * 4),
    (lambda pl: (pl.Blocked(4),), lambda i: i),
    (lambda pl: (4,), lambda i: i + 2),
    (lambda pl: (4,), lambda i: -1 - i),
], ids=["element", "padded", "blocked", "beyond", "negative"])
def test_dimensions_of_blocks(block, index_map):
    def reading(m):
        out = m.pl.BlockSpec((None, 4), lambda i: (i, 0))
        return m.call(copy, (3, 4), grid=(3,), in_specs=[m.pl.BlockSpec(block(m.pl), index_map)], out_specs=out)(X[:10])

    def writing(m):
        given = m.pl.BlockSpec((m.pl.squeezed, 4), lambda i: (i, 0))
        return m.call(copy, (10,), grid=(3,), in_specs=[given], out_specs=m.pl.BlockSpec(block(m.pl), index_map))(
            X.reshape(3, 4))

    same(reading)
    same(writing)


def test_whole_arrays():
    def kernel(m, x_ref, o_ref):
        i = m.pl.program_id(0)
        o_ref[i] = x_ref[i]

    same(lambda m: m.call(lambda *refs: kernel(m, *refs), (10,), grid=(3,))(X))
    same(lambda m: m.call(copy, in_specs=[m.pl.BlockSpec(memory_space=m.pl.ANY)], out_specs=m.pl.BlockSpec((12,)))(X))


def test_results_add_up_over_the_grid():
    def kernel(m, x_ref, o_ref):
        @m.pl.when(m.pl.program_id(0) == 0)
        def _():
            o_ref[...] = m.jnp.zeros_like(o_ref)
        o_ref[...] += x_ref[...]

    def program(m):
        return m.call(lambda *refs: kernel(m, *refs), (4,), grid=(3,), in_specs=[m.pl.BlockSpec((4,), lambda i: i)],
                      out_specs=m.pl.BlockSpec((4,), lambda i: 0))(X)

    same(program)


def shifted(x_ref, o_ref, s_ref):
    o_ref[...] = s_ref[...]
    s_ref[...] = x_ref[...]


def test_scratch_memory_lasts():
    same(lambda m: m.blocks(shifted, scratch_shapes=[m.pl.MemorySpace.ANY((4,), m.jnp.float32)])(X))
    same(lambda m: m.blocks(shifted, scratch_shapes=[m.tpu.VMEM((4,), m.jnp.float32)])(X))


def test_scratch_memory_by_name():
    def kernel(x_ref, o_ref, *, last):
        shifted(x_ref, o_ref, last)

    same(lambda m: m.blocks(kernel, scratch_shapes={"last": m.tpu.SMEM((4,), m.jnp.float32)})(X))


def test_aliases():
    def kernel(x_ref, o_ref):
        o_ref[0] = 5.0

    same(lambda m: m.call(kernel, input_output_aliases={0: 0})(X))
    same(lambda m: m.blocks(kernel, input_output_aliases={0: 0})(X))


def test_operands_that_kernels_write_keep_it():
    def kernel(x_ref, o_ref):
        x_ref[0] = x_ref[0] + 5.0
        o_ref[...] = x_ref[...]

    same(lambda m: m.call(kernel, grid=(3,))(X))
    same(lambda m: m.blocks(kernel)(X))
    x = jnp.asarray(X)
    OURS.call(kernel)(x)
    np.testing.assert_array_equal(x, X)  # the caller's array stays


def test_trees():
    def kernel(xs, o_ref):
        o_ref["sum"][...] = xs[0]["a"][...] + xs[1][...]
        o_ref["first"][...] = xs[0]["a"][...]

    def program(m):
        one = m.jax.ShapeDtypeStruct((12,), m.jnp.float32)
        out = m.pl.pallas_call(kernel, {"sum": one, "first": one}, interpret=m.interpret)(({"a": X}, X + 1))
        assert set(out) == {"sum", "first"}
        return out

    same(program)


def test_lists_of_results_are_tuples():
    def kernel(x_ref, a_ref, b_ref):
        a_ref[...] = x_ref[...]
        b_ref[...] = -x_ref[...]

    def program(m):
        out = m.pl.pallas_call(kernel, [m.jax.ShapeDtypeStruct((12,), m.jnp.float32)] * 2, interpret=m.interpret)(X)
        assert type(out) is tuple
        return out

    same(program)


def test_loops_branches_and_jit_in_kernels():
    def kernel(x_ref, o_ref):
        scale = jax.jit(lambda r: r * pl.program_id(0))

        def turn(i, carry):
            o_ref[i] = carry * 2 + pl.program_id(0)
            return carry + 1.0

        jax.lax.fori_loop(0, 4, turn, x_ref[0])
        o_ref[0] = scale(x_ref[1])

        def step(i):
            o_ref[i] += jnp.float32(pl.program_id(0))
            return i + 1

        jax.lax.while_loop(lambda i: i < 3, step, 1)

    found = OURS.blocks(kernel)(jnp.asarray(X))
    wanted = np.zeros(12, "float32")
    for b in range(3):
        block = X[4 * b] + np.arange(4)
        wanted[4 * b:4 * b + 4] = 2 * block + b
        wanted[4 * b] = X[4 * b + 1] * b
        wanted[4 * b + 1:4 * b + 3] += b
    np.testing.assert_array_equal(found, wanted)


def test_sizes_known_when_it_runs():
    def program(m, steps):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * m.pl.num_programs(0) + m.pl.program_id(0)

        return m.jax.jit(lambda n: m.blocks(kernel, steps=n)(X))(steps)

    for steps in (0, 2, 3):
        same(lambda m, steps=steps: program(m, steps))
    same(lambda m: m.blocks(copy, steps=m.jnp.int32(2))(X))


def test_index_maps_that_close_over_numbers():
    for k in (1, 2):
        def program(m, k=k):
            given = m.pl.BlockSpec((4,), lambda i: (i + k) % 3)
            return m.call(copy, grid=(3,), in_specs=[given], out_specs=m.pl.BlockSpec((4,), lambda i: i))(X)

        same(program)


def test_kernels_defined_anew_are_compiled_once():
    from styrax.experimental.pallas import traces

    def call(k):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + k

        return OURS.blocks(kernel)(X)

    call(1.0)
    count = len(traces._programs)
    np.testing.assert_array_equal(call(1.0), X + 1)
    assert len(traces._programs) == count
    np.testing.assert_array_equal(call(2.0), X + 2)
    assert len(traces._programs) == count + 1
    table = [3.0]

    def reads_what_can_change():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + table[0]

        return OURS.blocks(kernel)(X)

    np.testing.assert_array_equal(reads_what_can_change(), X + 3)
    table[0] = 4.0
    np.testing.assert_array_equal(reads_what_can_change(), X + 4)


def test_interpret_makes_no_difference():
    wanted = OURS.blocks(copy, (10,))(X)
    spec = pl.BlockSpec((4,), lambda i: i)
    found = pl.pallas_call(copy, jax.ShapeDtypeStruct((10,), jnp.float32), grid=(3,), in_specs=[spec], out_specs=spec,
                           interpret=True, name="copy", debug=False, metadata={"by": "test"},
                           cost_estimate=pl.CostEstimate(0, 0, 96))(X)
    np.testing.assert_array_equal(found, wanted)


def test_empty_arrays():
    assert OURS.call(copy, (0,))(np.zeros(0, "float32")).shape == (0,)
    assert OURS.blocks(copy, (0,), steps=0)(np.zeros(0, "float32")).shape == (0,)


def test_programs_hold_the_kernel():
    text = str(jax.make_jaxpr(OURS.blocks(copy))(X))
    assert "pallas_call[" in text and "GridMapping(grid=(3,), block_mappings=(BlockMapping(" in text
    assert "<- d[...], e" in text or "d[...] <- e" in text


def test_blocks_are_written_where_they_lie():
    """One loop a step, whose stores go to the result: no block in between."""
    x = jnp.zeros(4096)
    text = jax.jit(OURS.blocks(add, (4096,), size=512, steps=8, operands=2)).lower(x, x).compile().as_text()
    assert text.count(" = add(arg0[") == 1 and text.count("for i") == 2, text


SPEC = [
    ("rank", lambda m: m.call(copy, grid=(3,), in_specs=[m.pl.BlockSpec((4, 1), lambda i: i)])(X)),
    ("arity", lambda m: m.call(copy, grid=(3,), in_specs=[m.pl.BlockSpec((4,), lambda i, j: i)])(X)),
    ("indices", lambda m: m.call(copy, grid=(3,), in_specs=[m.pl.BlockSpec((4,), lambda i: (i, i))])(X)),
    ("floats", lambda m: m.call(copy, grid=(3,), in_specs=[m.pl.BlockSpec((4,), lambda i: 1.5)])(X)),
    ("constants", lambda m: m.call(copy, grid=(3,), in_specs=[
        m.pl.BlockSpec((4,), lambda i: i + m.jnp.asarray([1, 2])[0])])(X)),
    ("few specs", lambda m: m.call(copy, in_specs=[])(X)),
    ("many specs", lambda m: m.call(copy, in_specs=[m.pl.BlockSpec((12,))] * 2)(X)),
    ("one spec", lambda m: m.call(copy, in_specs=m.pl.BlockSpec((12,)))(X)),
    ("specs of results", lambda m: m.call(copy, out_specs=[m.pl.BlockSpec((12,))] * 2)(X)),
    ("bounded", lambda m: m.call(copy, grid=(3,), in_specs=[m.pl.BlockSpec((m.pl.BoundedSlice(4),), lambda i: i)])(X)),
    ("returns", lambda m: m.call(lambda x_ref, o_ref: x_ref[...])(X)),
    ("captures", lambda m: m.call(lambda o_ref, x=m.jnp.ones(12): o_ref.__setitem__(..., x))()),
    ("arguments", lambda m: m.call(lambda x_ref: None)(X)),
    ("callable", lambda m: m.call(3)(X)),
    ("float grid", lambda m: m.call(copy, grid=(1.5,))(X)),
    ("two grids", lambda m: m.call(copy, grid=(3,), grid_spec=m.pl.GridSpec(grid=(3,)))(X)),
    ("two specs", lambda m: m.call(copy, in_specs=[None], grid_spec=m.pl.GridSpec(grid=(3,)))(X)),
    ("operand aliased", lambda m: m.call(copy, input_output_aliases={3: 0})(X)),
    ("result aliased", lambda m: m.call(copy, input_output_aliases={0: 4})(X)),
    ("aliased type", lambda m: m.call(nothing, dtype="int32", input_output_aliases={0: 0})(X)),
    ("out_shape", lambda m: m.pl.pallas_call(copy, (12,), interpret=m.interpret)(X)),
    ("shapes", lambda m: m.call(copy, (11,))(X)),
    ("dtypes", lambda m: m.call(copy, dtype="int32")(X)),
    ("axis", lambda m: m.call(lambda o_ref: o_ref.__setitem__(0, m.pl.program_id(1)), dtype="int32", grid=(3,))()),
    ("float axis", lambda m: m.call(lambda o_ref: o_ref.__setitem__(0, m.pl.program_id(0.0)), dtype="int32",
                                    grid=(3,))()),
    ("outside", lambda m: m.pl.program_id(0)),
    ("operand", lambda m: m.call(copy)("a")),
]


@pytest.mark.parametrize("program", [p for _, p in SPEC], ids=[name for name, _ in SPEC])
def test_errors(program):
    same_error(program)
