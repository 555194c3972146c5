"""`pallas_call`: a kernel run on each point of a grid, on blocks of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.hooks import lax
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.programs.primitive import Primitive
from ...core.tracing.source import api_boundary
from ...core.tracing.trace import get_aval
from ...core.trees import tree, tree_paths
from ...core.types import dtypes
from ...core.types.avals import AbstractRef, ShapedArray, shaped
from ...core.types.effects import Effects, RefEffect
from ...core.types.typing import PyTree
from .grids import GridMapping
from .loop_nests import loop_nest
from .specs import (
    BlockSpec,
    BlockSpecTree,
    CompilerParams,
    CostEstimate,
    GridSpec,
    NoBlockSpec,
    ScratchShapeTree,
    TupleGrid,
    no_block_spec,
)
from .traces import block_mapping, trace_kernel

pallas_call_p = Primitive("pallas_call", multiple_results=True)
pallas_call_p.declare(program=lambda params: loop_nest(
    params["jaxpr"], params["grid_mapping"], params["input_output_aliases"]))
pallas_call_p.higher_order = True


@pallas_call_p.def_effectful_abstract_eval
def _pallas_call_avals(*avals: Any, jaxpr: ClosedJaxpr, out_avals: Sequence[ShapedArray],
                       **params: Any) -> tuple[list[Any], Effects]:
    return list(out_avals), frozenset(e for e in jaxpr.effects if not isinstance(e, RefEffect))


@api_boundary
def pallas_call(kernel: Callable[..., None], out_shape: PyTree, *, grid_spec: GridSpec | None = None,
                grid: TupleGrid = (), in_specs: BlockSpecTree = no_block_spec,
                out_specs: BlockSpecTree = no_block_spec, scratch_shapes: ScratchShapeTree = (),
                input_output_aliases: Mapping[int, int] = {}, debug: bool = False,
                interpret: Hashable = False, name: str | None = None, compiler_params: CompilerParams | None = None,
                cost_estimate: CostEstimate | None = None,
                metadata: dict[str, str] | None = None) -> Callable[..., PyTree]:
    """Makes a function of arrays of a kernel that reads and writes references to blocks of them.

    The kernel is called at each point of the grid, in order, with a reference for each operand, for each result and for
    each piece of scratch memory. On CPUs the grid is a nest of loops that is compiled with all that is around it.

    Args:
      kernel: function of references that returns None. It may read arrays and scalars through them only.
      out_shape: the results' shapes and dtypes: a `ShapeDtypeStruct` or a tree of them.
      grid_spec: grid, specs and scratch memory in one, instead of the next four.
      grid: how many points the grid has along each dimension, the last varying fastest. One integer stands for one
        dimension; sizes can be traced.
      in_specs: a tuple with a `BlockSpec` for each operand, or containers of them in the operands' structure.
      out_specs: the same in the structure of `out_shape`.
      scratch_shapes: memory that the kernel gets after the results; named pieces are passed by name.
      input_output_aliases: operands (leaves, counted in order) -> results that begin with their contents.
      debug: whether to print the kernel's program as it is traced.
      interpret: accepted and without effect: on CPUs kernels are compiled, with the results of interpretation.
      name: the kernel's name, for profiles.
      compiler_params: for accelerators.
      cost_estimate: for accelerators.
      metadata: words that are kept with the call.

    Returns:
      a function of the operands, trees of arrays. Elements of results that no point of the grid writes are NaN, or the
      least integer, or False; so are elements of blocks that lie outside of the array.

    Raises:
      TypeError: the kernel is not callable or does not take so many references. From a call, like the next ones.
      ValueError: grid and specs do not fit the operands, the kernel returns something or captures arrays, or
        results cannot share their memory with operands as told.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> def add(x_ref, y_ref, o_ref):
      ...     o_ref[...] = x_ref[...] + y_ref[...]
      >>> pl.pallas_call(add, jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True)(jnp.arange(3.0), jnp.ones(3))
      Array([1., 2., 3.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for given, value in (("grid", grid), ("scratch_shapes", scratch_shapes)):
            if value != ():
                raise ValueError(f"If `grid_spec` is specified, then `{given}` must be `()`. It is {value}")
        for given, value in (("in_specs", in_specs), ("out_specs", out_specs)):
            if not isinstance(value, NoBlockSpec):
                raise ValueError(f"If `grid_spec` is specified, then `{given}` must be `no_block_spec`. It is {value}")
    if not callable(kernel):
        raise TypeError("the first argument must be callable")
    call = _Call(kernel, out_shape, grid_spec, dict(input_output_aliases), dict(
        debug=debug, interpret=interpret, name=name, compiler_params=compiler_params, cost_estimate=cost_estimate,
        metadata=None if metadata is None else tuple(sorted(metadata.items())), mesh=None))

    @functools.wraps(kernel, updated=())
    def wrapped(*args: Any) -> Any:
        return call(args)

    return wrapped


class _Call:
    """What `pallas_call` was told, applied to operands."""

    def __init__(self, kernel: Callable[..., None], out_shape: PyTree, spec: GridSpec, aliases: dict[int, int],
                 params: dict[str, Any]):
        self.kernel = kernel
        self.spec = spec
        self.aliases = aliases
        self.params = params
        self.dynamic, self.grid = _grid_sizes(spec.grid)
        shapes = tuple(out_shape) if isinstance(out_shape, list) else out_shape
        leaves, self.out_tree = tree.tree_flatten(shapes)
        self.out_avals = tuple(map(_result_aval, leaves))

    def __call__(self, args: tuple[Any, ...]) -> Any:
        leaves, args_tree = tree.tree_flatten(args)
        avals = [get_aval(x) for x in leaves]
        mapping, kernel_tree = self.mapping(args, args_tree, avals)
        refs = [*mapping.index_avals, *(m.ref_aval for m in mapping.block_mappings), *mapping.scratch_avals]
        closed = trace_kernel(self.kernel, kernel_tree, refs, mapping.kernel_grid)
        if self.params["debug"]:
            print(f"\nThe kernel jaxpr for pallas_call {closed.debug_info.func_src_info}:\n{closed}")
        outs = pallas_call_p.bind(
            *self.dynamic, *leaves, jaxpr=closed, grid_mapping=mapping, out_avals=self.out_avals,
            input_output_aliases=self.checked_aliases(avals), **self.params)
        return tree.tree_unflatten(self.out_tree, outs)

    def mapping(self, args: tuple[Any, ...], args_tree: tree.PyTreeDef,
                avals: Sequence[ShapedArray]) -> tuple[GridMapping, tree.PyTreeDef]:
        """The grid and its blocks for these operands, and the structure of the kernel's arguments."""
        spec = self.spec
        fetched, operands = args[:spec.num_scalar_prefetch], args[spec.num_scalar_prefetch:]
        index_tree = tree.tree_structure(fetched)
        count = index_tree.num_leaves
        index_avals = tuple(AbstractRef(a.strip_weak_type()) for a in avals[:count])
        results = tree.tree_unflatten(self.out_tree, self.out_avals)
        blocks = [
            block_mapping(s, a, origin, len(self.grid), index_avals, index_tree)
            for specs, value, what, types in (
                (spec.in_specs, operands, ("in_specs", "inputs", "args"), avals[count:]),
                (spec.out_specs, results, ("out_specs", "out_shape", "outputs"), self.out_avals))
            for s, a, origin in zip(_leaf_specs(specs, value, what), types, _origins(value, what[2]),
                                    strict=True)]
        scratch, scratch_tree = tree.tree_flatten(spec.scratch_shapes)
        mapping = GridMapping(self.grid, spec.grid_names, (), tuple(blocks), index_avals,
                              tuple(s.get_ref_aval() for s in scratch), len(avals) - count, len(self.out_avals))
        outputs = results if isinstance(results, tuple) else (results,)
        pieces = tree.tree_unflatten(scratch_tree, mapping.scratch_avals)
        positional, named = ((), pieces) if isinstance(pieces, Mapping) else (tuple(pieces), {})
        return mapping, tree.tree_structure(((*args, *outputs, *positional), dict(named)))

    def checked_aliases(self, avals: Sequence[ShapedArray]) -> tuple[tuple[int, int], ...]:
        for i, o in self.aliases.items():
            about = f"input_output_aliases contains the mapping '{i}:{o}'"
            if not 0 <= i < len(avals):
                raise ValueError(f"{about} with input index {i} outside the range [0, {len(avals)})")
            if not 0 <= o < len(self.out_avals):
                raise ValueError(f"{about} with output index {o} outside the range [0, {len(self.out_avals)})")
            if (avals[i].shape, avals[i].dtype) != (self.out_avals[o].shape, self.out_avals[o].dtype):
                raise ValueError(f"{about} referring to input[{i}] with abstract value {avals[i].strip_weak_type()} "
                                 f"and to output with a different abstract value {self.out_avals[o]}.")
        return tuple(self.aliases.items())


def _grid_sizes(grid: TupleGrid) -> tuple[list[Any], tuple[int | None, ...]]:
    """The sizes that are operands, and the others in place."""
    dynamic: list[Any] = []
    sizes: list[int | None] = []
    for d in grid:
        aval = None if isinstance(d, (int, np.integer)) else _aval_or_none(d)
        if isinstance(d, (int, np.integer)):
            sizes.append(int(d))
        elif aval is not None and aval.shape == () and dtypes.issubdtype(aval.dtype, np.integer):
            dynamic.append(lax.convert_element_type(d, np.int32))
            sizes.append(None)
        else:
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
    return dynamic, tuple(sizes)


def _aval_or_none(x: Any) -> Any:
    try:
        return get_aval(x)
    except TypeError:
        return None


def _result_aval(x: Any) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(f"Invalid out_shape type: {type(x)}")
    return shaped(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))


def _is_spec(x: Any) -> bool:
    return isinstance(x, (BlockSpec, NoBlockSpec))


def _leaf_specs(specs: BlockSpecTree, value: PyTree, what: tuple[str, str, str]) -> list[BlockSpec]:
    """One spec for each leaf of a value."""
    name, of = what[:2]
    structure = tree.tree_structure(value)
    if isinstance(specs, NoBlockSpec):
        return [BlockSpec()] * structure.num_leaves
    if name == "in_specs" and not isinstance(specs, tuple):
        raise ValueError(f"`in_specs` must be a tuple or a list. Found: {specs}")
    leaves, specs_tree = tree.tree_flatten(specs, is_leaf=_is_spec)
    if specs_tree != structure:
        found = list(tree_paths.equality_errors_pytreedef(specs_tree, structure))
        raise ValueError(f"Pytree for `{name}` and `{of}` do not match. There are {len(found)} mismatches, including:"
                         + "".join(_mismatch(name, of, *e) for e in found))
    return [BlockSpec() if isinstance(s, NoBlockSpec) else s for s in leaves]


def _mismatch(name: str, of: str, path: Any, have: str, got: str, why: str) -> str:
    where = f"at {tree_paths.keystr(path)}, " if path else ""
    return f"\n    * {where}`{name}` is a {have} but `{of}` is a {got}, so {why}"


def _origins(value: PyTree, name: str) -> list[str]:
    return [f"{name}{tree_paths.keystr(path)}" for path, _ in tree_paths.tree_flatten_with_path(value)[0]]


