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
begun, count = [], lambda phase, info: begun.append(phase)
inside = []

def chain(x):
    gc.callbacks.append(count)
    for k in range(2000):
        x = x * k + 1
    inside.append(gc.isenabled())
    gc.callbacks.remove(count)
    return x

try:
    jax.jit(lambda x: chain(x) + undefined)(1.0)
except NameError:
    inside.append(gc.isenabled())
jax.jit(chain)(1.0)
print(begun, inside, gc.isenabled())
"""


def test_collections_are_as_they_were():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True 0", "False 0", "True True", "[] [False, True, False] True"]
