"""Programs in several modules: how they are divided, and that the pieces find each other."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.cpu import llvm, runtime
from styrax.cpu.code import generate
from styrax.cpu.units import Units


def program(x):
    rows = jnp.tanh(x) * jnp.exp(-x * x)
    return rows.sum(0), (rows @ rows.T)[::7, ::5], jnp.sin(x).max(1), jnp.sort(jnp.cos(x), axis=0)[3], rows ** 0.3


def test_pieces_refer_to_each_other_and_nothing_else(monkeypatch):
    monkeypatch.setattr("styrax.cpu.writer.UNIT", 4000)
    x = np.random.default_rng(0).normal(size=(300, 400)).astype(np.float32)
    compiled = jax.jit(program).lower(x).compile()
    parts: list[str] = []
    module = generate(compiled.runtime_executable().program, apart=parts.append)
    whole, main = module.text(), module.last_unit()
    if module.bounds:  # one module, which has one word for all violations
        assert not parts
        assert main == whole
        return
    assert len(parts) > 1
    assert "define i32 @run(" in main
    assert not any("define i32 @run(" in part for part in parts)
    for text in (*parts, main):
        llvm.asm(text)  # each stands for itself
    defined = [line.split("@")[1].split("(")[0] for text in (*parts, main) for line in text.splitlines()
               if line.startswith(("define void @part", "define i32 @run"))]
    assert sorted(defined) == sorted(set(defined))
    assert all(f"@{name}(" in whole for name in defined)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_values(monkeypatch, threads):
    x = np.random.default_rng(1).normal(size=(301, 401)).astype(np.float32)
    usual = runtime.num_threads()
    try:
        runtime.set_num_threads(threads)
        monkeypatch.setattr("styrax.cpu.writer.UNIT", 1 << 30)
        together = jax.jit(program)(x)
        monkeypatch.setattr("styrax.cpu.writer.UNIT", 2000)
        apart = jax.jit(lambda x: program(x))(x)
    finally:
        runtime.set_num_threads(usual)
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    rows = np.tanh(x.astype(np.float64)) * np.exp(-x.astype(np.float64) ** 2)
    np.testing.assert_allclose(np.asarray(together[0]), rows.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(together[2]), np.sin(x).max(1), rtol=1e-5)


def test_a_module_that_llvm_refuses():
    units = Units(1, ["define nothing", "define i32 @run() {\n  ret i32 0\n}"])
    for _ in range(2):
        with pytest.raises(llvm.CompileError):
            units.load("refused")


class TestInlining:
    """Elementary functions are inlined where a module calls them seldom, and called where it does so all too often."""

    @staticmethod
    def programs(x, count):
        f = lambda *xs: [(jnp.sin(x) * jnp.exp(x)).sum() for x in xs]
        return np.stack(jax.jit(f)(*[x + i / 9 for i in range(count)])), jax.jit(f).lower(*[x] * count).compile()

    def test_the_bits_are_the_same(self):
        x = np.array([0.1, -0.0, 17.5], np.float32)
        (few, one), (many, all_) = self.programs(x, 2), self.programs(x, 90)
        np.testing.assert_array_equal(few, many[:2])
        rows = x + np.arange(90)[:, None] / 9
        np.testing.assert_allclose(many, (np.sin(rows) * np.exp(rows)).sum(1), rtol=1e-4)
        sin = "@styrax.sin_cos.f32.1("
        assert sin not in llvm.optimised(one.as_text("llvm"))
        assert llvm.optimised(all_.as_text("llvm")).count(sin) == 270 + 1
