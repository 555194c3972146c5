"""Sparse arrays: by coordinates (`BCOO`, `COO`) and by compressed rows (`BCSR`, `CSR`) or columns (`CSC`).

`sparsify` runs functions of dense arrays on them, `grad` and its kin differentiate with respect to them.
"""

from . import bcoo, bcsr, coo, csr, linalg, methods, random, test_util, transform
from . import counting as util
from .ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from .api import empty, eye, todense, todense_p
from .arrays import JAXSparse
from .bcoo.array import BCOO, bcoo_fromdense, bcoo_sort_indices, bcoo_sum_duplicates, bcoo_todense, bcoo_transpose
from .bcoo.convolution import bcoo_conv_general_dilated
from .bcoo.elementwise import bcoo_extract, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum
from .bcoo.ordering import bcoo_sort_indices_p, bcoo_sum_duplicates_p, bcoo_transpose_p
from .bcoo.products import bcoo_dot_general, bcoo_dot_general_p, bcoo_dot_general_sampled, bcoo_dot_general_sampled_p
from .bcoo.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_update_layout,
)
from .bcoo.slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from .bcoo.sparse_products import bcoo_spdot_general_p
from .bcoo.storage import bcoo_extract_p, bcoo_fromdense_p, bcoo_todense_p
from .bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_dot_general_p,
    bcsr_extract,
    bcsr_extract_p,
    bcsr_fromdense,
    bcsr_fromdense_p,
    bcsr_sum_duplicates,
    bcsr_todense,
    bcsr_todense_p,
)
from .coo import (
    COO,
    coo_fromdense,
    coo_fromdense_p,
    coo_matmat,
    coo_matmat_p,
    coo_matvec,
    coo_matvec_p,
    coo_todense,
    coo_todense_p,
)
from .csr import (
    CSC,
    CSR,
    csr_fromdense,
    csr_fromdense_p,
    csr_matmat,
    csr_matmat_p,
    csr_matvec,
    csr_matvec_p,
    csr_todense,
    csr_todense_p,
)
from .errors import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from .random import random_bcoo
from .transform import SparseTracer, sparsify
