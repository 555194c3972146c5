"""What kernels do: loads and stores under masks, scopes, loops, copies, semaphores, arithmetic, prints."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import checkify
from styrax.experimental import pallas as pl

from .both import ORACLE, OURS, same, same_error

X = np.arange(12, dtype="float32")


def run(kernel, *operands, shape=(10,), dtype="float32", **options):
    """A kernel whose first argument is the library, in both."""
    def program(m):
        kwargs = {k: v(m) if callable(v) else v for k, v in options.items()}
        return m.call(lambda *refs: kernel(m, *refs), shape, dtype, **kwargs)(*operands)

    same(program)


@pytest.mark.parametrize("shape, index", [
    ((10,), lambda m, i: (m.pl.ds(i * 4, 4),)),
    ((3, 10), lambda m, i: (slice(None), m.pl.ds(i * 4, 4))),
    ((10,), lambda m, i: (i * 4 + m.jnp.arange(4),)),
], ids=["slices", "rows", "integers"])
def test_masks(shape, index):
    def kernel(m, x_ref, o_ref):
        i = m.pl.program_id(0)
        inside = i * 4 + m.jnp.arange(4) < 10
        inside = inside if len(shape) == 1 else inside[None]
        value = m.triton.load(x_ref.at[index(m, i)], mask=inside, other=-1.0)
        m.triton.store(o_ref.at[index(m, i)], value + 1, mask=inside)

    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    run(kernel, x, shape=shape, grid=(3,))


def test_other_values():
    def kernel(m, x_ref, o_ref):
        i = m.pl.program_id(0)
        o_ref[...] = m.triton.load(x_ref.at[m.pl.ds(i * 4, 4)], mask=i * 4 + m.jnp.arange(4) < 10, other=7)[None]

    run(kernel, X[:10], shape=(3, 4), grid=(3,), out_specs=lambda m: m.pl.BlockSpec((1, 4), lambda i: (i, 0)),
        in_specs=lambda m: [m.pl.BlockSpec((10,), lambda i: 0)])


def test_masked_stores_leave_alone_what_an_index_names_twice():
    def kernel(o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        index = jnp.arange(3) // 2 * 2
        OURS.triton.store(o_ref.at[index], jnp.arange(3.0) + 1, mask=jnp.arange(3) != 1)

    np.testing.assert_array_equal(OURS.call(kernel, (4,))(), [1, 0, 3, 0])


def test_slices_with_traced_starts_without_masks():
    def kernel(m, x_ref, o_ref):
        i = m.pl.program_id(0)
        o_ref[m.pl.ds(i * 4, 4)] = x_ref[m.pl.ds(i * 4, 4)]

    run(kernel, X[:10], grid=(3,))


@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_updates(name):
    def kernel(m, x_ref, o_ref):
        o_ref[...] = x_ref[...]
        old = getattr(m.triton, f"atomic_{name}")(o_ref, (m.pl.ds(0, 3),), m.jnp.ones(3))
        o_ref[m.pl.ds(3, 3)] = old

    run(kernel, X[:10])


@pytest.mark.parametrize("name, wanted", [("and", X.astype(int) & 6), ("or", X.astype(int) | 6),
                                          ("xor", X.astype(int) ^ 6), ("xchg", np.full(12, 6))])
def test_updates_that_jax_does_not_interpret(name, wanted):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        getattr(OURS.triton, f"atomic_{name}")(o_ref, (pl.ds(0, 12),), jnp.full(12, 6))

    np.testing.assert_array_equal(OURS.call(kernel, dtype="int32")(X.astype("int32")), wanted)


@pytest.mark.parametrize("name, wanted", [("add", [0, 2, 3, 3]), ("max", [0, 1, 2, 3]), ("xchg", [0, 1, 1, 3])])
def test_updates_under_masks(name, wanted):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        getattr(OURS.triton, f"atomic_{name}")(o_ref, (pl.ds(0, 3),), jnp.ones(3), mask=jnp.arange(3) > 0)

    np.testing.assert_array_equal(OURS.call(kernel, (4,))(X[:4]), wanted)


def test_an_element_that_is_added_to_twice():
    def kernel(o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        OURS.triton.atomic_add(o_ref, (jnp.arange(3) // 2,), jnp.ones(3))

    np.testing.assert_array_equal(OURS.call(kernel, (3,))(), [2, 1, 0])


@pytest.mark.parametrize("held", [0, 1])
def test_compare_and_swap(held):
    def kernel(m, x_ref, o_ref):
        o_ref[...] = x_ref[...]
        m.triton.atomic_cas(o_ref, 0, 5)

    run(kernel, np.int32(held), shape=(), dtype="int32")


def test_scopes():
    def kernel(m, x_ref, o_ref):
        def scope(a_ref, *, b_ref):
            a_ref[...] = x_ref[...] * 2
            b_ref[...] = a_ref[...] + 1
            o_ref[...] = b_ref[...]
            return m.jnp.float32(3)

        o_ref[0] = m.pl.run_scoped(scope, m.tpu.VMEM((10,), m.jnp.float32), b_ref=m.tpu.VMEM((10,), m.jnp.float32))

        @m.pl.with_scoped(m.tpu.VMEM((2,), m.jnp.float32))
        def decorated(at, c_ref):
            c_ref[...] = x_ref[m.pl.ds(0, 2)]
            o_ref[m.pl.ds(at, 2)] = c_ref[...]

        decorated(4)
        d_ref = m.pl.empty_ref_like(m.tpu.VMEM((1,), m.jnp.float32))
        d_ref[0] = 9.0
        o_ref[8] = d_ref[0]

    run(kernel, X[:10])


def test_scopes_in_loops():
    def kernel(m, x_ref, o_ref):
        @m.pl.loop(0, 10)
        def _(i):
            def scope(a_ref):
                a_ref[0] = x_ref[i] + i
                o_ref[i] = a_ref[0]

            m.pl.run_scoped(scope, m.tpu.SMEM((1,), m.jnp.float32))

    run(kernel, X[:10])


def test_run_state():
    def body(refs):
        refs[0][...] = refs[1][...] + 1

    same(lambda m: m.pl.run_state(body)((X, X * 2)))


@pytest.mark.parametrize("step", [1, 3, 5])
def test_loops(step):
    def kernel(m, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)

        @m.pl.loop(1, 10, step=step)
        def _(i):
            o_ref[i] = 1.0

        @m.pl.loop(0, m.pl.num_programs(0), init_carry=m.jnp.float32(2))
        def total(i, carry):
            return carry + 5

        o_ref[0] = total

    run(kernel, grid=(4,))


def test_when():
    def kernel(m, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)
        m.pl.when(True)(lambda: o_ref.__setitem__(0, 1.0))
        m.pl.when(False)(lambda: o_ref.__setitem__(1, 1.0))
        m.pl.when(m.pl.program_id(0) > 1)(lambda: o_ref.__setitem__(2, 1.0))
        m.pl.when(m.pl.program_id(0) < 1)(lambda: o_ref.__setitem__(3, 1.0))

    run(kernel, grid=(3,))


def test_copies():
    def kernel(m, x_ref, o_ref, one, two):
        m.tpu.sync_copy(x_ref, o_ref)
        later = m.tpu.make_async_copy(x_ref.at[m.pl.ds(0, 2)], o_ref.at[m.pl.ds(2, 2)], one)
        later.start()
        later.wait()
        m.tpu.async_copy(x_ref.at[m.pl.ds(0, 3)], o_ref.at[m.pl.ds(5, 3)], two.at[1]).wait()

    run(kernel, X[:10], scratch_shapes=lambda m: [m.tpu.SemaphoreType.DMA, m.tpu.SemaphoreType.DMA((2,))])


def test_semaphores():
    def kernel(m, o_ref, counter):
        m.pl.semaphore_signal(counter, 3)
        o_ref[0] = m.pl.semaphore_read(counter)
        m.pl.semaphore_wait(counter, 2)
        o_ref[1] = m.pl.semaphore_read(counter)

    run(kernel, shape=(2,), dtype="int32", scratch_shapes=lambda m: [m.tpu.SemaphoreType.REGULAR])


@pytest.mark.parametrize("options", [{}, {"stride": 1, "stride_axis": 1}, {"stride": 0, "stride_axis": 1}])
def test_roll(options):
    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.tpu.roll(x_ref[...], 1, 0, **options)

    run(kernel, np.arange(16, dtype="float32").reshape(4, 4), shape=(4, 4))


@pytest.mark.parametrize("old, new", [
    ("int32", "int8"), ("int32", "bfloat16"), ("int8", "int32"), ("int32", "float32"),
])
def test_bitcast(old, new):
    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.tpu.bitcast(x_ref[...], m.jnp.dtype(new))

    x = (np.arange(32).reshape(8, 4) * 3 + 1).astype(old)
    rows = 8 * ORACLE.jnp.dtype(old).itemsize // ORACLE.jnp.dtype(new).itemsize
    run(kernel, x, shape=(rows, 4), dtype=new)


@pytest.mark.parametrize("equation, sizes", [("a(bc)->(ba)c", {"b": 2}), ("ab->ba", {}), ("a(bc)->abc", {"c": 3})])
def test_einshape(equation, sizes):
    x = np.arange(24, dtype="float32").reshape(4, 6)
    shape = ORACLE.tpu.einshape(equation, x, **sizes).shape

    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.tpu.einshape(equation, x_ref[...], **sizes)

    run(kernel, x, shape=shape)


@pytest.mark.parametrize("narrow, count", [("bfloat16", 2), ("int8", 4)])
def test_packing(narrow, count):
    tpu = OURS.tpu
    whole = jnp.float32 if narrow == "bfloat16" else jnp.int32
    xs = [jnp.arange(4).astype(whole) - i for i in range(count)]
    packed = tpu.pack_elementwise(xs, packed_dtype=narrow)
    assert packed.dtype == jnp.int32
    for i, x in enumerate(xs):
        np.testing.assert_array_equal(
            tpu.unpack_elementwise(packed, index=i, packed_dtype=narrow, unpacked_dtype=whole), x)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_dot(turned):
    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.triton.dot(x_ref[...], x_ref[...], *turned)

    run(kernel, np.arange(16, dtype="float32").reshape(4, 4), shape=(4, 4))


def test_arithmetic():
    def program(m):
        p = m.pl
        return [*(p.cdiv(a, b) for a, b in ((7, 2), (8, 2), (-7, 2), (0, 3))), p.align_to(5, 4), p.align_to(8, 4),
                *(p.next_power_of_2(n) for n in (0, 1, 2, 17)), *p.strides_from_shape((2, 3, 4)),
                p.cdiv(m.jnp.int32(7), 2), m.jax.jit(lambda n: p.align_to(n, 8))(9)]

    same(program)
    assert pl.strides_from_shape(()) == ORACLE.pl.strides_from_shape(())
    same_error(lambda m: m.pl.next_power_of_2(-1))
    assert [repr(f(pl)) for f in SLICES] == [repr(f(ORACLE.pl)) for f in SLICES]


SLICES = [lambda p: p.ds(3), lambda p: p.ds(2, 3), lambda p: p.dslice(2, 3, 2), lambda p: p.Slice(1, 2)]


def test_reciprocal():
    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.pl.reciprocal(x_ref[...] + 1) + m.pl.reciprocal(m.pl.broadcast_to(x_ref[1], (10,)))

    run(kernel, X[:10])


def test_hints():
    def kernel(m, x_ref, o_ref):
        o_ref[...] = m.triton.max_contiguous(m.pl.multiple_of(x_ref[...], 2), 4)

    run(kernel, X[:10])


@pytest.mark.parametrize("name, function", [
    ("product", lambda m: lambda x, y: m.jnp.sin(x @ y.T)),
    ("sum", lambda m: lambda x, y: (m.jnp.exp(x) + y).sum()),
    ("power", lambda m: lambda x, y: x**3 / y - m.jnp.sqrt(x)),
    ("activation", lambda m: lambda x, y: m.jax.nn.silu(x) * y),
    ("loop", lambda m: lambda x, y: m.lax.fori_loop(0, 3, lambda i, c: c + x, y)),
])
def test_estimates(name, function):
    wanted, found = (m.pl.estimate_cost(function(m), np.ones((4, 5), "float32"), np.ones((4, 5), "float32"))
                     for m in (ORACLE, OURS))
    assert repr(found) == repr(wanted)


def test_prints(capfd):
    def kernel(x_ref, o_ref):
        pl.debug_print("at {}: {}", pl.program_id(0), x_ref[0])
        o_ref[...] = x_ref[...]

    OURS.blocks(kernel)(X)
    jax.effects_barrier()
    assert sorted(capfd.readouterr().out.split("\n")) == ["", "at 0: 0.0", "at 1: 4.0", "at 2: 8.0"]


@pytest.mark.parametrize("on", [False, True])
def test_checks(on):
    def kernel(x_ref, o_ref):
        pl.debug_check(x_ref[0] < 6, "too much")
        o_ref[...] = x_ref[...]

    with pl.enable_debug_checks(on):
        error, _ = checkify.checkify(OURS.blocks(kernel))(X)
    assert ("too much" in (error.get() or "")) == on
