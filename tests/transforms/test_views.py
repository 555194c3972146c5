"""Views of references, `ref.at[i]`, as arguments of functions that are traced."""

from __future__ import annotations

import pytest

from tests.transforms.oracle import assert_same, jax, styrax

TRANSFORMS = {
    "jit": lambda package, f: package.jit(f),
    "checkpoint": lambda package, f: package.checkpoint(f),
    "cond": lambda package, f: lambda *args: package.lax.cond(args[-1] > 0, f, lambda *_: None, *args),
    "switch": lambda package, f: lambda *args: package.lax.switch(1, [lambda *_: None, f], *args),
    "shard_map": lambda package, f: package.shard_map(
        f, out_specs=package.P(),
        mesh=package.make_mesh((1,), ("x",), axis_types=(package.sharding.AxisType.Explicit,))),
    "jit of checkpoint": lambda package, f: package.jit(package.checkpoint(f)),
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_view_as_an_argument(name, eager):
    def program(package):
        def write(view, x):
            view[...] = view[...] * 2 + x
            package.ref.addupdate(view, ..., 1.0 + view[...])

        def f(x, i):
            ref = package.new_ref(x)
            for view in (ref.at[1:4], ref.at[i], ref.at[::2], ref.at[2:]):
                TRANSFORMS[name](package, write)(view, 3.0)
            return ref[...]

        run = f if eager and package is styrax else package.jit(f)  # JAX has views of tracers alone
        x = package.numpy.arange(6.0)
        return run(x, package.numpy.array([0, 5]))

    assert_same(program)


def test_views_inside_of_containers():
    def program(package):
        @package.jit
        def inner(views, x):
            return {k: v[...] + x for k, v in views.items()}

        def f(x):
            row, column = package.new_ref(x), package.new_ref(2 * x)
            return inner({"row": row.at[1], "column": column.at[:, 0]}, 1.0)

        x = package.numpy.arange(6.0).reshape(2, 3)
        return package.jit(f)(x), package.jit(package.grad(lambda x: f(x)["row"].sum()))(x)

    assert_same(program)


def test_a_view_is_a_leaf_to_users():
    def program(package):
        found = []

        @package.jit
        def f(x):
            ref = package.new_ref(x)
            found.extend(package.tree_util.tree_leaves((ref.at[1:3], [ref.at[0]])))
            found[:] = [(x.shape, x.ndim, x.size) for x in found]

        f(package.numpy.arange(6.0))
        return found

    assert program(styrax) == program(jax)


@pytest.mark.parametrize("package", [jax, styrax])
def test_vmap_refuses_views(package):
    @package.jit
    def f():
        ref = package.new_ref(package.numpy.zeros(7))
        package.vmap(lambda view: view[...])(ref.at[1:6])

    with pytest.raises(TypeError, match="TransformedRefs are not allowed"):
        f()


def test_abstract_references_as_arguments_of_make_jaxpr():
    def program(package):
        aval = package.typeof(package.new_ref(package.numpy.zeros(3)))

        def f(ref, x):
            ref[...] += x
            return ref[0]

        return str(package.make_jaxpr(f)(aval, 2.0))

    assert program(styrax) == program(jax)
