"""Policies for `checkpoint`: which values the forward pass keeps.

A policy is called with an equation's primitive, the abstract values of its inputs and its
parameters, and says whether its results are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ..core import hooks
from .checkpoint_names import name_p
from .partial import Offloadable, Recompute, Saveable


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keeps everything, as if there were no `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keeps nothing but the arguments: everything is computed again."""
    return False


class DotsSaveable:
    """Keeps the results of matrix products and convolutions."""

    __slots__ = ("only_if_no_batch_dims",)

    def __init__(self, only_if_no_batch_dims: bool = False):
        self.only_if_no_batch_dims = only_if_no_batch_dims

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        if self.only_if_no_batch_dims:
            if primitive.traits.contraction:
                _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
                return not lhs_batch and not rhs_batch
            return False
        return primitive.traits.contraction or primitive is hooks.lax.conv_general_dilated_p

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DotsSaveable) and self.only_if_no_batch_dims == other.only_if_no_batch_dims

    def __hash__(self) -> int:
        return hash((DotsSaveable, self.only_if_no_batch_dims))

    def __repr__(self) -> str:
        return f"DotsSaveable(only_if_no_batch_dims={self.only_if_no_batch_dims})"


class _Names:
    """A policy about values that `checkpoint_name` gave names to."""

    __slots__ = ("names",)
    field = "names"

    def __init__(self, names: Sequence[str]):
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.names == other.names  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.names))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.field}={self.names})"


class SaveOnlyTheseNames(_Names):
    """Keeps values of these names."""

    __slots__ = ()
    field = "saveable_names"

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] in self.names


class SaveAnyNamesButThese(_Names):
    """Keeps values that have a name, but not these."""

    __slots__ = ()

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] not in self.names


class SaveAnythingExceptTheseNames(_Names):
    """Keeps everything but values of these names."""

    __slots__ = ()

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        return not (primitive is name_p and params["name"] in self.names)


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """A policy that keeps values of these names (see `checkpoint_name`)."""
    return SaveOnlyTheseNames(names_which_can_be_saved)


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """A policy that keeps values that have a name, but not these."""
    return SaveAnyNamesButThese(names_not_to_save)


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """A policy that keeps everything but values of these names."""
    return SaveAnythingExceptTheseNames(names_not_to_save)


def save_from_both_policies(policy_1: Callable[..., bool], policy_2: Callable[..., bool]) -> Callable[..., bool]:
    """A policy that keeps what either of two keeps."""

    def policy(primitive: Any, *args: Any, **params: Any) -> bool:
        return policy_1(primitive, *args, **params) or policy_2(primitive, *args, **params)

    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """A policy that keeps matrix products without batch dimensions in another memory."""

    def policy(primitive: Any, *_: Any, **params: Any) -> Any:
        if primitive.traits.contraction:
            _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
            if not lhs_batch and not rhs_batch:
                return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


def save_and_offload_only_these_names(*, names_which_can_be_saved: Sequence[str],
                                      names_which_can_be_offloaded: Sequence[str], offload_src: str,
                                      offload_dst: str) -> Callable[..., Any]:
    """A policy that keeps values of some names here and of others in another memory.

    Raises ValueError where a name is in both lists.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    both = saved & offloaded
    if both:
        raise ValueError("The names should be exclusive and should not intersect in `names_which_can_be_saved` and "
                         f"`names_which_can_be_offloaded`. Got names_which_can_be_saved={names_which_can_be_saved}, "
                         f"names_which_can_be_offloaded={names_which_can_be_offloaded} and the intersecting "
                         f"names={both}")

    def policy(primitive: Any, *_: Any, **params: Any) -> Any:
        if primitive is name_p and params["name"] in saved:
            return Saveable
        if primitive is name_p and params["name"] in offloaded:
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


dots_saveable = DotsSaveable()
dots_with_no_batch_dims_saveable = DotsSaveable(only_if_no_batch_dims=True)

checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
