"""What the array API standard lets programs ask of a namespace: its dtypes, devices and limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.arrays.devices import Device
from styrax.core.settings import config
from styrax.core.types.typing import DType, ShardingLike

__array_api_version__ = "2024.12"

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_WIDE = ("int64", "uint64", "float64", "complex128")


class ArrayNamespaceInfo:
    """The inspection interface of the standard (https://data-apis.org/array-api/2024.12/API_specification/inspection)."""

    def capabilities(self) -> dict[str, Any]:
        """What does not hold everywhere: results whose shapes depend on values are not supported."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: arrays are where their operands are."""
        return None

    def devices(self) -> list[Device | None]:
        """None, and the devices at hand."""
        return [None, *backends.get().devices()]

    def default_dtypes(self, *, device: Device | ShardingLike | None = None) -> dict[str, DType]:
        """The dtypes of Python's numbers, by kind."""
        bits = 64 if config.enable_x64.value else 32
        return {"real floating": np.dtype(f"float{bits}"), "complex floating": np.dtype(f"complex{2 * bits}"),
                "integral": np.dtype(f"int{bits}"), "indexing": np.dtype(f"int{bits}")}

    def dtypes(self, *, device: Device | ShardingLike | None = None,
               kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of the standard that arrays can have, by name.

        Args:
          device: not looked at: all devices have the same.
          kind: which ones, such as "real floating", "numeric" or several such names; all of them for None.

        Raises:
          KeyError: for what is no kind.
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        names = [name for k in kinds for name in _KINDS[k]]
        return {name: np.dtype(name) for name in names if name not in _WIDE or config.enable_x64.value}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The inspection interface of this namespace.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.__array_namespace_info__().dtypes(kind="real floating")
      {'float32': dtype('float32')}
    """
    return ArrayNamespaceInfo()
