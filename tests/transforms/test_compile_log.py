"""What `log_compiles` and `explain_cache_misses` tell, under the names of JAX's loggers."""

import logging

import pytest

import styrax as sx
from styrax import numpy as jnp


@pytest.fixture
def messages(caplog):
    def told(call):
        caplog.clear()
        with sx.explain_cache_misses(True):
            call()
        return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]

    return told


def test_what_is_compiled_is_logged(caplog):
    f = sx.jit(lambda x: x + 1)
    with sx.log_compiles(True):
        f(1)
        first = [(r.name, r.levelno, r.getMessage()) for r in caplog.records]
        f(2)
    assert len(caplog.records) == len(first) == 3
    assert [level for _, level, _ in first] == [logging.WARNING] * 3
    assert first[0][::2][1].startswith("Finished tracing <lambda> for jit in ")
    assert first[1][2].startswith("Compiling jit(<lambda>) with global shapes and types (ShapedArray(int32[]")
    assert first[2][2].startswith("Finished XLA compilation of jit(<lambda>) in ")
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        f(1.0)
    assert {r.levelno for r in caplog.records} == {logging.DEBUG} and len(caplog.records) == 3


def test_failed_traces_are_not_said_to_be_finished(caplog):
    def fails(x):
        raise ValueError("no")

    with sx.log_compiles(True), pytest.raises(ValueError, match="no"):
        sx.jit(fails)(1)
    assert not caplog.records


def test_misses_are_explained(messages):
    @sx.jit
    def f(x, y=0):
        return x

    (first,) = messages(lambda: f(1))
    assert first.startswith(f"TRACING CACHE MISS at {__file__}:") and "never seen function" in first
    assert messages(lambda: f(2)) == []
    (text,) = messages(lambda: f(jnp.float32(1)))
    assert "different input types" in text and "at x, now f32[]{weak_type=False} and before i32[]" in text
    assert "#weak-types" in text
    (text,) = messages(lambda: f((1, 2)))
    assert "different input pytree" in text and "<class 'tuple'>" in text
    with sx.default_matmul_precision("high"):
        (text,) = messages(lambda: f(1))
    assert "jax_default_matmul_precision differs: now high and before None" in text


def test_static_arguments_and_functions_defined_again_are_explained(messages):
    f = sx.jit(lambda x, mode: x, static_argnames="mode")
    f(1, mode="a")
    (text,) = messages(lambda: f(1, mode="b"))
    assert "different value of static args" in text and "mode: 'b'" in text and "mode: 'a'" in text
    texts = messages(lambda: [sx.jit(lambda x: x)(1) for _ in range(2)])
    assert "another function defined on the same line" in texts[1] and "another" not in texts[0]
    assert messages(lambda: jnp.cumsum(jnp.arange(3.0).reshape(1, 3, 1))) == []


def test_listeners_hear_what_is_traced_and_compiled():
    """As often as under JAX, which also tells of a form between that there is none of here."""
    def heard(package):
        events = []

        def listener(event, seconds, **details):
            assert seconds >= 0
            if "mlir" not in event:
                events.append((event, details))

        x = package.numpy.ones(3)
        package.monitoring.register_event_duration_secs_listener(listener)
        f = package.jit(lambda x: x @ x)
        f(x)
        f(x)
        package.jit(package.vmap(lambda x: x * 2))(x)
        package.jit(package.grad(lambda x: (x * x).sum())).lower(x).compile()
        package.monitoring.unregister_event_duration_listener(listener)
        f(2 * x[:2])
        return events

    import jax

    expected = [(event, details) for event, details in heard(jax) if "lambda" in details["fun_name"]]
    assert heard(sx) == expected and len(expected) == 6
