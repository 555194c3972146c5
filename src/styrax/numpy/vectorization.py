"""`vectorize`, and functions applied along axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary, warn
from styrax.core.types.typing import ArrayLike, Object, PyTree

from .broadcasting import spread
from .conversion import asarray
from .promotion import axis_index, check_arraylike, unwrap
from .shaping import squeeze

_DIMENSIONS = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*,?)?\s*\)"
_SIGNATURE = re.compile(
    rf"^\s*{_DIMENSIONS}(?:\s*,\s*{_DIMENSIONS})*\s*->\s*{_DIMENSIONS}(?:\s*,\s*{_DIMENSIONS})*\s*$"
)


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The core dimensions that a signature such as "(m,n),(n)->(m)" names. Raises ValueError for others."""
    if not _SIGNATURE.match(signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = signature.split("->")
    inputs, outputs = ([tuple(re.findall(r"\w+", d)) for d in re.findall(_DIMENSIONS, side)] for side in sides)
    return inputs, outputs


def _bind(sizes: dict[str, int], shape: tuple, names: tuple[str, ...], where: str) -> None:
    """Notes the sizes of named dimensions. Raises ValueError where they are missing or contradict."""
    if len(shape) < len(names):
        raise ValueError(f"input with shape {shape} does not have enough dimensions for all core dimensions {names} on "
                         f"{where}")
    for name, size in zip(names, shape[len(shape) - len(names):]):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} on {where}")


def vectorize(pyfunc: Callable[..., ArrayLike | tuple[ArrayLike, ...]], *,
              excluded: Collection[int | str] = frozenset(), signature: str | None = None) -> Callable[..., PyTree]:
    """A function of single elements as a function of arrays, which are broadcast, by `vmap`.

    Args:
      pyfunc: the function.
      excluded: positions (or names) of arguments that are passed on as they are.
      signature: the dimensions that belong to one call, such as "(m,n),(n)->(m)": the last ones of each
        argument and result. By default there are none.

    Returns:
      a function of arrays. Its results have the broadcast leading axes, then those of one call. It raises ValueError
      for a signature that is malformed or does not match the arguments' shapes, and TypeError for another number of
      them.

    Raises:
      TypeError: for excluded arguments that are neither positions nor names.
      ValueError: for negative positions.

    Example:
      >>> import styrax.numpy as jnp
      >>> f = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
      >>> f(jnp.ones((4, 3)), jnp.ones(3)).shape
      (4,)
    """
    if any(not isinstance(e, (int, str)) for e in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but "
                        f"excluded={set(excluded)!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")

    @api_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _vectorized(pyfunc, excluded, signature, args, kwargs)

    wrapped.__name__ = getattr(pyfunc, "__name__", "vectorized")
    wrapped.__qualname__ = getattr(pyfunc, "__qualname__", wrapped.__name__)
    wrapped.__doc__ = (f"Vectorized version of {wrapped.__name__}. Takes arrays whose axes are broadcast.\n\n"
                       f"{getattr(pyfunc, '__doc__', None) or ''}")
    wrapped.__wrapped__ = pyfunc  # type: ignore[attr-defined]
    return wrapped


def _check_rank_promotion(arrays: Sequence[Array], where: str, signature: str | None) -> None:
    """Warns or raises for arrays of several ranks where `jax_numpy_rank_promotion` says so."""
    if config.numpy_rank_promotion.value == "allow":
        return
    promotion = (f"operands with shapes {[x.shape for x in arrays]} require rank promotion for {where} with "
                 f"signature {signature}. Set the jax_numpy_rank_promotion config option to 'allow' to avoid this.")
    if config.numpy_rank_promotion.value == "raise":
        raise ValueError(promotion)
    warn(promotion)


def _vectorized(pyfunc: Callable[..., Any], excluded: Collection[int | str], signature: str | None, args: tuple,
                kwargs: dict[str, Any]) -> Any:
    from styrax.transforms.api import vmap

    where = f"jax.numpy.vectorize of {getattr(pyfunc, '__name__', pyfunc)}"
    text = f"vectorized function with excluded={excluded} and signature={signature!r}"
    dynamic_kwargs = [k for k, x in kwargs.items() if k not in excluded and x is not None]
    absent = {i for i, x in enumerate(args) if x is None and i not in excluded}
    if absent and signature is not None:
        raise ValueError(f"{where}: Cannot pass None at locations {absent} with signature={signature!r}")
    positions = [i for i in range(len(args)) if i not in excluded and i not in absent]
    if dynamic_kwargs and signature is not None:
        raise ValueError(f"{where}: keyword arguments cannot be vectorized with a signature")
    values = [args[i] for i in positions] + [kwargs[k] for k in dynamic_kwargs]

    def call(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(positions, xs):
            full[i] = x
        named = dict(kwargs)
        named.update(zip(dynamic_kwargs, xs[len(positions):]))
        return pyfunc(*full, **named)

    if signature is None:
        inputs: list[tuple[str, ...]] = [()] * len(values)
        outputs = None
    else:
        inputs, outputs = _parse(signature)
        if len(inputs) != len(values):
            raise TypeError(f"wrong number of positional arguments: expected {len(inputs)}, got {len(values)} on "
                            f"{text}")
    arrays = [asarray(v) for v in values]
    sizes: dict[str, int] = {}
    for x, names in zip(arrays, inputs):
        _bind(sizes, x.shape, names, text)
    leading = [x.shape[: x.ndim - len(names)] for x, names in zip(arrays, inputs)]
    if len({len(s) for s in leading if s}) > 1:
        _check_rank_promotion(arrays, where, signature)
    shape = tuple(lax.broadcast_shapes(*leading)) if leading else ()

    def checked(*xs: Any) -> Any:
        out = call(*xs)
        if outputs is None:
            return out
        if len(outputs) > 1 and not isinstance(out, tuple):
            raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {out!r}")
        results = out if isinstance(out, tuple) else (out,)
        if len(results) != len(outputs):
            raise TypeError(f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} on "
                            f"{text}")
        known = dict(sizes)
        for r, names in zip(results, outputs):
            if np.ndim(r) != len(names):
                raise ValueError(f"output shape {np.shape(r)} does not match core dimensions {names} on {text}")
            _bind(known, np.shape(r), names, text)
        return out

    # One vmap per broadcast axis, from the last to the first; an argument that lacks an axis, or has size 1
    # there, is shared.
    function: Callable[..., Any] = checked
    squeezed = []
    axes: list[list[int | None]] = []
    for x, lead in zip(arrays, leading):
        drop = tuple(i for i, d in enumerate(lead) if d == 1 and shape[len(shape) - len(lead) + i] != 1)
        squeezed.append(squeeze(x, drop) if drop else x)
        offset = len(shape) - len(lead)
        axes.append([None if k < offset or k - offset in drop else 0 for k in range(len(shape))])
    for k in range(len(shape) - 1, -1, -1):
        in_axes = tuple(a[k] for a in axes)
        if all(a is None for a in in_axes):
            continue
        function = vmap(function, in_axes=in_axes)
    out = function(*squeezed)
    missing = [k for k in range(len(shape)) if all(a[k] is None for a in axes)]
    if not missing:
        return out
    from styrax.core.trees import tree

    return tree.tree_map(lambda r: _with_axes(r, shape, missing), out)


def _with_axes(x: Any, shape: tuple, missing: Sequence[int]) -> Any:
    """A result with the broadcast axes that no argument had."""
    x = lax.expand_dims(asarray(x), tuple(missing))
    return spread(x, (*shape, *x.shape[len(shape):]))


def apply_along_axis(func1d: Callable[..., PyTree], axis: int, arr: ArrayLike, *args: Object,
                     **kwargs: Object) -> Array:
    """A function of vectors applied to every vector along an axis, by `vmap`.

    Args:
      func1d: a function of a vector (and further arguments) with an array of any rank as result.
      axis: the axis of the vectors, whose place the axes of a result take.
      arr: an array.
      *args, **kwargs: further arguments of the function.

    Returns:
      an array of the shape of `arr` with that of a result in place of `axis`.
    """
    from styrax.transforms.api import vmap

    check_arraylike("apply_along_axis", arr)
    arr = asarray(unwrap(arr))
    axis = axis_index(axis, arr.ndim)

    def function(x: Any) -> Any:
        return func1d(x, *args, **kwargs)

    for _ in range(arr.ndim - axis - 1):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(func: Callable[[Array, int], Array], a: ArrayLike, axes: Sequence[int]) -> Array:
    """A function of an array and an axis, applied for one axis after the other.

    Args:
      func: a function of an array and an axis; it keeps the axis or removes it.
      a: an array.
      axes: the axes.

    Returns:
      an array of the rank of `a`: axes that were removed are put back, with size 1.

    Raises:
      ValueError: where a result has another rank.
    """
    check_arraylike("apply_over_axes", a)
    out = asarray(unwrap(a))
    for axis in axes:
        result = func(out, axis)
        if result.ndim == out.ndim:
            out = result
        elif result.ndim == out.ndim - 1:
            out = lax.expand_dims(result, (axis_index(axis, out.ndim),))
        else:
            raise ValueError("function is not returning an array of the correct shape")
    return out


