"""`import jax` and its submodules resolve to Styrax: one module object under both names."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys

from . import removals

TYPE_CHECKING = False
if TYPE_CHECKING:  # every child process loads this module: it imports next to nothing
    from collections.abc import Iterator, Sequence
    from types import ModuleType
    from typing import Any

# foreign module -> ours; the longest prefix counts. The internals of JAX that libraries use are views of our own.
ROOTS = {
    "jax": "styrax",
    "jax._src": "styrax.compat.internals",
    "jax._src.ad_checkpoint": "styrax.ad_checkpoint",
    "jax._src.ad_util": "styrax.compat.internals.ad_util",
    "jax._src.api_util": "styrax.api_util",
    "jax._src.basearray": "styrax.compat.internals.array",
    "jax._src.compiler": "styrax.core.arrays.backends",
    "jax._src.core": "styrax.core",
    "jax._src.custom_batching": "styrax.custom_batching",
    "jax._src.custom_derivatives": "styrax.custom_derivatives",
    "jax._src.dtypes": "styrax.core.types.dtypes",
    "jax._src.effects": "styrax.core.types.effects",
    "jax._src.errors": "styrax.errors",
    "jax._src.flatten_util": "styrax.flatten_util",
    "jax._src.interpreters": "styrax.interpreters",
    "jax._src.lax": "styrax.compat.internals.lax",
    "jax._src.lax.lax": "styrax.compat.internals.lax_operations",
    "jax._src.lax.linalg": "styrax.lax.linalg",
    "jax._src.lax.parallel": "styrax.lax",
    "jax._src.lax.slicing": "styrax.lax",
    "jax._src.lib": "styrax.compat.jaxlib",
    "jax._src.linear_util": "styrax.extend.linear_util",
    "jax._src.mesh": "styrax.core.arrays.mesh",
    "jax._src.named_sharding": "styrax.core.arrays.shardings",
    "jax._src.nn": "styrax.compat.internals.nn",
    "jax._src.nn.functions": "styrax.nn",
    "jax._src.nn.initializers": "styrax.nn.initializers",
    "jax._src.numpy": "styrax.compat.internals.numpy",
    "jax._src.numpy.array_creation": "styrax.numpy.creation",
    "jax._src.numpy.einsum": "styrax.numpy.einsums",
    "jax._src.numpy.fft": "styrax.numpy.fft",
    "jax._src.numpy.indexing": "styrax.numpy.indexing",
    "jax._src.numpy.lax_numpy": "styrax.numpy",
    "jax._src.numpy.linalg": "styrax.numpy.linalg",
    "jax._src.numpy.polynomial": "styrax.numpy.polynomials",
    "jax._src.numpy.reductions": "styrax.numpy.reductions",
    "jax._src.numpy.setops": "styrax.numpy.sets",
    "jax._src.numpy.sorting": "styrax.numpy.sorting",
    "jax._src.numpy.tensor_contractions": "styrax.numpy.dot_products",
    "jax._src.numpy.ufunc_api": "styrax.numpy.ufunc_objects",
    "jax._src.numpy.ufuncs": "styrax.numpy",
    "jax._src.numpy.util": "styrax.numpy.promotion",
    "jax._src.numpy.vectorize": "styrax.numpy.vectorization",
    "jax._src.op_shardings": "styrax.core.arrays.hlo_shardings",
    "jax._src.ops": "styrax.compat.internals.ops",
    "jax._src.ops.scatter": "styrax.ops",
    "jax._src.partition_spec": "styrax.core.arrays.shardings",
    "jax._src.random": "styrax.compat.internals.random",
    "jax._src.random.threefry2x32": "styrax.compat.internals.threefry2x32",
    "jax._src.scipy": "styrax.scipy",
    "jax._src.sharding": "styrax.core.arrays.shardings",
    "jax._src.source_info_util": "styrax.extend.source_info_util",
    "jax._src.stages": "styrax.stages",
    "jax._src.tree": "styrax.tree",
    "jax._src.tree_util": "styrax.compat.internals.tree_util",
    "jax._src.util": "styrax.compat.internals.sequences",
    "jax.experimental.sparse.util": "styrax.experimental.sparse.counting",
    "jaxlib": "styrax.compat.jaxlib",
}

# our modules with classes of values, and where JAX has these: libraries tell by a class's module whose a value is
CLASSES = {
    "styrax.core.arrays.array": ("jaxlib._jax", ("Array",)),
    "styrax.core.tracing.staging": ("jax._src.interpreters.partial_eval", ("DynamicJaxprTracer",)),
    "styrax.core.tracing.trace": ("jax._src.core", ("Tracer",)),
    "styrax.core.types.avals": ("jax._src.literals", ("TypedInt", "TypedFloat", "TypedComplex")),
    "styrax.interpreters.partial_eval": ("jax._src.interpreters.partial_eval", ("JaxprTracer",)),
    "styrax.transforms.batch": ("jax._src.interpreters.batching", ("BatchTracer",)),
    "styrax.transforms.jvp": ("jax._src.interpreters.ad", ("JVPTracer", "GradTracer")),
    "styrax.transforms.partial": ("jax._src.interpreters.partial_eval", ("PartialTracer",)),
}

# what `import jax` loads in JAX. Ours loads modules when they are used, and libraries look for these by name in
# `sys.modules` once they have used them
LOADED = frozenset((
    "api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors experimental "
    "experimental.compilation_cache experimental.compilation_cache.compilation_cache export ffi image interpreters "
    "interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval interpreters.pxla "
    "interpreters.xla lax lax.linalg lib monitoring nn nn.initializers numpy numpy.fft numpy.linalg ops profiler "
    "random ref scipy sharding stages tree tree_util typing version").split())


def own_name(name: str) -> str | None:
    """The Styrax module that stands for a module of JAX, or None for modules of others."""
    if not name.startswith("jax"):
        return None
    head, tail = name, ""
    while head not in ROOTS:
        head, dot, last = head.rpartition(".")
        if not dot:
            return None
        tail = f".{last}{tail}"
    return ROOTS[head] + tail


def _speak_jax(package: ModuleType) -> None:
    """From now on the package gives JAX's version as its own."""
    from .. import version

    for name in LOADED:
        module = sys.modules.get(f"styrax.{name}")
        if module is not None:
            sys.modules.setdefault(f"jax.{name}", module)
    for module in (package, version):
        module.__version__ = version.JAX  # type: ignore[attr-defined]
        module.__version_info__ = version.as_tuple(version.JAX)  # type: ignore[attr-defined]


def _place_classes(module: ModuleType) -> None:
    """Has classes of values say that they are JAX's."""
    home, names = CLASSES[module.__name__]
    for name in names:
        getattr(module, name).__module__ = home


class Loader:
    """Gives the Styrax module of the same path. That module keeps its own spec."""

    def __init__(self, own: str):
        self.own = own
        self.spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.own)
        self.spec = module.__spec__
        if spec.name == "jax":
            _speak_jax(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class Finder:
    """Finds `jax`, `jaxlib` and their submodules, and the metadata of their distributions, installed or not."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name.startswith("styrax."):
            return _own(name, path)
        own = own_name(name)
        if own is None:
            return None
        own = removals.module(name) or own
        found = sys.modules.get(own)
        if found is None:
            try:
                spec = importlib.util.find_spec(own)
            except ModuleNotFoundError:
                return None
            if spec is None:
                return None
            locations = spec.submodule_search_locations
        else:
            locations = getattr(found, "__path__", None)
        if locations is None and any(known.startswith(f"{name}.") for known in ROOTS):
            locations = []  # a package in JAX alone
        loader: Any = Loader(own)
        spec = importlib.machinery.ModuleSpec(name, loader, is_package=locations is not None)
        if locations is not None:
            spec.submodule_search_locations = list(locations)
        return spec

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The distributions "jax" and "jaxlib", as `importlib.metadata` asks for them."""
        name = getattr(context, "name", None)
        if name is not None and name.lower() not in ("jax", "jaxlib"):
            return
        if context is not None and "path" in vars(context):
            return  # somebody looks into certain folders, and there we are not
        from .metadata import Distribution

        for known in ("jax", "jaxlib"):
            if name is None or name.lower() == known:
                yield Distribution(known)


def _own(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    """Our own module as everyone finds it, for modules that get JAX's name as well, names back that JAX removed, or
    whose classes get JAX's names."""
    served, loaded, placed = name in removals.SERVED, name.removeprefix("styrax.") in LOADED, name in CLASSES
    if not (served or loaded or placed):
        return None
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return None
    execute = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        if served:
            removals.serve(module)
        if placed:
            _place_classes(module)
        if loaded:
            sys.modules.setdefault("jax" + name.removeprefix("styrax"), module)

    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


_finder = Finder()


def installed() -> bool:
    """Whether `import jax` gives Styrax in this process."""
    return _finder in sys.meta_path


def install(*, children: bool = True) -> None:
    """Makes `jax` mean Styrax in this process, whether JAX is installed or not.

    Args:
      children: whether Python processes that this one starts from now on do the same.

    Raises:
      RuntimeError: the real JAX has been imported already.
    """
    for name in ("jax", "jaxlib"):
        present = sys.modules.get(name)
        if present is not None and not present.__name__.startswith("styrax"):
            raise RuntimeError(f"{name} has been imported already: call styrax.compat.install() before the first "
                               "import of it")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        removals.serve_all()
        for name in CLASSES:
            if name in sys.modules:
                _place_classes(sys.modules[name])
    if children:
        from .processes import prepare_children

        prepare_children()
