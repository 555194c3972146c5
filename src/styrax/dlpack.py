"""Exchange of arrays with other libraries without a copy."""

from __future__ import annotations

from .core.arrays.dlpack import from_dlpack, is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]
