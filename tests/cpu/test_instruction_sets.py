"""`--xla_cpu_max_isa`: code for less than the host has, with the same results."""

from __future__ import annotations

import json

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.cpu import instruction_sets, llvm
from tests.compat.running import run

PROGRAM = """
import json, sys
import numpy as np
import jax, jax.numpy as jnp
from styrax.cpu import llvm
x = np.random.default_rng(0).normal(size=(300, 300)).astype("float32")
half = lambda x: x.astype(jnp.bfloat16)

def mixed(x, y):
    # short rows of elements of 2 and of 8 bytes, whose lanes are few
    with jax.enable_x64(True):
        return jax.jit(lambda x, y: jax.nn.softmax(x.astype("float64") + y))(x, y.astype("float64"))

found = {
    "softmax": jax.nn.softmax(x[:, :10]), "product": jnp.tanh(x @ x / 20), "turned": x.T + x.sum(1),
    "halves": (half(x) @ half(x)).astype("float32"), "sorted": jnp.sort(x, 1),
    "bytes": (x * 10).astype("int8") @ x.astype("int8"),
    "bits": jax.random.bits(jax.random.key(3), (50,)), "gathered": x[np.arange(300) * 7 % 300],
    "sizes": mixed(x[:, :10].astype("float16"), x[:, 10:20]),
    "ragged": jnp.exp(x[:, :131] @ x[:131, :37] / 20), "tall": x[:20].T @ x[:20], "few": x[:9] @ x[:, :299],
    "chosen": jnp.argmax(x[:, :77], 1), "any": (x[:, :201] > 2.9).any(1), "odd": jnp.bitwise_xor.reduce(x[:77] > 0, 0),
    "triangle": jnp.tril(x[:, :123]), "narrow": jnp.pad((x[:, :37] * 9).astype("int8"), ((0, 0), (5, 2))).T,
    "pairs": jnp.stack([half(x)[:, :37], half(x)[:, 5:42], half(x)[:, :37]], -1),
    "apart": jnp.asarray(x)[:, :21].astype("float16").at[:, ::2].set(0),
    "filled": jnp.asarray(x).at[:, np.arange(11) * 40].get(mode="fill", fill_value=7.0),
    "records": x.reshape(-1, 4)[:1001] / jnp.linalg.norm(x.reshape(-1, 4)[:1001], axis=1)[:, None],
    "functions": jnp.tanh(x) + jnp.exp(x) * jax.scipy.special.erf(x), "until": jax.vmap(lambda c: jax.lax.while_loop(
        lambda c: (c < 9) & (c > -9), lambda c: c * 1.5, c))(x[0]),
    "loop": jax.lax.fori_loop(0, 5, lambda _, c: jnp.sin(c @ x[:9, :9]), x[:9, :9]),
}
found = {name: np.asarray(v, "float64").tolist() for name, v in found.items()}
host = llvm.host()
print(json.dumps([host.vector_bytes, sorted(host.available & {"avx", "avx2", "avx512f", "amx-tile"}), found]))
"""


def result(level):
    done = run("-c", PROGRAM, **({"XLA_FLAGS": f"--xla_cpu_max_isa={level}"} if level else {}))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual():
    return result("")


@pytest.mark.parametrize("level, most", [("SSE4_2", 16), ("AVX2", 32), ("avx512", 64)])
def test_levels(level, most, usual):
    bytes_, features, found = result(level)
    assert bytes_ == min(most, usual[0])
    above = {"SSE4_2": {"avx", "avx2", "avx512f", "amx-tile"}, "AVX2": {"avx512f", "amx-tile"}, "avx512": {"amx-tile"}}
    assert set(features) == set(usual[1]) - above[level]
    for name, value in found.items():
        exactly = name in ("bits", "sorted", "gathered", "bytes", "chosen", "any", "odd", "triangle", "filled",
                            "narrow", "pairs", "apart")
        np.testing.assert_allclose(value, usual[2][name], 0 if exactly else 1e-2 if name == "halves" else 1e-4,
                                   0 if exactly else 0.5 if name == "halves" else 1e-4)


def test_a_level_that_is_none():
    done = run("-c", "import jax; jax.numpy.zeros(3)", XLA_FLAGS="--xla_cpu_max_isa=AVX9")
    assert done.returncode and "--xla_cpu_max_isa=AVX9 is none of SSE4_2, AVX," in done.stderr


def test_features_of_levels():
    given = "+sse4.2,+avx,+avx2,+fma,-xop,+avx512f,+avx512vl,+avx512bf16,+amx-tile"
    assert instruction_sets.lowered(given, "") == given
    assert instruction_sets.lowered(given, "AMX_FP16") == given
    assert instruction_sets.lowered(given, "AVX2") == (
        "+sse4.2,+avx,+avx2,+fma,-xop,-avx512f,-avx512vl,-avx512bf16,-amx-tile")
    assert instruction_sets.lowered(given, "SSE4_2").count("+") == 1


def test_no_instructions_between_those_of_avx_that_have_no_form_there():
    """Bytes that are rolled and looked up: on processors of AMD, LLVM would move them with INSERTQ."""
    def looked_up(table, x):
        return table[jnp.roll(x, 1, 1)]

    compiled = styrax.jit(looked_up).lower(np.ones(256, np.float32), np.ones((100, 16), np.uint8)).compile()
    code = compiled.as_text("asm")
    assert "vmov" in code or llvm.host().vector_bytes == 16
    assert not {"insertq", "extrq"} & set(code.split())
