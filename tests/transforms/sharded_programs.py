"""Programs on arrays that are spread over a mesh with explicit axes, and the types of their operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np


class Package:
    """One package's functions, on an abstract mesh of 4 × 2 devices whose axes X and Y have given types."""

    def __init__(self, package: ModuleType, types: str):
        name = package.__name__
        self.jax = package
        self.np, self.lax, self.nn = (import_module(f"{name}.{m}") for m in ("numpy", "lax", "nn"))
        self.random, self.sh = (import_module(f"{name}.{m}") for m in ("random", "sharding"))
        self.P = self.sh.PartitionSpec
        kinds = {"E": self.sh.AxisType.Explicit, "A": self.sh.AxisType.Auto}
        self.mesh = self.sh.AbstractMesh((4, 2), ("X", "Y"), tuple(kinds[t] for t in types))
        self.notes: list[str] = []  # what programs tell of values inside
        self.note = self.notes.append

    def operand(self, shape: tuple[int, ...], *spec: Any) -> Any:
        dtype = np.float32
        if spec and spec[-1] is np.int32:
            *spec, dtype = spec  # type: ignore[assignment]
        return self.jax.ShapeDtypeStruct(shape, dtype, sharding=self.sh.NamedSharding(self.mesh, self.P(*spec)))


class Program(NamedTuple):
    function: Callable[..., Any]
    operands: tuple[Any, ...]
    types: str


PROGRAMS: dict[str, Program] = {}


def row(name: str, function: Callable[..., Any], *operands: Any, types: str = "EE") -> None:
    assert name not in PROGRAMS, name
    PROGRAMS[name] = Program(function, operands, types)


def through_custom_rule(p: Package, x: Any) -> Any:
    @p.jax.custom_vjp
    def f(x):
        return p.np.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda r, g: (g * p.np.cos(r),))
    return p.jax.grad(lambda a: f(a).sum())(x)


def auto_inside(p: Package, x: Any) -> Any:
    def inside(a):
        p.note(f"{p.sh.get_abstract_mesh()} {p.jax.typeof(a)}")
        return a * 2

    return p.sh.auto_axes(inside, out_sharding=p.P("X", None))(x)


def unreduced(p: Package, x: Any, y: Any) -> Any:
    """A product whose sums over the devices along Y are still to be made."""
    return p.np.einsum("ij,jk->ik", x, y, out_sharding=p.P(None, None, unreduced={"Y"}))


def block_loss(p: Package, x: Any, up: Any, down: Any) -> Any:
    """A feed-forward block whose inner width is spread over Y, on a batch that is spread over X."""
    hidden = p.nn.gelu(p.np.einsum("bd,df->bf", x, up))
    return ((p.np.einsum("bf,fd->bd", hidden, down, out_sharding=p.P("X", None)) - x)**2).mean()


X, Y, XY, R = ((8, 4), "X", None), ((8, 4), None, "Y"), ((8, 4), "X", "Y"), ((8, 4), None, None)

row("sin", lambda p, x: p.np.sin(x), X)
row("add same", lambda p, x, y: x + y, X, X)
row("add merge", lambda p, x, y: x + y, X, Y)
row("add scalar", lambda p, x: x + 1, XY)
row("add conflict", lambda p, x, y: x + y, X, ((8, 4), "Y", None))
row("add X vs XY tuple", lambda p, x, y: x + y, ((8, 4), ("X", "Y"), None), X)
row("add dup axis", lambda p, x, y: x + y, X, ((8, 4), None, "X"))
row("add broadcast", lambda p, x, y: x + y, X, ((4,), "Y"))
row("add broadcast one", lambda p, x, y: x + y, X, ((1, 4), None, "Y"))
row("add replicated", lambda p, x, y: x + y, X, R)
row("compare select", lambda p, x, y: p.np.where(x>y, x, y), X, R)
row("select sharded pred", lambda p, x, y: p.np.where(x > 0, x, y), X, Y)
row("clamp", lambda p, x: p.np.clip(x, 0, 1), X)
row("cast", lambda p, x: x.astype("int32"), XY)
row("bitcast", lambda p, x: p.lax.bitcast_convert_type(x, np.int32), XY)
row("sum all", lambda p, x: x.sum(), XY)
row("sum 0", lambda p, x: x.sum(0), XY)
row("sum 1 keep", lambda p, x: x.sum(1, keepdims=True), XY)
row("max", lambda p, x: x.max(1), XY)
row("argmax", lambda p, x: p.np.argmax(x, 1), XY)
row("argmax sharded", lambda p, x: p.np.argmax(x, 0), XY)
row("mean var", lambda p, x: p.np.var(x, 1), X)
row("cumsum", lambda p, x: p.np.cumsum(x, 1), X)
row("cumsum sharded", lambda p, x: p.np.cumsum(x, 0), X)
row("softmax", lambda p, x: p.nn.softmax(x), X)
row("logsumexp", lambda p, x: p.nn.logsumexp(x, 1), X)
row("matmul", lambda p, x, y: x @ y, X, ((4, 8), None, "Y"))
row("matmul batch",
    lambda p, x, y: p.np.einsum("bij,bjk->bik", x, y), ((8, 4, 2), "X", None, None), ((8, 2, 4), "X", None, "Y"))
row("matmul contract one", lambda p, x, y: x @ y, X, ((4, 8), "Y", None))
row("matmul contract both", lambda p, x, y: x @ y, Y, ((4, 8), "Y", None))
row("matmul contract conflict", lambda p, x, y: x @ y, Y, ((4, 8), "X", None))
row("matmul contract out", lambda p, x, y: p.np.matmul(x, y, out_sharding=p.P("X", None)), Y, ((4, 8), "Y", None))
row("matmul lhs rhs same", lambda p, x, y: x @ y, X, ((4, 8), None, "X"))
row("matmul out amb", lambda p, x, y: p.np.dot(x, y, out_sharding=p.P("X", None)), X, ((4, 8), None, "X"))
row("einsum out", lambda p, x, y: p.np.einsum("ij,jk->ik", x, y, out_sharding=p.P("X", "Y")), Y, ((4, 8), "Y", None))
row("dot vec", lambda p, x, y: p.np.dot(x, y), X, ((4,), None))
row("transpose", lambda p, x: x.T, XY)
row("reshape merge", lambda p, x: x.reshape(32), X)
row("reshape merge minor", lambda p, x: x.reshape(32), Y)
row("reshape merge both", lambda p, x: x.reshape(32), XY)
row("reshape split", lambda p, x: x.reshape(4, 2, 4), X)
row("reshape split 2", lambda p, x: x.reshape(2, 4, 4), X)
row("reshape split unsharded", lambda p, x: x.reshape(8, 2, 2), X)
row("reshape out", lambda p, x: p.np.reshape(x, 32, out_sharding=p.P("Y")), X)
row("reshape general", lambda p, x: x.reshape(4, 8), X)
row("expand squeeze", lambda p, x: p.np.squeeze(x[:, None, :], 1), XY)
row("squeeze one", lambda p, x: x.squeeze(1), ((8, 1, 4), "X", None, "Y"))
row("ravel", lambda p, x: x.ravel(), R)
row("concat unsharded dim", lambda p, x, y: p.np.concatenate([x, y], 1), X, X)
row("concat sharded dim", lambda p, x, y: p.np.concatenate([x, y], 0), X, X)
row("concat differ", lambda p, x, y: p.np.concatenate([x, y], 0), X, R)
row("stack", lambda p, x, y: p.np.stack([x, y]), X, X)
row("split", lambda p, x: p.np.split(x, 2, 1), X)
row("split sharded", lambda p, x: p.np.split(x, 2, 0), X)
row("pad", lambda p, x: p.np.pad(x, ((0, 0), (1, 1))), X)
row("pad sharded", lambda p, x: p.np.pad(x, ((4, 4), (0, 0))), X)
row("pad sharded bad", lambda p, x: p.np.pad(x, ((1, 0), (0, 0))), X)
row("rev", lambda p, x: p.np.flip(x, 1), X)
row("rev sharded", lambda p, x: p.np.flip(x, 0), X)
row("slice", lambda p, x: x[:, 1:3], X)
row("slice sharded", lambda p, x: x[:4], X)
row("slice sharded bad", lambda p, x: x[:3], X)
row("index 0", lambda p, x: x[0], X)
row("index 0 free", lambda p, x: x[:, 0], X)
row("index get out", lambda p, x: x.at[0].get(out_sharding=p.P(None)), Y)
row("dynamic slice", lambda p, x: p.lax.dynamic_slice(x, (0, 1), (8, 2)), X)
row("dynamic slice sharded", lambda p, x: p.lax.dynamic_slice(x, (0, 1), (4, 2)), X)
row("dynamic update slice", lambda p, x, y: p.lax.dynamic_update_slice(x, y, (0, 1)), X, ((8, 2), "X", None))
row("dynamic update slice repl", lambda p, x, y: p.lax.dynamic_update_slice(x, y, (0, 1)), X, ((8, 2), None, None))
row("dynamic index", lambda p, x: p.lax.dynamic_index_in_dim(x, 1, 1, keepdims=False), X)
row("take", lambda p, x: p.np.take(x, np.array([0, 1]), axis=1), X)
row("take out", lambda p, x, i: x.at[i].get(out_sharding=p.P("X", None)), R, ((8,), "X", np.int32))
row("take noout", lambda p, x, i: x[i], R, ((8,), "X", np.int32))
row("scatter", lambda p, x: x.at[:, 0].set(1.), X)
row("scatter repl idx", lambda p, x: x.at[np.array([0, 2])].add(1.), X)
row("sort", lambda p, x: p.np.sort(x, 1), X)
row("sort sharded", lambda p, x: p.np.sort(x, 0), X)
row("topk", lambda p, x: p.lax.top_k(x, 2), X)
row("broadcast_to", lambda p, x: p.np.broadcast_to(x, (3, 8, 4)), X)
row("broadcast_to out", lambda p, x: p.np.broadcast_to(x, (4, 8, 4), out_sharding=p.P("X", None, "Y")), Y)
row("zeros out", lambda p: p.np.zeros((8, 4), out_sharding=p.P("X")))
row("ones out", lambda p: p.np.ones((8, 4), out_sharding=p.P("X", "Y")))
row("full out", lambda p: p.np.full((8, 4), 2., out_sharding=p.P("X", "Y")))
row("arange out", lambda p: p.np.arange(8, out_sharding=p.P("X")))
row("zeros plain", lambda p: p.np.zeros((8, 4)))
row("zeros_like", lambda p, x: p.np.zeros_like(x), X)
row("ones_like", lambda p, x: p.np.ones_like(x), X)
row("full_like", lambda p, x: p.lax.full_like(x, 3.), X)
row("iota", lambda p: p.lax.broadcasted_iota(np.int32, (8, 4), 0, out_sharding=p.P("X")))
row("eye", lambda p: p.np.eye(8))
row("reshard", lambda p, x: p.sh.reshard(x, p.P(None, "X")), X)
row("reshard none", lambda p, x: p.sh.reshard(x, p.P()), X)
row("reshard auto mesh", lambda p, x: p.sh.reshard(x, p.P("X")), R, types="AA")
row("reshard nondiv", lambda p, x: p.sh.reshard(x, p.P("X")), ((6, 4), None, None))
row("reshard unknown", lambda p, x: p.sh.reshard(x, p.P("Z")), X)
row("wsc", lambda p, x: p.lax.with_sharding_constraint(x, p.P("X")), R, types="AA")
row("wsc explicit ok", lambda p, x: p.lax.with_sharding_constraint(x, p.P("X", None)), X)
row("wsc explicit bad", lambda p, x: p.lax.with_sharding_constraint(x, p.P("Y", None)), X)
row("auto types", lambda p, x: p.np.sin(x) + 1, X, types="AA")
row("mixed types", lambda p, x: p.np.sin(x) + 1, XY, types="EA")
row("mixed matmul", lambda p, x, y: x @ y, XY, ((4, 8), "Y", None), types="EA")
row("auto_axes", lambda p, x: p.sh.auto_axes(lambda a: a.reshape(4, 8) * 2, out_sharding=p.P("X", None))(x), X)
row("auto_axes one", lambda p, x: p.sh.auto_axes(lambda a: a * 2, axes="Y", out_sharding=p.P("X", None))(x), X)
row("auto_axes noout", lambda p, x: p.sh.auto_axes(lambda a: a * 2)(x), X)
row("explicit_axes", lambda p, x: p.sh.explicit_axes(lambda a: a * 2, in_sharding=p.P("X", None))(x), R, types="AA")
row("get mesh", lambda p, x: (str(p.sh.get_abstract_mesh()), x * 2)[1], X)
row("auto_axes mesh", auto_inside, X)
row("scan carry", lambda p, x: p.lax.scan(lambda c, _: (p.np.sin(c), c.sum(1)), x, None, length=3), X)
row("scan xs", lambda p, x: p.lax.scan(lambda c, y: (c + y, y * 2), p.np.zeros(4), x), Y)
row("scan xs sharded", lambda p, x: p.lax.scan(lambda c, y: (c + y, y * 2), p.np.zeros(4), x), X)
row("scan carry mismatch",
    lambda p, x: p.lax.scan(lambda c, _: (p.sh.reshard(c, p.P(None, None)), None), x, None, length=3), X)
row("while", lambda p, x: p.lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, x), X)
row("fori", lambda p, x: p.lax.fori_loop(0, 3, lambda i, c: c * 2, x), X)
row("cond", lambda p, x: p.lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: a + 1, x), X)
row("cond mismatch",
    lambda p, x: p.lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: p.sh.reshard(a, p.P(None, None)), x), X)
row("grad sum", lambda p, x: p.jax.grad(lambda a: (a * a).sum())(x), X)
row("grad matmul", lambda p, x, y: p.jax.grad(lambda a, b: (a @ b).sum(), (0, 1))(x, y), X, ((4, 8), None, "Y"))
row("grad matmul contract",
    lambda p, x, y: p.jax.grad(lambda a, b: (p.np.matmul(a, b, out_sharding=p.P("X", None))).sum(), (0, 1))(x, y), Y,
    ((4, 8), "Y", None))
row("grad reshape", lambda p, x: p.jax.grad(lambda a: (a.reshape(32)**2).sum())(x), X)
row("grad bcast", lambda p, x, y: p.jax.grad(lambda a, b: (a * b).sum(), (0, 1))(x, y), X, ((4,), "Y"))
row("grad reshard", lambda p, x: p.jax.grad(lambda a: (p.sh.reshard(a, p.P(None, "Y"))**2).sum())(x), X)
row("grad slice", lambda p, x: p.jax.grad(lambda a: (a[:, 1:3]**2).sum())(x), X)
row("grad concat", lambda p, x, y: p.jax.grad(lambda a, b: (p.np.concatenate([a, b], 1)**2).sum(), (0, 1))(x, y), X, X)
row("grad max", lambda p, x: p.jax.grad(lambda a: a.max(1).sum())(x), X)
row("grad softmax", lambda p, x: p.jax.grad(lambda a: p.nn.softmax(a)[:, 0].sum())(x), X)
row("grad scan",
    lambda p, x: p.jax.grad(lambda a: p.lax.scan(lambda c, _: (p.np.sin(c), None), a, None, length=3)[0].sum())(x), X)
row("grad unused", lambda p, x: p.jax.grad(lambda a: 3.0)(x), X)
row("vjp", lambda p, x: p.jax.vjp(lambda a: p.np.sin(a).T, x)[1](p.sh.reshard(x.T, p.P(None, "X"))), X)
row("jvp", lambda p, x: p.jax.jvp(lambda a: p.np.sin(a).T, (x, ), (x, )), X)
row("vmap", lambda p, x: p.jax.vmap(lambda a: p.np.sin(a).sum())(x), X)
row("vmap inner", lambda p, x: p.jax.vmap(lambda a: (p.note(str(p.jax.typeof(a))), p.np.sin(a))[1], in_axes=1)(x), X)
row("vmap outaxes", lambda p, x: p.jax.vmap(lambda a: a * 2, out_axes=1)(x), X)
row("vmap two", lambda p, x, y: p.jax.vmap(lambda a, b: a @ b, in_axes=(0, None))(x, y), X, ((4, 8), None, "Y"))
row("vmap unbatched out", lambda p, x, y: p.jax.vmap(lambda a, b: b * 2, in_axes=(0, None))(x, y), X, ((4,), "Y"))
row("vmap mismatch", lambda p, x, y: p.jax.vmap(lambda a, b: a + b)(x, y), X, R)
row("vmap spmd", lambda p, x: p.jax.vmap(lambda a: p.np.sin(a), spmd_axis_name="X")(x), X)
row("vmap spmd wsc",
    lambda p, x: p.jax.vmap(lambda a: p.lax.with_sharding_constraint(a, p.P("Y")), spmd_axis_name="X")(x), R,
    types="AA")
row("vmap grad", lambda p, x: p.jax.vmap(p.jax.grad(lambda a: (a * a).sum()))(x), X)
row("jit nested", lambda p, x: p.jax.jit(lambda a: p.np.sin(a) * 2)(x), X)
row("jit out_shardings", lambda p, x: p.jax.jit(lambda a: a * 2, out_shardings=p.P("X", None))(x), X)
row("jit out_shardings other", lambda p, x: p.jax.jit(lambda a: a * 2, out_shardings=p.P("Y", None))(x), X)
row("jit in_shardings", lambda p, x: p.jax.jit(lambda a: a * 2, in_shardings=p.P("X", None))(x), X)
row("jit in_shardings bad", lambda p, x: p.jax.jit(lambda a: a * 2, in_shardings=p.P("Y", None))(x), X)
row("checkpoint", lambda p, x: p.jax.grad(p.jax.checkpoint(lambda a: p.np.sin(p.np.sin(a)).sum()))(x), X)
row("custom_jvp", lambda p, x: p.nn.relu(x), X)
row("custom_vjp", through_custom_rule, X)
row("random", lambda p: p.random.uniform(p.random.key(0), (8, 4), out_sharding=p.P("X", None)))
row("random bits", lambda p: p.random.bits(p.random.key(0), (8, 4), out_sharding=p.P("X", None)))
row("random normal", lambda p: p.random.normal(p.random.key(0), (8, 4), out_sharding=p.P("X", "Y")))
row("random plain", lambda p: p.random.normal(p.random.key(0), (8, 4)))
row("random split", lambda p: p.random.split(p.random.key(0), 4))
row("conv",
    lambda p, x, k: p.lax.conv(x, k, (1, 1), "SAME"), ((8, 3, 6, 6), "X", None, None, None),
    ((4, 3, 3, 3), None, None, None, None))
row("conv out feature",
    lambda p, x, k: p.lax.conv(x, k, (1, 1), "SAME"), ((8, 3, 6, 6), "X", None, None, None),
    ((4, 3, 3, 3), "Y", None, None, None))
row("reduce_window", lambda p, x: p.lax.reduce_window(x, -np.inf, p.lax.max, (1, 2), (1, 2), "VALID"), X)
row("one_hot", lambda p, x: p.nn.one_hot(x, 4), ((8,), "X", np.int32))
row("tile", lambda p, x: p.np.tile(x, (1, 2)), X)
row("repeat", lambda p, x: p.np.repeat(x, 2, axis=1), X)
row("roll", lambda p, x: p.np.roll(x, 1, 1), X)
row("tri", lambda p, x: p.np.tril(x), X)
row("solve", lambda p, x, y: p.np.linalg.solve(x, y), ((8, 4, 4), "X", None, None), ((8, 4), "X", None))
row("fft", lambda p, x: p.np.fft.fft(x), X)
row("svd", lambda p, x: p.np.linalg.svd(x), ((8, 4, 4), "X", None, None))
row("unknown axis arg", lambda p, x: x * 2, ((8, 4), "Z", None))
row("nondiv arg", lambda p, x: x * 2, ((6, 4), "X", None))
row("optimization_barrier", lambda p, x: p.lax.optimization_barrier(x), X)
row("device_put in jit", lambda p, x: p.jax.device_put(x, p.sh.NamedSharding(p.mesh, p.P(None, "Y"))), X)
row("typeof",
    lambda p, x: (p.note(str(p.jax.typeof(x)) + repr(p.jax.typeof(x)) + repr(p.jax.typeof(x).sharding)), x * 1)[1], XY)
row("complex", lambda p, x: p.np.abs(x + 1j), X)
row("outer", lambda p, x, y: p.np.outer(x, y), ((8,), "X"), ((4,), "Y"))
row("integer_pow", lambda p, x: x**3, X)
row("mlp grad",
    lambda p, x, w, v: p.jax.grad(lambda w, v: ((p.nn.relu(x @ w)@v)**2).mean(), (0, 1))(w, v), X, ((4, 8), None, "Y"),
    ((8, 4), "Y", None))
row("mlp grad fsdp", lambda p, x, w: p.jax.grad(lambda w: ((p.nn.gelu(x @ w))**2).mean())(w), X, ((4, 8), None, None))
row("layernorm",
    lambda p, x, g: (x-x.mean(-1, keepdims=True))/p.np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g, X, ((4,), None))
row("attention",
    lambda p, q, k: p.np.einsum("bhqk,bkhd->bqhd", p.nn.softmax(p.np.einsum("bqhd,bkhd->bhqk", q, k)), k),
    ((8, 4, 2, 4), "X", None, "Y", None), ((8, 4, 2, 4), "X", None, "Y", None))
row("where scalar", lambda p, x: p.np.where(x > 0, x, 0.), X)
row("where scalar 2", lambda p, x: p.np.where(x > 0, 0., x), X)
row("where pred repl", lambda p, x, m: p.np.where(m > 0, x, 0.), X, R)
row("where row", lambda p, x, y: p.np.where(x > 0, x, y), X, ((4,), None))
row("where col", lambda p, x, y: p.np.where(x > 0, x, y), X, ((8, 1), "X", None))
row("where mask row", lambda p, x, m: p.np.where(m > 0, x, 0.), X, ((4,), None))
row("plain arg", lambda p, x, y: x + y.sum(), X, R)
row("clamp arr", lambda p, x, y: p.lax.clamp(y, x, y), X, R)
row("select scalar pred", lambda p, x: p.lax.select(x.sum() > 0, x, x + 1), X)
row("take_along", lambda p, x, i: p.np.take_along_axis(x, i, 1), X, ((8, 2), "X", None, np.int32))
row("gather nonindexed sharded", lambda p, x, i: x[i], Y, ((3,), None, np.int32))
row("gather indexed sharded", lambda p, x, i: x[i], X, ((3,), None, np.int32))
row("scatter ok", lambda p, x, i, u: x.at[i].set(u), Y, ((3,), None, np.int32), ((3, 4), None, "Y"))
row("scatter mismatch", lambda p, x, i, u: x.at[i].set(u), Y, ((3,), None, np.int32), ((3, 4), None, None))
row("sort two", lambda p, x, y: p.lax.sort((x, y), num_keys=1), X, X)
row("sort two bad", lambda p, x, y: p.lax.sort((x, y), num_keys=1), X, R)
row("reduce general", lambda p, x: p.lax.reduce(x, np.float32(0), lambda a, b: a + b * 2, (1,)), X)
row("rw sharded", lambda p, x: p.lax.reduce_window(x, -np.inf, p.lax.max, (2, 2), (2, 2), "VALID"), X)
row("unstack", lambda p, x: p.np.unstack(x), ((2, 8), None, "X"))
row("unstack bad", lambda p, x: p.np.unstack(x), X)
row("copy", lambda p, x: p.np.copy(x), X)
row("reduce_precision", lambda p, x: p.lax.reduce_precision(x, 8, 7), X)
row("argsort", lambda p, x: p.np.argsort(x, 1), X)
row("array out", lambda p: p.np.array(np.ones((8, 4)), out_sharding=p.P("X")))
row("zeros device", lambda p: p.np.zeros((8, 4), device=p.sh.NamedSharding(p.mesh, p.P("X"))))
row("zeros nondiv", lambda p: p.np.zeros((6, 4), out_sharding=p.P("X")))
row("zeros unknown", lambda p: p.np.zeros((8, 4), out_sharding=p.P("Z")))
row("zeros auto", lambda p: p.np.zeros((8, 4), out_sharding=p.P("X")), types="AA")
row("zeros mixed auto", lambda p: p.np.zeros((8, 4), out_sharding=p.P("Y")), types="EA")
row("reshape dims out", lambda p, x: p.lax.reshape(x, (4, 8), out_sharding=p.P("X")), X)
row("reshape unit", lambda p, x: x.reshape(1, 8, 4, 1), X)
row("reshape unit rm", lambda p, x: x.reshape(8, 4), ((8, 1, 4), "X", None, None))
row("reshape merge mid", lambda p, x: x.reshape(2, 32), ((2, 8, 4), None, "X", None))
row("reshape merge mid bad", lambda p, x: x.reshape(16, 4), ((2, 8, 4), None, "X", None))
row("reshape merge two", lambda p, x: x.reshape(16, 4), ((2, 8, 4), "Y", "X", None))
row("reshape merge gap", lambda p, x: x.reshape(64), ((8, 2, 4), "X", None, "Y"))
row("reshape split two", lambda p, x: x.reshape(4, 2, 4), ((8, 4), ("X", "Y"), None))
row("reshape split two b", lambda p, x: x.reshape(8, 2), ((16,), ("X", "Y")))
row("reshape split two c", lambda p, x: x.reshape(2, 8), ((16,), ("X", "Y")))
row("reshape split y", lambda p, x: x.reshape(2, 4, 4), ((8, 4), "Y", None))
row("reshape split minor", lambda p, x: x.reshape(8, 2, 2), Y)
row("reshape split other", lambda p, x: x.reshape(8, 2, 2, 4), ((8, 4, 4), "X", None, "Y"))
row("reshape two splits", lambda p, x: x.reshape(4, 2, 2, 2), X)
row("reshape split three", lambda p, x: x.reshape(4, 2, 2, 4), ((16, 4), "X", None))
row("reshape merge equal", lambda p, x: x.reshape(4, 8), ((2, 2, 8), "Y", None, None))
row("reshape 0d", lambda p, x: x.reshape(()), ((1, 1), None, None))
row("reshape replicated any", lambda p, x: x.reshape(2, 16), R)
row("reshape empty", lambda p, x: x.reshape(0, 8), ((8, 0), "X", None))
row("empty sum", lambda p, x: x.sum(1), ((8, 0), "X", None))
row("one element", lambda p, x: x * 2, ((8, 1), "X", None))
row("unreduced",
    lambda p, x, y: p.np.einsum("ij,jk->ik", x, y, out_sharding=p.P(None, None, unreduced={"Y"})), Y,
    ((4, 8), "Y", None))
row("other mesh", lambda p, x, y: x + y, X, ((8, 4), "X", None))
row("iota out", lambda p: p.lax.broadcasted_iota(np.int32, (8, 4), 1, out_sharding=p.P(None, "Y")))
row("lax sum out", lambda p, x: p.lax.reduce_sum(x, (0,), out_sharding=p.P("Y")), X)
row("qr repl", lambda p, x: p.np.linalg.qr(x), ((4, 4), None, None))
row("qr sharded", lambda p, x: p.np.linalg.qr(x), ((4, 4), "X", None))
row("eigh", lambda p, x: p.np.linalg.eigh(x), ((8, 4, 4), "X", None, None))
row("lu", lambda p, x: p.lax.linalg.lu(x), ((8, 4, 4), "X", None, None))
row("triangular",
    lambda p, a, b: p.lax.linalg.triangular_solve(a, b), ((8, 4, 4), "X", None, None), ((8, 4, 4), "X", None, None))
row("topk bad", lambda p, x: p.lax.top_k(x, 1), Y)
row("fft sharded", lambda p, x: p.np.fft.fft(x), Y)
row("tensordot", lambda p, x, y: p.np.tensordot(x, y, 1), X, ((4, 8), None, "Y"))
row("vdot", lambda p, x, y: p.np.vdot(x, y), ((8,), "X"), ((8,), "X"))
row("dot vv", lambda p, x, y: p.np.dot(x, y), ((8,), "X"), ((8,), None))
row("dot vv out", lambda p, x, y: p.np.dot(x, y, out_sharding=p.P()), ((8,), "X"), ((8,), "X"))
row("einsum three",
    lambda p, x, y, z: p.np.einsum("ij,jk,kl->il", x, y, z), X, ((4, 8), None, None), ((8, 4), None, "Y"))
row("einsum transposed out",
    lambda p, x, y: p.np.einsum("ij,jk->ki", x, y, out_sharding=p.P("Y", "X")), Y, ((4, 8), "Y", None))
row("einsum sum", lambda p, x: p.np.einsum("ij->j", x), XY)
row("matmul bcast", lambda p, x, y: x @ y, ((8, 4, 2), "X", None, None), ((2, 4), None, "Y"))
row("matmul batch conflict",
    lambda p, x, y: p.np.einsum("bij,bjk->bik", x, y), ((8, 4, 2), "X", None, None), ((8, 2, 4), "Y", None, None))
row("grad dot batch",
    lambda p, x, y: p.jax.grad(lambda a, b: p.np.einsum("bij,bjk->bik", a, b).sum(), (0, 1))(x, y),
    ((8, 4, 2), "X", None, None), ((8, 2, 4), "X", None, "Y"))
row("grad transpose", lambda p, x: p.jax.grad(lambda a: (a.T**2).sum())(x), XY)
row("grad max all", lambda p, x: p.jax.grad(lambda a: a.max())(x), XY)
row("grad where", lambda p, x: p.jax.grad(lambda a: p.np.where(a > 0, a, 0.).sum())(x), XY)
row("grad cumsum", lambda p, x: p.jax.grad(lambda a: p.np.cumsum(a, 1).sum())(x), X)
row("grad take", lambda p, x, i: p.jax.grad(lambda a: (a[i]**2).sum())(x), Y, ((3,), None, np.int32))
row("grad dynamic slice", lambda p, x: p.jax.grad(lambda a: (p.lax.dynamic_slice(a, (0, 1), (8, 2))**2).sum())(x), X)
row("grad broadcast", lambda p, x: p.jax.grad(lambda a: (p.np.broadcast_to(a, (3, 8, 4))**2).sum())(x), X)
row("grad scan xs",
    lambda p, x,
    w: p.jax.grad(lambda w: p.lax.scan(lambda c, y: (p.np.sin(c * w) + y, c), p.np.zeros_like(x[0]), x)[0].sum())(w), Y,
    ((4,), "Y"))
row("grad while fwd",
    lambda p, x: p.jax.jvp(lambda a: p.lax.fori_loop(0, 3, lambda i, c: p.np.sin(c), a), (x, ), (x, )), X)
row("grad cond",
    lambda p, x: p.jax.grad(lambda a: p.lax.cond(a.sum() > 0, lambda b: b * 2, lambda b: p.np.sin(b), a).sum())(x), X)
row("grad auto_axes",
    lambda p,
    x: p.jax.grad(lambda a: p.sh.auto_axes(lambda b: p.np.sin(b), out_sharding=p.P("X", None))(a).sum())(x), X)
row("grad conv",
    lambda p, x, k: p.jax.grad(lambda k: p.lax.conv(x, k, (1, 1), "SAME").sum())(k),
    ((8, 3, 6, 6), "X", None, None, None), ((4, 3, 3, 3), None, None, None, None))
row("hessian", lambda p, x: p.jax.hessian(lambda a: (a**3).sum())(x), ((4,), None))
row("jacfwd", lambda p, x: p.jax.jacfwd(lambda a: a * 2)(x), ((4,), None))
row("value_and_grad", lambda p, x: p.jax.value_and_grad(lambda a: (a * a).mean())(x), XY)
row("vmap of vmap", lambda p, x: p.jax.vmap(p.jax.vmap(p.np.sin))(x), XY)
row("vmap matmul",
    lambda p, x, y: p.jax.vmap(p.np.dot)(x, y), ((8, 4, 2), "X", None, None), ((8, 2, 4), "X", None, "Y"))
row("vmap reshape", lambda p, x: p.jax.vmap(lambda a: a.reshape(2, 2))(x), X)
row("vmap scan", lambda p, x: p.jax.vmap(lambda a: p.lax.scan(lambda c, _: (c * 2, c.sum()), a, None, length=2))(x), X)
row("vmap cond", lambda p, x: p.jax.vmap(lambda a: p.lax.cond(a.sum() > 0, lambda b: b * 2, lambda b: b, a))(x), X)
row("vmap while",
    lambda p, x: p.jax.vmap(lambda a: p.lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2 + 1, a))(x), X)
row("vmap gather", lambda p, x, i: p.jax.vmap(lambda a, j: a[j])(x, i), X, ((8,), "X", np.int32))
row("vmap reduce bcast", lambda p, x: p.jax.vmap(lambda a: a-a.mean())(x), X)
row("vmap reshard", lambda p, x: p.jax.vmap(lambda a: p.sh.reshard(a, p.P("Y")))(x), X)
row("vmap iota", lambda p, x: p.jax.vmap(lambda a: a + p.np.arange(4.))(x), X)
row("vmap jit", lambda p, x: p.jax.vmap(p.jax.jit(lambda a: p.np.sin(a) * 2))(x), X)
row("vmap where", lambda p, x: p.jax.vmap(lambda a: p.np.where(a > 0, a, 0.))(x), X)
row("vmap zeros", lambda p, x: p.jax.vmap(lambda a: (a, p.np.zeros(3)))(x), X)
row("gelu", lambda p, x: p.nn.gelu(x), XY)
row("silu", lambda p, x: p.nn.silu(x), XY)
row("log_softmax", lambda p, x: p.nn.log_softmax(x), X)
row("softmax sharded", lambda p, x: p.nn.softmax(x, axis=0), X)
row("std", lambda p, x: p.np.std(x, 1), X)
row("median", lambda p, x: p.np.median(x, 1), X)
row("linalg norm", lambda p, x: p.np.linalg.norm(x, axis=1), X)
row("triu", lambda p, x: p.np.triu(x, 1), X)
row("diff", lambda p, x: p.np.diff(x, axis=1), X)
row("moveaxis", lambda p, x: p.np.moveaxis(x, 0, 1), XY)
row("swapaxes", lambda p, x: p.np.swapaxes(x, 0, 1), XY)
row("vstack", lambda p, x, y: p.np.vstack([x, y]), X, X)
row("hstack", lambda p, x, y: p.np.hstack([x, y]), X, X)
row("append", lambda p, x, y: p.np.append(x, y, 1), X, X)
row("nan_to_num", lambda p, x: p.np.nan_to_num(x), X)
row("isnan any", lambda p, x: p.np.isnan(x).any(1), X)
row("allclose", lambda p, x, y: p.np.allclose(x, y), X, X)
row("divmod", lambda p, x, y: p.np.divmod(x, y), X, X)
row("floor_divide", lambda p, x: x//2, X)
row("mod", lambda p, x: x%2, X)
row("power", lambda p, x, y: x**y, X, X)
row("logaddexp", lambda p, x, y: p.np.logaddexp(x, y), X, X)
row("cross entropy",
    lambda p, x, l: -(p.nn.log_softmax(x) * p.nn.one_hot(l, 4)).sum(-1).mean(), X, ((8,), "X", np.int32))
row("embedding", lambda p, e, i: e.at[i].get(out_sharding=p.P("X", None)), ((16, 4), None, "Y"), ((8,), "X", np.int32))
row("rope", lambda p, x: p.np.concatenate([-x[..., 2:], x[..., :2]], -1) * p.np.cos(p.np.arange(4.)), X)
row("adam", lambda p, w, g, m: (w-0.1 * (0.9 * m + 0.1 * g)/(p.np.sqrt(0.9 * m * m + 0.1 * g * g) + 1e-8)), XY, XY, XY)
row("bernoulli", lambda p: p.random.bernoulli(p.random.key(0), 0.5, (8, 4), out_sharding=p.P("X", None)))
row("randint", lambda p: p.random.randint(p.random.key(0), (8, 4), 0, 10, out_sharding=p.P("X", None)))
row("dropout",
    lambda p, x: p.np.where(p.random.bernoulli(p.random.key(0), 0.5, x.shape, out_sharding=p.P("X", None)), x, 0.), X)
row("fold_in", lambda p: p.random.uniform(p.random.fold_in(p.random.key(0), 1), (4,)))
row("closure const", lambda p, x: x + np.ones((8, 4), np.float32), X)
row("named call", lambda p, x: p.jax.named_call(lambda a: a * 2)(x), X)
row("eval_shape", lambda p, x: (p.note(str(p.jax.eval_shape(lambda a: a.T, x).sharding)), x)[1], X)
row("pure_callback", lambda p, x: p.jax.pure_callback(lambda a: a, p.jax.ShapeDtypeStruct((8, 4), np.float32), x), X)
row("cond select", lambda p, x: p.lax.switch(1, [lambda a: a, lambda a: a * 2], x), X)
row("scan sharded out",
    lambda p, x: p.lax.scan(lambda c, y: (c, y * c.sum()), x, p.np.ones((3, 8, 4), out_sharding=p.P(None, "X", None))),
    X)
row("map", lambda p, x: p.lax.map(lambda a: a * 2, x), Y)
row("associative_scan", lambda p, x: p.lax.associative_scan(p.np.add, x, axis=1), X)
row("inner auto mesh error", lambda p, x: p.sh.auto_axes(lambda a: a + x, out_sharding=p.P("X", None))(x), X)
row("auto tree", lambda p, x: p.sh.auto_axes(lambda a: (a, a.T), out_sharding=(p.P("X", None), p.P(None, "X")))(x), X)
row("reshard tree", lambda p, x, y: p.sh.reshard({"a":x, "b":y}, {"a":p.P(), "b":p.P("X")}), X, Y)
row("reshard rank", lambda p, x: p.sh.reshard(x, p.P("X", None, None)), X)
row("stop_gradient", lambda p, x: p.lax.stop_gradient(x), X)
row("expand_dims", lambda p, x: x[None, :, None], XY)
row("cond aux", lambda p, x: p.jax.linearize(p.np.sin, x)[1](x), X)
row("unreduced add", lambda p, x, y: unreduced(p, x, y) + unreduced(p, x, y), Y, ((4, 8), "Y", None))
row("unreduced mul", lambda p, x, y: unreduced(p, x, y) * 2, Y, ((4, 8), "Y", None))
row("unreduced mul u", lambda p, x, y: unreduced(p, x, y) * unreduced(p, x, y), Y, ((4, 8), "Y", None))
row("unreduced sin", lambda p, x, y: p.np.sin(unreduced(p, x, y)), Y, ((4, 8), "Y", None))
row("unreduced reshard", lambda p, x, y: p.sh.reshard(unreduced(p, x, y), p.P("Y", None)), Y, ((4, 8), "Y", None))
row("unreduced wrong",
    lambda p, x, y: p.np.einsum("ij,jk->ik", x, y, out_sharding=p.P(None, None, unreduced={"X"})),
    Y, ((4, 8), "Y", None))
row("unreduced T", lambda p, x, y: unreduced(p, x, y).T, Y, ((4, 8), "Y", None))
row("reshard to unreduced", lambda p, x: p.sh.reshard(x, p.P(None, None, unreduced={"Y"})), R)
row("reduce_sum unreduced", lambda p, x: p.lax.reduce_sum(x, (1,), out_sharding=p.P(None, unreduced={"Y"})), Y)
row("reduce_sum unreduced bad", lambda p, x: p.lax.reduce_sum(x, (0,), out_sharding=p.P(None, unreduced={"Y"})), Y)
row("set out", lambda p, x, i: x.at[i].set(1., out_sharding=p.P("X", None)), X, ((3,), None, np.int32))
row("add out",
    lambda p, x, i, u: x.at[i].add(u, out_sharding=p.P("X", None)), X, ((3,), None, np.int32), ((3, 4), None, None))
row("get out tuple",
    lambda p, x, i, j: x.at[i, j].get(out_sharding=p.P("X")), XY, ((8,), "X", np.int32), ((8,), "X", np.int32))
row("argmax out", lambda p, x: p.np.argmax(x), X)
row("mean axis none", lambda p, x: x.mean(), X)
row("jit static out", lambda p, x: p.jax.jit(lambda a: p.np.zeros((8, 4), out_sharding=p.P("X")))(x), X)
row("conv out",
    lambda p, x, k: p.lax.conv_general_dilated(x, k, (1, 1), "SAME", out_sharding=p.P("X", None, None, None)),
    ((8, 3, 6, 6), "X", None, None, None), ((4, 3, 3, 3), None, None, None, None))
row("split1 dup", lambda p, x: p.lax.split(x, (4, 4), 0), X)
row("split uneven", lambda p, x: p.lax.split(x, (2, 6), 0), X)
row("dyn update sharded", lambda p, x, u: p.lax.dynamic_update_slice(x, u, (0, 0)), X, ((4, 4), "X", None))
row("cond operand literal",
    lambda p, x: p.lax.cond(True, lambda a: a, lambda a: p.np.zeros((8, 4), out_sharding=p.P("X", None)), x), X)
row("while repl to shard", lambda p, x: p.lax.while_loop(lambda c: c.sum()<3, lambda c: c+x, p.np.zeros((8, 4))), X)
row("carry python zero", lambda p, x: p.lax.fori_loop(0, 3, lambda i, c: c+x.sum(), 0.), X)
row("linspace", lambda p: p.np.linspace(0, 1, 8))
row("zeros np shape", lambda p: p.np.zeros(np.int64(8), out_sharding=p.P("X")))
row("get dyn", lambda p, x, i: x.at[i].get(out_sharding=p.P(None)), Y, ((), np.int32))
row("batched gather repl",
    lambda p, x, i: p.jax.vmap(lambda a, j: a.at[j].get(out_sharding=p.P()))(x, i), X, ((8,), "X", np.int32))
row("einsum grad out",
    lambda p, x, y: p.jax.grad(lambda a: (p.np.einsum("ij,jk->ik", a, y, out_sharding=p.P("X", None))**2).sum())(x),
    Y, ((4, 8), "Y", None))
row("transformer block",
    lambda p, *operands: p.jax.grad(functools.partial(block_loss, p), (1, 2))(*operands),
    X, ((4, 8), None, "Y"), ((8, 4), "Y", None))
row("scan layers",
    lambda p, x, w: p.jax.grad(lambda w: p.lax.scan(lambda h, l: (p.nn.relu(h @ l), None), x, w)[0].sum())(w),
    X, ((3, 4, 4), None, None, None))
row("scan layers remat",
    lambda p, x, w: p.jax.grad(
        lambda w: p.lax.scan(p.jax.checkpoint(lambda h, l: (p.nn.relu(h @ l), None)), x, w)[0].sum())(w),
    X, ((3, 4, 4), None, None, None))
row("vmap grad matmul",
    lambda p, x, w: p.jax.vmap(p.jax.grad(lambda a, w: (a @ w).sum()), (0, None))(x, w), X, ((4, 8), None, "Y"))
row("grad vmap",
    lambda p, x, w: p.jax.grad(lambda w: p.jax.vmap(lambda a: p.np.sin(a @ w).sum())(x).sum())(w),
    X, ((4, 8), None, "Y"))
row("jit of grad of jit", lambda p, x: p.jax.jit(p.jax.grad(p.jax.jit(lambda a: (a.T**2).sum())))(x), XY)
row("jvp of vmap", lambda p, x: p.jax.jvp(p.jax.vmap(p.np.sin), (x, ), (x, )), X)
row("hessian vp", lambda p, x: p.jax.jvp(p.jax.grad(lambda a: (a**3).sum()), (x, ), (x, )), X)
row("grad of auto w",
    lambda p, x, w: p.jax.grad(
        lambda w: p.sh.auto_axes(lambda a, b: a @ b, out_sharding=p.P("X", None))(x, w).sum())(w),
    Y, ((4, 8), "Y", None))
row("embedding grad",
    lambda p, e, i: p.jax.grad(lambda e: e.at[i].get(out_sharding=p.P("X", None)).sum())(e),
    ((16, 4), None, "Y"), ((8,), "X", np.int32))
row("softmax ce grad",
    lambda p, x, l: p.jax.grad(lambda x: -(p.nn.log_softmax(x) * p.nn.one_hot(l, 4)).sum(-1).mean())(x),
    X, ((8,), "X", np.int32))
row("norm grad",
    lambda p, x, g: p.jax.grad(lambda x, g: (p.nn.standardize(x) * g).sum(), (0, 1))(x, g), X, ((4,), None))
row("grad sort", lambda p, x: p.jax.grad(lambda a: (p.np.sort(a, 1)**2).sum())(x), X)
row("grad split", lambda p, x: p.jax.grad(lambda a: (p.np.split(a, 2, 1)[0]**2).sum())(x), X)
row("grad pad", lambda p, x: p.jax.grad(lambda a: (p.np.pad(a, ((0, 0), (1, 1)))**2).sum())(x), X)
row("grad stack", lambda p, x: p.jax.grad(lambda a: (p.np.stack([a, a * 2])**2).sum())(x), X)
row("grad scatter", lambda p, x: p.jax.grad(lambda a: (a.at[:, 0].set(0.)**2).sum())(x), X)
row("grad scatter add",
    lambda p, x, u: p.jax.grad(lambda a, u: (a.at[:, 0].add(u)**2).sum(), (0, 1))(x, u), X, ((8,), "X"))
row("grad take_along",
    lambda p, x, i: p.jax.grad(lambda a: (p.np.take_along_axis(a, i, 1)**2).sum())(x), X, ((8, 2), "X", None, np.int32))
row("grad logsumexp", lambda p, x: p.jax.grad(lambda a: p.nn.logsumexp(a, 1).sum())(x), X)
row("grad min", lambda p, x: p.jax.grad(lambda a: a.min(0).sum())(x), Y)
row("grad cumprod", lambda p, x: p.jax.grad(lambda a: p.np.cumprod(a, 1).sum())(x), X)
row("grad rw",
    lambda p, x: p.jax.grad(lambda a: p.lax.reduce_window(a, -np.inf, p.lax.max, (1, 2), (1, 2), "VALID").sum())(x), X)
row("grad while custom",
    lambda p, x: p.jax.grad(lambda a: p.lax.fori_loop(0, 3, lambda i, c: p.np.sin(c) * a, a).sum())(x), X)
row("grad eigh", lambda p, x: p.jax.grad(lambda a: p.np.linalg.eigh(a)[0].sum())(x), ((8, 4, 4), "X", None, None))
row("grad complex", lambda p, x: p.jax.grad(lambda a: p.np.abs(p.np.fft.fft(a)).sum())(x), X)
row("associative grad", lambda p, x: p.jax.grad(lambda a: p.lax.associative_scan(p.np.multiply, a, axis=1).sum())(x), X)
row("vmap dus",
    lambda p, x, i: p.jax.vmap(lambda a, j: p.lax.dynamic_update_slice(a, p.np.ones(1), (j, )))(x, i),
    X, ((8,), "X", np.int32))
row("vmap ds",
    lambda p, x, i: p.jax.vmap(lambda a, j: p.lax.dynamic_slice(a, (j, ), (2,)))(x, i), X, ((8,), "X", np.int32))
row("vmap concat const", lambda p, x: p.jax.vmap(lambda a: p.np.concatenate([a, p.np.ones(2)]))(x), X)
row("vmap sort", lambda p, x: p.jax.vmap(p.np.sort)(x), X)
row("vmap cond pred",
    lambda p, x: p.jax.vmap(lambda a: p.lax.cond(a[0]>0, lambda: p.np.ones(4), lambda: p.np.zeros(4)))(x), X)
row("vmap conv", lambda p, x, k: p.jax.vmap(lambda a: p.np.convolve(a, k))(x), ((8, 6), "X", None), ((3,), None))
row("vmap in_axes 1 y",
    lambda p, x, y: p.jax.vmap(lambda a, b: a @ b, in_axes=(0, None), out_axes=1)(x, y), X, ((4, 8), None, "Y"))
row("vmap random", lambda p: p.jax.vmap(lambda k: p.random.normal(k, (3,)))(p.random.split(p.random.key(0), 4)))

# what is asked for of one example holds of each: the mapped dimension stays spread as it is
V = ((8, 4, 2), "X", None, None)
for given, operand in (("", V), (" replicated", ((8, 4, 2), None, None, None))):
    row(f"vmap reshape out{given}", lambda p, x: p.jax.vmap(
        lambda a: p.lax.reshape(a, (2, 4), out_sharding=p.P("Y", None)))(x), operand)
    row(f"vmap broadcast out{given}", lambda p, x: p.jax.vmap(
        lambda a: p.lax.broadcast_in_dim(a, (2, 4, 2), (1, 2), out_sharding=p.P("Y")))(x), operand)
    row(f"vmap einsum out{given}", lambda p, x: p.jax.vmap(
        lambda a: p.np.einsum("ij,kj->ik", a, a, out_sharding=p.P(None, "Y")))(x), operand)
    row(f"vmap get out{given}", lambda p, x: p.jax.vmap(
        lambda a: a.at[p.np.array([0, 1])].get(out_sharding=p.P("Y", None)))(x), operand)
    row(f"vmap get of a slice out{given}", lambda p, x: p.jax.vmap(
        lambda a: a.at[:, p.np.array([0, 1])].get(out_sharding=p.P(None, "Y")))(x), operand)
    row(f"vmap add out{given}", lambda p, x: p.jax.vmap(
        lambda a: a.at[:, p.np.array([0, 1])].add(1.0, out_sharding=p.P("Y")))(x), operand)
    row(f"vmap grad of reshape out{given}", lambda p, x: p.jax.vmap(p.jax.grad(
        lambda a: p.np.sin(p.lax.reshape(a, (2, 4), out_sharding=p.P("Y", None))).sum()))(x), operand)
row("vmap in_axes 1 reshape out", lambda p, x: p.jax.vmap(
    lambda a: p.lax.reshape(a, (2, 2), out_sharding=p.P(None, "Y")), in_axes=1)(x), ((4, 8), None, "X"))
row("vmap dot of one out", lambda p, x, y: p.jax.vmap(
    lambda a, b: p.np.matmul(a, b, out_sharding=p.P("Y")), in_axes=(0, None))(x, y), V, ((2, 4), None, None))
row("grad of dynamic update", lambda p, x, y: p.jax.grad(
    lambda a, b: p.lax.dynamic_update_slice(a, b, (3,)).sum(), (0, 1))(x, y), ((16,), "X"), ((8,), "X"))
row("grad of one more dimension", lambda p, x: p.jax.grad(lambda a: p.np.expand_dims(a, -1).sum())(x), ((8,), "X"))
row("grad of a broadcast of ones", lambda p, x: p.jax.grad(
    lambda a: (p.np.broadcast_to(a, (3, 1, 4)) * 2).sum())(x), ((1, 4), None, "X"))

# what was summed along an axis stays so
for name, function in {
        "sin": lambda p, a: p.np.sin(a), "mul": lambda p, a: a * 2 + a, "sum": lambda p, a: a.sum(0),
        "transpose": lambda p, a: a.T, "cast": lambda p, a: a.astype("bfloat16"),
        "broadcast": lambda p, a: p.np.broadcast_to(a, (3, *a.shape)), "slice": lambda p, a: a[:1],
        "select": lambda p, a: p.np.where(True, a, -a), "concatenate": lambda p, a: p.np.concatenate([a, a]),
        "dot": lambda p, a: a @ a.T, "reduce_precision": lambda p, a: p.lax.reduce_precision(a, 5, 5)}.items():
    row(f"reduced {name}", lambda p, x, function=function: function(p, p.sh.reshard(x, p.P(reduced={"X"}))), R)
row("product of spread and reduced",
    lambda p, x, y: x @ p.sh.reshard(y, p.P(reduced={"X"})), X, ((4, 8), None, None))
row("reduced and spread", lambda p, x, y: x * p.sh.reshard(y, p.P(reduced={"X"})), X, R)
row("reduced and replicated", lambda p, x, y: y + p.sh.reshard(x, p.P(reduced={"X"})), R, R)
row("reduced and a number", lambda p, x: p.sh.reshard(x, p.P(reduced={"X"})) + 1, R)

# cotangents of what was summed are still to be summed, and the other way
for name, function in {
        "mul": lambda p, a: (a * 2).sum(), "square": lambda p, a: (a * a + a).sum(),
        "sin": lambda p, a: p.np.sin(a).sum(),
        "transpose": lambda p, a: a.T.sum(0).sum(), "cast": lambda p, a: a.astype("bfloat16").sum().astype("float32"),
        "broadcast": lambda p, a: p.np.broadcast_to(a, (3, *a.shape)).sum(),
        "reshape": lambda p, a: p.lax.reshape(a, (1, *a.shape)).sum(),
        "reshard": lambda p, a: p.sh.reshard(a, p.P("X")).sum(),
        "concatenate": lambda p, a: p.np.concatenate([a, a]).sum(),
        "dot": lambda p, a: (p.sh.reshard(p.np.ones((4, 8)), p.P("X")) @ a).sum()}.items():
    row(f"grad of reduced {name}", lambda p, x, function=function: p.jax.grad(lambda a: function(p, a))(
        p.sh.reshard(x, p.P(reduced={"X"}))), R)
row("grad of unreduced", lambda p, x: p.jax.grad(
    lambda a: p.sh.reshard((a + a).T, p.P()).sum())(p.sh.reshard(x, p.P(unreduced={"X"}))), R)
row("unreduced times reduced", lambda p, x: p.sh.reshard(x, p.P(unreduced={"X"})) * p.sh.reshard(
    x, p.P(reduced={"X"})), R)
row("unreduced plus replicated", lambda p, x: p.sh.reshard(x, p.P(unreduced={"X"})) + x, R)
row("unreduced pad", lambda p, x: p.np.pad(p.sh.reshard(x, p.P(unreduced={"X"})), 1), R)
row("unreduced select", lambda p, x: p.np.where(True, *[p.sh.reshard(x, p.P(unreduced={"X"}))] * 2), R)
