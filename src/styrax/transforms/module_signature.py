"""What the module of a lowered program tells of its arguments and results: how they are spread, whose memory results
take over, and what the results are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..core.arrays.array import Array
from ..core.arrays.devices import Device, Sharding
from ..core.arrays.gspmd_sharding import GSPMDSharding
from ..core.arrays.mesh import AbstractMesh, Mesh, in_force
from ..core.arrays.shardings import NamedSharding, as_named
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.trees import tree_paths
from ..core.trees.treedef import PyTreeDef
from ..core.types.avals import ShapedArray

Told = tuple[list[str], list[Sharding | None]]  # of each argument, or each result: attributes; how it is spread


def given_shardings(leaves: Sequence[Any]) -> list[Sharding | None]:
    """Where the arguments of a function are; None for those that may be anywhere."""
    found = [s if isinstance(s := getattr(x, "sharding", None), Sharding) and (
        not isinstance(x, Array) or x.committed) else None for x in leaves]
    return [as_named(s) if isinstance(s, GSPMDSharding) else s for s in found]


def signature(out_tree: PyTreeDef, closed: ClosedJaxpr, ins: Sequence[Any], outs: Sequence[Any],
              donated: Sequence[bool] = (), given: Sequence[Sharding | None] = ()) -> tuple[Told, Told]:
    """What is told of the arguments and of the results of `closed`, a program on arrays.

    Args:
      out_tree: the structure of the results.
      ins, outs: the shardings that are asked for, other objects where none is.
      donated: the arguments that are.
      given: how the arguments were spread for which the program was traced.
    """
    arguments = _spread(ins, closed.in_avals, given)
    paths = tree_paths.tree_leaves_with_path(out_tree.unflatten(range(out_tree.num_leaves)))
    names = [f"jax.result_info = {json.dumps('result' + tree_paths.keystr(path))}" for path, _ in paths]
    names = names[:len(closed.out_avals)] + [""] * (len(closed.out_avals) - len(names))
    return (_donations(donated, closed, arguments), arguments), (names, _spread(outs, closed.out_avals))


def _spread(said: Sequence[Any], avals: Sequence[Any], given: Sequence[Sharding | None] = ()) -> list[Sharding | None]:
    if len(said) != len(avals):  # values of a library's own type, which are several arrays
        return [None] * len(avals)
    told = [None] * (len(avals) - len(given)) + [s if isinstance(s, NamedSharding) else None for s in given]
    told = [getattr(a, "given_sharding", None) or g for a, g in zip(avals, told, strict=True)]
    return [s if isinstance(s, Sharding) else t for s, t in zip(said, told, strict=True)]


def check_platform(shardings: Sequence[Any]) -> None:
    """Sees to it that the devices are known for which a program of these shardings is to be lowered.

    Raises:
      ValueError: they are over meshes without devices alone, or over one of another size than that with devices.
    """
    used = [s.mesh for s in shardings if isinstance(s, NamedSharding) and not s.mesh.empty]
    meshes = set(map(type, used))
    around = in_force()
    known = next((m for m in used if isinstance(m, Mesh)), None)
    for m in used:
        if known is not None and m.size != known.size:
            raise ValueError(f"{type(m).__name__} size: {m.size} does not match the device assignment size: "
                             f"{known.size}")
    if meshes == {AbstractMesh} and (around.empty or isinstance(around, AbstractMesh)):
        raise ValueError("Passing lowering_platforms via jax.export or jit(f).trace(*args).lower(lowering_platforms="
                         "...) is required when only AbstractMesh exists in a jitted computation. Got context mesh: "
                         "Mesh()")


def check_devices(said: Sequence[Any], given: Sequence[Sharding | None], devices: Sequence[Device] | None) -> None:
    """Sees to it that a program for arguments and results of these shardings can be compiled for `devices`.

    Raises:
      RuntimeError: it was lowered for a mesh without devices, and none are given.
      ValueError: they are others than those of the shardings, or not as many.
    """
    meshes = [s.mesh for s in (*said, *given) if isinstance(s, NamedSharding) and not s.mesh.empty]
    known = next((m for m in meshes if isinstance(m, Mesh)), None)
    if known is not None:
        if devices is not None and tuple(devices) != tuple(known.devices.flat):
            raise ValueError("device_assignment passed to `.compile` must match the device_assignment calculated from "
                             f"array shardings and out_shardings. Got {devices} and {list(known.devices.flat)}")
    elif meshes and devices is None:
        raise RuntimeError("device_assignment cannot be `None` during compilation. Please pass a tuple of devices to "
                           "`.compile(device_assignment=)`")
    elif meshes and devices is not None and meshes[0].size != len(devices):
        raise ValueError(f"The size of abstract mesh {meshes[0].size} in {meshes[0]} must match the length of device "
                         f"assignment: {len(devices)}")


def _donations(donated: Sequence[bool], closed: ClosedJaxpr, told: Sequence[Sharding | None]) -> list[str]:
    """The attributes by which arguments give their memory to results."""
    notes = [""] * len(told)
    if len(donated) != len(told):
        return notes
    free: list[Any] = [(a.shape, a.dtype) if isinstance(a, ShapedArray) else None for a in closed.out_avals]
    for i, (aval, gives) in enumerate(zip(closed.in_avals, donated, strict=True)):
        if gives and isinstance(aval, ShapedArray) and (aval.shape, aval.dtype) in free:
            k = free.index((aval.shape, aval.dtype))
            free[k] = None
            spread = isinstance(told[i], NamedSharding)
            notes[i] = "jax.buffer_donor = true" if spread else f"tf.aliasing_output = {k} : i32"
    return notes
