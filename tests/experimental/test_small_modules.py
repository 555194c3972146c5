"""The small modules of `experimental` against JAX's: identities, marked calls, the stateful generator, meshes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import styrax
from tests.experimental.oracle import assert_same, jax, module

IDENTITIES = {
    "shard_alike": lambda jax, of: lambda x: sum(of("shard_alike").shard_alike(x * x, x)),
    "shard_alike of trees": lambda jax, of: lambda x: of("shard_alike").shard_alike({"a": x}, {"a": 2 * x})[1]["a"],
    "metadata": lambda jax, of: lambda x: of("xla_metadata").set_xla_metadata({"a": x * x}, k=1)["a"],
    "metadata of a function": lambda jax, of: of("xla_metadata").set_xla_metadata(k=1)(lambda x: x * x),
    "layout": lambda jax, of: lambda x: of("layout").with_layout_constraint(x * x, of("layout").Layout(())),
    "compute_on": lambda jax, of: of("compute_on").compute_on("device_host")(lambda x: x * x),
    "compute_on2": lambda jax, of: of("compute_on").compute_on2(
        lambda x: jax.numpy.sin(x) * x, compute_type="device_host", out_memory_spaces=jax.memory.Space.Device),
    "scheduling_group": lambda jax, of: of("scheduling_groups").scheduling_group("g")(lambda x: jax.numpy.sin(x) * x),
    "metadata of a call": lambda jax, of: of("scheduling_groups").xla_metadata_call(a="b")(lambda x: x * x),
    "custom_partitioning": lambda jax, of: partitioned(of("custom_partitioning"), lambda x: x * 3),
}
UNMAPPED = ("custom_partitioning",)  # JAX has no derivatives and no batching of it


def partitioned(m, fun):
    made = m.custom_partitioning(fun)
    made.def_partition(partition=lambda *_: None, sharding_rule="... -> ...")
    return made


@pytest.mark.parametrize("name", IDENTITIES)
def test_identities_and_calls(name):
    def program(jax):
        f = IDENTITIES[name](jax, lambda path: module(jax, f"experimental.{path}"))
        x = jax.numpy.float32(0.5)
        found = [f(x), jax.jit(f)(x)]
        if name not in UNMAPPED:
            found += [jax.grad(f)(x), jax.vmap(f)(jax.numpy.arange(3.0)) if name != "layout" else 0.0,
                      jax.jvp(f, (x,), (x,)), jax.jit(jax.grad(jax.grad(f)))(x)]
        return found

    assert_same(program)


def test_linear_calls_transpose():
    assert_same(lambda jax: jax.linear_transpose(module(jax, "experimental.scheduling_groups").scheduling_group("g")(
        lambda x: 3 * x), 1.0)(2.0))
    assert_same(lambda jax: jax.linear_transpose(lambda x: module(jax, "experimental.shard_alike").shard_alike(
        2 * x, 3 * x), 1.0)((1.0, 1.0)))


def test_fused_computes():
    fused = module(styrax, "experimental.fused").fused
    f = fused(out_spaces=(styrax.memory.Space.Device,) * 2)(lambda x, y: (x + y, x * y))
    for run in (f, styrax.jit(f)):
        np.testing.assert_allclose(run(2.0, 3.0), [5, 6])
    assert styrax.grad(lambda x: f(x, 3.0)[1])(2.0) == 3
    assert "@fused_call" in styrax.jit(f).lower(2.0, 3.0).as_text()
    with pytest.raises(ValueError):
        f_of_one = fused(out_spaces=())(lambda x: x)
        f_of_one(1.0)


def test_control_dependencies_keep_what_they_order():
    deps = module(styrax, "experimental.control_deps")
    assert deps.control_dep(1.0, 2.0) == () and deps.schedule([1.0, 2.0]) is None
    shown = str(styrax.make_jaxpr(lambda x: (deps.schedule([styrax.numpy.sin(x), x]), x)[1])(1.0))
    assert "sin" in shown


def generator(jax):
    return module(jax, "experimental.random").stateful_rng(7)


DRAWS = {
    "keys": lambda jax, r: jax.random.key_data(r.key((2, 3))),
    "random": lambda jax, r: [r.random(), r.random((2, 3)), r.random(2)],
    "uniform": lambda jax, r: r.uniform(np.zeros((2, 1), np.float32), np.ones(3, np.float32)),
    "normal": lambda jax, r: [r.normal(1, 3, 2), r.normal(dtype="float16")],
    "integers": lambda jax, r: [r.integers(5, size=4), r.integers(3, 9, size=())],
    "spawned": lambda jax, r: [child.uniform() for child in r.spawn(2)],
    "split": lambda jax, r: jax.vmap(lambda r: r.uniform())(r.split(3)),
    "in a program": lambda jax, r: [jax.jit(lambda r: r.uniform(size=2))(r), r.uniform(), r._counter[...] + 0],
}


@pytest.mark.parametrize("name", DRAWS)
def test_stateful_generator(name):
    assert_same(lambda jax: DRAWS[name](jax, generator(jax)), rtol=1e-6)


REFUSED = {
    "draw of a split generator": lambda jax, of: generator(jax).split(2).key(),
    "no key": lambda jax, of: of("random").StatefulPRNG(np.ones(2, np.uint32), jax.new_ref(0)),
    "no counter": lambda jax, of: of("random").StatefulPRNG(jax.random.key(0), 0),
    "no seed": lambda jax, of: jax.jit(lambda: of("random").stateful_rng().uniform())(),
    "place": lambda jax, of: of("compute_on").compute_on("moon").__enter__(),
    "shapes": lambda jax, of: of("shard_alike").shard_alike(1.0, np.ones(2)),
    "factor": lambda jax, of: of("custom_partitioning").CompoundFactor("i"),
    "not initialised": lambda jax, of: of("multihost_utils").live_devices(jax.devices()).__enter__(),
    "topology": lambda jax, of: of("topologies").get_topology_desc(platform="cpu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    errors = []
    for package in (jax, styrax):
        with pytest.raises(Exception) as caught:
            REFUSED[name](package, lambda path, package=package: module(package, f"experimental.{path}"))
        errors.append(caught.type.__name__)
    assert errors[1] == errors[0]


def test_meshes_of_processes():
    def program(jax):
        utils, topologies = (module(jax, f"experimental.{m}") for m in ("multihost_utils", "topologies"))
        mesh = topologies.make_mesh(topologies.get_attached_topology(), (1,), ("x",))
        spec, x = jax.sharding.PartitionSpec("x"), jax.numpy.ones((2, 2))
        return (utils.host_local_array_to_global_array(x, mesh, spec),
                utils.global_array_to_host_local_array({"a": x}, mesh, {"a": spec}),
                jax.vmap(lambda y: utils.host_local_array_to_global_array(y, mesh, spec))(x))

    assert_same(program)


def test_sharding_rules():
    m = module(styrax, "experimental.custom_partitioning")
    rule = m.SdyShardingRule((m.ArrayMapping("i", m.CompoundFactor("j", "k")),), (m.ArrayMapping("i"),), j=2, k=3)
    assert rule.factor_sizes == {"j": 2, "k": 3}
    with pytest.raises(ValueError, match="not used"):
        m.SdyShardingRule((m.ArrayMapping("i"),), (m.ArrayMapping("i"),), z=2)


def test_cache_folder(tmp_path):
    cache = module(styrax, "experimental.compilation_cache.compilation_cache")
    before = styrax.config.jax_compilation_cache_dir
    try:
        cache.set_cache_dir(tmp_path)
        cache.reset_cache()
        assert styrax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        styrax.config.update("jax_compilation_cache_dir", before)


def test_colocated_python():
    colocated = module(styrax, "experimental.colocated_python")
    seen = []
    f = colocated.colocated_python(lambda x: (seen.append(np.asarray(x)), x + 1)[1])
    assert f(styrax.numpy.float32(1)) == 2 and seen == [1]
    typed = f.specialize(out_specs_fn=lambda x: styrax.ShapeDtypeStruct((), np.float32))
    assert styrax.jit(typed)(styrax.numpy.float32(2)) == 3

    @colocated.colocated_python_class
    class Counter:
        def __init__(self, start):
            self.value = start

        def add(self, x):
            self.value = self.value + x
            return self.value

    counter = Counter(1)
    assert [int(counter.add(styrax.numpy.int32(2))) for _ in range(2)] == [3, 5]


def test_layouts_in_programs():
    def found(jax):
        layouts = module(jax, "experimental.layout")
        order = layouts.Layout((1, 0))
        f = lambda x: layouts.with_layout_constraint(x * 2, order)
        text = jax.jit(f).lower(np.ones((4, 8), np.float32)).as_text()
        call = re.search(r"@LayoutConstraint.*(operand_layouts = .*\]), (result_layouts = .*\])\} : (.*)", text)
        return call.groups(), str(jax.make_jaxpr(jax.vmap(f))(np.ones((2, 4, 8), np.float32)))

    assert found(styrax) == found(jax)


MISFITS = {
    "argument": lambda jax, layouts, f: jax.jit(lambda x: x["a"], in_shardings=f)({"a": np.ones(3)}),
    "result": lambda jax, layouts, f: jax.jit(lambda x: [x], out_shardings=f)(np.ones(3)),
    "device_put": lambda jax, layouts, f: jax.device_put(np.ones(3), f),
    "constraint": lambda jax, layouts, f: layouts.with_layout_constraint(jax.numpy.ones(3), f.layout),
    "no layout": lambda jax, layouts, f: layouts.with_layout_constraint(jax.numpy.ones(3), None),
    "no sharding": lambda jax, layouts, f: layouts.Format(f.layout),
    "automatic": lambda jax, layouts, f: jax.device_put(np.ones(3), layouts.Format(layouts.Layout.AUTO)),
}


@pytest.mark.parametrize("name", MISFITS)
def test_layouts_that_do_not_fit(name):
    def message(jax):
        layouts = module(jax, "experimental.layout")
        whole = layouts.Format(layouts.Layout((0, 1)), jax.numpy.ones(3).sharding)
        with pytest.raises(ValueError) as error:
            MISFITS[name](jax, layouts, whole)
        facts = re.compile(r"pytree key path \w+\[\S+ is|Length of.*|Sharding has to be concrete"
                           r"|layouts passed .* type `Layout`|should be concrete. Got layout.*")
        return facts.findall(str(error.value))

    assert message(styrax) == message(jax) != []
