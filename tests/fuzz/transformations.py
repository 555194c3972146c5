"""Transformations as layers around functions: what types of operands the function inside sees, and the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.fuzz.draw import Nothing
from tests.fuzz.values import FLOATS, Type


@dataclass(frozen=True)
class Plan:
    """How one layer is applied: the types of the operands inside, the text around `{f}`."""

    types: tuple[Type, ...]
    code: str
    axis: str | None = None  # a name of an axis that there is inside


@dataclass(frozen=True)
class Transformation:
    """`plan` draws a layer around a function of operands of the given types. `derives`: slopes are taken inside.
    `keeps`: the results are those of the function, untouched. `closes`: the function may use values from outside."""

    name: str
    plan: Callable[[Random, Sequence[Type]], Plan]
    derives: bool = False
    keeps: bool = False
    closes: bool = True


def plain(code: str) -> Callable[[Random, Sequence[Type]], Plan]:
    return lambda rng, types: Plan(tuple(types), code)


def compiled(rng: Random, types: Sequence[Type]) -> Plan:
    """With static, donated, unused, inlined arguments, or none of that."""
    options = (
        "jax.jit({f})",
        "jax.jit({f}, keep_unused=True)",
        "jax.jit({f}, inline=True)",
        f"donating({{f}}, {rng.randrange(len(types))})",
        "fixed(jax.jit, {f}, static_argnums=0)",
        "named(jax.jit, {f})",
        "held(jax.jit, {f})",
    )
    return Plan(tuple(types), rng.choices(options, [4, 1, 1, 2, 1, 1, 1])[0])


POLICIES = ("everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable", "names")


def rematerialized(rng: Random, types: Sequence[Type]) -> Plan:
    """With a policy, with a static argument, without a barrier, or none of that."""
    options = (
        "jax.checkpoint({f})",
        "jax.checkpoint({f}, prevent_cse=False)",
        f"jax.checkpoint({{f}}, policy=saved('{rng.choice(POLICIES)}'))",
        "fixed(jax.checkpoint, {f}, static_argnums=0)",
        "held(jax.checkpoint, {f})",
    )
    return Plan(tuple(types), rng.choices(options, [4, 1, 3, 1, 1])[0])


def slopes(code: str, most: int) -> Callable[[Random, Sequence[Type]], Plan]:
    """With respect to some of the operands, of no more elements than `most`."""

    def plan(rng: Random, types: Sequence[Type]) -> Plan:
        able = [i for i, t in enumerate(types) if t.dtype in FLOATS and t.size <= most]
        if not able:
            raise Nothing
        chosen = tuple(sorted(rng.sample(able, rng.randint(1, min(2, len(able))))))
        return Plan(tuple(types), code.replace("ARGNUMS", str(chosen if rng.random() < 0.7 else chosen[0])))

    return plan


def batched(named: bool) -> Callable[[Random, Sequence[Type]], Plan]:
    def plan(rng: Random, types: Sequence[Type]) -> Plan:
        sizes = [n for t in types for n in t.shape if n]
        if not sizes:
            raise Nothing
        size = rng.choice(sizes)
        axes: list[int | None] = []
        for t in types:
            able = [i for i, n in enumerate(t.shape) if n == size]
            axes.append(rng.choice(able) if able and rng.random() < 0.8 else None)
        if axes == [None] * len(axes):
            i = rng.choice([i for i, t in enumerate(types) if size in t.shape])
            axes[i] = types[i].shape.index(size)
        inner = [
            t if a is None else replace(t, shape=t.shape[:a] + t.shape[a + 1 :], weak=False if t.weak else t.weak)
            for t, a in zip(types, axes, strict=True)
        ]
        signed = tuple(
            a - t.rank if a is not None and rng.random() < 0.3 else a for a, t in zip(axes, types, strict=True)
        )
        out = rng.choice(("", "", "", ", out_axes=-1"))
        name = f"axis{rng.randint(0, 9999)}" if named else None
        word = rng.choice(("", "", "", f", axis_size={size}", ", spmd_axis_name='i'"))
        if name:
            word = f", axis_name='{name}'"
        if None in axes and rng.random() < 0.3:
            inside = f"beside({{f}}, {axes.index(None)})"
            code = f"flattened(jax.vmap({inside}, in_axes={signed}, out_axes=({rng.choice((0, -1))}, None){word}))"
        else:
            code = f"jax.vmap({{f}}, in_axes={signed}{out}{word})"
        return Plan(tuple(inner), code, name)

    return plan


LAYERS = [
    Transformation("jit", compiled, keeps=True),
    Transformation("checkpoint", rematerialized, keeps=True),
    Transformation("vmap", batched(False), keeps=True),
    Transformation("vmap with a name", batched(True), keeps=True),
    Transformation("grad", slopes("gradient({f}, ARGNUMS)", 64), derives=True),
    Transformation("value_and_grad", slopes("value_and_gradient({f}, ARGNUMS)", 64), derives=True),
    Transformation("jvp", plain("pushed({f})"), derives=True),
    Transformation("vjp", plain("pulled({f})"), derives=True),
    Transformation("linearize", plain("linearized({f})"), derives=True),
    Transformation("custom_jvp", plain("own_jvp({f})"), derives=True, keeps=True, closes=False),
    Transformation("custom_vjp", plain("own_vjp({f})"), derives=True, keeps=True, closes=False),
    Transformation("jacfwd", slopes("jacobian({f}, ARGNUMS, jax.jacfwd)", 6), derives=True),
    Transformation("jacrev", slopes("jacobian({f}, ARGNUMS, jax.jacrev)", 6), derives=True),
    Transformation("hessian", slopes("hessian({f}, ARGNUMS)", 4), derives=True),
]
CONTROL = ("scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan")
NAMES = (*(t.name for t in LAYERS), *CONTROL)
