"""Foreign functions: native code with XLA's calling convention as part of programs."""

from __future__ import annotations

from ..lazy import names as _names

_HOMES = {
    "core.types.avals": "abstract_token",
    "ffi.foreign_calls": "build_ffi_lowering_function ffi_call ffi_lowering",
    "ffi.targets": (
        "TypeRegistration include_dir pycapsule register_ffi_target register_ffi_target_as_batch_partitionable "
        "register_ffi_type register_ffi_type_id"),
}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.types.avals import abstract_token
    from .foreign_calls import build_ffi_lowering_function, ffi_call, ffi_lowering
    from .targets import (
        TypeRegistration,
        include_dir,
        pycapsule,
        register_ffi_target,
        register_ffi_target_as_batch_partitionable,
        register_ffi_type,
        register_ffi_type_id,
    )
else:
    __getattr__, __dir__, __all__ = _names(__name__, _HOMES)
