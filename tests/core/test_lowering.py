"""`core.programs.lowering` says what the compiler's builder offers to rules: each method is there."""

import importlib
import inspect
import pkgutil

import pytest

from styrax import lax, random, transforms
from styrax.compile.ir import values
from styrax.compile.lowering import builder, nests
from styrax.core.programs import lowering, rules

PAIRS = [
    (lowering.Builder, builder.Builder),
    (lowering.Nest, nests.Nest),
    (lowering.Mutable, nests.Mutable),
    (lowering.Value, values.Value),
]


def methods(protocol):
    return sorted(name for cls in protocol.__mro__ if cls.__module__ == lowering.__name__
                  for name, member in vars(cls).items()
                  if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)))


CASES = [pytest.param(p, c, name, id=f"{p.__name__}.{name}") for p, c in PAIRS for name in methods(p)]


@pytest.mark.parametrize("protocol, implementation, name", CASES)
def test_builder_has_what_rules_are_promised(protocol, implementation, name):
    promised = inspect.getattr_static(protocol, name)
    if name in ("inline", "constant"):  # set for each program (the former with the values one after another)
        assert name in implementation.__annotations__
        return
    if isinstance(promised, property):
        assert hasattr(implementation, name)
        return
    wanted = list(inspect.signature(promised).parameters.values())[1:]
    offered = implementation() if implementation is builder.Builder else object.__new__(implementation)
    found = list(inspect.signature(getattr(offered, name)).parameters.values())
    assert [(p.name, p.default) for p in found[: len(wanted)]] == [(p.name, p.default) for p in wanted]
    assert all(p.default is not p.empty for p in found[len(wanted):])


def test_protocol_is_not_empty():
    assert {"value", "reduce", "nest", "call", "exp", "select", "index"} <= set(methods(lowering.Builder))


def lowering_rules():
    """Each rule of ours, by the primitives that have it."""
    for package in (lax, random, transforms):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found = {}
    for primitive, rule in rules.loops.items():
        rule = inspect.unwrap(rule)
        if rule.__module__.startswith(("styrax.lax", "styrax.random", "styrax.transforms")):  # not what libraries give
            found.setdefault(rule, []).append(primitive.name)
    return found


def wrong_builder(rule):
    first = next(iter(inspect.signature(rule).parameters.values()))
    return (first.name, first.annotation) != ("b", "Builder")


def test_rules_take_a_builder():
    found = lowering_rules()
    assert len(found) > 50
    assert not {names[0]: rule for rule, names in found.items() if wrong_builder(rule)}


def test_rules_without_types_are_found():
    assert wrong_builder(lambda b, x: x)
