"""`pytest -p styrax.compat.testing`: the tests of a program written for JAX, with `import jax` giving Styrax.

No entry point announces it: pytest would then rewrite the assertions of the whole package wherever it is installed.
"""

from .finder import install

install()  # before the first conftest, whose imports are to find it
