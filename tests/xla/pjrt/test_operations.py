"""The table of operations on plugins: the results are those of the CPU's own compiler."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from styrax.core.arrays import backends
from tests.lax.harness import stage
from tests.lax.operations import CASES

TOGETHER = 40  # cases that are one program: compiling is what takes the time
GROUPS = [CASES[i:i + TOGETHER] for i in range(0, len(CASES), TOGETHER)]


def everything(cases):
    """A function of all cases' arguments, whose results follow each other."""
    def run(*xs):
        import styrax.lax as lax

        left = iter(xs)
        outs = []
        for case in cases:
            out = case.function(lax)(*itertools.islice(left, len(case.args)))
            outs += out if isinstance(out, (tuple, list)) else [out]
        return outs

    return run


def results(closed, args, client):
    inputs = [client.put(x, a, None) for x, a in zip(args, closed.in_avals, strict=True)]
    return [np.asarray(x) for x in client.compile(closed)(*inputs)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda cases: f"{cases[0].name}-{cases[-1].name}")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_table(device, group):
    args = [x for case in group for x in case.args]
    closed = stage(everything(group), args)
    owners = [case for case in group for _ in stage(case.function(__import__("styrax.lax").lax), case.args).out_avals]
    found, wanted = (results(closed, args, client) for client in (device.client, backends.get("cpu")))
    for case, a, b in zip(owners, found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, case
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b, str(case))
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=2 * case.tolerance, atol=2 * case.tolerance,
                                       err_msg=str(case))
