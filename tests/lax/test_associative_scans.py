"""`associative_scan` over trees: what the function returns holds the same arrays, in any containers."""

from collections import namedtuple

import jax as real
import numpy as np
import pytest

import styrax

Pair = namedtuple("Pair", "total product")
ELEMENTS = Pair(np.arange(1, 6, dtype=np.float32), np.linspace(1, 2, 5, dtype=np.float32))

CONTAINERS = {
    "the same": Pair,
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "nested": lambda a, b: {"first": a, "second": (b, None)},
}


def combining(container):
    return lambda x, y: container(x.total + y.total, x.product * y.product)


@pytest.mark.parametrize("name", list(CONTAINERS))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_containers_of_results(name, reverse, size):
    def scanned(package):
        f = combining(CONTAINERS[name])
        return lambda elements: package.lax.associative_scan(f, elements, reverse=reverse)

    elements = Pair(*(x[:size] for x in ELEMENTS))
    theirs = scanned(real)(elements)
    for ours in (scanned(styrax)(elements), styrax.jit(scanned(styrax))(elements)):
        assert type(ours) is Pair
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    batch = Pair(*(np.stack([x, 2 * x]) for x in elements))
    np.testing.assert_allclose(styrax.vmap(scanned(styrax))(batch), real.vmap(scanned(real))(batch), rtol=1e-6)
    loss = lambda package: lambda elements: sum(x.sum() for x in scanned(package)(elements))
    np.testing.assert_allclose(styrax.grad(loss(styrax))(elements), real.grad(loss(real))(elements), rtol=1e-5)


@pytest.mark.parametrize("wrong", [lambda x, y: x.total + y.total, lambda x, y: (*x, y.total)])
def test_other_numbers_of_arrays_are_refused(wrong):
    for package in (styrax, real):
        with pytest.raises(ValueError, match="expected 2"):
            package.lax.associative_scan(wrong, ELEMENTS)
