"""Products where BLAS computes in narrower vectors than the host: loops take those whose right operand is near."""

import os
import subprocess
import sys

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.compile.ir.loopir import Call, statements
from styrax.compile.pipeline import compile_to_loops
from styrax.compile.program import Kernels
from styrax.cpu import libraries

R = np.random.default_rng(0)
FORMS = {
    "a @ b": (lambda a, b: a @ b, lambda m, n, k: ((m, k), (k, n))),
    "a @ b.T": (lambda a, b: a @ b.T, lambda m, n, k: ((m, k), (n, k))),
    "a.T @ b": (lambda a, b: a.T @ b, lambda m, n, k: ((k, m), (k, n))),
    "a.T @ b.T": (lambda a, b: a.T @ b.T, lambda m, n, k: ((k, m), (n, k))),
    "a batch": (lambda a, b: jnp.einsum("kia,jka->aij", a, b), lambda m, n, k: ((k, m, 3), (n, k, 3))),
    "two sums": (lambda a, b: jnp.tensordot(a, b, ((1, 2), (2, 1))), lambda m, n, k: ((m, k, 4), (n, 4, k))),
    "computed": (lambda a, b: jnp.tanh(a) @ jnp.exp(b).T, lambda m, n, k: ((m, k), (n, k))),
    "one operand": (lambda a, b: a @ a.T + b[0, 0], lambda m, n, k: ((m, k), (k, n))),
}
SIZES = [(64, 64, 64), (33, 70, 129), (128, 65, 100), (17, 300, 90)]


def operands(form, sizes, dtype):
    return [R.normal(size=shape).astype(dtype) / 8 for shape in FORMS[form][1](*sizes)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("form", FORMS)
def test_values(form, dtype, sizes, monkeypatch):
    f = FORMS[form][0]
    a, b = operands(form, sizes, dtype)
    with jax.enable_x64(dtype == np.float64):
        monkeypatch.setattr(libraries, "vector_bytes", lambda: 16)
        got = jax.jit(lambda a, b: f(a, b))(a, b)
        monkeypatch.undo()
        wide = np.complex128 if dtype == np.complex64 else np.float64
        with jax.enable_x64(True):
            expected = f(jnp.asarray(a.astype(wide)), jnp.asarray(b.astype(wide)))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 2e-4)


@pytest.mark.parametrize("form", FORMS)
def test_who_multiplies(form):
    a, b = operands(form, (64, 96, 128), np.float32)
    closed = jax.make_jaxpr(FORMS[form][0])(a, b)
    for blas, host, by_blas in ((64, 64, True), (32, 64, False), (32, 32, True), (16, 32, True)):
        program = compile_to_loops(closed, "f", (), host, False, Kernels(blas_bytes=lambda blas=blas: blas))
        called = {s.symbol for s in statements(program.statements) if isinstance(s, Call)}
        assert called == ({"blas_sgemm"} if by_blas else set())


@pytest.mark.parametrize(("sizes", "dtype"), [((64, 2000, 600), np.float32), ((64, 96, 128), np.complex64)])
def test_what_stays_with_blas(sizes, dtype):
    closed = jax.make_jaxpr(jnp.matmul)(*operands("a @ b", sizes, dtype))
    program = compile_to_loops(closed, "f", (), 64, False, Kernels(blas_bytes=lambda: 32))
    assert any(isinstance(s, Call) for s in statements(program.statements))


@pytest.mark.parametrize(("name", "expected"), [("Haswell", 32), ("ZEN", 32), ("SkylakeX", 64), ("Nehalem", 32),
                                                ("sapphirerapids", 64)])
def test_the_environment_names_kernels(name, expected, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", name)
    assert libraries.vector_bytes() == expected


def test_a_library_names_its_kernels():
    """Where the environment does not, the library says; it must be one of the widths that there are."""
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    code = "from styrax.cpu import libraries; print(libraries.vector_bytes(), libraries.vector_bytes())"
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    first, second = out.stdout.split()
    assert first == second in ("32", "64")


def test_bits_on_threads():
    code = ("import sys, numpy as np, styrax as jax\nfrom styrax.cpu import libraries\n"
            "libraries.vector_bytes = lambda: 16\nr = np.random.default_rng(0)\n"
            "for m, n, k in ((200, 128, 300), (64, 200, 64)):\n"
            "    a, b = (r.normal(size=s).astype('f') for s in ((m, k), (n, k)))\n"
            "    sys.stdout.write(np.asarray(jax.jit(lambda a, b: a @ b.T)(a, b)).tobytes().hex())")
    bits = [subprocess.run([sys.executable, "-c", code], env={**os.environ, "STYRAX_NUM_THREADS": str(n)},
                           capture_output=True, text=True, check=True).stdout for n in (1, 2, 3)]
    assert bits[0] and len(set(bits)) == 1


@pytest.mark.parametrize("sizes", [(300, 400, 500), (64, 700, 300), (17, 90, 2000), (520, 33, 1100)])
def test_large_products_of_doubles(sizes, monkeypatch):
    """Those whose right operand is far are multiplied by the kernel for doubles, panel by panel."""
    monkeypatch.setattr(libraries, "vector_bytes", lambda: 16)
    with jax.enable_x64(True):
        for form in ("a @ b", "a @ b.T", "a.T @ b", "a batch", "computed"):
            a, b = operands(form, sizes, np.float64)
            f = FORMS[form][0]
            np.testing.assert_allclose(jax.jit(f)(a, b), f(*map(jnp.asarray, (a, b))), rtol=0, atol=1e-11)
