"""What the text of programs may call. A repro prints the functions of these that it needs; run under Styrax, the
imports of this module say `styrax`, so it imports nothing else of JAX."""

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import jax.experimental
import jax.extend.random
import jax.numpy as jnp
import jax.ref
import numpy as np
from jax import lax


def dtype(name):
    """A dtype by its name; the wider run of a program has another such function."""
    return jnp.dtype(name)


def inexact(x):
    return jnp.issubdtype(jnp.result_type(x), jnp.inexact)


def flat(tree):
    """Results of any structure as a tuple of arrays, without those that hold nothing (float0)."""
    return tuple(x for x in jax.tree.leaves(tree) if x.dtype != jax.dtypes.float0)


def ramp(x):
    """Weights from 0.5 to 1.5, of the type of x: no two the same."""
    size = int(np.prod(jnp.shape(x)))
    weights = np.linspace(0.5, 1.5, size).reshape(jnp.shape(x))
    return lax.convert_element_type(weights, jnp.result_type(x))


def scalar(outs):
    """A real number of all inexact results."""
    total = jnp.zeros((), jnp.float32)
    for x in outs:
        if inexact(x):
            total = total + jnp.sum(jnp.real(x * ramp(x))).astype(dtype("float32"))
    return total


def tangent(x):
    return ramp(x) if inexact(x) else np.zeros(jnp.shape(x), jax.dtypes.float0)


def tangents(xs):
    return tuple(tangent(x) for x in xs)


def gradient(f, argnums):
    return lambda *xs: flat(jax.grad(lambda *ys: scalar(f(*ys)), argnums)(*xs))


def value_and_gradient(f, argnums):
    return lambda *xs: flat(jax.value_and_grad(lambda *ys: scalar(f(*ys)), argnums)(*xs))


def pushed(f):
    return lambda *xs: flat(jax.jvp(f, xs, tangents(xs)))


def pulled(f):
    def both(*xs):
        outs, pull = jax.vjp(f, *xs)
        return flat((outs, pull(tangents(outs))))

    return both


def linearized(f):
    def both(*xs):
        outs, push = jax.linearize(f, *xs)
        return flat((outs, push(*tangents(xs))))

    return both


def jacobian(f, argnums, mode):
    return lambda *xs: flat(mode(lambda *ys: tuple(x for x in f(*ys) if inexact(x)), argnums)(*xs))


def hessian(f, argnums):
    return lambda *xs: flat(jax.hessian(lambda *ys: scalar(f(*ys)), argnums)(*xs))


def doubled(x):
    return x + x if x.dtype != jax.dtypes.float0 else x


def own_jvp(f):
    """f with a rule of its own, which doubles tangents."""
    g = jax.custom_jvp(f)

    @g.defjvp
    def rule(primals, tangents):
        outs, moved = jax.jvp(f, primals, tangents)
        return outs, tuple(map(doubled, moved))

    return g


def own_vjp(f):
    """f with a rule of its own, which doubles cotangents."""
    g = jax.custom_vjp(f)

    def back(xs, cotangents):
        return tuple(map(doubled, jax.vjp(f, *xs)[1](cotangents)))

    g.defvjp(lambda *xs: (f(*xs), xs), back)
    return g


def count(x, least=0):
    """An integer from `least` to 3 that depends on data."""
    return least + (jnp.sum(jnp.where(jnp.isfinite(x), x > 0, False)).astype("int32") + 1) % (4 - least)


def truth(x):
    return count(x) > 1


def index(x):
    """An integer from -1 to 2 that depends on data."""
    return count(x) - 1


def loop(f, bound):
    """A while loop that ends after `bound` turns, a number or an array."""
    return lambda *xs: lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, *f(*c[1:])), (0, *xs))[1:]


def own_loop(f, at):
    """A while loop whose number of turns depends on an operand."""
    return lambda *xs: loop(f, count(xs[at]))(*xs)


def searched(f, at):
    """A while loop until a carried integer or truth value is large, and no more than five turns."""
    return lambda *xs: lax.while_loop(
        lambda c: (c[0] < 5) & (jnp.sum(c[1:][at].astype("int32")) < 3), lambda c: (c[0] + 1, *f(*c[1:])), (0, *xs)
    )[1:]


def counted(f, lower, upper, **options):
    return lambda *xs: lax.fori_loop(lower, upper, lambda i, c: f(i, *c), xs, **options)


def scanned(f, carries, **options):
    """A scan; the first operands and results are carried."""

    def body(c, xs):
        outs = f(*c, *xs)
        return tuple(outs[:carries]), tuple(outs[carries:])

    return lambda *xs: flat(lax.scan(body, tuple(xs[:carries]), tuple(xs[carries:]), **options))


def mapped(f, **options):
    return lambda *xs: lax.map(lambda ys: f(*ys), xs, **options)


def branches(index, *functions):
    return lambda *xs: lax.switch(index, functions, *xs)


def either(truth, f, g):
    return lambda *xs: lax.cond(truth, f, g, *xs)


def own_branches(at, number, *functions):
    """A switch on an operand."""
    return lambda *xs: lax.switch(number(xs[at]), functions, *xs)


def own_either(at, f, g):
    """A cond on an operand."""
    return lambda *xs: lax.cond(truth(xs[at]), f, g, *xs)


def each(f, axis):
    """f of all that stand side by side along an axis."""
    return jax.vmap(f, axis, axis)


def running(f, at, **options):
    return lambda *xs: (lax.associative_scan(lambda a, b: f(a, b)[0], xs[at], **options),)


def recurrent(f, at, **options):
    """y[i] = x[i] * y[i - 1] + x[i] as an associative scan of pairs, of the product f."""

    def combine(p, q):
        return f(p[0], q[0])[0], p[1] * q[0] + q[1]

    return lambda *xs: lax.associative_scan(combine, (xs[at], xs[at]), **options)


def beside(f, at):
    """f and an operand untouched."""
    return lambda *xs: (f(*xs), xs[at])


def flattened(f):
    return lambda *xs: flat(f(*xs))


def donating(f, at):
    """A compiled f to which a copy of an operand is given away."""

    def given(*xs):
        return jax.jit(f, donate_argnums=at)(*xs[:at], jnp.copy(xs[at]), *xs[at + 1 :])

    return given


def fixed(transformation, f, **options):
    """A transformed f with an argument that is no array."""
    return lambda *xs: transformation(lambda how, *ys: f(*ys), **options)(("how", 3), *xs)


def named(transformation, f):
    """A transformed f with a named argument that is no array."""
    return lambda *xs: transformation(lambda *ys, how: f(*ys), static_argnames="how")(*xs, how=True)


def held(transformation, f):
    """A transformed f of one dictionary."""
    g = transformation(lambda tree: {"results": f(*tree["operands"]), "nothing": None})
    return lambda *xs: g({"operands": list(xs), "nothing": None})["results"]


def saved(name):
    """A policy of `checkpoint`."""
    policies = jax.checkpoint_policies
    return policies.save_only_these_names("kept") if name == "names" else getattr(policies, name)


def observed(x):
    """x, which the host looks at."""
    jax.debug.callback(lambda y: None, x)
    return x


def many(f, n=3):
    """What a function gives for several keys, made from data, one beside the other."""
    return lambda x: jax.vmap(f)(jax.random.split(key(x), n))


def chain(f, n=3):
    """What a function gives for several keys, each made from the one before."""

    def body(k, _):
        k, other = jax.random.split(k)
        return k, f(other)

    return lambda x: lax.scan(body, key(x), None, length=n)[1]


def definite(x):
    """A positive definite matrix (or several) from square ones."""
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + 3 * jnp.eye(x.shape[-1], dtype=x.dtype)


def shifted(x):
    """A well-conditioned matrix (or several) from square ones."""
    return jnp.tanh(x) + 4 * jnp.eye(x.shape[-1], dtype=x.dtype)


def absolute(tree):
    return jax.tree.map(jnp.abs, tree)


def key(x):
    """A key of random numbers from data."""
    return jax.random.key(count(x))


def updated(x, update, how):
    """What a reference holds, and what was read, after an update."""
    ref = jax.new_ref(x)
    read = ref[...]
    if how == "swap":
        read = jax.ref.swap(ref, ..., update)
    else:
        ref[...] = update
    return jax.ref.freeze(ref) if how == "freeze" else ref[...], read


def accumulated(x, update):
    ref = jax.new_ref(x)
    jax.ref.addupdate(ref, ..., update)
    return ref[...]


def solved(matrix, x):
    """A linear system by `custom_linear_solve`."""
    return lax.custom_linear_solve(
        lambda y: matrix @ y,
        x,
        lambda _, b: jnp.linalg.solve(matrix, b),
        transpose_solve=lambda _, b: jnp.linalg.solve(matrix.T, b),
    )


def linear(x):
    return jax.custom_derivatives.linear_call(lambda r, y: y * 3, lambda r, y: y * 3, (), x)


def own_batching(f):
    g = jax.custom_batching.custom_vmap(f)

    @g.def_vmap
    def rule(size, batched, *xs):
        outs = jax.vmap(f, [0 if b else None for b in batched])(*xs)
        return outs, tuple(True for _ in outs)

    return g


def constant(x):
    """A number or NumPy array in the text of a program."""
    return x


def finite(x):
    """x without what has several bit patterns."""
    return jnp.where(x == x, x, jnp.zeros_like(x))


def moderate(x):
    """x without what is huge."""
    return jnp.where(jnp.abs(x) >= 1e6, jnp.ones_like(x), x)


def natural(x):
    """Integers x, one where they are negative."""
    return jnp.where(x < 0, jnp.ones_like(x), x)


def mild(x):
    """x without what is huge or close to zero."""
    return jnp.where((jnp.abs(x) > 8) | (jnp.abs(x) < 0.5), jnp.ones_like(x), x)


def normal(x):
    """x without subnormal numbers."""
    if not inexact(x):
        return x
    return jnp.where(jnp.abs(x) < jnp.finfo(jnp.result_type(x)).smallest_normal, jnp.ones_like(x), x)


def mapped_along(x, name):
    """x, mapped along a named axis even if it was not."""
    return jnp.where(lax.axis_index(name) >= 0, x, x)


def unsigned(x):
    """Complex x without negative zeros, and without parts that vanish beside one."""
    return lax.complex(*(jnp.where(jnp.abs(part) < 1e-30, 0, part) for part in (lax.real(x), lax.imag(x))))


def off_circle(x):
    """Complex x away from the unit circle."""
    return jnp.where((jnp.abs(x) > 0.5) & (jnp.abs(x) < 2), 4 * x, x)


def least(x):
    """What the maximum with anything leaves alone."""
    return np.array(-np.inf if inexact(x) else jnp.iinfo(x.dtype).min, x.dtype)


def above(x):
    """x without what is as small as the least."""
    return jnp.where(x == least(x), jnp.ones_like(x), x)


def limited(x):
    """x without NaN and infinities, of which padding makes NaN or not."""
    return jnp.where(jnp.isfinite(x), x, jnp.ones_like(x))


def settled(x):
    """Complex x without what the branch of an arctangent would hang on."""
    return unsigned(limited(x))


def distinct(x):
    """x of moderate size, its ranks along the last axis added: no two elements the same."""
    x = jnp.where(jnp.abs(x) < 100, x, jnp.ones_like(x))
    return x + jnp.argsort(jnp.argsort(x)).astype(x.dtype)


def bounded(x):
    """x without infinities."""
    return jnp.where(jnp.isinf(x), jnp.ones_like(x), x)


def window_slope(x, window, strides):
    """The maximum over windows moved along a tangent."""
    return jax.jvp(lambda y: lax.reduce_window(y, -jnp.inf, lax.max, window, strides, "VALID"), (x,), (ramp(x),))[1]


def window_back(x, window, strides):
    """What comes back through the maximum over windows."""
    return jax.grad(lambda y: scalar((lax.reduce_window(y, -jnp.inf, lax.max, window, strides, "VALID"),)))(x)


def bits(x):
    return jax.random.key_data(x)
