"""Exported functions and compiled programs as bytes, read by other processes."""

from __future__ import annotations

import collections
import json
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import export
from styrax.experimental import serialize_executable
from tests.compat.running import environment


def elsewhere(tmp_path, source, **files):
    """What a fresh process prints as JSON, with files beside it."""
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    head = "import json, pickle\nimport numpy as np\nimport styrax as jax\nimport styrax.numpy as jnp\n"
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(source)], cwd=tmp_path, env=environment(),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_fresh_process_calls_it(tmp_path):
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)

    @jax.jit
    def model(params, x, *, key):
        noise = jax.random.normal(key, (x.shape[0], 3))
        return {"out": jax.nn.relu(x @ params["w"] + weights[0]) + noise, "mean": x.mean()}

    spec = export.symbolic_shape("batch, 2", constraints=["batch >= 2"])
    params, key = {"w": weights}, jax.random.key(3)
    exported = export.export(model)(params, jax.ShapeDtypeStruct(spec, np.float32), key=key)
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    found = elsewhere(tmp_path, """
        from styrax import export
        model = export.deserialize(open("model", "rb").read())
        params, x = pickle.load(open("args", "rb"))
        out = model.call(params, x, key=jax.random.key(3))
        f = lambda w: model.call({"w": w}, x, key=jax.random.key(3))["out"].sum()
        print(json.dumps([model.fun_name, str(model.in_avals), str(model.out_avals), np.asarray(out["out"]).tolist(),
                          float(out["mean"]), np.asarray(jax.grad(f)(params["w"])).tolist(), model.mlir_module()]))
    """, model=exported.serialize(vjp_order=1), args=pickle.dumps((params, x)))
    name, ins, outs, out, mean, gradient, text = found
    wanted = model(params, x, key=key)
    assert [name, ins, outs, text] == ["model", str(exported.in_avals), str(exported.out_avals), exported.mlir_module()]
    np.testing.assert_allclose(out, wanted["out"], rtol=1e-6)
    np.testing.assert_allclose(mean, wanted["mean"], rtol=1e-6)
    wanted = jax.grad(lambda w: model({"w": w}, x, key=key)["out"].sum())(weights)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5)


def test_attributes_are_kept():
    exported = export.export(jax.jit(lambda x, y: x + 1), platforms=("cpu", "tpu"), disabled_checks=[
        export.DisabledSafetyCheck.custom_call("f")])(
            jax.ShapeDtypeStruct(export.symbolic_shape("a, 2*b", constraints=["a >= b"]), np.int8), 1)
    loaded = export.deserialize(exported.serialize())
    for name in ("fun_name", "in_tree", "out_tree", "platforms", "disabled_safety_checks", "module_kept_var_idx",
                 "calling_convention_version", "uses_global_constants", "in_shardings_hlo", "nr_devices"):
        assert getattr(loaded, name) == getattr(exported, name), name
    assert str(loaded.in_avals) == str(exported.in_avals)
    with pytest.raises(ValueError, match="symbolic shape constraint a >= b"):
        loaded.call(np.ones((2, 6), np.int8), 1)
    again = export.deserialize(loaded.serialize())
    assert again.call(np.ones((3, 6), np.int8), 1).shape == (3, 6)


def test_functions_with_their_own_derivatives():
    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda p, t: (square(*p), 10 * t[0]))
    exported = export.export(jax.jit(lambda x: jax.lax.cond(x > 0, square, jax.checkpoint(jnp.sin), x)))(1.0)
    loaded = export.deserialize(exported.serialize(vjp_order=1))
    assert loaded.call(3.0) == 9 and jax.grad(loaded.call)(3.0) == 10
    np.testing.assert_allclose(jax.grad(loaded.call)(-1.0), np.cos(-1.0), rtol=1e-6)


def test_trees():
    Point = collections.namedtuple("Point", "x y")
    export.register_namedtuple_serialization(Point, serialized_name="test_trees.Point")

    @jax.tree_util.register_pytree_node_class
    class Named:
        def __init__(self, value, name):
            self.value, self.name = value, name

        def tree_flatten(self):
            return (self.value,), self.name

        @classmethod
        def tree_unflatten(cls, name, children):
            return cls(*children, name)

    export.register_pytree_node_serialization(
        Named, serialized_name="test_trees.Named", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode)
    value = [Point(1.0, (2.0, None)), {"a": Named(3.0, "three"), "b": []}, collections.OrderedDict(z=1.0, y=2.0)]
    exported = export.export(jax.jit(lambda v: (v, v)))(value)
    loaded = export.deserialize(exported.serialize())
    assert loaded.in_tree == exported.in_tree and loaded.out_tree == exported.out_tree
    found = loaded.call(value)[1]
    assert jax.tree.structure(found) == jax.tree.structure(value) and found[1]["a"].name == "three"


def test_trees_that_cannot_be_written():
    Point = collections.namedtuple("Unregistered", "x y")
    with pytest.raises(ValueError, match="Cannot serialize .* unregistered type .*Unregistered"):
        export.export(jax.jit(lambda p: p.x))(Point(1.0, 2.0)).serialize()
    with pytest.raises(TypeError, match="only for dictionaries with string keys"):
        export.export(jax.jit(lambda d: d[0]))({0: 1.0}).serialize()
    options = dict(serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None)
    with pytest.raises(ValueError, match="must call first .*register_pytree_node"):
        export.register_pytree_node_serialization(type("New", (), {}), serialized_name="New", **options)
    with pytest.raises(ValueError, match="Use .*register_pytree_node_serialization"):
        export.register_namedtuple_serialization(str, serialized_name="str")
    export.register_namedtuple_serialization(Point, serialized_name="once")
    with pytest.raises(ValueError, match="Duplicate serialization registration .*once"):
        export.register_namedtuple_serialization(Point, serialized_name="twice")
    with pytest.raises(ValueError, match="Duplicate serialization registration for serialized_name .*once"):
        export.register_namedtuple_serialization(collections.namedtuple("Other", "x"), serialized_name="once")


def test_functions_of_this_process():
    exported = export.export(jax.jit(lambda x: jax.pure_callback(lambda v: v, x, x)))(jnp.ones(2))
    with pytest.raises(ValueError, match="a function of this process"):
        exported.serialize()
    call = lambda x: jax.ffi.ffi_call("unknown_target", x)(x)
    with pytest.raises(ValueError, match="Cannot serialize code with custom calls whose targets .*unknown_target"):
        export.export(jax.jit(call))(jnp.ones(2))
    for name in ("unknown_target", "ALL"):
        exported = export.export(jax.jit(call), disabled_checks=[export.DisabledSafetyCheck.custom_call(name)])(
            jnp.ones(2))
        assert "unknown_target" in export.deserialize(exported.serialize()).mlir_module()


def test_damaged_bytes():
    blob = export.export(jax.jit(jnp.sin))(1.0).serialize()
    for bad in (b"", b"garbage" * 10, blob[:-1], blob[:40] + b"\0" + blob[41:]):
        with pytest.raises(ValueError, match="not serialized by this package|damaged"):
            export.deserialize(bytes(bad))
    later = bytearray(blob)
    later[7] = 99
    with pytest.raises(ValueError, match="a later release"):
        export.deserialize(later)


def compiled(x, y):
    return {"a": jnp.tanh(x) @ np.ones((4, 2), np.float32), "b": jax.nn.relu(y)}


def test_compiled_programs(tmp_path):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    program = jax.jit(compiled, donate_argnums=1).lower(x, x).compile()
    serialized, in_tree, out_tree = serialize_executable.serialize(program)
    assert in_tree == program.in_tree and out_tree == program.out_tree
    found = elsewhere(tmp_path, """
        from styrax.cpu import llvm
        from styrax.experimental import serialize_executable
        trees = [jax.tree.structure(((0, 0), {})), jax.tree.structure({"a": 0, "b": 0})]
        jax.numpy.ones(3) + 1
        before = llvm.compile_count.compiled + llvm.compile_count.disk_hits
        program = serialize_executable.deserialize_and_load(open("program", "rb").read(), *trees)
        count = llvm.compile_count.compiled + llvm.compile_count.disk_hits - before
        out = program(pickle.load(open("x", "rb")), jnp.ones((3, 4)))
        print(json.dumps([count, np.asarray(out["a"]).tolist(), str(program.in_avals), program.donate_argnums]))
    """, program=serialized, x=pickle.dumps(x))
    assert found[0] == 0  # nothing was compiled, and nothing found on the disk
    np.testing.assert_allclose(found[1], compiled(x, x)["a"], rtol=1e-6)
    assert found[2] == str(program.in_avals) and tuple(found[3]) == program.donate_argnums == (1,)
    again = serialize_executable.deserialize_and_load(serialized, in_tree, out_tree)
    with pytest.raises(TypeError, match="Argument types differ"):
        again(x[:2], x)
    with pytest.raises(ValueError, match="damaged"):
        serialize_executable.deserialize_and_load(serialized[:-1], in_tree, out_tree)
