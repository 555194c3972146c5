"""Checks of derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .core.trees import tree
from .core.types import dtypes
from .core.types.typing import DTypeLike, Function

Tolerance = float | Mapping[DTypeLike, float]  # for all values, or by dtype

# how far a derivative may be off, relative and absolute, and the step of the differences, by bits of precision
_TOLERANCE = {"float16": 1e-1, "bfloat16": 2e-1, "float32": 1e-2, "complex64": 1e-2, "float64": 1e-5,
              "complex128": 1e-5}
_STEP = {"float16": 1e-1, "bfloat16": 1e-1, "float32": 1e-4, "complex64": 1e-4, "float64": 1e-4, "complex128": 1e-4}


def _name(x: Any) -> str:
    return dtypes.dtype(x).name


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype(x), np.inexact)


def _coarsest(table: dict[str, float], *trees: Any) -> float:
    found = [table[_name(x)] for t in trees for x in tree.tree_leaves(t) if _name(x) in table]
    return max(found, default=1e-5)


def _tolerance(given: Tolerance | None, *trees: Any) -> float:
    """The tolerance for values of these trees: the given one, or the coarsest of what their dtypes have."""
    if given is not None and not isinstance(given, Mapping):
        return given
    named = {np.dtype(dtype).name: bound for dtype, bound in (given or {}).items()}
    return _coarsest({**_TOLERANCE, **named}, *trees)


def _random_like(rng: np.random.RandomState, x: Any) -> Any:
    shape, dtype = np.shape(x), dtypes.dtype(x)
    if not _is_inexact(x):
        return np.zeros(shape, dtypes.float0)
    value = rng.randn(*shape)
    if dtypes.issubdtype(dtype, np.complexfloating):
        value = value + 1j * rng.randn(*shape)
    return np.asarray(value, dtype)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    from . import numpy as jnp

    def move(x: Any, t: Any) -> Any:
        return x if not _is_inexact(x) else jnp.asarray(np.asarray(x) + np.asarray(t) * step, dtypes.dtype(x))

    return tree.tree_map(move, args, tangents)


def _difference(f: Callable, args: Sequence[Any], tangents: Sequence[Any], step: float) -> Any:
    """The derivative of `f` along the tangents, by a central difference."""
    high, low = f(*_moved(args, tangents, step / 2)), f(*_moved(args, tangents, -step / 2))

    def slope(a: Any, b: Any) -> Any:
        if not _is_inexact(a):
            return np.zeros(np.shape(a), dtypes.float0)
        wide = np.complex128 if dtypes.issubdtype(dtypes.dtype(a), np.complexfloating) else np.float64
        return (np.asarray(a).astype(wide) - np.asarray(b).astype(wide)) / step

    return tree.tree_map(slope, high, low)


def _assert_close(found: Any, wanted: Any, atol: float, rtol: float, message: str) -> None:
    def check(a: Any, b: Any) -> None:
        if dtypes.dtype(a) == dtypes.float0 or dtypes.dtype(b) == dtypes.float0:
            return
        wide = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
        np.testing.assert_allclose(np.asarray(a).astype(wide), np.asarray(b).astype(wide), atol=atol, rtol=rtol,
                                   err_msg=message)

    tree.tree_map(check, found, wanted)


def _inner(a: Any, b: Any) -> Any:
    total = 0.0
    for x, y in zip(tree.tree_leaves(a), tree.tree_leaves(b), strict=True):
        if dtypes.dtype(x) != dtypes.float0 and dtypes.dtype(y) != dtypes.float0:
            total = total + np.vdot(np.asarray(x).astype(np.complex128), np.asarray(y).astype(np.complex128)).real
    return total


def check_jvp(f: Function, f_jvp: Function, args: Sequence[Any], atol: Tolerance | None = None,
              rtol: Tolerance | None = None, eps: float | None = None, err_msg: str = "") -> None:
    """Checks `f_jvp(args, tangents) -> (values, tangents)` against differences of `f`, in a random direction.

    Raises:
      AssertionError: it is further off than `atol` and `rtol` allow.
    """
    step = _coarsest(_STEP, args) if eps is None else eps
    rng = np.random.RandomState(0)
    tangents = tree.tree_map(lambda x: _random_like(rng, x), tuple(args))
    values, out_tangents = f_jvp(tuple(args), tangents)
    wanted = f(*args)
    absolute, relative = _tolerance(atol, wanted, args), _tolerance(rtol, wanted, args)
    _assert_close(values, wanted, absolute, relative, f"{err_msg} value of the JVP".strip())
    _assert_close(out_tangents, _difference(f, args, tangents, step), absolute, relative,
                  f"{err_msg} JVP tangent".strip())


def check_vjp(f: Function, f_vjp: Function, args: Sequence[Any], atol: Tolerance | None = None,
              rtol: Tolerance | None = None, eps: float | None = None, err_msg: str = "") -> None:
    """Checks `f_vjp(*args) -> (values, pull)` against differences of `f`, in random directions.

    Raises:
      AssertionError: it is further off than `atol` and `rtol` allow.
    """
    step = _coarsest(_STEP, args) if eps is None else eps
    rng = np.random.RandomState(0)
    values, pull = f_vjp(*args)
    wanted = f(*args)
    absolute, relative = _tolerance(atol, wanted, args), _tolerance(rtol, wanted, args)
    _assert_close(values, wanted, absolute, relative, f"{err_msg} value of the VJP".strip())
    tangents = tree.tree_map(lambda x: _random_like(rng, x), tuple(args))
    out_tangents = _difference(f, args, tangents, step)
    cotangents = tree.tree_map(lambda x: _random_like(rng, x), wanted)
    conjugated = tree.tree_map(lambda x: x if dtypes.dtype(x) == dtypes.float0 else np.conj(x), cotangents)
    pulled = tree.tree_map(lambda x: x if dtypes.dtype(x) == dtypes.float0 else np.conj(np.asarray(x)),
                           pull(conjugated))
    _assert_close(_inner(tangents, pulled), _inner(out_tangents, cotangents), absolute, relative,
                  f"{err_msg} VJP cotangent projection".strip())


def check_grads(f: Function, args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
                atol: Tolerance | None = None, rtol: Tolerance | None = None, eps: float | None = None) -> None:
    """Checks the derivatives of a function against finite differences, in one random direction each.

    Args:
      f: the function, of trees of arrays.
      args: where to check it.
      order: derivatives up to this order are checked.
      modes: "fwd" for forward mode, "rev" for reverse mode.
      atol, rtol: how far derivatives may be off, for all dtypes or some of them; by default, what their dtypes allow.
      eps: the step of the differences.

    Raises:
      AssertionError: a derivative does not match.

    Example:
      >>> import styrax.numpy as jnp
      >>> import styrax.test_util as test_util
      >>> test_util.check_grads(jnp.sin, (0.5,), order=2)
    """
    from . import jvp, vjp

    modes = [modes] if isinstance(modes, str) else list(modes)

    def check(f: Callable, args: tuple, order: int, path: str) -> None:
        if "fwd" in modes:
            where = f"{path}jvp of order {order}"
            check_jvp(f, lambda primals, tangents: jvp(f, primals, tangents), args, atol, rtol, eps, where)
            if order > 1:
                rng = np.random.RandomState(order)
                tangents = tree.tree_map(lambda x: _random_like(rng, x), args)
                check(lambda *xs: jvp(f, xs, tangents)[1], args, order - 1, f"{where}: ")
        if "rev" in modes:
            where = f"{path}vjp of order {order}"
            check_vjp(f, lambda *xs: vjp(f, *xs), args, atol, rtol, eps, where)
            if order > 1:
                rng = np.random.RandomState(order)
                cotangents = tree.tree_map(lambda x: _random_like(rng, x), f(*args))
                check(lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, f"{where}: ")

    check(f, tuple(args), order, "")
