"""Products of matrices and tensors, `einsum`."""

from __future__ import annotations

import numpy as np

import styrax
from tests.numpy import oracle

TABLE = """
jnp.einsum('ij,jk->ik', m, m.T)
jnp.einsum('ij,jk->ki', m, m.T)
jnp.einsum('ijk,ikl->ijl', m[None], m.T[None])
jnp.einsum('ij,jk->ijk', m, m.T)
jnp.einsum('ij,kl->ijkl', m, m)
jnp.einsum('ij,i->j', m, m[:, 0])
jnp.einsum('ij,ij->', m, m)
jnp.einsum('ij->i', m)
jnp.einsum('ij,k->', m, x)
jnp.einsum('ij,j->ij', m, x)
jnp.einsum('iij->ij', m[:, None, :]*m[None])
jnp.einsum('iij,j->i', m[:, None, :]*m[None], x)
jnp.einsum('a,b,c->abc', x, x, x)
jnp.einsum('ab,bc,cd,de->ae', m, m.T, m, m.T)
jnp.einsum('bhqd,bhkd->bhqk', m[None, None], m[None, None])
jnp.einsum('bhqk,bkhd->bqhd', m[None, None], m.T[None, :, None])
jnp.einsum('btd,df->btf', m[None], m.T)
jnp.einsum('ij,jk', m, m.T, optimize=False)
jnp.einsum('i,i->i', i, x)
jnp.einsum('i->i', x)
jnp.einsum('i,', x, w)
jnp.einsum(m, [0, 1], x, [1], [0])
jnp.einsum('ij,jk->ik', m, m.T, precision='high')
jnp.einsum('ij,jk->ik', m, m.T, preferred_element_type='float16')
jnp.einsum('...ij,...jk->...ik', m[None], m.T)
jnp.einsum('ij,jk->i', m, m.T)
jnp.einsum('ij,jk->j', m, m.T)
jnp.einsum('ij,kl->i', m, m.T)
jnp.matmul(m[None, None], m.T[None])
jnp.matmul(t, jnp.swapaxes(t, 1, 2))
jnp.matmul(x, m.T)
jnp.matmul(x, m.T[None])
jnp.matmul(m[None], x)
jnp.matmul(i, x)
jnp.dot(2, x)
jnp.dot(m[None], m.T[None])
jnp.inner(2, x)
jnp.vecdot(m, x)
jnp.vecdot(c, c)
jnp.vdot(c, c)
jnp.vdot(m, m)
"""


def test_values() -> None:
    oracle.check_values(TABLE)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


SUMS = """
jnp.einsum('ij->i', m > 0)
jnp.einsum('ij->', m > 0)
jnp.einsum('ii->i', s > 0)
jnp.einsum('i->', u + jnp.uint8(250))
jnp.einsum('i->', u + jnp.uint8(250), preferred_element_type='float32')
jnp.einsum('ij->i', (m / 3).astype(jnp.bfloat16), preferred_element_type='float32')
jnp.einsum('ij,k->ik', (m / 3).astype(jnp.bfloat16), h.astype(jnp.bfloat16), preferred_element_type='float32')
"""


def test_sums_in_the_dtype_of_the_result() -> None:
    oracle.check_values(SUMS)
    oracle.check_texts(SUMS)


def test_einsum_of_nothing_is_an_array() -> None:
    assert isinstance(styrax.numpy.einsum("ij->ij", np.ones((2, 3))), styrax.Array)


MATRICES = """
jnp.linalg.matrix_power(u[:, None] * u, 0)
jnp.linalg.matrix_power(i[:, None] - i, 3)
jnp.linalg.matrix_power(i[:, None] - i, 5)
jnp.linalg.matrix_power(jnp.diag(i + 3), -2)
jnp.linalg.matrix_power(b[:, None] & b, 2)
jnp.linalg.matrix_power(s, 7)
jnp.linalg.matrix_power([[1, 2], [3, 4]], 4)
jnp.linalg.matrix_power(m, 2)
jnp.linalg.matrix_rank(s, 0.5, tol=0.5)
jnp.linalg.matrix_rank(s, tol=2.)
!jnp.linalg.svd(s, hermitian=True, full_matrices=False, subset_by_index=(0, 2))
!jnp.linalg.svd(s, hermitian=True, compute_uv=False, subset_by_index=(0, 3))
jnp.linalg.cholesky(s + jnp.triu(s), upper=True, symmetrize_input=False)
jnp.linalg.cholesky(s + jnp.triu(s), upper=True)
jax.grad(lambda a: jnp.linalg.cholesky(a, upper=True, symmetrize_input=False).sum())(s + jnp.triu(s))
"""


def test_powers_ranks_and_factors_of_matrices() -> None:
    oracle.check_values(MATRICES, rtol=1e-4, atol=1e-5)


def test_numbers_of_numpy_have_the_dtype_of_arrays():
    """Those of 64 bits become such of 32 before they are summed, also where dtypes are not promoted."""
    rng = np.random.default_rng(5)
    x, y = rng.random((3, 4)), rng.random((3, 4)).astype(np.float32)
    with styrax.numpy_dtype_promotion("strict"):
        for text, operands in (("ij->", (x,)), ("ij->j", (x,)), ("ij,ij->i", (x, x)), ("ij,ik->jk", (x, y)),
                               ("ij,ij,kj->k", (x, y, x))):
            found = styrax.numpy.einsum(text, *operands)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, np.einsum(text, *operands), rtol=1e-5)
