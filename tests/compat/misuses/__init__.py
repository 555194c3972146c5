"""Programs with a mistake, one a row: what is raised, and how long its traceback is, is compared with JAX's.

Run as a script, it executes all rows with what `import jax` gives and prints one JSON list a row: the name of the
exception's class and the number of lines of its traceback, the message apart. The class is the most special one that
a program can name: of Python or of `jax.errors`.
"""

from __future__ import annotations

from . import arrays, libraries, surroundings, transformations, values

SETUP = """
import jax, jax.numpy as jnp, numpy as np
import jax.scipy as jsp
import jax.scipy.optimize, jax.experimental
import jax.flatten_util, jax.dlpack, jax.export, jax.test_util, jax.custom_batching
from jax import lax
from jax.experimental import checkify
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from functools import partial
x, y, m, n = jnp.arange(3.0), jnp.arange(4.0), jnp.ones((2, 3)), jnp.arange(6)
b, z = x > 1, x + 1j
square, batch = jnp.ones((3, 3)), jnp.ones((2, 3, 3))
key = jax.random.key(0)
mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
"""

# family -> programs
TABLE: dict[str, list[str]] = {**arrays.TABLE, **values.TABLE, **libraries.TABLE, **transformations.TABLE,
                               **surroundings.TABLE}
