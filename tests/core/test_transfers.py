"""Guards of transfers to a device, and the memories that shardings name: as under JAX."""

from __future__ import annotations

import re

import jax as oracle
import jax.numpy as oracle_numpy
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

HOST = np.ones(2, np.float32)
COPIES = {
    "device_put": lambda j, n, x: j.device_put(HOST),
    "device_put of an array": lambda j, n, x: j.device_put(x, j.devices()[0]),
    "array": lambda j, n, x: n.array(HOST),
    "ones": lambda j, n, x: n.ones(3),
    "arange": lambda j, n, x: n.arange(3),
    "array and NumPy": lambda j, n, x: x + HOST,
    "array and number": lambda j, n, x: x + 1,
    "compiled": lambda j, n, x: j.jit(lambda y: y + 1)(HOST),
    "compiled with a number": lambda j, n, x: j.jit(lambda y: y + 1)(2.0),
    "key": lambda j, n, x: j.random.key(0),
    "to NumPy": lambda j, n, x: np.asarray(x),
    "device_get": lambda j, n, x: j.device_get(x),
    "arrays": lambda j, n, x: j.jit(lambda y: y * y)(x),
}


@pytest.mark.parametrize("level", ["allow", "log", "disallow", "log_explicit", "disallow_explicit"])
@pytest.mark.parametrize("copy", COPIES)
def test_guards(copy, level):
    for guard in ("transfer_guard", "transfer_guard_host_to_device"):
        outcomes = []
        for j, n in ((oracle, oracle_numpy), (jax, jnp)):
            x = n.ones(2)
            with getattr(j, guard)(level):
                try:
                    COPIES[copy](j, n, x)
                    outcomes.append(None)
                except Exception as error:
                    outcomes.append((type(error).__name__, re.sub("aval=.*", "", str(error))))
            COPIES[copy](j, n, x)
        assert outcomes[0] == outcomes[1]


def _kinds(j):
    device = j.devices()[0]
    mesh = j.make_mesh((1,), ("x",))
    single, named = j.sharding.SingleDeviceSharding(device), j.sharding.NamedSharding(mesh, j.P("x"))
    pinned = [s.with_memory_kind("pinned_host") for s in (single, named)]
    return [single.memory_kind, named.memory_kind, *(s.memory_kind for s in pinned), single == pinned[0],
            named == pinned[1], single == j.sharding.SingleDeviceSharding(device, memory_kind="device"),
            hash(single) == hash(pinned[0].with_memory_kind("device")), str(pinned[0]),
            j.device_put(HOST, pinned[0]).sharding.memory_kind,
            *(j.device_put(HOST, space).sharding.memory_kind for space in (j.memory.Space.Host, j.memory.Space.Device)),
            j.device_put(j.device_put(HOST, named), j.memory.Space.Host).sharding == pinned[1]]


def test_memory_kinds():
    assert _kinds(jax) == _kinds(oracle)


def test_unknown_memories_are_refused():
    for j in (oracle, jax):
        for make in (lambda j=j: j.sharding.SingleDeviceSharding(j.devices()[0], memory_kind="disk"),
                     lambda j=j: j.sharding.NamedSharding(j.make_mesh((1,), ("x",)), j.P(), memory_kind="disk")):
            with pytest.raises(ValueError, match="Could not find memory addressable by device.*Got memory kind: disk"):
                make()
