"""The workloads, by family. Importing a family imports `jax`, whichever that is in the process."""

from __future__ import annotations

import importlib

from .catalog import Workload

FAMILIES = (
    "elementwise",
    "reductions",
    "loops",
    "indexing",
    "contractions",
    "convolutions",
    "factorisations",
    "fourier",
    "kernels",
    "layers",
    "simulations",
    "inference",
    "training",
    "devices",
    "dispatch",
)


def load(*families: str) -> dict[str, Workload]:
    """The workloads of some families (or all) by name, in the order in which they are reported."""
    found: dict[str, Workload] = {}
    for family in families or FAMILIES:
        module = importlib.import_module(f"{__name__}.{family}")
        for value in vars(module).values():
            if isinstance(value, Workload):
                value.family = family
                found[value.name] = value
    return found
