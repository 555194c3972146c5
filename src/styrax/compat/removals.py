"""Names that JAX has removed, for programs written before: each works, and warns with today's spelling.

Only under the drop-in. A row is `removed name: today's spelling`; where that is not the path of an object which does
the same, the row is `(path of our object that does, today's spelling)`.
"""

from __future__ import annotations

import importlib
import sys

from . import keywords
from .deprecations import warn

TYPE_CHECKING = False
if TYPE_CHECKING:  # loaded with `import jax`: imports next to nothing
    from types import ModuleType
    from typing import Any

    Row = str | tuple[str, str]

_FORMER = "styrax.compat.former."
_BACKENDS = "jax.devices, jax.default_backend, jax.extend.backend.get_backend"
_CLASSES = "the public names of jax"
_TREE = {name: f"jax.tree.{name}" for name in ("all", "flatten", "leaves", "map", "reduce", "structure", "transpose",
                                               "unflatten")}

NAMES: dict[str, dict[str, Row]] = {
    "jax": {
        **{f"tree_{name}": path for name, path in _TREE.items()},
        "tree_multimap": "jax.tree.map",
        "treedef_children": "jax.tree_util.treedef_children",
        "treedef_is_leaf": "jax.tree_util.treedef_is_leaf",
        "treedef_tuple": "jax.tree_util.treedef_tuple",
        "partial": "functools.partial",
        "curry": (_FORMER + "functions.curry", "functools.partial"),
        "xla_computation": (_FORMER + "functions.xla_computation", "jax.jit(f).lower(*args).compiler_ir('hlo')"),
        "device_put_sharded": (_FORMER + "functions.device_put_sharded",
                               "jax.device_put(jnp.stack(shards), sharding)"),
        "device_put_replicated": (_FORMER + "functions.device_put_replicated", "jax.device_put(x, sharding)"),
        "clear_backends": "jax.clear_caches",
        "KeyArray": "jax.Array",
    },
    "jax.core": {
        "ConcreteArray": "jax.core.ShapedArray",
        "raise_to_shaped": (_FORMER + "functions.raise_to_shaped", "nothing: abstract values are shaped"),
    },
    "jax.numpy": {
        "DeviceArray": "jax.Array",
        "NINF": (_FORMER + "functions.NINF", "-jnp.inf"),
        "PZERO": (_FORMER + "functions.PZERO", "0.0"),
        "NZERO": (_FORMER + "functions.NZERO", "-0.0"),
        "alltrue": "jax.numpy.all",
        "sometrue": "jax.numpy.any",
        "product": "jax.numpy.prod",
        "cumproduct": "jax.numpy.cumprod",
        "in1d": (_FORMER + "functions.in1d", "jnp.isin"),
        "msort": (_FORMER + "functions.msort", "jnp.sort(a, axis=0)"),
        "round_": "jax.numpy.round",
        "row_stack": "jax.numpy.vstack",
        "trapz": "jax.numpy.trapezoid",
        "issubsctype": "jax.numpy.issubdtype",
    },
    "jax.nn": {
        "normalize": "jax.nn.standardize",
    },
    "jax.scipy.special": {
        "sph_harm": (_FORMER + "functions.sph_harm", "jax.scipy.special.sph_harm_y(n, m, phi, theta)"),
    },
    "jax.ops": {
        "index": "jax.numpy.index_exp",
        **{f"index_{name}": (f"{_FORMER}functions.index_{name}", f"x.at[idx].{today}(y)")
           for name, today in (("update", "set"), ("add", "add"), ("mul", "multiply"), ("min", "min"), ("max", "max"))},
    },
    "jax.lax": {
        "tie_in": (_FORMER + "functions.tie_in", "the second argument itself"),
        "xeinsum": "jax.numpy.einsum",
        "pdot": (_FORMER + "functions.pdot", "jax.lax.psum(jnp.dot(x, y), axis_name)"),
    },
    "jax.random": {
        "shuffle": (_FORMER + "functions.shuffle", "jax.random.permutation(key, x, independent=True)"),
        "KeyArray": "jax.Array",
        "PRNGKeyArray": "jax.Array",
        "threefry_2x32": "jax.extend.random.threefry_2x32",
    },
    "jax.tree_util": {
        "tree_multimap": "jax.tree.map",
        "register_keypaths": (_FORMER + "functions.register_keypaths", "jax.tree_util.register_pytree_with_keys"),
    },
    "jax.interpreters.xla": {
        "DeviceArray": "jax.Array",
    },
    "jax.experimental": {
        "PartitionSpec": "jax.sharding.PartitionSpec",
        "disable_x64": (_FORMER + "functions.disable_x64", "jax.enable_x64(False)"),
    },
    "jax.experimental.compilation_cache.compilation_cache": {
        "initialize_cache": "jax.experimental.compilation_cache.compilation_cache.set_cache_dir",
    },
}

# Options that have no effect any more
OPTIONS = frozenset((
    "jax_array", "jax_coordination_service", "jax_enable_mlir", "jax_experimental_name_stack", "jax_jit_pjit_api_merge",
    "jax_omnistaging", "jax_parallel_functions_output_gda", "jax_spmd_mode"))

# Modules: removed module -> (our module that stands for it, what to write today)
MODULES: dict[str, tuple[str, str]] = {
    "jax.abstract_arrays": ("styrax.core", "jax.core"),
    "jax.ad_util": ("styrax.compat.internals.ad_util", "jax.interpreters.ad"),
    "jax.api": ("styrax", "jax"),
    "jax.config": (_FORMER + "config", "jax.config, an object: `import jax; jax.config.update(…)`"),
    "jax.experimental.array_api": ("styrax.numpy", "jax.numpy"),
    "jax.experimental.export": ("styrax.export", "jax.export"),
    "jax.experimental.host_callback": (
        _FORMER + "host_callback", "jax.pure_callback, jax.experimental.io_callback or jax.debug.callback"),
    "jax.experimental.maps": (_FORMER + "maps", "jax.sharding.Mesh and jax.shard_map"),
    "jax.experimental.optimizers": ("styrax.example_libraries.optimizers", "jax.example_libraries.optimizers"),
    "jax.experimental.stax": ("styrax.example_libraries.stax", "jax.example_libraries.stax"),
    "jax.interpreters.sharded_jit": (_FORMER + "maps", "jax.jit with shardings"),
    "jax.lib.xla_bridge": (_FORMER + "xla_bridge", _BACKENDS),
    "jax.lib.xla_client": (_FORMER + "xla_client", _CLASSES),
    "jax.lib.xla_extension": (_FORMER + "xla_client", _CLASSES),
    "jax.util": ("styrax.compat.internals.sequences", "functions of one's own, functools, jax.extend"),
    "jax.linear_util": ("styrax.extend.linear_util", "jax.extend.linear_util"),
    "jax.random_distributions": ("styrax.random", "jax.random"),
    "jax.tools": (_FORMER + "tools", "nothing is to be set up"),
    "jax.tools.colab_tpu": (_FORMER + "tools", "nothing is to be set up"),
}

for _path, _row in MODULES.items():  # `from jax.lib import xla_bridge` asks the package first
    _package, _, _name = _path.rpartition(".")
    if _package not in MODULES and _path != "jax.config":
        NAMES.setdefault(_package, {})[_name] = _row


def resolve(path: str) -> Any:
    """The object at a dotted path. Raises AttributeError or ModuleNotFoundError where there is none."""
    parts = path.replace("jax.", "styrax.", 1).split(".") if path.startswith("jax.") else path.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[:i]))
    return found


def module(name: str) -> str | None:
    """Our module that stands for a removed one, or None; warns whoever imports it."""
    row = MODULES.get(name)
    if row is None:
        return None
    warn(name, row[1], 3)  # the frames of the import system do not count
    return row[0]


_ARRAYS = "styrax.core.arrays.array"  # whose classes have had other attributes
_CONFIG = "styrax.core.settings.config"  # which has had other options
SERVED = frozenset({
    *("styrax" + name.removeprefix("jax") for name in NAMES.keys() | keywords.KEYWORDS.keys()), _ARRAYS, _CONFIG})


def serve_all() -> None:
    """Gives the modules that are loaded their removed names; others get theirs when they are loaded."""
    for name in SERVED:
        module = sys.modules.get(name)
        if module is not None:
            serve(module)


def serve(module: ModuleType) -> None:
    """Gives one of our modules the names that JAX has removed from it."""
    if module.__name__ == _ARRAYS:
        from .former import arrays

        arrays.install()
        return
    if module.__name__ == _CONFIG:
        _serve_options(module)
        return
    name = "jax" + module.__name__.removeprefix("styrax")
    keywords.serve(module, name)
    table, functions = NAMES.get(name, {}), keywords.KEYWORDS.get(name, ())
    known = module.__dict__.get("__getattr__")

    def get(attribute: str) -> Any:
        try:
            row = table.get(attribute)
            if row is not None:
                path, today = (row, row) if isinstance(row, str) else row
                value = resolve(path)
                warn(f"{name}.{attribute}", today, 2)
                return value
            if known is not None:
                value = known(attribute)
                return keywords.taught(module, name, attribute, value) if attribute in functions else value
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        except AttributeError as error:
            from ..core.tracing.source import hide_frames

            hide_frames(error, note=False)
            raise

    module.__getattr__ = get  # type: ignore[method-assign]


def _serve_options(module: ModuleType) -> None:
    """Has `jax.config` take options that are gone, and say so."""
    update = module.Config.update

    def update_or_warn(self: Any, name: str, value: Any) -> None:
        if name in OPTIONS:
            warn(f"the option {name}", "nothing: it has no effect", 2)
        else:
            update(self, name, value)

    module.Config.update = update_or_warn
    module.Config.enable_omnistaging = lambda self: warn("jax.config.enable_omnistaging", "nothing: it is always on", 2)
