"""Every primitive has a way to XLA: which ones have none, and why."""

from __future__ import annotations

import numpy as np

import styrax
from styrax.core.programs import rules
from styrax.core.types.physical import physicals
from tests import xla_cpu
from tools.primitives import PACKAGES, primitives, runs_at_once

DISCHARGED = "references have become values before a program is printed"
KERNELS = "kernels have become loops before a program is printed"
REMAINDER = {
    "addupdate": DISCHARGED, "freeze": DISCHARGED, "get": DISCHARGED, "new_ref": DISCHARGED, "swap": DISCHARGED,
    "platform_index": "programs are printed for a platform, and have its branch alone",
    "num_programs": KERNELS, "program_id": KERNELS,
}


def has_a_way(p):
    """A rule, a program inside that is printed in its place, or a rewriting onto the plain arrays behind keys."""
    return p in rules.stablehlos or p.traits.program is not None or p in physicals


def test_all_primitives_have_a_way():
    found = primitives((*PACKAGES, "experimental", "export", "ffi"))
    assert {p.name for p in found if not runs_at_once(p) and not has_a_way(p)} == REMAINDER.keys()


def test_references_are_discharged():
    """One of an argument becomes its contents, before and after."""
    def inside(x):
        ref = styrax.new_ref(x)
        ref[0] = 5.0
        ref[1:] += 1
        return ref[...]

    def outside(ref):
        ref[0] = 5.0
        return ref[1] * 2

    x = np.arange(4, dtype=np.float32)
    text = styrax.jit(lambda x: styrax.jit(inside)(x)).lower(x).as_text()
    (out,) = xla_cpu.compile_text(text).execute_sharded([_put(x)]).disassemble_into_single_device_arrays()
    np.testing.assert_array_equal(out[0], [5, 2, 3, 4])
    text = styrax.jit(outside).lower(styrax.new_ref(x)).as_text()
    assert '@main(%arg0: tensor<4xf32>) -> (tensor<f32> {jax.result_info = "result"}, tensor<4xf32>)' in text


def _put(x):
    import jax

    return jax.device_put(x)
