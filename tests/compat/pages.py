"""Cells as pages of JAX's documentation show them, over eight devices: prints what each shows, one JSON list a cell.

`python -m tests.compat.pages` runs them under JAX, `python -m styrax -m tests.compat.pages` under the drop-in. A cell
shows the text of its last expression, or the class and the message of its error, and its warnings.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import warnings

SETUP = """
from functools import partial
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

x, kept = jnp.arange(3.0), []
mesh = jax.make_mesh((4, 2), ('i', 'j'), axis_types=(AxisType.Auto,) * 2)

def sm(f, in_specs, out_specs, *args):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)(*args)

def leak(x):
    kept.append(x + 1)
    return x

def with_f(fun):
    def f(x):
        return fun(x)
    return f

explicit = jax.make_mesh((2, 4), ('X', 'Y'), axis_types=(AxisType.Explicit,) * 2)

def spread(fun, *specs):
    with jax.set_mesh(explicit):
        return fun(*(jax.device_put(jnp.ones((8, 8)), NamedSharding(explicit, P(*s))) for s in specs))
"""

CELLS = {
    "errors": [
        "jax.jit(leak)(x)\nkept[-1] + 1",
        "jax.jit(leak)(x)\njnp.sin(kept[-1])",
        "jax.vmap(leak)(x)\nkept[-1] + 1",
        "jax.jit(lambda x, axis: x.min(axis))(x, 0)",
        "jax.jit(jnp.sum)(x, axis=0)",
        "jax.jit(lambda x: x.item())(1.0)",
        "jax.jit(lambda x: x.tolist())(x)",
        "jax.jit(lambda x: x.devices())(x)",
        "jax.jit(lambda x: x.reshape(jnp.array(x.shape).prod()))(jnp.ones((2, 3)))",
        "jax.jit(lambda n: jnp.zeros([n, 2]))(3)",
        "lax.fori_loop(0, 3, lambda i, c: c + [1, 2, 3][i], 0)",
        "jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c if c > 2 else c, 0))(3)",
        "lax.fori_loop(0, 3, lambda i, c: 'a', 0)",
        "jax.make_jaxpr(lambda x: jnp.arange(x))(1)",
        "jax.make_jaxpr(lambda x: 'a')(1)",
        "jax.eval_shape(lambda x: [0][x], 1)",
        "jax.linearize(jnp.sin, 1.0)[1](2)",
        "jax.vjp(lambda x: (x, {'a': x}), 1.0)[1]((1.0,))",
        "jnp.array(3) ** -1",
        "jnp.arange(5).at[0] = 1",
        "jnp.arange(5).at[0].nothing",
        "jax.jit(jax.custom_jvp(with_f(lambda x: x if x > 0 else -x)))(1.0)",
    ],
    "custom rules": [
        "f = jax.custom_vjp(lambda a, b: a * b)\n"
        "f.defvjp(lambda a, b: (kept.append((a, b)) or a.value * b.value, ()), lambda r, g: (g, g), "
        "symbolic_zeros=True)\n"
        "jax.grad(f, 1)(2.0, 3.0), kept.pop()",
        "jnp.vectorize(leak, signature='(n)->(n)').__qualname__",
    ],
    "primitives": [
        "from jax.extend.core import Primitive\nfrom jax.interpreters import batching\np = Primitive('p')\n"
        "p.def_impl(lambda *xs: [getattr(x, 'dtype', type(x)) for x in xs])\n"
        "p.bind(1., 2, 1j, True, np.ones(2), np.arange(3), jnp.ones(2, 'bfloat16'), np.float64(3), np.int8(1))",
        "from jax.extend.core import Primitive\nfrom jax.interpreters import mlir\n"
        "from jax._src.lib.mlir.dialects import hlo\nr = Primitive('r')\n"
        "r.def_abstract_eval(lambda x, y: jax.core.ShapedArray(x.shape, x.dtype))\n"
        "mlir.register_lowering(r, lambda ctx, x, y: [hlo.AddOp(hlo.MulOp(x, y), x).result], platform='cpu')\n"
        "(jax.jit(r.bind)(2.0, 3.0), jax.jit(r.bind).lower(2.0, 3.0).as_text())",
        "q = Primitive('q')\nq.def_impl(lambda x, y: np.add(np.multiply(x, y), x))\n"
        "batching.primitive_batchers[q] = lambda xs, dims: (q.bind(*xs), dims[0])\n"
        "jax.vmap(lambda x: q.bind(x, x))(np.array([2., 3.])), q.bind(2., 3)",
    ],
    "checkify": [
        "from jax.experimental import checkify\n"
        "error, out = checkify.checkify(lambda x: x + 1 if x > 0 else x)(jnp.float32(1))\nerror.get(), out",
        "checkify.checkify(lambda x: (checkify.check(x.sum() > 3, 'sum of {}', x), str(x))[1] and x)(x)[0].get()",
        "jax.jit(checkify.checkify(lambda x: x + 1 if x > 0 else x))(1.0)",
        "checkify.checkify(lambda x: checkify.check(x, 'no condition'))(1)",
        "error = checkify.checkify(lambda x: checkify.check(x < 0, 'got {}', x))(jnp.float32(1))[0]\nerror.get()",
        "checkify.checkify(checkify.check_error)(error)[0].get()",
        "checkify.check_error(error)",
        "jax.jit(lambda: checkify.check_error(error))()",
    ],
    "foreign functions": [
        "call = jax.ffi.ffi_call('f', jax.ShapeDtypeStruct((3, 4), 'float32'), vmap_method='broadcast_all')\n"
        "jax.make_jaxpr(call)(jnp.ones((3, 4)))",
        "jax.make_jaxpr(jax.vmap(call))(jnp.ones((2, 3, 4)))",
        "call = jax.ffi.ffi_call('f', jax.ShapeDtypeStruct((3, 4), 'float32'), vmap_method='sequential', "
        "input_layouts=[(0, 1)], output_layouts=(1, 0))\njax.make_jaxpr(call)(jnp.ones((3, 4)))",
    ],
    "dtypes": [
        "jnp.asarray(1, 'float64')", "jnp.array(1, 'int64')", "jnp.float64(2)", "jnp.uint64(2)",
        "jnp.linalg.norm([1.0])", "jnp.linalg.solve(jnp.eye(2), [1.0])", "jnp.linalg.matrix_power([1.0], 2)",
    ],
    "shard_map": [
        "sm(lambda x: x, P('i'), P('i'), jnp.arange(6))",
        "sm(lambda x: x, P(('i', 'j')), P('i'), jnp.arange(6))",
        "sm(lambda d, *r: d['a'], (P(), P('i')), P('i'), {'a': 1}, jnp.arange(6))",
        "sm(lambda d: d['a'], ({'a': P('j')},), P('i'), {'a': jnp.ones(3)})",
        "sm(lambda d: d['a'], ({'a': P('j', None)},), P('i'), {'a': jnp.ones(4)})",
        "sm(lambda x: x, P('i'), P('i'), 1.0)",
        "sm(lambda x: x, P('i', 'j'), P('i'), jnp.ones((8, 8)))",
        "sm(lambda x: x[None], P('i'), P(None, 'j'), jnp.arange(8))",
        "sm(lambda x: x, P('i'), P(), jnp.arange(8))",
        "sm(lambda x: x.sum(), P('i'), P('i'), jnp.arange(8))",
        "sm(lambda x: (x, {'a': x}), P('i'), (P('i'), {'a': P('i', 'j')}), jnp.arange(8))",
        "sm(lambda x: (x, {'a': x}), P('i'), (P('i'), P('i', 'j')), jnp.arange(8))",
    ],
    "former names": [
        "from jax.experimental.shard_map import shard_map\n"
        "shard_map(lambda x: x * 2, mesh, in_specs=P('i'), out_specs=P('i'), check_rep=False)(jnp.arange(8))",
        "shard_map(lambda x: x, mesh, P('i'), P())(jnp.arange(8))",
        "with mesh:\n    y = jax.jit(lambda x: lax.with_sharding_constraint(x, P('i')))(jnp.arange(8))\ny.sharding",
        "from jax._src.mesh import thread_resources\nthread_resources.env.physical_mesh, thread_resources.env",
        "with mesh: kept.append((thread_resources.env.physical_mesh, repr(thread_resources.env)))\nkept.pop()",
        "with jax.set_mesh(mesh): kept.append(thread_resources.env.physical_mesh)\nkept.pop()",
    ],
    "explicit sharding": [
        "spread(lambda a, b: a + b, 'X', 'Y')",
        "spread(lambda a, b: a.T @ b, 'X', 'Y')",
        "spread(lambda a, b: a.T @ b, 'X', 'X')",
        "spread(lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((0,), (0,)))), 'X', 'Y')",
        "spread(lambda a: lax.slice(a, (0, 0), (1, 8)), 'X')",
        "spread(lambda a: lax.pad(a, 0., [(1, 0, 0), (0, 0, 0)]), 'X')",
        "spread(lambda a: lax.reduce_window(a, 0., lax.add, (2, 2), (1, 1), 'VALID'), 'X')",
        "spread(lambda a, b: jnp.concatenate([a, b]), 'X', 'Y')",
        "spread(lambda a, b: lax.select_n(a > 0, a, b), 'X', 'Y')",
        "spread(lambda a, b: lax.select_n(b > 0, a, a), 'X', 'Y')",
        "spread(lambda a: jnp.einsum('ij,kj->ik', a, a), 'X')",
        "spread(lambda a: a.reshape(16, 4), 'X')",
        "spread(lambda a: a[jnp.array([0, 1])], 'X')",
        "spread(lambda a: a.at[jnp.array([0, 1])].set(1.), 'X')",
        "spread(lambda a: lax.cumsum(a), 'X')",
        "spread(lambda a: lax.top_k(a.T, 2), 'X')",
        "spread(lambda a: lax.dynamic_update_slice(a, jnp.ones((1, 8)), (0, 0)), 'X')",
        "spread(lambda a: a[None] * a[:, None], ('X', 'Y'))",
    ],
}


def shown(code: str, names: dict[str, object], name: str) -> list[str]:
    """What a cell shows, in lines."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(code)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), names)
            text = repr(eval(compile(ast.Expression(last.value), name, "eval"), names)) if last else ""
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    text = re.sub(r"0x[0-9a-f]+", "0x", text.replace("styrax.", "jax."))
    return [*text.split("\n"), *(f"{w.category.__name__}: {w.message}" for w in caught)]


def main() -> None:
    names: dict[str, object] = {"__name__": "cells"}
    exec(SETUP, names)
    for page, cells in CELLS.items():
        for i, cell in enumerate(cells):
            print(json.dumps([page, cell, shown(cell, names, f"<{page} {i}>")]))


if __name__ == "__main__":
    main()
