"""Code that differs with the platform it runs on.

A program asks for the platform by an equation, `platform_index`, and has a branch for each: which one is meant is known
when the program is compiled or lowered for a platform. Then the branches for others go (`for_platform`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import is_concrete
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import PyTree
from styrax.transforms import ad
from styrax.transforms.jit_rules import jit_p, jit_params
from styrax.transforms.memo import per_jaxpr

from .conditionals import bind_branches, cond_p

Platforms = tuple[tuple[str, ...] | None, ...]  # for each branch the platforms that it is for; None for all others

_INT32 = np.dtype(np.int32)
platform_index_p = Primitive("platform_index")


@platform_index_p.def_abstract_eval
def _index_aval(*, platforms: Platforms) -> ShapedArray:
    return ShapedArray((), _INT32)


@platform_index_p.def_impl
def _index(*, platforms: Platforms) -> Any:
    return np.int32(index_for(platforms, backends.name_of(backends.get())))


def index_for(platforms: Platforms, platform: str) -> int:
    """Which branch is for a platform. NotImplementedError where none is."""
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    raise NotImplementedError(f"MLIR translation rule for primitive 'platform_index({platforms=})' not found for "
                              f"platform {platform}: lax.platform_dependent has neither a branch for it nor a default")


ad.defjvp_zero(platform_index_p)


def platform_dependent(*args: PyTree, default: Callable[..., Any] | None = None,
                       **per_platform: Callable[..., Any]) -> PyTree:
    """Applies the function for the platform that programs run on.

    Args:
      args: what the function is applied to.
      default: the function for all platforms that are not named.
      per_platform: functions by the name of their platform, such as `cpu=` or `tpu=`.

    Returns:
      the result of the function chosen. In programs all are traced, and the one for the platform that the program is
      compiled for runs.

    Raises:
      TypeError: something given is not callable, or, in programs, the results of the functions differ in type.
      NotImplementedError: nothing is given for the platform.
    """
    for name, fun in per_platform.items():
        if not callable(fun):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    if default is not None and not callable(default):
        raise TypeError("lax.platform_dependent: the default branch must be a callable.")
    branches = [*per_platform.values(), *([] if default is None else [default])]
    platforms: Platforms = (*((name,) for name in per_platform), *(() if default is None else (None,)))
    index = platform_index_p.bind(platforms=platforms)
    if is_concrete(index) or not branches:
        return branches[int(index)](*args)
    names = [*(f"the branch {name}" for name in per_platform), "the default branch"]
    return bind_branches("switch", index, branches, names[:len(branches)], args)


@per_jaxpr
def for_platform(closed: ClosedJaxpr, platform: str) -> ClosedJaxpr:
    """The program without what it does on other platforms. NotImplementedError where it has nothing for this one."""
    return ClosedJaxpr(_chosen(closed.jaxpr, platform), closed.consts) if _asks(closed.jaxpr) else closed


def _asks(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive is platform_index_p or any(map(_asks, jaxprs_in_params(eqn.params)))
               for eqn in jaxpr.eqns)


def _chosen(jaxpr: Jaxpr, platform: str) -> Jaxpr:
    known: dict[Any, Literal] = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is platform_index_p:
            index = index_for(eqn.params["platforms"], platform)
            known[eqn.outvars[0]] = Literal(np.int32(index), eqn.outvars[0].aval)
            continue
        invars = _read(known, eqn.invars)
        if eqn.primitive is cond_p and invars[0] is not eqn.invars[0]:
            branch = for_platform(eqn.params["branches"][invars[0].val], platform)
            eqn = eqn.replace(primitive=jit_p, invars=invars[1:], effects=branch.effects,
                              params=jit_params(branch, "branch"))
        else:
            eqn = eqn.replace(invars=invars, params={k: _changed(v, platform) for k, v in eqn.params.items()})
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns, outvars=_read(known, jaxpr.outvars))


def _read(known: dict[Any, Literal], atoms: Sequence[Any]) -> list[Any]:
    return [x if isinstance(x, Literal) else known.get(x, x) for x in atoms]


def _changed(value: Any, platform: str) -> Any:
    """A parameter with its programs for a platform."""
    if isinstance(value, ClosedJaxpr):
        return for_platform(value, platform)
    if isinstance(value, Jaxpr):
        return _chosen(value, platform) if _asks(value) else value
    return type(value)(_changed(x, platform) for x in value) if type(value) in (tuple, list) else value


backends.for_platform = for_platform
