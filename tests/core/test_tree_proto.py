"""Structures as protocol buffers, static data that cannot be compared, unravelling to other dtypes, as under JAX."""

from __future__ import annotations

import collections
import dataclasses
import functools

import jax as oracle
import jax.flatten_util
import numpy as np
import pytest

import styrax
import styrax.flatten_util

Pair = collections.namedtuple("Pair", "x y")
TREES = [0, None, [], (), {}, [1, [2], (3,), {"a": 4, "b": 5}, None], {"z" * 200: (1, {"y": [None] * 130}), "a": {}},
         tuple(range(300)), {chr(i): {chr(i + 1): 1} for i in range(100, 300)}]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_protocol_buffers(tree):
    ours, theirs = styrax.tree_util.tree_structure(tree), oracle.tree_util.tree_structure(tree)
    data = ours.serialize_using_proto()
    assert data == theirs.serialize_using_proto()
    registry = styrax.tree_util.default_registry
    assert styrax.tree_util.PyTreeDef.deserialize_using_proto(registry, data) is ours
    for n in {len(data) // 2, len(data) - 1}:
        with pytest.raises(styrax.errors.JaxRuntimeError, match="Could not deserialize"):
            styrax.tree_util.PyTreeDef.deserialize_using_proto(registry, data[:n] + b"\xff")


@pytest.mark.parametrize("tree", [{1: 2}, Pair(1, 2), collections.OrderedDict(a=1)])
@pytest.mark.parametrize("package", [oracle, styrax])
def test_what_protocol_buffers_do_not_hold(tree, package):
    with pytest.raises(ValueError, match="in proto pytree ser|User-defined nodes are not supported"):
        package.tree_util.tree_structure(tree).serialize_using_proto()


@pytest.mark.parametrize("package", [oracle, styrax])
def test_static_data_that_cannot_be_compared(package):
    @package.tree_util.register_dataclass
    @dataclasses.dataclass
    class Node:
        x: object = package.tree.static()

    f = package.jit(lambda x: x)
    f(Node(package.numpy.arange(4)))
    for compare in (f, lambda x: package.tree_util.tree_structure(x) == package.tree_util.tree_structure(
            Node(package.numpy.arange(4)))):
        with pytest.raises(ValueError, match="Exception raised while checking equality of metadata fields"):
            compare(Node(package.numpy.arange(4)))


def test_unravel_keeps_a_vectors_dtype_where_leaves_have_one():
    def program(package):
        same, unravel = package.flatten_util.ravel_pytree((np.ones(2, np.float32), np.ones((1, 2), np.float32)))
        mixed, other = package.flatten_util.ravel_pytree((np.ones(2, np.float32), np.ones(2, np.int32)))
        found = [unravel(same > 0), unravel(same.astype("int8")), other(mixed)]
        with pytest.raises(TypeError):
            other(mixed > 0)
        return [(x.shape, str(x.dtype)) for x in package.tree_util.tree_leaves(found)]

    assert program(styrax) == program(oracle)


def test_one_level_and_transposes():
    def program(package):
        util = package.tree_util

        @util.register_pytree_node_class
        class Cached:  # static data that depend on what is below
            def __init__(self, value):
                self.value = value

            def tree_flatten(self):
                return util.tree_flatten(self.value)

            @classmethod
            def tree_unflatten(cls, structure, leaves):
                return cls(util.tree_unflatten(structure, leaves))

        swapped = util.tree_transpose(util.tree_structure(Cached({"a": 0, "b": 0})), util.tree_structure([0, 0]),
                                      Cached({"a": [1, 2], "b": [3, 4]}))
        with pytest.raises(TypeError, match="Mismatch"):
            util.tree_transpose(util.tree_structure([0, 0]), util.tree_structure([0, 0, 0]), [[1, 2], [3, 4]])
        levels = [util.flatten_one_level(x) for x in (
            {"b": 1, "a": 2}, (1, 2), [1], Pair(1, 2), None, collections.OrderedDict(b=1))]
        partial = functools.partial(print, 1)
        shim = util.Partial(partial, 2).func
        metadata = [dict(package.tree.static(metadata=m).metadata) for m in ({}, {"static": False, "k": 1}, None)]
        return [x.value for x in swapped], levels, (partial == shim, shim == partial, shim == print), metadata

    assert program(styrax) == program(oracle)
