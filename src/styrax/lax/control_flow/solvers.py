"""`custom_root` and `custom_linear_solve`: derivatives of solvers by the implicit function theorem."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Var, call_effects, eval_jaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.core.types.typing import PyTree
from styrax.transforms import ad, batching

from .bodies import Body, as_array, either, renumber_effects, split_list, trace_body


def _check_tree(who: str, have: Any, what: str, want: Any) -> None:
    if have != want:
        raise TypeError(f"{who}() output pytree structure must match {what}, got {have} and {want}.")


# -- custom_root ----------------------------------------------------------------------------------


@api_boundary
def custom_root(f: Callable[[Any], Any], initial_guess: PyTree, solve: Callable[..., Any],
                tangent_solve: Callable[..., Any], has_aux: bool = False) -> PyTree:
    """A root of `f`, differentiable whatever the method that finds it.

    Args:
      f: function of which a root is sought; its argument and result have one tree and shapes.
      initial_guess: tree of arrays.
      solve: `solve(f, initial_guess)` gives a root (and auxiliary output with `has_aux`).
      tangent_solve: `tangent_solve(g, y)` solves `g(x) = y` for a linear function `g`.
      has_aux: whether `solve` returns a pair whose second part has no derivative.

    Returns:
      what `solve` returns; with regard to what `f` closes over, it is differentiated implicitly.

    Raises:
      TypeError: `f` or `solve` return a tree of another structure than `initial_guess`.
    """
    from styrax.transforms import api
    from styrax.transforms.custom import custom_jvp

    guess, guess_tree = tree.tree_flatten(initial_guess)
    in_tree = tree.tree_structure((initial_guess,))
    avals = [get_aval(x) for x in guess]
    f_body = trace_body("custom_root", f, in_tree, avals)
    _check_tree("f", f_body.out_tree, "initial_guess", guess_tree)

    def solve_it(x: Any) -> Any:
        return solve(f, x)

    solve_body = trace_body("custom_root", solve_it, in_tree, avals)
    solution_tree = solve_body.out_tree
    if has_aux:
        children = solution_tree.children()
        if solution_tree.node_data() is None or len(children) != 2:
            raise ValueError(f"with has_aux=True, solve() must return a pair, got {solution_tree}")
        solution_tree = children[0]
    _check_tree("solve", solution_tree, "initial_guess", guess_tree)

    def linearize_and_solve(x: Any, y: Any) -> Any:
        return tangent_solve(api.linearize(f, x)[1], y)

    pair = tree.tree_structure((initial_guess, initial_guess))
    tangent_body = trace_body("custom_root", linearize_and_solve, pair, avals + avals)
    _check_tree("tangent_solve", tangent_body.out_tree, "x", guess_tree)
    num_f, num_tangent, size = len(f_body.captured), len(tangent_body.captured), len(guess)

    def _custom_root(*args: Any) -> list[Any]:
        return eval_jaxpr(solve_body.jaxpr.jaxpr, solve_body.jaxpr.consts, *args[num_f + num_tangent:])

    def _root_jvp(primals: tuple, tangents: tuple) -> tuple[list[Any], list[Any]]:
        outs = find_root(*primals)
        solution, aux = outs[:size], outs[size:]
        consts, consts_dot = primals[:num_f], tangents[:num_f]

        def residual(*args: Any) -> list[Any]:
            return eval_jaxpr(f_body.jaxpr.jaxpr, f_body.jaxpr.consts, *args)

        # f(c, x(c)) = 0, so f_x x' = -f_c c'
        _, moved = api.jvp(lambda *cs: residual(*cs, *solution), tuple(consts), tuple(consts_dot))
        solution_dot = eval_jaxpr(tangent_body.jaxpr.jaxpr, tangent_body.jaxpr.consts,
                                  *primals[num_f:num_f + num_tangent], *solution, *map(lax.neg, moved))
        return outs, [*solution_dot, *(ad.zeros_like_aval(get_aval(x).to_tangent_aval()) for x in aux)]

    find_root = custom_jvp(_custom_root)
    find_root.defjvp(_root_jvp)
    outs = find_root(*f_body.captured, *tangent_body.captured, *solve_body.captured, *guess)
    return tree.tree_unflatten(solve_body.out_tree, map(as_array, outs))


# -- custom_linear_solve --------------------------------------------------------------------------


class _LinearSolveTuple(NamedTuple):
    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self) -> _LinearSolveTuple:
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _solve_program(params: dict[str, Any]) -> ClosedJaxpr:
    """`solve` as a program of all operands, those that only the others read included."""
    lengths, jaxprs = params["const_lengths"], params["jaxprs"]
    solve = jaxprs.solve.jaxpr
    consts, b = split_list(solve.invars, [lengths.solve])
    others = [[Var(aval) for aval in jaxpr.in_avals[:number]] if number else []
              for jaxpr, number in zip(jaxprs, lengths, strict=True)]
    operands = itertools.chain(*_LinearSolveTuple(*others)._replace(solve=consts), b)
    return ClosedJaxpr(solve.replace(invars=list(operands)), jaxprs.solve.consts)


linear_solve_p = Primitive("custom_linear_solve", multiple_results=True)
linear_solve_p.declare(nan=True, implementation=_solve_program)


@api_boundary
def custom_linear_solve(matvec: Callable[[Any], Any], b: PyTree, solve: Callable[..., Any],
                        transpose_solve: Callable[..., Any] | None = None, symmetric: bool = False,
                        has_aux: bool = False) -> PyTree:
    """The solution of `matvec(x) = b`, differentiable whatever the method that finds it.

    Args:
      matvec: linear function; what it closes over can be differentiated.
      b: tree of arrays, the right-hand side.
      solve: `solve(matvec, b)` gives the solution (and auxiliary output with `has_aux`).
      transpose_solve: `transpose_solve(vecmat, b)` solves with the transposed function; needed for
        reverse mode where `symmetric` does not hold.
      symmetric: whether `matvec` is its own transpose.
      has_aux: whether the solvers return a pair whose second part has no derivative.

    Returns:
      the solution, a tree like `b`; with `has_aux` a pair of it and what the solver returned besides.

    Raises:
      TypeError: a solution, or what `matvec` gives, has another tree than `b`.
      ValueError: shapes of results differ from those of `b`.
    """
    from styrax.transforms import api

    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, b_tree = tree.tree_flatten(b)
    in_tree = tree.tree_structure((b,))
    avals = [get_aval(x) for x in leaves]

    def checked(body: Body, name: str, aux: bool = False) -> Body:
        out_avals, out_tree = body.out_avals, body.out_tree
        if aux:
            children = out_tree.children()
            if out_tree.node_data() is None or len(children) != 2:
                raise ValueError(f"with has_aux=True, {name}() must return a pair, got {out_tree}")
            out_tree = children[0]
            out_avals = out_avals[: out_tree.num_leaves]
        shapes, wanted = [a.shape for a in out_avals], [a.shape for a in avals]
        if shapes != wanted:
            raise ValueError(f"{name}() output shapes must match b, got {shapes} and {wanted}")
        _check_tree(name, out_tree, "b", b_tree)
        return body

    matvec_body = checked(trace_body("custom_linear_solve", matvec, in_tree, avals), "matvec")

    def solver(solve: Callable, apply: Callable) -> Callable:
        return lambda x: solve(apply, x)

    solve_body = checked(
        trace_body("custom_linear_solve", solver(solve, matvec), in_tree, avals), "solve", has_aux
    )
    vecmat_body = transpose_body = None
    if transpose_solve is not None:
        if symmetric:
            vecmat, vecmat_body = matvec, matvec_body
        else:
            transposed = api.linear_transpose(matvec, tree.tree_unflatten(b_tree, avals))

            def vecmat(x: Any) -> Any:
                return transposed(x)[0]

            vecmat_body = checked(trace_body("custom_linear_solve", vecmat, in_tree, avals), "vecmat")
        transpose_body = checked(
            trace_body("custom_linear_solve", solver(transpose_solve, vecmat), in_tree, avals),
            "transpose_solve",
            has_aux,
        )
    bodies = _LinearSolveTuple(matvec_body, vecmat_body, solve_body, transpose_body)
    consts = [c for body in bodies if body is not None for c in body.captured]
    outs = linear_solve_p.bind(
        *consts,
        *leaves,
        const_lengths=_LinearSolveTuple(*(len(body.captured) if body else 0 for body in bodies)),
        jaxprs=_LinearSolveTuple(*(body.jaxpr if body else None for body in bodies)),
    )
    return tree.tree_unflatten(solve_body.out_tree, outs)


def _solution(*args: Any, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple) -> list[Any]:
    _, _, solve_consts, _, b = split_list(args, const_lengths)
    return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *solve_consts, *b)


linear_solve_p.def_impl(lambda *args, **params: [as_array(x) for x in _solution(*args, **params)])


@linear_solve_p.def_effectful_abstract_eval
def _linear_solve_abstract_eval(
    *avals: Any, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple
) -> tuple[list[Any], Any]:
    return jaxprs.solve.out_avals, renumber_effects(call_effects(jaxprs.solve), sum(const_lengths[:2]).__add__)


def _linear_solve_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    const_lengths: _LinearSolveTuple,
    jaxprs: _LinearSolveTuple,
) -> tuple[list[Any], list[Any]]:
    """`A x = b` gives `A x' = b' - A' x`."""
    params = dict(const_lengths=const_lengths, jaxprs=jaxprs)
    outs = linear_solve_p.bind(*primals, **params)
    *_, b = split_list(primals, const_lengths)
    matvec_dot, _, _, _, b_dot = split_list(tangents, const_lengths)
    matvec_consts = list(primals[: const_lengths.matvec])
    x, aux = outs[: len(b)], outs[len(b) :]
    if all(type(t) is ad.Zero for t in [*matvec_dot, *b_dot]):
        return outs, [ad.Zero.from_primal_value(o) for o in outs]
    rhs = list(b_dot)
    if any(type(t) is not ad.Zero for t in matvec_dot):
        zeros = [ad.Zero.from_primal_value(v) for v in x]
        _, moved = ad.jvp_flat(
            lambda *args: eval_jaxpr(jaxprs.matvec.jaxpr, jaxprs.matvec.consts, *args),
            [*matvec_consts, *x],
            [*matvec_dot, *zeros],
        )
        rhs = [
            t if type(m) is ad.Zero else ad.add_tangents(t, lax.neg(m))
            for t, m in zip(rhs, moved, strict=True)
        ]
    consts = primals[: len(primals) - len(b)]
    x_dot = linear_solve_p.bind(*consts, *map(ad.instantiate_zeros, rhs), **params)[: len(b)]
    return outs, [*x_dot, *(ad.Zero.from_primal_value(a) for a in aux)]


def _linear_solve_transpose(
    cts: Sequence[Any], *args: Any, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple
) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve"
        )
    *consts, b = split_list(args, const_lengths)
    num_consts = len(args) - len(b)
    if all(type(ct) is ad.Zero for ct in cts[: len(b)]):
        return [None] * num_consts + [ad.Zero(x.aval.to_cotangent_aval()) for x in b]
    flipped = _LinearSolveTuple(*consts).transpose()
    found = linear_solve_p.bind(
        *(c for group in flipped for c in group),
        *map(ad.instantiate_zeros, cts[: len(b)]),
        const_lengths=const_lengths.transpose(),
        jaxprs=jaxprs.transpose(),
    )
    return [None] * num_consts + found[: len(b)]


def _linear_solve_batch(
    axis_data: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    const_lengths: _LinearSolveTuple,
    jaxprs: _LinearSolveTuple,
) -> tuple[list[Any], list[Any]]:
    *consts, b = split_list(args, const_lengths)
    *consts_d, b_d = split_list(dims, const_lengths)
    consts_b = _LinearSolveTuple(*([d is not None for d in group] for group in consts_d))
    size = len(b)
    b_b = [d is not None for d in b_d]

    def batched(name: str, flags: list[bool], instantiate: Any) -> tuple[Any, list[bool]]:
        jaxpr: ClosedJaxpr | None = getattr(jaxprs, name)
        if jaxpr is None:
            return None, flags
        return batching.batch_jaxpr(jaxpr, axis_data, getattr(consts_b, name) + flags, instantiate)

    # solution and right-hand side are batched together, as far as one needs the other
    while True:
        _, solve_out = batched("solve", b_b, False)
        x_b = either(b_b, solve_out[:size])
        _, matvec_out = batched("matvec", x_b, False)
        joined = either(x_b, matvec_out)
        if joined == b_b:
            break
        b_b = joined
    num_aux = len(solve_out) - size
    solve, solve_out = batched("solve", b_b, b_b + [False] * num_aux)
    new = _LinearSolveTuple(
        batched("matvec", b_b, b_b)[0],
        batched("vecmat", b_b, b_b)[0],
        solve,
        batched("transpose_solve", b_b, b_b + [False] * num_aux)[0],
    )
    moved = [
        batching.moveaxis(x, d, 0) if d is not None else x
        for group, group_d in zip(consts, consts_d, strict=True)
        for x, d in zip(group, group_d, strict=True)
    ]
    b = [
        batching.bdim_at_front(x, d, axis_data.size) if flag else x
        for x, d, flag in zip(b, b_d, b_b, strict=True)
    ]
    outs = linear_solve_p.bind(*moved, *b, const_lengths=const_lengths, jaxprs=new)
    return outs, [0 if flag else None for flag in solve_out]


rules.jvps[linear_solve_p] = _linear_solve_jvp
rules.transposes[linear_solve_p] = _linear_solve_transpose
rules.fancy_batchers[linear_solve_p] = _linear_solve_batch
rules.stablehlos[linear_solve_p] = lambda m, *args, **params: m.call_traced(
    lambda *xs: _solution(*xs, **params), *args
)


__all__ = ["custom_linear_solve", "custom_root", "linear_solve_p"]
