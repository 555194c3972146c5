"""Library functions on symbolic sizes: shapes as JAX's export finds them, values as on plain sizes."""

from __future__ import annotations

import re

import jax as oracle
import jax.numpy as oracle_numpy
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import export

from .programs import PROGRAMS, SIZES, meaning, specifications

IDS = [source.removeprefix("lambda ")[:60] for source, _ in PROGRAMS]
OTHER_SIZES = {"a": 7, "b": 6, "c": 2, "h": 6, "w": 5, "t": 2}


def exported(library, numpy, source, shapes):
    make = library.export
    scope = make.SymbolicScope()
    specs = [library.ShapeDtypeStruct(make.symbolic_shape(shape, scope=scope), dtype)
             for shape, dtype in specifications(shapes)]
    return make.export(library.jit(meaning(source, library, numpy)))(*specs)


def arguments(shapes, sizes):
    rng = np.random.default_rng(0)
    for shape, dtype in specifications(shapes):
        concrete = tuple(eval(d, dict(sizes)) for d in shape.split(",") if d)
        if dtype == "int32":
            yield jnp.asarray(rng.integers(0, 3, concrete).astype(np.int32))
        else:
            yield jnp.asarray((2 * rng.standard_normal(concrete)).astype(np.float32))


@pytest.mark.parametrize(("source", "shapes"), PROGRAMS, ids=IDS)
def test_shapes_and_values(source, shapes):
    ours = exported(jax, jnp, source, shapes)
    theirs = exported(oracle, oracle_numpy, source, shapes)
    assert [a.dtype for a in ours.out_avals] == [a.dtype for a in theirs.out_avals]
    assert [str(a.shape) for a in ours.out_avals] == [str(a.shape) for a in theirs.out_avals]
    assert [a.weak_type for a in ours.out_avals] == [a.weak_type for a in theirs.out_avals]
    loaded = export.deserialize(ours.serialize())
    for sizes in (SIZES, OTHER_SIZES):
        args = list(arguments(shapes, sizes))
        wanted = jax.tree.leaves(meaning(source, jax, jnp)(*args))
        for program in (ours, loaded):
            found = jax.tree.leaves(program.call(*args))
            for x, y in zip(found, wanted, strict=True):
                assert x.shape == np.shape(y)
                np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)


REFUSALS = [
    ("lambda x: jnp.arange(0, x.shape[0], .5)", "a", "In arange with non-constant arguments"),
    ("lambda x: jnp.linspace(0, 1, x.shape[0])", "a", "Symbolic dimension comparison 'a' > '1' is inconclusive"),
    ("lambda x: jnp.squeeze(x)", "a,1", "jnp.squeeze with axis=None is not supported"),
    ("lambda x: jnp.pad(x, 1, mode='reflect')", "a", "larger or equal than the padding length"),
    ("lambda x: jnp.pad(x, ((1, 3),), mode='symmetric')", "a+1", "(= 3). Error while handling right padding on axis 0"),
    ("lambda x: jnp.repeat(x, x.shape[0], total_repeat_length=4)", "a", "jnp.repeat with a non-constant `repeats`"),
    ("lambda x: jnp.fft.rfft(x)", "a", "Shape polymorphism for FFT with non-constant fft_length is not implemented"),
    ("lambda x: jnp.searchsorted(x, 1.)", "a", "used in a context that requires a constant"),
    ("lambda x: jax.lax.associative_scan(jnp.add, x)", "a", "associative scan over axis of non-constant size: a"),
    ("lambda x: jax.random.permutation(jax.random.key(0), x)", "a", "shape polymorphism for `permutation`"),
    ("lambda x: x.reshape(-1, 2)", "a", "Cannot divide evenly the sizes of shapes (a,) and (-1, 2). The remainder "
                                        "mod(a, - 2) should be 0"),
    ("lambda x: jax.lax.slice_in_dim(x, 1, x.shape[0] - 1)", "a", "comparison 'a - 1' >= '1' is inconclusive"),
]


@pytest.mark.parametrize(("source", "shapes", "words"), REFUSALS)
def test_refusals(source, shapes, words):
    kinds = []
    for library, numpy in ((jax, jnp), (oracle, oracle_numpy)):
        with pytest.raises(Exception, match=re.escape(words)) as info:
            exported(library, numpy, source, shapes)
        kinds.append(info.type.__name__)
    assert kinds[0] == kinds[1]


def test_sizes_that_do_not_fit_a_reshape_are_found_at_the_call():
    program = export.export(jax.jit(lambda x: x.reshape(x.shape[0] // 2, 2)))(
        jax.ShapeDtypeStruct(export.symbolic_shape("a"), np.float32))
    assert program.call(jnp.arange(4.)).shape == (2, 2)
    with pytest.raises(TypeError, match="reshape"):
        program.call(jnp.arange(5.))
