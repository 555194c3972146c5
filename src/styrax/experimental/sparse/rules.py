"""What primitives do with sparse arrays: rules on arrays of which some are BCOO or BCSR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from styrax.core.programs.primitive import Primitive
from styrax.core.trees import tree
from styrax.core.types.typing import PyTree
from styrax.transforms.api import eval_shape
from styrax.transforms.containers import stacked, structure_of_elements
from styrax.transforms.custom_calls import custom_jvp_call_p, custom_vjp_call_p
from styrax.transforms.jit import jit
from styrax.transforms.jit_rules import jit_p

from .api import todense, todense_p
from .arrays import JAXSparse
from .bcoo.array import BCOO, bcoo_sum_duplicates, bcoo_transpose
from .bcoo.convolution import bcoo_conv_general_dilated
from .bcoo.elementwise import at_positions, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum
from .bcoo.products import bcoo_dot_general
from .bcoo.shaping import bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_reshape, bcoo_rev, bcoo_squeeze
from .bcoo.slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from .bcoo.storage import whole_batches
from .bcsr import BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general, bcsr_sum_duplicates

Rule: TypeAlias = Callable[..., Any]
"""`(*arrays, **params) -> array`, or a list for a primitive with several results."""

sparse_rules_bcoo: dict[Primitive, Rule] = {}
sparse_rules_bcsr: dict[Primitive, Rule] = {}

# functions that are not zero at zero
DENSIFYING = frozenset((lax.acos_p, lax.acosh_p, lax.bessel_i0e_p, lax.cos_p, lax.cosh_p, lax.eq_p, lax.exp_p, lax.ge_p,
                        lax.gt_p, lax.le_p, lax.lt_p, lax.log_p, lax.ne_p, lax.xor_p))
LINEAR = (lax.conj_p, lax.copy_p, lax.imag_p, lax.neg_p, lax.real_p)
ZERO_AT_ZERO = (lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.bessel_i1e_p, lax.expm1_p, lax.log1p_p,
                lax.sign_p, lax.sin_p, lax.sinh_p, lax.sqrt_p, lax.square_p, lax.tan_p, lax.tanh_p,
                lax.convert_element_type_p)


def is_sparse(x: PyTree) -> bool:
    """Whether something is a sparse array."""
    return isinstance(x, JAXSparse)


def apply_rule(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """A primitive on arrays of which any may be sparse.

    Raises:
      NotImplementedError: there is no rule, or the result would be dense.
    """
    if not any(map(is_sparse, args)):
        return primitive.bind(*args, **primitive.get_bind_params(params))
    table = sparse_rules_bcsr if any(isinstance(x, BCSR) for x in args) else sparse_rules_bcoo
    rule = table.get(primitive)
    if rule is None and primitive in DENSIFYING:
        raise NotImplementedError(f"sparse rule for {primitive} is not implemented because it would result in dense "
                                  "output. If this is your intent, use sparse.todense() to convert your arguments to "
                                  "dense matrices.")
    if rule is None:
        raise NotImplementedError(f"sparse rule for {primitive} is not implemented.")
    return rule(*args, **params)


def eval_sparse(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Runs a program on arrays of which any may be sparse."""
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.value if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        out = apply_rule(eqn.primitive, [read(v) for v in eqn.invars], eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [read(v) for v in jaxpr.outvars]


def eval_closed(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_sparse(closed.jaxpr, closed.consts, args)


# -- one array ----------------------------------------------------------------------------------------
def with_data(mat: Any, data: Array) -> Any:
    """An array with other elements at the same positions."""
    return type(mat)((data, *mat._bufs[1:]), shape=mat.shape, indices_sorted=mat.indices_sorted,
                     unique_indices=mat.unique_indices)


def with_unique_indices(mat: Any) -> Any:
    """The same array with each position stored once, and room for as many elements."""
    if mat.unique_indices:
        return mat
    return (bcoo_sum_duplicates if isinstance(mat, BCOO) else bcsr_sum_duplicates)(mat, nse=mat.nse)


def _linear(primitive: Primitive, mat: Any, **params: Any) -> Any:
    return with_data(mat, primitive.bind(mat.data, **params))


def _zero_at_zero(primitive: Primitive, mat: Any, **params: Any) -> Any:
    mat = with_unique_indices(mat)
    return with_data(mat, primitive.bind(mat.data, **params))


def _integer_pow(mat: Any, *, y: int) -> Any:
    if y <= 0:
        raise NotImplementedError(f"sparse rule for {lax.integer_pow_p} with non-positive exponent {y} is not "
                                  "implemented because it would result in dense output. If this is your intent, use "
                                  "sparse.todense() to convert your argument to a dense array.")
    return _zero_at_zero(lax.integer_pow_p, mat, y=y)


for _table in (sparse_rules_bcoo, sparse_rules_bcsr):
    for _primitive in LINEAR:
        _table[_primitive] = partial(_linear, _primitive)
    for _primitive in ZERO_AT_ZERO:
        _table[_primitive] = partial(_zero_at_zero, _primitive)
    _table[lax.integer_pow_p] = _integer_pow
    _table[todense_p] = lambda *bufs, tree: todense(bufs[0]) if is_sparse(bufs[0]) else todense_p.bind(*bufs, tree=tree)


# -- two arrays ---------------------------------------------------------------------------------------
def same_positions(x: BCOO, y: BCOO) -> bool:
    """Whether both arrays store the same positions, because these are one array."""
    return x.indices is y.indices and x.data.shape == y.data.shape


def _add(x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if x.shape != y.shape:
            raise NotImplementedError("Addition between sparse matrices of different shapes: "
                                      f"got {x.shape} and {y.shape}")
        if same_positions(x, y):
            return BCOO((lax.add(x.data, y.data), x.indices), shape=x.shape,
                        indices_sorted=x.indices_sorted or y.indices_sorted,
                        unique_indices=x.unique_indices or y.unique_indices)
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions.")
        parts = [whole_batches(mat.data, mat.indices, mat.shape) for mat in (x, y)]
        data, indices = (jnp.concatenate(buffers, axis=x.n_batch) for buffers in zip(*parts, strict=True))
        return BCOO((data, indices), shape=x.shape)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    if mat.shape != jnp.shape(dense):
        raise NotImplementedError("Addition between a sparse array X and a dense array Y is not implemented when the "
                                  "output shape is larger than Y.shape. This is to prevent silent densification of a "
                                  "large sparse array. If this is your intent, you can explicitly cast the sparse "
                                  "array to a dense matrix.")
    return lax.add(mat.todense(), dense)


def _sub(x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        return _add(x, with_data(y, lax.neg(y.data)))
    raise NotImplementedError("Subtraction between sparse and dense array.")


def _mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    if is_sparse(x) and is_sparse(y):
        if same_positions(x, y) and (x.unique_indices or y.unique_indices):
            out = BCOO((lax.mul(x.data, y.data), x.indices), shape=x.shape,
                       indices_sorted=x.indices_sorted or y.indices_sorted, unique_indices=True)
        else:
            out = bcoo_multiply_sparse(x, y)
    else:
        mat, dense = (x, y) if is_sparse(x) else (y, x)
        out = with_data(mat, bcoo_multiply_dense(mat, dense))
    return out if out_dtype is None else with_data(out, out.data.astype(out_dtype))


def _div(x: Any, y: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError("Division by a sparse array is not implemented because it would result in dense "
                                  "output. If this is your intent, use sparse.todense() to convert your arguments to a "
                                  "dense array.")
    return with_data(x, lax.div(x.data, at_positions(x, y, fill_value=1)))


# -- dimensions ---------------------------------------------------------------------------------------
def _sum(mat: BCOO, *, axes: Sequence[int], **_: Any) -> Any:
    out = bcoo_reduce_sum(mat, axes=axes)
    return out if out.shape else out.todense()


def _conv(lhs: Any, rhs: Any, **params: Any) -> Any:
    return bcoo_conv_general_dilated(lhs, rhs, **params)


def _stack(join: Callable[..., Any], expand: Callable[..., Any], *operands: Any, axis: int) -> Any:
    expanded = []
    for x in operands:
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        expanded.append(expand(x, shape=shape, broadcast_dimensions=[d + (d >= axis) for d in range(x.ndim)]))
    return join(expanded, dimension=axis)


sparse_rules_bcoo.update({
    lax.add_p: _add, lax.sub_p: _sub, lax.mul_p: _mul, lax.div_p: _div, lax.reduce_sum_p: _sum,
    lax.broadcast_in_dim_p: lambda mat, *, shape, broadcast_dimensions, **_: bcoo_broadcast_in_dim(
        mat, shape=shape, broadcast_dimensions=broadcast_dimensions),
    lax.concatenate_p: lambda *operands, dimension: bcoo_concatenate(operands, dimension=dimension),
    lax.stack_p: partial(_stack, bcoo_concatenate, bcoo_broadcast_in_dim),
    lax.conv_general_dilated_p: _conv,
    lax.dot_general_p: lambda lhs, rhs, *, dimension_numbers, preferred_element_type=None, **_: bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type),
    lax.dynamic_slice_p: lambda mat, *starts, slice_sizes: bcoo_dynamic_slice(mat, starts, slice_sizes),
    lax.gather_p: bcoo_gather,
    lax.reshape_p: lambda mat, *, new_sizes, dimensions, **_: bcoo_reshape(
        mat, new_sizes=new_sizes, dimensions=dimensions),
    lax.rev_p: bcoo_rev, lax.slice_p: bcoo_slice, lax.squeeze_p: bcoo_squeeze, lax.transpose_p: bcoo_transpose,
})
sparse_rules_bcsr.update({
    lax.broadcast_in_dim_p: lambda mat, *, shape, broadcast_dimensions, **_: bcsr_broadcast_in_dim(
        mat, shape=shape, broadcast_dimensions=broadcast_dimensions),
    lax.concatenate_p: lambda *operands, dimension: bcsr_concatenate(operands, dimension=dimension),
    lax.stack_p: partial(_stack, bcsr_concatenate, bcsr_broadcast_in_dim),
    lax.dot_general_p: lambda lhs, rhs, *, dimension_numbers, preferred_element_type=None, **_: bcsr_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type),
})


# -- programs: the public functions of control flow, with sparse arrays as the containers they are ----
def _jit(*args: Any, jaxpr: ClosedJaxpr, name: str = "fun", **_: Any) -> list[Any]:
    cache = jaxpr.jaxpr.cache
    key = (_jit, tuple(map(id, jaxpr.consts)))
    found = cache.get(key)
    if found is None:
        fun = partial(eval_closed, jaxpr)
        fun.__name__ = name  # type: ignore[attr-defined]
        found = cache[key] = jit(fun)
    return found(*args)


def _while(*args: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr,
           body_nconsts: int, **_: Any) -> list[Any]:
    n = cond_nconsts + body_nconsts
    of_cond, of_body, init = args[:cond_nconsts], args[cond_nconsts:n], list(args[n:])
    return lax.while_loop(lambda carry: eval_closed(cond_jaxpr, *of_cond, *carry)[0],
                          lambda carry: eval_closed(body_jaxpr, *of_body, *carry), init)


def _scan(*args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: Any,
          **_: Any) -> list[Any]:
    consts, init, xs = args[:num_consts], args[num_consts:num_consts + num_carry], args[num_consts + num_carry:]
    leaves = tree.tree_leaves(xs)
    one = structure_of_elements(list(xs), [0] * len(leaves))
    results: tree.PyTreeDef | None = None

    def body(carry: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        nonlocal results
        out = eval_closed(jaxpr, *consts, *carry, *one.unflatten(slices))
        flat, results = tree.tree_flatten(out[num_carry:])
        return out[:num_carry], flat

    carry, ys = lax.scan(body, list(init), leaves, length=length, reverse=reverse, unroll=unroll)
    assert results is not None
    return [*carry, *stacked(results.unflatten(ys), [0] * len(ys))]


def _cond(index: Any, *operands: Any, branches: Sequence[ClosedJaxpr], **_: Any) -> list[Any]:
    runs = [partial(eval_closed, branch) for branch in branches]
    kinds = [tree.tree_structure(eval_shape(run, *operands)) for run in runs]
    for kind in kinds[1:]:
        if kind != kinds[0]:
            raise TypeError("sparsified true_fun output must have same type structure as sparsified false_fun output, "
                            f"got {kinds[-1]} and {kinds[0]}.")
    return lax.switch(index, runs, *operands)


sparse_rules_bcoo.update({jit_p: _jit, lax.while_p: _while, lax.scan_p: _scan, lax.cond_p: _cond})
for _table in (sparse_rules_bcoo, sparse_rules_bcsr):
    _table[jit_p] = _jit
    _table[custom_jvp_call_p] = lambda *args, call_jaxpr, **_: eval_closed(call_jaxpr, *args)
    _table[custom_vjp_call_p] = lambda *args, call_jaxpr, **_: eval_closed(call_jaxpr, *args)
