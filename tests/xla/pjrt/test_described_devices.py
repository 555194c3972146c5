"""Programs compiled for GPUs that are not here."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays import backends
from styrax.experimental import topologies
from styrax.sharding import NamedSharding, SingleDeviceSharding
from styrax.sharding import PartitionSpec as P
from tests.lax.operations import CASES

from .compile_for_h100 import described, is_missing, refused

pytestmark = pytest.mark.skipif(bool(is_missing()), reason=is_missing())
TOGETHER = 60
SQUARE = (64, 64)


@pytest.fixture(autouse=True)
def registry_is_restored():
    apart = backends.apart
    yield
    backends.apart = apart


@pytest.fixture(scope="module")
def gpu():
    return described().devices[0]


def compiled(f, gpu, *shapes, dtype=np.float32):
    one = SingleDeviceSharding(gpu)
    return jax.jit(f).lower(*(jax.ShapeDtypeStruct(s, dtype, sharding=one) for s in shapes)).compile()


def binary(made):
    (data,) = made.runtime_executable().machine_code().values()
    return data


def test_what_is_described(gpu):
    assert (gpu.platform, gpu.device_kind, gpu.id, gpu.process_index) == ("gpu", "NVIDIA H100 80GB HBM3", 0, 0)
    assert [d.id for d in described(8).devices] == list(range(8))
    with pytest.raises(jax.errors.JaxRuntimeError, match="target_config"):
        topologies.get_topology_desc("h100", "cuda", target_config="nonsense")


@pytest.mark.parametrize("first", range(0, len(CASES), TOGETHER))
def test_the_table_of_operations(gpu, first):
    wrong = {str(case): str(error) for case, error in refused(CASES[first:first + TOGETHER], gpu.client) if error}
    assert not wrong


def test_code_is_the_gpu_s(gpu):
    made = compiled(lambda x: jnp.sin(x) @ x, gpu, SQUARE)
    assert b"\x7fELF" in binary(made)
    assert made.memory_analysis().argument_size_in_bytes == 4 * 64 * 64
    assert "module @jit_" in made.as_text()
    with pytest.raises(jax.errors.JaxRuntimeError, match="only described, and cannot be run here"):
        made(np.ones(SQUARE, np.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="arrays cannot be put on devices that are only described"):
        jax.device_put(1.0, gpu)


@pytest.mark.parametrize("name", ["qr", "svd", "eigh", "cholesky", "inv", "det"])
def test_factorisations(gpu, name):
    assert binary(compiled(getattr(jnp.linalg, name), gpu, SQUARE))


def test_programs(gpu):
    def steps(x):
        carry, rows = lax.scan(lambda c, r: (jnp.tanh(c + r), jnp.cumsum(r)), x[0], x)
        noise = jax.random.normal(jax.random.key(0), x.shape)
        return carry, jnp.sort(rows), lax.while_loop(lambda s: s.sum() < 9, lambda s: s + 1, x), jnp.fft.fft(x), noise

    assert binary(compiled(jax.grad(lambda x: sum(jnp.abs(y).sum() for y in steps(x)[:2])), gpu, SQUARE))
    assert binary(compiled(steps, gpu, SQUARE))


def test_eight_gpus():
    mesh = topologies.make_mesh(described(8), (4, 2), ("x", "y"))
    x = jax.ShapeDtypeStruct((512, 256), np.float32, sharding=NamedSharding(mesh, P("x", "y")))
    made = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(x).compile()
    assert made.output_shardings.spec == P("x")
    told = made.memory_analysis()
    assert told.argument_size_in_bytes == 4 * 512 * 256 // 8 and told.output_size_in_bytes == 4 * 512 * 512 // 4
    f = jax.jit(jax.shard_map(lambda v: lax.ppermute(lax.psum(v, "y"), "x", [(0, 1), (1, 0)]), mesh=mesh,
                              in_specs=P("x", "y"), out_specs=P("x")))
    assert b"\x7fELF" in binary(f.lower(x).compile())


def test_python_is_not_called_there(gpu):
    with pytest.raises(NotImplementedError, match="for devices at hand only"):
        compiled(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x), gpu, (3,))
