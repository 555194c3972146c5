"""The specifications of a `shard_map`: by leaf of its arguments and results, and whether they fit these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.arrays.mesh import AbstractMesh, Mesh, told_by_types
from ..core.arrays.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, axes_of
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree, tree_paths
from ..core.types.avals import AbstractRef
from ..core.types.manual_axes import Sums
from ..core.types.typing import AxisName
from ..transforms.flattening import FlatFunction
from ..transforms.naming import parameters


def own_spec(x: Any, names: Sequence[AxisName]) -> PartitionSpec:
    """How an argument is spread already along these axes."""
    told = _told(get_aval(x))
    if told is None:
        return PartitionSpec()
    return told.spec.update(partitions=tuple(tuple(n for n in axes_of(e) if n in names) or None for e in told.spec))


def _told(aval: Any) -> NamedSharding | None:
    """What a type, or that of what a reference holds, tells of explicit axes."""
    return getattr(aval.inner_aval if isinstance(aval, AbstractRef) else aval, "given_sharding", None)


def by_leaf(what: str, specs: Any, values: Any, none: bool = True) -> list[PartitionSpec]:
    """The specifications by leaf of `values`; None is one if `none` says so. ValueError where they are no prefix."""
    if isinstance(specs, PartitionSpec):
        return [specs] * len(tree.tree_leaves(values))
    is_leaf = lambda s: none and s is None or isinstance(s, PartitionSpec)
    try:
        return tree_paths.broadcast_prefix(specs, values, is_leaf=is_leaf)
    except ValueError as error:
        tree_paths.raise_prefix_error(f"shard_map {what}", specs, values, is_leaf, error)


def check_specifications(what: str, specs: Any, mesh: Mesh | AbstractMesh, names: Sequence[AxisName]) -> None:
    """Raises an error for a tree of specifications that does not fit the mesh, or holds something else."""
    _check_kinds(what, specs)
    check_axes(what, specs, names)
    check_sums(what, specs, mesh, names)


def check_inferred(mesh: Mesh | AbstractMesh, names: Sequence[AxisName]) -> None:
    """Raises TypeError for axes along which types do not tell how arguments are spread."""
    if not set(names) <= set(mesh.explicit_axes):
        kinds = [str(t) for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True) if n in names]
        raise TypeError("shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but "
                        f"it was `None` when axis_names={frozenset(names)} are of type {', '.join(kinds)}")


def _check_kinds(what: str, specs: Any) -> None:
    """Raises TypeError for specifications that are none."""
    is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)
    wrong = [f"  {what}{tree_paths.keystr(path)} is {spec} of type {type(spec).__name__}, \n\n"
             for path, spec in tree_paths.tree_leaves_with_path(specs, is_leaf=is_leaf) if not is_leaf(spec)]
    if wrong:
        raise TypeError(f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but:\n"
                        f"\n{''.join(wrong)}Check the {what} values passed to shard_map.")


def check_axes(what: str, specs: Any, names: Sequence[AxisName]) -> None:
    """Raises ValueError for specifications that name axes over which nothing is mapped."""
    is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)
    known = frozenset(names)
    wrong = [f"  {what}{tree_paths.keystr(path)} refers to {name!r}\n\n"
             for path, spec in tree_paths.tree_leaves_with_path(specs, is_leaf=is_leaf)
             if isinstance(spec, PartitionSpec) for entry in spec
             for name in ((entry,) if entry is UNCONSTRAINED else axes_of(entry)) if name not in known]
    if wrong:
        raise ValueError(f"shard_map {what} argument must refer to an axis marked as manual ({frozenset(names)}), but:"
                         f"\n\n{''.join(wrong)}Check the {what} values passed to shard_map.")


def check_sums(what: str, specs: Any, mesh: Mesh | AbstractMesh, names: Sequence[AxisName]) -> None:
    """Raises an error for specifications with sums along axes whose use types do not tell."""
    for spec in tree.tree_leaves(specs, is_leaf=lambda s: isinstance(s, PartitionSpec)):
        if not isinstance(spec, PartitionSpec) or not (spec.unreduced or spec.reduced):
            continue
        kind = "unreduced" if spec.unreduced else "reduced"
        if len(names) < len(mesh.axis_names):
            raise NotImplementedError(
                f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode. Got mesh axis "
                f"names {mesh.axis_names}, manual_axes: {frozenset(names)}, specs: {spec}.")
        if not mesh.are_all_axes_explicit and not mesh.are_all_axes_manual:
            raise ValueError(f"{kind} in {what} {spec} can only be used when the mesh passed to shard_map contains "
                             f"axis names all of type `Explicit`. Got mesh {mesh}")


def _shape(mesh: Mesh | AbstractMesh) -> str:
    return (f"The mesh given has shape {tuple(mesh.axis_sizes)} with corresponding axis names "
            f"{tuple(mesh.axis_names)}.")


class Place:
    """Where an argument or a result of a mapped function stands, and its specification, as messages call them."""

    __slots__ = ("flat", "index", "specs")

    def __init__(self, flat: FlatFunction, specs: Any, index: int):
        self.flat, self.specs, self.index = flat, specs, index

    def _path(self, structure: tree.PyTreeDef) -> tuple[Any, ...]:
        numbered = tree.tree_unflatten(structure, range(structure.num_leaves))
        return tree_paths.tree_flatten_with_path(numbered)[0][self.index][0]

    def _spec(self, what: str, path: tuple[Any, ...]) -> str:
        is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)
        places = (p for p, _ in tree_paths.tree_leaves_with_path(self.specs, is_leaf=is_leaf))
        return what + tree_paths.keystr(next((p for p in places if path[:len(p)] == p), ()))

    def argument(self) -> tuple[str, str, str]:
        """An argument of a positional parameter, the parameter, and the specification."""
        path = self._path(self.flat.in_tree)[1:]
        name, at = self.flat.__name__, path[0].idx
        names, rest = parameters(self.flat.fun)
        bound = (f"bound to {name}'s parameter {names[at]!r}" if at < len(names) else
                 f"the index {at - len(names)} component of {name}'s varargs parameter {rest!r}")
        return f"args{tree_paths.keystr(path)}", f", where args[{at}] is {bound},", self._spec("in_specs", path)

    def result(self) -> tuple[str, str]:
        """A result, and its specification."""
        path = self._path(self.flat.structure)
        return f"{self.flat.__name__}(*args){tree_paths.keystr(path)}", self._spec("out_specs", path)


def check_argument(place: Place, aval: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> None:
    """Raises ValueError for a specification that does not fit its argument."""
    if spec is None:
        return
    shape = getattr(aval, "shape", ())
    if len(spec) > len(shape):
        fun = place.flat.__name__
        argument, bound, where = place.argument()
        raise ValueError(
            f"shard_map applied to the function {fun!r} was given an in_specs entry which is too long to be compatible "
            f"with the corresponding input value from the function:\n\n{where} is {spec} which has length "
            f"{len(spec)}, but the passed {argument}{bound} has shape {aval.str_short()}, which has rank {len(shape)} "
            f"(and {len(shape)} < {len(spec)})\n\nEntries in in_specs must be of length no greater than the number of "
            f"axes in the corresponding input value.\n\nEither revise the spec to be shorter, or modify {fun!r} so "
            "that its inputs have sufficient rank." + ("" if shape else "\n\nFor scalar values (rank 0), consider "
            "using an in_specs entry of `P()`, where `P = jax.sharding.PartitionSpec`."))
    NamedSharding(mesh, spec)  # which refuses axes that are named twice
    for i, entry in enumerate(spec):
        parts = math.prod(mesh.shape[n] for n in axes_of(entry))
        if shape[i] % parts:
            fun = place.flat.__name__
            argument, bound, where = place.argument()
            axes = (f"mesh axis {axes_of(entry)[0]!r} (of size" if len(axes_of(entry)) == 1 else
                    f"mesh axes {axes_of(entry)} (of total size")
            raise ValueError(
                f"shard_map applied to the function {fun!r} was given argument arrays with axis sizes that are not "
                f"evenly divisible by the corresponding mesh axis sizes:\n\n{_shape(mesh)}\n\nthe passed "
                f"{argument} of shape {aval.str_short()}{bound} corresponds to {where} of value {spec}, which maps "
                f"array axis {i} (of size {shape[i]}) to {axes} {parts}), but {parts} does not evenly divide {shape[i]}"
                "\n\nArray arguments' axis sizes must be evenly divisible by the mesh axis or axes indicated by the "
                "corresponding elements of the argument's in_specs entry. Consider checking that in_specs are "
                "correct, and if so consider changing the mesh axis sizes or else padding the input and adapting "
                f"{fun!r} appropriately.")


def check_spread(aval: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh, names: Sequence[AxisName]) -> None:
    """Raises ValueError where an argument is not spread over explicit axes as its specification says."""
    explicit = [n for n in told_by_types(mesh.explicit_axes, mesh.shape) if n in names]
    if not explicit or spec is None:
        return
    told = _told(aval)
    ndim = len(getattr(aval, "shape", ()))

    def over_explicit(given: PartitionSpec) -> PartitionSpec:
        entries = [tuple(n for n in axes_of(e) if n in explicit) or None for e in given]
        return given.update(partitions=(*entries, *(None,) * (ndim - len(entries))))

    wanted = over_explicit(spec)
    has = PartitionSpec(*(None,) * ndim) if told is None else over_explicit(told.spec)
    if wanted != has:
        raise ValueError(
            f"in_specs passed to shard_map: {wanted} does not match the specs of the input: {has} for arg: "
            f"{aval.str_short()}. `in_specs` is an optional argument so you can omit specifying it and shard_map will "
            "infer the in_specs from the arguments. If you want to reshard your inputs, you can use `jax.reshard` on "
            "the arguments and then pass those args to shard_map.")


def check_result(place: Place, x: Any, varies: Sequence[AxisName], spec: PartitionSpec | None,
                  mesh: Mesh | AbstractMesh, checked: bool, sums: Sums | None = None) -> str:
    """Raises ValueError for a specification that does not fit its result, of which `sums` is known.

    Returns:
      where it may differ on devices though it says that it does not, in words.
    """
    spec = PartitionSpec() if spec is None else spec
    NamedSharding(mesh, spec)
    aval, fun = get_aval(x), place.flat.__name__
    shape = aval.shape[len(varies):]
    if len(spec) > len(shape):
        result, where = place.result()
        raise ValueError(
            f"shard_map applied to the function {fun!r} was given an out_specs entry which is too long to be "
            f"compatible with the corresponding output value from the function:\n\n{where} is {spec} which has "
            f"length {len(spec)}, but {result} has shape {aval.update(shape=shape).str_short()}"
            f"{f'{{V:{_listed(varies)}}}' if checked and varies and isinstance(x, Tracer) else ''}, which has rank "
            f"{len(shape)} (and {len(shape)} < {len(spec)})\n\nEntries in out_specs must be of length no greater than "
            f"the number of axes in the corresponding output value.\n\nEither revise the spec to be shorter, or modify "
            f"{fun!r} so that its outputs have sufficient rank." + ("" if shape else "\n\nFor scalar values (rank 0), "
            "consider using an out_specs entry of `P()`, where `P = jax.sharding.PartitionSpec`. In particular, for "
            "rank 0 outputs which are not constant over the mesh, add at least one (singleton) axis to them so that "
            "they can be concatenated using out_specs."))
    over = {n for e in spec for n in axes_of(e)}
    named = over | spec.unreduced | spec.reduced
    left = [n for n in varies if n not in named]
    equal = [n for n in mesh.axis_names if n in spec.unreduced and n not in varies]
    if checked and equal:
        raise ValueError(
            f"vary_unreduced_cast is a Varying->Unreduced collective: a result of {fun!r} whose out_specs is {spec} "
            f"has to vary along {spec.unreduced}, and is equal on all devices along {equal}. Its type is "
            f"{aval.update(shape=shape).str_short()}")
    known = sums or Sums()
    if checked and not left:
        for kind, axes in zip(("unreduced", "reduced"), known, strict=True):
            if over & axes:
                raise ValueError(f"pvary cannot accept args which are {kind}: out_specs is {spec} for a result of "
                                 f"{fun!r}, which is {kind} along {set(axes)}")
        if known.reduced != spec.reduced or not known.unreduced <= spec.unreduced:
            kind = "reduced" if known.unreduced <= spec.unreduced else "unreduced"
            raise ValueError(f"out_specs passed to shard_map should be equal to the {kind} present on the out_aval. "
                             f"Got out_specs={spec} and out_aval="
                             f"{aval.update(shape=shape, sums=sums).str_short(True)}")
    if not checked or not left:
        return ""
    everywhere = len(left) == 1 and named.union(varies) == set(mesh.axis_names)
    where = place.result()[1] if isinstance(x, Tracer) else "out_specs"
    return f"{where} is {spec} which implies that the corresponding output value is " + (
        f"replicated across mesh axis {left[0]!r}, but could not infer replication over any axes" if everywhere else
        f"only varying across mesh axes {{{','.join(sorted(map(str, named)))}}} and not {{{','.join(map(str, left))}}},"
        f" but it was inferred to be possibly varying over {{{','.join(map(str, varies))}}}")


def _listed(names: Sequence[AxisName]) -> str:
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


def check_results(fun: str, wrong: Sequence[str], mesh: Mesh | AbstractMesh, at_once: bool) -> None:
    """Raises ValueError for what `check_result` told of results, if anything. What runs at once tells the first one,
    and calls the function as JAX does there."""
    found = [w for w in wrong if w]
    if at_once:
        fun, found = "_rem_singleton", found[:1]
    if found:
        listed = found[0] if len(found) == 1 else "\n\n".join(f"* {w}" for w in found)
        raise ValueError(
            f"shard_map applied to the function {fun!r} was given out_specs which require replication which can't be "
            f"statically inferred given the mesh:\n\n{_shape(mesh)}\n\n{listed}\n\nCheck if these output values are "
            "meant to be replicated over those mesh axes. If not, consider revising the corresponding out_specs "
            "entries. If so, consider disabling the check by passing the check_vma=False argument to `jax.shard_map`.")


__all__ = ["Place", "by_leaf", "check_argument", "check_axes", "check_inferred", "check_result", "check_results",
           "check_specifications", "check_spread", "check_sums", "own_spec"]
