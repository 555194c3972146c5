"""Minimization of functions."""

from __future__ import annotations

from .minimization import minimize as minimize
from .results import OptimizeResults as OptimizeResults
