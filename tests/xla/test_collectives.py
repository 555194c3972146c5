"""Collectives in StableHLO: JAX's operations between the devices of a mesh; outside of one, names are unbound."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

import styrax
from styrax.core.programs.jaxpr import eval_jaxpr
from styrax.errors import JaxprTypeError
from styrax.xla.stablehlo import module, module_text
from tests import xla_cpu
from tests.xla import structure

MESH = {"j": 2, "i": 4}
BLOCK = np.ones((2, 8), np.float32)  # what a device has

CASES = {
    "psum": lambda lax: lambda x: lax.psum(x, "i"),
    "psum of groups": lambda lax: lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]),
    "pmax": lambda lax: lambda x: lax.pmax(x, ("i", "j")),
    "pmin": lambda lax: lambda x: lax.pmin(x, "j"),
    "axis_index": lambda lax: lambda x: lax.axis_index("i"),
    "outer axis_index": lambda lax: lambda x: lax.axis_index("j"),
    "ppermute": lambda lax: lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]),
    "ppermute of rows": lambda lax: lambda x: lax.ppermute(x, "j", [(0, 1)]),
    "all_gather": lambda lax: lambda x: lax.all_gather(x, "i", axis=1),
    "all_gather of both": lambda lax: lambda x: lax.all_gather(x, ("i", "j"), tiled=True),
    "all_gather of groups": lambda lax: lambda x: lax.all_gather(
        x, "i", axis_index_groups=[[0, 1], [2, 3]], tiled=True),
    "psum_scatter": lambda lax: lambda x: lax.psum_scatter(x[:, :4], "i", scatter_dimension=1),
    "psum_scatter in tiles": lambda lax: lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "all_to_all": lambda lax: lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "all_to_all of positions": lambda lax: lambda x: lax.all_to_all(x[:, :4], "i", 1, 0),
}
ATTRIBUTES = ("replica_groups", "source_target_pairs", "all_gather_dim", "scatter_dimension", "split_dimension",
              "concat_dimension", "split_count", "channel_handle", "use_global_device_ids")


def traced(f, axes=None):
    return styrax.make_jaxpr(f, axis_env=list((axes or MESH).items()))(BLOCK)


def essence(text):
    return [(op.name, op.operands, op.results, [op.attributes.get(name) for name in ATTRIBUTES])
            for op in structure.operations(text) if op.name not in structure.FORM]


@pytest.mark.parametrize("case", CASES)
def test_operations_are_those_of_jax(case):
    everywhere = PartitionSpec()
    f = jax.shard_map(CASES[case](jax.lax), mesh=AbstractMesh(tuple(MESH.values()), tuple(MESH)), in_specs=everywhere,
                      out_specs=everywhere, check_vma=False)
    wanted = jax.jit(f).trace(jax.ShapeDtypeStruct(BLOCK.shape, BLOCK.dtype)).lower(lowering_platforms=("cpu",))
    assert essence(module_text(traced(CASES[case](styrax.lax)), axes=MESH)) == essence(wanted.as_text())


def test_broadcasts():
    """JAX has them on GPUs alone. The first of a group sends."""
    (op,) = structure.operations(module_text(traced(lambda x: styrax.lax.pbroadcast(x, "i", 2)), axes=MESH))
    assert op.name == "stablehlo.collective_broadcast" and op.operands == op.results == ["tensor<2x8xf32>"]
    assert "[[2, 0, 1, 3], [6, 4, 5, 7]]" in op.attributes["replica_groups"]


@pytest.mark.parametrize("f", [
    lambda lax: lambda x: lax.psum(x * 2, "i"), lambda lax: lambda x: lax.all_gather(x, "i"),
    lambda lax: lambda x: lax.psum_scatter(x, "i", tiled=True),
    lambda lax: lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    lambda lax: lambda x: x + lax.axis_index("i"), lambda lax: lambda x: lax.ppermute(x, "i", [(0, 0)]),
])
def test_a_mesh_of_one_device(f):
    """XLA's client for CPUs runs it, with the results of a mapped axis of one element."""
    printed = module(traced(f(styrax.lax), {"i": 1}), axes={"i": 1})
    (out,) = xla_cpu.compile_text(printed.text()).execute_sharded([jax.device_put(BLOCK)]
                                                                  ).disassemble_into_single_device_arrays()
    np.testing.assert_array_equal(out[0], jax.vmap(f(jax.lax), axis_name="i")(BLOCK[None])[0])


@pytest.mark.parametrize("case", CASES)
def test_without_a_mesh(case):
    """As in JAX, a program that names an axis which nothing maps is refused, for whichever device it is."""
    closed = traced(styrax.jit(CASES[case](styrax.lax)))
    with pytest.raises(NameError, match="unbound axis name"):
        module_text(closed)
    with pytest.raises((NameError, JaxprTypeError), match="unbound axis name"):  # (tests check programs beforehand)
        styrax.jit(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x))(BLOCK)


def test_sizes_of_generic_programs():
    """A program for XLA has a size fixed; asked of all sizes, the answer is written down."""
    from styrax.core.types.dims import Recorder
    from styrax.lax.shaping.sizes import size_value

    size = Recorder([5]).symbol(0)
    (out,) = xla_cpu.run(styrax.make_jaxpr(lambda: size_value(size, np.float32))())
    assert out == 5 and out.dtype == np.float32
    assert size.recorder.guards
