"""Batched arrays by coordinates, and what can be done with them."""

from .array import (
    BCOO,
    bcoo_eliminate_zeros,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from .convolution import bcoo_conv_general_dilated
from .elementwise import bcoo_extract, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum
from .ordering import (
    _bcoo_sum_duplicates,
    _bcoo_transpose,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    bcoo_transpose_p,
)
from .products import (
    _bcoo_dot_general,
    _bcoo_rdot_general,
    bcoo_dot_general,
    bcoo_dot_general_p,
    bcoo_dot_general_sampled,
    bcoo_dot_general_sampled_p,
)
from .shaping import bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_reshape, bcoo_rev, bcoo_squeeze, bcoo_update_layout
from .slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from .sparse_products import bcoo_spdot_general_p
from .storage import _bcoo_extract, _bcoo_fromdense, _bcoo_todense, bcoo_extract_p, bcoo_fromdense_p, bcoo_todense_p
