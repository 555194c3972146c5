"""Library functions on symbolic sizes: shapes as JAX's export finds them, values as on plain sizes."""

from __future__ import annotations

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
    loaded = export.deserialize(ours.serialize())
    for sizes in (SIZES, OTHER_SIZES):
        args = list(arguments(shapes, sizes))
        wanted = jax.tree.leaves(meaning(source, jax, jnp)(*args))
        for program in (ours, loaded):
            found = jax.tree.leaves(program.call(*args))
            for x, y in zip(found, wanted, strict=True):
                assert x.shape == np.shape(y)
                np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)
