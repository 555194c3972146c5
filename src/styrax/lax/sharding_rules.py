"""How results are spread over explicit mesh axes, by families of primitives: the rules that their blocks declare.

What is elementwise has its rule in `core.programs.spreading`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styrax.core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from styrax.core.programs.spreading import Entries, Place, elementwise, entries, nowhere


def same(at: Place, operand: Any, *_: Any, **__: Any) -> Entries:
    """Results are spread as the first operand."""
    return entries(operand)


def alike(at: Place, *operands: Any, **_: Any) -> list[Entries]:
    """All results as the operands together."""
    return [elementwise(at, *operands)] * len(operands)


def each(at: Place, *operands: Any, **_: Any) -> list[Entries]:
    """Each result is spread as the operand at its place."""
    return [entries(x) for x in operands]


def given(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The sharding that a parameter names, else what another rule says."""

    def rule(at: Place, *operands: Any, **params: Any) -> Any:
        wanted = params[name]
        return otherwise(at, *operands, **params) if wanted is None else wanted

    return rule


# -- dimensions that go, come and change places ----------------------------------------------------


def reduction(at: Place, *operands: Any, axes: Sequence[int], **_: Any) -> Entries:
    """The dimensions that are left keep their axes."""
    return tuple(e for d, e in enumerate(entries(operands[0])) if d not in axes)


def along(name: str, subject: str, what: str) -> Callable[..., Any]:
    """Results are spread as the operand, which is not spread along the dimension that a parameter names."""

    def rule(at: Place, operand: Any, *_: Any, **params: Any) -> Entries:
        found = entries(operand)
        if found[params[name]] is not None:
            raise at.refuse(f"{subject} should be unsharded over the axis {what}. Got input type="
                            f"{operand.str_short()} and axis={params[name]}")
        return found

    return rule


def broadcast(at: Place, operand: Any, *, broadcast_dimensions: Sequence[int], **_: Any) -> Entries:
    out: list[Any] = [None] * len(at.outs[0].shape)
    for d, e in zip(broadcast_dimensions, entries(operand), strict=True):
        out[d] = e
    return tuple(out)


def squeeze(at: Place, operand: Any, *, dimensions: Sequence[int]) -> Entries:
    return tuple(e for d, e in enumerate(entries(operand)) if d not in dimensions)


def transpose(at: Place, operand: Any, *, permutation: Sequence[int]) -> Entries:
    found = entries(operand)
    return tuple(found[d] for d in permutation)


def stack(at: Place, *operands: Any, axis: int) -> Entries:
    found = _alike(at, operands)
    return (*found[:axis], None, *found[axis:])


def unstack(at: Place, operand: Any, *, axis: int) -> Entries:
    found = entries(operand)
    if found[axis] is not None:
        raise at.refuse(f"{at.name} operand cannot be sharded on the unstacking axis {axis}. Got operand "
                        f"type={operand.str_short(short_dtypes=True)}")
    return (*found[:axis], *found[axis + 1:])


def cut(at: Place, operand: Any, *_: Any, **__: Any) -> list[Entries]:
    """Results are parts of the operand, or it with more around it: the axes divide their dimensions, too."""
    return [at.divides(entries(operand), operand, out) for out in at.outs]


def tile(at: Place, operand: Any, *, reps: Sequence[int]) -> Entries:
    """What is repeated is not spread."""
    found = entries(operand)
    for d, entry in enumerate(found):
        if entry is not None and reps[d] != 1:
            raise at.refuse(f"Operand cannot be sharded on dimension {d} when the tiling is non-trivial. Got input "
                            f"type: {operand.str_short()} with reps: {reps}")
    return found


def concatenation(at: Place, *operands: Any, dimension: int) -> Entries:
    return _alike(at, operands)


def _alike(at: Place, operands: Sequence[Any]) -> Entries:
    first = entries(operands[0])
    if any(entries(x) != first for x in operands[1:]):
        raise at.refuse("All operands should have the same sharding. Got shardings "
                        f"{', '.join(str(x.sharding) for x in operands)}")
    return first


def selection(at: Place, which: Any, *cases: Any) -> Entries:
    first = entries(cases[0])
    if any(entries(x) != first for x in cases[1:]):
        raise at.refuse(f"select cases must have the same shardings, got {[x.sharding for x in cases]}.")
    if which.shape and entries(which) != first:
        raise at.refuse("select `which` must be scalar or have the same sharding as cases, got `which` sharding "
                        f"{which.sharding} but case sharding {cases[0].sharding}.")
    return first


def clamp(at: Place, low: Any, operand: Any, high: Any) -> Entries:
    return entries(operand)


def reshape(at: Place, operand: Any, *, new_sizes: Sequence[Any], dimensions: Any, sharding: Any) -> Entries:
    """Dimensions of size 1 come and go; one dimension is cut into several, or several become one."""
    found = entries(operand)
    if not any(found):
        return ()
    old = [(s, e) for s, e in zip(operand.shape, found, strict=True) if s != 1]
    new = [s for s in new_sizes if s != 1]
    out = None
    if dimensions is None:
        if [s for s, _ in old] == new:
            out = [e for _, e in old]
        elif len(old) < len(new):
            out = _split(at, old, new)
        elif len(old) > len(new):
            out = _merged(old, new)
    if out is None:
        raise at.refuse("This reshape is not supported. Please specify the sharding of the output via the "
                        f"`out_sharding` argument of jax.lax.reshape. Got operand type: {operand.str_short()}, new "
                        f"sizes: {tuple(new_sizes)}")
    rest = iter(out)
    return tuple(None if s == 1 else next(rest) for s in new_sizes)


def _changed(longer: Sequence[Any], shorter: Sequence[Any]) -> tuple[int, int] | None:
    """Where one dimension of a shape stands for several of another, and for how many; None for other changes."""
    count = len(longer) - len(shorter) + 1
    for i, size in enumerate(shorter):
        if longer[i] != size:
            product: Any = 1
            for s in longer[i:i + count]:
                product = product * s
            return (i, count) if product == size and list(longer[i + count:]) == list(shorter[i + 1:]) else None
    return None


def _split(at: Place, old: Sequence[tuple[Any, Any]], new: Sequence[Any]) -> list[Any] | None:
    where = _changed(new, [s for s, _ in old])
    if where is None:
        return None
    i, count = where
    axes = list(axes_of(old[i][1]))
    parts: list[Any] = []
    for size in new[i:i + count]:
        taken: list[Any] = []
        while axes and size % at.parts((*taken, axes[0])) == 0:
            taken.append(axes.pop(0))
        parts.append(tuple(taken) or None)
        if axes and at.parts(tuple(taken)) != size:
            return None
    if axes:
        return None
    return [*[e for _, e in old[:i]], *parts, *[e for _, e in old[i + 1:]]]


def _merged(old: Sequence[tuple[Any, Any]], new: Sequence[Any]) -> list[Any] | None:
    where = _changed([s for s, _ in old], new)
    if where is None:
        return None
    i, count = where
    run = [e for _, e in old[i:i + count]]
    leading = run.index(None) if None in run else count
    if any(run[leading:]):  # parts would lie apart
        return None
    axes = tuple(n for e in run for n in axes_of(e))
    return [*[e for _, e in old[:i]], axes or None, *[e for _, e in old[i + count:]]]


def in_front(at: Place, operand: Any, *_: Any, **__: Any) -> Entries:
    """The dimensions that operand and result have in common stand in front; what comes behind is not spread."""
    found, rank = entries(operand), len(at.outs[0].shape)
    return (*found, *(None,) * rank)[:rank]


def bits_and_key(at: Place, key: Any, *, out_sharding: Any, **_: Any) -> list[Any]:
    return [entries(key), () if out_sharding is None else out_sharding]


# -- contractions ----------------------------------------------------------------------------------


def contraction(at: Place, lhs: Any, rhs: Any, *, dimension_numbers: Any, out_sharding: Any, **_: Any) -> Any:
    """Batch dimensions, then those of either side that are not summed over, keep their axes."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    x, y = entries(lhs), entries(rhs)
    batch = [x[d] for d in lhs_batch], [y[d] for d in rhs_batch]
    if batch[0] != batch[1]:
        raise at.refuse("dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent "
                        f"sharding, got {tuple(batch[0])} and {tuple(batch[1])}.")
    summed = [(x[d], y[e]) for d, e in zip(lhs_contract, rhs_contract, strict=True)]
    if out_sharding is None and any(a is not None and b is not None and a != b for a, b in summed):
        raise at.refuse("dot_general requires contracting dimensions to have consistent sharding, got "
                        f"{tuple(a for a, _ in summed)} and {tuple(b for _, b in summed)}.")
    if out_sharding is not None:
        _check_sums(at, out_sharding, summed)
        return out_sharding
    if any(a is not None and b is not None for a, b in summed):
        raise at.refuse("Contracting dimensions are sharded and it is ambiguous how the output should be sharded. "
                        "Please specify the output sharding via the `out_sharding` parameter. Got "
                        f"lhs_contracting_spec={tuple(a for a, _ in summed)} and rhs_contracting_spec="
                        f"{tuple(b for _, b in summed)}")
    return (*batch[0], *(e for d, e in enumerate(x) if d not in lhs_contract and d not in lhs_batch),
            *(e for d, e in enumerate(y) if d not in rhs_contract and d not in rhs_batch))


def reduce_sum(at: Place, operand: Any, *, axes: Sequence[int], out_sharding: Any) -> Any:
    if out_sharding is None:
        return reduction(at, operand, axes=axes)
    found, told = entries(operand), operand.given_sharding
    wanted = _unreduced(out_sharding)
    missing = wanted.difference(*(axes_of(found[d]) for d in axes), told.spec.unreduced if told is not None else ())
    if missing:
        raise at.refuse("out_sharding's unreduced axes should be in operand's specs that were summed over. Got "
                        f"out_sharding's unreduced axes={set(wanted)} and summed specs "
                        f"{tuple(found[d] for d in axes)}")
    return out_sharding


def _unreduced(sharding: NamedSharding | PartitionSpec) -> frozenset[Any]:
    return (sharding.spec if isinstance(sharding, NamedSharding) else sharding).unreduced


def _check_sums(at: Place, sharding: NamedSharding | PartitionSpec, summed: Sequence[tuple[Any, Any]]) -> None:
    """Sums are left to be made along all mesh axes along which a contraction's operands are both spread, or none."""
    wanted = _unreduced(sharding)
    if not wanted:
        return
    if any(x != y for x, y in summed):
        raise at.refuse("lhs and rhs contracting dims should be sharded identically when out_sharding provided to "
                        f"dot_general mentions unreduced_axes. Got {sharding}, lhs_contracting_spec="
                        f"{tuple(x for x, _ in summed)} and rhs_contracting_spec={tuple(y for _, y in summed)}")
    if wanted != frozenset(n for x, _ in summed for n in axes_of(x)):
        raise at.refuse("out_sharding's unreduced axes should be equal to the contracting specs. Got "
                        f"unreduced axes={set(wanted)} and contracting spec={tuple(x for x, _ in summed)}")


def convolution(at: Place, lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> Entries:
    """The batch dimension keeps its axes; nothing else is spread."""
    x = entries(lhs)
    if any(entries(rhs)) or any(e for d, e in enumerate(x) if d != dimension_numbers.lhs_spec[0]):
        raise at.refuse("Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`")
    out: list[Any] = [None] * len(x)
    out[dimension_numbers.out_spec[0]] = x[dimension_numbers.lhs_spec[0]]
    return tuple(out)


# -- indexing --------------------------------------------------------------------------------------


def dynamic_update_slice(at: Place, operand: Any, update: Any, *_: Any, **__: Any) -> Entries:
    if entries(operand) != entries(update):
        raise at.refuse("dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
                        f"{operand.str_short(mesh_axis_types=True)} and update sharding "
                        f"{update.str_short(mesh_axis_types=True)}.")
    return entries(operand)


def gather(at: Place, operand: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Sequence[Any],
           **_: Any) -> Entries:
    """Dimensions that slices run over whole keep the operand's axes, others the indices'."""
    dn = dimension_numbers
    x, i = entries(operand), entries(indices)
    whole = [s == n for s, n in zip(slice_sizes, operand.shape, strict=True)]
    batched = dict(zip(dn.start_indices_batching_dims, dn.operand_batching_dims, strict=True))
    unclear = (any(e is not None and d not in batched for d, e in enumerate(i))
               or any(None not in (i[d], x[e]) and i[d] != x[e] for d, e in batched.items())
               or any(e is not None and not whole[d] and d not in dn.operand_batching_dims for d, e in enumerate(x)))
    if unclear:
        raise at.refuse("Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as "
                        "out sharding could not be resolved unambiguously (or would require collectives on inputs). "
                        f"Got {operand=!r}, {indices=!r}")
    dropped = {*dn.collapsed_slice_dims, *dn.operand_batching_dims}
    window = iter([e for d, e in enumerate(x) if d not in dropped])
    rows = iter([e if e is not None or d not in batched else x[batched[d]] for d, e in enumerate(i[:-1])])
    return tuple(next(window) if d in dn.offset_dims else next(rows) for d in range(len(at.outs[0].shape)))


def scatter(at: Place, operand: Any, indices: Any, updates: Any, *, dimension_numbers: Any, **_: Any) -> Entries:
    """Results are spread as the operand, which is not spread along dimensions that are indexed."""
    dn = dimension_numbers
    x, i = entries(operand), entries(indices)
    indexed = {*dn.inserted_window_dims, *dn.scatter_dims_to_operand_dims}
    pairs = zip(dn.operand_batching_dims, dn.scatter_indices_batching_dims, strict=True)
    if any(x[d] is not None for d in indexed) or any(x[d] != i[e] for d, e in pairs):
        raise at.refuse("Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter "
                        "update as out sharding could not be resolved unambiguously (or would require collectives on "
                        f"inputs). Got {operand=!r}, {indices=!r}, {updates=!r}")
    return x


# -- sorting, linear algebra -----------------------------------------------------------------------


def sort(at: Place, *operands: Any, dimension: int, **_: Any) -> Entries:
    first = entries(operands[0])
    if any(entries(x) != first for x in operands[1:]):
        raise at.refuse("Arguments to sort must have equal shardings, got: "
                        f"{' '.join(str(x.sharding) for x in operands)}")
    if first[dimension] is not None:
        raise at.refuse("Arguments to sort must be unsharded over the sorting dimension. Got arg sharding="
                        f"{operands[0].sharding} and sorting dimension={dimension}")
    return first


def behind_batch(*ranks: int) -> Callable[..., Any]:
    """Batch dimensions in front keep their axes; as many behind as `ranks` tells of each operand (2 of others) are not
    spread."""

    def rule(at: Place, *operands: Any, **_: Any) -> list[Entries]:
        batch: Entries = ()
        for k, x in enumerate(operands):
            found = entries(x)
            lead = max(len(found) - (ranks[k] if k < len(ranks) else 2), 0)
            if any(found[lead:]):
                raise at.refuse(f"Input {k} to {at.name} must be unsharded on non-batch dimensions, but got "
                                f"{PartitionSpec(*found)}.")
            if k and found[:lead] != batch:
                raise at.refuse(f"inputs of {at.name} must be spread alike along batch dimensions, got {batch} and "
                                f"{found[:lead]}")
            batch = found[:lead]
        return [(*batch, *(None,) * (len(out.shape) - len(batch))) for out in at.outs]

    return rule


__all__ = [
    "along", "behind_batch", "bits_and_key", "broadcast", "clamp", "concatenation", "contraction", "convolution", "cut",
    "dynamic_update_slice", "each", "gather", "given", "in_front", "nowhere", "reduce_sum", "reduction",
    "reshape", "same", "scatter", "selection", "sort", "squeeze", "stack", "tile", "transpose", "unstack",
]
