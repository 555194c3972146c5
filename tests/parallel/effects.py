"""Python functions that devices call: how often, and with what."""

from __future__ import annotations

PRINTS = [
    f"import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
    f"    jax.block_until_ready({call})\n    jax.effects_barrier()\nsorted(out.getvalue().splitlines())"
    for call in (
        "shard(lambda x: (jax.debug.print('{}', lax.axis_index('i')), x)[1], P('i'), P('i'))(x8)",
        "shard(lambda x: (jax.debug.print('{}', x), x)[1], P('i'), P('i'))(i16)",
        "shard(lambda x: (jax.debug.print('a'), x)[1], P('i'), P('i'))(i16)",
        "shard(lambda x: (jax.debug.print('{}', x), x)[1], P(), P())(i8)",
        "shard(lambda x: (jax.debug.print('{}', lax.psum(x, 'i')), x)[1], P('i'), P('i'))(i8)",
        "shard(lambda x: (jax.debug.print('{}', x), x)[1], P('a'), P('a'), m42)(i8)",
        "shard(lambda x: (jax.debug.print('{}', x, ordered=True), x)[1], P('i'), P('i'))(i8)",
        "shard(lambda x: lax.cond(x[0] < 3, lambda x: (jax.debug.print('{}', x), x)[1], "
        "lambda x: x, x), P('i'), P('i'))(i8)",
        "shard(lambda x: lax.fori_loop(0, 2, lambda k, x: (jax.debug.print('{} {}', k, x), x)[1],"
        " x), P('i'), P('i'))(i8)",
        "shard(lambda x: (jax.debug.print('{x} {y}', x=x, y=x.sum()), x)[1], P('i'), P('i'))(i16)",
        "jax.pmap(lambda x: (jax.debug.print('{}', x), x)[1])(i16.reshape(8, 2))",
        "jax.pmap(lambda x: (jax.debug.print('{}', lax.psum(x, 'p')), x)[1], 'p')(i8)",
        "jax.pmap(lambda x: (jax.debug.print('a'), x)[1])(i16.reshape(8, 2))",
        "jax.pmap(lambda x: (jax.debug.print('{}', jnp.arange(2)), x)[1])(i16.reshape(8, 2))",
        "jax.pmap(lambda x: lax.cond(x < 3, lambda x: (jax.debug.print('{}', x), x)[1], "
        "lambda x: x, x))(i8)",
        "jax.vmap(shard(lambda x: (jax.debug.print('{}', x), x)[1], P('i'), P('i')))(i64[:2])",
        "jax.jit(lambda x: (jax.debug.print('{}', x), x)[1])(jax.device_put(i8, S8))",
    )
]

CALLBACKS = [
    f"seen = []\ndef note(x):\n    seen.append(np.array(x).tolist())\n    return np.asarray(x) * 2\n"
    f"out = jax.block_until_ready({call})\njax.effects_barrier()\n(out, sorted(map(str, seen)))"
    for call in (
        "shard(lambda x: (jax.debug.callback(note, x), x)[1], P('i'), P('i'))(i16)",
        "shard(lambda x: (jax.debug.callback(note, lax.axis_index('i')), x)[1], P('i'), P('i'))(i16)",
        "shard(lambda x: jax.pure_callback(note, x, x), P('i'), P('i'))(x16)",
        "shard(lambda x: jax.pure_callback(note, x, x), P(), P(), check_vma=False)(x8)",
        "shard(lambda x: jax.pure_callback(note, jax.ShapeDtypeStruct(x.shape, x.dtype), x), P('i'), P('i'), "
        "check_vma=False)(x16)",
        "shard(lambda x: jax.pure_callback(note, x, x, vmap_method='sequential'), P('i'), P('i'))(x16)",
        "shard(lambda x: jax.pure_callback(note, x, x, vmap_method='expand_dims'), P('i'), P('i'))(x16)",
        "shard(lambda x: jax.experimental.io_callback(note, x, x), P('i'), P('i'), check_vma=False)(x16)",
        "shard(lambda x: jax.experimental.io_callback(note, x, x, ordered=True), P('i'), P('i'), "
        "check_vma=False)(x16)",
        "shard(lambda x: lax.cond(x[0] < 3, lambda x: jax.experimental.io_callback(note, x, x), lambda x: x, x), "
        "P('i'), P('i'), check_vma=False)(i8)",
        "shard(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: jax.experimental.io_callback(note, c, c) // 2 + "
        "1, x), P('i'), P('i'), check_vma=False)(i8)",
        "shard(lambda x: lax.psum(jax.pure_callback(note, x, x), 'i'), P('i'), P(), check_vma=False)(x16)",
        "jax.pmap(lambda x: jax.pure_callback(note, x, x))(x64)",
        "jax.pmap(lambda x: (jax.debug.callback(note, x), x)[1])(x64)",
        "jax.pmap(lambda x: jax.experimental.io_callback(note, x, x))(x64)",
        "jax.pmap(lambda x: jax.experimental.io_callback(note, x, x, ordered=True))(x64)",
        "jax.pmap(lambda x, y: x + jax.pure_callback(note, y, y), in_axes=(0, None))(x64, x8)",
        "np.asarray(jax.jit(lambda x: jax.pure_callback(note, x, x))(jax.device_put(x64, S8)))",
        "jax.pmap(jax.vmap(lambda x: jax.pure_callback(note, x, x, vmap_method='sequential')))(x64[:, :2])",
        "shard(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (jax.debug.callback(note, c), c + 1)[1], x), "
        "P('i'), P('i'))(i8)",
    )
]

ROWS = {"prints": PRINTS, "callbacks": [f"import jax.experimental\n{row}" for row in CALLBACKS]}
