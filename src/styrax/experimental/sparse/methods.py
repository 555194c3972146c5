"""The operators and methods of BCOO and BCSR arrays: those of dense arrays, sparsified."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import styrax.numpy as jnp

from .bcoo.array import BCOO
from .bcoo.shaping import bcoo_update_layout
from .bcsr import BCSR
from .transform import sparsify


def _reflected(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: fun(y, x)


def _sum(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The sum along dimensions, as `jnp.sum`; dense where no dimension remains."""
    return sparsify(lambda x: x.sum(*args, **kwargs))(self)


def _reshape(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array in another shape; see `bcoo_reshape`."""
    return sparsify(lambda x: x.reshape(*args, **kwargs))(self)


def _astype(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array in another dtype."""
    return sparsify(lambda x: x.astype(*args, **kwargs))(self)


def _pow(self: BCOO, other: Any) -> Any:
    exponent = isinstance(other, int) and not isinstance(other, bool)  # known, so that zeros are seen to stay zeros
    return sparsify(lambda x: x ** other)(self) if exponent else sparsify(operator.pow)(self, other)


def _getitem(self: Any, index: Any) -> Any:
    return sparsify(operator.getitem)(self, index) if _is_array(index) else sparsify(lambda x: x[index])(self)


def _is_array(index: Any) -> bool:
    return hasattr(index, "dtype")


def _iterate(self: BCOO) -> Iterator[Any]:
    return (self[i] for i in range(len(self)))


_BINARY: dict[str, Callable[..., Any]] = {"add": operator.add, "mul": operator.mul, "pow": operator.pow,
                                           "sub": operator.sub, "truediv": operator.truediv, "matmul": jnp.matmul}
_METHODS: dict[str, Any] = {
    "__abs__": sparsify(jnp.abs), "__neg__": sparsify(jnp.negative), "__pos__": sparsify(jnp.positive),
    **{f"__{name}__": sparsify(fun) for name, fun in _BINARY.items()},
    **{f"__r{name}__": sparsify(_reflected(fun)) for name, fun in _BINARY.items()},
    **{f"__{name}__": sparsify(getattr(operator, name)) for name in ("eq", "ge", "gt", "le", "lt", "ne")},
    "__getitem__": _getitem, "__pow__": _pow, "__iter__": _iterate, "sum": _sum, "reshape": _reshape, "astype": _astype,
}

for _name, _method in _METHODS.items():
    setattr(BCOO, _name, _method)
BCOO.__hash__ = None  # type: ignore[assignment]


def _update_layout(self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                   on_inefficient: str | None = "error") -> BCOO:
    """The same array with other numbers of batch and dense dimensions; see `bcoo_update_layout`."""
    return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


BCOO.update_layout = _update_layout  # type: ignore[attr-defined]
for _name in ("__matmul__", "__rmatmul__", "__getitem__"):
    setattr(BCSR, _name, _METHODS[_name])
