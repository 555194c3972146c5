"""`PartitionSpec`, meshes and what is made of parts, as under JAX."""

from __future__ import annotations

import gc
import pickle
import warnings

import jax as oracle
import numpy as np
import pytest

import styrax

pytestmark = pytest.mark.usefixtures("old_objects_aside")

EXPRESSIONS = {
    "unreduced": lambda P: [P("x", unreduced={"y"}), P(None, None, unreduced={"y"}), P(unreduced={"y"}),
                            P("a", ("b", "c"), reduced={"d"}), P("x")],
    "overlap": lambda P: P("x", unreduced={"x"}),
    "overlap in a tuple": lambda P: P("a", ("b", "x"), reduced={"x"}),
    "both": lambda P: P("a", unreduced={"x"}, reduced={"x"}),
    "none": lambda P: P("a", unreduced={None}),
    "string": lambda P: P("a", unreduced="x"),
    "list": lambda P: P("a", reduced=["x"]),
    "add a tuple": lambda P: P("x") + (None, ("a", "b")),
    "add a tuple to sums": lambda P: P("x", unreduced={"z"}) + (None,),
    "add sums to a tuple": lambda P: (None,) + P("x", reduced={"z"}),
    "add": lambda P: P("x", unreduced={"z"}) + P("a", unreduced={"b"}) == P("x", "a", unreduced={"z", "b"}),
    "nested": lambda P: P("x", ("y", ("z",))),
    "same": lambda P: (P(None, "x") is P((), "x"), P(("x",)) is P("x"), P("x") is P("x", None), P(["a", "b"]) is P(
        ("a", "b")), pickle.loads(pickle.dumps(P("x", reduced={"y"}))) is P("x", reduced={"y"})),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_specs(name):
    def outcome(package):
        try:
            return repr(EXPRESSIONS[name](package.P))
        except Exception as error:
            return type(error).__name__

    assert outcome(styrax) == outcome(oracle)


def test_specs_are_not_kept():
    from styrax.core.arrays import shardings

    spec = styrax.P("an axis of this test")
    known = len(shardings._specs)
    del spec
    gc.collect()
    assert len(shardings._specs) < known


def test_meshes_without_devices_and_names():
    def program(package):
        Mesh = package.sharding.Mesh
        none, one = Mesh(np.empty((), object), []), Mesh(np.array(package.devices()[0]), [])
        with pytest.raises(ValueError, match="Mesh axis names cannot be None"):
            Mesh(package.devices(), (None, "x"))
        return [(m.empty, m.size, m.abstract_mesh.empty, m.abstract_mesh.size) for m in (none, one)]

    assert program(styrax) == program(oracle)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_ranks_of_shardings(shape):
    def program(package):
        sharding = package.sharding.NamedSharding(package.make_mesh((1,), ("x",)), package.P("x", None))
        with pytest.raises(ValueError, match="is only valid for values of rank at least 2") as caught:
            sharding.check_compatible_aval(shape)
        return str(caught.value).partition(" is only ")[2]

    assert program(styrax) == program(oracle)


def test_arrays_from_parts():
    def program(package):
        device = package.devices()[0]
        make = package.make_array_from_process_local_data
        data = {"a": np.ones((2, 5), np.float32), "b": (np.arange(3),)}
        found = []
        for shapes in (None, {"a": (2, 5), "b": ((3,),)}, {"a": (2, 5), "b": (3,)}, {"a": (2, 5), "b": (4,)}, (2, 5),
                       {"a": (2, 5)}):
            try:
                found.append(package.tree_util.tree_map(lambda x: (x.shape, str(x.dtype), type(x).__name__[:5]),
                                                        make(device, data, shapes)))
            except ValueError as error:
                found.append(str(error).partition(" ")[0])
        part = package.numpy.arange(4)
        with pytest.raises(ValueError, match="If `dtype` is provided"):
            package.make_array_from_single_device_arrays((4,), part.sharding, [part], dtype="float32")
        return found

    assert program(styrax) == program(oracle)


def test_pmap_to_one_part():
    def program(package):
        x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
        f = package.pmap(lambda x: {"a": x * 2, "b": (x, x + 1)}, out_axes={"a": None, "b": (0, None)}, axis_name="i")
        return package.tree_util.tree_map(lambda x: np.asarray(x).tolist(), f(x))

    assert program(styrax) == program(oracle)


def test_arrays_as_dtypes_warn():
    def program(package):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dtype = np.dtype(package.numpy.arange(3, dtype="int8"))
        return dtype, [(w.category, str(w.message)) for w in caught]

    assert program(styrax) == program(oracle)


def test_structs_of_values():
    def program(package):
        like = package.ShapeDtypeStruct.like
        x = package.numpy.arange(3.0)
        there = package.device_put(x, package.devices()[0])
        return [(s.shape, str(s.dtype), s.weak_type, s.sharding is None) for s in (
            like(x), like(there), like(1.0), like(np.ones(2, np.float32)), like(True), like(package.numpy.asarray(1)))]

    assert program(styrax) == program(oracle)
