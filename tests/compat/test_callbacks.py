"""Python functions called from programs, eager and compiled, and what transformations make of them."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.experimental import io_callback

X = np.arange(3, dtype=np.float32)
FLOATS = jax.ShapeDtypeStruct((3,), jnp.float32)


def sine(x):
    assert isinstance(x, jax.Array)
    return np.sin(x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_pure_values(wrap):
    np.testing.assert_allclose(wrap(lambda x: 2 * jax.pure_callback(sine, FLOATS, x) + 1)(X), 2 * np.sin(X) + 1,
                               rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "float32", "complex64"])
def test_dtypes_pass_through(wrap, dtype):
    for shape in ((), (2, 3), (0, 2)):
        x = jnp.ones(shape, dtype)
        out = wrap(lambda x: jax.pure_callback(lambda x: np.asarray(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(out), np.asarray(x))


def test_trees_and_keywords():
    def host(a, *, b):
        return {"sum": np.asarray(a["x"]) + np.asarray(b), "n": np.int32(7)}

    shapes = {"sum": FLOATS, "n": jax.ShapeDtypeStruct((), jnp.int32)}
    out = jax.jit(lambda x: jax.pure_callback(host, shapes, {"x": x}, b=x))(X)
    np.testing.assert_array_equal(out["sum"], X + X)
    assert int(out["n"]) == 7


def test_unused_pure_callbacks_do_not_run():
    seen = []
    jax.jit(lambda x: (jax.pure_callback(lambda x: (seen.append(1), np.sin(x))[1], FLOATS, x), x)[1])(X)
    assert not seen


@pytest.mark.parametrize(("method", "shapes"), [
    ("sequential", [(2,), (2,)]), ("sequential_unrolled", [(2,), (2,)]), ("expand_dims", [(3, 2), (1, 2)]),
    ("broadcast_all", [(3, 2), (3, 2)]), ("legacy_vectorized", [(3, 2), (2,)])])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_vmap_methods(method, shapes, wrap):
    seen = []

    def add(a, b):
        seen.append([a.shape, b.shape])
        return np.asarray(a) + np.asarray(b)

    f = jax.vmap(lambda a, b: jax.pure_callback(add, jax.ShapeDtypeStruct((2,), jnp.float32), a, b, vmap_method=method),
                 in_axes=(0, None))
    np.testing.assert_array_equal(wrap(f)(jnp.ones((3, 2)), jnp.arange(2.0)), 1 + np.arange(2.0) * np.ones((3, 2)))
    assert seen == [shapes] * (3 if "sequential" in method else 1)


def test_what_is_refused():
    f = lambda x: jax.pure_callback(sine, FLOATS, x)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(f)(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="must be on of"):
        jax.pure_callback(sine, FLOATS, X, vmap_method="other")
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        jax.grad(lambda x: f(x).sum())(X)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.jvp(lambda x: io_callback(sine, FLOATS, x), (X,), (X,))
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        jax.vmap(lambda x: io_callback(sine, FLOATS, x, ordered=True))(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="64-bit"):
        jax.pure_callback(sine, jax.ShapeDtypeStruct((3,), np.float64), X)
    with pytest.raises(TypeError, match="position 1"):
        jax.pure_callback(sine, FLOATS, X, "text")


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("host", "message"), [
    (lambda x: np.arange(4.0), r"Incorrect output shape for return value #0: Expected: \(3,\), Actual: \(4,\)"),
    (lambda x: np.arange(3), "Incorrect output dtype for return value #0: Expected: float32, Actual: int32"),
    (lambda x: None, "Expected: 1, Actual: 0"),
    (lambda x: 1 / 0, "ZeroDivisionError"),
])
def test_errors(wrap, host, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message) as caught:
        wrap(lambda x: jax.pure_callback(host, FLOATS, x))(X)
    assert caught.value.__cause__ is not None


def test_program_goes_on_after_an_error():
    def fail(x):
        raise RuntimeError("the third")

    f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: jax.pure_callback(fail, FLOATS, x), x))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="the third"):
            f(X)
    np.testing.assert_allclose(jax.jit(lambda x: jax.pure_callback(sine, FLOATS, x))(X), np.sin(X), rtol=1e-6)


def test_interrupts_pass():
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: io_callback(interrupt, None, x))(X)


def test_programs_inside_callbacks():
    inner = jax.jit(lambda x: jax.pure_callback(sine, FLOATS, x) * 2)
    out = jax.jit(lambda x: jax.pure_callback(lambda x: inner(x) + 1, FLOATS, x))(X)
    np.testing.assert_allclose(out, 2 * np.sin(X) + 1, rtol=1e-6)


def test_order_in_control_flow():
    seen = []

    def note(*xs):
        seen.append(tuple(float(x) for x in xs))

    @jax.jit
    def f(x):
        io_callback(note, None, x, ordered=True)

        def body(carry, i):
            io_callback(note, None, carry, i, ordered=True)
            lax.cond(i > 1, lambda: io_callback(note, None, -1.0, ordered=True),
                     lambda: io_callback(note, None, -2.0, ordered=True))
            return carry * 2, i

        x, _ = lax.scan(body, x, jnp.arange(3.0))
        x = lax.while_loop(lambda x: x < 20, lambda x: (io_callback(note, None, x, ordered=True), x * 2)[1], x)
        io_callback(note, None, x, ordered=True)
        return x

    assert float(f(1.0)) == 32
    jax.effects_barrier()
    assert seen == [(1,), (1, 0), (-2,), (2, 1), (-2,), (4, 2), (-1,), (8,), (16,), (32,)]


def test_while_condition_from_the_host():
    out = jax.jit(lambda: lax.while_loop(
        lambda i: jax.pure_callback(lambda i: np.bool_(i < 5), jax.ShapeDtypeStruct((), bool), i), lambda i: i + 1,
        0))()
    assert int(out) == 5


def test_io_callback_counts_each_element():
    seen = []
    jax.jit(jax.vmap(lambda x: io_callback(lambda x: seen.append(float(x)), None, x)))(X)
    assert sorted(seen) == [0, 1, 2]


def test_captured_state_is_per_function():
    for k in range(3):
        out = jax.jit(lambda x, k=k: jax.pure_callback(lambda x: np.asarray(x) + np.float32(k), FLOATS, x))(X)
        np.testing.assert_array_equal(out, X + k)


# -- debugging ----------------------------------------------------------------------------------------------


def printed(capsys, f, *args) -> list[str]:
    jax.block_until_ready(f(*args))
    jax.effects_barrier()
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_print_formats(wrap, capsys):
    def f(x):
        jax.debug.print("{} and {y:.1f} {{}} {name}", x, y=x[1], name="static")
        jax.debug.print("no values")
        jax.debug.print("{0} {0}", x[0])
        jax.debug.print("{}", {"a": x})
        jax.debug.print("x %d", 3, skip_format_check=True)
        return x

    assert printed(capsys, wrap(f), jnp.arange(3.0)) == [
        "[0. 1. 2.] and 1.0 {} static", "no values", "0.0 0.0", "{'a': Array([0., 1., 2.], dtype=float32)}", "x %d 3"]


def test_print_options_of_the_trace(capsys):
    with np.printoptions(precision=2):
        f = jax.jit(lambda x: jax.debug.print("{}", x)).trace(jnp.ones(1)).lower().compile()
    assert printed(capsys, f, jnp.ones(1) / 3) == ["[0.33]"]


def test_print_checks_its_format():
    for args, kwargs, error in ((("x", 1), {}, ValueError), (("{}",), {}, IndexError), (("{x}",), {"y": 1}, KeyError),
                                (("x",), {"y": 1}, ValueError), ((jnp.ones(1),), {}, TypeError)):
        with pytest.raises(error):
            jax.debug.print(*args, **kwargs)


def test_print_under_transformations(capsys):
    def f(x):
        jax.debug.print("x = {}", x)
        return jnp.sin(x).sum()

    assert printed(capsys, jax.grad(f), jnp.arange(2.0)) == ["x = [0. 1.]"]
    assert printed(capsys, jax.jit(jax.grad(f)), jnp.arange(2.0)) == ["x = [0. 1.]"]
    assert printed(capsys, jax.vmap(f), jnp.arange(2.0)) == ["x = 0.0", "x = 1.0"]
    assert printed(capsys, jax.jit(jax.vmap(jax.grad(f))), jnp.arange(2.0)) == ["x = 0.0", "x = 1.0"]


def test_print_in_loops(capsys):
    def body(c, x):
        jax.debug.print("{} {}", c, x, ordered=True)
        return c * x, c

    f = lambda c: lax.scan(body, c, jnp.arange(1.0, 3.0))[0]
    assert printed(capsys, jax.jit(f), 2.0) == ["2.0 1.0", "2.0 2.0"]
    assert printed(capsys, jax.grad(f), 2.0) == ["2.0 1.0", "2.0 2.0"]


def test_log(caplog):
    """The records come from the user's line, under the name that tools know."""
    def f(x):
        jax.debug.log("seen {}", x)

    with caplog.at_level(logging.INFO, logger="jax._src.debugging"):
        f(1.0)
        jax.jit(f)(2.0)
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("jax._src.debugging", "INFO", f"seen {x}") for x in (1.0, 2.0)]
    assert {(r.pathname, r.lineno) for r in caplog.records} == {(__file__, f.__code__.co_firstlineno + 1)}


def test_failures_are_logged(caplog):
    def fail(*_):
        raise KeyError("oops")

    shape = jax.ShapeDtypeStruct((), np.float32)
    calls = {"jax.debug.callback": lambda x: jax.debug.callback(fail, x),
             "jax.pure_callback": lambda x: jax.pure_callback(fail, shape, x),
             "jax.io_callback": lambda x: io_callback(fail, shape, x)}
    for api, call in calls.items():
        for f in (call, jax.jit(call)):
            caplog.clear()
            with pytest.raises(Exception, match="oops"):
                f(1.0)
                jax.effects_barrier()
            (record,) = caplog.records
            assert (record.levelname, record.getMessage()) == ("ERROR", f"{api} failed")
            assert record.name == ("jax._src.debugging" if "debug" in api else "jax._src.callback")
            assert record.exc_info[0] is KeyError


def test_debug_callback():
    seen = []
    jax.jit(lambda x: jax.debug.callback(lambda *a, **k: seen.append((a, k)), x, 1, s="text"))(jnp.ones(2))
    ((args, kwargs),) = seen
    np.testing.assert_array_equal(args[0], np.ones(2))
    assert kwargs == {"s": "text"}
    with pytest.raises(TypeError, match="must be callable"):
        jax.debug.callback("{}", 1)


def test_breakpoint():
    stdin, stdout = io.StringIO("p x\np y + 1\nu\nbt\np undefined\nc\n"), io.StringIO()

    def f(x):
        y = x * 2
        jax.debug.breakpoint(stdin=stdin, stdout=stdout)
        return y

    jax.jit(f)(jnp.arange(2.0))
    text = stdout.getvalue()
    assert "Array([0., 1.], dtype=float32)" in text
    assert "Array([1., 3.], dtype=float32)" in text
    assert "Traceback:" in text
    assert "NameError" in text


def test_breakpoint_among_variables_of_any_kind():
    stdin, stdout = io.StringIO("p x\np pair\nu\np sorted(around)\nc\n"), io.StringIO()
    around = {"number": 1.0}
    around["around"] = around  # contains itself
    nested = [1.0]
    nested.append(nested)

    def f(x):
        pair = {"a": x, "b": (x + 1, None)}
        unordered = {1: x, "a": x}
        jax.debug.breakpoint(stdin=stdin, stdout=stdout)
        return pair["a"] + len(unordered)

    jax.jit(f)(jnp.arange(2.0))
    text = stdout.getvalue()
    assert "Array([0., 1.], dtype=float32)" in text and "(Array([1., 2.], dtype=float32), None)" in text
    assert "['around', 'number']" in text


def test_inspect_sharding():
    seen = []
    jax.debug.inspect_array_sharding(jnp.ones(2), callback=seen.append)
    jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))(jnp.ones(2))
    assert [type(s).__name__ for s in seen] == ["SingleDeviceSharding", "GSPMDSharding"]


def test_effects_that_must_not_be_repeated_or_left_out_are_refused():
    seen = []

    def record(x):
        io_callback(lambda x: seen.append(int(x)), None, x)
        return x

    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-cond"):
        jax.vmap(lambda p: lax.cond(p, record, lambda x: x, 1))(jnp.array([True, False]))
    with pytest.raises(NotImplementedError, match="not supported in while_loop with batched predicate"):
        jax.vmap(lambda x: lax.while_loop(lambda i: i < 5, lambda i: record(i) + 1, x))(jnp.arange(2))
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `checkpoint`"):
        jax.grad(jax.checkpoint(lambda x: (io_callback(lambda: None, None), jnp.sin(x))[1]))(1.0)
    assert not seen
    jax.vmap(lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, record(c[1])), (0, x))[1])(jnp.arange(2))
    jax.effects_barrier()
    assert sorted(seen) == [0, 0, 1, 1]


def test_callbacks_under_pmap_are_called_for_the_device():
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    np.testing.assert_allclose(jax.pmap(lambda x: jax.pure_callback(sine, shape, x))(X[1:2]), np.sin(X[1:2]))
    seen = []
    jax.pmap(lambda x, y: io_callback(lambda x, y: seen.append((float(x), y.shape)), None, x, y["y"], ordered=True),
             in_axes=(0, {"y": 1}))(X[1:2], {"y": np.ones((2, 1))})
    jax.effects_barrier()
    assert seen == [(1.0, (2,))]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_keys_are_printed(wrap, capsys):
    wrap(lambda key: jax.debug.print("{} {}", key, 1))(jax.random.key(3))
    jax.effects_barrier()
    assert "[0 3]" in capsys.readouterr().out
