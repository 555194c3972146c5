"""Rows of the table: gathers and scatters by their dimension numbers, and functions of `jax.numpy` that index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tests.fuzz.draw import Call, Draw
from tests.fuzz.rows import Kind, Row
from tests.fuzz.shaping import CLIPPED, WINNER
from tests.fuzz.values import ALL, BOOL, FLOATS, INTS, NUMBERS, Type

INDICES = ("int32", "int32", "int8", "uint8", "uint32", "int64")
MODES = ("'clip'", "'fill'", "None", "'promise_in_bounds'")
REAL = (*INTS, *FLOATS)


@dataclass(frozen=True)
class Windows:
    """Windows of an operand at places that indices name: dimension numbers, and shapes of what else there is."""

    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    along: tuple[int, ...]  # the axes of the operand that indices are for
    operand_batch: tuple[int, ...]
    index_batch: tuple[int, ...]
    offsets: tuple[int, ...]  # the axes of the result that windows lie along
    indices: tuple[int, ...]
    result: tuple[int, ...]
    bounds: tuple[int, ...]


def windows(d: Draw, t: Type, single: bool = False, placed: bool = False) -> Windows:
    """`single`: of one window only; `placed`: indices say where the windows are."""
    batch = () if single else tuple(d.integer(0, 3) for _ in range(d.integer(0, 2)))
    axes = d.rng.sample(range(t.rank), t.rank)
    paired = axes[:1] if t.rank > 1 and not single and d.integer(0, 3) == 0 else []
    at = d.integer(0, len(batch))
    batch = (*batch[:at], *(t.shape[a] for a in paired), *batch[at:])
    rest = axes[len(paired) :]
    along = tuple(rest[: d.integer(int(placed), len(rest))])
    sizes = tuple(1 if a in paired else d.integer(min(n, 1), n) for a, n in enumerate(t.shape))
    collapsed = tuple(sorted(a for a in rest if sizes[a] == 1 and d.flag()))
    kept = [n for a, n in enumerate(sizes) if a not in collapsed and a not in paired]
    rank = len(batch) + len(kept)
    offsets = tuple(sorted(d.rng.sample(range(rank), len(kept))))
    others, inside = iter(batch), iter(kept)
    result = tuple(next(inside) if i in offsets else next(others) for i in range(rank))
    return Windows(
        sizes,
        collapsed,
        along,
        tuple(paired),
        tuple(at for _ in paired),
        offsets,
        (*batch, len(along)),
        result,
        tuple(t.shape[a] - sizes[a] for a in along),
    )


def places(d: Draw, w: Windows, position: int, modes: Sequence[str] = MODES) -> tuple[str, str, str]:
    """An array of indices, the text that reads it, and the mode, which may promise that they are within bounds."""
    name = d.shaped(w.indices, d.choice([t for t in INDICES if d.x64 or t != "int64"]))
    mode = d.choice(modes)
    text = f"{{{position}}}"
    if "promise" in mode:
        text = f"jnp.clip({text}, 0, np.array({w.bounds}, {text}.dtype))"
    return name, text, mode


def gather(d: Draw) -> Call:
    x = d.value(least=1)
    w = windows(d, d.type(x))
    index, text, mode = places(d, w, 1)
    if d.type(index).dtype == "int64" and "promise" not in mode:
        text = f"jnp.clip({text}, -(2**31), 2**31 - 1)"
    numbers = (
        f"lax.GatherDimensionNumbers(offset_dims={w.offsets}, collapsed_slice_dims={w.collapsed}, start_index_map="
        f"{w.along}, operand_batching_dims={w.operand_batch}, start_indices_batching_dims={w.index_batch})"
    )
    return Call(f"lax.gather({{0}}, {text}, {numbers}, {w.sizes}, mode={mode})", (x, index))


UNPLACED = "of several windows that no index places XLA scatters only the last"


def scatter(name: str, dtypes: Collection[str], kind: Kind = "smooth") -> Row:
    def make(d: Draw) -> Call:
        x = d.value(dtypes, least=1)
        t = d.type(x)
        w = windows(d, t, name == "scatter", True)
        index, text, mode = places(d, w, 1, MODES[1:] if kind == "kink" else MODES)
        update = d.shaped(w.result, t.dtype)
        numbers = (
            f"lax.ScatterDimensionNumbers(update_window_dims={w.offsets}, inserted_window_dims={w.collapsed}, "
            f"scatter_dims_to_operand_dims={w.along}, operand_batching_dims={w.operand_batch}, "
            f"scatter_indices_batching_dims={w.index_batch})"
        )
        return Call(f"lax.{name}({{0}}, {text}, {{2}}, {numbers}, mode={mode})", (x, index, update))

    limit = {"exact": WINNER, "kink": f"{UNPLACED}; {CLIPPED}"}.get(kind, UNPLACED)
    return Row(name.replace("_", "-"), make, kind, f"{name} by numbers", limit=limit)


def along_axis(d: Draw) -> Call:
    x = d.value(least=1, full=True)
    t = d.type(x)
    axis = d.axis(t)
    index = d.shaped((*t.shape[:axis], d.integer(0, 3), *t.shape[axis + 1 :]), "int32")
    mode = d.choice(("'clip'", "'fill'", "None"))
    return Call(f"jnp.take_along_axis({{0}}, {{1}}, axis={axis}, mode={mode})", (x, index))


def rolled(d: Draw) -> Call:
    x = d.value(least=1)
    return Call(f"jnp.roll({{0}}, {{1}}, axis={d.axis(d.type(x))})", (x, d.shaped((), "int32")))


def nonzero(d: Draw) -> Call:
    x = d.value((*BOOL, *REAL), least=1, full=True)
    return Call(f"jnp.nonzero({{0}}, size={d.integer(0, 4)}, fill_value={d.integer(-1, 1)})", (x,), single=False)


def searched(d: Draw) -> Call:
    x = d.value(REAL, least=1, most=1)
    side, how = d.choice(("left", "right")), d.choice(("scan", "scan_unrolled", "sort", "compare_all"))
    other = d.shaped(d.choice(((), (3,), (2, 2))), d.type(x).dtype)
    return Call(f"jnp.searchsorted(jnp.sort({{0}}), {{1}}, side='{side}', method='{how}')", (x, other))


def ordered(d: Draw) -> Call:
    x = d.value((*BOOL, *REAL), least=1)
    return Call(f"jnp.argsort({{0}}, axis={d.axis(d.type(x))}, descending={d.flag()})", (x,))


def unique(d: Draw) -> Call:
    x = d.value((*BOOL, *INTS))
    return Call(f"jnp.unique({{0}}, size={d.integer(1, 4)}, fill_value=0, return_inverse=True)", (x,), single=False)


ROWS = [
    Row("gather", gather, "exact", "gather by numbers", limit="JAX reads 32 bits of indices where it fills"),
    scatter("scatter", ALL, "exact"),
    scatter("scatter_add", NUMBERS),
    scatter("scatter_sub", NUMBERS),
    scatter("scatter_mul", NUMBERS),
    scatter("scatter_max", REAL, "kink"),
    scatter("scatter_min", REAL, "kink"),
    Row("gather", along_axis, "exact", "take along an axis"),
    Row("dynamic_slice", rolled, "exact", "roll"),
    Row("scatter-add", nonzero, "jump", "nonzero", limit="without elements JAX's nonzero forgets its fill_value"),
    Row("gather", searched, "jump", "searchsorted"),
    Row("sort", ordered, "jump", "argsort"),
    Row("sort", unique, "jump", "unique"),
]
