"""JAX's FAQ: where data and computations are placed."""

from __future__ import annotations

from tests.documents.sessions import play
from tests.documents.test_faq_jit import IMPORTS


def test_uncommitted_data_on_the_default_device():
    _, ran = play(IMPORTS, "print(jnp.ones(3).device)", """
x = jnp.ones(3)
print(x.devices(), x.committed, (x + 1).committed, jit(lambda x: x * 2)(x).committed)
print(jax.devices()[0], jax.default_backend(), jax.device_count(), jax.local_device_count())
print([jax.devices()[0].platform, jax.devices()[0].id, jax.devices()[0].process_index])
print(x.sharding)
""", exact=True)
    assert ran[1].output == "cpu:0\n"
    assert ran[2].output.startswith("{CpuDevice(id=0)} False False False\n")


def test_committed_data():
    play(IMPORTS + "from jax import device_put", """
x = device_put(1, jax.devices()[0])
print(x.device, x.committed, (x + 1).committed, (1 + x).committed, jit(lambda x: x * 2)(x).committed)
y = jnp.arange(3)
print((x + y).committed, jit(lambda x, y: x + y)(y, x).committed, y.committed)
""", """
# Without a device, what is on a device stays as it is, and NumPy's values are placed uncommitted.
print(device_put(x).committed, device_put(y).committed, device_put(np.ones(3)).committed, device_put(2.).committed)
print(device_put({'a': x, 'b': np.zeros(2)}))
""", exact=True)


def test_default_device():
    play(IMPORTS, """
with jax.default_device(jax.devices("cpu")[0]):
  z = jnp.ones(3)
print(z.device, z.committed)
""", exact=True)


def test_moved_to_the_host():
    play(IMPORTS, "print(jax.device_get({'a': jnp.arange(3), 'b': 2.5}))", exact=True)
