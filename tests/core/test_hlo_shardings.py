"""Shardings as XLA writes them, as jaxlib's: texts, tiles, messages, equality, errors."""

from __future__ import annotations

import itertools

import jax as oracle
import numpy as np
import pytest
from jax._src import op_shardings as their_functions
from jaxlib import xla_client as theirs

import styrax
from styrax.core.arrays import hlo_shardings as ours
from styrax.core.arrays.shardings import parse_flatten_op_sharding

MESHES = {(4, 2): ("x", "y"), (2, 2, 2): ("x", "y", "z"), (1, 2, 4): ("x", "y", "z"), (1, 1): ("x", "y")}
SPECS = [(), ("x",), ("y",), (None, "y"), ("y", "x"), (("x", "y"),), (("y", "x"),), (None, ("x", "y")),
         ("y", None, "x"), (("y", "x"), None, None)]
ASKED = ("is_tiled is_replicated is_maximal is_manual is_unknown tile_assignment_dimensions tile_assignment_devices "
         "num_devices num_dimensions replicate_on_last_tile_dim is_tile_assignment_iota").split()


def told(sharding):
    return [repr(sharding), *(getattr(sharding, name)() for name in ASKED),
            [t.name for t in sharding.subgroup_types()], sharding.to_proto().SerializeToString()]


@pytest.mark.parametrize("sizes", MESHES)
@pytest.mark.parametrize("kind", ["Auto", "Manual", "Explicit"])
def test_of_named_shardings(sizes, kind):
    for spec in SPECS:
        for ndim in range(len(spec), 4):
            def found(package, spec=spec, ndim=ndim):
                types = package.sharding.AxisType
                mesh = package.sharding.AbstractMesh(sizes, MESHES[sizes], (
                    getattr(types, kind), *(types.Auto,) * (len(sizes) - 1)))
                if any("x" in (e if isinstance(e, tuple) else (e,)) for e in spec) and kind == "Manual":
                    return None
                return told(package.NamedSharding(mesh, package.P(*spec))._to_xla_hlo_sharding(ndim))

            assert found(styrax) == found(oracle)


def test_unreduced():
    def found(package, **spec):
        mesh = package.sharding.AbstractMesh((2, 2, 2), ("x", "y", "z"), (package.sharding.AxisType.Explicit,) * 3)
        return repr(package.NamedSharding(mesh, package.P(**spec))._to_xla_hlo_sharding(2))

    for axes in ({"x"}, {"x", "z"}, {"x", "y", "z"}):
        assert found(styrax, unreduced=axes) == found(oracle, unreduced=axes)
        assert found(styrax, reduced=axes) == found(oracle, reduced=axes)


TYPES = [(), ("REPLICATED",), ("MANUAL",), ("REPLICATED", "MANUAL"), ("MANUAL", "REPLICATED"), ("REPLICATED",) * 2]
GRIDS = [(4, 1), (4, 2), (1, 1, 2, 1), (1, 1, 1, 2), (1, 2, 1), (2, 2, 2), (1,), (3, 3)]


def message(package, **fields):
    op = package.OpSharding()
    for name, value in fields.items():
        setattr(op, name, value)
    return op


def tiled(package, dims, types, devices=None):
    kinds = package.OpSharding.Type
    return message(package, type=kinds.OTHER, tile_assignment_dimensions=list(dims),
                   tile_assignment_devices=list(range(int(np.prod(dims)))) if devices is None else devices,
                   last_tile_dims=[getattr(kinds, t) for t in types])


@pytest.mark.parametrize("types", TYPES)
def test_of_messages(types):
    for dims in GRIDS:
        if len(types) <= len(dims):
            a, b = (told(p.HloSharding.from_proto(tiled(p, dims, types))) for p in (ours, theirs))
            assert a == b
            stored = tiled(ours, dims, types).SerializeToString()
            assert stored == tiled(theirs, dims, types).SerializeToString()
            again = ours.OpSharding()
            again.ParseFromString(stored)
            assert ours.HloSharding.from_proto(again) == ours.HloSharding.from_proto(tiled(ours, dims, types))


def test_kinds():
    for name, fields in (("REPLICATED", {}), ("MANUAL", {}), ("UNKNOWN", {}), ("MAXIMAL", {
            "tile_assignment_devices": [3], "tile_assignment_dimensions": [1]})):
        a, b = (told(p.HloSharding.from_proto(message(p, type=getattr(p.OpSharding.Type, name), **fields)))
                for p in (ours, theirs))
        assert a == b
    both = [repr(p.HloSharding.from_proto(message(p, type=p.OpSharding.Type.TUPLE, tuple_shardings=[
        tiled(p, (2, 2), ()), message(p, type=p.OpSharding.Type.MANUAL)]))) for p in (ours, theirs)]
    assert both[0] == both[1]
    with pytest.raises(styrax.errors.JaxRuntimeError):
        ours.HloSharding.from_proto(tiled(ours, (2, 2), (), [0, 1]))


@pytest.mark.parametrize("given", [
    ((2, 2),), ((4, 2), (2, 2, 2), (2, 1, 0)), ((4, 2), (2, 4), (1, 0)), ((2, 2, 2), (2, 1, 4), (2, 1, 0)), ((1, 8),),
    ((6, 35), (7, 10, 3), (2, 1, 0)), ((),), ((2, 2), (), (1, 0)), ((2, 2), (3,), (1, 0)), ((2, 2), (5,), (0,)),
    ((2, 2), (2, 4), (1, 0))])
def test_consecutive_devices(given):
    def found(package):
        try:
            made = package.HloSharding.iota_tile(*given)
        except Exception as error:
            return type(error).__name__, str(error)
        return told(made), made.get_axis_sizes() if made.is_tiled() else None

    assert found(ours) == found(theirs)


def test_equality():
    grids = [((2, 2, 2), ("REPLICATED",), None), ((2, 2, 2), (), None), ((1, 8), ("REPLICATED",), None),
             ((8,), (), None), ((2, 2), (), [0, 1, 3, 2]), ((1,), (), None), ((1, 1, 2), ("REPLICATED",), None)]
    for p, functions in ((ours, ours), (theirs, their_functions)):
        made = [p.HloSharding.from_proto(tiled(p, *g)) for g in grids] + [p.HloSharding.replicate()]
        told = [(a == b, functions.are_hlo_shardings_equal(a, b), hash(a) == hash(b))
                for a, b in itertools.product(made, made)], [functions.is_hlo_sharding_replicated(h) for h in made]
        if p is ours:
            expected = told
    assert told == expected


def test_indices():
    def found(package, functions, dims, types):
        made = package.HloSharding.from_proto(tiled(package, dims, types))
        try:
            ways = functions.get_num_ways_dim_sharded(made)
            return ways, functions.op_sharding_to_indices(made, (8, 12), int(np.prod(dims)))
        except Exception as error:
            return type(error).__name__

    for dims, types in [((4, 2), ()), ((2, 2, 2), ("REPLICATED",)), ((4, 2), ("MANUAL",)), ((1, 4, 2), ("REPLICATED",)),
                        ((1, 8), ("REPLICATED",)), ((2, 2, 2), ()), ((8, 1), ())]:
        assert found(ours, ours, dims, types) == found(theirs, their_functions, dims, types)


def test_back_to_axes():
    mesh = styrax.sharding.AbstractMesh((2, 3, 4, 5), ("a", "b", "c", "d"))
    rng = np.random.default_rng(0)
    for _ in range(50):
        entries = [()] * 4
        for name in rng.permutation(list("abcd"))[:rng.integers(1, 5)]:
            entries[rng.integers(4)] += (str(name),)
        spec = styrax.P(*entries)
        (back,) = parse_flatten_op_sharding(styrax.NamedSharding(mesh, spec)._to_xla_hlo_sharding(4), mesh)
        assert (*back, *(None,) * (4 - len(back))) == tuple(spec)
