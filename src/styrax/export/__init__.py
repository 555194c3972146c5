"""Programs that leave the process: exported functions, and sizes that are known by name only."""

from __future__ import annotations

from ..lazy import names as _names

_HOMES = {
    "export.checks": "DisabledSafetyCheck",
    "export.exported": (
        "Exported default_export_platform export maximum_supported_calling_convention_version "
        "minimum_supported_calling_convention_version"),
    "export.loading": "deserialize",
    "export.scope": "SymbolicScope",
    "export.specifications": "is_symbolic_dim symbolic_args_specs symbolic_dim_bounds symbolic_shape",
    "export.trees": "register_namedtuple_serialization register_pytree_node_serialization",
}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .checks import DisabledSafetyCheck
    from .exported import (
        Exported,
        default_export_platform,
        export,
        maximum_supported_calling_convention_version,
        minimum_supported_calling_convention_version,
    )
    from .loading import deserialize
    from .scope import SymbolicScope
    from .specifications import is_symbolic_dim, symbolic_args_specs, symbolic_dim_bounds, symbolic_shape
    from .trees import register_namedtuple_serialization, register_pytree_node_serialization
else:
    __getattr__, __dir__, __all__ = _names(__name__, _HOMES)
