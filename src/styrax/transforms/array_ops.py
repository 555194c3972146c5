"""The few array operations that transformations themselves need.

Zero tangents, moved batch axes and reads of references are ordinary programs on arrays. Their
primitives live in `lax`, above this folder, which installs itself here when it is imported.
"""

from __future__ import annotations

from typing import Any

lax: Any = None


def install(namespace: Any) -> None:
    """Makes `namespace` (with `full`, `broadcast_in_dim`, `transpose`, …) the provider of operations."""
    global lax
    lax = namespace
