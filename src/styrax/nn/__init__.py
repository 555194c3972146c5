"""Functions that neural networks are made of."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from ..core.tracing.source import api_boundary as _api_boundary
from .activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    standardize,
    swish,
    tanh,
)
from .exponentials import log_softmax, logmeanexp, logsumexp, softmax

_later = {"dot_product_attention": "attention", "get_scaled_dot_general_config": "attention",
          "scaled_dot_general": "attention", "scaled_matmul": "attention"}


@_api_boundary
def __getattr__(name: str) -> _Any:
    if name == "initializers":
        return _importlib.import_module(f"{__name__}.initializers")
    home = _later.get(name)
    if home is None:
        raise AttributeError(f"module 'jax.nn' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*(n for n in globals() if not n.startswith("_")), *_later, "initializers"})
