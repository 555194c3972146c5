"""Processes give what they give under JAX, two with two devices each: values, parts, where results are, errors. Four
with two devices each give the values that one process with eight gives, under JAX and under Styrax."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from . import TABLE, VALUES, ended, free_port, run_rows, start

ALIKE = [family for family in TABLE if family not in VALUES]
WIDE = ["reductions", "moves", "derivatives through"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What each row gives in each process: under JAX, and under Styrax."""
    return [[pickle.loads(path.read_bytes()) for path in run_rows(
        tmp_path_factory.mktemp("rows"), ALIKE, count=2, devices=2, plain=plain)] for plain in (True, False)]


def assert_alike(got, wanted, rtol=2e-5):
    assert type(got) is type(wanted), (got, wanted)
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), (got, wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_alike(a, b, rtol)
    elif isinstance(wanted, dict):
        assert got.keys() == wanted.keys(), (got, wanted)
        for k in wanted:
            assert_alike(got[k], wanted[k], rtol)
    elif isinstance(wanted, np.ndarray):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-5)
    elif isinstance(wanted, float):
        assert got == pytest.approx(wanted, rel=2e-5), (got, wanted)
    else:
        assert got == wanted, (got, wanted)


def rows(families):
    return pytest.mark.parametrize(("family", "row"), [(f, row) for f in families for row in TABLE[f]])


@rows(ALIKE)
def test_row(outcomes, family, row):
    for of_jax, ours in zip(*outcomes, strict=True):
        kind, wanted, text = of_jax[family, row]
        our_kind, got, our_text = ours[family, row]
        assert our_kind == kind, (got, our_text, wanted, text)
        assert_alike(got, wanted)


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """What rows give in each of four processes, and in one process of JAX."""
    return [[pickle.loads(path.read_bytes()) for path in run_rows(
        tmp_path_factory.mktemp("values"), VALUES, count=count, devices=8 // count, plain=count == 1)]
        for count in (1, 4)]


@rows(VALUES)
def test_value(values, family, row):
    (of_jax,), ours = values
    for found in ours:
        assert found[family, row][0] == of_jax[family, row][0], (found[family, row], of_jax[family, row])
        assert_alike(found[family, row][1], of_jax[family, row][1])


def test_maps_of_eight_devices(tmp_path):
    """What `tests.parallel` asks of eight devices of one process, of eight of four processes."""
    found = []
    for count in (1, 4):
        port = free_port()
        files = [tmp_path / f"{count}-{i}" for i in range(count)]
        jobs = start([["-m", "tests.processes.wide", str(files[i]), str(i), str(count), str(port), *WIDE]
                      for i in range(count)], XLA_FLAGS=f"--xla_force_host_platform_device_count={8 // count}")
        for status, out, err in ended(jobs):
            assert status == 0, out + err
        found.append([pickle.loads(f.read_bytes()) for f in files])
    (one,), four = found
    for each in four:
        for row, (kind, wanted, text) in one.items():
            assert each[row][0] == kind, (row, each[row], wanted, text)
            # sums are made in another order, and cosines of large sums enlarge their rounding
            assert_alike(each[row][1], wanted, rtol=1e-4)
