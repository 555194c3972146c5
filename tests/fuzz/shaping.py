"""Rows of the table: movement, indexing, reductions, windows, products, sorting."""

from __future__ import annotations

from collections.abc import Collection

from tests.fuzz.draw import Call, Draw, Nothing, product
from tests.fuzz.rows import Kind, Row
from tests.fuzz.values import ALL, BOOL, FLOATS, FULL, INTS, NUMBERS, ONLY_X64, SIGNED

REAL = (*INTS, *FLOATS)
ORDERED = (*BOOL, *REAL)


PARTIAL_PRODUCTS = "whether a part of a product is infinite, and so times zero NaN, depends on the order"


def over_axes(primitive: str, function: str, dtypes: Collection[str], kind: Kind = "smooth", full: bool = False,
              limit: str = "") -> Row:
    """A reduction over some axes."""
    given = "moderate({0})" if limit else "{0}"

    def make(d: Draw) -> Call:
        x = d.value(dtypes, full=full)
        axes = d.axes_of(d.type(x), 0)
        return Call(f"{function}({given}, axis={axes})", (x,))

    return Row(primitive, make, kind, limit=limit)


def argument(primitive: str) -> Row:
    def make(d: Draw) -> Call:
        x = d.value(ORDERED, least=1, full=True)
        return Call(f"lax.{primitive}({{0}}, {d.axis(d.type(x))}, np.int32)", (x,))

    return Row(primitive, make, "jump")


WINDOWS_OF_NAN = "slopes of JAX's extrema over windows go to the padding where a window has a NaN"
INFINITE_SUMS = "slopes of JAX's cumlogsumexp count what stands before an infinity"
CUMULATIVE_LIMITS = {"cumlogsumexp": ("bounded({0})", INFINITE_SUMS), "cumprod": ("moderate({0})", PARTIAL_PRODUCTS)}


def cumulative(primitive: str, dtypes: Collection[str], kind: Kind = "smooth") -> Row:
    operand, limit = CUMULATIVE_LIMITS.get(primitive, ("{0}", ""))

    def make(d: Draw) -> Call:
        x = d.value(dtypes, least=1)
        return Call(f"lax.{primitive}({operand}, axis={d.axis(d.type(x))}, reverse={d.flag()})", (x,))

    return Row(primitive, make, kind, limit=limit)


def reduce(d: Draw) -> Call:
    x = d.value(NUMBERS)
    t = d.type(x)
    operand = "mild({0})" if t.inexact else "{0}"
    code = f"lax.reduce({operand}, np.zeros((), {{0}}.dtype), lambda a, b: a * b + a + b, {d.axes_of(t, 0)})"
    return Call(code, (x,))


def reduce_of_two(d: Draw) -> Call:
    """Two maxima at once, of operands of other types."""
    x = d.value(REAL)
    t = d.type(x)
    y = d.shaped(t.shape, d.choice(("int32", "float32", "int8")))
    code = (
        "lax.reduce((above({0}), above({1})), (least({0}), least({1})), "
        f"lambda a, b: (lax.max(a[0], b[0]), lax.max(b[1], a[1])), {d.axes_of(t, 0)})"
    )
    return Call(code, (x, y), single=False)


def window(d: Draw, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(d.integer(1, 2) for _ in range(rank)), tuple(d.integer(1, 2) for _ in range(rank))


def windowed(primitive: str, init: str, function: str, dtypes: Collection[str], kind: Kind = "smooth") -> Row:
    def make(d: Draw) -> Call:
        x = d.value(dtypes, least=1)
        t = d.type(x)
        sizes, strides = window(d, t.rank)
        padding = [(d.integer(0, 1), d.integer(0, 1)) for _ in sizes] if d.flag() else d.choice(("SAME", "VALID"))
        dilated = f", base_dilation={window(d, t.rank)[0]}, window_dilation={window(d, t.rank)[1]}" if d.flag() else ""
        start = f"np.array({init}, {{0}}.dtype)"
        given = "limited({0})" if kind == "kink" and d.type(x).inexact else "{0}"
        return Call(f"lax.reduce_window({given}, {start}, {function}, {sizes}, {strides}, {padding!r}{dilated})", (x,))

    return Row(primitive, make, kind, limit=WINDOWS_OF_NAN if kind == "kink" else "")


def window_derivative(primitive: str, function: str) -> Row:
    def make(d: Draw) -> Call:
        x = d.value(FULL, least=1)
        sizes, strides = window(d, d.type(x).rank)
        return Call(f"{function}({{0}}, {sizes}, {strides})", (x,))

    return Row(primitive, make, "kink")


def reshape(d: Draw) -> Call:
    x = d.value()
    n = d.type(x).size
    shapes = [(n,), (1, n), (n, 1), (1, n, 1)] + [(k, n // k) for k in (2, 3, 4) if n % k == 0]
    return Call(f"lax.reshape({{0}}, {d.choice(shapes)})", (x,))


def broadcast(d: Draw) -> Call:
    x = d.value(most=2)
    t = d.type(x)
    target, places = [], []
    for n in t.shape:
        if d.integer(0, 3) == 0:
            target.append(d.integer(0, 3))
        places.append(len(target))
        target.append(d.integer(1, 3) if n == 1 else n)
    if d.flag():
        target.append(d.integer(1, 3))
    return Call(f"lax.broadcast_in_dim({{0}}, {tuple(target)}, {tuple(places)})", (x,))


def transpose(d: Draw) -> Call:
    x = d.value(least=1)
    order = list(range(d.type(x).rank))
    d.rng.shuffle(order)
    return Call(f"lax.transpose({{0}}, {tuple(order)})", (x,))


def rev(d: Draw) -> Call:
    x = d.value(least=1)
    return Call(f"lax.rev({{0}}, {d.axes_of(d.type(x))})", (x,))


def slice_(d: Draw) -> Call:
    x = d.value(least=1)
    t = d.type(x)
    starts = tuple(d.integer(0, n) if n < 2 else d.integer(0, n - 1) for n in t.shape)
    stops = tuple(d.integer(a, n) for a, n in zip(starts, t.shape, strict=True))
    strides = tuple(d.integer(1, 2) for _ in t.shape)
    return Call(f"lax.slice({{0}}, {starts}, {stops}, {strides})", (x,))


def starts(d: Draw, count: int) -> list[str]:
    dtype = d.choice(("int32", "int32", "uint8", "int8"))
    return [d.shaped((), dtype) for _ in range(count)]


def dynamic_slice(d: Draw) -> Call:
    x = d.value(least=1)
    t = d.type(x)
    sizes = tuple(d.integer(min(n, 1), n) for n in t.shape)
    at = starts(d, t.rank)
    places = ", ".join(f"{{{i + 1}}}" for i in range(t.rank))
    return Call(f"lax.dynamic_slice({{0}}, ({places},), {sizes})", (x, *at))


def dynamic_update_slice(d: Draw) -> Call:
    x = d.value(least=1)
    t = d.type(x)
    update = d.shaped(tuple(d.integer(min(n, 1), n) for n in t.shape), t.dtype)
    places = ", ".join(f"{{{i + 2}}}" for i in range(t.rank))
    return Call(f"lax.dynamic_update_slice({{0}}, {{1}}, ({places},))", (x, update, *starts(d, t.rank)))


MODES = ("'clip'", "'fill'", "'promise_in_bounds'", "'drop'", "None")


def indices(d: Draw) -> str:
    return d.shaped(d.choice(((), (2,), (3,), (2, 1), (0,), (1,))), d.choice(("int32", "int32", "int8", "uint8")))


def gather(d: Draw) -> Call:
    x = d.value(least=1, full=True)
    t = d.type(x)
    mode = d.choice(("'clip'", "'fill'", "'wrap'", "None"))
    if d.flag():
        return Call(f"jnp.take({{0}}, {{1}}, axis={d.axis(t)}, mode={mode})", (x, indices(d)))
    mode = d.choice(("'clip'", "'fill'", "None"))
    before = ":, " * d.integer(0, t.rank - 1)
    return Call(f"jnp.asarray({{0}}).at[{before}{{1}}].get(mode={mode})", (x, indices(d)))


WINNER = "which of two writers of one place wins is not defined"
CLIPPED = "slopes of the least or largest at a clipped index JAX looks for where the index was"


def scatter(primitive: str, method: str, dtypes: Collection[str], kind: Kind = "smooth") -> Row:
    def make(d: Draw) -> Call:
        x = d.value(dtypes, least=1, full=True)
        t = d.type(x)
        at = d.integer(0, t.rank - 1)
        index = indices(d) if method != "set" else d.shaped((), "int32")
        shape = (*t.shape[:at], *d.type(index).shape, *t.shape[at + 1 :])
        update = d.shaped(shape if d.flag() else (), t.dtype)
        mode = d.choice(("'fill'", "'drop'", "None") if kind == "kink" else ("'clip'", "'fill'", "'drop'", "None"))
        code = f"jnp.asarray({{0}}).at[{':, ' * at}{{1}}].{method}({{2}}, mode={mode})"
        return Call(code, (x, index, update))

    return Row(primitive, make, kind, limit={"exact": WINNER, "kink": CLIPPED}.get(kind, ""))


def concatenate(d: Draw) -> Call:
    x = d.value(least=1)
    t = d.type(x)
    axis = d.axis(t)
    other = d.shaped((*t.shape[:axis], d.integer(0, 3), *t.shape[axis + 1 :]), t.dtype)
    return Call(f"lax.concatenate(({{0}}, {{1}}, {{0}}), {axis})", (x, other))


def pad(d: Draw) -> Call:
    x = d.value()
    t = d.type(x)
    config = tuple((d.integer(-1, 2), d.integer(-1, 2), d.integer(0, 1)) for _ in t.shape)
    return Call(f"lax.pad({{0}}, {{1}}, {config})", (x, d.shaped((), t.dtype)))


def stack(d: Draw) -> Call:
    x = d.value(most=2)
    return Call(f"jnp.stack(({{0}}, {{1}}), {d.integer(0, d.type(x).rank)})", (x, d.like(x)))


def split(d: Draw) -> Call:
    x = d.value(least=1)
    t = d.type(x)
    axis = d.axis(t)
    first = d.integer(0, t.shape[axis])
    return Call(f"lax.split({{0}}, ({first}, {t.shape[axis] - first}), {axis})", (x,), single=False)


def members(d: Draw) -> Call:
    """Members of a computed value, read one by one."""
    x = d.value(NUMBERS, least=1)
    t = d.type(x)
    axis = d.integer(0, t.rank - 1)
    if not t.shape[axis]:
        raise Nothing
    operand = "mild({0})" if t.inexact else "{0}"
    rows = f"list(jnp.moveaxis({operand} * {operand} + {operand}, {axis}, 0))"
    return Call(f"(lambda y: sum(a * b for a, b in zip(y[1:], y[:-1], strict=True)) + y[0])({rows})", (x,))


def unstack(d: Draw) -> Call:
    x = d.value(least=1, full=True)
    return Call(f"jnp.unstack({{0}}, axis={d.axis(d.type(x))})", (x,), single=False)


def tile(d: Draw) -> Call:
    x = d.value(least=1, most=2)
    return Call(f"lax.tile({{0}}, {tuple(d.integer(1, 2) for _ in d.type(x).shape)})", (x,))


def squeeze(d: Draw) -> Call:
    x = d.value(least=1, extra=lambda t: 1 in t.shape)
    ones = [i for i, n in enumerate(d.type(x).shape) if n == 1]
    return Call(f"lax.squeeze({{0}}, ({d.choice(ones)},))", (x,))


PREFERRED = {
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64",),
    "int8": ("int32", "int16"),
    "uint8": ("uint32", "int32"),
    "int32": ("int64", "float32"),
}


def dot_general(d: Draw) -> Call:
    x = d.value(NUMBERS)
    t = d.type(x)
    free = list(range(t.rank))
    d.rng.shuffle(free)
    batch = free[: d.integer(0, min(1, len(free)))]
    contract = free[len(batch) : len(batch) + d.integer(0, 1)]
    order = [*batch, *contract]
    d.rng.shuffle(order)
    rest = [d.integer(1, 3) for _ in range(d.integer(0, 1))]
    y = d.shaped((*(t.shape[i] for i in order), *rest), t.dtype)
    dims = (
        (tuple(contract), tuple(order.index(i) for i in contract)),
        (tuple(batch), tuple(order.index(i) for i in batch)),
    )
    able = PREFERRED.get(t.dtype, ())
    wide = d.choice(("", *(f", preferred_element_type=dtype('{p}')" for p in able if d.x64 or p not in ONLY_X64)))
    precise = ", precision='highest'" if t.inexact and d.flag() else ""
    return Call(f"lax.dot_general({{0}}, {{1}}, {dims}{wide}{precise})", (x, y))


def dot_of_two(d: Draw) -> Call:
    """Of operands of other dtypes, which the operation promotes."""
    x, kind = d.value(FLOATS, least=1, most=2), d.choice(FLOATS[:3])
    y = d.shaped((d.type(x).shape[-1], d.integer(0, 3)), kind)
    return Call("jnp.matmul({0}, {1})", (x, y))


def dot_with_one(d: Draw) -> Call:
    """Of batches one of which is broadcast."""
    x = d.value(NUMBERS, least=1, most=2)
    t = d.type(x)
    many, rest = d.integer(1, 3), d.integer(0, 3)
    one = f"jnp.broadcast_to({{0}}, {(many, *t.shape)})"
    y = d.shaped((many, t.shape[-1], rest), t.dtype)
    batch = (((t.rank,), (1,)), ((0,), (0,)))
    turned = (((1,), (t.rank,)), ((0,), (0,)))
    return Call(f"lax.dot_general({one}, {{1}}, {batch})" if d.flag() else f"lax.dot_general({{1}}, {one}, {turned})",
                (x, y))


def einsum(d: Draw) -> Call:
    a, b, c = (d.integer(0, 3) for _ in range(3))
    dtype = d.choice(("float32", "int32", "complex64", "bfloat16"))
    which = d.choice(("ab,bc->ac", "ab,bc->ca", "ab,bc->", "ab,bc->b", "ab,bc->abc"))
    return Call(f"jnp.einsum('{which}', {{0}}, {{1}})", (d.shaped((a, b), dtype), d.shaped((b, c), dtype)))


PADDED = "whether a kernel's infinities meet the zeros of padding is XLA's choice"


def convolution(d: Draw) -> Call:
    dtype = d.choice(
        [t for t in ("float32", "float32", "float64", "bfloat16", "complex64", "int32") if d.x64 or t != "float64"]
    )
    groups = d.choice((1, 1, 2))
    batch, channels, out = d.integer(1, 2), groups * d.integer(1, 2), groups * d.integer(1, 2)
    spatial = tuple(d.integer(1, 4) for _ in range(d.integer(0, 2)))
    kernel = tuple(d.integer(1, 2) for _ in spatial)
    several = groups == 1 and d.integer(0, 3) == 0  # groups of the batch instead
    batch, out = (2 * batch, 2 * out) if several else (batch, out)
    left, right = [batch, channels, *spatial], [out, channels // groups, *kernel]
    letters = "HW"[: len(spatial)]
    layout = d.choice(("", f"('N{letters}C', '{letters}IO', 'C{letters}N')")) if spatial else ""
    if layout:
        left, right = [batch, *spatial, channels], [*kernel, channels // groups, out]
    x = d.shaped(tuple(left), dtype)
    k = d.shaped(tuple(right), dtype)
    padding = d.choice(("'SAME'", "'VALID'", repr([(d.integer(-1, 2), d.integer(0, 2)) for _ in spatial])))
    holes = [d.choice((1, 2, 5)) for _ in spatial]
    if "[" in padding:
        options = f", lhs_dilation={tuple(holes)}, rhs_dilation={tuple(d.integer(1, 2) for _ in spatial)}"
    else:
        options = ""
    if layout:
        options += f", dimension_numbers={layout}"
    options += ", batch_group_count=2" if several else f", feature_group_count={groups}"
    if dtype == "bfloat16" and d.flag():
        options += ", preferred_element_type=dtype('float32')"
    strides = tuple(d.integer(1, 3) for _ in spatial)
    return Call(f"lax.conv_general_dilated({{0}}, limited({{1}}), {strides}, {padding}{options})", (x, k))


def transposed_convolution(d: Draw) -> Call:
    n, channels = d.integer(1, 4), d.integer(1, 2)
    x = d.shaped((1, n, channels), "float32")
    k = d.shaped((d.integer(1, 3), channels, 2), "float32")
    padding = d.choice(("'SAME'", "'VALID'"))
    return Call(f"lax.conv_transpose({{0}}, limited({{1}}), ({d.integer(1, 3)},), {padding})", (x, k))


def sort(d: Draw) -> Call:
    x = d.value(ORDERED, least=1)
    return Call(f"lax.sort({{0}}, dimension={d.axis(d.type(x))})", (x,))


def sort_together(d: Draw) -> Call:
    """Operands of any types; if not stable, all are keys."""
    x = d.value(ORDERED, least=1)
    t = d.type(x)
    able = ("int32", "float32", "bool", "uint8", t.dtype)
    others = [d.shaped(t.shape, d.choice(able)) for _ in range(d.integer(1, 2))]
    stable = d.integer(0, 3) > 0
    keys = d.integer(1, len(others) + 1) if stable else len(others) + 1
    texts = ", ".join(f"{{{i}}}" for i in range(len(others) + 1))
    code = f"lax.sort(({texts}), dimension={d.axis(t)}, num_keys={keys}, is_stable={stable})"
    return Call(code, (x, *others), single=False)


def top_k(d: Draw) -> Call:
    x = d.value(REAL, least=1, full=True)
    return Call(f"lax.top_k({{0}}, {d.integer(0, d.type(x).shape[-1])})", (x,), single=False)


def approx_top_k(d: Draw) -> Call:
    x = d.value(FULL, least=1, full=True)
    most = d.choice(("max", "min"))
    k = d.integer(1, d.type(x).shape[-1])
    return Call(f"lax.approx_{most}_k(distinct({{0}}), {k})", (x,), single=False)


def iota(d: Draw) -> Call:
    shape = tuple(d.integer(0, 3) for _ in range(d.integer(1, 2)))
    dtype = d.choice(("int32", "float32", "uint8", "bfloat16", "complex64", "int8"))
    return Call(f"lax.broadcasted_iota(dtype('{dtype}'), {shape}, {d.integer(0, len(shape) - 1)})")


def empty_axis(d: Draw) -> Call:
    x = d.value(most=2)
    return Call(f"lax.expand_dims({{0}}, ({d.integer(0, d.type(x).rank)},))", (x,))


def select_and_scatter(d: Draw) -> Call:
    x = d.value(FULL, least=1)
    t = d.type(x)
    if product(t.shape) > 40:
        raise Nothing
    sizes, strides = window(d, t.rank)
    return Call(f"window_back({{0}}, {sizes}, {strides})", (x,))


def bitwise(name: str) -> Row:
    def make(d: Draw) -> Call:
        x = d.value((*INTS, *BOOL))
        return Call(f"lax.reduce_{name}({{0}}, {d.axes_of(d.type(x), 0)})", (x,))

    return Row(f"reduce_{name}", make, "exact", f"reduce_{name} of bits")


ROWS = [
    over_axes("reduce_sum", "jnp.sum", (*NUMBERS, *BOOL)),
    over_axes("reduce_prod", "jnp.prod", NUMBERS, limit=PARTIAL_PRODUCTS),
    over_axes("reduce_max", "jnp.max", ORDERED, "kink", True),
    over_axes("reduce_min", "jnp.min", ORDERED, "kink", True),
    over_axes("reduce_and", "jnp.all", BOOL, "exact"),
    over_axes("reduce_or", "jnp.any", BOOL, "exact"),
    *map(bitwise, ("and", "or", "xor")),
    argument("argmax"),
    argument("argmin"),
    cumulative("cumsum", NUMBERS),
    cumulative("cumprod", NUMBERS),
    cumulative("cummax", REAL, "kink"),
    cumulative("cummin", REAL, "kink"),
    cumulative("cumlogsumexp", FLOATS),
    Row("reduce", reduce, limit="whether a product is infinite, and so times zero NaN, depends on the order"),
    Row("reduce", reduce_of_two, "kink", "reduce of two", limit="whether the start has a share in ties is open"),
    windowed("reduce_window_sum", "0", "lax.add", NUMBERS),
    windowed("reduce_window_max", "-np.inf", "lax.max", FLOATS, "kink"),
    windowed("reduce_window_min", "np.inf", "lax.min", FLOATS, "kink"),
    windowed("reduce_window", "1", "lambda a, b: a * b", (*SIGNED, *FLOATS)),
    window_derivative("select_and_gather_add", "window_slope"),
    Row("select_and_scatter_add", select_and_scatter, "kink"),
    Row("reshape", reshape, "exact"),
    Row("broadcast_in_dim", broadcast, "exact"),
    Row("transpose", transpose, "exact"),
    Row("broadcast_in_dim", empty_axis, "exact", "expand_dims"),
    Row("rev", rev, "exact"),
    Row("slice", slice_, "exact"),
    Row("dynamic_slice", dynamic_slice, "exact"),
    Row("dynamic_update_slice", dynamic_update_slice, "exact"),
    Row("gather", gather, "exact"),
    scatter("scatter", "set", ALL, "exact"),
    scatter("scatter-add", "add", NUMBERS),
    scatter("scatter-sub", "subtract", NUMBERS),
    scatter("scatter-mul", "multiply", NUMBERS),
    scatter("scatter-max", "max", REAL, "kink"),
    scatter("scatter-min", "min", REAL, "kink"),
    Row("concatenate", concatenate, "exact"),
    Row("pad", pad, "exact"),
    Row("stack", stack, "exact"),
    Row("split", split, "exact"),
    Row("unstack", unstack, "exact"),
    Row("slice", members, name="members read apart", composed=True),
    Row("tile", tile, "exact"),
    Row("squeeze", squeeze, "exact"),
    Row("dot_general", dot_general),
    Row("dot_general", dot_of_two, "smooth", "matmul"),
    Row("dot_general", dot_with_one, "smooth", "one operand for all"),
    Row("dot_general", einsum, "smooth", "einsum"),
    Row("conv_general_dilated", convolution, limit=PADDED),
    Row("conv_general_dilated", transposed_convolution, "smooth", "conv_transpose", limit=PADDED),
    Row("sort", sort, "kink"),
    Row("sort", sort_together, "jump", "sort together"),
    Row("top_k", top_k, "jump"),
    Row("approx_top_k", approx_top_k, "jump", limit="which of equal numbers, or of NaN, approx_top_k names is open"),
    Row("iota", iota, "exact"),
]
