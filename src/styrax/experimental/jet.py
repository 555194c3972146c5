"""Taylor-mode differentiation: derivatives of high order of a function along a curve, in one go.

    (y, [y1, y2]) = jet(f, (x,), ([x1, x2],))

For a curve through `x` with derivatives `x1`, `x2`, …, `y1`, `y2`, … are the derivatives of `f` along it. Every
primitive that has a JVP rule has a jet; `transforms.jets` says how. Rules work on coefficients of power series: the
k-th derivative divided by k!.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.arrays.array import Array
from ..core.programs.primitive import Primitive
from ..core.programs.rules import jets as jet_rules
from ..core.trees import tree
from ..core.types.typing import ArrayLike, Function, PyTree
from ..lax.control_flow import loop_series as _of_control_flow  # noqa: F401  # it fills the table
from ..lax.elementwise import recurrences as _of_functions  # noqa: F401  # likewise
from ..transforms.flattening import FlatFunction, positional
from ..transforms.jets import (
    JetTrace,
    JetTracer,
    ZeroSeries,
    ZeroTerm,
    composed_jet,
    instantiate,
    jet_flat,
    linear_jet,
    zero_jet,
    zero_series,
    zero_term,
)

call_param_updaters: dict[Primitive, Function] = {}


def jet(fun: Function, primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike]],
        factorial_scaled: bool = True, **_: PyTree) -> tuple[PyTree, PyTree]:
    """The derivatives of a function along a curve.

    Args:
      fun: a function of arrays that gives a tree of arrays.
      primals: its arguments, arrays.
      series: for each argument the derivatives of the curve there, from the first on; as many for each.
      factorial_scaled: whether these are derivatives; else they, and the results, are coefficients of the power
        series: the k-th derivative divided by k!.

    Returns:
      `(result, terms)`: the function's result, and a tree like it with a list of derivatives for each array.

    Raises:
      ValueError: an argument or a term is no array, or the lists differ in length.
      TypeError: an argument is an integer, and what the function does with it is neither linear nor a conversion.

    Example:
      >>> from styrax.experimental.jet import jet
      >>> y, terms = jet(lambda x: x * x, (3.0,), ([1.0, 0.0],))
      >>> [round(float(v), 3) for v in (y, *terms)]
      [9.0, 6.0, 2.0]
    """
    orders = set(map(len, series))
    if len(orders) != 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    (order,) = orders
    for i, (x, terms) in enumerate(zip(primals, series)):
        if not tree.treedef_is_leaf(tree.tree_structure(x)):
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(terms):
            if not tree.treedef_is_leaf(tree.tree_structure(term)):
                raise ValueError(f"term {j} for argument {i} is not an array")
    given = [[_times(_as_term(t), 1 / factorial(k) if factorial_scaled else 1) for k, t in enumerate(terms, 1)]
             for terms in series]
    flat = FlatFunction(fun, positional(tree.tree_structure(tuple(primals))))
    outs, found = jet_flat(flat, list(primals), given, order)
    out_terms: list[Any] = [instantiate(s, x, order) for s, x in zip(found, outs, strict=True)]
    if factorial_scaled:
        out_terms = [[_times(t, factorial(k)) for k, t in enumerate(terms, 1)] for terms in out_terms]
    return tree.tree_unflatten(flat.structure, outs), tree.tree_unflatten(flat.structure, out_terms)


def jet2(fun: Function, primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike]],
         factorial_scaled: bool = False, **_: PyTree) -> tuple[PyTree, PyTree]:
    """`jet` of coefficients of power series instead of derivatives.

    Args:
      fun: a function of arrays that gives a tree of arrays.
      primals: its arguments, arrays.
      series: for each argument the coefficients of the curve's power series there, from the first on; as many for each.
      factorial_scaled: whether these are derivatives after all.

    Returns:
      `(result, terms)`: the function's result, and a tree like it with a list of coefficients for each array.
    """
    return jet(fun, primals, series, factorial_scaled=factorial_scaled)


def _as_term(x: Any) -> Array:
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x * 1.0  # integers move, too, at speeds that are none


def _times(x: Any, factor: float) -> Any:
    return x if factor == 1 else x * factor


def fact(n: ArrayLike) -> Array:
    """The factorial of `n`, as a float."""
    return lax.exp(lax.lgamma(jnp.asarray(n, float) + 1.0))


def linear_prop(prim: Primitive, primals_in: Sequence[Array], series_in: Sequence[Sequence[Array]], **params: PyTree
                ) -> tuple[Array, list[Array]]:
    """The rule of a primitive that is linear in all its operands together."""
    return linear_jet(prim, primals_in, series_in, **params)


def zero_prop(prim: Primitive, primals_in: Sequence[Array], series_in: Sequence[Sequence[Array]], **params: PyTree
              ) -> tuple[Array, ZeroSeries]:
    """The rule of a primitive whose derivatives are zero wherever it has them."""
    return zero_jet(prim, primals_in, series_in, **params)


def deriv_prop(prim: Primitive, deriv: Callable[[Array], Array], primals_in: Sequence[Array],
               series_in: Sequence[Sequence[Array]]) -> tuple[Array, list[Array]]:
    """The rule of a function of one operand, from the function that is its derivative."""
    (x,), (terms,) = primals_in, series_in
    return prim.bind(x), composed_jet(deriv, x, terms)


def deflinear(prim: Primitive) -> None:
    """Gives a primitive the rule of linear ones."""
    jet_rules[prim] = lambda primals, series, **params: linear_prop(prim, primals, series, **params)


def defzero(prim: Primitive) -> None:
    """Gives a primitive the rule of those whose derivatives are zero."""
    jet_rules[prim] = lambda primals, series, **params: zero_prop(prim, primals, series, **params)


def def_deriv(prim: Primitive, deriv: Callable[[Array], Array]) -> None:
    """Gives a function of one operand its rule by the function that is its derivative."""
    jet_rules[prim] = lambda primals, series, **params: deriv_prop(prim, deriv, primals, series)


def def_comp(prim: Primitive, comp: Function, **kwargs: PyTree) -> None:
    """Gives a primitive the rule of an equal function `comp` of its operands, called with `kwargs` and its parameters.
    """

    def rule(primals: Sequence[Array], series: Sequence[Sequence[Array]], **params: Any) -> tuple[PyTree, PyTree]:
        return jet(lambda *xs: comp(*xs, **kwargs, **params), primals, series, factorial_scaled=False)

    jet_rules[prim] = rule


__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "call_param_updaters", "def_comp", "def_deriv", "deflinear",
    "defzero", "deriv_prop", "fact", "jet", "jet2", "jet_rules", "linear_prop", "zero_prop", "zero_series", "zero_term",
]
