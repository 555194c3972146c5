"""The table of operations: one row each, and the primitives that no row leads to, with the reason."""

from __future__ import annotations

from tests.fuzz import elementwise, linear_algebra, shaping
from tests.fuzz.rows import Row

ROWS: list[Row] = [*elementwise.ROWS, *shaping.ROWS, *linear_algebra.ROWS]

# Seen where transformations write them, or control flow does.
BY_TRANSFORMATIONS = frozenset({"jit", "scan", "while", "cond", "remat2", "custom_jvp_call", "custom_vjp_call",
                                "add_any", "custom_lin"})

# class of primitives -> why no program has them on purpose
EXCLUDED: dict[str, tuple[str, tuple[str, ...]]] = {
    "several devices": ("no result without a mesh", ("all_to_all", "reduce_scatter", "pbroadcast", "sharding_constraint")),
    "effects": ("their result is what the host sees", ("debug_callback", "debug_print", "io_callback", "check")),
    "no equation": ("runs what it calls at once", ("call", "closed_call")),
    "undefined values": ("memory as it comes, or a state of the machine's", ("empty", "rng_uniform")),
    "symbolic sizes": ("only in exported programs", ("dim_as_value",)),
    "no public function": ("JAX offers no way to write the equation", (
        "select_and_scatter", "geqrf", "iota_2x32_shape", "dce_sink", "custom_lin")),
}
