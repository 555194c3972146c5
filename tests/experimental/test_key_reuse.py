"""The checker of random keys: what it lets pass and what it refuses, as JAX's does."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

import styrax
from styrax.experimental.key_reuse import _core
from tests.experimental.oracle import jax

CASES = {
    "two draws": lambda jax, r, k: (r.normal(k), r.uniform(k)),
    "two draws in a program": lambda jax, r, k: jax.jit(lambda k: r.normal(k) + r.uniform(k))(k),
    "two splits": lambda jax, r, k: (r.split(k), r.split(k)),
    "folds": lambda jax, r, k: (r.fold_in(k, 1), r.fold_in(k, 2), r.normal(k)),
    "clones": lambda jax, r, k: (r.normal(r.clone(k)), r.normal(k)),
    "clone of one": lambda jax, r, k: (r.normal(k), r.normal(r.clone(k))),
    "data": lambda jax, r, k: (r.key_data(k), r.normal(k), r.key_data(k)),
    "rows": lambda jax, r, k: [r.normal(row) for row in r.split(k, 3)],
    "a row twice": lambda jax, r, k: (lambda ks: (r.normal(ks[0]), r.normal(ks[0])))(r.split(k, 3)),
    "rows and all": lambda jax, r, k: (lambda ks: (r.normal(ks[0]), jax.vmap(r.normal)(ks)))(r.split(k, 3)),
    "all and a row": lambda jax, r, k: (lambda ks: (jax.vmap(r.normal)(ks), r.normal(ks[0])))(r.split(k, 3)),
    "stacked": lambda jax, r, k: (r.normal(k), jax.numpy.stack([k, k])),
    "stacked with itself": lambda jax, r, k: jax.numpy.stack([k, k]),
    "scan over keys": lambda jax, r, k: jax.lax.scan(lambda c, k: (c, r.normal(k)), 0, r.split(k, 3)),
    "scan of one key": lambda jax, r, k: jax.lax.scan(lambda k, _: (k, r.normal(k)), k, length=2),
    "scan once": lambda jax, r, k: jax.lax.scan(lambda k, _: (k, r.normal(k)), k, length=1),
    "chain": lambda jax, r, k: jax.lax.scan(lambda k, _: (lambda a, b: (a, r.normal(b)))(*r.split(k)), k, length=2),
    "loop of one key": lambda jax, r, k: jax.lax.fori_loop(0, 3, lambda i, x: x + r.normal(k), 0.0),
    "while": lambda jax, r, k: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + r.normal(c[0]) ** 2 + 1),
                                                  (k, 0.0)),
    "branches": lambda jax, r, k: jax.lax.cond(True, r.normal, r.uniform, k),
    "after branches": lambda jax, r, k: (jax.lax.cond(True, r.normal, lambda k: 0.0, k), r.normal(k)),
    "after a program": lambda jax, r, k: (jax.jit(r.normal)(k), r.normal(k)),
    "after a gradient": lambda jax, r, k: (jax.grad(lambda x: x * r.normal(k))(1.0), r.normal(k)),
    "passed through a program": lambda jax, r, k: (r.normal(k), r.normal(jax.jit(lambda k: k)(k))),
    "condition of a loop": lambda jax, r, k: jax.lax.while_loop(lambda x: x < r.normal(k), lambda x: x + 1, 0.0),
    "checkpoint": lambda jax, r, k: jax.checkpoint(lambda x: x * r.normal(k) * r.normal(k))(1.0),
    "legacy": lambda jax, r, k: (lambda old: (r.normal(old), r.normal(old)))(r.PRNGKey(0)),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    found = []
    for package in (jax, styrax):
        with package.debug_key_reuse(True):
            try:
                CASES[name](package, package.random, package.random.key(0))
                found.append("fine")
            except package.errors.KeyReuseError:
                found.append("reuse")
    assert found[1] == found[0]


@pytest.mark.parametrize("name", ["two draws", "two draws in a program", "scan of one key", "loop of one key", "while",
                                  "condition of a loop", "after a program"])
def test_messages(name):
    told = []
    for package in (jax, styrax):
        with package.debug_key_reuse(True), pytest.raises(package.errors.KeyReuseError) as error:
            CASES[name](package, package.random, package.random.key(0))
        told.append(str(error.value).partition("\n")[0])
    assert told[1] == told[0]


def test_a_program_that_was_refused_is_refused_again():
    for package in (jax, styrax):
        draw = package.random.normal
        twice = package.jit(lambda k, draw=draw: draw(k) + draw(k))
        with package.debug_key_reuse(True):
            for _ in range(3):
                with pytest.raises(package.errors.KeyReuseError):
                    twice(package.random.key(0))
        twice(package.random.key(0))


def test_nothing_is_checked_without_the_setting():
    key = styrax.random.key(0)
    with styrax.debug_key_reuse(True):
        styrax.random.normal(key)
    assert styrax.random.normal(key) == styrax.random.normal(key)


def theirs():
    import importlib

    return importlib.import_module("jax.experimental.key_reuse._core")


SIGNATURES = {
    "split": lambda r, k: r.split(k),
    "draw": lambda r, k: r.normal(k),
    "draw and key": lambda r, k: (k, r.normal(k)),
    "clone": lambda r, k: r.clone(k),
    "itself": lambda r, k: k,
    "fold": lambda r, k: r.fold_in(k, 1),
    "data": lambda r, k: r.key_data(k),
    "wrapped": lambda r, k: r.wrap_key_data(r.key_data(k)),
}
OF_ROWS = {"row": lambda r, k: r.normal(k[0]), "rows": lambda r, k: k[1:]}


@pytest.mark.parametrize("name", [*SIGNATURES, *OF_ROWS])
def test_signatures(name):
    texts = []
    for package, core in ((jax, theirs()), (styrax, _core)):
        key = package.random.key(0)
        key = package.random.split(key, 3) if name in OF_ROWS else key
        fun = functools.partial({**SIGNATURES, **OF_ROWS}[name], package.random)
        texts.append(repr(core.function_type_signature(fun, key)))
    assert texts[1] == texts[0]


def test_assertions():
    key = styrax.random.key(0)

    def used_once(k):
        _core.assert_unconsumed(k)
        _core.assert_consumed(_core.consume(k))

    _core.check_key_reuse(used_once, key)
    with pytest.raises(AssertionError):
        _core.check_key_reuse(lambda k: _core.assert_consumed(k), key)
    with pytest.raises(AssertionError):
        _core.check_key_reuse(lambda k: (styrax.random.normal(k), _core.assert_unconsumed(k)), key)
    with pytest.raises(styrax.errors.KeyReuseError):
        _core.check_key_reuse(lambda k: (styrax.random.normal(k), styrax.random.normal(k)), key)


def test_equality():
    mask = np.array([True, False])
    assert _core.Sink(0, mask) == _core.Sink(0, mask) != _core.Source(0, mask)
    assert _core.KeyReuseSignature(_core.Sink(0), _core.Source(1)) == _core.KeyReuseSignature(
        _core.Source(1), _core.Sink(0, True))
    assert hash(_core.KeyReuseSignature(_core.Sink(0))) == hash(_core.KeyReuseSignature(_core.Sink(0)))


def test_what_a_checkpoint_computes_again_is_no_reuse():
    def slope(package, key):
        return package.grad(package.checkpoint(lambda x: package.numpy.sin(x * package.random.uniform(key))))

    for package in (jax, styrax):
        with package.debug_key_reuse(True):
            package.jit(slope(package, package.random.key(0)))(1.0)
    with styrax.debug_key_reuse(True):
        key = styrax.random.key(0)
        slope(styrax, key)(1.0)
        with pytest.raises(styrax.errors.KeyReuseError):
            slope(styrax, key)(1.0)


@pytest.mark.parametrize("first", ["gamma", "key", "normal"])
def test_the_setting_may_be_on_before_the_first_keys(first):
    """Whichever module of random numbers is imported first."""
    text = ("import styrax\n"
            f"styrax.random.{first}\n"
            "key = styrax.random.key(0)\n"
            "styrax.random.bits(key)\n"
            "try:\n"
            "    styrax.random.bits(key)\n"
            "except styrax.errors.KeyReuseError:\n"
            "    print('used again')\n")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True,
                          env={**os.environ, "JAX_DEBUG_KEY_REUSE": "1"})
    assert done.stdout == "used again\n"
