"""Code for processors with more than this one has is compiled, though it cannot run here."""

from __future__ import annotations

import platform

import pytest

from tests.compat.running import run

PROGRAM = """
import sys
import styrax as jax
from styrax import lax, numpy as jnp
from styrax.cpu import code, compilation, llvm, tiles
from styrax.core.types import physical

AVX512 = "avx avx2 fma f16c bmi bmi2 avx512f avx512cd avx512bw avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2"
AVX512 += " avx512bitalg avx512vpopcntdq avx512vnni"
FEATURES = {"avx512": AVX512, "amx": AVX512 + " avx512bf16 avx512fp16 amx-tile amx-int8 amx-bf16"}[sys.argv[1]]
real = llvm.host()
features = real.available - set("sse4a xop fma4 clzero mwaitx".split()) | set(FEATURES.split())
llvm._host[:] = [llvm.Host(real.triple, "sapphirerapids", ",".join("+" + f for f in sorted(features)))]
tiles._granted[:] = [sys.argv[1] == "amx"]

shape = lambda *sizes, dtype="float32": jax.ShapeDtypeStruct(sizes, dtype)
x, odd, half, byte, whole = (shape(300, 300), shape(77, 131), shape(96, 160, dtype="bfloat16"),
                             shape(96, 160, dtype="int8"), shape(500, dtype="int32"))
z = shape(40, 50, dtype="complex64")
image, kernel = shape(2, 28, 28, 16, dtype="bfloat16"), shape(3, 3, 16, 32, dtype="bfloat16")
conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
PROGRAMS = {
    "softmax": (jax.nn.softmax, odd), "layer norm": (lambda x: (x - x.mean(1, keepdims=True)) / x.std(1), x),
    "functions": (lambda x: jnp.tanh(x) + jnp.exp(x) * jax.scipy.special.erf(x) + jnp.log1p(jnp.abs(x)), odd),
    "special": (lambda x: jax.scipy.special.gammaln(jnp.abs(x)) + jnp.arctan2(x, x[::-1]) + jnp.cbrt(x), odd),
    "product": (lambda x: jnp.tanh(x @ x), x), "ragged product": (lambda x: x.T @ x, odd),
    "few rows": (lambda x, y: x[:5] @ y, x, x), "halves": (lambda x, y: x @ y.T, half, half),
    "float16": (lambda x, y: x.astype("float16") @ y.T.astype("float16"), half, half),
    "bytes": (lambda x, y: lax.dot(x, y.T, preferred_element_type=jnp.int32), byte, byte),
    "convolution": (conv, image, kernel),
    "in float32": (lambda x, w: conv(x.astype("f4"), w.astype("f4")), image, kernel),
    "gradient": (jax.grad(lambda x: jnp.sum(jax.nn.gelu(x @ x))), x),
    "sort": (lambda x: jnp.sort(x, 1), odd), "argsort": (jnp.argsort, whole), "top": (lambda x: lax.top_k(x, 5), odd),
    "sums": (lambda x: (x.sum(0), x.sum(1), x.max(0), x.argmax(1), (x > 2).any(0)), odd),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, axis=1)), odd),
    "gather": (lambda x, i: x[i % 77].sum(1), odd, whole), "scatter": (lambda x, i: x.at[i % 77].add(1.5), odd, whole),
    "segments": (lambda i: jax.ops.segment_sum(jnp.ones(500), i % 9, 9), whole),
    "transposed": (lambda x: jnp.stack([x.T, 2 * x.T], -1), odd),
    "rolled": (lambda x: jnp.roll(x, (3, 5), (0, 1)) * x, odd),
    "joined": (lambda x: jnp.concatenate([x * 2, x + 1, x[:, :5]], 1), odd),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (3, 0)), mode="reflect"), odd),
    "resized": (lambda x: jax.image.resize(x, (90, 75), "lanczos3"), shape(128, 120)),
    "pooled": (lambda x: lax.reduce_window(jnp.exp(x), 0.0, lax.add, (3, 3), (2, 2), "SAME"), odd),
    "fourier": (lambda x: jnp.fft.fft2(x) + jnp.fft.ifft(x, axis=0), z),
    "complex": (lambda z: jnp.sqrt(z) * jnp.exp(z), z),
    "matrices": (lambda x: jnp.linalg.inv(x) @ x, shape(20, 6, 6)), "cholesky": (jnp.linalg.cholesky, shape(30, 30)),
    "numbers": (lambda k: (jax.random.normal(jax.random.wrap_key_data(k), (500,)),
                           jax.random.gamma(jax.random.wrap_key_data(k), 2.0, (50,))), shape(2, dtype="uint32")),
    "loop": (lambda x: lax.fori_loop(
        0, 9, lambda k, c: jnp.sin(c) * lax.dynamic_slice(x, (k, 0), (9, 9)), x[:9, :9]), x),
    "until": (jax.vmap(lambda c: lax.while_loop(lambda c: c < 9, lambda c: c * c + 1, c)), shape(77)),
    "scan": (lambda x: lax.scan(lambda c, r: (jnp.tanh(c @ x[:131, :131] + r), c.sum()), x[0, :131], x[:, :131]), x),
    "attention": (lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True), shape(2, 40, 4, 16)),
    "narrow": (lambda x: (x.astype("int8") * 3).astype("uint16") >> 2, odd), "wide": (lambda i: i // 7 + i % 5, whole),
    "mixed": (lambda x: jnp.where(x > 0, x, 0).astype("bfloat16").sum(1), odd),
}
for name, (f, *arguments) in PROGRAMS.items():
    closed = physical.lower(jax.make_jaxpr(f)(*arguments))
    made = compilation.compiled(closed, "program", [False] * len(arguments), None)
    for text in made.units.texts:
        for level in (llvm.BRIEFEST, llvm.BRIEF, 1):
            assert llvm.compile_object(text, level)
    called = code._called(made.lowered()[0]) - {None}
    for symbol in called:  # compiled when they are asked for
        [family.address(symbol) for family in code.FAMILIES]
    print(name, sorted(called))
assert llvm.host().vector_bytes == 64
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="of x86 processors")
@pytest.mark.parametrize("host", ["avx512", "amx"])
def test_programs_are_compiled(host):
    done = run("-c", PROGRAM, host, STYRAX_CACHE="0")
    assert done.returncode == 0, done.stderr[-3000:]
    assert ("tiles_" in done.stdout) == (host == "amx"), done.stdout
