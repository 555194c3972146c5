"""Factorisations in programs for GPUs are the calls that JAX's programs for GPUs have."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from jax import export

import styrax
from styrax.xla.stablehlo import module_text
from tests.xla.test_custom_calls import matrices, symmetric

F32, C64, C128 = np.float32, np.complex64, np.complex128

CASES = {
    "cholesky": ("cholesky", [symmetric(2, 4, 4, dtype=F32)], dict(symmetrize_input=False)),
    "cholesky of complex": ("cholesky", [symmetric(4, 4, dtype=C64)], dict(symmetrize_input=False)),
    "lu": ("lu", [matrices(3, 5, 4, dtype=F32)], {}),
    "lu, wide": ("lu", [matrices(4, 6, dtype=C64)], {}),
    "qr": ("qr", [matrices(3, 5, 4, dtype=F32)], dict(full_matrices=False)),
    "qr, full": ("qr", [matrices(5, 3, dtype=F32)], dict(full_matrices=True)),
    "householder_product": ("householder_product", [matrices(2, 5, 4, dtype=F32), matrices(2, 4, dtype=F32)], {}),
    "ormqr": ("ormqr", [matrices(2, 5, 3, dtype=F32), matrices(2, 3, dtype=F32), matrices(2, 5, 4, dtype=F32)],
              dict(left=True, transpose=True)),
    "eigh": ("eigh", [symmetric(2, 4, 4, dtype=F32)], dict(symmetrize_input=False)),
    "eigh of complex, upper": ("eigh", [symmetric(4, 4, dtype=C64)], dict(symmetrize_input=False, lower=False)),
    "tridiagonal": ("tridiagonal", [symmetric(2, 4, 4, dtype=F32)], {}),
    "svd": ("svd", [matrices(2, 4, 4, dtype=F32)], {}),
    "svd, tall": ("svd", [matrices(6, 4, dtype=C64)], dict(full_matrices=False)),
    "svd, values": ("svd", [matrices(4, 6, dtype=F32)], dict(compute_uv=False)),
    "svd, large": ("svd", [matrices(1300, 1100, dtype=F32)], dict(full_matrices=False)),
    "svd, large and wide": ("svd", [matrices(1100, 1300, dtype=F32)], dict(full_matrices=False)),
    "svd, large and full": ("svd", [matrices(1100, 1030, dtype=F32)], dict(full_matrices=True)),
    "svd, values of large": ("svd", [matrices(1100, 1030, dtype=F32)], dict(compute_uv=False)),
}
UNSTABLE = ("cusolver_ormqr_ffi", "cu_lu_pivots_to_permutation")  # of which JAX promises nothing for later


def calls(text):
    """A program's calls of routines: names, attributes, layouts, shared memory and types, in whatever order."""
    found = []
    for line in text.replace("dense<[0]>", "dense<0>").splitlines():
        name = re.search(r'custom_call @(\w+)|call_target_name = "(\w+)"', line)
        if name:
            config = re.search(r"backend_config = \{(.*?)\}", line)
            parts = [sorted(config[1].split(", ")) if config else []]
            for attribute in ("operand_layouts", "result_layouts", "output_operand_aliases"):
                value = re.search(attribute + r" = \[(.*?)\](?:,|\})? ?(?=\w+_\w+ = |sdy|mhlo|:|\}|\{)", line)
                parts.append(value[1] if value else "")
            parts.append(re.search(r'num_batch_dims = "(\d+)"', line)[1])
            types = line.rpartition(" : (")[2].partition(" loc(")[0]
            found.append((name[1] or name[2], *parts, re.findall(r"tensor<[^>]*(?:<[^>]*>)?[^>]*>", types)))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_calls_are_jaxs(case):
    name, args, params = CASES[case]
    closed = styrax.make_jaxpr(lambda *xs: getattr(styrax.lax.linalg, name)(*xs, **params))(*args)
    ours = calls(module_text(closed, "main", libraries=("cusolver",)))
    checks = [export.DisabledSafetyCheck.custom_call(target) for target in UNSTABLE]
    program = export.export(jax.jit(lambda *xs: getattr(jax.lax.linalg, name)(*xs, **params)), platforms=["cuda"],
                            disabled_checks=checks)(*args)
    theirs = calls(program.mlir_module())
    assert theirs and ours == theirs


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "eigh", "svd"])
def test_nothing_is_called_for_nothing(name):
    closed = styrax.make_jaxpr(getattr(styrax.lax.linalg, name))(np.ones((0, 3, 3), F32))
    assert not calls(module_text(closed, "main", libraries=("cusolver",)))
