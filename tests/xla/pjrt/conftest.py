"""The plugins that the tests run on: those of two wheels, which `make test-xla` installs.

With `STYRAX_TEST_PLATFORM=cuda`, or another platform of which there is a plugin, its first device instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import styrax as jax
from styrax.core.arrays import backends
from styrax.core.arrays.devices import Device
from styrax.xla.pjrt import discovery
from styrax.xla.pjrt.plugin import Plugin
from styrax.xla.pjrt.plugin_client import PluginBackend

FOUND = {p.path.parent.name: p.path for p in discovery.plugins() if p.platform == "xla_cpu"}
# platform -> package; the newer one is what users get
PACKAGES = {"xla_cpu": "lammps_jax_pjrt_cpu", "xla_cpu_older": "fastatomstruct_xla_cpu"}
MISSING = sorted(set(PACKAGES.values()) - FOUND.keys())
OTHER = os.environ.get("STYRAX_TEST_PLATFORM", "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = f"the packages {', '.join(MISSING)} are not installed: `make test-xla` does"
    if MISSING and not OTHER and not os.environ.get("STYRAX_TEST_XLA"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="package", autouse=True)
def registry() -> Iterator[None]:
    """Tests of other folders find the backends that there were."""
    if MISSING and not OTHER:
        pytest.fail(f"the packages {', '.join(MISSING)} are not installed")
    before, apart = dict(backends._loaded), backends.apart
    if not OTHER and "xla_cpu_older" not in backends.platforms():
        backends.register(PluginBackend("xla_cpu_older", Plugin(FOUND[PACKAGES["xla_cpu_older"]])))
    yield
    for platform in backends._loaded.keys() - before.keys():
        del backends._loaded[platform]
    backends.get("cpu")
    backends.apart = apart
    jax.clear_caches()


@pytest.fixture(params=[OTHER] if OTHER else list(PACKAGES))
def device(request: pytest.FixtureRequest) -> Device:
    """The first device of each plugin."""
    return jax.devices(request.param)[0]


@pytest.fixture
def host_device(device: Device) -> Device:
    """The first device of each plugin for the host's processors, whose memory is the host's."""
    if OTHER and not OTHER.startswith("xla_cpu"):
        pytest.skip("the memory of this platform is not the host's")
    return device


@pytest.fixture
def default(device: Device) -> Iterator[None]:
    """Each plugin's platform is the default one."""
    before = backends.get()
    backends.set_default(device.client)
    jax.clear_caches()
    yield
    backends.set_default(before)
    jax.clear_caches()


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    """GPUs multiply float32 with fewer bits unless they are told not to."""
    with jax.default_matmul_precision("highest"):
        yield


@pytest.fixture
def plugin(device: Device) -> Plugin:
    return device.client.plugin
