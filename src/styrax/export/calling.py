"""Calls of exported programs: `call_exported`, an equation that holds the program for the shapes at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import backends
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing.trace import get_aval
from ..core.trees import tree, tree_paths
from ..core.types import dtypes
from ..core.types.avals import ShapedArray
from ..core.types.effects import Effects
from ..transforms.custom import custom_vjp
from ..transforms.jit_rules import call_effects
from ..transforms.machine_code import compiled
from ..transforms.signature import as_operand
from .meshes import check_devices
from .refinement import refine
from .solving import Solving
from .symbolic import SymbolicDim

if TYPE_CHECKING:
    from .exported import Exported

call_exported_p = Primitive("call_exported", multiple_results=True)
call_exported_p.declare(program=lambda params: params["jaxpr"])


@call_exported_p.def_effectful_abstract_eval
def _abstract(*_: Any, jaxpr: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return jaxpr.out_avals, call_effects(jaxpr)


@call_exported_p.def_impl
def _run(*args: Any, jaxpr: ClosedJaxpr, name: str, **params: Any) -> list[Any]:
    return compiled(jaxpr, name)(*map(as_operand, args, jaxpr.in_avals))


def argument_names(exported_tree: tree.PyTreeDef) -> list[str]:
    """The arguments of an exported function as messages name them: `args[0]`, `kwargs['x']`."""
    whole = exported_tree.unflatten(range(exported_tree.num_leaves))
    return [("args", "kwargs")[path[0].idx] + tree_paths.keystr(path[1:])
            for path, _ in tree_paths.tree_flatten_with_path(whole)[0]]


def refined(exported: Exported, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The exported program for arguments of these types.

    Raises:
      ValueError: the types do not fit those that it was exported for, or the platform does not.
    """
    names = argument_names(exported.in_tree)
    for name, expected, given in zip(names, exported.in_avals, avals, strict=True):
        if len(expected.shape) != len(given.shape):
            raise ValueError(f"Rank mismatch for {name}: expected {expected.shape} and called with {given.shape}")
        if expected.dtype != given.dtype:
            raise ValueError(f"Dtype mismatch for {name}: expected {expected.dtype} and called with {given.dtype}")
        for axis, (d, size) in enumerate(zip(expected.shape, given.shape)):
            if not isinstance(d, SymbolicDim) and d != size:
                raise ValueError(f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected "
                                 f"{expected.shape} and called with {given.shape}")
    platform = backends.get().platform
    if platform not in exported.platforms and not any(c.is_platform() for c in exported.disabled_safety_checks):
        raise ValueError(f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it is "
                         f"used on '{(platform,)}'.")
    shapes = tuple(a.shape for a in avals)
    found = exported._refined.get(shapes)
    if found is None:
        values = Solving([a.shape for a in exported.in_avals], names).solve(shapes)
        found = exported._refined[shapes] = refine(exported._program, values)
    return found


def call(exported: Exported) -> Callable[..., Any]:
    """The exported function as a function of arrays."""

    def run(*leaves: Any) -> list[Any]:
        check_devices(exported.fun_name, exported.nr_devices, leaves)
        program = refined(exported, [get_aval(x) for x in leaves])
        return call_exported_p.bind(*leaves, jaxpr=program, name=exported.fun_name,
                                    uses_global_constants=exported.uses_global_constants)

    def forward(*leaves: Any) -> tuple[Any, Any]:
        return flat(*leaves), leaves

    def backward(leaves: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(call(exported.vjp())(*leaves, *cotangents))

    flat = custom_vjp(run)
    flat.defvjp(forward, backward)

    def call_exported(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != exported.in_tree:
            raise ValueError(_wrong_tree(exported, in_tree))
        return exported.out_tree.unflatten(flat(*map(_canonical, leaves)))

    return call_exported


def _canonical(x: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype != dtypes.float0:
        return x.astype(dtypes.canonicalize_dtype(x.dtype), copy=False)
    return x


def _wrong_tree(exported: Exported, given: tree.PyTreeDef) -> str:
    differences = []
    for path, found, expected, why in tree_paths.equality_errors_pytreedef(given, exported.in_tree):
        where = ("args", "kwargs")[path[0].idx] + tree_paths.keystr(path[1:]) if path else "the arguments"
        differences.append(f"   - {where} is a {found} in the invocation and a {expected} when exported, so {why}.\n")
    return ("The invocation args and kwargs must have the same pytree structure as when the function "
            f"'{exported.fun_name}' was exported, but they have the following structural differences:\n"
            + "".join(differences))
