"""What compiling does to Python's collector of cycles: nothing that a program would see."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
import styrax as jax

def compiled(n):
    jax.jit(lambda x: x * n + 1)(1.0)
    return gc.isenabled(), gc.get_freeze_count()

print(*compiled(2))
gc.disable()
print(*compiled(3))
gc.enable()
gc.collect()
gc.freeze()
frozen = gc.get_freeze_count()
print(*(a == b for a, b in zip(compiled(4), (True, frozen))))
assert len([x for x in gc.get_objects(2)]) < frozen  # they have not been thawed
asked, gc.get_freeze_count = [], lambda: asked.append(1) or frozen
jax.jit(lambda x: x - 5)(1.0)
assert not asked  # (the answer is a walk through all that is frozen)
"""


def test_collections_are_as_they_were():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["True 0", "False 0", "True True"]
