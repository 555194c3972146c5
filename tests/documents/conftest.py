"""What the documents' cells set in other packages is set back after each test."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def numpy_state():
    options, state = np.get_printoptions(), np.random.get_state()
    yield
    np.set_printoptions(**options)
    np.random.set_state(state)


@pytest.fixture
def old_random_bits():
    """The random bits of the years before partitionable threefry, which the tutorial prints."""
    import jax

    import styrax

    for package in (jax, styrax):
        package.config.update("jax_threefry_partitionable", False)
    yield
    for package in (jax, styrax):
        package.config.update("jax_threefry_partitionable", True)
