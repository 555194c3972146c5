"""Programs over eight devices give what they give under JAX: values, types, where results are, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.compat.running import run

from . import TABLE
from .own import ROWS

EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What each row gives: under JAX, and under the drop-in in each way."""
    found = []
    for plain, ways in ((True, ["compiled"]), (False, ["called", "compiled"])):
        path = tmp_path_factory.mktemp("rows") / "found"
        done = run("-m", "tests.parallel", str(path), *ways, plain=plain, **EIGHT)
        assert done.returncode == 0, done.stderr
        found.append(pickle.loads(path.read_bytes()))
    return found


def assert_alike(got, wanted):
    assert type(got) is type(wanted), (got, wanted)
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), (got, wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_alike(a, b)
    elif isinstance(wanted, dict):
        assert got.keys() == wanted.keys(), (got, wanted)
        for k in wanted:
            assert_alike(got[k], wanted[k])
    elif isinstance(wanted, np.ndarray):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)
    elif isinstance(wanted, float):
        assert got == pytest.approx(wanted, rel=2e-5), (got, wanted)
    else:
        assert got == wanted, (got, wanted)


@pytest.mark.parametrize(("family", "row"), [(f, row) for f, rows in TABLE.items() for row in rows])
def test_row(outcomes, family, row):
    of_jax, ours = outcomes
    kind, wanted, text = of_jax["compiled", family, row]
    for way in ("called", "compiled"):
        our_kind, got, our_text = ours[way, family, row]
        assert our_kind == kind, (got, our_text, wanted, text)
        assert_alike(got, wanted)


@pytest.mark.parametrize("row", ROWS)
def test_own_row(outcomes, row):
    kind, got, text = outcomes[1]["called", "own", row]
    assert (kind, got) == ("value", True), text


# Sets counts of devices one after the other; "use" asks for the devices.
COUNTS = """
import sys, jax
for word in sys.argv[1:]:
    try:
        if word == "use":
            print(jax.device_count(), len(jax.devices()), jax.devices()[-1])
        else:
            jax.config.update("jax_num_cpu_devices", int(word))
            print(jax.config.jax_num_cpu_devices)
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize(("words", "settings"), [
    (["use"], {"JAX_NUM_CPU_DEVICES": "3"}),
    (["use"], {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_NUM_CPU_DEVICES": "3"}),
    (["use"], {"XLA_FLAGS": "--xla_force_host_platform_device_count=0"}),
    (["4", "5", "use", "6", "5", "-1", "use"], {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}),
])
def test_counts(words, settings):
    """As many devices as the settings say, which cannot be changed after the first use."""
    ours, theirs = (run("-c", COUNTS, *words, plain=plain, **{"JAX_PLATFORMS": "cpu", **settings}).stdout
                    for plain in (False, True))
    assert ours == theirs != ""
