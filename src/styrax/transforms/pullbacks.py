"""`vjp`: a function and the function that pulls cotangents back through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.programs.jaxpr import Jaxpr
from ..core.programs.name_stack import transform_name_stack
from ..core.tracing import source
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import get_aval
from ..core.trees import tree, tree_paths
from ..core.types import dtypes
from ..core.types.avals import AbstractRef, typed
from ..core.types.typing import Function, PyTree
from .calls import Axes, no_reduce_axes
from .derivatives import linearize_call
from .jit import jit
from .linear import CotangentRef, UndefinedPrimal, backward_pass, linear_jaxpr
from .naming import check_callable, split_arguments, wraps
from .refs import new_ref, ref_addupdate
from .zeros import Zero, instantiate_zeros, is_float0, zeros_like_aval


class VJP:
    """The function that pulls cotangents back; a pytree whose leaves are the residuals it keeps.

    Attributes:
      args_res: for each argument of the function its leaf, or a tuple of its leaves, as far as they are residuals;
        `NotNeeded()` stands for the others. Who has the arguments elsewhere may take them out and put them in again
        before the call.
      opaque_residuals: the other residuals.
    """

    def __init__(self, jaxpr: Jaxpr, args_res: Sequence[Any], opaque_residuals: Sequence[Any],
                 places: Sequence[int | None], in_tree: Any, out_tree: Any, in_avals: Sequence[Any],
                 out_avals: Sequence[Any], perturbed: Sequence[bool], nonzero_out: Sequence[bool], name: str):
        self.jaxpr = jaxpr
        self.args_res = list(args_res)
        self.opaque_residuals = list(opaque_residuals)
        self.places = tuple(places)  # of each residual among the arguments' leaves; None for an opaque one
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.perturbed = tuple(perturbed)
        self.nonzero_out = tuple(nonzero_out)
        self.name = name

    def _residuals(self) -> list[Any]:
        """The inputs of the program before the cotangents."""
        if all(i is None for i in self.places):
            return self.opaque_residuals
        leaves: list[Any] = []
        for argument, structure in zip(self.args_res, self.in_tree.children(), strict=True):
            given = tree.tree_leaves(argument, is_leaf=_is_absent)
            leaves += given if len(given) == structure.num_leaves else [None] * structure.num_leaves
        opaque = iter(self.opaque_residuals)
        found = [next(opaque) if i is None else leaves[i] for i in self.places]
        if any(map(_is_absent, found)):
            raise ValueError("an argument that the function returned by `jax.vjp` needs was taken out of `args_res`: "
                             "put it in again before the call")
        return found

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        pulled = self._pull(cotangents, [None] * len(self.in_avals))
        return tree.tree_unflatten(self.in_tree, pulled)

    def with_refs(self, *refs: Any) -> Callable:
        """A function that pulls cotangents back and adds them to references.

        Each argument is None or a container with the structure of the function's argument, with a
        reference for each leaf whose cotangent is to be added to it; in the result a `GradRef` stands there.
        `GradValue()` stands for a cotangent that is returned, as None does; `DontWant()` for one that is not, in place
        of which the result has a `DidntWant`.
        """
        leaves = tree.tree_leaves(refs, is_leaf=lambda x: x is None)
        if len(leaves) != len(self.in_avals):
            spread = tree_paths.broadcast_prefix(
                tree.tree_map(lambda x: _no_ref if x is None else x, refs, is_leaf=lambda x: x is None),
                tree.tree_unflatten(self.in_tree, range(len(self.in_avals))))
            leaves = [None if x is _no_ref else x for x in spread]
        leaves = [None if isinstance(x, GradValue) else x for x in leaves]

        def pull(*cotangents: Any) -> Any:
            return tree.tree_unflatten(self.in_tree, self._pull(cotangents, leaves))

        return pull

    def _pull(self, cotangents: Sequence[Any], refs: Sequence[Any]) -> list[Any]:
        if len(cotangents) != 1:
            raise TypeError(_one_cotangent.format(name=self.name.split(" at ")[0], n=len(cotangents)))
        leaves, ct_tree = tree.tree_flatten(cotangents[0])
        if ct_tree != self.out_tree:
            raise ValueError(_wrong_tree(self.name, self.out_tree, cotangents[0]))
        given = []
        for ct, aval, nz in zip(leaves, self.out_avals, self.nonzero_out, strict=True):
            _check_cotangent(ct, aval)
            if nz:
                given.append(Zero(aval.to_cotangent_aval()) if is_float0(ct) else ct)
        arguments: list[Any] = []
        unwanted: list[int] = []
        for aval, p, ref in zip(self.in_avals, self.perturbed, refs, strict=True):
            if p and isinstance(aval, AbstractRef):
                arguments.append(CotangentRef(_fresh(aval) if ref is None or isinstance(ref, DontWant) else ref))
            elif p:
                if isinstance(ref, DontWant):
                    unwanted.append(len(self.places) + len(arguments))
                arguments.append(UndefinedPrimal(aval.to_tangent_aval()))
        with transform_name_stack("transpose"):
            found = backward_pass(self.jaxpr, (), [*self._residuals(), *arguments], given, unwanted)
        pulled = iter(found[len(self.places):])
        results: list[Any] = []
        for aval, p, ref in zip(self.in_avals, self.perturbed, refs, strict=True):
            ct = next(pulled) if p else None
            if isinstance(ref, DontWant):
                results.append(DidntWant())
            elif isinstance(aval, AbstractRef):
                results.append(GradRef())
            elif ref is not None:
                if ct is not None and type(ct) is not Zero:
                    ref_addupdate(ref, None, ct)
                results.append(GradRef())
            else:
                results.append(np.zeros(aval.shape, dtypes.float0) if ct is None else instantiate_zeros(ct))
        return results

    def __repr__(self) -> str:
        return (f"VJP(fun={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, args_res={self.args_res}, "
                f"opaque_residuals={self.opaque_residuals})")


_no_ref = object()
_LEAF = tree.tree_structure(0)


class _Marker:
    """Markers of one kind are equal: they hold nothing."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradRef(_Marker):
    """Stands in the result of a pullback for a cotangent that was added to a reference."""

    __slots__ = ()


class GradValue(_Marker):
    """Asks a pullback to return a cotangent."""

    __slots__ = ()


class DontWant(_Marker):
    """Tells a pullback that a cotangent is not wanted."""

    __slots__ = ()


class DidntWant(_Marker):
    """Stands in the result of a pullback for a cotangent that was not wanted."""

    __slots__ = ()


class NotNeeded(_Marker):
    """Stands in a pullback for an argument that it does not read."""

    __slots__ = ()


ad = SimpleNamespace(DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef, GradValue=GradValue)


def _is_absent(x: Any) -> bool:
    return x is None or isinstance(x, NotNeeded)


def _fresh(aval: AbstractRef) -> Any:
    return new_ref(zeros_like_aval(aval.inner_aval.to_cotangent_aval()))


def _flatten_vjp(x: VJP) -> tuple[tuple, tuple]:
    return ((x.args_res, x.opaque_residuals),
            (x.jaxpr, x.places, x.in_tree, x.out_tree, x.in_avals, x.out_avals, x.perturbed, x.nonzero_out, x.name))


def _unflatten_vjp(data: tuple, children: tuple) -> VJP:
    args_res, opaque = children
    return VJP(data[0], args_res, opaque if isinstance(opaque, list) else [opaque], *data[1:])


tree.register_pytree_node(VJP, _flatten_vjp, _unflatten_vjp)
for _marker in (GradRef, DidntWant, NotNeeded):  # results of compiled functions have them
    tree.register_static(_marker)


_one_cotangent = """
The function returned by `jax.vjp` applied to {name} was called with {n} arguments,
but functions returned by `jax.vjp` take one: the cotangent of the value that {name} returned, with
its structure. Pass a tuple for a function that returns a tuple: `f_vjp((ct0, ct1))`."""


def _wrong_tree(name: str, expected: Any, found: Any) -> str:
    example = tree.tree_unflatten(expected, [0.0] * expected.num_leaves)
    lines = []
    for path, a, b, why in tree_paths.equality_errors(example, found):
        lines.append(f"  * out{tree_paths.keystr(path)} was a {a} in the original output, but a {b} here, so {why}.")
    return ("unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` must match the pytree\n"
            f"structure of the differentiated function {name}.\n\nBut the tree structures differ:\n" + "\n".join(lines))


def _sums(aval: Any) -> tuple[Any, ...]:
    """The mesh axes along which arrays of a type are still to be summed, or were."""
    told = getattr(aval, "given_sharding", None)
    return () if told is None or not (told.spec.unreduced or told.spec.reduced) else (
        told.spec.unreduced, told.spec.reduced)


def _check_cotangent(ct: Any, aval: Any) -> None:
    """Raises ValueError for a cotangent of another type than the result."""
    expected = aval.to_cotangent_aval()
    if not expected.is_high and expected.dtype == dtypes.float0:
        return
    found = get_aval(ct)
    if expected.is_high or found.is_high:
        agrees = expected == found
    else:
        agrees = expected.shape == found.shape and expected.dtype == found.dtype and (
            not expected.shape or _sums(expected) == _sums(found))
    if not agrees:
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{found.str_short(short_dtypes=False)}, but expected {expected.str_short(short_dtypes=False)} because the "
            "corresponding output of the differentiated function had JAX type "
            f"{aval.str_short(short_dtypes=False)}")


@api_boundary
def vjp(fun: Function, *primals: PyTree, has_aux: bool = False, reduce_axes: Axes = ()) -> tuple[PyTree, ...]:
    """Runs a function and returns the function that pulls cotangents back through it.

    Args:
      fun: a function of arrays and containers of them.
      primals: the arguments.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      reduce_axes: no longer supported; must be empty.

    Returns:
      `(results, pull)`, where `pull(cotangents)`, given cotangents with the structure, shapes and dtypes of
      the results, gives a tuple of the arguments' cotangents (of dtype `float0` for integers and booleans);
      and the auxiliary part with `has_aux`.

    Example:
      >>> import styrax as jax
      >>> y, pull = jax.vjp(lambda a, b: a * b, 3.0, 4.0)
      >>> pull(1.0)
      (Array(4., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    no_reduce_axes(reduce_axes)
    leaves, in_tree = tree.tree_flatten(primals)
    flat, values, outs, record = linearize_call(fun, list(map(typed, leaves)), in_tree, has_aux)
    jaxpr, residuals, nonzero_out = linear_jaxpr(record)
    args_res, opaque, places = _among_arguments(residuals, values, flat.args_tree)
    pull = VJP(jaxpr, args_res, opaque, places, flat.args_tree, flat.structure, [get_aval(x) for x in values],
               [get_aval(x) for x in outs[:flat.num_outs]], [v is not None for v in record.invars], nonzero_out,
               source.describe_function(fun))
    result = flat.results(outs), pull
    return (*result, flat.aux(outs)) if has_aux else result


def _among_arguments(residuals: Sequence[Any], values: Sequence[Any],
                     in_tree: tree.PyTreeDef) -> tuple[list[Any], list[Any], list[int | None]]:
    """The arguments as far as they are residuals, the other residuals, and which argument's leaf each residual is."""
    index = {id(x): i for i, x in enumerate(values)}
    places = [index.get(id(x)) for x in residuals]
    used = set(places)
    leaves = iter([x if i in used else NotNeeded() for i, x in enumerate(values)])
    args = [next(leaves) if structure == _LEAF else tuple([next(leaves) for _ in range(structure.num_leaves)])
            for structure in in_tree.children()]
    return args, [x for x, i in zip(residuals, places, strict=True) if i is None], places


def fwd_and_bwd(fun: Function, argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Function, Function]:
    """The forward and the backward pass of a function as two functions.

    As `vjp`, but the backward function is one and the same for all calls, so that it is compiled once.

    Args:
      fun: a function of arrays and containers of them.
      argnums: position or positions of the arguments to differentiate with regard to.
      has_aux: whether `fun` returns a pair of which the second part is not differentiated.
      jitted: whether to compile both.

    Returns:
      `(forward, backward)`: `forward(*args)` gives `(result, residuals)`, and the auxiliary part with `has_aux`;
      `backward(residuals, cotangent)` gives the cotangents of the chosen arguments.
    """
    check_callable(fun)
    single = isinstance(argnums, int)

    @wraps(fun)
    def forward(*args: Any, **kwargs: Any) -> Any:
        at = split_arguments(args, argnums)

        def chosen(*differentiated: Any) -> Any:
            given = list(args)
            for i, x in zip(at, differentiated, strict=True):
                given[i] = x
            return fun(*given, **kwargs)

        return vjp(chosen, *(args[i] for i in at), has_aux=has_aux)

    def backward(residuals: VJP, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found[0] if single else found

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
