"""`einsum`: sums of products in Einstein's notation, as a chain of `dot_general`s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import permuted, resolved
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.dims import is_named
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, ShardingLike

from .conversion import asarray, place
from .dot_products import output_type
from .promotion import arrays, convert, shape_of

_UINT32 = np.dtype(np.uint32)


@api_boundary
def einsum(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[Object], out: None = None,
           optimize: str | bool | list[tuple[int, ...]] = "auto", precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, _dot_general: Callable[..., Array] | None = None,
           out_sharding: ShardingLike | None = None) -> Array:
    """The sum of products that `subscripts` describes, such as "ij,jk->ik".

    Every argument has a letter per axis; "..." stands for leading axes that are broadcast. Letters that
    the result lacks are summed over; a letter that an argument repeats takes its diagonal. Without "->" the result has
    the letters that occur once, in alphabetical order.

    Args:
      subscripts: the text; or the first operand, and then lists of ints follow the operands, the last one for the
        result.
      *operands: arrays or numbers. Axes of one letter have one size, or size 1.
      out: has to be None.
      optimize: how the order of the products is found: True or "auto", False (left to right), the name of
        an opt_einsum strategy, or a path from `einsum_path`.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that all promote to.
      out_sharding: the sharding of the result.

    Returns:
      an array with an axis for each letter of the result.

    Raises:
      ValueError: for subscripts that do not fit the operands, and for sizes that differ.
      NotImplementedError: for an `out`, and for a path that takes three or more operands at once.

    Example:
      >>> import styrax.numpy as jnp
      >>> a = jnp.arange(6).reshape(2, 3)
      >>> jnp.einsum("ij,ij->i", a, a)
      Array([ 5, 50], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    steps, factors = _contractions((subscripts, *operands), optimize)
    factors = arrays("einsum", *factors)
    kind = output_type(preferred_element_type, *factors, name="einsum")
    result = _run([asarray(f) for f in factors], steps, precision, kind[0],
                  _dot_general or lax.dot_general, out_sharding)
    return place(asarray(convert(result, *kind)), out_sharding)


@api_boundary
def einsum_path(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[Object],
                optimize: bool | str | list[tuple[int, ...]] = "auto") -> tuple[list[tuple[int, ...]], Object]:
    """The order of products that `einsum` takes.

    Args:
      subscripts, *operands: as for `einsum`; only shapes count.
      optimize: how the order is found, as for `einsum`.

    Returns:
      the path, a list of tuples: the positions of the operands that each product takes from what is left; and a report
      on its costs, to be printed.

    Raises:
      ValueError: for subscripts that do not fit the operands.
    """
    import opt_einsum

    return opt_einsum.contract_path(subscripts, *operands, optimize="auto" if optimize is True else optimize)


def _contractions(operands: tuple, optimize: Any) -> tuple[list, list]:
    """The steps of an einsum: (operand positions, summed letters, subscripts), and the operands."""
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else tuple((0, 1) for _ in range(len(operands) - 2)) or ((0,),)
    plain = _plain(operands)
    if plain is not None and len(plain[1]) == 2 and optimize in ("auto", "optimal", ((0, 1),)):
        text, factors = plain
        inputs, output = text.split("->")
        a, b = inputs.split(",")
        _check_sizes([a, b], factors)
        return [((1, 0), (set(a) | set(b)) - set(output), f"{b},{a}->{output}")], factors
    import opt_einsum

    if len(operands) > 1 and isinstance(operands[0], str):
        operands = (operands[0].replace(" ", ""), *operands[1:])
    numbers: dict[Any, int] = {}
    stand_ins = [_StandIn(x, numbers) if any(map(is_named, getattr(x, "shape", ()))) else x for x in operands]
    factors, found = opt_einsum.contract_path(*stand_ins, einsum_call=True, use_blas=True, optimize=optimize)
    return ([(step[0], step[1], step[2]) for step in found],
            [f.factor if isinstance(f, _StandIn) else f for f in factors])


class _StandIn:
    """An operand with integers for the sizes that are known by name alone: what orders of products are compared by."""

    def __init__(self, factor: Any, numbers: dict[Any, int]):
        self.factor = factor
        self.shape = tuple(numbers.setdefault(n, 8 + len(numbers)) if is_named(n) else n for n in factor.shape)


def _plain(operands: tuple) -> tuple[str, list] | None:
    """Subscripts with explicit letters for all axes, which need no parser: completed with a result."""
    text = operands[0]
    if not isinstance(text, str) or "." in text:
        return None
    factors = list(operands[1:])
    text = text.replace(" ", "")
    if "->" not in text:
        letters = Counter(text.replace(",", ""))
        text += "->" + "".join(sorted(c for c, n in letters.items() if n == 1))
    inputs, _, output = text.partition("->")
    terms = inputs.split(",")
    names = "".join(terms)
    if (len(terms) != len(factors) or not (names + output).isalpha() and names + output or
            any(len(t) != len(shape_of(f)) for t, f in zip(terms, factors)) or not set(output) <= set(names) or
            len(set(output)) != len(output)):
        return None
    return text, factors


def _check_sizes(terms: list[str], factors: list) -> None:
    sizes: dict[str, Any] = {}
    for n, (term, factor) in enumerate(zip(terms, factors)):
        for letter, size in zip(term, shape_of(factor)):
            known = sizes.setdefault(letter, size)
            if known == 1:
                sizes[letter] = size
            elif size not in (1, known):
                raise ValueError(f"Size of label '{letter}' for operand {n} ({known}) does not match previous terms "
                                 f"({size}).")


def _run(operands: list, steps: list, precision: Any, kind: Any, dot_general: Any, out_sharding: Any = None) -> Any:
    for left, (positions, contracted, text) in zip(range(len(steps) - 1, -1, -1), steps, strict=True):
        inputs, output = text.split("->")
        names = inputs.split(",")
        contracted = sorted(contracted)
        chosen = [operands.pop(i) for i in positions]
        if len(chosen) == 1:
            operands.append(_one(chosen[0], names[0], contracted, output, kind, None if left else out_sharding))
        elif len(chosen) == 2:
            operands.append(_two(chosen, names, contracted, output, precision, kind, dot_general,
                                 None if left else out_sharding))
        else:
            raise NotImplementedError("jax.numpy.einsum does not support simultaneous contraction of 3 or more "
                                      f"operands, which the path given by `optimize` asks for: {positions}.")
    return operands[0]


def _one(x: Any, names: str, contracted: list[str], output: str, kind: Any, out_sharding: Any) -> Any:
    x, names = _take_diagonals(x, names, contracted, set(output), kind)
    x, names = _sum_repeated(x, names, [c for c in names if names.count(c) > 1 and c in output], kind)
    result = "".join(c for c in names if c in output)
    told = None if out_sharding is None else permuted(
        resolved(result_sharding(out_sharding, "einsum")), [output.index(c) for c in result])
    x, names = _sum_names(x, names, [c for c in names if c not in output], kind, told)
    return _ordered(x, names, output)


def _two(operands: list, names: list[str], contracted: list[str], output: str, precision: Any, kind: Any,
         dot_general: Any, out_sharding: Any) -> Any:
    (lhs, rhs), (l_names, r_names) = operands, names
    # Axes of size 1 that meet larger ones of the other operand are dropped.
    lhs, rhs, l_names, r_names = _drop_ones(lhs, rhs, l_names, r_names)
    lhs, l_names = _simplify(lhs, l_names, set(r_names) | set(output), kind)
    rhs, r_names = _simplify(rhs, r_names, set(l_names) | set(output), kind)
    shared = [c for c in l_names if c in r_names]
    batch = "".join(c for c in shared if c in output)
    summed = [c for c in contracted if c in shared] + [c for c in shared if c not in output and c not in contracted]

    def rest(of: str) -> str:
        return "".join(c for c in of if c not in batch and c not in summed)

    swapped = batch + rest(r_names) + rest(l_names)
    if swapped == output:
        lhs, rhs, l_names, r_names = rhs, lhs, r_names, l_names
    result = batch + rest(l_names) + rest(r_names)
    numbers = (([l_names.index(c) for c in summed], [r_names.index(c) for c in summed]),
               ([l_names.index(c) for c in batch], [r_names.index(c) for c in batch]))
    told = {}
    if out_sharding is not None:
        spread = resolved(result_sharding(out_sharding, "einsum"))
        order = [output.index(c) for c in result]
        told["out_sharding"] = permuted(spread, order)
    out = dot_general(lhs, rhs, numbers, precision, preferred_element_type=kind, **told)
    return _ordered(out, result, output)


def _simplify(x: Any, names: str, elsewhere: set[str], kind: Any) -> tuple[Any, str]:
    """Diagonals taken, and letters that stand nowhere else summed over."""
    x, names = _take_diagonals(x, names, [c for c in names if c not in elsewhere], elsewhere, kind)
    x, names = _sum_repeated(x, names, [c for c in names if names.count(c) > 1], kind)
    return _sum_names(x, names, [c for c in names if c not in elsewhere], kind)


def _drop_ones(lhs: Any, rhs: Any, l_names: str, r_names: str) -> tuple[Any, Any, str, str]:
    for c in [c for c in l_names if c in r_names and l_names.count(c) == r_names.count(c) == 1]:
        a, b = lhs.shape[l_names.index(c)], rhs.shape[r_names.index(c)]
        if a == b:
            continue
        if a == 1:
            lhs, l_names = lax.squeeze(lhs, (l_names.index(c),)), l_names.replace(c, "")
        elif b == 1:
            rhs, r_names = lax.squeeze(rhs, (r_names.index(c),)), r_names.replace(c, "")
    return lhs, rhs, l_names, r_names


def _diagonal(x: Any, axes: list[int]) -> Any:
    """`x` with zeros off the diagonal of several axes."""
    sizes = [x.shape[i] for i in axes]
    first = lax.broadcasted_iota(_UINT32, sizes, 0)
    mask: Any = None
    for i in range(1, len(sizes)):
        same = lax.eq(first, lax.broadcasted_iota(_UINT32, sizes, i))
        mask = same if mask is None else lax.bitwise_and(mask, same)
    if len(axes) != x.ndim:
        mask = lax.broadcast_in_dim(mask, x.shape, tuple(axes))
    return lax.select(mask, x, lax.full_like(x, 0))


def _add_up(x: Any, axes: tuple[int, ...], kind: Any, out_sharding: Any = None) -> Any:
    """The sum over axes, in the dtype of the result unless that loses something of the summands."""
    x = convert(x, dtypes.promote_types(x.dtype, kind))
    return lax.reduce_or(x, axes) if x.dtype == np.bool_ else lax.reduce_sum(x, axes, out_sharding=out_sharding)


def _take_diagonals(x: Any, names: str, summed: list[str], kept: set[str], kind: Any) -> tuple[Any, str]:
    """A letter that repeats and is not kept is summed over its diagonal."""
    for c in dict.fromkeys(names):
        if names.count(c) > 1 and c not in kept:
            axes = [i for i, n in enumerate(names) if n == c]
            x = _diagonal(x, axes)
            x, names = _add_up(x, tuple(axes), kind), names.replace(c, "")
    return x, names


def _sum_repeated(x: Any, names: str, repeated: list[str], kind: Any) -> tuple[Any, str]:
    """A letter that repeats and is kept: its diagonal is summed onto its last axis."""
    for c in dict.fromkeys(repeated):
        axes = [i for i, n in enumerate(names) if n == c]
        x = _add_up(_diagonal(x, axes), tuple(axes[:-1]), kind)
        names = "".join(n for i, n in enumerate(names) if i not in axes[:-1])
    return x, names


def _sum_names(x: Any, names: str, summed: list[str], kind: Any, out_sharding: Any = None) -> tuple[Any, str]:
    if not summed:
        return x, names
    axes = tuple(i for i, c in enumerate(names) if c in summed)
    return _add_up(x, axes, kind, out_sharding), "".join(c for c in names if c not in summed)


def _ordered(x: Any, names: str, output: str) -> Any:
    if names == output:
        return x
    return lax.transpose(x, tuple(names.index(c) for c in output))
