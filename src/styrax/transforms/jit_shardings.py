"""Where `jit` was told to put arguments and results: checked, spread over the leaves, and done.

There is one device, so nothing moves. What is said of results is what their `sharding` tells, and they are committed
to it; results about which nothing is said follow the arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core import hooks
from ..core.arrays import backends, mesh
from ..core.arrays.array import Array
from ..core.arrays.devices import Device, IndivisibleError, Sharding, SingleDeviceSharding
from ..core.arrays.explicit import on_devices, sharding_of_type
from ..core.arrays.layouts import AutoLayout, Format, Layout, check_rank
from ..core.arrays.moving import moved
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo, eval_jaxpr
from ..core.tracing.staging import trace_to_jaxpr
from ..core.trees import tree
from ..core.types import avals
from .flattening import FlatFunction
from .jit_rules import UNSPECIFIED, UnspecifiedValue
from .memo import per_jaxpr
from .naming import leaf_path


class Placement:
    """The arguments of `jit` that say where arrays are to be.

    Raises:
      TypeError: a leaf of the shardings is no sharding. ValueError: a device (or backend) and something else, or
        dimensions about which nothing is said.
    """

    __slots__ = ("backend", "device", "in_shardings", "out_shardings")

    def __init__(self, in_shardings: Any, out_shardings: Any, device: Any, backend: Any):
        if backend is not None or device is not None:
            warnings.warn("backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
                          "jax.local_devices(backend=\"cpu\")[0])` on the inputs to the jitted function to get the "
                          "same behavior.", DeprecationWarning,
                          stacklevel=4)
            if device is not None and backend is not None:
                raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and {backend=}")
            for name, value in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
                if not isinstance(value, UnspecifiedValue):
                    raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")
        self.in_shardings = _checked("in_shardings", in_shardings)
        self.out_shardings = _checked("out_shardings", out_shardings)
        self.device = device
        self.backend = backend or None  # "" is the default one

    @property
    def options(self) -> tuple[Any, ...]:
        """What distinguishes this from others, as part of a key; `()` where nothing is said."""
        if not self._said and not self._single:
            return ()
        parts = tree.tree_flatten((self.in_shardings, self.out_shardings), is_leaf=_is_none)
        return tuple(parts[0]), parts[1], self.device, self.backend

    @property
    def over_mesh(self) -> bool:
        """Whether the mesh in force matters."""
        return self._said and any(isinstance(x, PartitionSpec)
                                  for x in tree.tree_leaves((self.in_shardings, self.out_shardings)))

    @property
    def _said(self) -> bool:
        return not all(isinstance(s, UnspecifiedValue) for s in (self.in_shardings, self.out_shardings))

    @property
    def _single(self) -> bool:
        return self.device is not None or self.backend is not None

    def _device_sharding(self) -> SingleDeviceSharding:
        """That of the device or backend given. RuntimeError for an unknown backend; AttributeError for neither."""
        if not mesh.state.concrete.empty:
            raise ValueError("Mesh context manager should not be used with jit when backend or device is also "
                             "specified as an argument to jit.")
        if self.device is not None:
            if not isinstance(self.device, Device):
                raise AttributeError(f"{self.device!r} of type {type(self.device).__name__} is no device: it has no "
                                     "attribute 'client'")
            return SingleDeviceSharding(self.device)
        if not isinstance(self.backend, str):
            raise AttributeError(f"{self.backend!r} of type {type(self.backend).__name__} is no platform's name: it "
                                 "has no attribute 'local_devices'")
        return SingleDeviceSharding(backends.get(self.backend).devices()[0])

    def of_arguments(self, flat: FlatFunction, avals: Sequence[Any], info: DebugInfo) -> tuple[Any, ...]:
        """One sharding for each leaf of the arguments, `UNSPECIFIED` where nothing is said.

        Raises:
          ValueError: the shardings do not fit the arguments' structure or shapes, or there are keyword arguments.
          RuntimeError: a `PartitionSpec` while no mesh is in force.
        """
        if self._single:
            return (self._device_sharding(),) * len(avals)
        given = self.in_shardings
        if isinstance(given, UnspecifiedValue):
            return (UNSPECIFIED,) * len(avals)
        args, kwargs = flat.in_tree.unflatten(avals)
        if kwargs or flat.named:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        if not _is_sharding(given):
            if isinstance(given, list):
                given = tuple(given)
            if type(given) is not tuple or len(given) != len(args):
                what = (f"the wrong length: got a tuple or list of length {len(given)} for an args tuple of length "
                        f"{len(args)}" if type(given) is tuple else f"not a tuple: got {type(given)} instead")
                raise ValueError(
                    "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In "
                    "particular, pjit in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length "
                    f"equal to the number of positional arguments. But pjit in_shardings is {what}.")
        return _fitting("in_shardings", "arguments", _spread("in_shardings", given, args), info.arg_names, avals)

    def of_results(self, out_tree: tree.PyTreeDef, avals: Sequence[Any]) -> tuple[Any, ...]:
        """The same for each leaf of the results."""
        if self._single:
            return (self._device_sharding(),) * len(avals)
        given = self.out_shardings
        if isinstance(given, UnspecifiedValue):
            return (UNSPECIFIED,) * len(avals)
        names = [f"result{leaf_path(out_tree, i)}" for i in range(len(avals))]
        return _fitting("out_shardings", "outputs", _spread("out_shardings", given, out_tree.unflatten(avals)), names,
                        avals)


def _is_none(x: Any) -> bool:
    return x is None


def _is_sharding(x: Any) -> bool:
    return (x is None or isinstance(x, (Sharding, PartitionSpec, UnspecifiedValue))
            or isinstance(x, (Format, Layout, AutoLayout)))


def _checked(name: str, shardings: Any) -> Any:
    if shardings is None or isinstance(shardings, UnspecifiedValue):
        return UNSPECIFIED
    for x in tree.tree_leaves(shardings):
        if not _is_sharding(x):
            raise TypeError(f"{name} leaf specifications are expected to be PartitionSpec instances or None, "
                            f"but got {x}")
        spec = x.spec if isinstance(x, NamedSharding) else x
        if isinstance(spec, PartitionSpec) and PartitionSpec.UNCONSTRAINED in spec.partitions:
            raise ValueError(f"Unconstrained dims are not allowed when passed to {name}: {x}")
    return shardings


def _spread(name: str, shardings: Any, full: Any) -> list[Any]:
    """The shardings by leaf of `full`. ValueError where they are no prefix of it."""
    from .mapping import flatten_axes  # (few programs have shardings)

    return flatten_axes(f"pjit {name}", shardings, full)


def _resolved(name: str, given: Any) -> Any:
    if given is None or isinstance(given, UnspecifiedValue):
        return UNSPECIFIED
    if isinstance(given, (Layout, AutoLayout)):
        return UNSPECIFIED  # arrays lie row after row
    if isinstance(given, Format):
        return UNSPECIFIED if given.sharding is None else given.sharding
    if isinstance(given, Sharding):
        if isinstance(given, NamedSharding) and given.mesh.empty:
            raise ValueError(f"One of {name} leaf specifications got an empty NamedSharding: {given} which is not "
                             "allowed.")
        return given
    current = mesh.in_force()
    if current.empty:
        raise RuntimeError(
            f"jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. You can define a "
            "context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
            f"{name} and then the mesh context manager is not required.")
    return NamedSharding(current, given)


def _fitting(option: str, what: str, given: Sequence[Any], names: Sequence[str],
             avals: Sequence[Any]) -> tuple[Any, ...]:
    """The shardings of leaves that have names and types. ValueError for one, or a layout, that does not fit."""
    found = tuple(_resolved(option, s) for s in given)
    for name, s, sharding, aval in zip(names, given, found, avals, strict=True):
        check_rank(f"One of jit {what} with pytree key path {name}", s, getattr(aval, "shape", ()))
        _check_fits(what, name, sharding, aval)
    return found


def _check_fits(what: str, path: str, sharding: Any, aval: Any) -> None:
    if isinstance(sharding, NamedSharding):
        try:
            sharding.check_compatible_aval(aval.shape)
            sharding.shard_shape(aval.shape)
        except IndivisibleError:
            raise
        except ValueError as error:
            raise ValueError(f"One of pjit {what} with pytree key path {path} is incompatible with its sharding "
                             f"annotation {sharding}: {error}") from None


def settled(in_shardings: Sequence[Any], out_shardings: Sequence[Any],
            out_avals: Sequence[Any] = ()) -> tuple[Sharding, ...] | None:
    """The shardings of all results, None where nothing is said of arguments and results, neither by their types."""
    told: Sequence[Any] = out_shardings
    if avals.explicit and out_avals:  # of operations that run at once nothing is said
        told = [t if isinstance(s, UnspecifiedValue) and t is not None else s for s, t in zip(
            out_shardings or [UNSPECIFIED] * len(out_avals), map(_told_by, out_avals), strict=True)]
    first = next((s for s in (*in_shardings, *told) if isinstance(s, Sharding)), None)
    if first is None:
        return None
    default = NamedSharding(first.mesh, PartitionSpec()) if isinstance(first, NamedSharding) else first
    return tuple(s if isinstance(s, Sharding) else default for s in told)


@per_jaxpr
def summed_as_said(closed: ClosedJaxpr, out_shardings: tuple[Any, ...]) -> ClosedJaxpr:
    """The program with results that are left to be summed along the mesh axes that the shardings name; itself where
    they are."""
    told = [sharding_of_type(s, a.shape) if isinstance(s, NamedSharding) else None
            for s, a in zip(out_shardings, closed.out_avals, strict=True)]
    wanted = [t if t is not None and _summed(t) != _summed(a.given_sharding) else None
              for t, a in zip(told, closed.out_avals, strict=True)]
    if not any(wanted):
        return closed

    def resummed(*args: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [x if t is None else hooks.reshard_p.bind(x, dst_sharding=t) for x, t in zip(outs, wanted, strict=True)]

    return trace_to_jaxpr(resummed, closed.in_avals, closed.debug_info)


def _summed(told: NamedSharding | None) -> frozenset[Any]:
    return frozenset() if told is None else told.spec.unreduced


def _told_by(aval: Any) -> NamedSharding | None:
    told = getattr(aval, "given_sharding", None)
    return None if told is None else on_devices(told, backends.get().devices()[0])


def device_of(in_shardings: Sequence[Any], out_shardings: Sequence[Any]) -> Device | None:
    """The device that runs a program of which this is said; None for the default one."""
    for s in (*in_shardings, *out_shardings):
        if isinstance(s, SingleDeviceSharding):
            return s._device
    return None


class Placing:
    """A program whose results are committed to shardings, and to whose device (if one is given) arguments are moved."""

    __slots__ = ("code", "device", "shardings")

    def __init__(self, code: Callable[..., list[Array]], shardings: Sequence[Sharding], device: Device | None):
        self.code = code
        self.device = device
        self.shardings = shardings

    def __call__(self, *arrays: Any) -> list[Array]:
        device = self.device
        outs = self.code(*arrays) if device is None else self.code(*(moved(x, device) for x in arrays))
        for x, sharding in zip(outs, self.shardings, strict=True):
            x.committed = True
            x._sharding = sharding
            if avals.explicit:
                told = sharding_of_type(sharding, x.aval.shape)
                if told is not x.aval.given_sharding:
                    x.aval = x.aval.update(sharding=told)
        return outs
