"""What the operations on matrices share: their checks, their batches, and how LAPACK is called on them.

Arrays hold matrices in their last two dimensions; all others are a batch. LAPACK reads memory by
columns, so that it sees the transpose of a matrix of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.transforms import batching

from .. import factor_rules, sharding_rules
from ..casting import convert_element_type
from ..elementwise.arithmetic import add, div
from ..elementwise.bits import bitwise_or
from ..elementwise.comparisons import ge, le, select
from ..elementwise.functions import conj
from ..reductions.contractions import Precision, dot_general
from ..shaping.filling import broadcasted_iota, full_like
from ..shaping.reshaping import transpose

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

INT32 = np.dtype(np.int32)
LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d", np.dtype(np.complex64): "c",
           np.dtype(np.complex128): "z"}


def is_complex(dtype: Any) -> bool:
    return dtypes.issubdtype(dtype, np.complexfloating)


def real_dtype(dtype: Any) -> Any:
    """The dtype of absolute values."""
    return np.dtype(f"float{4 * dtype.itemsize}") if is_complex(dtype) else dtype


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype of the same precision."""
    return dtype if is_complex(dtype) else np.dtype(f"complex{16 * dtype.itemsize}")


def check_inexact(name: str, *avals: Any) -> None:
    for position, aval in enumerate(avals):
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            raise TypeError(f"{name} does not accept dtype {dtypes.dtype_name(aval.dtype)} at position {position}. "
                            f"Accepted dtypes at position {position} are subtypes of floating, complexfloating.")


def check_same_dtypes(name: str, *avals: Any) -> None:
    if any(a.dtype != avals[0].dtype for a in avals):
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                        f"{', '.join(dtypes.dtype_name(a.dtype) for a in avals)}.")


def check_matrix(name: str, aval: Any, square: bool = False) -> None:
    if len(aval.shape) < 2:
        raise ValueError(f"Argument to {name} must have shape [..., m, n], got shape {aval.shape}.")
    if square and aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got shape {aval.shape}.")


def check_rank(name: str, *avals: Any) -> None:
    for position, aval in enumerate(avals):
        if len(aval.shape) < 2:
            raise TypeError(f"Input {position} to {name} must have rank at least 2, but got shape={aval.shape}")


def check_batch_ranks(name: str, *ranks: int) -> None:
    """Raise TypeError unless all operands have one number of batch dimensions."""
    if len(set(ranks)) > 1:
        raise TypeError(f"All inputs to {name} must have the same number of batch dimensions, but got {list(ranks)} "
                        "batch dimensions.")


def check_square(name: str, aval: Any) -> None:
    check_rank(name, aval)
    if aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"The input to {name} must be a square matrix. Got shape {aval.shape}.")


def shape_of(x: Any) -> tuple[int, ...]:
    return get_aval(x).shape


# --- matrix arithmetic of derivative rules


def swapped(x: Any) -> Any:
    """The transpose of each matrix."""
    rank = len(shape_of(x))
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    x = swapped(x)
    return conj(x) if is_complex(get_aval(x).dtype) else x


def symmetrised(name: str, x: Any) -> Any:
    """The mean of each matrix and its adjoint. That of integers is a floating-point number, and as `numpy` has it, the
    sum of truth values is one."""
    dtype = get_aval(x).dtype
    wanted = dtypes.to_inexact_dtype(dtype)
    check_inexact(name, get_aval(x).update(dtype=wanted))
    total = (bitwise_or if dtype == np.bool_ else add)(x, adjoint(x))
    if wanted != dtype:
        total = convert_element_type(total, wanted)
    return div(total, full_like(total, 2))


def matmul(x: Any, y: Any) -> Any:
    """The product of matrices, batch by batch, in full precision."""
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision=Precision.HIGHEST)


def band(x: Any, lower: bool, k: int = 0) -> Any:
    """The lower (or upper) triangle of each matrix up to (or from) diagonal `k`; zeros elsewhere."""
    shape = shape_of(x)
    rank = len(shape)
    rows = broadcasted_iota(INT32, shape[-2:], 0)
    columns = broadcasted_iota(INT32, shape[-2:], 1)
    rows = add(rows, np.int32(k))
    mask = ge(rows, columns) if lower else le(rows, columns)
    if rank > 2:
        from ..shaping.broadcasting import broadcast_in_dim

        mask = broadcast_in_dim(mask, shape, (rank - 2, rank - 1), out_sharding=get_aval(x).given_sharding)
    return select(mask, x, full_like(x, 0))


def identity(n: int, dtype: Any) -> Any:
    return np.eye(n, dtype=dtype)


def result_types(primitive: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Sets `rule(*avals, **params)`, which types a primitive's results: weakly where all operands are."""
    def declared(rule: Callable[..., Any]) -> Callable[..., Any]:
        @primitive.def_abstract_eval
        def types(*avals: ShapedArray, **params: Any) -> Any:
            out = rule(*avals, **params)
            if not all(aval.weak_type for aval in avals):
                return out
            return [o.update_weak_type(True) for o in out] if primitive.multiple_results else out.update_weak_type(True)

        return rule

    return declared


def batch_in_front(primitive: Primitive, *ranks: int) -> None:
    """Batching of operations that take any number of leading dimensions, and how their results are spread: along these
    alone. `ranks` tells how many dimensions of each operand are not among them, two by default."""
    primitive.declare(sharding=sharding_rules.behind_batch(*ranks), factors=factor_rules.behind_batch(*ranks))

    def rule(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
        args = batching.all_at_front(args, dims, size)
        out = primitive.bind(*args, **params)
        return (out, [0] * len(out)) if primitive.multiple_results else (out, 0)

    rules.batchers[primitive] = rule


# --- loops over matrices


def by_columns(b: Builder, x: Any) -> Any:
    """The transposes of matrices: in memory, what LAPACK takes for the matrices themselves, and back."""
    *batch, rows, columns = x.shape
    return b.value((*batch, columns, rows), x.dtype, lambda index: x.at((*index[:-2], index[-1], index[-2])))


def nan_of(b: Builder, dtype: Any) -> Any:
    """What stands where LAPACK failed: NaN, of complex numbers in both parts."""
    return b.const(complex(np.nan, np.nan) if is_complex(dtype) else np.nan, dtype)


def unless(b: Builder, failed: Any, value: Any) -> Any:
    """A value with NaN in the matrices (or vectors) of a batch for which LAPACK reported failure."""
    rank = len(failed.shape)
    nan = nan_of(b, value.dtype)
    return b.value(value.shape, value.dtype,
                   lambda index: b.select(b.ne(failed.at(index[:rank]), b.const(0, INT32)), nan, value.at(index)))


def not_finite(b: Builder, value: Any) -> Any:
    """1 for the matrices of a batch with NaN or infinities, which some routines of LAPACK complain of on the console
    and others do not end on; 0 for others."""
    one, zero = b.const(1, INT32), b.const(0, INT32)
    *batch, rows, columns = value.shape
    (found,) = b.reduce(tuple(batch), [rows, columns], [INT32], "max", (zero,),
                        lambda i, r: (b.select(b.is_finite(value.at([*i, *r])), zero, one),))
    return found


def zeros_for(b: Builder, flawed: Any, value: Any) -> Any:
    """A value with zeros in the matrices of a batch that are flawed."""
    return b.value(value.shape, value.dtype, lambda index: b.select(
        b.ne(flawed.at(index[:-2]), b.const(0, INT32)), b.const(0, value.dtype), value.at(index)))


def working(b: Builder, value: Any) -> Any:
    """A value of a dtype that LAPACK knows: half precisions become f32."""
    if value.dtype in LETTERS:
        return value
    single = np.dtype(np.float32)
    return b.value(value.shape, single, lambda index: b.cast(value.at(index), single))


def in_dtype(b: Builder, value: Any, dtype: Any) -> Any:
    """A result in the dtype that was asked for."""
    if value.dtype == dtype:
        return value
    return b.value(value.shape, dtype, lambda index: b.cast(value.at(index), dtype))


@contextmanager
def _nested(n: Any, shape: Sequence[Any], at: list[Any]) -> Any:
    if not shape:
        yield
        return
    with n.loop(shape[0], parallel=True) as i:
        at.append(i)
        with _nested(n, shape[1:], at):
            yield


@contextmanager
def each_matrix(n: Any, batch: Sequence[Any]) -> Any:
    """Loops over a batch; gives the index of the matrix at hand."""
    at: list[Any] = []
    with _nested(n, tuple(batch), at):
        yield at


def place_of(b: Builder, value: Any, at: Sequence[Any]) -> tuple[Any, Any]:
    """A pointer to matrix (or vector) `at` of a contiguous value in memory."""
    rest = len(value.shape) - len(at)
    offset = b.index(0)
    for i, size in zip(at, value.shape[: len(at)], strict=True):
        offset = b.add(b.mul(offset, b.index(size)), b.index(i))
    return value, b.mul(offset, b.index(math.prod(value.shape[len(value.shape) - rest:])))


class Routine:
    """Calls of one LAPACK or BLAS routine: flags and sizes by reference, hidden lengths last."""

    def __init__(self, b: Any, n: Any, name: str, dtype: Any, library: str = "lapack"):
        self.b = b
        self.n = n
        self.symbol = f"{library}_{LETTERS[dtype]}{name}"

    def __call__(self, *arguments: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        b = self.b
        out: list[Any] = []
        flags = 0
        for a in arguments:
            if isinstance(a, str):
                out.append(("&", b.const(ord(a), np.int8)))
                flags += 1
            elif isinstance(a, int):
                out.append(("&", b.const(a, INT32)))
            elif not isinstance(a, tuple) and getattr(a, "dtype", None) == b.index(0).dtype:  # a size known when run
                out.append(("&", b.cast(a, INT32)))
            else:
                out.append(a)
        self.n.call(self.symbol, [*out, *[b.int(1)] * flags], reads=list(reads), writes=list(writes))
