"""Options that programs are compiled with: XLA's reach it, and what JAX's refuses is refused in the same words."""

from __future__ import annotations

import itertools

import jax as oracle
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.xla.pjrt import options
from tests.xla.pjrt.conftest import OTHER

pytestmark = pytest.mark.skipif(bool(OTHER), reason="asks for options of XLA on the host's processors")
GIVEN = [
    {"xla_no_such_option": 1}, {"none": 1}, {"num_partitions": 2}, {"env_option_overrides": 1}, {"xla_dump_to": 3},
    {"xla_cpu_enable_fast_math": "maybe"}, {"xla_cpu_enable_fast_math": 1}, {"xla_cpu_enable_fast_math": 1.5},
    {"xla_cpu_enable_fast_math": "True"}, {"xla_cpu_enable_fast_math": True}, {"xla_backend_optimization_level": "x"},
    {"xla_backend_optimization_level": "3"}, {"xla_backend_optimization_level": 1}, {"optimization_level": 2},
    {"optimization_level": "a"}, {"exec_time_optimization_effort": 0.5}, {"memory_fitting_effort": -0.5},
    {"memory_fitting_level": True}, {"memory_fitting_level": 1.5}, {}, {"xla_embed_ir_in_executable": None},
]


pytestmark = pytest.mark.usefixtures("default")


def outcome(package, given, ahead):
    f = lambda x: x + 1
    try:
        if ahead:
            return float(package.jit(f).lower(1.0).compile(compiler_options=given)(1.0))
        return float(package.jit(f, compiler_options=given)(1.0))
    except Exception as error:
        message = str(error) if package.__name__ == "jax" else str(error).replace("styrax", "jax")
        return type(error).__name__, message if "INVALID_ARGUMENT" in message else ""


@pytest.mark.parametrize(("given", "ahead"), list(itertools.product(GIVEN, (False, True))), ids=str)
def test_refusals(device, given, ahead):
    assert outcome(jax, given, ahead) == outcome(oracle, given, ahead)


def test_later_options_take_the_place_of_earlier_ones(device):
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_backend_optimization_level": "x"})
    assert float(f.lower(1.0).compile({"xla_backend_optimization_level": 1})(1.0)) == 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="'x' is not a valid int32 value"):
        f(1.0)


def test_equal_values_of_other_types_are_others(device):
    f = jax.jit(lambda x: x + 1)
    assert float(f.lower(1.0).compile({"xla_cpu_enable_fast_math": True})(1.0)) == 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="'1' is not a valid bool value"):
        f.lower(1.0).compile({"xla_cpu_enable_fast_math": 1})


def test_options_change_the_program(device):
    x = jnp.full(64, jnp.nan)
    fast = {"xla_cpu_enable_fast_math": True, "xla_cpu_fast_math_honor_nans": False}
    isnan = lambda **kw: np.asarray(jax.jit(lambda x: jnp.isnan(x * 2), **kw)(x))
    assert isnan().all() and not isnan(compiler_options=fast).any()


def test_both_kinds_of_fields():
    plain = options.compile_options([0])
    for name, value, added in (("exec_time_optimization_effort", 0.5, "a501 0000003f"),
                               ("memory_fitting_effort", 1, "ad01 0000803f"), ("optimization_level", 3, "c001 03"),
                               ("memory_fitting_level", 1, "c801 01")):
        made = options.compile_options([0], {name: value})
        assert made[2:] == plain[2:] + bytes.fromhex(added) and made[1] == plain[1] + len(bytes.fromhex(added))


def test_machine_code_is_kept_by_options(device):
    f = jax.jit(lambda x: jnp.sin(x) * 3)
    made = [f.lower(1.0).compile(o).runtime_executable() for o in (
        None, {"xla_backend_optimization_level": 1}, {"optimization_level": 1})]
    assert len({m.key for m in made}) == 3
