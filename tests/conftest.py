"""Around every test: the compiler's verifiers are on, and random numbers do not depend on which tests ran before."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.quick_oracle import quick_oracle

# What XLA makes of a small program runs as fast without its last optimisations and newer emitters, and is there in half
# the time. Not every plugin's XLA knows the emitters' flag, and one that it does not know ends the process.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
PLUGINS = any(map(find_spec, ("fastatomstruct_xla_cpu", "lammps_jax_pjrt_cpu", "jax_plugins")))
OLDER_EMITTERS = "" if PLUGINS else " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", QUICK + OLDER_EMITTERS)

# In the environment, so that it holds in processes that tests start, too.
words = os.environ.get("STYRAX_DEBUG", "")
os.environ["STYRAX_DEBUG"] = f"{words},verify" if words else "verify"

# Shells start work in the background with interrupts ignored: tests of interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_limit = 4 << 30  # bytes of memory from which the oracle's caches are emptied
_states: dict[int, dict] = {}


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request: pytest.FixtureRequest) -> None:
    """Each test finds the generators of its module as the import of the module left them."""
    for generator in vars(request.module).values() if request.module else ():
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = _states.setdefault(id(bits), bits.state)


@pytest.fixture(scope="module")
def old_objects_aside() -> Iterator[None]:
    """For tests that collect: what other tests have left, millions of objects, is not walked, nor is it now."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def quick_oracle_for_the_module() -> Iterator[None]:
    """What the oracle lowers for a module's tests shares a context, which goes with it."""
    with quick_oracle():
        yield


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> Iterator[None]:
    """What the oracle has compiled is kept for other modules until it is much."""
    global _limit
    yield
    if "jax" in sys.modules and _resident() > _limit:
        sys.modules["jax"].clear_caches()
        gc.collect()
        _limit = max(_limit, _resident() + (1 << 30))  # (the system does not get all of it back)


def _resident() -> int:
    """Bytes of memory that the process holds now; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
