"""Names that JAX has removed work under the drop-in, and warn with today's spelling."""

from __future__ import annotations

import importlib
import inspect
import textwrap

import jax
import numpy as np
import pytest

from styrax.compat import keywords, removals

from .running import run


def script(body: str) -> list[str]:
    """The lines that a program written for JAX prints, without its spaces."""
    done = run("-c", textwrap.dedent(body))
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(" ", "").splitlines()


ROWS = [(module, name) for module, table in removals.NAMES.items() for name in table]


@pytest.mark.parametrize(("module", "name"), ROWS)
def test_row(module, name):
    row = removals.NAMES[module][name]
    assert removals.resolve(row if isinstance(row, str) else row[0]) is not None
    ours = importlib.import_module("styrax" + module.removeprefix("jax"))
    assert name not in vars(ours), "what is there does not warn"


@pytest.mark.parametrize("name", removals.MODULES)
def test_module(name):
    with pytest.warns(DeprecationWarning, match="removed from JAX"):
        own = removals.module(name)
    assert importlib.import_module(own)


def test_each_use_warns_where_it_stands():
    out = script("""
        import warnings
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            import jax, jax.numpy as jnp
            jax.tree_map(abs, [-1])
            import jax.linear_util
            from jax.ops import index_add
            jnp.ones(2).device_buffer
            jnp.ones(2).device()
        print({w.category.__name__ for w in found}, {w.filename for w in found})
        print([str(w.message).split()[0] for w in found])
        """)
    assert out == ["{'DeprecationWarning'}{'<string>'}",
                   "['jax.tree_map','jax.linear_util','jax.ops.index_add','Array.device_buffer','Array.device()']"]


def test_trees():
    out = script("""
        import jax
        print(jax.tree_map(lambda x, y: x + y, {"a": 1}, {"a": 2}), jax.tree_multimap(lambda x: -x, [1]))
        print(jax.tree_leaves((1, [2])), jax.tree_all([True, 1]), jax.treedef_is_leaf(jax.tree_structure(1)))
        """)
    assert out == ["{'a':3}[-1]", "[1,2]TrueTrue"]


def test_updates():
    out = script("""
        import jax.numpy as jnp
        from jax.ops import index, index_update, index_add, index_mul, index_min, index_max
        x = jnp.arange(4.0)
        for f in (index_update, index_add, index_mul, index_min, index_max):
            print(f(x, index[1:3], 1.5))
        """)
    assert out == ["[0.1.51.53.]", "[0.2.53.53.]", "[0.1.53.3.]", "[0.1.1.53.]", "[0.1.52.3.]"]


def test_host_callbacks():
    out = script("""
        import jax, jax.numpy as jnp, numpy as np
        from jax.experimental import host_callback as hcb
        @jax.jit
        def f(x):
            y = hcb.call(np.sin, x, result_shape=x)
            hcb.id_print(y, what="y")
            return hcb.id_tap(lambda v, transforms: print("tap", v, transforms), y * 2)
        print(f(jnp.zeros(2)))
        hcb.barrier_wait()
        print(jax.vmap(lambda x: hcb.call(np.cos, x, result_shape=x))(jnp.zeros(3)))
        """)
    assert sorted(out) == sorted(["what:y[0.0.]", "tap[0.0.]()", "[0.0.]", "[1.1.1.]"])


def test_backends_and_devices():
    out = script("""
        import jax, jax.numpy as jnp
        print(jax.lib.xla_bridge.get_backend().platform)
        print(jnp.ones(3).device_buffer.device() == jax.devices()[0], jnp.ones(3).device() == jax.devices()[0])
        print(jax.device_put_replicated(jnp.ones(2), jax.devices()[:1]).shape)
        print(jax.device_put_sharded([jnp.ones(2)], jax.devices()[:1]).shape)
        import jax.tools.colab_tpu
        jax.tools.colab_tpu.setup_tpu()
        from jax.config import config
        config.update("jax_enable_x64", True)
        print(jax.config.jax_enable_x64, jnp.ones(1).dtype)
        jax.config.update("jax_enable_x64", False)
        print(jnp.ones(1).dtype)
        """)
    assert out == ["cpu", "TrueTrue", "(1,2)", "(1,2)", "Truefloat64", "float32"]


def test_programs_as_text():
    out = script("""
        import jax, jax.numpy as jnp
        module, shape = jax.xla_computation(lambda x: {"y": jnp.sin(x)}, return_shape=True)(1.0)
        print("sine" in module.as_hlo_text(), shape["y"].shape, shape["y"].dtype)
        try:
            jax.xla_computation(lambda x: x, tuple_args=True)
        except NotImplementedError:
            print("refused")
        """)
    assert out == ["True()float32", "refused"]


def test_numbers_and_functions():
    out = script("""
        import jax, jax.numpy as jnp
        print(jnp.NINF, jnp.trapz(jnp.arange(3.0)), jnp.in1d(jnp.arange(3), jnp.array([1])), jnp.alltrue(jnp.ones(2)))
        print(jnp.msort(jnp.array([[2, 1], [1, 3]])), isinstance(jnp.ones(1), jnp.DeviceArray))
        print(jax.lax.tie_in(1, 2), jax.curry(max)(1)(3), jax.random.shuffle(jax.random.key(0), jnp.zeros(3)))
        """)
    assert out == ["-inf2.0[FalseTrueFalse]True", "[[11]", "[23]]True", "23[0.0.0.]"]


def test_keyword_arguments():
    """They do what their names of today do, and functions stay where pickles find them."""
    out = script("""
        import inspect, pickle, warnings
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            import jax, jax.numpy as jnp
            from jax.experimental.pjit import pjit
            x = jnp.arange(4.0)
            print(jnp.clip(a=x, a_min=1, a_max=2), jnp.clip(x, a_max=2), jnp.where(condition=x > 1, x=x, y=0))
            print(jnp.reshape(x, newshape=(2, 2)).shape, jnp.percentile(x, 50, interpolation="higher"))
            print(jax.nn.softmax(0 * x, initial=0.0), pjit(lambda x: 2 * x, in_axis_resources=None)(x))
        print(len(found), {(w.category.__name__, w.filename) for w in found}, str(found[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            print(jnp.clip(x, 1, 2), jnp.clip(x, min=1), jnp.where(x > 1, x, 0))
        print(pickle.loads(pickle.dumps(jnp.clip)) is jnp.clip, list(inspect.signature(jnp.clip).parameters))
        try:
            jnp.clip(x, low=1)
        except TypeError as error:
            print(error)
        """)
    assert out == [
        "[1.1.2.2.][0.1.2.2.][0.0.2.3.]", "(2,2)2.0", "[0.250.250.250.25][0.2.4.6.]",
        "11{('DeprecationWarning','<string>')}jax.numpy.clip(…,a=…)wasremovedfromJAX;today:jax.numpy.clip(…),argument1",
        "[1.1.2.2.][1.1.2.3.][0.0.2.3.]", "True['arr','min','max']",
        "clip()gotanunexpectedkeywordargument'low'"]


@pytest.mark.filterwarnings("ignore:.*pjit has been deprecated")
@pytest.mark.parametrize(("module", "name"), [(m, f) for m, table in keywords.KEYWORDS.items() for f in table])
def test_keywords_of_today_exist(module, name):
    ours = getattr(importlib.import_module("styrax" + module.removeprefix("jax")), name)
    theirs = getattr(importlib.import_module(module), name)
    for old, new in keywords.KEYWORDS[module][name].items():
        for function in (ours, theirs):
            parameters = inspect.signature(function).parameters
            positional = {p.name for p in parameters.values() if p.kind is p.POSITIONAL_ONLY}
            assert old not in parameters.keys() - positional
            assert new in parameters if isinstance(new, str) else new is None or len(parameters) > new


def test_options_without_effect():
    out = script("""
        import warnings
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            import jax
            jax.config.update("jax_array", True)
            jax.config.enable_omnistaging()
        print([str(w.message).split(" was")[0] for w in found])
        try:
            jax.config.update("jax_arrays", True)
        except AttributeError as error:
            print(error)
        """)
    assert out[0] == "['theoptionjax_array','jax.config.enable_omnistaging']" and "jax_arrays" in out[1]
    assert not removals.OPTIONS & jax.config.values.keys()


def test_spherical_harmonics_of_old():
    from scipy.special import sph_harm_y

    from styrax.compat.former.functions import sph_harm

    found = sph_harm(np.array([1]), np.array([2]), np.array([0.3]), np.array([0.5]), n_max=2)
    np.testing.assert_allclose(found, [sph_harm_y(2, 1, 0.5, 0.3)], rtol=1e-5)
