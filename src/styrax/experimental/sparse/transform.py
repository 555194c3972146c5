"""`sparsify`: functions of dense arrays as functions of arrays of which any may be sparse."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import Trace, Tracer, get_aval, set_current_trace, state
from styrax.core.trees import tree
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import Function, Object, PyTree
from styrax.transforms.flattening import FlatFunction
from styrax.transforms.naming import wraps

from .bcoo.array import BCOO
from .bcsr import BCSR
from .rules import apply_rule, eval_closed, is_sparse


# -- sparse arrays as values of an environment of buffers ---------------------------------------------
class SparsifyValue(typing.NamedTuple):
    """An array whose buffers stand in a `SparsifyEnv`: dense without indices, BCOO without ends of rows, or BCSR."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool = False
    unique_indices: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """Buffers that values refer to by number. Values with the same number for their indices share positions."""

    def __init__(self, bufs: Iterable[Array] = ()):
        self._buffers = list(bufs)

    def _push(self, buffer: Any) -> int:
        self._buffers.append(jnp.asarray(buffer))
        return len(self._buffers) - 1

    def _get(self, ref: int | None) -> Any:
        assert ref is not None
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Array:
        """The data of a value."""
        return self._get(spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Array:
        """The indices of a sparse value."""
        return self._get(spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """The ends of rows of a BCSR value."""
        return self._get(spvalue.indptr_ref)

    def dense(self, data: Array) -> SparsifyValue:
        """The value of a dense array."""
        return SparsifyValue(jnp.shape(data), self._push(data))

    def sparse(self, shape: Sequence[int], data: Array | None = None, indices: Array | None = None,
               indptr: Array | None = None, *, data_ref: int | None = None, indices_ref: int | None = None,
               indptr_ref: int | None = None, indices_sorted: bool = False,
               unique_indices: bool = False) -> SparsifyValue:
        """The value of a sparse array, given by buffers or by their numbers."""
        refs = [ref if buffer is None else self._push(buffer) for buffer, ref in (
            (data, data_ref), (indices, indices_ref), (indptr, indptr_ref))]
        return SparsifyValue(tuple(shape), refs[0], refs[1], refs[2], indices_sorted, unique_indices)


def _as_value(spenv: SparsifyEnv, x: Any) -> SparsifyValue:
    if isinstance(x, (BCOO, BCSR)):
        return spenv.sparse(x.shape, *x._bufs, indices_sorted=x.indices_sorted, unique_indices=x.unique_indices)
    return spenv.dense(x)


def _as_array(spenv: SparsifyEnv, value: SparsifyValue) -> Any:
    if value.is_dense():
        return spenv.data(value)
    flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
    if value.is_bcsr():
        return BCSR((spenv.data(value), spenv.indices(value), spenv.indptr(value)), shape=value.shape, **flags)
    return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **flags)


def arrays_to_spvalues(spenv: SparsifyEnv, args: PyTree) -> PyTree:
    """A tree of arrays as one of values, whose buffers are put into the environment."""
    return tree.tree_map(partial(_as_value, spenv), args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: PyTree) -> PyTree:
    """A tree of values as one of arrays."""
    return tree.tree_map(partial(_as_array, spenv), spvalues, is_leaf=lambda x: isinstance(x, SparsifyValue))


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: PyTree) -> PyTree:
    """A tree of values as one of their abstract values."""
    return tree.tree_map(lambda value: _aval(_as_array(spenv, value)), spvalues,
                         is_leaf=lambda x: isinstance(x, SparsifyValue))


# -- a program on sparse arrays -----------------------------------------------------------------------
def _aval(x: Any) -> Any:
    if is_sparse(x):
        aval = get_aval(x.data)
        return ShapedArray(x.shape, aval.dtype, aval.weak_type)
    return get_aval(x)


def _by_program(fun: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], tree.PyTreeDef]:
    """Writes a function down for dense arrays, and runs the program on arrays of which any may be sparse."""
    leaves, in_tree = tree.tree_flatten((tuple(args), {}), is_leaf=is_sparse)
    flat = FlatFunction(fun, in_tree)
    closed = trace_to_jaxpr(flat, list(map(_aval, leaves)))
    return eval_closed(closed, *leaves), flat.structure


# -- a trace ------------------------------------------------------------------------------------------
class SparseTracer(Tracer):
    """A value of a function that is run on sparse arrays; the array may be sparse or dense."""

    __slots__ = ("array",)

    def __init__(self, trace: Trace, array: Any):
        super().__init__(trace)
        self.array = array

    @property
    def aval(self) -> Any:
        return _aval(self.array)

    def __repr__(self) -> str:
        return f"SparseTracer[{self.array!r}]"


class SparseTrace(Trace):
    """Applies rules for sparse arrays in the trace outside."""

    def __init__(self, parent: Trace):
        self.parent = parent

    def _array(self, x: Any) -> Any:
        return x.array if isinstance(x, SparseTracer) and x._trace is self else x

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        with set_current_trace(self.parent):
            out = apply_rule(primitive, list(map(self._array, args)), params)
        if primitive.multiple_results:
            return [SparseTracer(self, x) for x in out]
        return SparseTracer(self, out)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        return fun(*args)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable, args: tuple,
                                *, out_trees: Any, symbolic_zeros: bool) -> Any:
        return fun(*args)


def _by_trace(fun: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], tree.PyTreeDef]:
    """Runs a function on tracers of arrays of which any may be sparse."""
    leaves, in_tree = tree.tree_flatten(tuple(args), is_leaf=is_sparse)
    trace = SparseTrace(state.trace)
    with set_current_trace(trace):
        tracers = [SparseTracer(trace, x if is_sparse(x) else jnp.asarray(x)) for x in leaves]
        outs, out_tree = tree.tree_flatten(fun(*in_tree.unflatten(tracers)))
    trace.invalidate()
    return [trace._array(x) for x in outs], out_tree


# -- the transformation -------------------------------------------------------------------------------
def sparsify_raw(f: Function, use_tracer: bool = False) -> Function:
    """`sparsify` on values of an environment: `(spenv, *spvalues) -> (flat values, structure)`."""
    run = _by_trace if use_tracer else _by_program

    @wraps(f)
    def wrapped(spenv: SparsifyEnv, *spvalues: PyTree, **params: Object) -> tuple[list[SparsifyValue], tree.PyTreeDef]:
        outs, out_tree = run(partial(f, **params), spvalues_to_arrays(spenv, spvalues))
        return arrays_to_spvalues(spenv, outs), out_tree

    return wrapped


def sparsify(f: Function, use_tracer: bool = False) -> Function:
    """A function of arrays as one whose arguments may be BCOO or BCSR arrays.

    What an operation does not change at zero keeps positions; others, which would fill the array, are refused.
    Positions of two arguments are known to agree where they are one array.

    Args:
      f: a function of arrays and containers of them. Keyword arguments are passed as they are.
      use_tracer: whether `f` runs on tracers that hold the arrays, instead of being written down first.

    Returns:
      A function of the same arguments. Its results are sparse where they follow from sparse arrays.

    Raises:
      NotImplementedError: an operation has no rule, or its result would be dense.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import sparse
      >>> f = sparse.sparsify(lambda M, v: 2 * M.T @ v)
      >>> f(sparse.BCOO.fromdense(jnp.arange(12).reshape(3, 4)), jnp.array([3, 4, 2]))
      Array([ 64,  82, 100, 118], dtype=int32)
    """
    run = _by_trace if use_tracer else _by_program

    @wraps(f)
    def wrapped(*args: PyTree, **params: Object) -> PyTree:
        outs, out_tree = run(partial(f, **params) if params else f, args)
        return tree.tree_unflatten(out_tree, outs)

    return wrapped
