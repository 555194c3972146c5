"""What a compiled function captures is freed with the function, before the garbage collector runs."""

import gc
import weakref

import pytest

import styrax as sx
import styrax.numpy as jnp

pytestmark = pytest.mark.usefixtures("old_objects_aside")

FUNCTIONS = {
    "by platform": lambda x: lambda y: sx.lax.platform_dependent(y, default=lambda y: y * x),
    "itself": lambda x: lambda y: x,
    "sum": lambda x: lambda y: (x * y).sum(),
    "product": lambda x: lambda y: jnp.outer(x, y) @ x,
    "scan": lambda x: lambda y: sx.lax.scan(lambda c, a: (jnp.sin(c + a * x), c.sum()), y, y),
    "cond": lambda x: lambda y: sx.lax.cond(y[0] > 0, lambda: x, lambda: y),
    "grad": lambda x: sx.grad(lambda y: (jnp.tanh(y) * x).sum()),
    "vmap": lambda x: sx.vmap(lambda y: y * x),
    "jit in jit": lambda x: lambda y: sx.jit(lambda z: z * x)(y),
}


@pytest.fixture(params=[False, True], ids=["", "meshes"])
def meshes(request):
    """Where a program has used a mesh with explicit axes, types are looked at for shardings."""
    if request.param:
        mesh = sx.make_mesh((1,), ("i",), axis_types=(sx.sharding.AxisType.Explicit,))
        sx.jit(jnp.sin)(sx.device_put(jnp.ones(4), sx.NamedSharding(mesh, sx.P("i"))))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wrap", [sx.jit, lambda f: f], ids=["jit", "eager"])
def test_it_goes_with_the_function(name, wrap, meshes):
    x, y = jnp.ones(5), jnp.arange(5.0)
    gc.collect()
    gc.disable()
    try:
        captured = weakref.ref(x)
        called = wrap(FUNCTIONS[name](x))
        del x
        for _ in range(2):
            sx.block_until_ready(called(y))
        assert captured() is not None
        del called
        assert captured() is None
    finally:
        gc.enable()


def test_the_loops_of_a_program_without_operations_are_shown():
    assert sx.jit(lambda: ()).lower().compile().as_text() is not None
    assert "out0" in sx.jit(lambda x: x).lower(1.0).compile().as_text()
