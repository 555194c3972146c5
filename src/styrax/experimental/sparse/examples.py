"""Sparse arrays under `vmap`: what one example of a batch of them is, and what many of them are."""

from __future__ import annotations

from typing import Any

from styrax.transforms.containers import Container, containers


def map_over_batches(kind: Any) -> None:
    """Has `vmap` map over the batch dimensions of a class of sparse arrays, which knows its shape by itself."""
    containers[kind] = Container(_element, _stacked)


def _check_axis(mat: Any, axis: int, role: str) -> None:
    if not 0 <= axis < mat.n_batch:
        name = type(mat).__name__
        raise ValueError(f"Cannot map {role}_axis={axis} for {name} array with n_batch={mat.n_batch}. {role}_axes for "
                         f"batched {name} operations must correspond to a batch dimension.")


def _with_shape(mat: Any, shape: tuple[Any, ...]) -> Any:
    return type(mat).tree_unflatten({**mat._info._asdict(), "shape": shape}, mat._bufs)


def _element(mat: Any, axis: int) -> Any:
    _check_axis(mat, axis, "in")
    return _with_shape(mat, (*mat.shape[:axis], *mat.shape[axis + 1:]))


def _stacked(mat: Any, axis: int) -> Any:
    _check_axis(mat, axis, "out")
    return _with_shape(mat, (*mat.shape[:axis], mat.data.shape[axis], *mat.shape[axis:]))
