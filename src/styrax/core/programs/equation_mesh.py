"""The mesh that an equation was written under, as its types tell it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..arrays.mesh import state, use_abstract_mesh
from ..types import avals

if TYPE_CHECKING:
    from .jaxpr import JaxprEqn

_here: AbstractContextManager[Any] = nullcontext()


def in_its_mesh(eqn: JaxprEqn) -> AbstractContextManager[Any]:
    """Context manager: inside, the mesh of an equation is in force, where explicit sharding is in use: a program may
    have parts that see axes in another way, and be traced again where another mesh is in force."""
    if not avals.explicit:
        return _here
    told = (getattr(v.aval, "given_sharding", None) for v in (*eqn.invars, *eqn.outvars))
    mesh = next((s.mesh for s in told if s is not None), None)
    around = state.abstract
    if mesh is None or mesh is around or mesh == around or around.manual_axes and not mesh.manual_axes:
        return _here
    return use_abstract_mesh(mesh)


__all__ = ["in_its_mesh"]
