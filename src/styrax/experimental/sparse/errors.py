"""What goes wrong, or slowly, with sparse arrays."""

from __future__ import annotations


class SparseEfficiencyError(ValueError):
    """An operation would store far more than it has to."""


class SparseEfficiencyWarning(UserWarning):
    """An operation stores far more than it has to."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation does without the GPU's sparse library; never given on CPUs."""
