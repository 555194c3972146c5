"""Programs on eight devices, on the host's processors as devices and on a plugin's: run by `test_many_devices.py`.

Prints, as JSON, for each program what differs between the two: values, dtypes, shapes, shardings, committedness.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable

import numpy as np

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.sharding import AxisType, Mesh, NamedSharding
from styrax.sharding import PartitionSpec as P

PROGRAMS: dict[str, Callable[[Mesh], object]] = {}
rng = np.random.default_rng(0)
A = rng.normal(size=(8, 16)).astype(np.float32)
B = rng.normal(size=(16, 8)).astype(np.float32)


def program(run):
    PROGRAMS[run.__name__] = run
    return run


def put(x, mesh, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


@program
def placing(mesh):
    x = put(A, mesh, "x", "y")
    shards = [(s.index, s.replica_id, np.asarray(s.data)) for s in x.addressable_shards]
    return x, put(x, mesh, None, ("y", "x")), put(x, mesh), put(A, mesh, "y"), put(3.5, mesh), shards, put(
        np.zeros((0, 4), np.float32), mesh, None, "x"), put(True, mesh)


@program
def dtypes(mesh):
    out = []
    for dtype in ("bool", "int8", "uint32", "int32", "float16", "bfloat16", "complex64"):
        x = put((A * 4).astype(dtype), mesh, "x", "y")
        out += [x, x[1:3], jnp.where(x == x, x, x), jax.jit(lambda x: x.sum(axis=0))(x)]
    return out


@program
def eager(mesh):
    x = put(A, mesh, "x", "y")
    return (x + 1, jnp.sin(x) * x, x @ B, x.T, x[3], x[:, 2:9], x.at[2].set(0), jnp.concatenate([x, x]),
            x.reshape(4, 32), x.mean(axis=1), jnp.argsort(x), x > 0, list(x)[2], jnp.zeros_like(x),
            float(x.sum()) > 0, -x, abs(x))


@program
def arrays_made_of_parts(mesh):
    s = NamedSharding(mesh, P("y", "x"))
    made = jax.make_array_from_callback(A.shape, s, lambda index: A[index])
    again = jax.make_array_from_single_device_arrays(A.shape, s, [sh.data for sh in made.addressable_shards])
    return made, again, made + again


@program
def one_device(mesh):
    x = put(A, mesh, "x")
    first, last = mesh.devices.flat[0], mesh.devices.flat[-1]
    return (jax.device_put(x, last) * 2, put(jax.device_put(A, first), mesh, "x", "y"),
            put(jax.device_put(A, last), mesh))


@program
def other_meshes(mesh):
    devices = mesh.devices.flatten()
    half = Mesh(devices[:4], ("a",))
    turned = Mesh(devices[::-1].reshape(2, 4), ("p", "q"))
    x = put(A, half, "a")
    y = put(A, turned, "q", "p")
    return jax.jit(lambda x: x @ B)(x), jnp.cos(y), put(y, half, None, "a"), put(x, turned, "p")


@program
def results_follow(mesh):
    x, y = put(A, mesh, "x", "y"), put(B, mesh, "y")
    f = jax.jit(lambda x, y: (x @ y, x.sum(), jnp.sin(x), y.T, x[None], jnp.max(x, axis=1)))
    return f(x, y), f(A, y), f(x, B)


@program
def told(mesh):
    s = lambda *spec: NamedSharding(mesh, P(*spec))
    f = jax.jit(lambda x, y: {"a": x @ y, "b": x * 2}, in_shardings=(s("x"), s(None, "y")),
                out_shardings={"a": s("x", "y"), "b": None})
    g = jax.jit(lambda: jnp.arange(16.0), out_shardings=s("x"))
    return f(A, B), f(put(A, mesh, "x"), B), g()


@program
def constrained(mesh):
    def f(x):
        y = lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("y", None)))
        return y.sum(axis=0), lax.with_sharding_constraint(y * 2, NamedSharding(mesh, P(None, "x")))

    return jax.jit(f)(A), jax.jit(f)(put(A, mesh, "x", "y")), lax.with_sharding_constraint(
        A, NamedSharding(mesh, P("x")))


@program
def training(mesh):
    params = {"w": put(B, mesh, None, "y"), "b": put(np.zeros(8, np.float32), mesh)}
    x, y = put(A, mesh, "x"), put(np.eye(8, dtype=np.float32), mesh, "x")

    def loss(p, x, y):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(jnp.tanh(x @ p["w"]) + p["b"]) * y, axis=-1))

    @jax.jit
    def step(p, x, y):
        value, slopes = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, slopes), value

    for _ in range(3):
        params, value = step(params, x, y)
    return params, value


@program
def control_flow(mesh):
    x = put(A, mesh, "x", "y")

    @jax.jit
    def f(x):
        carry, ys = lax.scan(lambda c, r: (jnp.tanh(c + r), c.sum()), x[0], x)
        w = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5 + x), (0, x))
        c = lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)
        return carry, ys, w, c, lax.fori_loop(0, 3, lambda i, y: y @ y.T @ y * 0.01, x), lax.map(jnp.sum, x)

    return f(x)


@program
def operations(mesh):
    x = put(A, mesh, "x", "y")
    square = put(B.T @ B + 8 * np.eye(8, dtype=np.float32), mesh, "x")

    @jax.jit
    def f(x):
        return (jnp.cumsum(x, axis=0), jnp.sort(x, axis=1), x[jnp.array([5, 1, 1])], x.at[jnp.array([1, 6])].add(1.0),
                lax.top_k(x, 3)[0], jnp.fft.rfft(x).real, lax.dynamic_slice(x, (2, 3), (4, 5)), jnp.argmax(x, axis=0),
                jnp.pad(x, 1), jnp.roll(x, 3, axis=0), lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
                jnp.linalg.norm(x), jnp.einsum("ij,kj->ik", x, x), lax.rev(x, (0,)), jnp.repeat(x, 2, axis=0))

    return f(x), jax.jit(jnp.linalg.cholesky)(square), jax.jit(jnp.linalg.solve)(square, put(A, mesh, "x"))


@program
def random_numbers(mesh):
    key = jax.random.key(0)
    f = jax.jit(lambda k: jax.random.normal(k, (8, 16)), out_shardings=NamedSharding(mesh, P("x", "y")))
    keys = put(jax.random.split(key, 8), mesh, "x")
    return f(key), jax.random.key_data(keys), jax.vmap(lambda k: jax.random.uniform(k, (3,)))(keys), jax.random.bits(
        keys[3]), f(put(key, mesh))


@program
def donated(mesh):
    f = jax.jit(lambda x, y: (x + y, y * 2), donate_argnums=0)
    x, y = put(A, mesh, "x"), put(A, mesh, "x")
    seen = np.asarray(x).copy()
    return f(x, y), x.is_deleted(), seen


@program
def empty(mesh):
    x = put(np.zeros((0, 8), np.float32), mesh, None, "x")
    return jax.jit(lambda x: (x + 1, x.sum(axis=0), x @ B.T))(x), x.sum(), jax.jit(lambda x: ())(x)


def mapped(mesh, f, *args, ins, outs, check=True):
    g = jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=check)
    return g(*args), jax.jit(g)(*args), jax.jit(g)(*(put(x, mesh, *s) for x, s in zip(
        args, ins if isinstance(ins, tuple) and not isinstance(ins, P) else [ins] * len(args), strict=True)))


@program
def sums_of_shards(mesh):
    return (mapped(mesh, lambda v: lax.psum(v, "x"), A, ins=P("x", "y"), outs=P(None, "y")),
            mapped(mesh, lambda v: (lax.pmean(v, ("x", "y")), lax.pmax(v, "y"), lax.pmin(v, "x")), A, ins=P("x", "y"),
                   outs=(P(), P("x"), P(None, "y"))),
            mapped(mesh, lambda v: lax.psum(1, "x") * v, A, ins=P("x"), outs=P("x")))


@program
def exchanges_of_shards(mesh):
    turn = [(i, (i + 1) % 4) for i in range(4)]
    return (mapped(mesh, lambda v: lax.ppermute(v, "x", turn), A, ins=P("x", "y"), outs=P("x", "y")),
            mapped(mesh, lambda v: lax.all_gather(v, "y", axis=1, tiled=True), A, ins=P("x", "y"), outs=P("x"),
                   check=False),
            mapped(mesh, lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True), A, ins=P("x"), outs=P(None, "x")),
            mapped(mesh, lambda v: lax.psum_scatter(v, "x", scatter_dimension=1, tiled=True), A, ins=P("x"),
                   outs=P(None, "x")),
            mapped(mesh, lambda v: v + lax.axis_index("x") * 2 + lax.axis_index("y"), A, ins=P("x", "y"),
                   outs=P("x", "y")))


@program
def derivatives_of_shards(mesh):
    f = jax.shard_map(lambda v, w: lax.psum(jnp.sum(jnp.sin(v @ w)), ("x",)), mesh=mesh, in_specs=(P("x"), P()),
                      out_specs=P())
    slopes = jax.grad(f, argnums=(0, 1))
    return slopes(A, B), jax.jit(slopes)(put(A, mesh, "x"), put(B, mesh)), jax.jit(jax.vmap(f, in_axes=(0, None)))(
        np.stack([A, A + 1]), B)


@program
def loops_in_shards(mesh):
    def ring(v, w):
        def turn(carry, _):
            part, total = carry
            return (lax.ppermute(part, "x", [(i, (i + 1) % 4) for i in range(4)]), total + v @ part.T), None

        return lax.scan(turn, (w, jnp.zeros((v.shape[0], w.shape[0]), v.dtype)), None, length=4)[0][1]

    return mapped(mesh, ring, A, A, ins=(P("x"), P("x")), outs=P("x"), check=False)


@program
def pmapped(mesh):
    devices = list(mesh.devices.flat)
    f = jax.pmap(lambda v, w: (lax.psum(v * w, "i"), v + lax.axis_index("i")), axis_name="i", in_axes=(0, None),
                 devices=devices)
    g = jax.pmap(lambda v: v * 2, devices=devices, out_axes=None)
    out = f(A, 2.0)
    h = jax.pmap(lambda t: {"a": t["a"].sum()}, devices=devices)
    return out, f(out[1], 3.0), g(np.ones((8, 3), np.float32)), h({"a": A})


@program
def explicit(mesh):
    grid = Mesh(mesh.devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x, y = put(A, grid, "x", "y"), put(B, grid, "y", None)

    @jax.jit
    def f(x, y):
        z = jnp.einsum("ij,jk->ik", x, y, out_sharding=P("x", None))
        return z, jnp.sin(x), jax.reshard(z, P(None, "y"))

    with jax.set_mesh(grid):
        return f(x, y), x * 2, jax.reshard(x, P("y", None)), x.sum(axis=0), jax.grad(lambda x: jnp.sum(x * x))(x)


@program
def callbacks(mesh):
    x = put(A, mesh, "x", "y")
    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda v: seen.append(np.asarray(v).copy()), x)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    out = f(x)
    jax.block_until_ready(out)
    jax.effects_barrier()
    return out, len(seen), seen[0].shape


@program
def callbacks_in_shards(mesh):
    def f(v):
        jax.debug.callback(lambda v: seen.append(np.asarray(v).copy()), v)
        return jax.pure_callback(lambda v: np.asarray(v) + v.shape[0], jax.ShapeDtypeStruct(v.shape, v.dtype), v)

    seen = []
    out = jax.block_until_ready(mapped(mesh, f, A, ins=P("x", "y"), outs=P("x", "y")))
    jax.effects_barrier()
    return out, len(seen), sum(v.sum() for v in seen)


@program
def mesh_in_force(mesh):
    f = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, P("x")))
    g = jax.jit(lambda x: x + 1)
    before = g(A)
    with jax.set_mesh(mesh):
        out = f(A), g(A), jax.jit(lambda: jnp.ones((8, 4)))(), jax.shard_map(
            lambda v: v * 2, in_specs=P("y"), out_specs=P("y"))(A), jax.device_put(A, P("y"))
    return out, before + 1, g(A)


@program
def references(mesh):
    x = put(A, mesh, "x")

    @jax.jit
    def f(x):
        ref = jax.new_ref(x)
        ref[2:4] = ref[0:2] * 2
        ref[...] += 1
        return ref[...]

    return put(f(x), mesh, "x")


@program
def wrapped(mesh):
    x = put(A, mesh, "x", "y")

    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * 2,))
    h = jax.checkpoint(lambda x: jnp.tanh(f(x) @ B))
    return (jax.jit(jax.grad(lambda x: h(x).sum()))(x), jax.jvp(jax.jit(jnp.cos), (x,), (x,)), jax.vmap(h)(x[None]),
            jax.jacfwd(lambda x: (x[:2, :2] ** 2).sum(0))(x).sum(), jax.linearize(jnp.sin, x)[1](x))


@program
def constants(mesh):
    big = np.ones((8, 2048), np.float32)
    x = put(A, mesh, "x")
    there = put(A, mesh, "y")
    return jax.jit(lambda x: (x @ jnp.ones((16, 3)), big.sum() + x))(x), jax.jit(lambda x: x + there)(x)


@program
def large_constants(mesh):
    big = np.cos(np.arange(8 * 512, dtype=np.float32)).reshape(8, 512)
    x = put(big + 1, mesh, "x", "y")
    return (jax.jit(lambda x: x * big)(x), jax.jit(lambda x: x[:, :8] @ big + jnp.sin(big))(x),
            jax.jit(lambda x: (x.T @ big)[:4])(x), jax.jit(jax.grad(lambda x: jnp.sum(x * x * big[::-1])))(x))


@program
def ahead_of_time(mesh):
    x = put(A, mesh, "x", "y")
    f = jax.jit(lambda x: (x * 2, x.sum(axis=0)), out_shardings=(None, NamedSharding(mesh, P("y"))))
    compiled = f.lower(x).compile()
    again = f.lower(jax.ShapeDtypeStruct(A.shape, A.dtype, sharding=x.sharding)).compile()
    return compiled(x), again(x)


@program
def refusals(mesh):
    x = put(A, mesh, "x")
    half = Mesh(mesh.devices.flatten()[:4], ("a",))
    one = jax.device_put(A, mesh.devices.flat[1])
    found = []
    for run in (lambda: x + put(A, half, "a"), lambda: jax.jit(jnp.add)(x, one), lambda: put(A[:7], mesh, "x"),
                lambda: jax.jit(lambda x: x, in_shardings=NamedSharding(mesh, P("y")))(x),
                lambda: jax.jit(lambda v: lax.with_sharding_constraint(v, NamedSharding(half, P("a"))))(x),
                lambda: x.unsafe_buffer_pointer(), lambda: x.__dlpack__()):
        try:
            run()
            found.append("nothing")
        except Exception as error:
            found.append(type(error).__name__)
    return found


def told_of(value):
    """What a result tells besides its elements."""
    if not isinstance(value, jax.Array):
        return type(value).__name__
    sharding = value.sharding
    where = (str(sharding.spec), list(sharding.mesh.shape.items())) if isinstance(sharding, NamedSharding) else "single"
    return (str(value.dtype), value.shape, value.weak_type, value.committed, where,
            sorted(d.id for d in value.devices()))


def difference(ours, theirs):
    a, b = jax.tree.flatten(ours), jax.tree.flatten(theirs)
    if a[1] != b[1]:
        return f"{a[1]} and {b[1]}"
    for i, (x, y) in enumerate(zip(a[0], b[0], strict=True)):
        if told_of(x) != told_of(y):
            return f"result {i}: {told_of(x)} on the CPU and {told_of(y)} on the plugin"
        if isinstance(x, (str, slice)):
            if x != y:
                return f"result {i}: {x} on the CPU and {y} on the plugin"
            continue
        p, q = (np.asarray(v) for v in (x, y))
        tolerance = 2e-2 if p.dtype.name in ("float16", "bfloat16") else 2e-5
        wide = p.dtype.name in ("float16", "bfloat16")
        try:
            np.testing.assert_allclose(q.astype(np.float32) if wide else q, p.astype(np.float32) if wide else p,
                                       rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            return f"result {i}: {error}"
    return ""


def main(names):
    found = {}
    for name in names or PROGRAMS:
        outs = []
        try:
            for platform in ("cpu", "xla_cpu"):
                devices = jax.devices(platform)
                outs.append(PROGRAMS[name](Mesh(np.array(devices).reshape(4, 2), ("x", "y"))))
            found[name] = difference(*outs)
        except Exception:
            found[name] = f"on {platform}: {traceback.format_exc()}"
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
