"""What functions that make matrices, and `log_ndtr`, say of arguments that they refuse: the words of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import pytest

import styrax
import styrax.scipy.linalg
import styrax.scipy.special

ONES, ONE = np.ones(3, np.float32), np.float32(1)


@pytest.mark.parametrize("call", [
    lambda j: j.linalg.hankel(ONE), lambda j: j.linalg.hankel(1.0, 2.0), lambda j: j.linalg.hankel(ONES, ONE),
    lambda j: j.linalg.leslie(ONES, ONES), lambda j: j.linalg.leslie(ONE, ONES), lambda j: j.linalg.helmert(0),
    lambda j: j.linalg.convolution_matrix(ONES, 0), lambda j: j.linalg.convolution_matrix(ONES, 2, "x"),
    lambda j: j.linalg.convolution_matrix(ONES[:0], 2), lambda j: j.special.log_ndtr(ONE, -1),
    lambda j: j.special.log_ndtr(ONE, 31), lambda j: j.special.log_ndtr(ONE, 1.0),
])
def test_refusals_are_in_the_words_of_jax(call: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as theirs:
        call(jax.scipy)
    with pytest.raises(theirs.type) as ours:
        call(styrax.scipy)
    assert str(ours.value) == str(theirs.value)
