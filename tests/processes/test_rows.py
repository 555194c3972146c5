"""Two processes with two devices each give what they give under JAX: values, parts, where results are, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from . import TABLE, run_rows


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What each row gives in each process: under JAX, and under Styrax."""
    return [[pickle.loads(path.read_bytes()) for path in run_rows(
        tmp_path_factory.mktemp("rows"), list(TABLE), count=2, devices=2, plain=plain)] for plain in (True, False)]


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
    for of_jax, ours in zip(*outcomes, strict=True):
        kind, wanted, text = of_jax[family, row]
        our_kind, got, our_text = ours[family, row]
        assert our_kind == kind, (got, our_text, wanted, text)
        assert_alike(got, wanted)
