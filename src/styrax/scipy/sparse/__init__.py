"""`jax.scipy.sparse`: solvers of linear systems whose operator may be any function."""

from . import linalg as linalg
