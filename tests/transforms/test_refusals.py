"""What is refused is refused as in JAX: the class of the exception, and the words that programs look for."""

import enum

import numpy as np
import pytest


class Colour(enum.IntEnum):
    RED = 3


MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


def guarded(sx, guard, first, then):
    f = sx.jit(lambda x: x)
    f(first)
    with getattr(sx, guard)():
        return f(then)


def deleted_tracer(sx):
    kept = []
    sx.jit(lambda x: kept.append(x + 1))(1)
    return kept[0] + 1


CASES = {
    "mapped result": (lambda sx: sx.vmap(lambda x: x, out_axes=None, axis_name="foo")(sx.numpy.ones(2)),
                      r"vmap has mapped output \(axis_name=foo\) but out_axes is None"),
    "axes that are no prefix": (lambda sx: sx.vmap(lambda x: x, in_axes=([0],))(sx.numpy.ones(2)),
                                r"(?s)vmap in_axes specification must be .* Mismatch details \(1 found\):"),
    "a truth value as axis": (lambda sx: sx.vmap(lambda x: x, in_axes=False)(sx.numpy.ones(2)),
                              "in_axes must be an int, None, or a tuple"),
    "an array as axis": (lambda sx: sx.vmap(lambda x: x, out_axes=(sx.numpy.ones(2),))(sx.numpy.ones(2)),
                         "out_axes must be an int, None, or"),
    "sizes by keyword": (lambda sx: sx.vmap(lambda x, y: x)(sx.numpy.ones(2), y={"a": sx.numpy.ones(3)}),
                         r"axis 0 of kwargs\['y'\]\['a'\] of type float32\[3\]"),
    "devices that are no prefix": (lambda sx: sx.device_put({"a": 1, "b": 2}, {"a": [None], "b": (None,)}),
                                   r"(?s)device_put device specification must be .* Mismatch details \(2 found\):"),
    "no device": (lambda sx: sx.device_put(1, "cpu"), "only accepts `None`.*Received invalid value: cpu"),
    "tuple and list": (lambda sx: sx.jvp(lambda x: x, (1.0,), [1.0]), "must have the same tree structure"),
    "traced again": (lambda sx: guarded(sx, "no_tracing", 1, 1.0), "re-tracing function .* 'no_tracing' is set"),
    "executed": (lambda sx: guarded(sx, "no_execution", 1, 1), "the no_execution config option is set"),
    "float0": (lambda sx: np.zeros((), sx.dtypes.float0) + sx.numpy.ones(()), "float0s do not support any operations"),
    "float0 in lax": (lambda sx: sx.lax.add(np.zeros((), sx.dtypes.float0), 1.0), "Called add with a float0"),
    "masked": (lambda sx: sx.jit(lambda x: x)(MASKED), "numpy masked arrays are not supported"),
    "masked on its way": (lambda sx: sx.device_put(MASKED), "numpy masked arrays are not supported"),
    "sharding of a tracer": (lambda sx: sx.jit(lambda x: x.sharding)(sx.numpy.ones(2)), "use `jax.typeof"),
    "escaped": (deleted_tracer, "(?s)was created on line.* global state|global state.*was created on line"),
    "compiler option": (lambda sx: sx.jit(lambda x: x, compiler_options={"xxx": 1})(1), "No such compile option"),
    "option of a nested program": (
        lambda sx: sx.grad(sx.jit(lambda x: x, compiler_options={"optimization_level": 1}))(1.0),
        r"can only be passed to top-level `jax.jit`. Got compiler_options=\{'optimization_level': 1\} specified on a "
        "nested jit with name: <lambda> and source info: "),
    "option later": (lambda sx: sx.jit(lambda x: x).lower(1).compile({"xxx": 1}), "No such compile option: 'xxx'"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_as_in_jax(name):
    import jax

    import styrax

    case, words = CASES[name]
    with pytest.raises(Exception, match=words) as theirs:
        case(jax)
    with pytest.raises(Exception, match=words) as ours:
        case(styrax)
    assert type(ours.value).__name__ == type(theirs.value).__name__


def test_what_is_no_reason_to_refuse():
    import styrax as sx

    np.testing.assert_array_equal(sx.numpy.array(MASKED), [1, 2])
    assert int(sx.jit(lambda x: x + Colour.RED)(1)) == 4 and int(sx.numpy.add(1, Colour.RED)) == 4
    assert int(guarded(sx, "no_tracing", 1, 2)) == 2
    assert int(sx.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": True})(1)) == 1
    _, pull = sx.vjp(lambda x, y: x * y, 2.0, 3.0)
    from styrax.transforms.pullbacks import DidntWant, DontWant

    assert sx.jit(lambda: pull.with_refs(DontWant(), None)(1.0))() == (DidntWant(), 2.0)
