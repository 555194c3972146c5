"""The table of operations: one row each, and the primitives that no row leads to, with the reason."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz import elementwise, indexing, linear_algebra, shaping
from tests.fuzz.rows import Row

COMPOSED = frozenset(
    {
        "lgamma",
        "digamma",
        "igamma",
        "igammac",
        "igamma_grad_a",
        "zeta",
        "polygamma",
        "random_gamma_grad",
        "erf_inv",
        "regularized_incomplete_beta",
        "bessel_i0e",
        "bessel_i1e",
        "atan2",
    }
)
ROWS: list[Row] = [
    *(replace(row, composed=row.primitive in COMPOSED) for row in elementwise.ROWS),
    *(replace(row, composed=row.kind == "smooth") for row in (*shaping.ROWS, *indexing.ROWS, *linear_algebra.ROWS)),
]

# Seen where transformations write them, or control flow does.
BY_TRANSFORMATIONS = frozenset(
    {"jit", "scan", "while", "cond", "remat2", "custom_jvp_call", "custom_vjp_call", "add_any", "custom_lin"}
)

# class of primitives -> why no program has them on purpose
EXCLUDED: dict[str, tuple[str, tuple[str, ...]]] = {
    "several devices": (
        "no result without a mesh",
        (
            "ragged_all_to_all",
            "pbroadcast",
            "pvary",
            "recast",
            "device_values",
            "every_copy",
            "of_device_values",
            "own_copy",
            "psum_invariant",
            "all_gather_invariant",
            "sharding_constraint",
            "reshard",
            "shard_alike",
            "psend",
            "precv",
            "stage",
        ),
    ),
    "effects": ("their result is what the host sees", ("debug_print", "check", "inspect_sharding")),
    "no equation": ("runs what it calls at once", ("call", "closed_call")),
    "undefined values": ("memory as it comes, or a state of the machine's", ("empty", "empty2", "rng_uniform")),
    "tokens": ("they hold no value", ("after_all", "create_token")),
    "hints": ("a program's meaning is the same without", ("layout_constraint", "xla_metadata_value", "remat_opt")),
    "only here": ("JAX has no such operation", ("log2", "one_minus_square", "polynomial")),
    "platforms": ("each has a value of its own", ("platform_index",)),
    "symbolic sizes": ("only in exported programs", ("dim_as_value",)),
    "no public function": (
        "JAX offers no way to write the equation",
        ("select_and_scatter", "geqrf", "iota_2x32_shape", "dce_sink", "custom_lin"),
    ),
}
