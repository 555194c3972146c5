"""References and all that is known of them, in one place."""

from __future__ import annotations

from ..core.types.avals import AbstractRef
from . import ref_rules
from .discharge import (
    OnContents,
    discharge_closed,
    discharge_state,
    eval_discharged,
    has_refs,
)
from .ref_indexing import NDIndexer, Slice, ds
from .references import (
    Ref,
    TransformedRef,
    addupdate_p,
    empty_ref,
    free_ref,
    freeze,
    freeze_p,
    get_p,
    new_ref,
    new_ref_p,
    ref_addupdate,
    ref_get,
    ref_set,
    ref_swap,
    swap_p,
)

__all__ = [
    "AbstractRef",
    "NDIndexer",
    "Ref",
    "Slice",
    "TransformedRef",
    "addupdate_p",
    "OnContents",
    "discharge_closed",
    "discharge_state",
    "ds",
    "empty_ref",
    "eval_discharged",
    "free_ref",
    "freeze",
    "freeze_p",
    "get_p",
    "has_refs",
    "new_ref",
    "new_ref_p",
    "ref_addupdate",
    "ref_get",
    "ref_rules",
    "ref_set",
    "ref_swap",
    "swap_p",
]
