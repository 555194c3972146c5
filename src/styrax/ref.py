"""References: arrays that can be changed in place."""

from __future__ import annotations

from .core.types.avals import AbstractRef
from .transforms.refs import Ref, empty_ref, free_ref, freeze, new_ref
from .transforms.refs import ref_addupdate as addupdate
from .transforms.refs import ref_get as get
from .transforms.refs import ref_set as set
from .transforms.refs import ref_swap as swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
