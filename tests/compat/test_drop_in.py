"""`import jax` is Styrax: in the process, in its children, in pickles, in metadata."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.compat.running import lines, run

PUBLIC = (
    "ad_checkpoint api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors "
    "experimental experimental.sparse experimental.sparse.bcoo "
    "extend extend.backend extend.core extend.core.primitives extend.linear_util extend.random "
    "extend.source_info_util flatten_util interpreters interpreters.ad interpreters.batching interpreters.mlir "
    "interpreters.partial_eval interpreters.xla lax lib memory monitoring nn numpy profiler ref "
    "scipy.sparse.linalg sharding stages test_util tree tree_util typing version").split()

ABSENT = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "jaxlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.append(Blocker())
sys.meta_path[:] = sorted(sys.meta_path, key=lambda f: type(f).__name__ != "Finder" and type(f).__name__ != "Blocker")
"""


def script(text: str, **kwargs) -> list[str]:
    return lines("-c", textwrap.dedent(text), **kwargs)


@pytest.mark.parametrize("absent", [False, True], ids=["installed", "absent"])
def test_one_object_per_module(absent):
    out = script((ABSENT if absent else "") + f"""
import importlib, sys
import jax
import jax.numpy as jnp
import styrax, styrax.numpy
assert jax is styrax and jnp is styrax.numpy and jax.numpy is jnp
for name in {PUBLIC!r}:
    module = importlib.import_module("jax." + name)
    assert module is importlib.import_module("styrax." + name), name
    assert module is sys.modules["jax." + name] is sys.modules["styrax." + name], name
    assert module.__name__ == module.__spec__.name == "styrax." + name, (name, module.__spec__)
from jax import lax, tree_util
from jax.experimental import io_callback
from jax.experimental.sparse.util import CuSparseEfficiencyWarning, SparseInfo
import jax.scipy.special
print(float(jax.jit(jax.grad(lambda x: jnp.sin(x) * x))(1.0)))
""")
    assert abs(float(out[0]) - 1.3817732) < 1e-5


def test_versions():
    out = script("""
        import importlib.metadata as metadata, jax, jaxlib, jaxlib.version
        print(jax.__version__, jax.__version_info__, jax.version.__version__, jax.lib.__version__)
        print(jaxlib.__version__, jaxlib.version.__version__)
        print(metadata.version("jax"), metadata.version("jaxlib"), metadata.version("JAX"))
        found = metadata.distribution("jax")
        print(found.metadata["Name"], found.version, found.requires)
        print(metadata.metadata("jaxlib")["Version"], len(list(metadata.distributions(name="jax"))) >= 1)
        """)
    assert out == ["0.10.2 (0, 10, 2) 0.10.2 0.10.2", "0.10.2 0.10.2", "0.10.2 0.10.2 0.10.2",
                   "jax 0.10.2 ['jaxlib (==0.10.2)']", "0.10.2 True"]


def test_native_spelling_has_a_version_of_its_own():
    out = lines("-c", "import styrax; print(styrax.__version__, styrax.__version_info__); import styrax.compat; "
                "styrax.compat.install(); import jax; print(jax.__version__, jax is styrax)", plain=True)
    assert out == ["0.1.0 (0, 1, 0)", "0.10.2 True"]


def test_what_is_not_there():
    out = script("""
        import jax
        for statement in ("import jax.nothing", "import jax.numpy.nothing", "from jax import nothing", "jax.nothing",
                          "import jax._src.nothing"):
            try:
                exec(statement)
            except Exception as error:
                print(type(error).__name__, error)
        print(hasattr(jax, "nothing"), importlib.util.find_spec("jax.nothing"))
        """.replace("import jax\n", "import jax, importlib.util\n", 1))
    assert out == [
        "ModuleNotFoundError No module named 'jax.nothing'", "ModuleNotFoundError No module named 'jax.numpy.nothing'",
        "ImportError cannot import name 'nothing' from 'styrax' (" + out[2].partition("(")[2],
        "AttributeError module 'jax' has no attribute 'nothing'",
        "ModuleNotFoundError No module named 'jax._src.nothing'", "False None"]


def test_real_jax_first_is_an_error():
    done = run("-c", "import sys, types; sys.modules['jax'] = types.ModuleType('jax'); import styrax.compat; "
               "styrax.compat.install()", plain=True)
    assert done.returncode == 1
    assert "RuntimeError: jax has been imported already" in done.stderr


def test_install_twice():
    out = lines("-c", "import sys, styrax.compat as c; print(c.installed()); c.install(); c.install(); "
                "print(c.installed(), sum(type(f).__name__ == 'Finder' for f in sys.meta_path))", plain=True)
    assert out == ["False", "True 1"]


def test_subprocess():
    out = script("""
        import subprocess, sys
        child = ("import sys; print('jax' in sys.modules); import jax; print(jax.__name__, jax.__version__); "
                 "print(sys.path[1:2])")
        grandchild = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
        for code in (child, grandchild):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            print(done.stdout.split())
        """)
    assert out[0] == out[1]
    assert out[0].startswith("['False', 'styrax', '0.10.2'")
    assert "compat/site" not in out[0]


def test_sitecustomize_of_others_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.seen = __name__\n")
    out = script("""
        import subprocess, sys
        code = "import sys, sitecustomize; print(sys.seen, sitecustomize.__file__); import jax; print(jax.__name__)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        """, PYTHONPATH=f"{running_source()}:{tmp_path}")
    assert out[:2] == [f"sitecustomize {tmp_path}/sitecustomize.py", "styrax"]


def running_source() -> str:
    from tests.compat.running import SOURCE

    return str(SOURCE)


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing(method, tmp_path):
    file = tmp_path / "pool.py"
    file.write_text(textwrap.dedent(f"""
        import multiprocessing, sys
        import jax, jax.numpy as jnp

        def work(x):
            return jax.__name__, x * 2, float(jnp.sum(x))

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            with context.Pool(1) as pool:
                print(pool.map(work, [jnp.arange(3.0)]))
            process = context.Process(target=work, args=(jnp.ones(2),))
            process.start(); process.join()
            print(process.exitcode)
        """))
    assert lines(str(file)) == ["[('styrax', Array([0., 2., 4.], dtype=float32), 3.0)]", "0"]


def test_pickles():
    out = script("""
        import pickle
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import PartitionSpec as P, Mesh
        x = jnp.arange(3.0)
        tree = {"a": 1, "b": (2, None)}
        for value in (x, jax.tree.structure(tree), P("x", None), jnp.float32, jnp.dtype("bfloat16"),
                      jax.ShapeDtypeStruct((3,), jnp.float32), jax.tree_util.DictKey("x"),
                      jax.core.ShapedArray((3,), jnp.float32), jax.devices()[0], Mesh(np.array(jax.devices()), ("x",))):
            back = pickle.loads(pickle.dumps(value))
            assert type(back) is type(value), value
            assert np.all(back == value), (back, value)
        # names of JAX's own modules, as pickles that it wrote have them
        for module, name in (("jax", "Array"), ("jax.errors", "UnexpectedTracerError"),
                             ("jax._src.core", "ShapedArray"), ("jax.numpy", "float32"), ("jax", "P"),
                             ("jaxlib._jax.pytree", "PyTreeDef"),
                             ("jax._src.mesh", "AbstractMesh"), ("jax._src.tree_util", "default_registry")):
            assert pickle.loads(f"c{module}\\n{name}\\n.".encode()) is not None, name
        print(pickle.loads(b"cjax.numpy\\nadd\\n(I1\\nI2\\ntR."))
        """)
    assert out == ["3"]


def test_pickle_written_by_jax():
    import pickle

    import jax

    values = [jax.numpy.arange(3.0), jax.numpy.ones((2, 2), jax.numpy.bfloat16), jax.numpy.asarray(2.0) * 1,
              jax.sharding.PartitionSpec("x"), jax.numpy.int8]
    data = pickle.dumps(values)
    out = script(f"import pickle; print(pickle.loads({data!r}))")
    assert "".join("".join(out).split()) == (
        "[Array([0.,1.,2.],dtype=float32),Array([[1,1],[1,1]],dtype=bfloat16),Array(2.,dtype=float32,weak_type=True),P('x',),"
        "<class'jax.numpy.int8'>]")


def test_error_classes():
    out = script("""
        import jax, jax.numpy as jnp
        try:
            jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
        except jax.errors.TracerBoolConversionError as error:
            print(isinstance(error, jax.errors.ConcretizationTypeError), isinstance(error, TypeError))
        from jax._src.errors import TracerBoolConversionError
        print(TracerBoolConversionError is jax.errors.TracerBoolConversionError)
        """)
    assert out == ["True True", "True"]


def test_removed_names():
    out = script("""
        import jax, jax.numpy as jnp
        from jax.lib import xla_bridge
        print(jax.tree_map(lambda x: x + 1, {"a": 1}), jax.tree_leaves((1, 2)), xla_bridge.get_backend().platform)
        from jax.experimental import enable_x64
        with enable_x64():
            print(jnp.arange(2.0).dtype)
        """)
    assert out == ["{'a': 2} [1, 2] cpu", "float64"]


def test_modules_in_use_are_listed_by_both_names():
    """Wherever the module was loaded first: before the drop-in, by attribute, or by another module of ours."""
    assert script("""
        import styrax.tree_util
        import jax, sys
        assert sys.modules["jax.tree_util"] is jax.tree_util
        jax.nn.initializers, jax.stages
        for name in ("nn", "nn.initializers", "stages", "version"):
            assert sys.modules["jax." + name] is sys.modules["styrax." + name], name
        print(len([name for name in sys.modules if name.startswith("jax.core.")]))
        """) == ["0"]


def test_loaded_modules_are_those_of_jax():
    from styrax.compat.finder import LOADED

    text = 'import jax, sys; print(*sorted(m for m in sys.modules if m.startswith("jax.") and "_src" not in m))'
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert {f"jax.{name}" for name in LOADED} == {*found}


def test_classes_of_values_say_that_they_are_jaxs():
    assert script("""
        import jax, jax.numpy as jnp
        def told(x):
            print(type(x).__module__)
            return x
        told(jnp.ones(2))
        jax.jit(told)(1.0)
        jax.jvp(told, (1.0,), (1.0,))
        jax.vmap(told)(jnp.ones(2))
        """) == ["jaxlib._jax", "jax._src.interpreters.partial_eval", "jax._src.interpreters.ad",
                 "jax._src.interpreters.batching"]


def test_modules_below_packages_of_jax():
    assert script("""
        import jax, jax.numpy as jnp
        print(jax._src.numpy.util.promote_dtypes_inexact(jnp.arange(2)))
        from jax._src import ad_checkpoint, api, basearray, pjit
        from jax._src.api import _dtype, jit
        from jax._src.lax import lax, parallel
        from jax._src.lax.lax import _convert_element_type, mul
        from jax._src.random import normal, threefry2x32
        from jax._src.nn.functions import relu
        from jax._src.numpy import lax_numpy, linalg
        from jax._src.numpy.ufunc_api import ufunc
        from jax._src.numpy.ufuncs import sin
        from jax._src.ops.scatter import segment_sum
        from jax._src.monitoring import get_event_listeners, record_event
        from jax._src.pjit import auto_axes, pjit as with_places
        from jax._src.scipy.special import gammaln
        from jax._src.sharding_impls import NamedSharding, canonicalize_sharding
        from jaxlib._jax import PjitFunction
        print(ufunc is jnp.ufunc, sin is jnp.sin, lax.add_p is jax.lax.add_p, isinstance(jit(sin), PjitFunction),
              canonicalize_sharding(None, "f"), segment_sum is jax.ops.segment_sum, hasattr(jnp, "util"))
        print(normal is jax.random.normal, threefry2x32.threefry2x32_p is jax.extend.random.threefry2x32_p,
              *map(jax._src.tree_util.treedef_is_strict_leaf, map(jax.tree.structure, (1, None, (1,)))))
        entry = jax._src.tree_util._registry[dict]
        children, keys = entry.to_iter({"a": 1, "b": 2})
        print(list(children), keys, entry.from_iter(keys, [3, 4]))
        flat, treedef = jax.tree.flatten((1, [2, 3]))
        whole = jax.tree.structure((0, [{"a": 0, "b": 0}, (0, 0)]))
        print(jax._src.tree_util.broadcast_flattened_prefix_with_treedef(flat, treedef, whole))
        jax.monitoring.register_event_listener(print)
        listeners = get_event_listeners()
        record_event("told")
        listeners.clear()
        print(len(get_event_listeners()), with_places(lambda x, n: x + n, None, None, static_argnums=1)(1, 2))
        """) == ["[Array([0., 1.], dtype=float32)]", "True True True True None True False",
                 "True True True False False", "[1, 2] ('a', 'b') {'a': 3, 'b': 4}",
                 "[1, 2, 2, 3, 3]", "told", "1 3"]


def test_packages_of_jax_have_no_packages_of_ours():
    assert script("""
        import sys
        import jax._src.lax, jax._src.numpy
        for name in ("jax._src.lax.control_flow.loops", "jax._src.lax.elementwise", "jax._src.numpy.creation"):
            try:
                __import__(name)
            except ModuleNotFoundError:
                print(name)
        below = [m for m in sys.modules if m.startswith("styrax.compat.internals.lax.")]
        print(hasattr(jax._src.lax, "elementwise"), below)
        """) == ["jax._src.lax.control_flow.loops", "jax._src.lax.elementwise", "jax._src.numpy.creation", "False []"]
