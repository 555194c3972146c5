"""The public names of kernels' modules: those of JAX, with its parameters; what needs an accelerator says so."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import pallas as pl

MODULES = ["pallas", "pallas.tpu", "pallas.triton", "pallas.fuser", "pallas.ops", "pallas.tpu_sc"]


def parameters(value):
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("name", MODULES)
def test_names(name):
    oracle = importlib.import_module(f"jax.experimental.{name}")
    ours = importlib.import_module(f"styrax.experimental.{name}")
    public = [n for n in dir(oracle)
              if not n.startswith("_") and (n == "core" or not inspect.ismodule(getattr(oracle, n)))]
    assert [n for n in public if not hasattr(ours, n)] == []
    for n in public:
        theirs, mine = getattr(oracle, n), getattr(ours, n)
        if inspect.isfunction(theirs):
            assert parameters(mine) == parameters(theirs), n


@pytest.mark.parametrize("name", [*MODULES, "pallas.mosaic_gpu"])
def test_each_name_is_there(name):
    module = importlib.import_module(f"styrax.experimental.{name}")
    for n in module.__all__ if hasattr(module, "__all__") else dir(module):
        getattr(module, n)


@pytest.mark.parametrize("module, name, arguments", [
    ("pallas", "delay", (3,)), ("pallas", "get_global", (None,)), ("pallas.tpu", "prng_seed", (0,)),
    ("pallas.tpu", "get_barrier_semaphore", ()), ("pallas.triton", "elementwise_inline_asm", ("tanh",)),
    ("pallas.mosaic_gpu", "wgmma_wait", (0,)), ("pallas.mosaic_gpu", "barrier_wait", (None,)),
    ("pallas.fuser", "fuse", ()), ("pallas.tpu_sc", "subcore_barrier", ()), ("pallas.fuser", "custom_fusion", (len,)),
])
def test_what_needs_an_accelerator(module, name, arguments):
    function = getattr(importlib.import_module(f"styrax.experimental.{module}"), name)
    with pytest.raises(NotImplementedError, match=f"`{name}` needs"):
        function(*arguments)

    def kernel(o_ref):
        function(*arguments)

    with pytest.raises(NotImplementedError, match=f"`{name}` needs"):
        pl.pallas_call(kernel, jax.ShapeDtypeStruct((1,), jnp.float32))()


def test_specs_are_plain_data():
    from styrax.experimental.pallas import mosaic_gpu, tpu, triton

    assert pl.BlockSpec((4,)) == pl.BlockSpec((4,))
    theirs = importlib.import_module("jax.experimental.pallas")
    for p in (lambda pl: pl.BlockSpec((4, None)), lambda pl: pl.GridSpec(grid=(2,)), lambda pl: pl.Element(3),
              lambda pl: [*pl.MemorySpace], lambda pl: pl.squeezed, lambda pl: pl.no_block_spec,
              lambda pl: [*pl.RevisitMode, *pl.DeviceIdType], lambda pl: pl.CostEstimate(1, 2, 3)):
        assert repr(p(pl)) == repr(p(theirs))
    assert tpu.CompilerParams(vmem_limit_bytes=3).replace(collective_id=1).vmem_limit_bytes == 3
    assert triton.CompilerParams(num_warps=4).num_stages is None
    assert mosaic_gpu.CompilerParams().max_concurrent_steps == 1
    assert (tpu.VMEM((3,), jnp.bfloat16).shape, tpu.VMEM((3,), jnp.bfloat16).dtype) == ((3,), jnp.bfloat16)
    assert pl.BlockSpec((4,), lambda i: i).replace(block_shape=(8,)).block_shape == (8,)
    assert pl.CostEstimate(1, 2, 3).to_json() == theirs.CostEstimate(1, 2, 3).to_json()
    with pytest.raises(ValueError, match="Unsupported TPU device kind"):
        tpu.get_tpu_info()


@pytest.mark.parametrize("index, shape, minor, width", [(i, (4, 6), minor, width) for i in (0, 5, 11, 12, 13, 23)
                                                       for minor, width in ((0, 2), (1, 4))])
def test_a_walk_through_a_plane(index, shape, minor, width):
    from styrax.experimental.pallas import mosaic_gpu

    walk, cells = [], shape[minor]
    for strip, start in enumerate(range(0, cells, width)):
        along = range(shape[1 - minor])
        for row in (along if strip % 2 == 0 else reversed(along)):
            for column in range(start, min(start + width, cells)):
                walk.append((column, row) if minor == 0 else (row, column))
    assert tuple(map(int, mosaic_gpu.planar_snake(jnp.int32(index), shape, minor, width))) == walk[index]


@pytest.mark.parametrize("bits, wanted", [(512, 64), (1024, 128), (256, 32), (128, 16), (100, None)])
def test_swizzles(bits, wanted):
    from styrax.experimental.pallas import mosaic_gpu

    if wanted is None:
        with pytest.raises(ValueError, match="No valid swizzle"):
            mosaic_gpu.find_swizzle(bits)
    else:
        assert mosaic_gpu.find_swizzle(bits) == wanted


def test_nothing_is_loaded_before_it_is_used():
    code = ("import sys, styrax.experimental, styrax.experimental.pallas\n"
            "assert not [m for m in sys.modules if m.startswith('styrax.experimental.pallas.')], sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
