"""Primitives that are instances of a class: eagerly, compiled, and under each transformation, as in JAX."""

import numpy as np
import pytest


def power(sx, **methods):
    """`x ** n * y`, with rules by name on demand."""
    from importlib import import_module

    base = import_module(sx.__name__ + ".experimental.hijax").VJPHiPrimitive

    class Power(base):
        def __init__(self, x, y, *, n):
            self.in_avals, self.out_aval, self.params = (x, y), x, dict(n=n)
            super().__init__()

        def expand(self, x, y):
            return x**self.n * y

    for name, method in methods.items():
        setattr(Power, name, method)
    return lambda x, y: Power(sx.typeof(x), sx.typeof(y), n=3)(x, y)


def jvp(self, primals, tangents):
    (x, y), (s, t) = primals, tangents
    return self(x, y), 3 * x**2 * y * s + x**3 * t


def vjp_fwd(self, nzs_in, x, y):
    return self(x, y), (x, y)


def vjp_bwd(self, res, ct, x_bar, y_bar):
    x, y = res
    x_bar.accum(3 * x**2 * y * ct)
    y_bar.accum(x**3 * ct)


def vjp_bwd_retval(self, res, ct):
    x, y = res
    return 3 * x**2 * y * ct, x**3 * ct


def batch(self, axis_data, args, in_dims):
    x, y = (a if d is None else a.swapaxes(0, d) for a, d in zip(args, in_dims, strict=True))
    return x**self.n * y, 0


def batch_dim_rule(self, axis_data, in_dims):
    return in_dims[1] if in_dims[0] is None else in_dims[0]


RULES = dict(jvp=jvp, vjp_fwd=vjp_fwd, vjp_bwd=vjp_bwd, batch_dim_rule=batch_dim_rule)
PROGRAMS = {
    "eager": lambda sx, f, x, y: f(x, y),
    "jit": lambda sx, f, x, y: sx.jit(f)(x, y),
    "lowered": lambda sx, f, x, y: sx.jit(f).lower(x, y).compile()(x, y),
    "jvp": lambda sx, f, x, y: sx.jvp(f, (x, y), (y, x)),
    "vjp": lambda sx, f, x, y: sx.vjp(f, x, y)[1](x),
    "grad": lambda sx, f, x, y: sx.grad(lambda x: f(x, y).sum())(x),
    "grad of jit": lambda sx, f, x, y: sx.grad(lambda x: sx.jit(f)(x, y).sum())(x),
    "jit of grad by the second": lambda sx, f, x, y: sx.jit(sx.grad(lambda x, y: f(x, y).sum(), 1))(x, y),
    "vmap": lambda sx, f, x, y: sx.vmap(f)(sx.numpy.stack([x, y]), sx.numpy.stack([y, x])),
    "vmap of one": lambda sx, f, x, y: sx.vmap(f, in_axes=(0, None))(sx.numpy.stack([x, y]), y),
    "vmap of grad": lambda sx, f, x, y: sx.vmap(sx.grad(lambda x, y: f(x, y).sum()))(
        sx.numpy.stack([x, y]), sx.numpy.stack([y, x])),
    "in a scan": lambda sx, f, x, y: sx.grad(lambda x: sx.lax.scan(
        lambda c, _: (f(c, y), None), x, None, length=2)[0].sum())(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("change", [{}, dict(vjp_bwd=None, vjp_bwd_retval=vjp_bwd_retval),
                                    dict(batch_dim_rule=None, batch=batch)], ids=["bwd", "bwd_retval", "batch"])
def test_transformations_are_those_of_jax(name, change):
    import jax

    import styrax

    methods = {k: v for k, v in {**RULES, **change}.items() if v is not None}
    ours, theirs = ([np.asarray(x) for x in sx.tree.leaves(PROGRAMS[name](
        sx, power(sx, **methods), sx.numpy.array([1.5, 2.0]), sx.numpy.array([3.0, -1.0])))] for sx in (styrax, jax))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_linearization_of_ones_own():
    import styrax as sx

    f = power(sx, lin=lambda self, nzs, x, y: (self(x, y), (x, y)),
              linearized=lambda self, res, s, t: 3 * res[0]**2 * res[1] * s + res[0]**3 * t)
    y, push = sx.linearize(f, 2.0, 5.0)
    assert (float(y), float(push(1.0, 1.0))) == (40.0, 68.0)
    assert float(sx.linearize(sx.jit(f), 2.0, 5.0)[1](1.0, 0.0)) == 60.0
    assert float(sx.grad(f)(2.0, 5.0)) == 60.0


def test_what_is_missing_is_said():
    import styrax as sx

    f = power(sx)
    assert float(f(2.0, 5.0)) == 40.0
    with pytest.raises(NotImplementedError, match="must implement `jvp`"):
        sx.jvp(f, (2.0, 5.0), (1.0, 1.0))
    with pytest.raises(NotImplementedError, match="must implement `batch`"):
        sx.vmap(f)(sx.numpy.ones(2), sx.numpy.ones(2))
    with pytest.raises(AttributeError, match="both `vjp_bwd` and `vjp_bwd_retval`"):
        power(sx, vjp_bwd=vjp_bwd, vjp_bwd_retval=vjp_bwd_retval)(2.0, 5.0)
